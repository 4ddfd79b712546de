"""Tables in DuckDB's own files, read and written by DuckDB."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from akrunner.errors import AkrunnerError, SinkError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.io.commits import last_step
from akrunner.io.sql import check_query, duckdb_reader, heard, in_utc
from akrunner.io.systems.base import TableSink, Transaction, Url, check_columns, dotted, quoted, tried
from akrunner.io.systems.database_file import Target, check_there, path_of, which_table
from akrunner.io.systems.kept_rows import KeptRows
from akrunner.io.table import TableSource


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
        with ours(SourceError, what), contextlib.closing(_connected(path, what, SourceError)) as connection:
            text = query.strip().rstrip(";") if query is not None else f"SELECT * FROM {_table(connection, place)}"
            schema = duckdb_reader(connection.sql(f"SELECT * FROM ({text}\n) LIMIT 0")).schema
            if columns is not None and set(columns) <= set(schema.names):
                text = f"SELECT {', '.join(map(quoted, columns))} FROM ({text}\n)"
                schema = pa.schema([schema.field(name) for name in columns])
        running: list[Any] = []

        def batches() -> Iterator[pa.RecordBatch]:
            with ours(SourceError, what), contextlib.closing(_connected(path, what, SourceError)) as connection:
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
        with ours(SinkError, what):
            if not target.new:
                with contextlib.closing(_connected(path, what, SinkError)) as connection:
                    known = _columns_of(connection, table)
                    if known is not None:
                        check_columns(known, schema, place.shown)
                        # without columns the schema is not known yet
                        if schema.names:
                            _check_takes(connection, table, schema)
        return TableSink(
            place.shown, schema, lambda: _Writing(Target(path, place.shown), table, schema, overwrite, place), path
        )


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
    # a table that does not exist would be a variable of this code that has its name
    connection.execute("SET SESSION python_enable_replacements = false")
    in_utc(connection)
    return connection


def _table(connection: Any, place: Url) -> str:
    """Return the table that a URL names, quoted for SQL. The URL may say `t`, `schema.t` or `database.schema.t`.

    Raises:
        SourceError: the URL names no table, or one that does not exist.
    """
    rows = connection.execute(
        "SELECT table_catalog, table_schema, table_name FROM information_schema.tables WHERE table_catalog = "
        "current_database() ORDER BY 2, 3"
    ).fetchall()
    short = {name if schema == "main" else f"{schema}.{name}": (schema, name) for _, schema, name in rows}
    whole = {".".join(row[first:]).lower(): row[1:] for row in rows for first in (1, 0)}
    named = (place.table or "").lower()
    known = {name.lower() for name in short}
    found = whole[named] if named in whole and named not in known else short[which_table(place, sorted(short))]
    return ".".join(map(quoted, found))


def _columns_of(connection: Any, table: str) -> pa.Schema | None:
    """Return the schema of a table; None if there is no such table."""
    import duckdb

    try:
        return duckdb_reader(connection.sql(f"SELECT * FROM {dotted(table)} LIMIT 0")).schema
    except duckdb.CatalogException:
        return None


def _check_takes(connection: Any, table: str, rows: pa.Schema) -> None:
    """Check, before a job starts, what DuckDB would say only of the insert at its end: it is a view, a column is generated, or
    one that may not be null has no default and is not among the rows'.

    Raises:
        SinkError: the table does not take the rows.
        Exception: whatever DuckDB raises for that.
    """
    import duckdb

    names = ", ".join(map(quoted, rows.names))
    connection.register("akrunner_rows", rows.empty_table())
    try:
        connection.execute(f"EXPLAIN INSERT INTO {dotted(table)} ({names}) SELECT {names} FROM akrunner_rows")
    except duckdb.InvalidInputException as e:
        # this comes when all else is right
        if "read-only" not in str(e):
            raise
    given = {name.lower() for name in rows.names}
    for name, _, null, _, default, _ in connection.execute(f"DESCRIBE {dotted(table)}").fetchall():
        if null == "NO" and default is None and name.lower() not in given:
            raise SinkError(
                f"output: column {name!r} of {table} may not be null and has no default, and the rows do not have it"
            )


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


def _casts(connection: Any, table: str, rows: pa.Schema) -> list[_Cast]:
    """Return the columns of the rows with values that may not fit a table's."""
    there = {
        name.lower(): (kind, null == "NO")
        for name, kind, null, *_ in connection.execute(f"DESCRIBE {dotted(table)}").fetchall()
    }
    connection.register("akrunner_rows", rows.empty_table())
    found = []
    for name, kind, *_ in connection.execute("DESCRIBE SELECT * FROM akrunner_rows").fetchall():
        column, (wanted, needed) = quoted(name), there[name.lower()]
        wrong = []
        if kind != wanted:
            wrong.append(f"({column} IS NOT NULL AND TRY_CAST({column} AS {wanted}) IS NULL)")
        # DuckDB would make true of 2
        if wanted == "BOOLEAN" and _is_number(rows.field(name).type):
            wrong.append(f"{column} NOT IN (0, 1)")
        elif wanted == "BOOLEAN[]" and kind != wanted and _is_number(getattr(rows.field(name).type, "value_type", pa.null())):
            wrong.append(f"len(list_filter({column}, lambda one: one NOT IN (0, 1))) > 0")
        if needed:
            wrong.append(f"{column} IS NULL")
        if wrong:
            found.append(_Cast(name, wanted, " OR ".join(wrong)))
    return found


