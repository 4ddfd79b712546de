"""Python's values as Arrow: what pyarrow would cut is kept, or refused with its row."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from akrunner.codec import read_examples
from akrunner.errors import SourceError
from akrunner.io.sources import open_source
from akrunner.io.values import as_type, of_numpy, typed
from akrunner.schema import Schema

DAY = datetime.date(2020, 1, 1)
NOON = datetime.datetime(2020, 1, 1, 12)
MIDNIGHT = datetime.datetime(2020, 1, 1)
EAST = datetime.timezone(datetime.timedelta(hours=5))
AWARE = NOON.replace(tzinfo=EAST)
TIME = datetime.time(12, 0, 0, 5)
NANO = pd.Timestamp(1, unit="ns")
SPAN = datetime.timedelta(microseconds=5)
US, NS = pa.timestamp("us"), pa.timestamp("ns")

#: values of one column in each of the ways a program has them
WAYS: dict[str, Callable[[list[Any]], Any]] = {
    "rows": lambda values: [{"v": value} for value in values],
    "dict": lambda values: {"v": values},
    "objects": lambda values: {"v": np.fromiter(values, object, len(values))},
    "pandas": lambda values: pd.DataFrame({"v": pd.Series(values, dtype=object, index=range(5, 5 + len(values)))}),
    "series": lambda values: {"v": pd.Series(values, dtype=object, index=range(5, 5 + len(values)))},
}


def read(source: Any, **options: Any) -> pa.Array:
    table = open_source(source, read_examples=read_examples, **options)
    return pa.Table.from_batches(list(table.batches()), table.schema)["v"].combine_chunks()


@pytest.mark.parametrize(
    ("values", "kind", "numbers"),
    [
        ([DAY, NOON], US, [1577836800000000, 1577880000000000]),
        ([NOON, None, DAY], US, [1577880000000000, None, 1577836800000000]),
        ([DAY, pd.NaT, NANO], NS, [1577836800000000000, None, 1]),
        ([NANO, NOON], NS, [1, 1577880000000000000]),
        ([pd.Timestamp(1000, unit="ns"), datetime.datetime(9999, 1, 1)], US, [1, 253370764800000000]),
        ([pd.Timedelta(1, unit="ns"), SPAN], pa.duration("ns"), [1, 5000]),
        ([np.datetime64(1, "ns"), None], NS, [1, None]),
        (
            [AWARE, NOON.replace(tzinfo=datetime.UTC)],
            pa.timestamp("us", "+05:00"),
            [1577862000000000, 1577880000000000],
        ),
        ([TIME, None], pa.time64("us"), [43200000005, None]),
        ([DAY, None], pa.date32(), [18262, None]),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_kept(way: str, values: list[Any], kind: pa.DataType, numbers: list[Any]) -> None:
    column = read(WAYS[way](values))
    assert column.type == kind
    assert column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist() == numbers


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([NOON, NOON, AWARE], "row 2: 2020-01-01 12:00:00 has no zone, and 2020-01-01 12:00:00.05:00 has one"),
        ([AWARE, None, NOON], "row 2: 2020-01-01 12:00:00 has no zone, .*give all of them a zone, or none"),
        ([DAY, AWARE], "row 1: 2020-01-01 00:00:00 has no zone"),
        ([TIME, TIME.replace(tzinfo=EAST)], "row 1: the time of day 12:00:00.000005.05:00 has a zone.*give it as text"),
        ([NANO, datetime.datetime(9999, 1, 1)], "row 0: .* has nanoseconds"),
        ([NOON, 1], "row 1: a column of datetimes has values of int"),
        ([None, SPAN, 1], "row 2: a column of timedeltas has values of int"),
        ([DAY, TIME], "row 1: a column of dates has times of day"),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_refused(way: str, values: list[Any], words: str) -> None:
    with pytest.raises(SourceError, match=f"column 'v' .*{words}"):
        read(WAYS[way](values))


@pytest.mark.parametrize(
    ("first", "late", "words"),
    [
        (DAY, NOON, "2020-01-01 12:00:00 would lose a part of itself"),
        (MIDNIGHT, NANO, "would lose data"),
        (NOON, AWARE, "a time in column 'v' has a zone, and those before it have none"),
        (AWARE, NOON, "has no zone"),
        (TIME, TIME.replace(tzinfo=EAST), "the time of day .* has a zone"),
        (SPAN, pd.Timedelta(1, unit="ns"), "would lose data"),
        (1, 1.5, "1.500000 was truncated"),
        ([1], [1.5], "truncated"),
        ([1], np.array([1.5]), "truncated"),
        ([DAY], [NOON], "would lose a part of itself"),
        ([NOON], [AWARE], "a time in column 'v' has a zone"),
        ({"a": 1}, {"a": 1.5}, "truncated"),
        ({"a": 1}, {"a": 1, "b": 2}, "a dict in it has 'b'"),
        ({"a": DAY}, {"a": NOON}, "would lose a part of itself"),
    ],
)
def test_what_comes_late_is_refused_with_its_row(first: Any, late: Any, words: str) -> None:
    for at in (1000, 5000):
        rows = [{"v": first}] * at + [{"v": late}] + [{"v": first}] * 9
        with pytest.raises(SourceError, match=f"row {at} does not fit .*{words}"):
            read(rows)


def test_a_day_beside_its_midnight_fits() -> None:
    assert read([{"v": DAY}] * 2000 + [{"v": MIDNIGHT}]).type == pa.date32()
    assert read([{"v": NOON}] * 2000 + [{"v": DAY}])[-1].as_py() == MIDNIGHT


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", NOON), ("timestamp(0)", datetime.datetime(2020, 1, 1, 0, 0, 0, 5)), ("timestamp", NANO), ("timestamp", 1.5), ("date", 1.5),
        ("bigint", Decimal("1.5")), ("array<bigint>", [1.5]), ("array<date>", (NOON,)), ("array<timestamp>", [NANO]),
    ],
)  # fmt: skip
def test_a_type_that_was_asked_for_cuts_nothing(kind: str, value: Any) -> None:
    schema = Schema.parse(f"v {kind}")
    for source in ([{"v": None}, {"v": value}], [(None,), (value,)], iter([(None,), (value,)])):
        with pytest.raises(SourceError, match="row 1 does not fit"):
            read(source, input_schema=schema)


def test_zones_of_a_type_that_was_asked_for() -> None:
    schema = Schema.parse("v timestamp")
    assert read([{"v": AWARE}], input_schema=schema).cast(pa.int64()).to_pylist() == [1577862000000000]
    with pytest.raises(SourceError, match="row 9000 does not fit .*has no zone, and those before it have one"):
        read([{"v": AWARE}] * 9000 + [{"v": NOON}], input_schema=schema)
    with pytest.raises(ValueError, match="has no zone, and the column is"):
        as_type([NOON], pa.timestamp("us", "UTC"))


def test_inside_lists_and_dicts() -> None:
    assert typed([[NANO], None]).type == pa.list_(NS)
    assert typed([{"a": [NANO]}]).type == pa.struct([("a", pa.list_(NS))])
    assert typed([[1, 2], np.array([3])]).to_pylist() == [[1, 2], [3]]
    assert as_type([np.array([1.0, 2.0]), None], pa.list_(pa.int64())).to_pylist() == [[1, 2], None]
    for values in (
        [[DAY, NOON]],
        [[DAY], [AWARE]],
        [[NOON], [AWARE]],
        [[TIME.replace(tzinfo=EAST)]],
        [{"a": NOON}, {"a": AWARE}],
    ):
        with pytest.raises((pa.ArrowException, TypeError, ValueError)):
            typed(values)


BYTES = np.array([b"x", b"y\x00z", b"t\x00"])
TEXTS = np.array(["x", "y\x00z", "t\x00"])


@pytest.mark.parametrize("given", [BYTES, TEXTS, TEXTS.astype(">U3"), np.repeat(BYTES, 2)[::2]], ids=str)
def test_a_nul_inside_ends_no_text_of_numpy(given: Any) -> None:
    want = given.tolist()
    fields = np.zeros(3, [("d", given.dtype), ("m", given.dtype, (2,))])
    fields["d"], fields["m"] = given, given[:, None]
    for source in (
        {"d": given},
        {"d": pd.Series(given)},
        pd.DataFrame({"d": pd.Series(given)}),
        pd.Series(given, name="d"),
        fields,
        fields.view(np.recarray),
    ):
        table = open_source(source, read_examples=read_examples)
        rows = pa.Table.from_batches(list(table.batches()), table.schema)
        assert rows["d"].to_pylist() == want
        assert "m" not in rows.column_names or rows["m"].to_pylist() == [[one, one] for one in want]
    masked = read({"v": np.ma.masked_array(given, [True, False, False])})
    assert masked.to_pylist() == [None, *want[1:]]
    assert read({"v": np.array([given, given])}).to_pylist() == [want, want]


def test_what_a_structured_array_masks_is_null() -> None:
    given = np.ma.array([(1, b"a"), (2, b"c")], mask=[(1, 0), (0, 1)], dtype=[("v", "i4"), ("s", "S4")])
    assert read(given).to_pylist() == [None, 2]


NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "kind", "want"),
    [
        (["a", NAN], pa.string(), ["a", None]),
        ([np.float64("nan"), b"a"], pa.binary(), [None, b"a"]),
        ([True, NAN], pa.bool_(), [True, None]),
        ([1, pd.NA], pa.int64(), [1, None]),
        ([1.5, pd.NA], pa.float64(), [1.5, None]),
        ([pd.NaT, "a"], pa.string(), [None, "a"]),
        ([DAY, NAN, pd.NA], pa.date32(), [DAY, None, None]),
        ([[1], NAN], pa.list_(pa.int64()), [[1], None]),
        ([np.datetime64("2020-01-01"), None], pa.date32(), [DAY, None]),
        ([np.datetime64("2020-01"), np.datetime64("NaT")], pa.date32(), [DAY, None]),
        ([np.datetime64("2020-01-01"), np.datetime64("2020-01-01T12", "ms")], pa.timestamp("ms"), [MIDNIGHT, NOON]),
        ([np.datetime64("2020-01-01T12", "h")], pa.timestamp("s"), [NOON]),
    ],
    ids=str,
)
def test_values_of_rows_as_pandas_gives_them(values: list[Any], kind: pa.DataType, want: list[Any]) -> None:
    assert typed(values).to_pylist() == want and typed(values).type == kind
    again = as_type(values[::-1], kind)
    assert again.to_pylist() == want[::-1] and again.type == kind
    # a column of a type that is known, and rows of which none says more
    nulls = [value for value, there in zip(values, want) if there is None]
    assert as_type(nulls, kind).null_count == len(nulls)


def test_nan_among_numbers_is_a_number() -> None:
    assert str(typed([1, NAN]).to_pylist()) == str(as_type([1.0, NAN], pa.float64()).to_pylist()) == "[1.0, nan]"
    with pytest.raises(pa.ArrowException):
        typed(["a", 1.5, NAN])


def test_datetimes_of_numpy_that_are_too_far_apart() -> None:
    with pytest.raises(ValueError, match="row 0: 9999-01-01 does not fit ns"):
        typed([np.datetime64("9999-01-01"), np.datetime64(1, "ns")])


@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_times_of_numpy_that_are_counted_in_several_of_a_unit(kind: str) -> None:
    found = of_numpy(np.array([2, -1, "NaT"], f"{kind}[25s]"))
    assert found.type == (pa.timestamp("s") if kind == "M8" else pa.duration("s"))
    assert found.cast(pa.int64()).to_pylist() == [50, -25, None]


@pytest.mark.parametrize(("first", "later"), [(1, 0.5), ("a", 5), (1.5, "a"), (1, NAN), (1, 2**70)])
def test_a_late_change_of_type_names_the_column_the_row_and_the_way_out(first: Any, later: Any) -> None:
    words = "row 9000 does not fit the columns .* column 'v': .*; the first rows say .*: input_schema= says which type it is to have"
    with pytest.raises(SourceError, match=words):
        read([{"u": 1, "v": first}] * 9000 + [{"u": 1, "v": later}])


def test_dicts_of_a_frame_with_nulls() -> None:
    frame = pd.DataFrame(
        {"v": ["x", None, np.nan], "n": pd.array([1, None, 2], "Int64"), "t": pd.to_datetime(["2020", None, "2021"])}
    )
    assert read(frame.to_dict("records")).to_pylist() == ["x", None, None]
