"""SQLite: a file with tables, read and written by its ADBC driver.

SQLite keeps a type with each value, and the driver guesses a column's type from the first values that it meets. So the types of
a column's values are asked for before the column is read, and each value is cast to the type that holds all of them; a column
with values of several types is refused.
"""

from __future__ import annotations

import contextlib
import functools
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.column_types import is_octets
from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.io.commits import last_step
from akrunner.io.systems import apart
from akrunner.io.systems.adbc import Drawn, asked, driver
from akrunner.io.systems.base import TableSink, Transaction, Url, check_columns, quoted, tried
from akrunner.io.systems.database_file import Target, check_there, path_of, which_table
from akrunner.io.table import BATCH_ROWS, TableSource

#: how many seconds to wait for another program that is writing
_LOCKED_SECONDS = 60
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
        target = Target(path_of(place, "sqlite"), place.shown)
        # another library cannot have a new file open
        if not target.new and apart.needed():
            return apart.Apart("sqlite").output(url, schema, overwrite)
        with ours(SinkError, f"output: cannot write {place.shown}"):
            driver(*_EXTRA)
            for field in schema:
                _sent(field.name, field.type, place.shown)
            if not target.new:
                _check_target(target.at, place.table, schema, place.shown)
        table = place.table

        def begin() -> Transaction:
            target = Target(path_of(place, "sqlite"), place.shown)
            # another program may have made the file meanwhile
            if not target.new and apart.needed():
                return apart.Apart("sqlite").output(url, schema, overwrite).begin()
            return _Writing(target, table, schema, overwrite, place.shown)

        return TableSink(place.shown, schema, begin, path_of(place, "sqlite"))


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


def _connected(path: str, mode: str) -> Any:
    """Return a connection to a file.

    Args:
        mode: "ro" to read, "rw" to write, "rwc" to write and make the file if needed.
    """
    connection = driver(*_EXTRA).connect(f"file:{urllib.parse.quote(path)}?mode={mode}")
    with contextlib.closing(connection.cursor()) as cursor:
        # a pragma takes effect only if its answer is read
        cursor.execute(f"PRAGMA busy_timeout = {_LOCKED_SECONDS * 1000}")
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
    if columns is not None and set(columns) <= set(names):
        names = list(columns)
    wanted: list[str] = []
    for name in names:
        column = quoted(name)
        wanted += [f"SUM(typeof({column}) = '{kind}')" for kind in _TYPES]
        wanted.append(f"MAX(CASE WHEN typeof({column}) = 'integer' THEN max({column}, -({column} + 1)) END)")
    asked(cursor, lambda: cursor.execute(f"SELECT {', '.join(wanted) or '1'} FROM {rows}"))
    told = cursor.fetchone()
    found: list[_Column] = []
    for number, name in enumerate(names):
        *counts, largest = told[number * (len(_TYPES) + 1) : (number + 1) * (len(_TYPES) + 1)]
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


def _check_target(path: str, table: str, schema: pa.Schema, shown: str) -> None:
    """Check that the table, if it exists, takes the rows.

    Raises:
        SinkError: it lacks a column of the rows, or would make numbers of a column of text.
    """
    with contextlib.closing(_connected(path, "ro")) as connection, contextlib.closing(connection.cursor()) as cursor:
        known = _columns_of(cursor, table)
    if not known:
        return
    check_columns(pa.schema([(name, pa.null()) for name in known]), schema, shown)
    for field in schema:
        declared, affinity = known[field.name]
        if affinity in ("INTEGER", "REAL") and _is_text(field.type):
            raise SinkError(
                f"output: {shown}: column {field.name!r} is text, and the table's column is {declared}, of which SQLite makes numbers "
                f"('007' becomes 7); declare the column TEXT, or cast the rows' (output_schema=, --output-schema "
                f"'{field.name} {'bigint' if affinity == 'INTEGER' else 'double'}')"
            )


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


class _Writing(Transaction):
    """Writes rows to a table in one transaction."""

    def __init__(self, target: Target, table: str, schema: pa.Schema, overwrite: bool, shown: str) -> None:
        self._target, self._table, self._shown = target, table, shown
        self._rows = 0
        #: the columns of a table that was there: (declared type, affinity)
        self._there: dict[str, tuple[str, str]] = {}
        self._types: dict[str, tuple[str, pa.DataType]] = {field.name: _sent(field.name, field.type, shown) for field in schema}
        target.begin()
        self._connection = _connected(target.at, "rwc")
        self._cursor = self._connection.cursor()
        try:
            self._open(table, overwrite)
        except BaseException:
            self.close()
            raise

    def _open(self, table: str, overwrite: bool) -> None:
        """Make the table, or empty it, as the first step of the transaction."""
        there = _columns_of(self._cursor, table)
        # end the transaction: SQLite does not let a transaction that began by reading wait for other writers
        self._connection.commit()
        self._there = there
        if not there:
            declared = ", ".join(f"{quoted(name)} {kind}" for name, (kind, _) in self._types.items())
            self._unlocked(lambda: self._cursor.execute(f"CREATE TABLE {quoted(table)} ({declared})"))
        elif overwrite:
            self._unlocked(lambda: self._cursor.execute(f"DELETE FROM {quoted(table)}"))

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
        sent = pa.Table.from_arrays(arrays, names=rows.column_names)
        self._unlocked(lambda: self._cursor.adbc_ingest(self._table, sent, mode="append"))
        self._rows += rows.num_rows

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
        """Call `call`, which may have to wait for other writers of the database.

        Raises:
            WriteError: another one was writing for too long.
            Exception: whatever else `call` raises.
        """
        try:
            call()
        except Exception as e:
            if "database is locked" not in str(e):
                raise
            raise WriteError(
                f"output: cannot write {self._shown}: another program, or another connection of this one, has been writing to "
                f"this database for {_LOCKED_SECONDS} s (database is locked): end its transaction"
            ) from None

    def commit(self) -> None:
        last_step(self._shown, self._last, elsewhere=True)

    def _last(self) -> None:
        self._unlocked(self._connection.commit)
        # a new database is not there before its file is, whose connection must be closed for that
        if self._target.new:
            self._end()
            self._target.commit()

    def _end(self) -> None:
        with contextlib.suppress(Exception):
            self._cursor.close()
        self._connection.close()

    def close(self) -> None:
        try:
            self._end()
        finally:
            self._target.drop()
