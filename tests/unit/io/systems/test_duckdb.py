"""Files of DuckDB: which table a URL names, and a file that this process has open itself."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.io.systems.duckdb import SYSTEM
from tests.guards import one_guard

__all__ = ["one_guard"]

X = pa.schema([("x", pa.int32())])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE u AS SELECT 1 AS x; CREATE SCHEMA s; CREATE TABLE s.u AS SELECT 2 AS x")
        connection.execute('CREATE TABLE "a.b" AS SELECT 3 AS x')
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("CREATE VIEW t AS SELECT 1::INTEGER AS x", "output: cannot write .*"),
        ("CREATE TABLE t (z INTEGER, x INTEGER GENERATED ALWAYS AS (z + 1))", "(?i)generated"),
        ("CREATE TABLE t (x INTEGER, y INTEGER NOT NULL)", "column 'y' of .* may not be null and has no default"),
    ],
)
def test_a_table_that_takes_no_such_rows_is_told_before_the_job(tmp_path: Path, made: str, words: str) -> None:
    path = tmp_path / "t.duckdb"
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        connection.execute(made)
    with pytest.raises(SinkError, match=words):
        SYSTEM.output(f"duckdb:///{path}?table=t", X, False)


@pytest.mark.slow
def test_a_default_takes_the_place_of_a_column_that_the_rows_lack(tmp_path: Path, one_guard: None) -> None:
    path = tmp_path / "t.duckdb"
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE t (x INTEGER, y INTEGER NOT NULL DEFAULT 7)")
    sink = SYSTEM.output(f"duckdb:///{path}?table=t", X, False)
    sink.write_rows(pa.record_batch([pa.array([1, 2], pa.int32())], X))
    sink.commit()
    with contextlib.closing(duckdb.connect(str(path), read_only=True)) as connection:
        assert connection.execute("SELECT * FROM t ORDER BY x").fetchall() == [(1, 7), (2, 7)]


def rows(path: Path, table: str) -> object:
    return pa.Table.from_batches(SYSTEM.open(f"duckdb:///{path}?table={table}", None, None).batches()).column("x").to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "x"),
    [("u", 1), ("main.u", 1), ("MAIN.U", 1), ("shop.main.u", 1), ("s.u", 2), ("shop.s.u", 2), ("a.b", 3), ("main.a.b", 3)],
)
def test_a_table_by_each_of_its_names(file: Path, table: str, x: int) -> None:
    assert rows(file, table) == [x]


def test_a_table_that_is_not_there(file: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no table 'main.v' \(there are: a.b, s.u, u\)"):
        rows(file, "main.v")


@pytest.mark.slow
def test_a_file_that_this_process_has_open(file: Path) -> None:
    with contextlib.closing(duckdb.connect(str(file))):
        with pytest.raises(
            SourceError,
            match=r"this process has a connection to .*shop.duckdb open itself .*close it first, or give the table itself",
        ):
            rows(file, "u")
        with pytest.raises(SinkError, match="output: cannot write .*this process has a connection to .*; close it first$"):
            SYSTEM.output(f"duckdb:///{file}?table=u", X, False)
    with contextlib.closing(duckdb.connect(str(file), read_only=True)):
        assert rows(file, "u") == [1]


@pytest.mark.slow
@pytest.mark.parametrize("table", ["ours", "table", "connection", "quoted"])
def test_a_new_table_may_have_the_name_of_a_variable(file: Path, table: str) -> None:
    sink = SYSTEM.output(f"duckdb:///{file}?table={table}", X, False)
    sink.write_rows(pa.record_batch([pa.array([7], pa.int64())], schema=X))
    sink.commit()
    assert rows(file, table) == [7]
    with pytest.raises(SourceError, match="Table with name pa does not exist"):
        SYSTEM.open(f"duckdb:///{file}", "SELECT * FROM pa", None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("declared", "kind", "good", "bad", "words"),
    [
        ("BOOLEAN", pa.int64(), [0, 1, None], 2, "'2' does not fit the table's column, which is BOOLEAN"),
        ("BOOLEAN", pa.float64(), [0.0, 1.0, None], 0.5, "'0.5' does not fit"),
        ("BOOLEAN[]", pa.list_(pa.int64()), [[0], [1, 1], None], [0, 2], "does not fit"),
        ("TINYINT", pa.int64(), [-128, 127, None], 128, "'128' does not fit"),
        ("INTEGER", pa.string(), ["1", " 2", None], "x", "'x' does not fit"),
        ("INTEGER NOT NULL", pa.int32(), [1, 2, 3], None, "a null does not fit the table's column, which is INTEGER NOT NULL"),
        ("FLOAT", pa.float64(), [0.5, 1.5, None], 1e300, "'1e+300' does not fit"),
        ("ENUM ('a', 'b')", pa.string(), ["a", "b", None], "c", "'c' does not fit"),
        ("INTEGER", pa.list_(pa.int64()), [None, None, None], [1], "'[1]' does not fit"),
        ("DATE", pa.string(), ["2026-01-02", "2026-01-03", None], "2026-13-01", "'2026-13-01' does not fit"),
    ],
)
def test_a_value_that_does_not_fit_names_its_row_and_column(
    file: Path, declared: str, kind: pa.DataType, good: list[Any], bad: Any, words: str
) -> None:
    with contextlib.closing(duckdb.connect(str(file))) as connection:
        connection.execute(f"CREATE TABLE w (x {declared}, y INTEGER DEFAULT 7)")
    schema = pa.schema([("x", kind)])
    for values in ([*good, bad], good):
        sink = SYSTEM.output(f"duckdb:///{file}?table=w", schema, False)
        sink.write_rows(pa.record_batch([pa.array(values, kind)], schema=schema))
        if values is good:
            sink.commit()
            continue
        with pytest.raises(WriteError, match=r"row 3, column 'x': .*" + re.escape(words)):
            sink.commit()
        sink.abort()
    with contextlib.closing(duckdb.connect(str(file))) as connection:
        assert connection.execute("SELECT count(*), min(y) FROM w").fetchall() == [(3, 7)]


def test_a_query_that_the_database_does_not_run_is_told_as_one(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE t (id bigint)")
    with pytest.raises(SourceError, match=r"^source: duckdb:.*a\.duckdb cannot run select= \(--select\): .*\"?idd"):
        SYSTEM.open(f"duckdb:///{tmp_path}/a.duckdb", "SELECT idd FROM t", None)
