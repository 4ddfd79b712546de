"""PostgreSQL, by its ADBC driver.

::

    postgresql://me@host/shop?table=sales            the table, read over several connections of one snapshot if it is large
    postgresql://me@host/shop, and a query           the database runs it
    output: COPY into the table, in one transaction
            COPY into a temporary one, if rows are cast or replace those that are there; at the commit from there into the table
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
import queue
import re
import threading
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from akrunner.checks import shown, whole_of
from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.foreign import in_words, ours
from akrunner.io import pg_ranges
from akrunner.io.commits import last_step, still_runs
from akrunner.io.paths import local_path
from akrunner.io.systems import libpq, pg_types
from akrunner.io.systems.adbc import driver
from akrunner.io.systems.base import (
    TableSink,
    Transaction,
    Url,
    check_asked,
    check_columns,
    check_days,
    check_hours,
    check_truths,
    days_lost,
    dotted,
    made_meanwhile,
    quoted,
    slices,
    tried,
)
from akrunner.io.systems.pg_connection import Connection
from akrunner.io.systems.pg_snapshot import Snapshot
from akrunner.io.table import TableSource
from akrunner.wire.near import nearest

#: the options that akrunner takes itself; the others are libpq's
_OURS = ("table", "password_file", "decimals", "connections")
#: a table of more bytes than this is read over several connections
_LARGE = 64 << 20
_CONNECTIONS = 4
#: how many batches of a connection may wait to be drawn
_AHEAD = 2
_CONNECT_SECONDS = 30
#: libpq's options by which a connection ends two minutes after the network has gone silent; the system's own are hours
_SILENCE = {"keepalives_idle": "60", "keepalives_interval": "15", "keepalives_count": "4", "tcp_user_timeout": "120000"}
_WAIT = 0.1
#: how many minutes the commit of a job waits for another one that replaces the rows of the same table
_LOCK_MINUTES = 10
#: how many seconds a job waits for a program that is just making the same table: it may go on for hours
_MAKING_SECONDS = 30
#: what PostgreSQL answers (SQLSTATE) if a lock did not come in time, and if two programs make one table at the same time
_NO_LOCK, _MADE_TWICE = "55P03", "23505"


class _Postgres:
    """PostgreSQL as a `System`."""

    queries = True
    #: what `?decimals=` may say
    decimals = pg_types.DECIMALS

    def in_files(self, url: str) -> bool:
        return False

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        place = _Place(url)
        table = place.url.table
        if table is None and query is None:
            raise SourceError(
                f"source: {place.shown} names no table: put ?table=NAME (or SCHEMA.NAME) behind it, or give select= "
                "(--select), which the database runs"
            )
        with ours(SourceError, tried(place.shown, query)), place.reading() as cursor:
            rows = place.named(cursor, table) if table is not None else f"({_inner(query or '')}\n) AS q"
            schema = cursor.adbc_execute_schema(f"SELECT * FROM {rows}")
            if columns is not None:
                check_asked(columns, schema.names, place.shown)
                schema = pa.schema([schema.field(schema.names.index(name)) for name in columns])
            found = pg_types.described(cursor, schema, place.decimals, place.shown)
        reading = _Reading(place, rows, found, table)
        schema = pa.schema([(one.name, one.type) for one in found])
        source = TableSource(schema, reading.batches, place.shown, replayable=True, stop=reading.stop)
        if table is None:
            return source
        return dataclasses.replace(source, held=functools.partial(Snapshot.of, place, rows, found))

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        place = _Place(url)
        if place.url.table is None:
            raise SinkError(f"output: {place.shown} names no table: put ?table=NAME (or SCHEMA.NAME) behind it")
        with ours(SinkError, f"output: cannot write {place.shown}"):
            # do all that can fail before the job starts, and roll it back
            with contextlib.closing(_Writing(place, schema, overwrite)) as writing:
                is_new = writing.rehearse() and not overwrite
        return TableSink(place.shown, schema, lambda: _Writing(place, schema, overwrite, is_new), is_new=is_new)


SYSTEM = _Postgres()


class _Place:
    """A database.

    Attributes:
        url: the parts of its URL.
        shown: the URL in errors.
        decimals: what numerics without a fixed precision become; None: they are refused.
        connections: over how many connections a large table is read.
    """

    def __init__(self, text: str) -> None:
        self.url = Url.parse(text)
        self.shown = self.url.shown
        self.url.check(_OURS, list(libpq.OPTIONS))
        self.decimals = self.url.options.get("decimals")
        if self.decimals not in (None, *pg_types.DECIMALS):
            raise ConfigError(f"{self.shown}: decimals= is {' or '.join(pg_types.DECIMALS)}, not {self.decimals!r}")
        given = self.url.options.get("connections")
        number = whole_of(given) if given is not None else min(_CONNECTIONS, os.cpu_count() or 1)
        if number is None or not 1 <= number <= 64:
            raise ConfigError(f"{self.shown}: connections= is a whole number from 1 to 64, not {shown(given)}")
        self.connections = number

    @property
    def libpq(self) -> dict[str, str]:
        """libpq's options in the URL, and ours, without a password."""
        options = {name: value for name, value in self.url.options.items() if name not in _OURS}
        options.setdefault("application_name", "akrunner")
        if "PGCONNECT_TIMEOUT" not in os.environ:
            options.setdefault("connect_timeout", str(_CONNECT_SECONDS))
        if "service" not in options and "PGSERVICE" not in os.environ:
            # a service's file may have its own
            return {**_SILENCE, **options}
        return options

    @functools.cached_property
    def password(self) -> str | None:
        """The password in the file of `password_file=`; None if there is none."""
        secret = self.url.options.get("password_file")
        if secret is None:
            return None
        with open(local_path(secret, "password_file"), encoding="utf-8") as file:
            return file.readline().rstrip("\r\n")

    @property
    def _uri(self) -> str:
        """The URL for libpq, which finds what the URL lacks in PGPASSWORD, PGHOST, ~/.pgpass and the like."""
        options = self.libpq
        if self.password is not None:
            options["password"] = self.password
        return f"{self.url.base}?{urllib.parse.urlencode(options, quote_via=urllib.parse.quote)}"

    @property
    def _ports(self) -> set[int] | None:
        """The ports that the server may have; None: a service's file says them."""
        if "service" in self.libpq or "PGSERVICE" in os.environ:
            return None
        told = (
            f"{self.url.options.get('port', '')},{os.environ.get('PGPORT', '')},{urllib.parse.urlsplit(self.url.base).netloc}"
        )
        return {5432, *(int(port) for port in re.findall(r"(?<![^,:])(\d{1,5})(?=,|$)", told))}

    def connect(self) -> Connection:
        """Return a connection in a transaction.

        Raises:
            Exception: whatever ADBC raises.
            ConfigError: the driver is missing.
        """
        postgres = driver("adbc_driver_postgresql", "postgres")
        return Connection(lambda: postgres.connect(self._uri), self.shown, self._ports)

    @contextlib.contextmanager
    def reading(self, snapshot: str | None = None) -> Iterator[Any]:
        """Yield a cursor that sees one fixed state of the database.

        Args:
            snapshot: the snapshot of another transaction, whose state this one then sees.
        """
        with contextlib.closing(self.connect()) as connection, contextlib.closing(connection.cursor()) as cursor:
            pg_ranges.see(cursor, snapshot)
            yield cursor

    def named(self, cursor: Any, table: str) -> str:
        """Return a table's name with its schema, quoted.

        Raises:
            SourceError: there is no such table.
        """
        found = _found(cursor, table)
        if found is None:
            cursor.execute(
                "SELECT CASE WHEN n.nspname = ANY (current_schemas(false)) THEN c.relname ELSE n.nspname || '.' || c.relname "
                "END FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r','v','m','f','p') "
                "AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1 LIMIT 1000"
            )
            raise SourceError(
                f"source: {self.shown}: there is no table {table!r}{_nearby(table, [row[0] for row in cursor.fetchall()])}"
            )
        return found


