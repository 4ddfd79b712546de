"""Whether the source of a function or a class still says what the object is."""

from __future__ import annotations

import abc
import ast
import dataclasses
import enum
import os
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from akrunner.errors import ScriptError
from akrunner.launch.functions import as_written
from akrunner.launch.functions.as_written import NOTHING
from tests.unit.launch.functions.conftest import Written

KIND = """
    class Kind:
        rate = 1
        kept: int

        def fit(self):
            return 1

        @property
        def width(self):
            return 2

        @staticmethod
        def make():
            return 3

        @classmethod
        def name(cls):
            return 4

        def __hidden(self):
            return 5
"""


def made(text: str) -> tuple[Any, str]:
    """The last thing that a text defines, and its source."""
    text = textwrap.dedent(text).strip("\n")
    around: dict[str, Any] = {
        "__name__": "there",
        "abc": abc,
        "dataclasses": dataclasses,
        "enum": enum,
        "NamedTuple": NamedTuple,
    }
    exec(compile(text, "there.py", "exec", dont_inherit=True), around)
    last = ast.parse(text).body[-1]
    assert isinstance(last, (ast.FunctionDef, ast.ClassDef))
    first = min([last.lineno, *(one.lineno for one in last.decorator_list)])
    return around[last.name], "\n".join(text.splitlines()[first - 1 : last.end_lineno])


def same_code(one: str, other: str) -> bool:
    return as_written.same_code(compile(one, "a", "exec", dont_inherit=True), compile(other, "b", "exec", dont_inherit=True))


def test_the_same_text_elsewhere_does_the_same() -> None:
    assert same_code("def f(a):\n    return a + 1", "\n\n# moved\ndef f(a):\n    return a + 1")
    assert same_code("x in {'a', 'b', 'c'}", "x in {'c', 'b', 'a'}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = 1", "a = 2"),
        ("a = 1", "a = True"),
        ("a = 0.0", "a = -0.0"),
        ("a = (1, 2)", "a = (1, 2.0)"),
        ("a + b", "a - b"),
        ("a.b", "a.c"),
        ("def f(a): ...", "def g(a): ..."),
        ("def f(a): ...", "def f(b): ..."),
        ("def f(a): ...", "def f(*, a): ..."),
        ("def f(a): ...", "def f(a, /): ..."),
        ("def f():\n    return lambda: 1", "def f():\n    return lambda: 2"),
        ("x in {'a', 'b'}", "x in {'a', 'c'}"),
    ],
)
def test_another_text_does_something_else(one: str, other: str) -> None:
    assert not same_code(one, other)


def test_a_text_that_does_not_parse_is_empty() -> None:
    assert as_written.parsed("%%time\nfit()").body == [] == as_written.parsed("\0").body
    assert len(as_written.parsed("a = 1\nb = 2").body) == 2


def test_the_name_that_an_import_gives() -> None:
    node = ast.parse("import a.b, c.d as e").body[0]
    assert isinstance(node, ast.Import) and [as_written.bound(node, alias) for alias in node.names] == ["a", "e"]
    node = ast.parse("from a.b import c, d as e").body[0]  # type: ignore[assignment]
    assert [as_written.bound(node, alias) for alias in node.names] == ["c", "e"]


@pytest.mark.parametrize(
    ("name", "kind", "kept"),
    [
        ("x", "Kind", "x"),
        ("_x", "Kind", "_x"),
        ("__x", "Kind", "_Kind__x"),
        ("__x", "__Kind", "_Kind__x"),
        ("__x__", "Kind", "__x__"),
        ("__x", "_", "__x"),
    ],
)
def test_names_are_kept_in_a_class_as_python_keeps_them(name: str, kind: str, kept: str) -> None:
    made: dict[str, Any] = {}
    exec(f"class {kind}:\n    {name} = 1", made)
    assert as_written.mangled(name, made[kind]) == kept and kept in vars(made[kind])


# -- files


def test_a_file_that_still_has_the_code_is_as_it_was(written: Written, tmp_path: Path) -> None:
    module = written({"conf.py": "def f():\n    return 1\nclass A:\n    def g(self):\n        return 2\n"})("conf")
    file = str(tmp_path / "conf.py")
    Path(file).write_text("# moved\n\n" + Path(file).read_text() + "\ndef more(): ...\n")
    as_written.check_on_disk(module.f, file)
    as_written.check_on_disk(module.A, file)


