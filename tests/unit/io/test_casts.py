"""Columns in another type: what was asked for is rounded and never cut, what was not asked for stays what it was."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.io.casts import as_in_first, asked, kept, unchanged

NOON = datetime.datetime(2026, 1, 1, 12)
MIDNIGHT = datetime.datetime(2026, 1, 1)
DAY = datetime.date(2026, 1, 1)
NAN = float("nan")


def field(kind: pa.DataType, nullable: bool = True) -> pa.Field:
    return pa.field("x", kind, nullable)


@pytest.mark.parametrize(
    ("column", "kind", "want"),
    [
        (pa.array([1, None]), pa.int64(), [1, None]),
        (pa.array([0.1, None]), pa.float32(), [0.10000000149011612, None]),
        (pa.array([[0.1], None]), pa.list_(pa.float32()), [[0.10000000149011612], None]),
        (pa.array([7, None]), pa.float64(), [7.0, None]),
        (pa.array([7.0]), pa.int64(), [7]),
        (pa.array([1, 0, None]), pa.bool_(), [True, False, None]),
        (pa.array(["7", " 8 ".strip(), None]), pa.int64(), [7, 8, None]),
        (pa.array(["0x1F"]), pa.int64(), [31]),
        (pa.array(["7"]).dictionary_encode(), pa.int64(), [7]),
        (pa.array([7, None]), pa.string(), ["7", None]),
        (pa.array([DAY]), pa.timestamp("us"), [MIDNIGHT]),
        (pa.array([MIDNIGHT]), pa.date32(), [DAY]),
        (pa.array([[1, None], None], pa.list_(pa.int32())), pa.list_(pa.int64()), [[1, None], None]),
        (pa.array([], pa.string()), pa.int64(), []),
        (pa.nulls(2), pa.string(), [None, None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_what_was_asked_for(column: pa.Array, kind: pa.DataType, want: list[Any]) -> None:
    found = asked(column, field(kind), 0)
    assert found.type == kind and found.to_pylist() == want


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        (pa.array(["1", "2", "x", "4"]), pa.int64(), "Failed to parse string: 'x'"),
        (pa.array([1, 2, 300, 400]), pa.int8(), "300"),
        (pa.array([1, 0, 2, 3]), pa.bool_(), "2 would lose a part of itself"),
        (pa.array([1.0, None, NAN, 0.5]), pa.bool_(), "nan would lose a part of itself"),
        (pa.array([[1], [], [2], []]), pa.list_(pa.bool_()), "2 would lose a part of itself"),
        (pa.array([1.0, 2.0, 0.5, 1.5]), pa.int64(), "0.5"),
        (pa.array([1.0, None, 1e300, 1.0]), pa.float32(), "1e.300 would become infinite"),
        (pa.array([MIDNIGHT, None, NOON, MIDNIGHT]), pa.date32(), "2026-01-01 12:00:00 would lose a part of itself"),
        (pa.array([[MIDNIGHT], [], [NOON], []]), pa.list_(pa.date32()), "2026-01-01 12:00:00 would lose a part"),
        (pa.array(["0x7F", "0x00", "0xFF", "0x01"]), pa.int8(), "0xFF would lose a part of itself"),
        (pa.array([None, None, NOON, NOON]), pa.time64("us"), "would lose a part of itself"),
        (pa.array([{"a": 1}] * 4), pa.int64(), "struct"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_value_that_does_not_become_what_was_asked_for_is_named_with_its_row(
    values: pa.Array, kind: pa.DataType, words: str
) -> None:
    row = 0 if "struct" in words else 2
    with pytest.raises(SourceError, match=rf"^schema: row {100 + row}, column 'x': column 'x' cannot become .*{words}"):
        asked(values, field(kind), 100, "schema")


def test_a_null_where_none_may_be_is_named_with_its_row() -> None:
    with pytest.raises(SourceError, match="^input_schema: row 11, column 'x': a null, and the schema says NOT NULL"):
        asked(pa.array([1, None, None]), field(pa.int64(), False), 10)
    assert asked(pa.array([1, 2]), field(pa.float64(), False), 10).to_pylist() == [1.0, 2.0]


def test_a_time_of_day_without_its_day_loses_it_also_at_midnight() -> None:
    column = pa.array([None, MIDNIGHT])
    with pytest.raises(pa.ArrowInvalid, match="2026-01-01 00:00:00 would lose a part of itself; select="):
        kept(column, column.cast(pa.time64("us")))
    nothing = pa.nulls(2, pa.timestamp("us"))
    assert kept(nothing, nothing.cast(pa.time64("us"))).null_count == 2


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([1, None, -5]), pa.int8()),
        (pa.array([7.0, None]), pa.int64()),
        (pa.array([1.5, NAN, None, float("inf")]), pa.float32()),
        (pa.array([2**53, None]), pa.float64()),
        (pa.array([Decimal("1.50")]), pa.float64()),
        (pa.array(["1", None]), pa.int64()),
        (pa.array([1.5]), pa.string()),
        (pa.array(["a", None]).dictionary_encode(), pa.string()),
        (pa.array([MIDNIGHT]), pa.date32()),
        (pa.array([[1.5], None, []]), pa.list_(pa.float32())),
        (pa.array([{"a": 1}, None]), pa.struct([("a", pa.int8())])),
        (pa.array([], pa.bool_()), pa.bool_()),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_values_that_stay_what_they_were(column: pa.Array, kind: pa.DataType) -> None:
    found = unchanged(column, kind)
    assert found.type == kind and str(found.cast(column.type).to_pylist()) == str(column.to_pylist())


@pytest.mark.parametrize(
    ("column", "kind", "words"),
    [
        (pa.array([1.0, 0.1]), pa.float32(), "0.1 would be 0.10000000149011612"),
        (pa.array([2**53, 2**53 + 1]), pa.float64(), str(2**53 + 1)),
        (pa.array([[0.5], [0.1]]), pa.list_(pa.float32()), "0.1 would be"),
        (pa.array([{"a": 0.1}]), pa.struct([("a", pa.float32())]), "a value in it would be another one"),
        (pa.array(["7", "007"]), pa.int64(), "'007' would be 7"),
        (pa.array(["1.0"]), pa.float64(), "'1.0' would be 1.0"),
        (pa.array([1, 0]), pa.bool_(), "numbers are no truths"),
        (pa.array([True]), pa.int64(), "truths are no numbers"),
        (pa.array([7]), pa.timestamp("us"), "numbers are no moments"),
        (pa.array([[7]]), pa.list_(pa.bool_()), "numbers are no truths"),
        (pa.array([datetime.timedelta(1)]), pa.int64(), "spans of time are no numbers"),
        (pa.array([datetime.time(1)]), pa.int64(), "times of day are no numbers"),
        (pa.array([NOON]), pa.date32(), "would be datetime.date"),
        (pa.array([NOON]), pa.timestamp("us", "UTC"), "one has a time zone, the other has none"),
        (pa.array([NOON], pa.timestamp("us", "UTC")), pa.timestamp("us"), "one has a time zone, the other has none"),
        (pa.array([300]), pa.int8(), "300"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_value_that_would_be_another_is_refused(column: pa.Array, kind: pa.DataType, words: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match=words):
        unchanged(column, kind)


def test_a_column_of_nulls_becomes_any_type() -> None:
    for kind in (pa.bool_(), pa.timestamp("us", "UTC"), pa.list_(pa.int64())):
        assert unchanged(pa.nulls(2), kind).equals(pa.nulls(2, kind))


def test_types_between_which_nothing_is_converted() -> None:
    with pytest.raises(pa.ArrowNotImplementedError):
        unchanged(pa.array([{"a": 1}]), pa.int64())


def test_a_part_has_the_types_of_the_first_part() -> None:
    batch = pa.record_batch({"x": pa.array([1, None], pa.int8())})
    assert as_in_first(batch, field(pa.int8()), "b", "a") is not None
    assert as_in_first(batch, field(pa.int64()), "b", "a").equals(pa.array([1, None]))
    words = (
        r"^source: column 'x' of the second file is int8, and cannot become bool, as in the first file: numbers are no truths; "
        r"input_schema= \(--input-schema\) says"
    )
    with pytest.raises(SourceError, match=words):
        as_in_first(batch, field(pa.bool_()), "the second file", "the first file")


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([[1.0], [1e300]]), pa.list_(pa.float32())),
        (pa.array(["1", "1e300"]), pa.float32()),
        (pa.array(["1", "1e999"]), pa.float64()),
    ],
)
def test_a_finite_value_does_not_become_infinite(column: pa.Array, kind: pa.DataType) -> None:
    with pytest.raises(SourceError, match="input_schema: row 101, .*would become infinite"):
        asked(column, field(kind), 100, "input_schema")


def test_floats_of_16_bits_and_infinities_in_dictionaries_and_bytes_are_read() -> None:
    assert asked(pa.array([1, 2]), field(pa.float16()), 0).to_pylist() == [1.0, 2.0]
    infinite = pa.array([float("inf"), 1.0])
    assert asked(infinite.dictionary_encode(), field(pa.float64()), 0).equals(infinite)
    assert asked(pa.array([b"inf", b"1"]), field(pa.float64()), 0).equals(infinite)


@pytest.mark.parametrize("text", ["inf", "-Infinity", "+inf"])
def test_what_is_infinite_stays_so(text: str) -> None:
    try:
        column = pa.array([text]).cast(pa.float64())
    except pa.ArrowInvalid:
        pytest.skip("Arrow reads no such text")
    assert asked(pa.array([text]), field(pa.float64()), 0, "input_schema").equals(column)
