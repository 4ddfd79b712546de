"""What the file of a module says about what it binds, changes, calls and imports."""

from __future__ import annotations

import ast
import os
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

from akrunner.launch.functions.module_text import Import, Text, imports_in, paired, text_of


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """What a text says."""

    def said(text: str) -> Text:
        module = types.ModuleType("conf")
        module.__file__ = str(tmp_path / "conf.py")
        path = Path(module.__file__)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return text_of(module)

    return said


def shown(bindings: list[Any]) -> list[str | None]:
    return [
        one.name or one.module if isinstance(one, Import) else None if one is None else ast.unparse(one).partition("\n")[0]
        for one in bindings
    ]


def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    module = types.ModuleType("conf")
    module.__file__ = str(tmp_path / "conf.py")
    assert text_of(module) == Text(), "there is no such file"
    Path(module.__file__).write_text("A = 1")
    os.utime(module.__file__, (1, 1))
    assert set(text_of(module).bindings) == {"A"} and text_of(module) is text_of(module)
    Path(module.__file__).write_text("B = 1")
    os.utime(module.__file__, (2, 2))
    assert set(text_of(module).bindings) == {"B"}
    Path(module.__file__).write_bytes(b"C = (\xff")
    os.utime(module.__file__, (3, 3))
    assert text_of(module).bindings == {}, "it does not parse"


def test_names_are_bound_to_what_they_are(read: Any) -> None:
    found = read("""
        import os.path, json as j
        from a import b as c
        A = 1
        B: int = 2
        C: int
        D, (E, F) = 3, (4, g())
        G = H = []
        I = J = 5
        A += 1
        def f(): ...
        @kept
        def g(): ...
        @kept
        class K: ...
    """)
    assert {name: shown(one) for name, one in found.bindings.items()} == {
        "os": ["os.path"], "j": ["json"], "c": ["b"], "A": ["1 + 1"], "B": ["2"], "D": ["3"], "E": ["4"], "F": ["g()"], "G": [None], "H": [None],
        "I": ["5"], "J": ["5"], "f": ["def f():"], "g": [None], "K": ["@kept"],
    }  # fmt: skip
    assert found.often == {"A"}


def test_a_name_bound_by_a_condition_may_be_several_things(read: Any) -> None:
    found = read("A = 1\nif x:\n    A = 2\n    B = 3\nelif y:\n    A = 4\nC = 1\nC = 2\nif x: import os\nA, D = D, A\n")
    assert shown(found.bindings["B"]) == ["3"] and shown(found.bindings["C"]) == ["2"]
    assert found.often == {"A", "C"}
    found = read("A = 1\nif x:\n    A = 2\nelif y:\n    A = 4\n")
    assert shown(found.bindings["A"]) == ["1", "2", "4"]


@pytest.mark.parametrize(
    "text",
    [
        "for A in range(3): ...",
        "with open('a') as A: ...",
        "try:\n    import A\nexcept ImportError:\n    A = None",
        "del A",
        "while x:\n    def A(): ...",
        "if x:\n    for A in y: ...",
        "if (A := x): ...\nwhile (A := y): ...",
        "def set_it():\n    global A\n    A += 1",
    ],
)
def test_a_value_that_cannot_be_told_is_not_known(read: Any, text: str) -> None:
    assert read(f"A = 1\n{text}").bindings["A"][-1] is None


def test_what_a_function_counts_began_as_the_file_says(read: Any) -> None:
    found = read(
        "COUNT = 0\ndef count():\n    global COUNT\n    COUNT += 1\ndef configure(rate):\n    global RATE\n    RATE = rate\nRATE = 1"
    )
    assert shown(found.began["COUNT"]) == ["0"] and "RATE" not in found.began
    assert found.declared == {"COUNT", "RATE"} and shown(found.bindings["RATE"]) == ["1"]
    assert "COUNT" in found.touched and "RATE" not in found.touched


