"""Values of each kind as expressions that make them again."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import logging
import math
import operator
import pathlib
import random
import re
import struct
import sys
import threading
import types
import typing
import uuid
import zoneinfo
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from akrunner.launch.functions.value_kinds import Unwritten, expression, is_one, key_of, kind_of


class Point(NamedTuple):
    x: int
    y: int = 0


class Colour(enum.Flag):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Settings:
    rate: float
    more: Any = None


class Mine:
    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.seen = [rate]


class Slotted(Mine):
    __slots__ = ("extra",)


class Names(dict):  # type: ignore[type-arg]
    __setitem__ = None  # type: ignore[assignment]


class Tags(list):  # type: ignore[type-arg]
    pass


class Reduced:
    def __reduce__(self) -> Any:
        return Reduced, ()


class Writer:
    """Stands for `literals.Values`: writes parts one by one, and functions and classes by their names."""

    def __init__(self, by_call: Callable[[Any], bool] = lambda value: False) -> None:
        self.by_call = by_call

    def reference(self, name: str, value: Any) -> str:
        if isinstance(value, types.ModuleType):
            return f"__import__({value.__name__!r})"
        if value is type(None):
            return "type(None)"
        own = getattr(value, "__qualname__", "")
        if getattr(sys.modules.get(getattr(value, "__module__", "")), own, None) is not value:
            raise Unwritten(name, value)
        return f"__import__({value.__module__!r}, fromlist=['_']).{own}"

    def inside(self, name: str, value: Any) -> str:
        return ", ".join(self.part(f"{name}[{at}]", one) for at, one in enumerate(value))

    def pairs(self, name: str, value: Any) -> str:
        return (
            "{"
            + ", ".join(f"{self.part(name, key)}: {self.part(f'{name}[{key_of(key)}]', one)}" for key, one in value.items())
            + "}"
        )

    def part(self, name: str, value: Any) -> str:
        return expression(self, name, value)

    def array(self, name: str, value: Any) -> str:
        return f"__import__('numpy').array({value.tolist()!r}, {value.dtype.str!r})"


def made(value: Any, **more: Any) -> Any:
    return eval(expression(Writer(**more), "X", value), {})


def unwritten(value: Any) -> tuple[Any, ...]:
    """What is said of a value that cannot be written."""
    with pytest.raises(Unwritten) as caught:
        expression(Writer(), "X", value)
    return caught.value.args


PARIS = zoneinfo.ZoneInfo("Europe/Paris")


@pytest.mark.parametrize(
    "value",
    [
        *(0, -1, 1 << 9998, 1 << 20_000, -(1 << 20_000), True, "größe\n'\"", b"\0", None, range(1, 9, 2), bytearray(b"x"), ..., NotImplemented),
        *(1.5, -0.0, math.inf, -math.inf, 1e-320, complex(-0.0, math.inf), (), (1,), (1, 2), [], [(), [1]], set(), {1, 2}, frozenset({1}), {}),
        *({"a": {1: None}}, collections.OrderedDict(b=1, a=2), collections.Counter("aab"), collections.deque([1], 3), types.SimpleNamespace(a=[1])),
        *(datetime.date(2026, 1, 2), datetime.time(1, 2, 3, 4), datetime.timedelta(-1, 5, 7), datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)),
        *(datetime.timezone(datetime.timedelta(hours=-1), "X"), PARIS, datetime.time(1, tzinfo=PARIS), decimal.Decimal("1.10"), fractions.Fraction(1, 3)),
        *(uuid.UUID(int=7), re.compile("a.b", re.I), re.compile(b"a"), operator.itemgetter(1, "a"), operator.attrgetter("a.b"), slice(1, None)),
        *(pathlib.PurePosixPath("a/b"), pathlib.PureWindowsPath("c:\\a"), pathlib.Path("/größe"), Point(1), Colour.RED, Colour.RED | Colour.BLUE),
        *(np.float32(1.5), np.int64(-1), np.bool_(True), np.str_("ä"), np.bytes_(b"a"), np.datetime64("2026-01-02T03", "h"), np.timedelta64(5, "s")),
        *(np.dtype("float32"), np.dtype(">i4"), np.float32, np.mean, np.tanh, len, int, Settings, math, math.sqrt),
        *(pd.Timestamp("2026-01-02 03:04:05.000000001"), pd.Timestamp("2026-10-25 03:30", tz="Europe/Paris"), pd.Timedelta(5, "ns")),
        *(list[int], dict[str, list[float]], typing.Optional[int], typing.Any, typing.Literal["a", 1], tuple[int], tuple[int, ...]),  # noqa: UP045
        *(typing.List[int], typing.Callable[[int], str], typing.ClassVar[int], typing.Union[int, str]),  # noqa: UP006, UP007
        *(tuple[()], list[tuple[()]], typing.Tuple[()], typing.Tuple, typing.List, typing.Callable, typing.Callable[[], int]),  # noqa: UP006
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_value_is_made_again(value: Any) -> None:
    again = made(value)
    assert type(again) is type(value)
    if isinstance(value, (operator.itemgetter, operator.attrgetter)):
        assert again.__reduce__() == value.__reduce__()
    else:
        assert again == value
        assert type(value) is int or repr(again) == repr(value)


def test_what_is_equal_to_nothing_is_made_again() -> None:
    assert math.isnan(made(float("nan"))) and made(decimal.Decimal("NaN")).is_nan() and np.isnat(made(np.datetime64("NaT")))
    assert made(pd.NaT) is pd.NaT and made(pd.NA) is pd.NA
    assert type(made(object())) is object


def test_an_hour_that_comes_twice_is_the_right_one() -> None:
    second = datetime.datetime(2026, 10, 25, 2, 30, tzinfo=PARIS, fold=1)
    assert made(second).fold == 1 and made(second).utcoffset() == datetime.timedelta(hours=1)
    again = made(pd.Timestamp(second))
    assert again.value == pd.Timestamp(second).value and again.utcoffset() == datetime.timedelta(hours=1)


def test_what_holds_others_is_made_with_them() -> None:
    made_of = made(collections.defaultdict(list, a=[1]))
    assert made_of["a"] == [1] and made_of["b"] == [] and made(collections.defaultdict(None, a=1)).default_factory is None
    part = functools.partial(pow, 2, mod=5)
    part.note = "n"  # type: ignore[attr-defined]
    again = made(part)
    assert again(3) == 3 and again.note == "n" and (again.func, again.args, again.keywords) == (pow, (2,), {"mod": 5})
    assert dict(made(types.MappingProxyType({"a": 1}))) == {"a": 1}
    kind = made(typing.NewType("UserId", int))
    assert kind.__name__ == "UserId" and kind.__supertype__ is int


def test_an_instance_is_made_of_what_it_holds_and_not_by_its_init() -> None:
    settings = Settings(0.5, Settings(1))
    settings.rate = 7
    settings.later = [1]  # type: ignore[attr-defined]
    again = made(settings)
    assert again == settings and again.later == [1] and type(again.more) is Settings
    mine = Slotted(2.0)
    mine.seen.append(3.0)
    mine.extra = "e"
    assert vars(made(mine)) == {"rate": 2.0, "seen": [2.0, 3.0]} and made(mine).extra == "e"
    assert not hasattr(made(Slotted(1.0)), "extra"), "what was not set stays so"
    assert vars(made(argparse.Namespace(a=1))) == {"a": 1}
    names, tags = Names(a=1), Tags([1, 2])
    tags.note = "n"  # type: ignore[attr-defined]
    assert dict(made(names)) == {"a": 1} and type(made(names)) is Names
    assert list(made(tags)) == [1, 2] and made(tags).note == "n"


def test_classes_that_a_call_has_made_are_made_by_one() -> None:
    kind: Any = collections.namedtuple("Row", "a b", defaults=[7])
    assert made(kind, by_call=lambda value: value is kind)(1) == (1, 7)
    tone: Any = enum.IntEnum("Tone", {"LOW": 1, "ALSO": 1, "HIGH": 5})
    again = made(tone, by_call=lambda value: value is tone)
    assert {name: one.value for name, one in again.__members__.items()} == {
        "LOW": 1,
        "ALSO": 1,
        "HIGH": 5,
    } and again.HIGH + 1 == 6
    typed: Any = NamedTuple("Typed", [("a", int), ("b", "list[str]")])
    again = made(typed, by_call=lambda value: value is typed)
    assert again._fields == ("a", "b") and again.__annotations__["a"] is int


@pytest.mark.parametrize("kind", ["MT19937", "PCG64", "Philox", "SFC64"])
def test_generators_of_numbers_go_on_where_they_were(kind: str) -> None:
    generator = np.random.Generator(getattr(np.random, kind)(np.random.SeedSequence(5)))
    generator.random(3)
    generator.spawn(1)
    again = made(generator)
    assert (again.random(5) == generator.random(5)).all()
    assert (again.spawn(1)[0].random(3) == generator.spawn(1)[0].random(3)).all()


def test_older_generators_go_on_too() -> None:
    plain = random.Random(5)
    plain.gauss(0, 1)
    again = made(plain)
    assert [again.gauss(0, 1) for _ in range(3)] == [plain.gauss(0, 1) for _ in range(3)]
    state = np.random.RandomState(5)
    state.normal()
    assert (made(state).normal(size=3) == state.normal(size=3)).all()
    seeds = np.random.SeedSequence([1, 2], spawn_key=(3,))
    seeds.spawn(2)
    again = made(seeds)
    assert (again.generate_state(4) == seeds.generate_state(4)).all() and again.spawn(1)[0].spawn_key == seeds.spawn(1)[
        0
    ].spawn_key == (3, 2)
    assert unwritten(np.random.RandomState(np.random.PCG64(1)))[2] == " of a PCG64"


def test_a_union_is_written_as_every_python_reads_it() -> None:
    text = expression(Writer(), "X", int | None)
    assert "|" not in text and eval(text, {}) == int | None


def test_types_with_a_name_keep_what_limits_them() -> None:
    again = made(typing.TypeVar("T", bound=int, covariant=True))
    assert (again.__name__, again.__bound__, again.__covariant__, again.__contravariant__) == ("T", int, True, False)
    assert made(typing.TypeVar("S", int, str)).__constraints__ == (int, str)
    assert made(typing.List["Later"]).__args__[0].__forward_arg__ == "Later"  # type: ignore[name-defined] # noqa: F821, UP006


@pytest.mark.parametrize(
    "value",
    [
        threading.Lock(),
        Reduced(),
        np.longdouble(1),
        np.void(b"a"),
        np.frompyfunc(len, 1, 1),
        np.dtype([("a", "i4")]),
        np.dtype("O"),
    ],
)
def test_what_is_more_than_what_it_holds_is_not_written(value: Any) -> None:
    assert unwritten(value)[:2] == ("X", value)


def test_the_part_that_cannot_be_written_is_named() -> None:
    lock = threading.Lock()
    for value, name in (
        ([1, [lock]], "X[1][0]"),
        ({"a": {2: lock}}, "X['a'][2]"),
        (Settings(1, lock), "X.more"),
        (types.SimpleNamespace(a=lock), "X['a']"),
        (functools.partial(len, lock), "X.args[0]"),
        (functools.partial(lock.acquire, 1), "X.func"),
        (collections.defaultdict(lock.acquire), "X.default_factory"),
        (Point(1, lock), "X[1]"),  # type: ignore[arg-type]
    ):
        assert unwritten(value)[0] == name


class Moving:
    """Its hash changes with it."""

    at = 1

    def __hash__(self) -> int:
        return self.at


def test_a_set_that_does_not_find_its_own_members_is_refused() -> None:
    one = Moving()
    held = {one}
    one.at = 2
    assert unwritten(held) == ("X", held, " that holds what has another hash by now than when it was put in")


def test_a_zone_that_no_other_machine_can_find_is_refused() -> None:
    # the smallest file of a time zone: one kind of time, which is UTC
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    zone = zoneinfo.ZoneInfo.from_file(io.BytesIO(b"TZif" + bytes(16) + counts + struct.pack(">lbb", 0, 0, 0) + b"UTC\0"))
    assert unwritten(zone) == ("X", zone, " without a key")


def test_a_model_of_pydantics_is_told_what_can_go() -> None:
    class Model:
        def model_dump(self) -> dict[str, int]:
            return {}

        def __reduce__(self) -> Any:
            return Model, ()

    one = Model()
    assert unwritten(one) == ("X", one, " (what its model_dump() gives can be)")


# -- loggers


@pytest.fixture
def logger(monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    """A logger of the test's own; the root logger has no handler meanwhile."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", logging.WARNING)
    one = logging.getLogger("akrunner-test-of-value-kinds")
    yield one
    for handler in list(one.handlers):
        one.removeHandler(handler)
    one.filters.clear()
    one.setLevel(logging.NOTSET)
    one.propagate, one.disabled = True, False


