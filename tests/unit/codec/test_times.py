"""Units of timestamps: a script hands on integers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from akrunner.codec.times import check_units
from akrunner.errors import SchemaError
from akrunner.schema import Schema, plain

ANY = pa.schema([("t", pa.timestamp("us")), ("x", pa.int64())])


@pytest.mark.parametrize(
    ("kind", "say"),
    [
        (pa.timestamp("s"), r"timestamp\(0\)"),
        (pa.timestamp("ms"), r"timestamp\(3\)"),
        (pa.timestamp("ns"), r"timestamp\(9\)"),
        (pa.timestamp("ns", tz="UTC"), r"timestamp\(9\)"),
        (pa.list_(pa.timestamp("ns")), r"timestamp\(9\)"),
        (pa.date32(), "date"),
        (pa.date64(), r"timestamp\(3\)"),
    ],
    ids=str,
)
def test_a_bare_timestamp_is_in_microseconds(kind: pa.DataType, say: str) -> None:
    table = Schema.from_arrow(pa.schema([("t", kind), ("x", pa.int64())]))
    for text in ("t timestamp", "x bigint, t timestamp not null", "t array<timestamp>"):
        with pytest.raises(
            SchemaError, match=rf"^output_schema \(--output-schema\): column 't' .* say 't {say}' if .*timestamp\(6\)"
        ):
            check_units(table, Schema.parse(text))


@pytest.mark.parametrize("text", ["t timestamp", "t timestamp(6)", "t timestamp(0)", "other timestamp", "t bigint", "t date"])
def test_what_is_meant_passes(text: str) -> None:
    check_units(Schema.from_arrow(ANY), Schema.parse(text))


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("ns"), pa.date32()], ids=str)
def test_a_unit_that_is_said_is_taken_at_its_word(kind: pa.DataType) -> None:
    table = Schema.from_arrow(pa.schema([("t", kind)]))
    check_units(table, Schema.parse("t timestamp(6)"))
    check_units(table, Schema.from_arrow(ANY))
    check_units(table, None)


@pytest.mark.parametrize(
    ("kind", "given"),
    [(pa.date64(), pa.date32()), (pa.time32("s"), pa.time32("ms")), (pa.list_(pa.date64()), pa.list_(pa.date32()))],
    ids=str,
)
def test_a_unit_that_no_script_is_given_is_refused(kind: pa.DataType, given: pa.DataType) -> None:
    """The schema of the job's own table has it: days would be read as milliseconds, and nobody would be told."""
    table = Schema.from_arrow(plain(pa.schema([("t", kind)])))
    assert table.arrow.types == [given]
    with pytest.raises(
        SchemaError, match=r"column 't' is .*, and a script is given the table's as .*: declare that if it hands on"
    ):
        check_units(table, Schema.from_arrow(pa.schema([("t", kind)])))
    check_units(table, Schema.from_arrow(pa.schema([("t", given)])))
    check_units(table, Schema.from_arrow(pa.schema([("other", kind)])))
    check_units(Schema.from_arrow(pa.schema([("t", pa.int64())])), Schema.from_arrow(pa.schema([("t", kind)])))