def test_what_the_file_changes_when_it_is_run(read: Any) -> None:
    found = read("""
        MODELS, SEEN, KEPT, LATER, ALSO = {}, [], [], [], {}
        def register(kind):
            MODELS[kind.__name__] = kind
            return kind
        def later():
            LATER.append(1)
        def unused():
            never.there = 1
        @register
        def train(): ...
        class A:
            options = {}
        SEEN.append(1)
        KEPT.index(1); "a".upper(); SEEN.count(1)
        for one in [ALSO]:
            one["a"] = 1
        A.options["a"] = 1
        f = lambda: KEPT.append(1)
    """)
    assert {"MODELS", "SEEN", "ALSO", "A", ".options"} <= found.altered
    assert not {"KEPT", "LATER", "never", ".there"} & found.altered
    assert found.altered <= found.touched and ".there" in found.touched, "attributes, whatever function changes them"
    assert "LATER" not in found.touched and "KEPT" not in found.touched
    assert {"register", "append"} <= found.at_import and "later" not in found.at_import


@pytest.mark.parametrize("decorator", ["@register", "@register('a')", "@other\n@register"])
@pytest.mark.parametrize("thing", ["class A: ...", "def a(): ...", "class Around:\n    {}\n    class A: ..."])
def test_what_a_decorator_fills_is_changed_when_the_file_is_run(read: Any, decorator: str, thing: str) -> None:
    whole = thing.format(decorator.replace("\n", "\n    ")) if "{}" in thing else f"{decorator}\n{thing}"
    found = read(
        f"MODELS = {{}}\nLATER = []\ndef register(kind):\n    MODELS['a'] = kind\ndef later():\n    LATER.append(1)\n{whole}\n"
    )
    assert "MODELS" in found.altered and "LATER" not in found.altered


def test_what_a_function_does(read: Any) -> None:
    (function,) = read("""
        def step(rate, into):
            global COUNT
            COUNT += 1
            STATE.last = rate
            into.append(rate)
            if READY and rate > LIMIT:
                load(rate)
            return rate
    """).functions["step"]
    assert function.changes == {"COUNT", "STATE", ".last", "into"}
    assert {"COUNT", "READY", "LIMIT", "rate"} <= function.looks and "STATE" not in function.looks
    assert function.calls == {"append", "load"} and function.asks == {"READY", "rate", "LIMIT"}
    assert function.fills and function.does and not function.computes


@pytest.mark.parametrize(
    ("body", "computes"),
    [
        ("return a", False),
        ("return", False),
        ("return 1", False),
        ("def inner(): ...\n    return inner", False),
        ("return a + 1", True),
        ("return OTHER", True),
        ("yield a", True),
    ],
)
def test_a_function_computes_what_is_not_handed_to_it(read: Any, body: str, computes: bool) -> None:
    (function, *_) = read(f"def f(a):\n    {body}").functions["f"]
    assert function.computes == computes


@pytest.mark.parametrize(
    ("body", "does"),
    [
        ("len(a)", False),
        ("a.append(1)", False),
        ("a.strip().upper()", False),
        ("raise ValueError(str(a))", False),
        ("raise ValueError(load(a))", False),
        ("load(a)", True),
        ("a.load()", True),
        ("a.b.append(load())", True),
    ],
)
def test_a_function_does_more_than_look_at_an_object(read: Any, body: str, does: bool) -> None:
    assert read(f"def f(a):\n    {body}").functions["f"][0].does == does


def test_a_class_is_called_as_a_function_by_its_name(read: Any) -> None:
    found = read("""
        class A:
            def __init__(self): ALL.append(self)
            def fit(self): ...
        class Meta(type):
            def __new__(cls, *given): KINDS.append(cls)
        class B(A): ...
    """)
    assert [one.changes for one in found.functions["A"]] == [{"ALL"}]
    assert [one.changes for one in found.functions["__init_subclass__"]] == [{"KINDS"}]
    assert found.functions["B"] == [] and len(found.functions["fit"]) == 1
    assert {"__init_subclass__", "__set_name__"} <= found.at_import


