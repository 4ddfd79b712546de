"""SQLite: a file with tables, read and written by its ADBC driver.

SQLite keeps a type with each value, and the driver guesses a column's type from the first values that it meets. So the types of
a column's values are asked for before the column is read, and each value is cast to the type that holds all of them; a column
with values of several types is refused.
"""

from __future__ import annotations

import contextlib
import functools
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.column_types import is_octets
from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.io.commits import last_step
from akrunner.io.limits import waits_on
from akrunner.io.sql import heard
from akrunner.io.systems import apart
from akrunner.io.systems.adbc import Drawn, asked, driver
from akrunner.io.systems.base import TableSink, Transaction, Url, check_asked, check_columns, made_meanwhile, quoted, tried
from akrunner.io.systems.database_file import Target, check_distinct, check_there, path_of, which_table
from akrunner.io.systems.kept_rows import KeptRows
from akrunner.io.table import BATCH_ROWS, TableSource

#: how many seconds to wait for another program that is writing, and how many of them at once in SQLite, which hears no signal there
_LOCKED_SECONDS, _AT_ONCE_SECONDS = 60, 0.5
#: SQLite gives no more than 2,000 columns at once; what is asked of so many columns stays below
_ASKED_COLUMNS = 300
_EXTRA = ("adbc_driver_sqlite", "sqlite")
#: a double holds every integer up to this
_EXACT = 1 << 53
#: text of which SQLite makes a number in a column of numbers
_NUMBER = r"\A[\t\n\v\f\r ]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[\t\n\v\f\r ]*\z"
#: text that SQLite writes for such a number again, but for its length
_PLAIN = r"\A(0|-?[1-9][0-9]*|-?[1-9][0-9]*\.[0-9]*[1-9]|-?0\.0{0,3}[1-9]|-?0\.0{0,3}[1-9][0-9]*[1-9])\z"
#: result of typeof() -> (Arrow's type, a value of it)
_TYPES = {
    "integer": (pa.int64(), "0"),
    "real": (pa.float64(), "0.0"),
    "text": (pa.string(), "''"),
    "blob": (pa.binary(), "x''"),
}


class _Sqlite:
    """SQLite as a `System`."""

    queries = True
    decimals: Sequence[str] = ()

    def in_files(self, url: str) -> bool:
        return True

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        place = Url.parse(url)
        place.check(("table",))
        path = path_of(place, "sqlite")
        check_there(path, place)
        if apart.needed():
            return apart.Apart("sqlite").open(url, query, columns)
        connect = functools.partial(_connected, path, "ro")
        what = tried(place.shown, query)
        with (
            ours(SourceError, what),
            contextlib.closing(connect()) as connection,
            contextlib.closing(connection.cursor()) as cursor,
        ):
            table = _table(cursor, place) if query is None else ""
            declared = _columns_of(cursor, table) if table else {}
            rows = quoted(table) if query is None else f"({query.strip().rstrip(';')}\n) AS q"
            found = _described(cursor, rows, columns, declared, place.shown)
        schema = pa.schema([(one.name, _TYPES[one.kind][0]) for one in found])

        def start(cursor: Any) -> pa.RecordBatchReader:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
            values, asked_for = ", ".join(_TYPES[one.kind][1] for one in found), ", ".join(one.expression for one in found)
            # an additional first row shows the driver every type
            asked(cursor, lambda: cursor.execute(f"SELECT {values} UNION ALL SELECT {asked_for} FROM {rows}"))
            return cursor.fetch_record_batch()

        drawn = Drawn(connect, start, SourceError, what)

        def batches() -> Iterator[pa.RecordBatch]:
            first = True
            for batch in drawn.batches():
                if [field.type for field in batch.schema] != [field.type for field in schema]:
                    raise SourceError(f"{what}: somebody has written values of another type meanwhile")
                named = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                yield named[1:] if first else named
                first = False

        return TableSource(schema, batches, place.shown, replayable=True, stop=drawn.stop)

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        place = Url.parse(url)
        place.check(("table",))
        if place.table is None:
            raise SinkError(f"output: {place.shown} names no table: put ?table=NAME behind it")
        table = place.table
        target = Target(path_of(place, "sqlite"), place.shown)
        # another library cannot have a new file open
        if not target.new and apart.needed():
            return apart.Apart("sqlite").output(url, schema, overwrite)
        with ours(SinkError, f"output: cannot write {place.shown}"):
            driver(*_EXTRA)
            for field in schema:
                _sent(field.name, field.type, place.shown)
            # another program may have the file locked for long
            is_there = heard(lambda: _check_target(target, table, schema, overwrite, place.shown))
        is_new = not is_there and not overwrite

        def begin() -> Transaction:
            target = Target(path_of(place, "sqlite"), place.shown)
            # another program may have made the file meanwhile
            if not target.new and apart.needed():
                sink = apart.Apart("sqlite").output(url, schema, overwrite)
                if is_new and not sink.is_new:
                    raise made_meanwhile(place.shown)
                return sink.begin()
            return _Writing(target, table, schema, overwrite, place.shown, is_new)

        return TableSink(place.shown, schema, begin, path_of(place, "sqlite"), is_new)


