"""Files of DuckDB: which table a URL names, and a file that this process has open itself."""

from __future__ import annotations

import contextlib
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError
from akrunner.io.systems.duckdb import SYSTEM

X = pa.schema([("x", pa.int32())])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE u AS SELECT 1 AS x; CREATE SCHEMA s; CREATE TABLE s.u AS SELECT 2 AS x")
        connection.execute('CREATE TABLE "a.b" AS SELECT 3 AS x')
    return path


def rows(path: Path, table: str) -> object:
    return pa.Table.from_batches(SYSTEM.open(f"duckdb:///{path}?table={table}", None, None).batches()).column("x").to_pylist()


@pytest.mark.parametrize(
    ("table", "x"),
    [("u", 1), ("main.u", 1), ("MAIN.U", 1), ("shop.main.u", 1), ("s.u", 2), ("shop.s.u", 2), ("a.b", 3), ("main.a.b", 3)],
)
def test_a_table_by_each_of_its_names(file: Path, table: str, x: int) -> None:
    assert rows(file, table) == [x]


def test_a_table_that_is_not_there(file: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no table 'main.v' \(there are: a.b, s.u, u\)"):
        rows(file, "main.v")


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


@pytest.mark.parametrize("table", ["ours", "table", "connection", "quoted"])
def test_a_new_table_may_have_the_name_of_a_variable(file: Path, table: str) -> None:
    sink = SYSTEM.output(f"duckdb:///{file}?table={table}", X, False)
    sink.write_rows(pa.record_batch([pa.array([7], pa.int64())], schema=X))
    sink.commit()
    assert rows(file, table) == [7]
    with pytest.raises(SourceError, match="Table with name pa does not exist"):
        SYSTEM.open(f"duckdb:///{file}", "SELECT * FROM pa", None)