def test_a_logger_is_got_by_its_name(logger: logging.Logger) -> None:
    assert expression(Writer(), "X", logger) == "__import__('logging').getLogger('akrunner-test-of-value-kinds')"
    assert expression(Writer(), "X", logging.getLogger()) == "__import__('logging').getLogger()"
    logging.getLogger().setLevel(logging.INFO)
    assert expression(Writer(), "X", logging.getLogger()).endswith("getLogger().setLevel(20)][0]")
    assert made(logger) is logger


def test_a_logger_keeps_its_level_and_its_streams(logger: logging.Logger) -> None:
    logger.setLevel(logging.DEBUG)
    logger.propagate, logger.disabled = False, True
    handler = logging.StreamHandler(sys.stdout)
    handler.setLevel(logging.ERROR)
    handler.setFormatter(logging.Formatter("{message}", "%H", "{"))
    for one in (handler, logging.NullHandler()):
        logger.addHandler(one)
    text = expression(Writer(), "X", logger)
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)
    logger.propagate, logger.disabled = True, False
    assert eval(text, {}) is logger
    (again,) = logger.handlers
    assert isinstance(again, logging.StreamHandler) and again.stream is sys.stdout and again.level == logging.ERROR
    assert again.formatter is not None and (again.formatter._fmt, again.formatter.datefmt) == ("{message}", "%H")
    assert isinstance(again.formatter._style, logging.StrFormatStyle)
    assert (logger.level, logger.propagate, logger.disabled) == (logging.DEBUG, False, True)


