"""Every kind of table in; and what is wrong with one that is none."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from akrunner.codec import read_examples, write_examples
from akrunner.errors import SourceError
from akrunner.io import text
from akrunner.io.sources import TableSource, open_source
from akrunner.schema import Schema

TABLE = pa.table({"a": [1, 2, 3], "s": ["x", 'ÿ,"\n', ""], "f": [0.5, 1.5, 2.5]})
SCHEMA = Schema.parse("a bigint, s string, f double")


def opened(source: Any, **options: Any) -> TableSource:
    return open_source(source, read_examples=read_examples, **options)


def rows(source: Any, **options: Any) -> list[dict[str, Any]]:
    table = opened(source, **options)
    return pa.Table.from_batches(list(table.batches()), table.schema).to_pylist()


def write_tfrecord(table: pa.Table, path: Path) -> None:
    with open(path, "wb") as f:
        for batch in table.to_batches():
            write_examples(f, batch)


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "t.csv": lambda t, p: pa_csv.write_csv(t, p),
    "t.parquet": lambda t, p: pq.write_table(t, p),
    "t.jsonl": lambda t, p: p.write_text("".join(json.dumps(row) + "\n" for row in t.to_pylist())),
    "t.arrow": lambda t, p: pa.ipc.new_file(p, t.schema).__enter__().write_table(t),
    "t.feather": lambda t, p: feather.write_feather(t, str(p)),
    "t.tfrecord": write_tfrecord,
}


def write(name: str, path: Path, table: pa.Table = TABLE) -> Path:
    if name == "t.arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        WRITERS[name](table, path)
    return path


@pytest.mark.parametrize("name", WRITERS)
def test_files(name: str, tmp_path: Path) -> None:

    path = write(name, tmp_path / name)
    options = {"input_schema": SCHEMA} if name == "t.tfrecord" else {}
    assert rows(str(path), **options) == TABLE.to_pylist()
    assert rows(path, input_schema=Schema.parse("f double, a int")) == TABLE.select(["f", "a"]).to_pylist()


@pytest.mark.parametrize("name", WRITERS)
def test_many_a_glob_and_a_directory(name: str, tmp_path: Path) -> None:

    ending = Path(name).suffix
    folder = tmp_path / "data"
    folder.mkdir()
    for i in range(3):
        write(name, folder / f"part-{i}{ending}", TABLE.slice(i, 1))
    (folder / "_SUCCESS").write_text("")
    options = {"input_schema": SCHEMA} if name == "t.tfrecord" else {}
    want = TABLE.to_pylist()
    assert rows(str(folder), **options) == want
    assert rows(f"{folder}/part-*{ending}", **options) == want
    assert rows([folder / f"part-{i}{ending}" for i in (1, 0)], **options) == [want[1], want[0]]
    assert rows(f"file://{folder}", **options) == want


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl", "t.tfrecord"])
def test_any_file_system_of_fsspec(name: str, tmp_path: Path) -> None:
    data = write(name, tmp_path / name).read_bytes()
    memory = fsspec.filesystem("memory")
    memory.pipe(f"/akrunner/{name}", data)
    options = {"input_schema": SCHEMA} if name == "t.tfrecord" else {}
    assert rows(f"memory://akrunner/{name}", **options) == TABLE.to_pylist()
    memory.rm("/akrunner", recursive=True)


def test_compressed(tmp_path: Path) -> None:
    for name in ("t.csv", "t.jsonl"):
        plain = write(name, tmp_path / name).read_bytes()
        packed = tmp_path / f"{name}.gz"
        packed.write_bytes(gzip.compress(plain))
        assert rows(packed) == TABLE.to_pylist()


def test_columns_in_directory_names(tmp_path: Path) -> None:
    for year in (2023, 2024):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        write("t.parquet", folder / "x.parquet", TABLE.slice(0, 1))
    assert [row["year"] for row in rows(tmp_path)] == [2023, 2024]


MEMORY: dict[str, Callable[[], Any]] = {
    "Table": lambda: TABLE,
    "RecordBatch": lambda: TABLE.to_batches()[0],
    "RecordBatchReader": lambda: TABLE.to_reader(1),
    "Dataset": lambda: pa_dataset.dataset(TABLE),
    "pandas": lambda: pd.DataFrame(TABLE.to_pydict(), index=[7, 8, 9]),
    "polars": lambda: pl.DataFrame(TABLE.to_pydict()),
    "polars lazy": lambda: pl.LazyFrame(TABLE.to_pydict()),
    "dict": lambda: {"a": np.array([1, 2, 3]), "s": TABLE["s"].to_pylist(), "f": TABLE["f"]},
    "rows": lambda: iter(TABLE.to_pylist()),
    "batches": lambda: iter(TABLE.to_batches(max_chunksize=2)),
}


@pytest.mark.parametrize("kind", MEMORY)
def test_in_memory(kind: str) -> None:
    assert rows(MEMORY[kind]()) == TABLE.to_pylist()


def test_duckdb_relation() -> None:
    with duckdb.connect() as connection:
        assert rows(connection.sql("SELECT 1::BIGINT AS a, 'x' AS s UNION ALL SELECT 2, NULL ORDER BY 1")) == [
            {"a": 1, "s": "x"},
            {"a": 2, "s": None},
        ]


def test_tuples_need_a_schema() -> None:
    schema = Schema.parse("a bigint, s string")
    assert rows([(1, "x"), (2, None)], input_schema=schema) == [{"a": 1, "s": "x"}, {"a": 2, "s": None}]
    with pytest.raises(SourceError, match="give input_schema="):
        rows([(1, "x")])


def test_arrays_of_more_dimensions() -> None:
    table = opened({"v": np.arange(6, dtype=np.float32).reshape(3, 2), "m": np.zeros((3, 2, 2))})
    assert [field.shape for field in Schema.from_arrow(table.schema)] == [(2,), (2, 2)]


def test_select() -> None:
    want = [{"b": 4, "s": "x"}, {"b": 6, "s": ""}]
    assert rows(TABLE, select="SELECT CAST(a + 3 AS BIGINT) AS b, s FROM input WHERE f <> 1.5") == want
    assert rows(TABLE, select="*, 1. AS label")[0] == {"a": 1, "s": "x", "f": 0.5, "label": 1}
    assert rows(TABLE.to_reader(), select="a")[2] == {"a": 3}


def test_select_keeps_the_order_and_streams() -> None:
    batches = (pa.record_batch({"i": np.arange(i, i + 1000)}) for i in range(0, 300_000, 1000))
    table = opened(pa.RecordBatchReader.from_batches(pa.schema([("i", pa.int64())]), batches), select="i, i * 2 AS j")
    got = np.concatenate([b.column("i").to_numpy() for b in table.batches()])
    assert (got == np.arange(300_000)).all()


def test_no_rows(tmp_path: Path) -> None:
    empty = tmp_path / "e.csv"
    empty.write_text("a,b\n")
    assert rows(empty) == []
    assert Schema.from_arrow(opened(empty).schema).names == ["a", "b"]
    assert rows(TABLE.slice(0, 0)) == [] and rows([], input_schema=SCHEMA) == []


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("nowhere.csv", {}, "there is no file nowhere.csv"),
        ("*.nothing", {}, "no file matches"),
        ([], {}, "the iterable is empty"),
        (7, {}, "int is not a table"),
        (None, {}, r"no table is given: .*akrunner.run\(script, source\)"),
        ([{"a": 1}, {"a": "x"}], {}, "column 'a' has no type that fits its first 2 rows"),
        ({"a": [1, 2], "b": [1]}, {}, "equally long"),
        (TABLE, {"select": "SELECT b FROM input"}, '(?s)"b" not found.*its columns: a, s, f'),
        (TABLE, {"select": "SELEC a"}, "(?s)select: Parser Error.*\\^|select: "),
        (TABLE, {"select": "CREATE TABLE x (i INT)"}, "select: "),
        (TABLE, {"input_schema": Schema.parse("aa bigint")}, "no column 'aa'.*did you mean 'a'"),
        (TABLE, {"input_schema": Schema.parse("s bigint")}, "column 's' cannot become int64"),
        (TABLE, {"input_format": "csv"}, "input_format= is for files"),
        ("x.csv", {"input_format": "cvs"}, "did you mean 'csv'"),
        ("s4://bucket/x.csv", {}, "cannot open s4://bucket/x.csv"),
    ],
)
def test_errors(source: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(SourceError, match=words):
        rows(source, **options)


@pytest.mark.slow
def test_errors_of_files(tmp_path: Path) -> None:
    def failing(name: str, data: bytes, words: str, **options: Any) -> None:
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(SourceError, match=words):
            rows(path, **options)

    failing("a.ods", b"x", "does not say its format")
    failing(
        "a.jpg", b"x", "give input_format= .--input-format., which may also be images, texts, lines: a folder of such files"
    )
    failing("a.parquet", b"not parquet", "cannot read .*a.parquet as parquet")
    failing("a.csv", b"a,b\n1,2\n3\n", "a.csv.*Expected 2 columns, got 1")
    failing(
        "l.csv",
        b"a,s\n1,caf\xe9\n",
        "'s' of .*l.csv is not UTF-8; give input_csv=.*encoding=latin-1, or input_schema=.*'s bytes'",
    )
    failing("semi.csv", b"a;b\n1;2\n3\n", "semi.csv may be ';'-separated .* not all rows .* delimiter=semicolon")
    failing(
        "long.jsonl",
        b'{"s": "' + b"x" * (70 << 20) + b'"}\n',
        "line 1 of .*long.jsonl is longer than 32 MiB, too long for text",
    )
    failing("b.csv", b"", "b.csv.*[Ee]mpty")
    failing("t.tfrecord", b"", "give input_schema=")
    failing("u.tfrecord", b"\x05\0\0\0\0\0\0\0junkhello", "u.tfrecord is damaged: record 0 at byte 0", input_schema=SCHEMA)
    write_tfrecord(TABLE, tmp_path / "good")
    damaged = bytearray((tmp_path / "good").read_bytes())
    damaged[-10] ^= 1
    failing("v.tfrecord", bytes(damaged), "record 2 at byte .* has a wrong checksum", input_schema=SCHEMA)
    failing("late.csv", b"a\n" + b"1\n" * 3_000_000 + b"x\n", "invalid value 'x'.*input_schema=")
    (tmp_path / "mixed").mkdir()
    for name in ("a.csv", "b.parquet"):
        (tmp_path / "mixed" / name).write_bytes(b"")
    with pytest.raises(SourceError, match="several formats"):
        rows(tmp_path / "mixed")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="has no files"):
        rows(tmp_path / "empty")


def test_cells_of_many_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "PIECE_BYTES", 100)
    table = pa.table({"a": range(99), "s": [f'{i}\n"{i}"\n' * (i % 4) for i in range(99)]})
    pa_csv.write_csv(table, tmp_path / "t.csv")
    assert rows(tmp_path / "t.csv") == table.to_pylist()


def test_files_whose_columns_differ(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["y"], "a": pa.array([2], pa.int32())}), tmp_path / "2.parquet")
    assert rows(tmp_path) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    pq.write_table(pa.table({"b": ["y"]}), tmp_path / "2.parquet")
    with pytest.raises(SourceError, match="2.parquet has no column 'a'"):
        rows(tmp_path)


def test_nulls_among_the_values_of_dictionaries_are_nulls_of_the_rows() -> None:
    one = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int8()), pa.array([None, "x"]))
    other = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["y", None]))
    lists = pa.ListArray.from_arrays([0, 2, 3, 3], one)
    table = opened(pa.table({"d": pa.chunked_array([one, other])}))
    batches = list(table.batches())
    assert sum(batch.column(0).null_count for batch in batches) == 3
    assert pa.Table.from_batches(batches).combine_chunks()["d"].to_pylist() == ["x", None, None, "y", None]
    (batch,) = opened(pa.record_batch({"d": lists[1:]})).batches()
    assert batch.column(0).flatten().null_count == 1 and batch.column(0).to_pylist() == [[None], []]
    assert (
        rows(pa.table({"d": pa.chunked_array([one, other])}), select="SELECT * FROM input WHERE d IS NULL") == [{"d": None}] * 3
    )


def test_days_and_times_of_day_count_the_same_in_memory_and_in_a_file(tmp_path: Path) -> None:
    seconds = pa.array([5, None], pa.time32("s"))
    table = pa.table(
        {"d": pa.array([3 * 86400000, None], pa.date64()), "t": seconds, "l": pa.ListArray.from_arrays([0, 1, 1], seconds)}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, str(tmp_path / "t.arrow"))
    for source in (table, tmp_path / "t.parquet", tmp_path / "t.arrow", table.to_batches()):
        found = opened(source)
        assert found.schema.types[:2] == [pa.date32(), pa.time32("ms")] and found.schema.field(
            "l"
        ).type.value_type == pa.time32("ms")
        assert rows(source) == table.to_pylist()
    with pytest.raises(SourceError, match="row 2, column 'd'.* would lose data"):
        rows(
            [pa.record_batch({"d": pa.array([0] * n, pa.date64())}) for n in (1, 1)]
            + [pa.record_batch({"d": pa.array([5], pa.date64())})]
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "kind"),
    [("'12:00:00+05'::TIMETZ", "TIME WITH TIME ZONE"), ("'101'::BIT", "BIT"), ("3::UHUGEINT", "UHUGEINT")],
)
def test_types_that_change_on_the_way_out_of_duckdb(value: str, kind: str) -> None:
    words = rf"column 'x' has DuckDB's type {kind}, .*: SELECT \* REPLACE \(CAST\(x AS VARCHAR\) AS x\)"
    with pytest.raises(SourceError, match=words):
        opened(duckdb.sql(f"SELECT {value} AS x"))
    with pytest.raises(SourceError, match=words):
        opened(TABLE, select=f"{value} AS x")
    for inside in (f"[{value}]", f"{{'a': {value}}}"):
        with pytest.raises(SourceError, match=f"column 'x' has DuckDB's type {kind}"):
            opened(duckdb.sql(f"SELECT {inside} AS x"))
    assert isinstance(rows(duckdb.sql(f"SELECT * REPLACE (CAST(x AS VARCHAR) AS x) FROM (SELECT {value} AS x)"))[0]["x"], str)


def test_a_database_is_told_its_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(sqlite3.connect("shop.db")) as connection, connection:
        connection.execute("CREATE TABLE t (a INT)")
    duckdb.connect("s.db").close()
    duckdb.connect("plain").close()
    for given, words in (
        ("shop.db", f"{tmp_path}/shop.db is a database: write sqlite:///{tmp_path}/shop.db?table=NAME"),
        ("s.db", f"{tmp_path}/s.db is a database: write duckdb:///{tmp_path}/s.db?table=NAME"),
        (["plain"], f"{tmp_path}/plain is a database: write duckdb:///{tmp_path}/plain?table=NAME"),
        ("sqlite:shop.db", "sqlite:shop.db: write sqlite:///shop.db"),
        ("duckdb:/tmp/s.db?table=t", "duckdb:/tmp/s.db?table=t: write duckdb:////tmp/s.db?table=t"),
        ("postgresql:me@host/shop", "write postgresql://me@host/shop"),
    ):
        with pytest.raises(SourceError, match="^source: .*" + re.escape(words) + "$"):
            opened(given)


@pytest.mark.slow
def test_a_schema_names_the_columns_of_a_database_that_are_looked_at(tmp_path: Path) -> None:
    """Another column may have values that no type holds."""
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE t (id, x, mixed)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, 2, "a"), (3, 4, 5)])
    url = f"sqlite:///{tmp_path}/shop.db?table=t"
    with pytest.raises(SourceError, match="mixed"):
        opened(url)
    schema = Schema.parse("x int, id bigint")
    assert opened(url, input_schema=schema).schema.names == ["x", "id"]
    assert rows(url, input_schema=schema, columns=["id"]) == [{"id": 1}, {"id": 3}]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "s.arrow"])
def test_two_columns_of_one_name_are_told_unless_a_query_names_them_apart(name: str, tmp_path: Path) -> None:
    table = pa.table([pa.array(["x"]), pa.array(["y"]), pa.array([1])], names=["a", "a", "b"])
    path = tmp_path / name
    if name == "t.parquet":
        pq.write_table(table, path)
    else:
        new = pa.ipc.new_file if name == "t.arrow" else pa.ipc.new_stream
        with new(path, table.schema) as writer:
            writer.write_table(table)
    wanted = Schema.parse("a string", "input_schema")
    for source in (str(path), table):
        given: tuple[dict[str, Any], ...] = ({}, {"columns": ["a"]}, {"columns": ["b", "a"]}, {"input_schema": wanted})
        for options in given:
            with pytest.raises(SourceError, match=r"two columns of .* are called 'a'; rename one.*select= \(--select\).*'a_1'"):
                opened(source, **options)
        assert rows(source, select="a, a_1 AS other") == [{"a": "x", "other": "y"}]
        assert rows(source, columns=["b"]) == [{"b": 1}]


def test_two_columns_of_one_name_in_a_later_file_are_told(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table([pa.array(["x"]), pa.array(["y"])], names=["a", "a"]), tmp_path / "2.parquet")
    with pytest.raises(SourceError, match=r"two columns of .*2\.parquet are called 'a'"):
        rows(str(tmp_path / "*.parquet"))