SYSTEM = _Sqlite()


class _Column(NamedTuple):
    """A column to read.

    Attributes:
        name: its name.
        kind: a key of `_TYPES`.
        expression: the SQL that gives its values.
    """

    name: str
    kind: str
    expression: str


def _connected(path: str, mode: str, seconds: float | None = None) -> Any:
    """Return a connection to a file.

    Args:
        mode: "ro" to read, "rw" to write, "rwc" to write and make the file if needed.
        seconds: how long a statement waits for other programs; given, the connection begins transactions only by BEGIN. None:
            `_LOCKED_SECONDS`, and the driver begins them.
    """
    connection = driver(*_EXTRA).connect(f"file:{urllib.parse.quote(path)}?mode={mode}", autocommit=seconds is not None)
    with contextlib.closing(connection.cursor()) as cursor:
        # a pragma takes effect only if its answer is read
        cursor.execute(f"PRAGMA busy_timeout = {int((_LOCKED_SECONDS if seconds is None else seconds) * 1000)}")
        cursor.fetchall()
    return connection


def _table(cursor: Any, place: Url) -> str:
    cursor.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY "
        "name"
    )
    return which_table(place, [str(row[0]) for row in cursor.fetchall()])


def _described(
    cursor: Any, rows: str, columns: Sequence[str] | None, declared: Mapping[str, tuple[str, str]], shown: str
) -> list[_Column]:
    """Return the columns, each with the type that holds all its values. Reads all rows.

    Args:
        rows: the table, or the query in parentheses, as SQL.
        columns: the only columns that are wanted; None: all.
        declared: what `_columns_of` says of the table, for columns that have no value; {} for a query.
        shown: the table in errors.
    Raises:
        SourceError: no type holds all values of a column.
    """
    asked(cursor, lambda: cursor.execute(f"SELECT * FROM {rows} LIMIT 0"))
    names: list[str] = cursor.fetch_record_batch().schema.names
    if columns is not None:
        check_asked(columns, names, shown)
        names = list(columns)
    found: list[_Column] = []
    for name, (*counts, largest) in zip(names, _counted(cursor, rows, names)):
        there = {kind for kind, count in zip(_TYPES, counts) if count}
        column = quoted(name)
        if not there and name in declared:
            found.append(_Column(name, _unused(*declared[name]), column))
        elif there == {"integer", "real"} and largest < _EXACT:
            found.append(_Column(name, "real", f"CAST({column} AS REAL)"))
        elif len(there) > 1:
            listed = ", ".join(f"{int(count):,} {kind}" for kind, count in zip(_TYPES, counts) if count)
            raise SourceError(
                f"source: {shown}: column {name!r} has values of several types ({listed}); leave ?table= out and write the "
                f"query, which SQLite runs: --select 'SELECT CAST({column} AS TEXT) AS {column}, ... FROM ...' (select=)"
            )
        else:
            found.append(_Column(name, next(iter(there), "text"), column))
    return found