def test_what_is_handed_on(read: Any) -> None:
    found = read("""
        A, B, C, D, E = [], [], [], [], []
        take(A)
        take(x.part)
        print(B); len(B); "".join(B); [*B]; f"{B}"; B == 1
        def use():
            fill(C)
            np.asarray(D)
            self.keep(E, more=x.other)
    """)
    assert "A" in found.touched and ".part" in found.handed
    assert not {"B", "C", "D", "E"} & found.touched
    assert found.lent["C"] == {"fill"} and found.lent["E"] == found.lent[".other"] == {"keep"} and "D" not in found.lent


def test_attributes_that_a_file_sets_in_others(read: Any) -> None:
    found = read(
        "class A:\n    def f(self):\n        self.own = 1\nA.rate = 1\nsetattr(A, 'more', 1)\ndelattr(A, 'less')\ndel A.gone\n"
    )
    assert found.hung == {".rate", ".more", ".less", ".gone"} and not found.hangs_any
    assert read("setattr(A, name, 1)").hangs_any
    assert not read("def f(self):\n    setattr(self, name, 1)").hangs_any


def test_names_that_are_only_annotations_are_not_used(read: Any) -> None:
    found = read("def f(a: x.A) -> B:\n    c: C = d.e.f\n    return g[0].h\n")
    assert {"d.e.f", "d.e", "d", "g"} <= found.loaded and not {"x.A", "x", "B", "C"} & found.loaded
    assert {"x", "A", "B", "h"} <= found.words


def test_what_is_looked_at_when_the_file_is_run(read: Any) -> None:
    found = read("A = B.c\ndef f(a=D, *, e=E):\n    return F\n@G\ndef g(): ...\n")
    assert {"B", ".c", "D", "E", "G"} <= found.read and "F" not in found.read


def imports(text: str) -> list[tuple[int, str, str, str]]:
    found = imports_in(ast.parse(textwrap.dedent(text)))
    return [(one.level, one.module, one.name, one.bound) for one in found]


def test_imports_are_found_wherever_a_task_runs_them() -> None:
    assert imports("""
        import a.b, c as d
        from ..e import f as g, h
        from . import i
        from j import *
        def k():
            import l
            importlib.import_module("m.n")
            importlib.import_module(".o", "p")
            __import__(name)
        if __name__ == "__main__":
            import q
        else:
            import r
        if TYPE_CHECKING:
            import s
        if typing.TYPE_CHECKING:
            import t
        if x:
            import u
    """) == [
        (0, "a.b", "", "a"), (0, "c", "", "d"), (2, "e", "f", "g"), (2, "e", "h", "h"), (1, "", "i", "i"), (0, "j", "*", "*"), (0, "l", "", "l"),
        (0, "m.n", "", ""), (0, "r", "", "r"), (0, "u", "", "u"),
    ]  # fmt: skip


def test_a_file_may_import_what_it_computes(read: Any) -> None:
    assert read("import_module(name)").imports_any and read("pkgutil.walk_packages()").imports_any
    assert not read("import_module('a')\nimport b").imports_any


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a = 1", {"a": "1"}),
        ("a, b = 1, x", {"a": "1", "b": "x"}),
        ("a, [b, c] = 1, (2, 3)", {"a": "1", "b": "2", "c": "3"}),
        ("a, b = f()", {"a": None, "b": None}),
        ("a, *b = 1, 2, 3", {"a": None, "b": None}),
        ("a, *b = 1, 2", {"a": None, "b": None}),
        ("a, b = *c, 1", {"a": None, "b": None}),
        ("a.b = 1", {}),
        ("a[0], b = 1, 2", {"b": "2"}),
    ],
)
def test_names_get_the_parts_of_a_value(text: str, pairs: dict[str, str | None]) -> None:
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.Assign)
    found = {name: None if value is None else ast.unparse(value) for name, value in paired(node.targets[0], node.value)}
    assert found == pairs
