"""Tables in DuckDB's own files, read and written by DuckDB."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from akrunner.errors import AkrunnerError, SinkError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.io.commits import last_step
from akrunner.io.limits import has_rows, waits_on
from akrunner.io.sql import check_query, duckdb_reader, heard, in_utc
from akrunner.io.systems.base import (
    TableSink,
    Transaction,
    Url,
    check_asked,
    check_columns,
    days_lost,
    made_meanwhile,
    quoted,
    tried,
)
from akrunner.io.systems.database_file import Target, check_distinct, check_there, path_of, which_table
from akrunner.io.systems.kept_rows import KeptRows
from akrunner.io.table import TableSource

#: how many seconds to wait for another program that has the file open, and how often to look
_LOCKED_SECONDS, _TICK = 60, 0.2
#: the files that this module reads just now, without symlinks: a process that reads a file cannot open it to write
_READING: list[str] = []
#: held while a file is opened to read, or is looked at
_LOOKING = threading.Lock()
#: the rows that come, in a connection that looks at them or takes them; a table of the file may have the same name
_ROWS = "temp.main.akrunner_rows"
#: DuckDB's words for times of a day
_TIMES = ("TIME", "TIME_NS", "TIME WITH TIME ZONE")
#: DuckDB's words for numbers
_NUMBERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$|FLOAT$|DOUBLE$|DECIMAL")
_Given = TypeVar("_Given")


class _DuckDB:
    """DuckDB files as a `System`."""

    queries = True
    decimals: Sequence[str] = ()

    def in_files(self, url: str) -> bool:
        return True

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        place = Url.parse(url)
        place.check(("table",))
        path = path_of(place, "duckdb")
        check_there(path, place)
        _check_kind(path, place)
        what = tried(place.shown, query)
        if query is not None:
            check_query(query, "select", SourceError)
        with ours(SourceError, what), _read(path, what) as connection:
            text = query.strip().rstrip(";") if query is not None else f"SELECT * FROM {_table(connection, place)}"
            if columns is not None:
                check_asked(columns, connection.sql(text).columns, place.shown)
                text = f"SELECT {', '.join(map(quoted, columns))} FROM ({text}\n)"
            schema = duckdb_reader(connection.sql(f"SELECT * FROM ({text}\n) LIMIT 0")).schema
        running: list[Any] = []

        def batches() -> Iterator[pa.RecordBatch]:
            with ours(SourceError, what), _read(path, what) as connection:
                running.append(connection)
                try:
                    yield from heard(lambda: duckdb_reader(connection.sql(text)), connection.interrupt)
                finally:
                    running.remove(connection)

        def stop() -> None:
            for connection in list(running):
                connection.interrupt()

        return TableSource(schema, batches, place.shown, replayable=True, stop=stop)

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        place = Url.parse(url)
        place.check(("table",))
        table = place.table
        if table is None:
            raise SinkError(f"output: {place.shown} names no table: put ?table=NAME behind it")
        path = path_of(place, "duckdb")
        target = Target(path, place.shown)
        what = f"output: cannot write {place.shown}"
        check_distinct(schema.names, place.shown, "DuckDB")
        with ours(SinkError, what), _looked(target, path, what, waits=has_rows()) as connection:
            goal = _goal(connection, table, path, what)
            if goal.is_there:
                known = [row[0] for row in _described(connection, goal.sql)]
                check_columns(pa.schema([(name, pa.null()) for name in known]), schema, place.shown)
                # without columns the schema is not known yet
                if schema.names:
                    _check_takes(connection, goal, schema, place.shown)
            elif schema.names:
                # that of a new file has none
                with contextlib.nullcontext(connection) if target.new else contextlib.closing(_unfiled()) as trial:
                    trial.register("akrunner_rows", schema.empty_table())
                    trial.execute(f"CREATE TEMP TABLE made AS SELECT * FROM {_ROWS}")
        is_new = not goal.is_there and not overwrite
        return TableSink(place.shown, schema, lambda: _Writing(path, table, schema, overwrite, place, is_new), path, is_new)


SYSTEM = _DuckDB()


def _check_kind(path: str, place: Url) -> None:
    """Check that a file is a DuckDB file. (DuckDB's own errors about other files do not say what is wrong.)

    Raises:
        SourceError: it is another kind of file.
    """
    with ours(SourceError, f"source: cannot read {place.shown}"), open(path, "rb") as file:
        head = file.read(16)
    if head.startswith(b"SQLite format 3"):
        raise SourceError(f"source: {place.shown}: {path} is a file of SQLite: write sqlite:/// for duckdb:///")
    if head[8:12] != b"DUCK":
        raise SourceError(f"source: {place.shown}: {path} is no file of DuckDB; a file of rows is an input by its path alone")


def _connected(path: str, what: str, kind: type[AkrunnerError], writes: bool = False) -> Any:
    """Return a connection to a DuckDB file.

    Raises:
        AkrunnerError: of the class `kind`, with a message that begins with `what`: this process has already opened the file
            with other settings.
    """
    import duckdb

    try:
        connection = duckdb.connect(path, read_only=not writes)
    except duckdb.ConnectionException as e:
        if "different configuration" not in str(e):
            raise
        instead = "" if writes or kind is SinkError else ", or give the table itself as the source: connection.table('NAME')"
        raise kind(
            f"{what}: this process has a connection to {path} open itself (duckdb.connect); close it first{instead}"
        ) from None
    return _sober(connection)


def _unfiled() -> Any:
    """Return a connection that has no file."""
    import duckdb

    return _sober(duckdb.connect())


def _sober(connection: Any) -> Any:
    # a table that does not exist would be a variable of this code that has its name
    connection.execute("SET SESSION python_enable_replacements = false")
    in_utc(connection)
    return connection


@contextlib.contextmanager
def _read(path: str, what: str) -> Iterator[Any]:
    """Yield a connection that reads a file. Args and errors: as in `_connected`."""
    with _LOOKING:
        connection = _connected(path, what, SourceError)
        _READING.append(real := os.path.realpath(path))
    try:
        yield connection
    finally:
        connection.close()
        _READING.remove(real)


@contextlib.contextmanager
def _looked(target: Target, path: str, what: str, waits: bool) -> Iterator[Any]:
    """Yield a connection that looks at the file of an output; of a new one, a connection that has no file.

    It may write, so that another program that has the file open is told now, unless akrunner itself reads the file.
    Args and errors: as in `_connected`, and of `_waited`. waits: whether to wait for the other program.
    """

    def look() -> tuple[Any, contextlib.ExitStack]:
        with contextlib.ExitStack() as held:
            held.enter_context(_LOOKING)
            if target.new:
                connection = _unfiled()
            else:
                connection = _connected(path, what, SinkError, writes=os.path.realpath(path) not in _READING)
            held.callback(connection.close)
            return connection, held.pop_all()

    connection, held = _waited(look, path, _is_locked) if waits else look()
    with held:
        yield connection


def _opened(path: str, at: str, what: str) -> Any:
    """Return a connection that writes a file; wait while another program, or akrunner itself, has it open.

    Args:
        path: the file.
        at: where it is, if it is new.
        what: as in `_connected`.
    Raises: as `_waited`.
    """

    def connect() -> Any:
        with _LOOKING:
            return _connected(at, what, SinkError, writes=True)

    return _waited(connect, path, lambda e: os.path.realpath(path) in _READING or _is_locked(e))


def _is_locked(error: Exception) -> bool:
    """Whether DuckDB says that another process has a file open."""
    return "Could not set lock" in str(error)


def _waited(call: Callable[[], _Given], path: str, is_locked: Callable[[Exception], bool]) -> _Given:
    """Return what `call`, which opens a file, returns; call it again while another program has the file open.

    Args: is_locked: whether an exception of `call` says that.
    Raises:
        JobTimeoutError: the job's time is over.
        Exception: what `call` raises if the file is still open elsewhere after `_LOCKED_SECONDS`, or for another reason.
    """
    begun = time.monotonic()
    while True:
        try:
            return call()
        except Exception as e:
            if not is_locked(e) or time.monotonic() >= begun + _LOCKED_SECONDS:
                raise
        waits_on(f"another program that has {path} open", begun)
        time.sleep(_TICK)


class _Table(NamedTuple):
    """A table or view of a file.

    Attributes:
        schema: the schema it is in.
        name: its name.
        is_view: whether it is a view.
    """

    schema: str
    name: str
    is_view: bool


def _tables(connection: Any) -> list[_Table]:
    rows = connection.execute(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_catalog = current_database() "
        "ORDER BY 1, 2"
    ).fetchall()
    return [_Table(schema, name, kind == "VIEW") for schema, name, kind in rows]


def _database(connection: Any) -> str:
    return str(connection.execute("SELECT current_database()").fetchall()[0][0])


def _found(connection: Any, named: str) -> _Table | None:
    """Return the table that `t`, `schema.t` or `database.schema.t` names; None if there is none.

    A name of a table may have a dot: `a.b` is the table b of the schema a, or else the table `a.b`.
    """
    wanted, database = named.lower(), _database(connection)
    plain: _Table | None = None
    for one in _tables(connection):
        whole = f"{one.schema}.{one.name}".lower()
        if wanted in (whole, f"{database.lower()}.{whole}"):
            return one
        if one.schema == "main" and one.name.lower() == wanted:
            plain = one
    return plain


def _qualified(connection: Any, schema: str, name: str) -> str:
    # the whole name, as a schema may be called as the database is
    return ".".join(map(quoted, (_database(connection), schema, name)))


def _table(connection: Any, place: Url) -> str:
    """Return the table that a URL names, or the only one there is, quoted for SQL.

    Raises:
        SourceError: the URL names no table, or one that does not exist.
    """
    found = _found(connection, place.table) if place.table is not None else None
    if found is None:
        short = {one.name if one.schema == "main" else f"{one.schema}.{one.name}": one for one in _tables(connection)}
        found = short[which_table(place, sorted(short))]
    return _qualified(connection, found.schema, found.name)


class _Goal(NamedTuple):
    """The table that is written.

    Attributes:
        sql: its name, quoted for SQL.
        is_there: whether it exists.
    """

    sql: str
    is_there: bool


def _goal(connection: Any, table: str, path: str, what: str) -> _Goal:
    """Return the table that a URL names as an output, by the rules by which `_table` finds it as an input.

    Args:
        path: the file; it gives a new database its name.
        what: the beginning of the error's message.
    Raises:
        SinkError: it is a view, or in a schema that does not exist.
    """
    found = _found(connection, table)
    if found is not None:
        if found.is_view:
            raise SinkError(f"{what}: {table} is a view, which takes no rows; name a table")
        return _Goal(_qualified(connection, found.schema, found.name), True)
    *where, name = table.split(".")
    if len(where) == 2 and where[0].lower() in (
        _database(connection).lower(),
        os.path.basename(path).partition(".")[0].lower(),
    ):
        where = where[1:]
    schemas = [
        str(row[0])
        for row in connection.execute(
            "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = current_database() AND schema_name NOT IN "
            "('information_schema', 'pg_catalog') ORDER BY 1"
        ).fetchall()
    ]
    schema = next((one for one in schemas if one.lower() == ".".join(where or ["main"]).lower()), None)
    if schema is None or not name:
        raise SinkError(
            f"{what}: there is no table {table!r}, and a new one is called NAME or SCHEMA.NAME, of a schema that is there "
            f"({', '.join(schemas)}); leave the dot out, or run CREATE SCHEMA in DuckDB first"
        )
    return _Goal(_qualified(connection, schema, name), False)


def _described(connection: Any, what: str) -> list[tuple[Any, ...]]:
    """Return DuckDB's description of the columns of a table or query: (name, type, whether it may be null, key, default, ...)."""
    found: list[tuple[Any, ...]] = connection.execute(f"DESCRIBE {what}").fetchall()
    return found


def _check_takes(connection: Any, goal: _Goal, rows: pa.Schema, shown: str) -> None:
    """Check, before a job starts, what DuckDB would say only of the insert at its end: a column is generated, or one that may not
    be null has no default and is not among the rows'; or would not say: days would be lost in a column of times.

    Raises:
        SinkError: the table does not take the rows.
        Exception: whatever DuckDB raises for that.
    """
    import duckdb

    names = ", ".join(map(quoted, rows.names))
    connection.register("akrunner_rows", rows.empty_table())
    try:
        connection.execute(f"EXPLAIN INSERT INTO {goal.sql} ({names}) SELECT {names} FROM {_ROWS}")
    except duckdb.InvalidInputException as e:
        # this comes when all else is right
        if "read-only" not in str(e):
            raise
    there = _described(connection, goal.sql)
    given = {name.lower(): kind for name, kind, *_ in _described(connection, f"SELECT * FROM {_ROWS}")}
    for name, wanted, null, _, default, _ in there:
        if null == "NO" and default is None and name.lower() not in given:
            raise SinkError(
                f"output: {shown}: column {name!r} of the table may not be null and has no default, and the rows do not have it"
            )
        if given.get(name.lower(), "").startswith("TIMESTAMP") and _unlisted(wanted)[0] in _TIMES:
            raise days_lost(name, wanted, shown)


class _Cast(NamedTuple):
    """A column whose values become another type in the table, or that may have no null there.

    Attributes:
        name: its name.
        kind: DuckDB's words for the table's type.
        wrong: SQL that is true of a value that does not fit.
    """

    name: str
    kind: str
    wrong: str


def _casts(connection: Any, goal: _Goal, rows: pa.Schema) -> list[_Cast]:
    """Return the columns of the rows with values that may not fit a table's."""
    there = {name.lower(): (kind, null == "NO") for name, kind, null, *_ in _described(connection, goal.sql)}
    connection.register("akrunner_rows", rows.empty_table())
    found = []
    for name, kind, *_ in _described(connection, f"SELECT * FROM {_ROWS}"):
        column, (wanted, needed) = quoted(name), there[name.lower()]
        wrong = []
        if kind != wanted:
            wrong.append(f"({column} IS NOT NULL AND TRY_CAST({column} AS {wanted}) IS NULL)")
        (bare, depth), (bare_wanted, depth_wanted) = _unlisted(kind), _unlisted(wanted)
        if bare != bare_wanted and depth == depth_wanted:
            wrong += _in_lists(column, bare, depth, functools.partial(_lossy, kind=bare, wanted=bare_wanted))
        if needed:
            wrong.append(f"{column} IS NULL")
        if wrong:
            found.append(_Cast(name, wanted, " OR ".join(wrong)))
    return found


def _unlisted(kind: str) -> tuple[str, int]:
    """Return DuckDB's words for the type of the values in lists, and how deep these are: ("DATE", 2) for "DATE[][3]"."""
    bare = re.sub(r"(\[\d*\])+$", "", kind)
    return bare, kind.count("[", len(bare))


def _lossy(value: str, kind: str, wanted: str) -> str:
    """Return SQL that is true of a value that DuckDB would change without a word; "" if it changes none.

    Args:
        value: SQL of the value.
        kind, wanted: DuckDB's words for its type, and for the table's.
    """
    # DuckDB would leave the time of a moment away, or its day
    if wanted == "DATE" and kind.startswith("TIMESTAMP"):
        return f"date_trunc('day', {value}) <> {value}"
    if wanted == "DATE" and kind == "VARCHAR":
        return f"TRY_CAST({value} AS TIMESTAMP) <> TRY_CAST({value} AS DATE)"
    if wanted in _TIMES and kind == "VARCHAR":
        return f"TRY_CAST({value} AS TIMESTAMP) IS NOT NULL"
    # DuckDB would make true of 2
    if wanted == "BOOLEAN" and _NUMBERS.match(kind):
        return f"{value} NOT IN (0, 1)"
    return ""


def _in_lists(column: str, kind: str, depth: int, wrong: Callable[[str], str]) -> list[str]:
    """Return SQL that is true of a column in which a value is wrong, at any depth of its lists; [] if none can be.

    Args:
        kind: DuckDB's words for the type of the values.
        depth: how deep the lists are.
        wrong: returns the same for one value.
    """
    if not wrong("one"):
        return []
    if not depth:
        return [wrong(column)]
    # DuckDB flattens no lists of fixed length
    values = "flatten(" * (depth - 1) + f"{column}::{kind}{'[]' * depth}" + ")" * (depth - 1)
    return [f"len(list_filter({values}, lambda one: {wrong('one')})) > 0"]


def _wrong(connection: Any, casts: Sequence[_Cast]) -> Sequence[bool | None]:
    """Return, for each column, whether a value of `akrunner_rows` does not fit; None if there are no rows."""
    asked = ", ".join(f"bool_or({one.wrong})" for one in casts)
    return connection.execute(f"SELECT {asked} FROM {_ROWS}").fetchall()[0] if casts else ()


class _Writing(Transaction):
    """Writes rows to a table in one transaction. They wait in a `KeptRows`, and go to the table by one statement at the end: DuckDB
    writes a large insert straight to its file, and each of many small ones also to its log. The file is opened then, as the job may
    still read it before.

    Args: must_be_new: whether the job found no table when it began, so that one that is there is another program's.
    """

    def __init__(self, path: str, table: str, schema: pa.Schema, overwrite: bool, place: Url, must_be_new: bool) -> None:
        self._target = Target(path, place.shown)
        self._path, self._table, self._overwrite, self._place = path, table, overwrite, place
        self._what = f"output: cannot write {place.shown}"
        self._connection: Any = None
        self._checks: Any = None
        self._is_ready = False
        self._target.begin()
        self._kept = KeptRows(schema)
        try:
            with _looked(self._target, path, self._what, waits=True) as connection:
                self._goal, self._casts = self._seen(connection)
            if self._casts:
                # the type of the columns is all that checks need of the file
                self._checks = _unfiled()
            if must_be_new and self._goal.is_there:
                raise made_meanwhile(place.shown)
        except BaseException:
            self.close()
            raise

    def _seen(self, connection: Any) -> tuple[_Goal, list[_Cast]]:
        """Return the table, and the columns to look at."""
        goal = _goal(connection, self._table, self._path, self._what)
        return goal, _casts(connection, goal, self._kept.schema) if goal.is_there else []

    def _begin(self) -> None:
        """Open the file and begin the transaction: make the table, or empty it.

        Raises:
            WriteError: somebody else has changed the table since it was looked at.
        """
        connection = self._connection = _opened(self._path, self._target.at, self._what)
        connection.begin()
        goal, casts = self._seen(connection)
        if (goal.is_there, casts) != (self._goal.is_there, self._casts):
            raise WriteError(
                f"output: {self._place.shown}: somebody has made or changed the table meanwhile; run the job again"
            )
        # of a new database, the name is only known now
        self._goal = goal
        if not goal.is_there:
            connection.register("akrunner_rows", self._kept.schema.empty_table())
            connection.execute(f"CREATE TABLE {goal.sql} AS SELECT * FROM {_ROWS}")
        elif self._overwrite:
            heard(lambda: connection.execute(f"DELETE FROM {goal.sql}"), connection.interrupt)

    def append(self, rows: pa.Table) -> None:
        if self._casts:
            self._check(rows)
        for batch in rows.combine_chunks().to_batches():
            self._kept.append(batch)

    def _check(self, rows: pa.Table) -> None:
        """Check that rows fit the table's columns.

        Raises:
            WriteError: a value does not.
        """
        self._checks.register("akrunner_rows", rows)
        for one, is_wrong in zip(self._casts, _wrong(self._checks, self._casts)):
            if not is_wrong:
                continue
            ((row, value),) = self._checks.execute(
                f"SELECT row, {quoted(one.name)}::VARCHAR FROM (SELECT row_number() OVER () - 1 AS row, {quoted(one.name)} FROM "
                f"{_ROWS}) WHERE {one.wrong} ORDER BY row LIMIT 1"
            ).fetchall()
            shown = "a null" if value is None else repr(value)
            raise WriteError(
                f"output: {self._place.shown}: row {self._kept.rows + row}, column {one.name!r}: {shown} does not fit the table's "
                f"column, which is {one.kind}{' NOT NULL' if value is None else ''}"
            )

    def ready(self) -> None:
        if self._is_ready:
            return
        self._is_ready = True
        self._begin()
        if self._kept.rows:
            rows = self._kept.reader()
            names = ", ".join(map(quoted, rows.schema.names))
            self._connection.register("akrunner_rows", rows)
            text = f"INSERT INTO {self._goal.sql} ({names}) SELECT {names} FROM {_ROWS}"
            heard(lambda: self._connection.execute(text), self._connection.interrupt)

    def commit(self) -> None:
        self.ready()
        last_step(self._place.shown, self._last, elsewhere=True)

    def _last(self) -> None:
        self._connection.commit()
        if self._target.new:
            # `close` would leave in the log, without a word, what it cannot write to the file, and the file alone is kept
            self._connection.execute("CHECKPOINT")
            self._connection.close()
            self._target.commit()

    def close(self) -> None:
        try:
            for connection in (self._checks, self._connection):
                if connection is not None:
                    connection.close()
        finally:
            self._kept.drop()
            self._target.drop()
