"""Reads rows of PostgreSQL as the types that they have here, and ranges of a table's rows on several machines.

::

    submitter     a transaction that stays open: pg_export_snapshot(), the rows of each range counted (`akrunner.io.systems.pg_snapshot`)
    TaskManager   SET TRANSACTION SNAPSHOT, SELECT ... WHERE ctid >= '(0,0)' AND ctid < '(64,0)' -> the same rows

Flink's Python, in which agents run, may have the driver. It is imported when it is used.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import socket
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.errors import AkrunnerError, ReadError, SourceError
from akrunner.foreign import in_words, redacted

#: about how many bytes a batch of the driver has
BATCH_BYTES = 4 << 20
#: which run of which server it is, also if several have the same name
STARTED = "extract(epoch FROM pg_postmaster_start_time())::text"
#: the servers' and users' limits on how long a transaction may wait and last, and a statement, do not hold here: the time between two
#: rows, or two attempts, of a job may be hours. The transaction_timeout is there since PostgreSQL 17
ENDLESS = (
    "SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN "
    "('idle_in_transaction_session_timeout', 'statement_timeout', 'transaction_timeout')"
)
#: a range is found by its pages, in their order. The host's transaction holds a lock for as long as the job: who waits for that one,
#: to change the table, is waited for here
_WAYS = (
    "SELECT set_config('enable_seqscan', 'off', true), set_config('max_parallel_workers_per_gather', '0', true), "
    "set_config('lock_timeout', '30s', true)"
)
#: the first and the last timestamp that PostgreSQL has, in microseconds, and the first date, in days
_FIRST, _LAST, _FIRST_DAY = -211_813_488_000_000_000, 9_223_371_331_199_999_999, -2_440_588


class Column(NamedTuple):
    """A column of a query.

    Attributes:
        name: its name.
        type: its type in Arrow.
        expression: the SQL that reads it.
        looks: (an SQL expression for a number, what is wrong if a row has it above 1); "" for no check.
    """

    name: str
    type: pa.DataType
    expression: str
    looks: tuple[str, str] = ("", "")


class Range(NamedTuple):
    """Rows of a table that lie together.

    Attributes:
        first, end: the pages that it has: `first`, and all others before `end`.
        rows: how many rows these pages have.
        start, stop: which of these rows are meant, in the order in which they lie.
    """

    first: int
    end: int
    rows: int
    start: int
    stop: int


@dataclass(frozen=True)
class Ranges:
    """One state of a table of PostgreSQL, of which this machine reads ranges.

    Attributes:
        settings: `uri`, which libpq takes, without a password; `shown`, the table's name in errors; `table`, its name in SQL; `select`
            and `looks`, what `expressions` returns for its columns, and each column's `Column.looks`; `snapshot`, the name of the state;
            `started`, the value of `STARTED` where it is; `network`, if its host is a localhost, the only one that is meant; else "";
            `session`, parameters of a session -> their values; `revoked`, the files or directories of revoked certificates.
        secrets: `password`; nothing if this machine has to find one by itself.
    """

    settings: Mapping[str, Any]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    scheme = "postgresql"
    away = True

    @property
    def shown(self) -> str:
        """The table's name in errors."""
        return str(self.settings["shown"])

    def hidden(self, text: str) -> str:
        """Return a text without the password."""
        return redacted(text, tuple(value for value in self.secrets.values() if value))

    def unseen(self) -> str:
        """Return half a sentence that says why this machine cannot read the table; "" if it can."""
        try:
            with self._reading() as cursor:
                # the host does not wait longer than that
                cursor.execute("SELECT set_config('lock_timeout', '10s', true)")
                cursor.execute(f"SELECT {self.settings['select']} FROM {self.settings['table']} LIMIT 0")
        except ImportError:
            return "Flink's Python has no driver of PostgreSQL: pip install adbc-driver-postgresql there"
        except _Elsewhere as e:
            return str(e)
        # anything that the driver raises
        except Exception as e:
            return f"cannot read {self.shown}: {self.hidden(in_words(e))}"
        return ""

    def rows(self, schema: pa.Schema, ranges: Iterable[Range]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ranges, in order.

        Args:
            schema: the schema of the rows.
        Raises:
            ReadError: they cannot be read, or are not as many as were counted.
        """
        columns = [Column(one.name, one.type, "", (*looks,)) for one, looks in zip(schema, self.settings["looks"])]
        here = socket.gethostname()
        try:
            with self._reading() as cursor:
                for one in ranges:
                    rows = 0
                    for batch in plain(self._drawn(cursor, one), columns, self.shown):
                        rows += batch.num_rows
                        yield batch
                    if rows != one.stop - one.start:
                        raise ReadError(
                            f"source: {self.shown} gave {here} {rows:,} rows where {one.stop - one.start:,} were counted: may its user see "
                            "all of them? With files_there=False (--flink-files-here) the submitter reads the table"
                        )
        except ReadError:
            raise
        except AkrunnerError as e:
            raise ReadError(str(e)) from None
        except Exception as e:
            raise ReadError(
                f"source: cannot read {self.shown} on {here}: {self.hidden(str(e) if isinstance(e, _Elsewhere) else in_words(e))}"
            ) from None

    def _drawn(self, cursor: Any, one: Range) -> Iterator[pa.RecordBatch]:
        cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
        wanted = one.stop - one.start
        some = f" ORDER BY ctid OFFSET {one.start} LIMIT {wanted}" if wanted < one.rows else ""
        pages = f"ctid >= '({one.first},0)'::tid AND ctid < '({one.end},0)'::tid"
        cursor.execute(f"SELECT {self.settings['select']} FROM {self.settings['table']} WHERE {pages}{some}")
        yield from cursor.fetch_record_batch()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Any]:
        """Yield a cursor that sees the state.

        Raises:
            ImportError: there is no driver.
            _Elsewhere: it is not the server that has the state.
            Exception: whatever ADBC raises.
        """
        driver = importlib.import_module("adbc_driver_postgresql.dbapi")
        if self.settings["network"] not in ("", network()):
            # who listens there would be given the password
            raise _Elsewhere(f"the host of {self.shown} is the submitter's own machine: give the name that other machines know")
        for path in self.settings["revoked"]:
            # libpq would connect without a word
            if not os.path.exists(path):
                raise _Elsewhere(
                    f"{path}, which the submitter has for revoked certificates (sslcrl=, sslcrldir=), is not there"
                )
        password = "".join(f"&password={urllib.parse.quote(value, '')}" for value in self.secrets.values())
        with contextlib.closing(driver.connect(self.settings["uri"] + password)) as connection:
            with contextlib.closing(connection.cursor()) as cursor:
                cursor.execute(f"SELECT {STARTED}")
                if str(cursor.fetchone()[0]) != self.settings["started"]:
                    raise _Elsewhere(f"{self.shown} is another server there, or was started again")
                # a state is chosen before anything is asked in a transaction
                connection.rollback()
                see(cursor, self.settings["snapshot"])
                cursor.execute(_WAYS)
                for name, value in self.settings["session"].items():
                    cursor.execute("SELECT set_config($1, $2, true)", (name, value))
                yield cursor


class _Elsewhere(Exception):
    """It is another server; the text says so, as half a sentence."""


def network() -> str:
    """Return what only those processes have in common to which localhost is the same."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/net')}"
    except OSError:
        return socket.gethostname()


def see(cursor: Any, snapshot: str | None = None) -> None:
    """Let a transaction that has not asked for anything yet see one fixed state of the database, in UTC and without
    limits of time, and only read.

    Args:
        snapshot: the snapshot of another transaction, whose state this one then sees.
    """
    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    if snapshot is not None:
        cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
    # else what a query makes of times would depend on the server's settings and on this machine's PGTZ
    cursor.execute("SET LOCAL timezone = 'UTC'")
    cursor.execute(ENDLESS)


_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def in_query(name: str) -> str:
    """Return a name as a query has it: in quotes only if it must be."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def plain(batches: Iterator[pa.RecordBatch], columns: Sequence[Column], shown: str) -> Iterator[pa.RecordBatch]:
    """Yield the driver's batches in the types of the columns.

    Raises:
        SourceError: a value would change.
    """
    schema = pa.schema([(one.name, one.type) for one in columns])
    looks = [one for one in columns if one.looks[0]]
    for batch in batches:
        arrays = [_plain(batch.column(number), one, shown) for number, one in enumerate(columns)]
        for number, one in enumerate(looks, start=len(columns)):
            most = pc.max(batch.column(number)).as_py()
            if most is not None and most > 1:
                raise SourceError(
                    f"source: {shown}: column {one.name!r} {one.looks[1]}: --select 'SELECT {in_query(one.name)}::text AS "
                    f"{in_query(one.name)}, ... FROM ...' (select=), without ?table="
                )
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def expressions(columns: Sequence[Column]) -> str:
    """Return what a query selects: the columns, and behind them the expressions that `plain` checks."""
    return ", ".join([*(one.expression for one in columns), *(one.looks[0] for one in columns if one.looks[0])]) or "1"


def _plain(array: pa.Array, column: Column, shown: str) -> pa.Array:
    _check_finite(array, column.name, shown)
    if array.type == column.type:
        return array
    try:
        return array.cast(column.type)
    except pa.ArrowInvalid as e:
        raise SourceError(f"source: {shown}: column {column.name!r}: {e}; put &decimals=float64 behind ?table=...") from None


def _check_finite(array: pa.Array, name: str, shown: str) -> None:
    """Check that all dates and timestamps are finite; the driver returns infinite ones as numbers.

    Raises:
        SourceError: one is infinite.
    """
    values = array.flatten() if pa.types.is_list(array.type) else array
    if pa.types.is_date32(values.type):
        ends = pc.min_max(values.view(pa.int32())).as_py()
        odd = ends["min"] is not None and ends["min"] < _FIRST_DAY
    elif pa.types.is_timestamp(values.type):
        ends = pc.min_max(values.view(pa.int64())).as_py()
        odd = ends["min"] is not None and (ends["min"] < _FIRST or ends["max"] > _LAST)
    else:
        return
    if odd:
        said = in_query(name)
        way = f"{said}::text[]" if pa.types.is_list(array.type) else f"CASE WHEN isfinite({said}) THEN {said} END"
        raise SourceError(
            f"source: {shown}: column {name!r} has 'infinity' or '-infinity', which no type here has; leave ?table= out and write "
            f"the query: --select 'SELECT {way} AS {said}, ... FROM ...' (select=)"
        )