@pytest.mark.parametrize(
    "text", ["def f():\n    return 2\nclass A:\n    def g(self):\n        return 1\n", "def f(:", "\0", ""]
)
def test_a_file_that_has_changed_is_told(written: Written, tmp_path: Path, text: str) -> None:
    module = written({"conf.py": "def f():\n    return 1\nclass A:\n    def g(self):\n        return 2\n"})("conf")
    file = str(tmp_path / "conf.py")
    Path(file).write_text(text)
    for thing, name in ((module.f, "f"), (module.A, "A")):
        with pytest.raises(
            ScriptError, match=rf"^script: {file} has changed since {name}\(\) was imported from it; import it again"
        ):
            as_written.check_on_disk(thing, file)


def test_what_came_from_no_file_has_not_changed(written: Written, tmp_path: Path) -> None:
    module = written({"conf.py": "def f():\n    return 1\n"})("conf")
    other = tmp_path / "other.py"
    other.write_text("")
    as_written.check_on_disk(module.f, str(other))
    os.remove(tmp_path / "conf.py")
    as_written.check_on_disk(module.f, str(tmp_path / "conf.py"))
    as_written.check_on_disk(made("def f(): ...")[0], str(other))


# -- lambdas


def lambda_in(text: str, name: str = "F", wrong: str = "") -> str | None:
    around: dict[str, Any] = {}
    exec(compile(text, "there.py", "exec", dont_inherit=True), around)
    found = as_written.lambda_of(around[name], wrong or text)
    return None if found is None else ast.unparse(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("F = lambda x: x + 1", "lambda x: x + 1"),
        ("G = lambda x: x; F = lambda x: x * 2", "lambda x: x * 2"),
        ("G = [lambda a: a + 1, lambda a: a + 2]\nF = G[0]", "lambda a: a + 1"),
        ("F = (lambda a: lambda b: a + b)(1)", "lambda b: a + b"),
        ("F = lambda a: (lambda b: b)(a)", "lambda a: (lambda b: b)(a)"),
        ("F = lambda a: (\n    a +\n    1\n)", "lambda a: a + 1"),
        ("s = 'größe'; F = lambda x: x + s", "lambda x: x + s"),
    ],
)
def test_a_lambda_is_found_in_its_text(text: str, expected: str) -> None:
    assert lambda_in(text) == expected


def test_a_lambda_that_is_not_in_the_text_is_not_found() -> None:
    assert lambda_in("F = lambda x: x + 1", wrong="F = lambda x: x + 2") is None
    assert lambda_in("F = lambda x: x + 1", wrong="F = lambda x: (") is None
    assert lambda_in("F = lambda x: x + 1", wrong="a = 1") is None


# -- classes


def test_a_class_is_what_its_source_says() -> None:
    as_written.check(*made(KIND), 0)
    as_written.check(*made("@dataclasses.dataclass\nclass Kind:\n    a: int\n    b: int = 1\n    def f(self): ..."), 0)
    as_written.check(*made("class Kind:\n    a = 1\n    del a"), 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fit", lambda self: 1),
        ("fit", 7),
        ("width", property(lambda self: 9)),
        ("make", classmethod(lambda cls: 9)),
        ("name", lambda cls: 9),
        ("_Kind__hidden", lambda self: 9),
    ],
)
def test_a_method_that_was_replaced_is_told(name: str, value: Any) -> None:
    kind, text = made(KIND)
    setattr(kind, name, value)
    shown = name.removeprefix("_Kind")
    with pytest.raises(ScriptError, match=rf"^script: Kind.{shown} was set behind the definition of Kind, whose source alone"):
        as_written.check(kind, text, 0)


def test_a_method_of_the_same_name_from_elsewhere_is_told() -> None:
    """It is another definition, in another line."""
    text = (
        "def width(self):\n    return 1\nclass Kind:\n    def fit(self): ...\n    def more(self): ...\n    def width(self): ..."
    )
    kind, source = made(text)
    as_written.check(kind, source, 3)
    around: dict[str, Any] = {}
    exec(compile(text, "there.py", "exec", dont_inherit=True), around)
    kind.width = around["width"]
    for first in (0, 3):
        with pytest.raises(ScriptError, match="Kind.width was set behind"):
            as_written.check(kind, source, first)


@pytest.mark.parametrize("name", ["rate", "fit"])
def test_what_was_deleted_is_told(name: str) -> None:
    kind, text = made(KIND)
    delattr(kind, name)
    with pytest.raises(ScriptError, match=rf"^script: Kind.{name} was deleted behind the definition of Kind"):
        as_written.check(kind, text, 0)


