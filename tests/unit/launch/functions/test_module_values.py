"""Values that a module's expressions have in the tasks, without running them, and whether the module still holds them."""

from __future__ import annotations

import ast
import collections
import dataclasses
import datetime
import enum
import os
import pathlib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from akrunner.launch.functions import module_values
from akrunner.launch.functions.as_written import NOTHING
from akrunner.launch.functions.module_values import Defined, is_empty, is_plain, is_same, is_whole
from tests.unit.launch.functions.conftest import Written, written_to

CONF = """
    import collections, copy, dataclasses, datetime, enum, functools, math, os, pathlib
    from collections import namedtuple
    import numpy as np

    class Mode(enum.Enum):
        FAST = 1
        SLOW = 2

    Point = namedtuple("Point", "x y", defaults=[0])

    @dataclasses.dataclass
    class Simple:
        a: int
        b: list = dataclasses.field(default_factory=list)
        c: dict = dataclasses.field(default_factory=lambda: {"k": 1})
        d: object = dataclasses.field(default_factory=object)

    @dataclasses.dataclass
    class Checked:
        a: int
        def __post_init__(self): self.a += 1

    def go(): return 1

    class Model: ...

    sum = max
"""
KNOWN = {"N": 7, "NAME": "run", "NAMES": ["a", "b"], "TABLE": {"k": 1}, "OPEN": [NOTHING], "HERE": pathlib.Path("/x/y.tar")}


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A module that the tests look at, and do not change."""
    with written_to(tmp_path_factory.mktemp("conf")) as written:
        yield written({"conf.py": CONF})("conf")


def made(text: str, module: Any) -> Any:
    return module_values.made(ast.parse(text, mode="eval").body, module, dict(KNOWN))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * N", 15),
        ("NAME + '!'", "run!"),
        ("[N, (NAME,), {1, 2}, {'k': N, **TABLE}]", [7, ("run",), {1, 2}, {"k": 1}]),
        ("NAMES + ['c']", ["a", "b", "c"]),
        ("NAMES * 2", ["a", "b", "a", "b"]),
        ("[0] * 100_000", [0] * 100_000),
        ("[n for n in range(100_000)]", [*range(100_000)]),
        ("[[m * n for m in range(n)] for n in range(N) if n % 2]", [[0], [0, 3, 6], [0, 5, 10, 15, 20]]),
        ("TABLE | {'l': 2}", {"k": 1, "l": 2}),
        ("{'%s': 1}['%s']", 1),
        ("f'{NAME}{N:03d}'", "run007"),
        ("{n: n * N for n in range(3)}", {0: 0, 1: 7, 2: 14}),
        ("[name.upper() for name in NAMES if name != 'a']", ["B"]),
        ("NAMES[0] if len(NAMES) > 1 else None", "a"),
        ("max(N, 3)", 7),
        ("dict(a=1, b=N)", {"a": 1, "b": 7}),
        ("'a,b'.split(',')", ["a", "b"]),
        ("TABLE.get('k')", 1),
        ("collections.OrderedDict(a=1)", collections.OrderedDict(a=1)),
        ("collections.Counter('aab')", collections.Counter("aab")),
        ("collections.deque([1], maxlen=2)", collections.deque([1], maxlen=2)),
        ("copy.deepcopy(TABLE)", {"k": 1}),
        ("datetime.timedelta(days=N)", datetime.timedelta(days=7)),
        ("datetime.date(2026, 1, 2) + datetime.timedelta(1)", datetime.date(2026, 1, 3)),
        ("pathlib.Path('/a') / 'b'", pathlib.Path("/a/b")),
        ("HERE.parent.name", "x"),
        ("HERE.stem", "y"),
        ("os.path.join('a', NAME)", "a/run"),
        ("Point(1)", (1, 0)),
        ("math.pi", 3.141592653589793),
        ("np.float32", np.float32),
        ("sorted(NAMES, reverse=True)", ["b", "a"]),
    ],
)
def test_a_value_is_computed(conf: Any, text: str, value: Any) -> None:
    found = made(text, conf)
    assert found == value and (type(found) is type(value) or isinstance(found, tuple))


def test_members_of_enums_are_those_of_the_module(conf: Any) -> None:
    assert made("Mode.SLOW", conf) is conf.Mode.SLOW
    assert made("[Mode.FAST, N]", conf) == [conf.Mode.FAST, 7]
    assert made("Mode.GONE", conf) is NOTHING


@pytest.mark.parametrize(
    "text",
    [
        "missing",
        "__name__",
        "go()",
        "Model()",
        "Checked(1)",
        "open('a')",
        "sum([1, 2])",
        "print(1)",
        "1 / 0",
        "{[]: 1}",
        "{missing: 1}",
        "{1, missing}",
        "{**missing}",
        "dict(**TABLE)",
        "NAMES.append(1)",
        "NAMES.pop()",
        "TABLE['gone']",
        "OPEN + [1]",
        "[n for n in range(10**9)]",
        "[0] * 1_000_000",
        "1_000_000 * (0,)",
        "[NAMES, [0] * 1_000_000][1]",
        "NAME * 1_000_000",
        "NAMES[0] * 1_000_000",
        "[0] * N * N * N * N * N * N * N",
        "[m for n in range(1000) for m in range(1000)]",
        "[[m for m in range(1000)] for n in range(1000)]",
        "2 ** 10 ** 9",
        "[2 ** n for n in range(1_000_000, 1_000_001)]",
        "np.zeros(10**9)",
        "np.array([object()])",
        "np.array([None])",
        "os.getpid()",
        "os.environ.clear()",
        "N.__class__",
        "Point(1, 2, 3)",
        "(lambda: 1)()",
        "(x := 1)",
        "Simple(1, 2, 3, 4, 5)",
    ],
)
def test_what_would_have_to_be_run_is_not_known(conf: Any, text: str) -> None:
    before = dict(os.environ)
    assert made(text, conf) is NOTHING
    assert dict(os.environ) == before


def test_parts_that_are_not_known_leave_the_others(conf: Any) -> None:
    assert made("[N, go(), 'a']", conf) == [7, NOTHING, "a"]
    assert made("{'a': go(), 'b': N}", conf) == {"a": NOTHING, "b": 7}
    assert made("dict(a=go(), b=N)", conf) == {"a": NOTHING, "b": 7}


def test_the_environment_is_read(conf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_A_TEST", "x")
    assert made("os.environ.get('OF_A_TEST')", conf) == "x" == made("os.getenv('OF_A_TEST', 'y')", conf)
    assert made("os.environ.get('OF_NO_TEST', NAME)", conf) == "run"


@pytest.mark.parametrize(
    ("text", "array"),
    [
        ("np.array([1, N])", np.array([1, 7])),
        ("np.zeros((2, 3), dtype=np.float32)", np.zeros((2, 3), np.float32)),
        ("np.arange(0, 10, 2).reshape(5, 1)", np.arange(0, 10, 2).reshape(5, 1)),
        ("np.linspace(0, 1, 3)", np.linspace(0, 1, 3)),
        ("np.eye(2) + np.ones((2, 2))", np.eye(2) + 1),
    ],
)
def test_an_array_is_computed(conf: Any, text: str, array: Any) -> None:
    found = made(text, conf)
    assert isinstance(found, np.ndarray) and found.dtype == array.dtype and np.array_equal(found, array)


def test_a_dataclass_is_made_by_its_fields(conf: Any) -> None:
    found = made("Simple(N)", conf)
    assert type(found) is conf.Simple and (found.a, found.b, found.c, found.d) == (7, [], {"k": 1}, NOTHING)
    assert made("Simple(a=1, b=NAMES)", conf).b == ["a", "b"]


def test_definitions_stand_for_themselves(conf: Any) -> None:
    for text in ("lambda: 1", "[lambda: 1]"):
        found = made(text, conf)
        assert isinstance(found[0] if isinstance(found, list) else found, Defined)
    (node,) = ast.parse("def go(): ...").body
    assert module_values.made(node, conf, {}) == Defined(node)


def test_a_set_of_functions_is_not_known(conf: Any) -> None:
    known = {"go": Defined(ast.parse("def go(): ...").body[0]), "TABLE": [Defined(ast.parse("def stop(): ...").body[0])]}

    def of(text: str) -> Any:
        return module_values.made(ast.parse(text, mode="eval").body, conf, known)

    for text in ("{go}", "{1, go}", "frozenset([go])", "{(go, 1)}", "f'{go}'", "'%s' % go", "'%s' % TABLE", "str(go)"):
        assert of(text) is NOTHING, text
    assert of("[go]") == [known["go"]] and of("{'go': go}") == {"go": known["go"]}
    assert of("TABLE + [go]") == [*known["TABLE"], known["go"]]


@dataclasses.dataclass
class Record:
    a: Any


class Mode(enum.Enum):
    A = 1


def test_what_is_plain() -> None:
    assert all(map(is_plain, [1, 1.5, "a", b"a", None, True, 1j, Mode.A]))
    assert not any(map(is_plain, [[], (), {}, set(), Mode, np.float32(1), pathlib.Path()]))


def test_what_is_known_as_a_whole() -> None:
    whole = [1, [1, (2,)], {"a": {1}}, collections.deque([1]), types.SimpleNamespace(a=1), Record([1]), np.zeros(2), len]
    parts = [NOTHING, [1, (NOTHING,)], {"a": NOTHING}, {NOTHING: 1}, collections.deque([NOTHING]), types.SimpleNamespace(a=NOTHING), Record([NOTHING])]  # fmt: skip
    assert all(map(is_whole, whole)) and not any(map(is_whole, parts))
    go = Defined(ast.parse("def go(): ...").body[0])
    for one in (go, [go], {"a": go}, {go}, Record(go), types.SimpleNamespace(a=go)):
        assert not is_whole(one) and is_whole(one, defined=True)
    assert not is_whole([go, NOTHING], defined=True)


@pytest.mark.parametrize("make", [list, dict, set, collections.deque])
def test_what_is_empty(make: Any) -> None:
    assert is_empty(make()) and not is_empty(make([(1, 2)]))
    assert is_empty(np.zeros((0, 3))) and not is_empty(np.zeros(1))


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (1, 1),
        (float("nan"), float("nan")),
        ([1, {"a": (2,)}], [1, {"a": (2,)}]),
        ({2, 1}, {1, 2}),
        (7, NOTHING),
        ([1, 7], [1, NOTHING]),
        ({"a": 7}, {"a": NOTHING}),
        (Record([1]), Record([1])),
        (types.SimpleNamespace(a=1), types.SimpleNamespace(a=1)),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan])),
        (collections.deque([1]), collections.deque([1])),
    ],
)
def test_values_that_are_the_same(conf: Any, now: Any, then: Any) -> None:
    assert is_same(now, then, conf)


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ([1], [1, 2]),
        ([1], (1,)),
        ([2, NOTHING], [1, NOTHING]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({1}, {1, 2}),
        (Record(1), Record(2)),
        (types.SimpleNamespace(a=1), types.SimpleNamespace(b=1)),
        (np.array([1]), np.array([1.0])),
        (np.array([1]), np.array([[1]])),
        (np.array([1]), np.array([2])),
        (collections.OrderedDict(a=1), {"a": 1}),
        (7, Mode.A),
    ],
)
def test_values_that_are_not_the_same(conf: Any, now: Any, then: Any) -> None:
    assert not is_same(now, then, conf)


def test_a_key_that_was_only_looked_up_is_no_change(conf: Any) -> None:
    then = collections.defaultdict(list, a=[1])
    now = collections.defaultdict(list, a=[1])
    assert now["b"] == [] and is_same(now, then, conf)
    now["b"].append(1)
    assert not is_same(now, then, conf)


def test_an_enum_may_have_been_imported_again(conf: Any) -> None:
    again = enum.Enum("Mode", "FAST SLOW")
    assert is_same(again["FAST"], conf.Mode.FAST, conf) and not is_same(again["SLOW"], conf.Mode.FAST, conf)


def test_definitions_are_compared_with_what_they_have_made(conf: Any) -> None:
    body = {
        one.name: one
        for one in ast.parse(Path(conf.__file__).read_text()).body
        if isinstance(one, (ast.FunctionDef, ast.ClassDef))
    }
    assert is_same(conf.go, Defined(body["go"]), conf) and is_same(conf.Model, Defined(body["Model"]), conf)
    for now in (conf.Model, made, 7, lambda: 1):
        assert not is_same(now, Defined(body["go"]), conf)
    for now in (conf.Mode, 7, conf.go):
        assert not is_same(now, Defined(body["Model"]), conf)
    assert is_same(7, Defined(body["Simple"]), conf), "a decorator may have made anything of it"


def test_a_lambda_is_compared_by_its_line(written: Written) -> None:
    module = written({"lambdas.py": "ONE = lambda x: x\nTWO = lambda x: x + 1\n"})("lambdas")
    one, two = (
        Defined(node.value) for node in ast.parse(Path(module.__file__).read_text()).body if isinstance(node, ast.Assign)
    )
    assert is_same(module.ONE, one, module) and is_same(module.TWO, two, module)
    assert not is_same(module.ONE, two, module) and not is_same(lambda x: x, one, module) and not is_same(len, one, module)
