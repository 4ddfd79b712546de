"""Which annotations of a definition some code reads, and which become strings."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import pytest

from akrunner.launch.functions.annotations import all_quoted, postponed, quoted, read_in, settled

FUTURE = "from __future__ import annotations\n"


def ran(text: str) -> dict[str, Any]:
    made: dict[str, Any] = {"__name__": "there"}
    exec(compile(textwrap.dedent(text), "there.py", "exec", dont_inherit=True), made)
    return made


def text_of(text: str, texts: bool = False, all_read: bool = False) -> str:
    return settled(textwrap.dedent(text).strip(), texts, all_read).text


@pytest.mark.parametrize(("future", "expected"), [("", False), (FUTURE, True)])
def test_a_definition_knows_whether_its_annotations_were_strings(future: str, expected: bool) -> None:
    made = ran(future + "def f(a: int): ...\nclass A:\n    def f(self): ...\nclass B:\n    a: int")
    assert postponed(made["f"], {}) == postponed(made["A"], {}) == expected
    # only the module can say it of a class without methods
    assert postponed(made["B"], made) == expected and postponed(made["B"], {}) is False


def test_methods_of_others_say_nothing_of_a_class() -> None:
    made = ran("def borrowed(self): ...\nborrowed.__module__ = 'elsewhere'\nclass A:\n    f = borrowed")
    assert postponed(made["A"], ran(FUTURE)) is True


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("hints = typing.get_type_hints(f)", True),
        ("f.__annotations__", True),
        ("inspect.get_annotations(f)", True),
        ("inspect.signature(f)", True),
        ("from inspect import signature", True),
        ("def signature(a: int): ...", False),
        ("my_get_type_hints(f)", False),
    ],
)
def test_a_module_that_reads_annotations_is_known_by_its_words(text: str, reads: bool) -> None:
    assert read_in(["a = 1", text]) == reads
    assert read_in([]) is False


def test_annotations_of_a_function_become_strings() -> None:
    assert text_of("def f(a: A, /, b: 'B', *c: C[1], d: None = 1, **e: x.E) -> F:\n    g: G = 1\n    g: H") == (
        "def f(a: 'A', /, b: 'B', *c: 'C[1]', d: None = 1, **e: 'x.E') -> 'F':\n    g: 'G' = 1\n    g: 'H'"
    )
    assert text_of("async def f(a: A): ...") == "async def f(a: 'A'): ..."


def test_lines_stay_where_they_are() -> None:
    text = text_of("""
        def f(a: A[
            1,
            2,
        ], b=1) -> B:
            return "größe", a
    """)
    assert text.splitlines()[4] == '    return "größe", a' and ast.parse(text)
    assert ran(text)["f"].__annotations__ == {"a": "A[1, 2]", "return": "B"}


def test_what_a_class_evaluates_is_read_and_its_methods_are_not() -> None:
    text = text_of("class A:\n    a: B = 1\n    def f(self, x: C):\n        y: D = 1\n        class E:\n            z: F")
    assert text == "class A:\n    a: B = 1\n    def f(self, x: 'C'):\n        y: 'D' = 1\n        class E:\n            z: F"


@pytest.mark.parametrize(
    ("decorator", "read"),
    [
        ("property", False),
        ("functools.wraps(g)", False),
        ("a.setter", False),
        ("typed", True),
        ("tf.function(autograph=False)", True),
        ("wraps[0]", True),
    ],
)
def test_a_decorator_may_read_annotations(decorator: str, read: bool) -> None:
    assert text_of(f"@{decorator}\ndef f(a: A): ...") == f"@{decorator}\ndef f(a: {'A' if read else repr('A')}): ..."


def test_a_module_that_reads_annotations_keeps_all_but_those_of_variables() -> None:
    assert text_of("def f(a: A) -> B:\n    c: C = 1", all_read=True) == "def f(a: A) -> B:\n    c: 'C' = 1"


def test_names_in_strings_that_are_read_are_said() -> None:
    text = "class A:\n    a: 'List[x.B]'\n    b: Dict[str, 'C']\n    c: \"Optional['D']\"\n    d: 'no type at all'\n    def f(self, e: 'E'): ..."
    assert settled(text, False, False).said == {"List", "x", "C", "Optional", "D"}
    # with the future import, each is a string as a whole
    whole = settled("class A:\n    a: List[x.B]\n    b: 'C'\n    def f(self, e: E): ...", True, False)
    assert whole.said == {"List", "x", "C"} and whole.text.startswith("class A:\n    a: List[x.B]")


def test_all_of_them_can_become_strings() -> None:
    text = "class A:\n    a: B = 1\n    b: 'C' = 2\n    @typed\n    def f(self, x: D): ..."
    assert all_quoted(text) == ("class A:\n    a: 'B' = 1\n    b: \"'C'\" = 2\n    @typed\n    def f(self, x: 'D'): ...")
    # as the future import has them
    assert (
        ran(all_quoted("class A:\n    a: B\n    b: 'C'"))["A"].__annotations__
        == ran(FUTURE + "class A:\n    a: B\n    b: 'C'")["A"].__annotations__
    )


def test_constants_are_left_alone_unless_asked_for() -> None:
    text = "f(ä, 'b', 1, None)"
    (expression,) = ast.parse(text).body
    assert isinstance(expression, ast.Expr) and isinstance(expression.value, ast.Call)
    assert quoted(text, expression.value.args) == "f('ä', 'b', 1, None)"
    assert quoted(text, expression.value.args, again=True) == "f('ä', \"'b'\", 1, None)"
    assert quoted(text, []) == text