@pytest.mark.parametrize(
    "text",
    [
        "def other(kind): return kind\n@other\nclass Kind:\n    def fit(self): ...",
        "class Meta(type): ...\nclass Kind(metaclass=Meta):\n    def fit(self): ...",
        "def wrapped(f): return f\nclass Kind:\n    @wrapped\n    def fit(self): ...",
        "class Kind:\n    def fit(self): ...\n    def fit(self, more): ...",
    ],
)
def test_what_a_decorator_or_a_metaclass_may_have_made_is_not_judged(text: str) -> None:
    kind, source = made(text)
    kind.fit = 1
    as_written.check(kind, source, 0)


def test_a_function_has_nothing_to_check() -> None:
    function, text = made("def f(): ...")
    function.rate = 1
    as_written.check(function, text, 0)
    as_written.check(function, "a = 1\nb = 2", 0)


# -- attributes that were added


def test_what_was_set_later_is_found() -> None:
    function, text = made("def f(): ...")
    assert as_written.added(function, function, text) == {}
    function.rate, function.names = 0.5, ["a"]
    assert as_written.added(function, function, text) == {"rate": 0.5, "names": ["a"]}
    kind, text = made(KIND)
    assert as_written.added(kind, kind, text) == {}
    kind.rate, kind.more = 2, {"a": 1}
    assert as_written.added(kind, kind, text) == {"more": {"a": 1}}, "the source has the name of the other"


@pytest.mark.parametrize("value", [print, lambda: 1, property(lambda self: 1)])
def test_code_that_was_set_later_is_refused(value: Any) -> None:
    function, text = made("def f(): ...")
    function.hook = value
    with pytest.raises(ScriptError, match=r"^script: f.hook was set behind the definition of f\(\), whose source alone"):
        as_written.added(function, function, text)
    kind, text = made(KIND)
    kind.hook = value
    with pytest.raises(ScriptError, match=r"^script: Kind.hook was set behind the definition of Kind, whose source alone"):
        as_written.added(kind, kind, text)


def test_of_what_a_decorator_made_only_plain_public_values_are_taken() -> None:
    function, text = made(
        "def kept(f):\n    f.hook = print\n    f.rate = 1\n    f._own = 2\n    f.seen = [1, {'a': (None,)}]\n    return f\n@kept\ndef f(): ..."
    )
    assert as_written.added(function, function, text) == {"rate": 1, "seen": [1, {"a": (None,)}]}
    deep: Any = 1
    for _ in range(11):
        deep = [deep]
    function.deep = deep
    assert "deep" not in as_written.added(function, function, text)


def test_what_was_set_in_members_of_an_enum_is_found_with_its_member() -> None:
    kind, text = made("class Kind(enum.Enum):\n    A = 1\n    B = 2")
    assert as_written.added(kind, kind, text) == {} and as_written.set_in_members(kind) == {}
    kind.A.note, kind.B.hook = ["n"], print
    assert as_written.added(kind, kind, text) == {} and as_written.set_in_members(kind) == {"A": {"note": ["n"]}}
    assert as_written.set_in_members(int) == {}


# -- values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * RATE", 7),
        ("2 ** RATE << 2", 32),
        ("['-' * RATE, RATE * (0,)]", ["---", (0, 0, 0)]),
        ("[0] * 100_000", [0] * 100_000),
        ("[0] * 100_001", NOTHING),
        ("1_000_000 * '-'", NOTHING),
        ("[1, [b'-' * 1_000 * 1_000]]", NOTHING),
        ("2 ** 10 ** 9", NOTHING),
        ("1 << 10 ** 5 << 1", NOTHING),
        ("-RATE", -3),
        ("[RATE, ('a', {1}), {'k': None}]", [3, ("a", {1}), {"k": None}]),
        ("LIST", [1]),
        ("int", int),
        ("missing", NOTHING),
        ("missing + 1", NOTHING),
        ("[LIST]", NOTHING),
        ("len('a')", NOTHING),
        ("RATE.real", NOTHING),
        ("'a'[0]", NOTHING),
        ("1 / 0", NOTHING),
        ("lambda: 1", NOTHING),
    ],
)
def test_an_expression_of_literals_and_names_has_a_value(text: str, value: Any) -> None:
    found = as_written.value_of(ast.parse(text, mode="eval").body, {"RATE": 3, "LIST": [1]})
    assert found is NOTHING if value is NOTHING else found == value