def _nearby(name: str, there: list[str]) -> str:
    few = (
        f" (there are {', '.join(there[:10])}{' and others' if len(there) > 10 else ''})"
        if there
        else " (there is none at all)"
    )
    return few + nearest(name, there)


def _found(cursor: Any, table: str) -> str | None:
    """Return a table's name with its schema, quoted; None if there is no such table.

    Args:
        table: the bare name, or a name as SQL has it: NAME, SCHEMA.NAME, "a.b".
    """
    for name in (quoted(table), dotted(table)):
        cursor.execute(
            "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = "
            "c.relnamespace WHERE c.oid = to_regclass($1) AND c.relkind IN ('r','v','m','f','p')",
            (name,),
        )
        row = cursor.fetchone()
        if row is not None:
            return str(row[0])
    return None


def _inner(query: str) -> str:
    """Return a query as it may stand within another one; what stands behind it begins a new line, as it may end in a comment."""
    return query.strip().rstrip(";")


class _Reading:
    """Reads the rows of a table or a query, as often as they are wanted.

    Args:
        rows: the text behind FROM.
        columns: the columns to read.
        table: the table's name; None: the rows are a query's.
    """

    def __init__(self, place: _Place, rows: str, columns: Sequence[pg_ranges.Column], table: str | None) -> None:
        self._place, self._rows, self._columns, self._table = place, rows, columns, table
        self._cursors: list[Any] = []
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()
        for cursor in list(self._cursors):
            cursor.adbc_cancel()

    def batches(self) -> Iterator[pa.RecordBatch]:
        self._stopped.clear()
        with ours(SourceError, f"source: cannot read {self._place.shown}"):
            with self._place.reading() as cursor:
                parts = self._parts(cursor)
                if parts is None:
                    yield from slices(pg_ranges.plain(self._drawn(cursor, ""), self._columns, self._place.shown))
                    return
                cursor.execute("SELECT pg_export_snapshot()")
                snapshot = str(cursor.fetchone()[0])
                yield from slices(pg_ranges.plain(self._beside(snapshot, parts), self._columns, self._place.shown))

    def _parts(self, cursor: Any) -> list[str] | None:
        """Return conditions that divide the table into parts; None if one connection reads it."""
        many = self._place.connections
        if self._table is None or many < 2:
            return None
        cursor.execute(
            "SELECT pg_relation_size(c.oid), current_setting('block_size')::bigint FROM pg_class c WHERE c.oid = "
            "to_regclass($1) AND c.relkind IN ('r','m') AND NOT pg_is_in_recovery()",
            (self._place.named(cursor, self._table),),
        )
        row = cursor.fetchone()
        if row is None or row[0] < _LARGE:
            return None
        pages = -(-row[0] // row[1])
        ends = [pages * number // many for number in range(many + 1)]
        # the last part has no end: rows behind it are not in the snapshot anyway
        return [
            f"WHERE ctid >= '({start},0)'::tid" + (f" AND ctid < '({end},0)'::tid" if end < pages else "")
            for start, end in itertools.pairwise(ends)
        ]

    def _drawn(self, cursor: Any, condition: str) -> Iterator[pa.RecordBatch]:
        cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(pg_ranges.BATCH_BYTES)})
        query = f"SELECT {pg_ranges.expressions(self._columns)} FROM {self._rows} {condition}"
        self._cursors.append(cursor)
        ended = False
        try:
            cursor.execute(query)
            yield from cursor.fetch_record_batch()
            ended = True
        finally:
            self._cursors.remove(cursor)
            if not ended:
                cursor.adbc_cancel()

    def _beside(self, snapshot: str, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield what several connections read at the same time: a batch of each in turn, so that the order is always the
        same."""
        over = threading.Event()
        waiting: list[queue.Queue[Any]] = [queue.Queue(_AHEAD) for _ in parts]

        def read(number: int) -> None:
            try:
                with self._place.reading(snapshot) as cursor:
                    for batch in self._drawn(cursor, parts[number]):
                        if not _put(waiting[number], batch, over):
                            return
                _put(waiting[number], None, over)
            except BaseException as e:
                _put(waiting[number], e, over)

        threads = [
            threading.Thread(target=read, args=(number,), name=f"akrunner-postgres-{number}", daemon=True)
            for number in range(len(parts))
        ]
        for thread in threads:
            thread.start()
        try:
            left = list(waiting)
            while left:
                for one in list(left):
                    come = _get(one, self._stopped)
                    if come is None:
                        left.remove(one)
                    elif isinstance(come, BaseException):
                        raise come
                    else:
                        yield come
        finally:
            over.set()
            for cursor in list(self._cursors):
                cursor.adbc_cancel()
            for thread in threads:
                thread.join(5.0)


def _put(to: queue.Queue[Any], what: Any, over: threading.Event) -> bool:
    while not over.is_set():
        with contextlib.suppress(queue.Full):
            to.put(what, timeout=_WAIT)
            return True
    return False


def _get(source: queue.Queue[Any], stopped: threading.Event) -> Any:
    while True:
        try:
            return source.get(timeout=_WAIT)
        except queue.Empty:
            if stopped.is_set():
                raise SourceError("source: the read was ended") from None


class _Target(NamedTuple):
    """A table that exists.

    Attributes:
        name: its name, quoted.
        place: (schema, name), not quoted.
        kind: PostgreSQL's letter for what it is: "r" for a table, "v" for a view.
        user: who writes to it, quoted.
        types: column -> PostgreSQL's words for its type.
        bare: column -> the same without a length or digits.
        shut: the columns into which the user may not insert.
    """

    name: str
    place: tuple[str, str]
    kind: str
    user: str
    types: dict[str, str]
    bare: dict[str, str]
    shut: list[str]


class _Writing(Transaction):
    """Writes rows to a table in one transaction.

    Rows that replace those of the table wait in a temporary one. Only at the commit does the job lock the table, which another job that
    replaces its rows does too, and delete what is there then: also the rows of that other job. Programs that read the table or add rows
    to it do not wait for this lock.

    Args: must_be_new: whether the job found no table when it began, so that one that is there is another program's.
    """

    def __init__(self, place: _Place, schema: pa.Schema, overwrite: bool, must_be_new: bool = False) -> None:
        self._place, self._overwrite = place, overwrite
        self._must_be_new, self._is_new = must_be_new, False
        self._table = place.url.table or ""
        self._columns = pg_types.written(schema, place.shown)
        self._connection = place.connect()
        self._cursor = self._connection.cursor()
        self._begun = False
        #: the table that rows are sent to (name, schema, whether it is temporary); `_brings` is the statement that copies them
        #: from there to the output's table, "" if they are the same
        self._sent_to: tuple[str, str, bool] = ("", "", False)
        self._brings = ""
        #: the statements that lock the output's table and delete its rows
        self._clears: list[str] = []
        #: the columns that are booleans in the table
        self._truths: list[str] = []
        #: the columns that are dates in the table, and those that are times of a day; also lists of them
        self._days: list[str] = []
        self._hours: list[str] = []
        self._rows = 0

    def rehearse(self) -> bool:
        """Do everything but send rows, and roll it back. Returns: whether there is no table yet.

        Raises:
            SinkError: it cannot be done.
        """
        self._begin()
        self._connection.rollback()
        return self._is_new

    def _begin(self) -> None:
        """Begin the transaction's work: make the table, or prepare the existing one."""
        cursor = self._cursor
        self._begun = True
        # each statement has to see what others have committed until then, whatever the server's own setting is
        cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute(pg_ranges.ENDLESS)
        # casts between times with and without a zone happen in the session's
        cursor.execute("SET LOCAL timezone = 'UTC'")
        target = self._target()
        declared = ", ".join(f"{quoted(one.name)} {one.type}" for one in self._columns)
        if target is None:
            self._is_new = True
            self._make(declared)
            return
        if self._must_be_new:
            raise made_meanwhile(self._place.shown)
        check_columns(
            pa.schema([(name, pa.null()) for name in target.types]),
            pa.schema([(one.name, pa.null()) for one in self._columns]),
            self._place.shown,
        )
        self._check_rights(target)
        if self._overwrite:
            self._clear(target)
        if not self._columns:
            # they are not known yet: this is a rehearsal
            return
        schema, name = target.place
        # COPY takes no view, does not cast, and would bring new rows beside the old ones, whose keys they may have
        if (
            not self._overwrite
            and target.kind not in ("v", "m")
            and all(target.types[one.name] == one.type for one in self._columns)
        ):
            self._sent_to = (name, schema, False)
            return
        cursor.execute(f"CREATE TEMPORARY TABLE akrunner_rows ({declared}) ON COMMIT DROP")
        self._truths = [one.name for one in self._columns if target.bare[one.name].rstrip("[]") == "boolean"]
        self._days = [one.name for one in self._columns if target.bare[one.name].rstrip("[]") == "date"]
        self._hours = [one.name for one in self._columns if target.bare[one.name].startswith("time ")]
        for one in self._columns:
            if one.type.startswith("timestamp") and target.bare[one.name].startswith("time "):
                raise days_lost(one.name, target.bare[one.name], self._place.shown)
        names = ", ".join(quoted(one.name) for one in self._columns)
        # a cast to varchar(3) would cut a longer text, which INSERT refuses
        casts = ", ".join(f"{quoted(one.name)}::{target.bare[one.name]}" for one in self._columns)
        # as COPY does, INSERT has to take the values of columns that are GENERATED ALWAYS AS IDENTITY
        self._brings = f"INSERT INTO {target.name} ({names}) OVERRIDING SYSTEM VALUE SELECT {casts} FROM akrunner_rows"
        # run it now, without rows, to report early a type that cannot be cast or a missing right
        cursor.execute(self._brings)
        self._sent_to = ("akrunner_rows", "", True)

    def _make(self, declared: str) -> None:
        """Make the table.

        Raises:
            SinkError: another program makes it at the same time.
        """
        self._cursor.execute(f"SET LOCAL lock_timeout = '{_MAKING_SECONDS}s'")
        try:
            self._cursor.execute(f"CREATE TABLE {dotted(self._table)} ({declared})")
        except Exception as e:
            if _state(e) not in (_NO_LOCK, _MADE_TWICE):
                raise
            raise SinkError(
                f"output: {self._place.shown}: another program makes the same table at this time; nothing was written: run the job "
                "again when that one has ended, or name another table"
            ) from None
        schema, dot, name = self._table.partition(".")
        self._sent_to = (name, schema, False) if dot and name else (self._table, "", False)

    def _check_rights(self, target: _Target) -> None:
        """Check that the user may insert rows.

        Raises:
            SinkError: the right is missing.
        """
        is_all = len(target.shut) == len(target.types)
        shut = [one.name for one in self._columns if one.name in target.shut]
        if not self._columns and is_all:
            # which columns the job writes is not known yet
            shut = target.shut
        if not shut:
            return
        some = "" if is_all else f" ({', '.join(map(quoted, shut))})"
        raise SinkError(
            f"output: {self._place.shown}: the user may not insert rows (column {shut[0]!r}): GRANT INSERT{some} ON {target.name} "
            f"TO {target.user}"
        )

    def _clear(self, target: _Target) -> None:
        """Prepare to delete the table's rows. Other readers see them until the commit."""
        # checks the right
        self._cursor.execute(f"DELETE FROM {target.name} WHERE false")
        # PostgreSQL locks no foreign table
        locks = [f"LOCK TABLE {target.name} IN SHARE UPDATE EXCLUSIVE MODE"] if target.kind != "f" else []
        self._clears = [f"SET LOCAL lock_timeout = '{_LOCK_MINUTES}min'", *locks, f"DELETE FROM {target.name}"]

    def _target(self) -> _Target | None:
        name = _found(self._cursor, self._table)
        if name is None:
            return None
        self._cursor.execute(
            "SELECT attname, format_type(atttypid, atttypmod), format_type(atttypid, -1), has_column_privilege(attrelid, attnum, "
            "'INSERT') FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' "
            "ORDER BY attnum",
            (name,),
        )
        columns = [
            (str(column), str(whole), str(bare), bool(is_open)) for column, whole, bare, is_open in self._cursor.fetchall()
        ]
        self._cursor.execute(
            "SELECT n.nspname, c.relname, c.relkind::text, quote_ident(current_user) FROM pg_class c JOIN pg_namespace n ON n.oid = "
            "c.relnamespace WHERE c.oid = to_regclass($1)",
            (name,),
        )
        schema, table, kind, user = map(str, self._cursor.fetchone())
        return _Target(
            name,
            (schema, table),
            kind,
            user,
            {column: whole for column, whole, _, _ in columns},
            {column: bare for column, _, bare, _ in columns},
            [column for column, _, _, is_open in columns if not is_open],
        )

    def append(self, rows: pa.Table) -> None:
        if not self._begun:
            self._begin()
        check_truths(rows, self._truths, self._rows, self._place.shown)
        check_days(rows, self._days, self._rows, self._place.shown)
        check_hours(rows, self._hours, self._rows, self._place.shown)
        self._rows += rows.num_rows
        table, schema, temporary = self._sent_to
        where: dict[str, Any] = {"temporary": True} if temporary else {"db_schema_name": schema} if schema else {}
        self._cursor.adbc_ingest(table, pg_types.sendable(rows, self._columns), mode="append", **where)

    def commit(self) -> None:
        if not self._begun:
            self._begin()
        self._bring()
        try:
            last_step(self._place.shown, self._connection.commit, elsewhere=True)
        except Exception as e:
            if still_runs(e):
                raise
            if _is_answer(e):
                # a deferred constraint, for example
                raise WriteError(
                    f"output: {self._place.shown}: the database has refused the commit, so no row was written: {in_words(e)}"
                ) from None
            raise WriteError(
                f"output: {self._place.shown}: it is not known whether the rows are there: the connection was lost while they "
                f"were committed ({e}); look at the table before you run the job again"
            ) from None

    def _bring(self) -> None:
        """Copy rows that wait in a temporary table into the output's, in place of the old ones if they replace them.

        Raises:
            WriteError: another program keeps the table, or a row of it, locked.
        """
        try:
            for statement in self._clears:
                self._cursor.execute(statement)
            if self._brings:
                self._cursor.execute(self._brings)
        except Exception as e:
            if not self._clears or _state(e) != _NO_LOCK:
                raise
            raise WriteError(
                f"output: {self._place.shown}: another program (a job that replaces the table's rows too, or VACUUM) has kept the table "
                f"locked for {_LOCK_MINUTES} minutes; nothing was written: run the job again when that one has ended"
            ) from None

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._cursor.close()
        self._connection.close()


def _state(error: Exception) -> str:
    """Return the SQLSTATE of a driver's error; "" if it has none."""
    return str(getattr(error, "sqlstate", None) or "")


def _is_answer(error: Exception) -> bool:
    """Whether a driver's error is the server's own, by which nothing was committed: neither that of a connection (class 08) or of a
    server that goes down (57), nor one that leaves it open (40003)."""
    state = _state(error)
    return bool(state) and not state.startswith(("08", "57")) and state != "40003"
