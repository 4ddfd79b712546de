"""Servers that speak Arrow themselves, by their ADBC drivers: what Flight SQL and Snowflake share.

A table is read by one query, whose result is one state of it. The types are those of the server's Arrow. Rows that are written
wait in a file of this machine until the job has succeeded, so that no transaction is open on the server meanwhile::

    rows -> columns and types of the table -> KeptRows -> one transaction, at the commit
"""

from __future__ import annotations

import abc
import contextlib
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner.errors import AkrunnerError, ConfigError, SinkError, SourceError, WriteError
from akrunner.foreign import ours
from akrunner.io.paths import local_path
from akrunner.io.sql import heard
from akrunner.io.systems import lakes
from akrunner.io.systems.adbc import Drawn, asked
from akrunner.io.systems.base import TableSink, Transaction, Url, check_asked, check_columns, quoted, slices, tried
from akrunner.io.systems.kept_rows import KeptRows
from akrunner.io.table import TableSource

#: seconds that a server may take to answer the first time
_CONNECT_SECONDS = 60.0


#: what a server may call a table
_TABLE = r"\b(?:table or view|table|view|relation|object)"
#: a name goes no further
_ENDS = r"(?![\w\"'`\]]|\.[\w\"'`\[])"
#: how servers say that there is no table of a name: with the name, which may have those of its database and schema before it, each in
#: quotes of any kind, or all in one pair of quotes. A column, role or function "of table t" is none
_MISSING = (
    r"\b(?:no such table:?|unknown table(?: expression identifier)?)\s+{name}" + _ENDS + r"|"
    r"(?<!\bof )(?<!\bin )(?<!\bon )(?<!\bfor )(?<!\bfrom )" + _TABLE + r"\s+(?:"
    r"(?:with name\s+)?{name}\s+(?:(?:is |was )?not found|(?:cannot|could not) be found|does not exist|doesn't exist)\b|"
    r"not found:?\s+{name}" + _ENDS + r")"
)
_QUOTED = r"""(?:[\w$-]+|"[^"]*"|'[^']*'|`[^`]*`|\[[^]]*\])"""
_NAME = r"""(?:["'`\[]*(?:""" + _QUOTED + r"""["'`\]]*\.["'`\[]*)*{last}["'`\]]*|["'`\[][^]"'`\[]*\.{last}["'`\]])"""
#: words that name something which a query may lack
_NAMED = re.compile(
    r"(?:" + _TABLE + r"|\b(?:column|function|schema|database|catalog|role|user|warehouse)):?\s+(?:with name\s+)?"
    r"(?!(?:not|is|was|cannot|could|does|doesn't|or|and|with)\b)[\w\"'`\[]|\bnot found:?\s+[\w\"'`\[]",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Target:
    """The table into which a job's rows go.

    Attributes:
        place: the URL that names it.
        new: whether there was none when the output was opened.
        columns: the columns in which its rows are sent.
        overwrite: whether they replace its rows.
    """

    place: Url
    new: bool
    columns: pa.Schema
    overwrite: bool


class Server(abc.ABC):
    """A server as a `System`. A subclass says how to connect to it, and how it writes names.

    Attributes:
        called: the words for such a server in errors.
        options: the options that its URLs may have.
    """

    queries = True
    decimals: Sequence[str] = ()
    called: str
    options: Sequence[str]

    def in_files(self, url: str) -> bool:
        """Whether the URL's table is in files of this machine."""
        return False

    @abc.abstractmethod
    def connect(self, place: Url) -> Any:
        """Return a connection of ADBC's DB-API that commits each statement by itself.

        Raises:
            ConfigError: the driver is missing, or the URL lacks something.
            Exception: whatever the driver raises.
        """

    def named(self, table: str) -> str:
        """Return a table's name quoted for SQL: NAME, or names with dots between them, as `SCHEMA.NAME`."""
        return ".".join(map(quoted, table.split(".")))

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        """Return a table, as `System.open` does."""
        place = self._parsed(url)
        if place.table is None and query is None:
            raise SourceError(
                f"source: {place.shown} names no table: put ?table=NAME (or SCHEMA.NAME) behind it, or give select= "
                "(--select), which the server runs"
            )
        text = query.strip().rstrip(";") if query is not None else f"SELECT * FROM {self.named(place.table or '')}"
        what = tried(place.shown, query)
        with (
            ours(SourceError, what),
            contextlib.closing(self.connected(place)) as connection,
            contextlib.closing(connection.cursor()) as cursor,
        ):
            schema = _schema_of(cursor, text)
        if columns is not None:
            check_asked(columns, schema.names, place.shown)
        if columns is not None and query is None:
            text = f"SELECT {', '.join(map(quoted, columns))} FROM {self.named(place.table or '')}"
            schema = pa.schema([schema.field(name) for name in columns])

        def start(cursor: Any) -> pa.RecordBatchReader:
            asked(cursor, lambda: cursor.execute(text))
            return cursor.fetch_record_batch()

        drawn = Drawn(lambda: self.connected(place), start, SourceError, what)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in slices(drawn.batches()):
                if [(one.name, one.type) for one in batch.schema] != [(one.name, one.type) for one in schema]:
                    raise SourceError(f"{what}: somebody has changed its columns meanwhile")
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

        return TableSource(schema, batches, place.shown, replayable=True, stop=drawn.stop)

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        """Return a sink, as `System.output` does."""
        place = self._parsed(url)
        if place.table is None:
            raise SinkError(f"output: {place.shown} names no table: put ?table=NAME (or SCHEMA.NAME) behind it")
        with ours(SinkError, f"output: cannot write {place.shown}"):
            known = self._known(place)
            names = self.matched(schema.names, known) if known is not None else schema.names
            rows = pa.schema([field.with_name(name).remove_metadata() for name, field in zip(names, schema)])
            if known is not None:
                check_columns(known, rows, place.shown)
                # columns that the rows lack get the table's defaults
                known = pa.schema([known.field(name) for name in names])
                lakes.check_rows(known, rows, {}, place.shown)
            target = Target(place, known is None, known if known is not None else rows, overwrite)
            # without columns the schema is not known yet
            if schema.names:
                self.rehearse(target)
        return TableSink(place.shown, schema, lambda: _Writing(self, target, names), is_new=known is None and not overwrite)

    def _known(self, place: Url) -> pa.Schema | None:
        """Return the columns of a URL's table; None if there is none."""
        with contextlib.closing(self.connected(place)) as connection, contextlib.closing(connection.cursor()) as cursor:
            try:
                return _schema_of(cursor, f"SELECT * FROM {self.named(place.table or '')}")
            except Exception as e:
                if self.is_missing(e, place.table or ""):
                    return None
                raise

    def is_missing(self, error: Exception, table: str) -> bool:
        """Whether a driver's error about a query of a whole table means that there is no such table, and nothing else: not that one which
        it is a view of is missing."""
        status = getattr(error, "status_code", None)
        if status is None or isinstance(error, AkrunnerError):
            return False
        name, words = _NAME.format(last=re.escape(table.rpartition(".")[2])), str(error)
        if re.search(_MISSING.format(name=name), words, re.IGNORECASE):
            return True
        # a status without any name is about all that the query names, which is the table; if that is there after all, it is not made
        return getattr(status, "name", "") == "NOT_FOUND" and not _NAMED.search(words)

    def matched(self, names: Sequence[str], table: pa.Schema) -> list[str]:
        """Return the names that a job's columns have in a table."""
        return list(names)

    @abc.abstractmethod
    def rehearse(self, target: Target) -> None:
        """Do, before a job starts, all that `bring` does but send rows, and leave nothing of it.

        Raises:
            SinkError: the server does not take such rows.
            Exception: whatever the driver raises.
        """

    @abc.abstractmethod
    def bring(self, target: Target, rows: pa.RecordBatchReader) -> None:
        """Write all rows of a job to a table, in one transaction.

        Raises:
            WriteError: it is not known whether they are there.
            Exception: whatever the driver raises; then none is there.
        """

    def _parsed(self, url: str) -> Url:
        place = Url.parse(url)
        place.check(("table", *self.options))
        return place

    def connected(self, place: Url) -> Any:
        """Return what `connect` returns; Ctrl-C ends the wait for it."""
        return heard(lambda: self.connect(place), None, _CONNECT_SECONDS)


class _Writing(Transaction):
    """Keeps a job's rows in a `KeptRows` until they are committed.

    Args:
        names: the names of the rows' columns in the table.
    """

    def __init__(self, server: Server, target: Target, names: Sequence[str]) -> None:
        self._server, self._target, self._names = server, target, list(names)
        self._kept = KeptRows(target.columns)

    def append(self, rows: pa.Table) -> None:
        target = self._target
        for batch in rows.rename_columns(self._names).to_batches():
            self._kept.append(lakes.shaped(batch, target.columns, {}, self._kept.rows, target.place.shown))

    def commit(self) -> None:
        if self._kept.rows or self._target.new or self._target.overwrite:
            self._server.bring(self._target, self._kept.reader())

    def close(self) -> None:
        self._kept.drop()


def unknown(shown: str, error: Exception) -> WriteError:
    """Return the error for a commit whose answer did not come."""
    return WriteError(
        f"output: {shown}: it is not known whether the rows are there: the connection was lost while they were committed "
        f"({error}); look at the table before you run the job again"
    )


def _schema_of(cursor: Any, query: str) -> pa.Schema:
    """Return the schema of a query's result, without its rows."""
    try:
        schema = asked(cursor, lambda: cursor.adbc_execute_schema(query))
    except Exception as e:
        if type(e).__name__ != "NotSupportedError":
            raise
        asked(cursor, lambda: cursor.execute(f"SELECT * FROM ({query}\n) AS q WHERE 1 = 0"))
        schema = cursor.fetch_record_batch().schema
    return pa.schema([pa.field(one.name, one.type, one.nullable) for one in schema])


def parts_of(place: Url) -> urllib.parse.SplitResult:
    """Return the user, password, host, port and path of a URL.

    Raises:
        ConfigError: the URL has no host, or a port that is no number.
    """
    try:
        parts = urllib.parse.urlsplit(place.base)
        if parts.hostname and (parts.port is None or parts.port > 0):
            return parts
    except ValueError:
        pass
    raise ConfigError(f"{place.shown}: which server? write its host, and its port, behind //")


def secret_of(place: Url, option: str, instead: str | None, environment: Mapping[str, str], variable: str) -> str | None:
    """Return a secret: the first line of the file that an option of the URL names, else what the URL has, else a variable's.

    Args:
        option: the option's name.
        instead: what the URL itself has, percent-encoded; None: nothing.
        variable: the variable's name.
    Raises:
        ConfigError: the file's name is no path.
        OSError: the file cannot be read.
    """
    file = place.options.get(option)
    if file is not None:
        with open(local_path(file, option), encoding="utf-8") as stream:
            return stream.readline().rstrip("\r\n")
    return urllib.parse.unquote(instead) if instead is not None else environment.get(variable) or None
