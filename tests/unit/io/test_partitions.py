"""Columns in the names of directories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.io.partitions import added, columns, values_of


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("/t/year=2026/month=11/x.parquet", {"year": "2026", "month": "11"}),
        ("/t/x.parquet", {}),
        ("/t/deep/x.parquet", {}),
        ("/t/deep/a=1/x.parquet", {"a": "1"}),
        ("/t/a=/x.parquet", {"a": ""}),
        ("/t/=1/x.parquet", {}),
        ("/t/a=b=c/x.parquet", {"a": "b=c"}),
        ("/t/a%20b=c%2Fd/x.parquet", {"a b": "c/d"}),
        ("/t/a=1/b=2.parquet", {"a": "1"}),
    ],
)
def test_values_are_those_of_the_directories_below_the_base(path: str, want: dict[str, str]) -> None:
    assert values_of(path, "/t") == want


def test_a_base_that_looks_like_a_column_is_none() -> None:
    assert values_of("/t/a=1/b=2/x.csv", "/t/a=1") == {"b": "2"}


def found(*values: str) -> tuple[pa.DataType, list[Any]]:
    paths = [f"/t/a={value}/{number}.csv" for number, value in enumerate(values)]
    (scalars,) = columns(paths, "/t").values()
    assert list(scalars) == paths
    (kind,) = {scalar.type for scalar in scalars.values()}
    return kind, [scalar.as_py() for scalar in scalars.values()]


@pytest.mark.parametrize(
    ("values", "kind", "want"),
    [
        (["1", "-2", "2147483647"], pa.int32(), [1, -2, 2147483647]),
        (["1", "2147483648"], pa.int64(), [1, 2147483648]),
        (["1", "9223372036854775808"], pa.string(), ["1", "9223372036854775808"]),
        # as numbers these would be others
        (["1", "01"], pa.string(), ["1", "01"]),
        (["+1"], pa.string(), ["+1"]),
        (["1.5"], pa.string(), ["1.5"]),
        (["DE", "é"], pa.string(), ["DE", "é"]),
        (["", "1"], pa.string(), ["", "1"]),
        (["1", "__HIVE_DEFAULT_PARTITION__"], pa.int32(), [1, None]),
        (["__HIVE_DEFAULT_PARTITION__"], pa.string(), [None]),
    ],
)
def test_the_type_that_fits_all_values(values: list[str], kind: pa.DataType, want: list[Any]) -> None:
    assert found(*values) == (kind, want)


def test_files_without_such_directories_have_no_such_columns() -> None:
    assert columns(["/t/a=1/x.csv"], None) == {}
    assert columns(["/t/a/x.csv", "/t/b/y.csv"], "/t") == {}
    assert columns([], "/t") == {}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("/t/b=1/y.csv", "name the columns a, those of /t/b=1/y.csv b"),
        ("/t/y.csv", "name the columns a, those of /t/y.csv none"),
    ],
)
def test_files_whose_directories_name_other_columns_are_refused(other: str, words: str) -> None:
    with pytest.raises(SourceError, match=f"the directories of /t/a=1/x.csv {words}"):
        columns(["/t/a=1/x.csv", other], "/t")


def batches() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"x": [1, 2]})
    yield pa.record_batch({"x": pa.array([], pa.int64())})


def test_the_directories_columns_stand_behind_the_files_own() -> None:
    named = columns(["/t/a=1/b=u/f", "/t/a=2/b=v/f"], "/t")
    schema, read = added(pa.schema([("x", pa.int64())]), batches(), named, "/t/a=2/b=v/f")
    assert schema == pa.schema([("x", pa.int64()), ("a", pa.int32()), ("b", pa.string())])
    table = pa.Table.from_batches(list(read), schema)
    assert table.to_pylist() == [{"x": 1, "a": 2, "b": "v"}, {"x": 2, "a": 2, "b": "v"}]


def test_a_column_of_the_files_own_stays() -> None:
    named = columns(["/t/x=7/f"], "/t")
    schema, read = added(pa.schema([("x", pa.int64())]), batches(), named, "/t/x=7/f")
    assert schema.names == ["x"] and pa.Table.from_batches(list(read)).to_pylist() == [{"x": 1}, {"x": 2}]


def test_batches_with_fewer_columns_than_the_file_take_them_too() -> None:
    named = columns(["/t/a=1/f"], "/t")
    schema, read = added(pa.schema([("w", pa.string()), ("x", pa.int64())]), batches(), named, "/t/a=1/f")
    assert schema.names == ["w", "x", "a"] and next(read).to_pylist() == [{"x": 1, "a": 1}, {"x": 2, "a": 1}]