def _wrong(connection: Any, casts: Sequence[_Cast]) -> Sequence[bool | None]:
    """Return, for each column, whether a value of `akrunner_rows` does not fit; None if there are no rows."""
    asked = ", ".join(f"bool_or({one.wrong})" for one in casts)
    return connection.execute(f"SELECT {asked} FROM akrunner_rows").fetchall()[0] if casts else ()


class _Writing(Transaction):
    """Writes rows to a table in one transaction. They wait in a `KeptRows`, and go to the table by one statement at the end: DuckDB
    writes a large insert straight to its file, and each of many small ones also to its log."""

    def __init__(self, target: Target, table: str, schema: pa.Schema, overwrite: bool, place: Url) -> None:
        self._target, self._table, self._place = target, table, place
        target.begin()
        self._kept = KeptRows(schema)
        self._connection: Any = None
        self._is_ready = False
        try:
            self._casts = self._begun(schema, overwrite)
        except BaseException:
            self.close()
            raise

    def _begun(self, schema: pa.Schema, overwrite: bool) -> list[_Cast]:
        """Open the file and begin the transaction: make the table, or empty it. Return the columns to look at."""
        connection = _connected(self._target.at, f"output: cannot write {self._place.shown}", SinkError, writes=True)
        self._connection = connection
        connection.begin()
        if _columns_of(connection, self._table) is None:
            connection.register("akrunner_rows", schema.empty_table())
            connection.execute(f"CREATE TABLE {dotted(self._table)} AS SELECT * FROM akrunner_rows")
            return []
        if overwrite:
            connection.execute(f"DELETE FROM {dotted(self._table)}")
        return _casts(connection, self._table, schema)

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
        self._connection.register("akrunner_rows", rows)
        for one, is_wrong in zip(self._casts, _wrong(self._connection, self._casts)):
            if not is_wrong:
                continue
            ((row, value),) = self._connection.execute(
                f"SELECT row, {quoted(one.name)}::VARCHAR FROM (SELECT row_number() OVER () - 1 AS row, {quoted(one.name)} FROM "
                f"akrunner_rows) WHERE {one.wrong} ORDER BY row LIMIT 1"
            ).fetchall()
            shown = "a null" if value is None else repr(value)
            raise WriteError(
                f"output: {self._place.shown}: row {self._kept.rows + row}, column {one.name!r}: {shown} does not fit the table's "
                f"column, which is {one.kind}{' NOT NULL' if value is None else ''}"
            )

    def ready(self) -> None:
        if self._kept.rows and not self._is_ready:
            self._is_ready = True
            rows = self._kept.reader()
            names = ", ".join(map(quoted, rows.schema.names))
            self._connection.register("akrunner_rows", rows)
            text = f"INSERT INTO {dotted(self._table)} ({names}) SELECT {names} FROM akrunner_rows"
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
            if self._connection is not None:
                self._connection.close()
        finally:
            self._kept.drop()
            self._target.drop()


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
