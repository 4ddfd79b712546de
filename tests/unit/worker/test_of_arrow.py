"""Frames and columns of Arrow's libraries in `write_batch`."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.codec import decode_columns
from akrunner.schema import Schema
from akrunner.worker.column_encoding import packed, pieces
from akrunner.worker.of_arrow import columns_of

TABLE = pa.table(
    {
        "i": pa.array([1, 2**63 - 1], pa.int64()),
        "u": pa.array([2**64 - 1, 0], pa.uint64()),
        "n": pa.array([None, 5], pa.int32()),
        "x": pa.array([0.5, -0.0]),
        "ok": [True, False],
        "s": ["雪", None],
        "b": pa.array([b"a\0b", b""]),
        "l": [[1.5, 2.5], []],
        "d": pa.array([datetime.date(2020, 1, 2)] * 2),
    }
)


SCHEMA = Schema.from_arrow(TABLE.schema)


def written(given: Any) -> pa.RecordBatch:
    rows, columns = packed(columns_of(given), SCHEMA.names, {one["name"]: one["type"] for one in SCHEMA.describe()})
    ((count, payload),) = pieces(rows, columns, 1000, 1 << 20)
    assert count == rows == 2
    return decode_columns(SCHEMA, b"".join(bytes(one) for one in payload))


def frames() -> list[Any]:
    polars = pytest.importorskip("polars", reason="NOT RUN: polars is not installed")
    batch = TABLE.combine_chunks().to_batches()[0]
    chunked = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])
    frame = polars.from_arrow(TABLE)
    return [
        TABLE,
        batch,
        chunked,
        frame,
        {name: TABLE[name] for name in TABLE.column_names},
        {name: frame[name] for name in frame.columns},
    ]


def test_they_are_written_as_what_they_hold() -> None:
    for given in frames():
        made = written(given)
        for name in TABLE.column_names:
            assert made.column(name).to_pylist() == TABLE[name].to_pylist(), (type(given), name)


def test_what_else_is_given_is_as_it_was() -> None:
    plain = {"a": np.arange(3)}
    assert columns_of(plain) is plain
    mixed = columns_of({"a": np.arange(2), "b": pa.array(["x", "y"])})
    assert mixed["a"] is not plain and mixed["b"] == ["x", "y"]


def test_numbers_with_nulls_are_of_the_type_of_those_without() -> None:
    """Which batch comes first, and whether it has a null, is chance; the type of an output without a schema is none."""
    pandas = pytest.importorskip("pandas", reason="NOT RUN: pandas is not installed")
    polars = pytest.importorskip("polars", reason="NOT RUN: polars is not installed")

    def dtype(column: Any) -> str:
        header = packed(columns_of({"x": column}), None)[1][0][0]
        assert "untyped" not in header
        return str(header["dtype"])

    for kind in (pa.int8(), pa.int32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_()):
        some: list[Any] = [True, False] if kind == pa.bool_() else [1, 2]
        own = str(kind.to_pandas_dtype().__name__).rstrip("_")
        for values in (some, [some[0], None], [None, None]):
            column = pa.array(values, kind)
            assert dtype(column) == own, (kind, values)
            if kind != pa.float16():
                assert dtype(polars.from_arrow(column)) == own, (kind, values)
                assert dtype(pandas.Series(column.to_pylist(), dtype=pandas.ArrowDtype(kind))) == own, (kind, values)
    for name, own in (("Int32", "int32"), ("Float32", "float32"), ("UInt8", "uint8"), ("boolean", "bool")):
        for values in ([1, 0], [1, None], [None, None]):
            assert dtype(pandas.Series(values, dtype=name)) == own, (name, values)
