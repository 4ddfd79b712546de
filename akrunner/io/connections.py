"""Connections to databases and results of queries, as Python programs have them: of DB-API drivers, of ADBC, of SQLAlchemy.

::

    a connection, an engine, a session  + select=  -> its database runs the query
    a cursor, a SQLAlchemy result                  -> the rows that it still has
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.foreign import ours
from akrunner.io import frames
from akrunner.io.rows import from_cursor
from akrunner.io.sql import heard
from akrunner.io.table import TableSource
from akrunner.schema import Schema

#: how many rows SQLAlchemy asks a server for at once
_BUFFERED = 8192
#: names of the methods by which drivers end a query that is running: ADBC, psycopg, sqlite3
_ENDS = ("adbc_cancel", "cancel", "interrupt")


def is_connection(source: Any) -> bool:
    """Whether a source is a connection to a database, or gives connections."""
    return _of_sqlalchemy(source) in ("engine", "connection", "session") or _is_dbapi(source)


def is_result(source: Any) -> bool:
    """Whether a source is the result of a query: a cursor of DB-API, or a result of SQLAlchemy."""
    return frames.is_cursor(source) or _of_sqlalchemy(source) == "result"


def queried(source: Any, query: str | None, schema: Schema | None) -> TableSource:
    """Return what the database of a connection returns for a query.

    Args:
        source: a source for which `is_connection` is true.
        query: SQL for that database.
        schema: the types of columns that the user gave.
    Raises:
        SourceError: there is no query, or the database refuses it.
    """
    kind = type(source).__name__
    if query is None:
        raise SourceError(
            f"source: the {kind} is a connection, not a table: give the query in select= (--select), which its database runs, "
            "or execute it, and give the cursor or the result"
        )
    name = f"the {kind}"
    with ours(SourceError, f"source: {name} cannot run select= (--select)"):
        if hasattr(source, "adbc_get_info"):
            return _of_adbc(source, query, name)
        if _of_sqlalchemy(source) == "engine":
            return _of_engine(source, query, schema, name)
        if _of_sqlalchemy(source) is not None:
            return fetched(_executed(source, query), schema)
        cursor = source.cursor()
        cursor.execute(query)
        return fetched(cursor, schema)


def fetched(result: Any, schema: Schema | None) -> TableSource:
    """Return the rows that a result still has, as a table that can be read once.

    Args:
        result: a source for which `is_result` is true.
        schema: the types of columns that the user gave.
    Raises:
        SourceError: the result has no rows to give, or a column's values have no common type.
    """
    driver = result
    if _of_sqlalchemy(result) == "result":
        driver = getattr(result, "cursor", None)
        with ours(SourceError, f"source: cannot read the {type(result).__name__}"):
            result = _Rows(result)
    table = dataclasses.replace(from_cursor(result, schema), stop=lambda: _end(driver))
    return _kept(table) if _is_bound(driver) else table


class _Rows:
    """A result of SQLAlchemy, as a cursor of DB-API."""

    def __init__(self, result: Any) -> None:
        self.description = [(name,) for name in result.keys()]
        self.fetchmany = result.fetchmany


def _of_sqlalchemy(source: Any) -> str | None:
    """Return what an object of SQLAlchemy is: "engine", "connection", "session", "result", or None."""
    engine = sys.modules.get("sqlalchemy.engine")
    if engine is None:
        return None
    orm = sys.modules.get("sqlalchemy.orm")
    if isinstance(source, engine.Engine):
        return "engine"
    if isinstance(source, engine.Connection):
        return "connection"
    if orm is not None and isinstance(source, orm.Session):
        return "session"
    return "result" if isinstance(source, engine.Result) else None


def _is_dbapi(source: Any) -> bool:
    methods = ("cursor", "commit", "rollback", "close")
    # a connection of DuckDB is a source by itself: it gives the rows of its last query
    foreign = type(source).__module__.split(".")[0] not in ("duckdb", "_duckdb")
    return foreign and all(callable(getattr(source, name, None)) for name in methods)


def _of_adbc(connection: Any, query: str, name: str) -> TableSource:
    cursor = connection.cursor()
    # the connection is the caller's, who cannot close it while a cursor is open
    try:
        heard(lambda: cursor.execute(query), cursor.adbc_cancel)
        reader = cursor.fetch_record_batch()
    except BaseException:
        cursor.close()
        raise

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        finally:
            reader.close()
            cursor.close()

    return TableSource(reader.schema, batches, name, stop=lambda: _end(cursor))


def _of_engine(engine: Any, query: str, schema: Schema | None, name: str) -> TableSource:
    connection = engine.connect()
    try:
        table = fetched(_executed(connection, query), schema)
    except BaseException:
        connection.close()
        raise

    def batches() -> Iterator[pa.RecordBatch]:
        with connection:
            yield from table.open()

    return dataclasses.replace(table, open=batches if not table.replayable else table.open, name=name)


def _executed(source: Any, query: str) -> Any:
    connection = source if _of_sqlalchemy(source) == "connection" else source.connection()
    # as it stands: colons would name parameters. Servers then send rows as they are fetched
    options = {"stream_results": True, "max_row_buffer": _BUFFERED}
    return connection.exec_driver_sql(query, execution_options=options)


def _end(cursor: Any) -> None:
    """End the query of a cursor that another thread reads, as far as its driver can."""
    for one in (cursor, getattr(cursor, "connection", None)):
        end = next((getattr(one, name) for name in _ENDS if callable(getattr(one, name, None))), None)
        if end is not None:
            # a driver may refuse to end what has ended
            with contextlib.suppress(Exception):
                end()
            return


def _is_bound(cursor: Any) -> bool:
    """Whether only this thread may use a cursor, as sqlite3 has it (check_same_thread)."""
    sqlite3 = sys.modules.get("sqlite3")
    if sqlite3 is None or not isinstance(cursor, sqlite3.Cursor):
        return False
    refused: list[bool] = []

    def look() -> None:
        try:
            cursor.connection.cursor()
        except sqlite3.ProgrammingError:
            refused.append(True)

    thread = threading.Thread(target=look, name="akrunner-look", daemon=True)
    thread.start()
    thread.join()
    return bool(refused)


class _Kept:
    """Rows in a file that has no name, and goes with this process. Any thread may read them.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, table: TableSource) -> None:
        file = tempfile.TemporaryFile()
        weakref.finalize(self, file.close)
        with pa.ipc.new_file(pa.PythonFile(file, "w"), table.schema) as writer:
            for batch in table.batches():
                writer.write_batch(batch)
        self._reader = pa.ipc.open_file(pa.PythonFile(file, "r"))
        self._reading = threading.Lock()

    def batches(self) -> Iterator[pa.RecordBatch]:
        for number in range(self._reader.num_record_batches):
            with self._reading:
                batch = self._reader.get_batch(number)
            yield batch


def _kept(table: TableSource) -> TableSource:
    """Return a table whose rows this thread has already read: another thread reads a job's rows.

    Raises:
        SourceError: the rows cannot be read, or not be kept.
    """
    with ours(SourceError, f"source: cannot keep the rows of {table.name} in {tempfile.gettempdir()}"):
        kept = _Kept(table)
    return TableSource(table.schema, kept.batches, table.name, replayable=True)
