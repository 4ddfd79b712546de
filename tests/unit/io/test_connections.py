"""Connections and results as tables: which objects they are, whose database runs the query, and which thread reads."""

from __future__ import annotations

import contextlib
import gc
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlalchemy
from sqlalchemy import orm

from akrunner import codec
from akrunner.errors import SourceError
from akrunner.io import connections
from akrunner.io.sources import open_source
from akrunner.io.table import TableSource
from akrunner.schema import Schema

ROWS = [(number, f"row {number}") for number in range(20_000)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "t.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, s TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", ROWS)
        connection.commit()
    return path


@pytest.fixture(params=["sqlite3", "any thread", "adbc", "engine", "memory", "connection", "session"])
def connected(file: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A connection of each kind to the same rows."""
    kind = request.param
    if kind == "adbc":
        import adbc_driver_sqlite.dbapi as adbc

        with contextlib.closing(adbc.connect(str(file))) as connection:
            yield connection
        return
    if kind in ("sqlite3", "any thread"):
        with contextlib.closing(sqlite3.connect(file, check_same_thread=kind == "sqlite3")) as connection:
            yield connection
        return
    engine = sqlalchemy.create_engine("sqlite://" if kind == "memory" else f"sqlite:///{file}")
    if kind == "memory":
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE t (id INTEGER, s TEXT)")
            connection.exec_driver_sql("INSERT INTO t VALUES (?, ?)", ROWS)
    if kind in ("engine", "memory"):
        yield engine
    else:
        with engine.connect() if kind == "connection" else orm.Session(engine) as connection:
            yield connection
    engine.dispose()


def opened(source: Any, **options: Any) -> TableSource:
    return open_source(source, read_examples=codec.read_examples, **options)


def read(table: TableSource) -> list[tuple[Any, ...]]:
    """What another thread reads, as in a job."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append([tuple(row.values()) for batch in table.batches() for row in batch.to_pylist()])
        except BaseException as e:
            found.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return list(found[0])


@pytest.mark.slow
def test_the_database_of_a_connection_runs_the_query(connected: Any) -> None:
    table = opened(connected, select="SELECT id, s FROM t WHERE typeof(id) = 'integer' AND s <> ':x' ORDER BY id")
    assert table.schema.names == ["id", "s"] and read(table) == ROWS


def test_columns_and_types_are_those_that_the_user_asks_for(connected: Any) -> None:
    table = opened(connected, select="SELECT * FROM t LIMIT 3", input_schema=Schema.parse("s string, id int"), columns=["id"])
    assert table.schema == pa.schema([("id", pa.int32())]) and read(table) == [(0,), (1,), (2,)]


@pytest.mark.slow
def test_without_a_query_and_for_a_wrong_one_it_is_told(connected: Any) -> None:
    with pytest.raises(SourceError, match=r"is a connection, not a table: give the query in select= \(--select\)"):
        opened(connected)
    with pytest.raises(SourceError, match=r"cannot run select= \(--select\): .*no such table: nowhere"):
        opened(connected, select="SELECT * FROM nowhere")
    with pytest.raises(SourceError, match="input_format= is for files"):
        opened(connected, select="SELECT * FROM t", input_format="csv")
    gc.collect()


def test_a_query_without_rows_has_its_columns(connected: Any) -> None:
    table = opened(connected, select="SELECT id, s FROM t WHERE id < 0")
    assert table.schema.names == ["id", "s"] and read(table) == []


@pytest.mark.slow
def test_results_are_read_once(file: Path) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        result = connection.execute(sqlalchemy.text("SELECT id, s FROM t ORDER BY id"))
        assert connections.is_result(result) and not connections.is_connection(result)
        table = opened(result)
        assert not table.replayable and read(table) == ROWS
        done = connection.execute(sqlalchemy.text("DELETE FROM t"))
        with pytest.raises(SourceError, match="cannot read the CursorResult"):
            opened(done)
    engine.dispose()


def test_a_cursor_of_one_thread_only_is_copied_to_a_file_and_can_be_read_again(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        table = opened(connection.execute("SELECT * FROM t"))
        assert table.replayable and read(table) == ROWS and read(table) == ROWS
    with contextlib.closing(sqlite3.connect(file, check_same_thread=False)) as connection:
        table = opened(connection.execute("SELECT * FROM t"))
        assert not table.replayable and read(table) == ROWS


@pytest.mark.slow
def test_an_engine_gives_its_connection_back(file: Path) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{file}", pool_size=1, max_overflow=0, pool_timeout=0.1)
    for _ in range(2):
        assert len(read(opened(engine, select="SELECT * FROM t"))) == len(ROWS)
        with pytest.raises(SourceError, match="no such table"):
            opened(engine, select="SELECT * FROM nowhere")
    engine.dispose()


def test_a_connection_of_duckdb_gives_the_rows_of_its_last_query() -> None:
    with duckdb.connect() as connection:
        assert not connections.is_connection(connection)
        connection.execute("SELECT 1 AS a UNION ALL SELECT 2 ORDER BY a")
        assert read(opened(connection, select="SELECT sum(a)::BIGINT AS s FROM input")) == [(3,)]


def test_what_is_no_connection() -> None:
    assert not any(map(connections.is_connection, [None, "sqlite://", {"cursor": [1]}, pa.table({"a": [1]}), object()]))


def test_a_read_that_is_ended_ends_in_its_database() -> None:
    ended: list[str] = []

    class Connection:
        def cancel(self) -> None:
            ended.append("cancel")
            raise RuntimeError("there is nothing to end")

    class Cursor:
        description = (("id",),)
        connection = Connection()

        def fetchmany(self, size: int) -> list[Any]:
            return []

    opened(Cursor()).stop()
    assert ended == ["cancel"]