def test_what_set_up_the_root_logger_goes_with_the_others(logger: logging.Logger) -> None:
    root = logging.getLogger()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("$message", None, "$"))
    root.handlers.append(handler)
    root.setLevel(logging.INFO)
    said = "basicConfig(level=20, stream=__import__('sys').stderr, format='$message', datefmt=None, style='$')"
    assert said in expression(Writer(), "X", logger)
    logger.propagate = False
    assert "basicConfig" not in expression(Writer(), "X", logger)
    handler.setFormatter(type("Own", (logging.Formatter,), {})())
    logger.propagate = True
    assert "basicConfig" not in expression(Writer(), "X", logger)


def test_a_logger_with_what_only_this_process_has_is_refused(logger: logging.Logger) -> None:
    logger.addFilter(lambda record: True)
    assert unwritten(logger)[2] == " with a filter"
    logger.filters.clear()
    logger.addHandler(logging.Handler())
    assert unwritten(logger)[2] == " with a Handler that only this process has"


# -- what is said of values


@pytest.mark.parametrize(
    "value",
    [[], {}, set(), bytearray(), collections.deque(), collections.OrderedDict(), np.zeros(1), random.Random(1), np.random.default_rng(1), functools.partial(len), types.SimpleNamespace(), typing.TypeVar("T"), object(), Settings(1), Mine(1), Names()],
)  # fmt: skip
def test_it_matters_that_it_is_one_object(value: Any) -> None:
    assert is_one(value)


@pytest.mark.parametrize(
    "value", [1, "a", (), frozenset(), None, Colour.RED, Settings, len, pathlib.Path(), np.float32(1), Reduced()]
)
def test_it_does_not_matter_whether_it_is_one_object(value: Any) -> None:
    assert not is_one(value)


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("a'b", '"a\'b"'),
        (7, "7"),
        (True, "True"),
        pytest.param(1 << 20_000, "int", id="long"),
        ((1, 2), "tuple"),
        (None, "NoneType"),
    ],
)
def test_a_key_is_shown_in_a_name(key: Any, shown: str) -> None:
    assert key_of(key) == shown


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "a list"),
        (1, "an int"),
        (lambda: 1, "a lambda"),
        (made, "a function"),
        (Settings, "of the class Settings"),
        (OSError(), "an OSError"),
    ],
)
def test_the_kind_of_a_value_is_said(value: Any, words: str) -> None:
    assert kind_of(value) == words
