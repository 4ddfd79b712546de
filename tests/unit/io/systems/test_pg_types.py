"""What PostgreSQL's types become, and what is refused; no server is asked."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.io import pg_ranges
from akrunner.io.systems import pg_types


class Catalog:
    """In place of a cursor: knows one enum. Attributes: asked: its number."""

    def execute(self, query: str, values: Any) -> None:
        self.asked = values

    def fetchone(self) -> Any:
        return ("enum",) if self.asked == (77,) else None


def described(kind: pa.DataType, word: str, decimals: str | None = None, typmod: int = -1) -> pg_ranges.Column:
    field = pa.field("x", kind, metadata={"POSTGRESQL:type": word, "POSTGRESQL:typmod": str(typmod)})
    (found,) = pg_types.described(Catalog(), pa.schema([field]), decimals, "the table")
    return found


def test_types_that_are_the_same_and_those_that_are_text() -> None:
    assert described(pa.int32(), "int4")[1:3] == (pa.int32(), '"x" AS "x"')
    assert described(pa.binary(), "unnamed<oid:77>")[1:3] == (pa.string(), '"x"::text AS "x"')
    assert described(pa.int32(), "oid")[1:3] == (pa.int64(), '"x"::bigint AS "x"')
    listed = described(pa.list_(pa.int32()), "_int4")
    assert listed.type == pa.list_(pa.int32()) and listed.looks[0] == 'array_ndims("x")'
    # a slice begins at 1, wherever the array does
    assert listed.expression == '"x"[:] AS "x"'
    assert described(pa.list_(pa.int32()), "_uuid").expression == '"x"[:]::text[] AS "x"'


def test_numerics() -> None:
    assert described(pa.string(), "numeric", typmod=(10 << 16 | 2) + 4)[1:3] == (pa.decimal128(10, 2), '"x"::text AS "x"')
    assert described(pa.string(), "numeric", "float64").type == pa.float64()
    assert described(pa.string(), "numeric", "text").type == pa.string()
    for typmod in (-1, (100 << 16 | 2) + 4):
        with pytest.raises(SourceError, match=r"numeric.*&decimals=float64.*SELECT x::float8 AS x"):
            described(pa.string(), "numeric", typmod=typmod)


def test_two_columns_of_one_name() -> None:
    with pytest.raises(SourceError, match="two columns are called 'x'"):
        pg_types.described(Catalog(), pa.schema([pa.field("x", pa.int32()), pa.field("x", pa.int32())]), None, "t")


def test_what_is_written_is_the_same_or_refused() -> None:
    schema = pa.schema(
        [
            ("u", pa.uint64()),
            ("t", pa.timestamp("ns", "Europe/Berlin")),
            ("v", pa.list_(pa.float32())),
            ("n", pa.decimal128(5, 2)),
        ]
    )
    columns = pg_types.written(schema, "t")
    assert [one.type for one in columns] == ["numeric(20,0)", "timestamp with time zone", "real[]", "numeric(5,2)"]
    rows = pa.table({"u": pa.array([2**64 - 1], pa.uint64()), "t": pa.array([1000], schema.field("t").type), "v": pa.array([[1.5]], schema.field("v").type), "n": pa.array([Decimal("1.50")], schema.field("n").type)})  # fmt: skip
    sent = pg_types.sendable(rows, columns)
    assert sent.column("u").to_pylist() == [Decimal(2**64 - 1)] and sent.column("t").type == pa.timestamp("us", "UTC")
    with pytest.raises(WriteError, match="column 't' cannot become PostgreSQL's timestamp with time zone"):
        pg_types.sendable(rows.set_column(1, "t", pa.array([1], schema.field("t").type)), columns)
    for kind in (pa.duration("s"), pa.list_(pa.list_(pa.int64())), pa.struct([("a", pa.int64())])):
        with pytest.raises(SinkError, match="for which PostgreSQL has none"):
            pg_types.written(pa.schema([("x", kind)]), "t")


def test_bytes_of_one_length_are_bytea() -> None:
    (column,) = pg_types.written(pa.schema([("id", pa.binary(2))]), "t")
    assert (column.type, column.sent) == ("bytea", pa.binary())
    sent = pg_types.sendable(pa.table({"id": pa.array([b"ab", None], pa.binary(2))}), [column])
    assert sent.column("id").to_pylist() == [b"ab", None]
