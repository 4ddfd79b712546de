"""Columns of tables on their way to a script and back."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.engines import crossing
from akrunner.errors import DataError
from akrunner.tables.store import TableInfo

COLUMNS = pa.schema(
    [
        ("x", pa.int64()), ("s", pa.string()), ("b", pa.bool_()), ("raw", pa.binary()), ("when", pa.timestamp("ms")), ("day", pa.date32()),
        ("money", pa.decimal128(10, 2)), ("list", pa.list_(pa.float64())), ("map", pa.map_(pa.string(), pa.int64())),
        ("both", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)  # fmt: skip
INFO = TableInfo(COLUMNS, ("pt",))
ROW = [
    1, "é", True, b"\xff", datetime.datetime(2024, 1, 2, 3, 4, 5), datetime.date(2024, 1, 2), decimal.Decimal("1.50"), [1.5, 2.0], [("k", 1)],
    {"a": 1, "b": "x"},
]  # fmt: skip
AS_TEXT = [1, "é", True, b"\xff", "2024-01-02 03:04:05", "2024-01-02", "1.50", "[1.5, 2.0]", '{"k": 1}', '{"a": 1, "b": "x"}']


def test_what_has_no_type_of_its_own_crosses_as_text_and_comes_back() -> None:
    batch = pa.record_batch([[value, None] for value in ROW], schema=COLUMNS)
    crossed = crossing.crossed(batch)
    assert [column.to_pylist() for column in crossed.columns] == [[value, None] for value in AS_TEXT]
    assert codec.encode_columns(crossed)
    assert crossing.back(crossed, INFO).equals(pa.RecordBatch.from_arrays(batch.columns, names=batch.schema.names))
    fine = pa.record_batch([pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 120000)], pa.timestamp("ms"))], names=["when"])
    assert crossing.crossed(fine).column(0).to_pylist() == ["2024-01-02 03:04:05.120"]


def test_what_a_worker_is_told() -> None:
    told = {one["name"]: (one["type"], one["dtype"], one["partition"]) for one in crossing.described(INFO)}
    assert (
        told["x"] == ("bigint", "int64", False)
        and told["b"] == ("boolean", "bool", False)
        and told["pt"] == ("string", "bytes", True)
    )
    assert told["when"] == ("datetime", "bytes", False) and told["money"] == ("decimal(10,2)", "bytes", False)
    assert crossing.written(INFO).arrow.field("list").type == pa.string() and "pt" not in crossing.written(INFO).names


@pytest.mark.parametrize(
    "column, text",
    [("when", "yesterday"), ("day", "x"), ("money", "1.234567"), ("list", "[1,"), ("list", '["a"]'), ("both", "[1]")],
)
def test_text_that_is_no_such_value(column: str, text: str) -> None:
    with pytest.raises(DataError, match=f"column '{column}': text that is no"):
        crossing.back(pa.record_batch([[text]], names=[column]), INFO)
