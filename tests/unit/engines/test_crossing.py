"""Columns of tables on their way to a script and back."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.engines import crossing
from akrunner.errors import DataError, ReadError
from akrunner.tables import types
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
    crossed = crossing.crossed(batch, "t")
    assert [column.to_pylist() for column in crossed.columns] == [[value, None] for value in AS_TEXT]
    assert codec.encode_columns(crossed)
    assert crossing.back(crossed, INFO).equals(pa.RecordBatch.from_arrays(batch.columns, names=batch.schema.names))
    fine = pa.record_batch([pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 120000)], pa.timestamp("ms"))], names=["when"])
    assert crossing.crossed(fine, "t").column(0).to_pylist() == ["2024-01-02 03:04:05.120"]


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


@pytest.mark.parametrize(
    "column, text, wanted",
    [
        ("when", "2024-01-02 03:04:05.123999", datetime.datetime(2024, 1, 2, 3, 4, 5, 123000)),
        ("when", "2024-01-02T03:04:05.123456789", datetime.datetime(2024, 1, 2, 3, 4, 5, 123000)),
        ("when", "1969-12-31 23:59:59.9999", datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)),
        ("when", "2024-01-02 03:04:05.5", datetime.datetime(2024, 1, 2, 3, 4, 5, 500000)),
        ("day", "2024-01-02 00:00:00", datetime.date(2024, 1, 2)),
        ("day", "2024-01-02T00:00:00.000000", datetime.date(2024, 1, 2)),
    ],
)
def test_times_that_are_finer_than_a_column(column: str, text: str, wanted: Any) -> None:
    made = crossing.back(pa.record_batch([[text, None]], names=[column]), INFO)
    assert made.column(0).to_pylist() == [wanted, None]


@pytest.mark.parametrize(
    ("column", "good", "bad"), [("money", "1.5", "x"), ("list", "[1]", "[1,"), ("day", "2024-01-02", "2024-01-02 01:00:00")]
)
def test_an_error_of_text_names_its_row(column: str, good: str, bad: str) -> None:
    with pytest.raises(DataError, match=f"row 102, column '{column}': text that is no") as told:
        crossing.back(pa.record_batch([[good, None, bad]], names=[column]), INFO, 100)
    assert told.value.row == 102 and "scalar" not in str(told.value)


def test_text_that_is_not_utf_8() -> None:
    written = codec.encode_columns(pa.record_batch([pa.array([b"\xff"])], names=["s"]))
    with pytest.raises(DataError) as told:
        codec.decode_some_columns(crossing.written(INFO), b"".join(map(bytes, written)), 0, 1)
    assert "column 's'" in crossing.said(told.value) and "declare it as BINARY" in crossing.said(told.value)


MOMENT, DAY = datetime.datetime(2024, 1, 2, 3, 4, 5), datetime.date(2024, 1, 2)


@pytest.mark.parametrize(
    "kind, text, wanted",
    [
        ("array<bigint>", "[1, null]", [1, None]), ("array<double>", "[1, 2.5]", [1.0, 2.5]), ("array<float>", "[0.5]", [0.5]),
        ("array<decimal(10,2)>", '["1.50", 2, 2.5]', [decimal.Decimal("1.50"), decimal.Decimal("2.00"), decimal.Decimal("2.50")]),
        ("array<datetime>", '["2024-01-02 03:04:05"]', [MOMENT]), ("array<date>", '["2024-01-02"]', [DAY]),
        ("array<array<boolean>>", "[[true], []]", [[True], []]), ("map<bigint,string>", '{"1": "a"}', [(1, "a")]),
        ("map<date,double>", '{"2024-01-02": 1}', [(DAY, 1.0)]), ("array<map<string,bigint>>", '[{"k": 1}]', [[("k", 1)]]),
        ("map<string,bigint>", '[["k", 1]]', [("k", 1)]), ("struct<a:bigint,b:array<string>>", '{"b": ["x"]}', {"a": None, "b": ["x"]}),
        ("array<binary>", '["a"]', [b"a"]), ("map<string,bigint>", "{}", []),
    ],
)  # fmt: skip
def test_what_arrays_maps_and_structs_hold(kind: str, text: str, wanted: Any) -> None:
    info = TableInfo(pa.schema([types.field("v", kind)]))
    back = crossing.back(pa.record_batch([[text, None]], names=["v"]), info)
    got = back.column(0).to_pylist()
    assert got == [wanted, None]
    again = crossing.back(crossing.crossed(back, "t"), info)
    assert again.column(0).to_pylist() == got, "what is read can be written"


def test_nan_in_an_array() -> None:
    info = TableInfo(pa.schema([types.field("v", "array<double>")]))
    for text in ("[1, NaN, -Infinity]", None):
        batch = pa.record_batch([[text]], names=["v"])
        for _ in range(2):
            back = crossing.back(batch, info)
            assert str(back.column(0).to_pylist()) == ("[[1.0, nan, -inf]]" if text else "[None]")
            batch = crossing.crossed(back, "t")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[b"\xff"]], pa.list_(pa.binary())), pa.array([[(b"\xff", 1)]], pa.map_(pa.binary(), pa.int64())),
        pa.array([1 << 62], pa.timestamp("s")), pa.array([[1 << 62]], pa.list_(pa.timestamp("s"))),
    ],
)  # fmt: skip
def test_a_value_that_text_cannot_say_names_its_table_and_column(column: pa.Array) -> None:
    with pytest.raises(ReadError, match="table odps://p/tables/t: column 'v' .* has a value that a script cannot be given: "):
        crossing.crossed(pa.record_batch([column], names=["v"]), "odps://p/tables/t")


@pytest.mark.parametrize(
    "kind, text, value",
    [
        ("array<bigint>", "[1, 1.5]", "1.5"), ("array<bigint>", "[1.0]", "1.0"), ("array<bigint>", "[true]", "True"),
        ("array<bigint>", '["1"]', "'1'"), ("array<tinyint>", "[300]", "300"), ("array<bigint>", "[9223372036854775808]", "922"),
        ("array<float>", "[1e300]", "1E\\+300"), ("array<double>", "[1e400]", "1E\\+400"), ("array<double>", "[true]", "True"),
        ("array<double>", "[9007199254740993]", "9007199254740993"), ("array<string>", "[1]", "1"), ("array<boolean>", "[1]", "1"),
        ("array<decimal(10,2)>", '["1.234"]', "'1.234'"), ("array<decimal(10,2)>", "[NaN]", "nan"), ("array<datetime>", "[5]", "5"),
        ("array<date>", '["x"]', "'x'"), ("array<bigint>", "5", "5"), ("array<bigint>", '{"a": 1}', "{'a': 1}"),
        ("map<string,bigint>", '{"a": 1.5}', "1.5"), ("map<string,bigint>", '{"a": 1, "a": 2}', ".*the key 'a' twice"),
        ("map<bigint,bigint>", '{"1": 1, "01": 2}', "'01'"), ("map<bigint,bigint>", '{"x": 1}', "'x'"), ("map<string,bigint>", "5", "5"),
        ("map<string,bigint>", '[[null, 1]]', ".*key is null"), ("struct<a:bigint>", '{"a": 1, "z": 2}', ".*no field 'z'"),
        ("struct<a:bigint>", '{"a": 1, "a": 2}', ".*a field twice"), ("struct<a:bigint>", '{"a": "1"}', "'1'"),
        ("array<struct<a:float>>", '[{"a": 1e39}]', "1E\\+39"), ("map<string,array<bigint>>", '{"a": [0.5]}', "0.5"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_an_error_and_never_another(kind: str, text: str, value: str) -> None:
    with pytest.raises(DataError, match=f"column 'v': text that is no .*: {value}"):
        crossing.back(pa.record_batch([[text]], names=["v"]), TableInfo(pa.schema([types.field("v", kind)])))