def _counted(cursor: Any, rows: str, names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield, for each column, how many values it has of each of `_TYPES`, and its integer that is farthest from 0.

    Args:
        rows: as in `_described`.
    """
    each = len(_TYPES) + 1
    for start in range(0, len(names), _ASKED_COLUMNS):
        wanted: list[str] = []
        for column in map(quoted, names[start : start + _ASKED_COLUMNS]):
            wanted += [f"SUM(typeof({column}) = '{kind}')" for kind in _TYPES]
            wanted.append(f"MAX(CASE WHEN typeof({column}) = 'integer' THEN max({column}, -({column} + 1)) END)")
        text = f"SELECT {', '.join(wanted)} FROM {rows}"
        asked(cursor, functools.partial(cursor.execute, text))
        told = cursor.fetchone()
        yield from (told[first : first + each] for first in range(0, len(told), each))


def _check_target(target: Target, table: str, schema: pa.Schema, overwrite: bool, shown: str) -> bool:
    """Check that the table, if it exists, takes the rows; else that SQLite makes such a table. Returns: whether it exists.

    Raises:
        SinkError: it lacks a column of the rows, or would make numbers of a column of text; or two columns are one to SQLite.
        Exception: whatever the driver raises for a table that cannot be made, or a view.
    """
    check_distinct(schema.names, shown, "SQLite")
    known = {}
    if not target.new:
        with contextlib.closing(_connected(target.at, "ro")) as connection, contextlib.closing(connection.cursor()) as cursor:
            known = _columns_of(cursor, table)
            # without columns the schema is not known yet
            if known and schema.names and set(schema.names) <= set(known):
                names = ", ".join(map(quoted, schema.names))
                cursor.execute(f"EXPLAIN INSERT INTO {quoted(table)} ({names}) SELECT {', '.join(['NULL'] * len(schema))}")
                if overwrite:
                    cursor.execute(f"EXPLAIN DELETE FROM {quoted(table)}")
    if not known:
        if schema.names:
            with contextlib.closing(_connected("", "memory")) as connection, contextlib.closing(connection.cursor()) as cursor:
                cursor.execute(_made(table, schema, shown))
        return False
    check_columns(pa.schema([(name, pa.null()) for name in known]), schema, shown)
    for field in schema:
        declared, affinity = known[field.name]
        if affinity in ("INTEGER", "REAL") and _is_text(field.type):
            raise SinkError(
                f"output: {shown}: column {field.name!r} is text, and the table's column is {declared}, of which SQLite makes numbers "
                f"('007' becomes 7); declare the column TEXT, or cast the rows' (output_schema=, --output-schema "
                f"'{field.name} {'bigint' if affinity == 'INTEGER' else 'double'}')"
            )
    return True


def _columns_of(cursor: Any, table: str) -> dict[str, tuple[str, str]]:
    """Return {column: (the type with which it was declared, its affinity)} of a table or view; {} if there is none."""
    cursor.execute("SELECT max(strict), max(type) FROM pragma_table_list(?)", (table,))
    strict, kind = cursor.fetchone()
    cursor.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    # of a view's expressions SQLite says BLOB
    told = {str(name): "" if (kind, words) == ("view", "BLOB") else str(words or "") for name, words in cursor.fetchall()}
    return {name: (words, _affinity(words, bool(strict))) for name, words in told.items()}


def _affinity(declared: str, strict: bool) -> str:
    """Return the affinity of a column, by SQLite's rules for the words of a declaration: what it makes of values when they are stored.

    Args:
        strict: whether the table is STRICT, in which ANY leaves each value as it is.
    """
    words = declared.upper()
    if "INT" in words:
        return "INTEGER"
    if any(one in words for one in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in words or not words or (strict and words == "ANY"):
        return "BLOB"
    return "REAL" if any(one in words for one in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def _unused(declared: str, affinity: str) -> str:
    """Return the key of `_TYPES` for a column in which all values are null."""
    words = declared.upper()
    if affinity == "NUMERIC":
        # dates are of this affinity, too, and mostly text
        return "real" if "DEC" in words or "NUM" in words else "integer" if "BOOL" in words else "text"
    # without a declaration, the affinity says nothing
    return affinity.lower() if words and words != "ANY" else "text"


def _changed(column: pa.ChunkedArray, kind: pa.DataType, affinity: str) -> pa.ChunkedArray:
    """Return, for each text, whether SQLite stores another value in a column of numbers. Texts that are no numbers stay what they are.

    Args:
        column: text, as SQLite gets it.
        kind: the type of the rows: text that is a number must be written as SQLite writes numbers, of a decimal only the value counts.
        affinity: INTEGER, REAL or NUMERIC.
    """
    bare = pc.utf8_ltrim(column, "-")
    whole = pc.match_substring_regex(bare, r"\A[0-9]+\z")
    digits = pc.utf8_ltrim(pc.replace_substring_regex(bare, r"[eE].*|\.", ""), "0")
    digits = pc.if_else(whole, digits, pc.utf8_rtrim(digits, "0"))
    # a double holds any 15 digits; 19 digits are compared as text with the largest integer
    length = pc.utf8_length(digits)
    in_integer = pc.or_(pc.less(length, 19), pc.and_(pc.equal(length, 19), pc.less_equal(digits, str((1 << 63) - 1))))
    exact = pc.less_equal(length, 15)
    if affinity != "REAL":
        exact = pc.or_(exact, pc.and_(whole, in_integer))
    if pa.types.is_decimal(kind):
        return pc.invert(exact)
    number = pc.match_substring_regex(column, _NUMBER)
    return pc.and_(number, pc.invert(pc.and_(exact, pc.match_substring_regex(column, _PLAIN))))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _sent(name: str, kind: pa.DataType, shown: str) -> tuple[str, pa.DataType]:
    """Return (SQLite's type, the Arrow type in which the driver gets it) for a column.

    Raises:
        SinkError: SQLite has no such type.
    """
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return "INTEGER", pa.int64()
    if pa.types.is_floating(kind):
        return "REAL", pa.float64()
    if is_octets(kind):
        return "BLOB", pa.binary()
    if _is_text(kind) or pa.types.is_decimal(kind):
        return "TEXT", pa.string()
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind) and not pa.types.is_interval(kind):
        # the text form that SQLite's own date functions take
        return "TEXT", pa.string()
    raise SinkError(
        f"output: {shown}: column {name!r} is of type {kind}, for which SQLite has none; write it as text, or to another place"
    )


def _made(table: str, schema: pa.Schema, shown: str) -> str:
    """Return the statement that makes a table for rows."""
    declared = ", ".join(f"{quoted(field.name)} {_sent(field.name, field.type, shown)[0]}" for field in schema)
    return f"CREATE TABLE {quoted(table)} ({declared})"


class _Writing(Transaction):
    """Writes rows to a table in one transaction.

    They wait in a `KeptRows`, and go to a file that was there at the end: from the moment at which SQLite writes to the file,
    no other program can read it, and SQLite itself waits for those that read. Nobody else has a new file open.

    Args: must_be_new: whether the job found no table when it began, so that one that is there is another program's.
    """

    def __init__(self, target: Target, table: str, schema: pa.Schema, overwrite: bool, shown: str, must_be_new: bool) -> None:
        self._target, self._table, self._shown = target, table, shown
        self._schema, self._overwrite = schema, overwrite
        self._rows = 0
        self._types: dict[str, tuple[str, pa.DataType]] = {field.name: _sent(field.name, field.type, shown) for field in schema}
        #: the columns of a table that was there: (declared type, affinity)
        self._there: dict[str, tuple[str, str]] = {}
        self._connection: Any = None
        self._cursor: Any = None
        self._is_ready = False
        target.begin()
        self._kept = KeptRows(pa.schema([(name, kind) for name, (_, kind) in self._types.items()]))
        try:
            if target.new:
                self._begin()
            else:
                self._there = heard(self._known)
                if must_be_new and self._there:
                    raise made_meanwhile(shown)
        except BaseException:
            self.close()
            raise

    def _known(self) -> dict[str, tuple[str, str]]:
        with (
            contextlib.closing(_connected(self._target.at, "ro")) as connection,
            contextlib.closing(connection.cursor()) as cursor,
        ):
            return _columns_of(cursor, self._table)

    def _begin(self) -> None:
        """Open the file and begin the transaction: make the table, or empty it.

        Raises:
            WriteError: somebody else has changed the table since its columns were looked at, or has the database locked.
        """
        self._connection = _connected(self._target.at, "rwc" if self._target.new else "rw", _AT_ONCE_SECONDS)
        self._cursor = self._connection.cursor()
        # also waits for those who read, so that neither the rows nor the commit have to
        self._unlocked(lambda: self._cursor.execute("BEGIN EXCLUSIVE"))
        there = _columns_of(self._cursor, self._table)
        if bool(there) != bool(self._there) or any(there.get(name) != self._there.get(name) for name in self._types):
            raise WriteError(f"output: {self._shown}: somebody has made or changed the table meanwhile; run the job again")
        if not there:
            self._cursor.execute(_made(self._table, self._schema, self._shown))
        elif self._overwrite:
            self._cursor.execute(f"DELETE FROM {quoted(self._table)}")

    def append(self, rows: pa.Table) -> None:
        arrays = []
        for name, column in zip(rows.column_names, rows.columns):
            affinity = self._there.get(name, ("", ""))[1]
            if affinity == "REAL" and column.type in (pa.int64(), pa.uint64()):
                self._check_exact(name, column)
            try:
                arrays.append(column.cast(self._types[name][1]))
            except pa.ArrowInvalid as e:
                raise WriteError(f"output: column {name!r} cannot become SQLite's {self._types[name][0]}: {e}") from None
            if affinity in ("INTEGER", "REAL", "NUMERIC") and (_is_text(column.type) or pa.types.is_decimal(column.type)):
                self._check_same(name, arrays[-1], column.type)
        sent = pa.Table.from_arrays(arrays, names=rows.column_names).combine_chunks()
        for batch in sent.to_batches():
            if self._target.new:
                self._put(batch)
            else:
                self._kept.append(batch)
        self._rows += rows.num_rows

    def _put(self, batch: pa.RecordBatch) -> None:
        self._cursor.adbc_ingest(self._table, batch, mode="append")

    def _check_exact(self, name: str, column: pa.ChunkedArray) -> None:
        """Check that integers stay the same in a column of doubles.

        Raises:
            WriteError: one would not.
        """
        beyond = pc.greater(column, _EXACT)
        if column.type == pa.int64():
            beyond = pc.or_(beyond, pc.less(column, -_EXACT))
        row = pc.index(beyond, True).as_py()
        if row >= 0:
            raise WriteError(
                f"output: {self._shown}: row {self._rows + row}, column {name!r}: the table's column is REAL, and SQLite may change "
                f"{column[row]} there, as it is beyond 2**53; write to a table whose column is INTEGER"
            )

    def _check_same(self, name: str, column: pa.ChunkedArray, kind: pa.DataType) -> None:
        """Check that text, or decimals as text, stay the same in a column of numbers.

        Args:
            kind: the type of the rows.
        Raises:
            WriteError: one would not.
        """
        declared, affinity = self._there[name]
        row = pc.index(_changed(column, kind, affinity), True).as_py()
        if row >= 0:
            raise WriteError(
                f"output: {self._shown}: row {self._rows + row}, column {name!r}: the table's column is {declared}, and SQLite would make "
                f"another number or text of {column[row].as_py()[:80]!r} there; declare the column TEXT, or cast the rows' "
                "(output_schema=, --output-schema)"
            )

    def _unlocked(self, call: Callable[[], Any]) -> None:
        """Call `call`, which may have to wait for other programs that have the database open.

        Raises:
            WriteError: another one had it locked for too long.
            JobTimeoutError: the job's time is over.
            Exception: whatever else `call` raises.
        """
        begun = time.monotonic()
        while True:
            try:
                call()
                return
            except Exception as e:
                if "database is locked" not in str(e):
                    raise
            if time.monotonic() >= begun + _LOCKED_SECONDS:
                raise WriteError(
                    f"output: cannot write {self._shown}: another program, or another connection of this one, has been writing to "
                    f"this database for {_LOCKED_SECONDS} s, or reading it (database is locked): end its transaction"
                )
            waits_on(f"another program that has {self._shown} locked", begun)

    def ready(self) -> None:
        if self._is_ready:
            return
        self._is_ready = True
        if not self._target.new:
            self._begin()
            # one call for each batch: a signal takes effect between them
            for batch in self._kept.reader():
                self._put(batch)

    def commit(self) -> None:
        self.ready()
        last_step(self._shown, self._last, elsewhere=True)

    def _last(self) -> None:
        self._cursor.execute("COMMIT")
        # a new database is not there before its file is, whose connection must be closed for that
        if self._target.new:
            self._end()
            self._target.commit()

    def _end(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                self._cursor.close()
            connection.close()

    def close(self) -> None:
        try:
            self._end()
        finally:
            self._kept.drop()
            self._target.drop()
