"""Values as statements of a script."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import operator
import pathlib
import sys
import threading
import types
import typing
import uuid
import zoneinfo
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pytest

from akrunner.errors import ScriptError
from akrunner.launch.functions import writing
from akrunner.launch.functions.literals import Values

T = TypeVar("T")
Point = collections.namedtuple("Point", "x y", defaults=[7])
Floats = dict[str, list[float] | None]


class Colour(enum.IntFlag):
    RED = 1
    BLUE = 2


Tone = enum.Enum("Tone", "LOW HIGH")
Level = enum.IntEnum("Level", {"A": 1, "ALSO_A": 1, "B": 5})


class Pair(NamedTuple):
    a: int
    b: str | None


class Place(NamedTuple):
    x: int
    y: int = 2


class Box(Generic[T]):
    """Holds one."""

    def __init__(self, one: T) -> None:
        self.one = one


def add(a: int, b: int) -> int:
    return a + b


BOTH = Colour.RED | Colour.BLUE
RED = Colour.RED
PLACE = Place(1)
POINTS = [Point(1, 2), Point(3)]
ADD = functools.partial(add, 1)
HANDLERS = {"add": add, "box": Box, "sub": operator.sub}
IN_PARIS = zoneinfo.ZoneInfo("Europe/Paris")
VALUES = [
    datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC),
    datetime.datetime(2026, 10, 25, 2, 30, tzinfo=IN_PARIS, fold=1),
    datetime.time(1, 2, 3),
    datetime.time(1, tzinfo=datetime.timezone(datetime.timedelta(hours=1), "X")),
    np.datetime64("2026-01-02T03:04:05.123"),
    np.datetime64("NaT"),
    np.timedelta64(3, "h"),
    np.str_("a"),
    np.bytes_(b"b"),
    fractions.Fraction(1, 3),
    decimal.Decimal("NaN"),
    range(1, 7, 2),
    slice(None, 3),
    bytearray(b"x"),
    ...,
    collections.OrderedDict(a=1),
    collections.Counter("aab"),
    collections.deque([1, 2], 3),
    types.SimpleNamespace(a=[1]),
    uuid.UUID(int=5),
    np.dtype("float32"),
    np.float32,
    int,
    print,
    list[int],
]
GROUPS: Any = collections.defaultdict(list, a=[1])
ARRAYS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array(["a", "bc"]), np.zeros((0, 2)), np.array(3), np.array([True])]


def uses(config: Any) -> Any:
    GROUPS["b"].append(2)
    made: Any = typing.cast(Floats, 1)
    return [
        BOTH, BOTH is Colour.RED | Colour.BLUE, RED is Colour.RED, PLACE, PLACE.y, POINTS, type(POINTS[0]) is Point, ADD(2), HANDLERS["add"](1, 1),
        Tone.HIGH, Tone(1).name, Level.B + 1, Level.ALSO_A.name, Pair(1, None), HANDLERS["box"] is Box, HANDLERS["sub"](3, 1), Box[int](3).one, VALUES, dict(GROUPS), [(one.dtype, one.tolist()) for one in ARRAYS], made,
    ]  # fmt: skip


def _there(function: Any) -> dict[str, Any]:
    text, _ = writing.source_of(function)
    made: dict[str, Any] = {"__name__": "script"}
    exec(compile(text, "<script>", "exec", dont_inherit=True), made)
    return made


@pytest.mark.slow
def test_everyday_constants_go() -> None:
    text, shown = writing.source_of(uses)
    made = _there(uses)
    assert repr(made["main"](0)) == repr(uses(0))
    assert shown == __file__
    lines = pathlib.Path(__file__).read_text().splitlines()
    assert text.splitlines()[lines.index("class Colour(enum.IntFlag):")] == "class Colour(enum.IntFlag):"
    ARRAYS[0][0, 0] = 0
    assert made["ARRAYS"][0].flags.writeable


WHOLE = np.arange(4)
HALF = WHOLE[:2]
RECORDS = np.zeros(1, [("a", "O")])


def shares(config: Any) -> Any:
    return WHOLE, HALF


def has_records(config: Any) -> Any:
    return RECORDS


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (shares, "uses HALF, a ndarray that shares its memory with WHOLE"),
        (has_records, r"uses RECORDS, a ndarray of \[\('a', 'O'\)\]"),
    ],
)
def test_arrays_that_would_be_others(function: Any, said: str) -> None:
    with pytest.raises(ScriptError, match=said):
        writing.source_of(function)


@dataclasses.dataclass
class Settings:
    rate: float = 0.5
    layers: list[int] = dataclasses.field(default_factory=list)
    place: Settings | None = None

    def __post_init__(self) -> None:
        self.seen = [self.rate]


@dataclasses.dataclass(frozen=True)
class Frozen:
    __slots__ = ("a",)
    a: int


@dataclasses.dataclass
class Reduced:
    a: int

    def __reduce__(self) -> Any:
        return Reduced, (1,)


SETTINGS = Settings(0.25, [3], Settings())
SETTINGS.layers.append(4)
SETTINGS.rate = 7.0
SAME = [SETTINGS, Frozen(5)]
REDUCED = Reduced(1)
TIMES = [
    pd.Timestamp("2020-01-01 12:00:00.000000001"),
    pd.Timestamp("2020-07-01 12:00", tz=zoneinfo.ZoneInfo("Europe/Berlin")),
    pd.Timedelta(5, "s"),
    pd.NaT,
    pd.NA,
]
FUNCS = {"sq": lambda x, by=2: x**by}


def with_settings(args: Any) -> Any:
    return repr(SETTINGS), SETTINGS.seen, SAME[0] is SETTINGS, repr(SAME), repr(TIMES)


def with_reduced(args: Any) -> Any:
    return REDUCED


def with_a_lambda(args: Any) -> Any:
    return FUNCS


@pytest.mark.slow
def test_instances_of_dataclasses_and_times_of_pandas_go() -> None:
    made = types.ModuleType("script_in_a_task")
    sys.modules["script_in_a_task"] = made
    try:
        exec(compile(writing.source_of(with_settings)[0], "<script>", "exec", dont_inherit=True), vars(made))
    finally:
        del sys.modules["script_in_a_task"]
    assert vars(made)["main"](None) == with_settings(None)


def test_what_of_them_cannot_go() -> None:
    with pytest.raises(ScriptError, match="uses REDUCED, a Reduced, which cannot be handed"):
        writing.source_of(with_reduced)
    with pytest.raises(ScriptError, match="uses FUNCS\\['sq'\\], a lambda, which cannot be handed"):
        writing.source_of(with_a_lambda)


class Mine:
    lr = 0.5

    def __init__(self, rate: float) -> None:
        self.rate, self.seen = rate, [self.lr]


class WithSlots(Mine):
    __slots__ = ("more",)


class AttrDict(dict):  # type: ignore[type-arg]
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class Tags(list):  # type: ignore[type-arg]
    pass


class Locked:
    def __init__(self) -> None:
        self.lock = threading.Lock()


class Packed:
    def __reduce__(self) -> Any:
        return (Packed, ())


ARGS = argparse.Namespace(lr=0.5, layers=[1, 2])
MINE, SLOTTED, ATTRIBUTES, TAGS = Mine(2.0), WithSlots(3.0), AttrDict(lr=3, inner=AttrDict(a=1)), Tags(["a", "b"])
SLOTTED.more = MINE
TAGS.name = "t"
LOCKED, PACKED = Locked(), Packed()
FUNCTIONS = {"mean": np.mean, "tanh": np.tanh, "norm": np.linalg.norm, "np": np, "by": operator.itemgetter(1, 0)}
PROXY = types.MappingProxyType({"a": 1})
UserId = typing.NewType("UserId", int)
FORTRAN, FROZEN = np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(3)
FROZEN.flags.writeable = False
MANY, VOCABULARY = np.random.default_rng(0).random(5000), {f"w{i}": i for i in range(12_000)}
PURE = pathlib.PurePosixPath("a/b")


def uses_instances(args: Any) -> Any:
    shared = SLOTTED.more is MINE
    return [
        ARGS, MINE.rate, MINE.seen, MINE.lr, SLOTTED.rate, shared, dict(ATTRIBUTES), ATTRIBUTES.inner.a, list(TAGS), TAGS.name,
        type(ATTRIBUTES).__name__, FUNCTIONS["mean"]([1, 3]), FUNCTIONS["tanh"](0.5), FUNCTIONS["norm"]([3, 4]), FUNCTIONS["np"].sum([1]),
        FUNCTIONS["by"]("ab"), PROXY["a"], UserId(3), FORTRAN.tobytes("A"), FROZEN.flags.writeable, MANY.sum(), len(VOCABULARY), PURE,
    ]  # fmt: skip


def uses_a_lock(args: Any) -> Any:
    return LOCKED


def uses_a_packed(args: Any) -> Any:
    return PACKED


@pytest.mark.slow
def test_instances_of_ones_own_classes_go() -> None:
    assert repr(_there(uses_instances)["main"](0)) == repr(uses_instances(0))


@pytest.mark.parametrize(("function", "named"), [(uses_a_lock, "LOCKED.lock, a lock"), (uses_a_packed, "PACKED, a Packed")])
def test_instances_that_are_more_than_what_they_hold_are_refused(function: Any, named: str) -> None:
    with pytest.raises(ScriptError, match=named):
        writing.source_of(function)


#: made by the test that wants it: each of pytest's processes would hold a gigabyte
LONG = {"array": lambda: np.zeros(10**9, np.uint8), "list": lambda: [0] * 10**8, "bytes": lambda: {"a": b"x" * 10**8}}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG)
def test_what_is_too_long_is_not_written_first(kind: str) -> None:
    """It would take minutes, and as much memory again."""
    value = LONG[kind]()
    values = Values(lambda name, value: ("", ""), lambda value: False)
    with pytest.raises(ScriptError, match="uses X, which is longer than the 4,000,000 characters that go with a function"):
        values.add("X", value, "main")
