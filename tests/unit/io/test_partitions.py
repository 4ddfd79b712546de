"""Columns in the names of directories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import SourceError, WriteError
from akrunner.io.partitions import added, columns, directory, divided, values_of


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


# -- rows that are written


def test_rows_are_divided_by_the_values_of_columns_and_keep_their_order() -> None:
    batch = pa.record_batch(
        {"n": range(6), "b": [True, False, None, True, True, False], "d": pa.array([0, 1, None, 0, 1, 1], pa.date32())}
    )
    found = [(name, rows.to_pydict()) for name, rows in divided(batch, ["d", "b"])]
    assert found == [
        ("d=1970-01-01/b=true", {"n": [0, 3]}),
        ("d=1970-01-02/b=false", {"n": [1, 5]}),
        ("d=__HIVE_DEFAULT_PARTITION__/b=__HIVE_DEFAULT_PARTITION__", {"n": [2]}),
        ("d=1970-01-02/b=true", {"n": [4]}),
    ]
    assert list(divided(batch.slice(0, 0), ["d"])) == []


def test_rows_of_a_directory_do_not_keep_the_others_in_memory() -> None:
    batch = pa.record_batch({"d": [at % 1000 for at in range(10000)], "n": range(10000)})
    assert {rows.get_total_buffer_size() for _, rows in divided(batch, ["d"])} == {80}


@pytest.mark.slow
def test_many_columns_of_many_values_stay_apart() -> None:
    # the product of their numbers of values has more than 64 bits
    names = [f"c{at}" for at in range(6)]
    batch = pa.record_batch({**{name: range(5000) for name in names}, "n": range(5000)})
    assert [rows["n"].to_pylist() for _, rows in divided(batch, names)] == [[at] for at in range(5000)]


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("a/b", "a%2Fb"),
        ("100%", "100%25"),
        ("x=y z", "x%3Dy z"),
        ("é\n\x7f", "é%0A%7F"),
        ("\"#'*:?\\{[]^", "%22%23%27%2A%3A%3F%5C%7B%5B%5D%5E"),
        ("+}&.", "+}&."),
    ],
)
def test_values_are_escaped_as_hive_does_and_come_back(value: str, want: str) -> None:
    name = directory(["s*"], [value])
    assert name == f"s%2A={want}" and values_of(f"/t/{name}/x.parquet", "/t") == {"s*": value}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "has the text '', and the name of its directory would be read as a null"),
        ("__HIVE_DEFAULT_PARTITION__", "would be read as a null; write a null, or another text"),
        ("é" * 130, r"is too long for the name of a directory \(262 bytes; 255 are allowed\)"),
    ],
)
def test_values_that_no_directory_can_have(value: str, words: str) -> None:
    with pytest.raises(WriteError, match=rf"^partition_by= \(--partition-by\): column 's' .*{words}"):
        directory(["s"], [value])


def test_other_programs_read_what_is_written(tmp_path: Path) -> None:
    """DuckDB and Arrow; Spark reads the same names of directories."""
    duckdb, dataset = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow.dataset")
    texts = ["a/b", "100%", 'x=y "z"', "é +&", None]
    for name, rows in divided(pa.record_batch({"s": texts, "n": range(5)}), ["s"]):
        (tmp_path / name).mkdir()
        pq.write_table(pa.Table.from_batches([rows]), tmp_path / name / "part-chief-0.parquet")
    found = duckdb.sql(
        f"SELECT s, n FROM read_parquet('{tmp_path}/**/*.parquet', hive_partitioning=true) ORDER BY n"
    ).fetchall()
    assert [one for one, _ in found] == texts
    table = dataset.dataset(tmp_path, format="parquet", partitioning="hive").to_table().sort_by("n")
    assert table["s"].to_pylist() == texts
