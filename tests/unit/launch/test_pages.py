"""Which statements of a script do something, which calls they make, and which blocks they have."""

from __future__ import annotations

import ast
import textwrap

import pytest

from akrunner.launch.pages import blocks, calls, doing


def done(text: str) -> list[str]:
    return [ast.unparse(node).partition("\n")[0] for node in doing(ast.parse(textwrap.dedent(text)))]


def test_statements_inside_if_and_try_come_one_by_one() -> None:
    assert done("""
        '''A page.'''
        import os
        print("begins")
        if os.name:
            a = 1
            fit()
        else:
            try:
                b = build()
            except ValueError:
                fallback()
            else:
                c = tune()
            finally:
                clean()
        match os.name:
            case "posix":
                run()
    """) == ["print('begins')", "fit()", "b = build()", "fallback()", "c = tune()", "clean()", "run()"]


@pytest.mark.parametrize("loop", ["for i in range(2):\n    a = 1", "while True:\n    a = 1", "with lock:\n    a = 1"])
def test_a_loop_or_a_with_does_something_as_a_whole(loop: str) -> None:
    assert done(loop) == [loop.partition("\n")[0]]


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("model = build()", True),
        ("MODEL = build()", False),
        ("__version__ = build()", False),
        ("MODEL = model.fit(x)", True),
        ("MODEL: object = build()", False),
        ("a, B = build()", True),
        ("A = b = build()", True),
        ("log = logging.getLogger('a')", False),
        ("here = os.path.join(os.path.dirname(__file__), 'a')", False),
        ("here = os.path.join(download(), 'a')", True),
        ("f = lambda: build()", False),
        ("n += count()", True),
        ("n += len(a)", False),
        ("'only a text'", False),
        ("a and build()", True),
        ("if ready():\n    a = 1", True),
        ("if hasattr(os, 'fork'):\n    a = 1", False),
        ("assert ready()", True),
        ("assert isinstance(a, int), 'no'", False),
        ("raise ValueError('no')", False),
        ("raise ValueError(build())", True),
        ("raise SystemExit(code=build())", True),
        ("@decorated()\ndef fit(a=build()):\n    run()", False),
        ("class A:\n    b = build()", False),
        ("", False),
    ],
)
def test_a_call_does_something_unless_it_makes_a_constant_or_asks(text: str, does: bool) -> None:
    assert bool(done(text)) == does


def test_a_function_of_the_script_itself_does_something_whatever_its_name() -> None:
    assert done("def get():\n    train()\nRATE = get()\nassert get()\nraise get()") == [
        "RATE = get()",
        "assert get()",
        "raise get()",
    ]
    assert done("RATE = get()\nclass get: pass") == [], "a class only makes an object"


def test_what_runs_because_an_import_failed_is_no_work() -> None:
    failed = "try:\n    import tensorflow\nexcept ImportError:\n    install()"
    assert done(failed) == []
    assert done(f"{failed}\nfinally:\n    clean()") == ["clean()"]
    assert done("try:\n    import tensorflow\n    a = 1\nexcept ImportError:\n    install()") == ["install()"]


def test_calls_of_a_statement_are_those_that_run_with_it() -> None:
    (node,) = ast.parse("a(b(), key=c)(d.e(1), lambda: f(), [g() for x in h()])").body
    assert sorted(ast.unparse(one.func) for one in calls(node)) == sorted(["a(b(), key=c)", "a", "b", "d.e", "g", "h"])
    (definition,) = ast.parse("def run(a=make()):\n    b()").body
    assert not list(calls(definition))


def shown(text: str, **more: bool) -> list[str]:
    (node,) = ast.parse(text).body
    return ["; ".join(map(ast.unparse, block)) for block in blocks(node, **more) if block]


def test_blocks_of_a_statement_are_all_its_branches() -> None:
    whole = "try:\n    a\nexcept A:\n    b\nexcept B:\n    c\nelse:\n    d\nfinally:\n    e"
    assert shown(whole) == ["a", "b", "c", "d", "e"]
    assert shown("match a:\n    case 1:\n        b\n    case _:\n        c") == ["b", "c"]
    assert shown("for a in b:\n    c\nelse:\n    d") == ["c", "d"] and shown("a = 1") == []
    assert shown("def a():\n    b") == shown("class A:\n    b") == []


def test_blocks_behind_an_import_that_fails_can_be_left_out() -> None:
    text = "try:\n    import a\nexcept ImportError:\n    b\nelse:\n    c"
    assert shown(text) == ["import a", "b", "c"]
    assert shown(text, after_import=False) == ["import a", "c"]
    text = "try:\n    a()\nexcept ImportError:\n    b"
    assert shown(text, after_import=False) == ["a()", "b"]
