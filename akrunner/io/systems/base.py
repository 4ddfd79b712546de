"""What a system that keeps tables is, and what its inputs and outputs have in common."""

from __future__ import annotations

import abc
import contextlib
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from akrunner.errors import AkrunnerError, ConfigError, SinkError, SourceError, WriteError
from akrunner.foreign import ours, redacted
from akrunner.io.sinks import behind_tables
from akrunner.io.table import BATCH_ROWS, TableSource
from akrunner.spec import TaskSpec
from akrunner.wire.near import nearest

#: rows, or bytes, of a job's output that are sent to a database at once
_SENT_ROWS, _SENT_BYTES = 1 << 16, 16 << 20


class System(Protocol):
    """One kind of system. A URL names a place in it; its query part has `table=`, and what else the system takes.

    Attributes: in_files: whether its tables are in a file of this machine.
    """

    in_files: bool

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        """A table, or a query's result, as it is when it is read.

        Args:
            url: with `table=`, or a query.
            query: SQL that the system runs itself; None: the URL's table is read.
            columns: the only ones of the table that are wanted; None: all.
        Returns:
            the table; nothing of it is read yet.
        Raises:
            SourceError: it is not there, or has a type that Arrow cannot hold.
        """
        ...

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        """Where rows go: the URL's table, which is made if it is not there.

        Args:
            url: with `table=`.
            schema: of the rows.
            overwrite: whether they take the place of those that are there; else they are added.
        Returns:
            the sink; the table is as it was until its `commit`.
        Raises:
            SinkError: the rows cannot go there.
        """
        ...


@dataclass(frozen=True)
class Url:
    """A URL in parts. Attributes: text: whole; shown: without its password; base: without its query; options: of the query part."""

    text: str
    shown: str
    base: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> Url:
        """Raises: ConfigError: an option stands there twice."""
        base, _, query = text.partition("?")
        options: dict[str, str] = {}
        for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
            if name in options:
                raise ConfigError(f"{redacted(text)}: {name}= stands there twice")
            options[name] = value
        return cls(text, redacted(text), base, options)

    def check(self, ours: Sequence[str], driver: Sequence[str] = ()) -> None:
        """Args: ours: options that are named if it has another; driver: those of the system's own driver. Raises: ConfigError: it has another."""
        for name in self.options:
            if name not in ours and name not in driver:
                more = ", and those of the database's driver" if driver else ""
                raise ConfigError(
                    f"{self.shown}: there is no option {name!r} here (there are {', '.join(ours)}{more}){nearest(name, [*ours, *driver])}"
                )

    @property
    def table(self) -> str | None:
        """What `table=` names, None for nothing. Raises: ConfigError: it is empty."""
        table = self.options.get("table")
        if table == "":
            raise ConfigError(f"{self.shown}: table= is empty")
        return table


def quoted(name: str) -> str:
    """A name as SQL has it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def dotted(table: str) -> str:
    """A table as SQL has it. Args: table: NAME, or SCHEMA.NAME."""
    schema, dot, name = table.partition(".")
    return f"{quoted(schema)}.{quoted(name)}" if dot and name else quoted(table)


def check_columns(table: pa.Schema, rows: pa.Schema, shown: str) -> None:
    """Raises: SinkError: rows have a column that the table lacks."""
    for name in rows.names:
        if name not in table.names:
            raise SinkError(
                f"output: {shown} has no column {name!r} (it has {', '.join(table.names)}){nearest(name, table.names)}; leave it out, or "
                "name another table"
            )


def slices(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at most `BATCH_ROWS`."""
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


class Transaction(abc.ABC):
    """An output's connection, in one transaction."""

    @abc.abstractmethod
    def append(self, rows: pa.Table) -> None:
        """Send rows."""

    @abc.abstractmethod
    def commit(self) -> None:
        """What was sent is there from now on; a table that nobody has sent rows to is made with its columns."""

    @abc.abstractmethod
    def close(self) -> None:
        """Roll back what was not committed, and end the connection."""


class TableSink:
    """A table in a system as a job's output: rows are there when the job has succeeded, all or none.

    Args: shown: the table, for errors; schema: of the rows; begin: opens the transaction, when the first rows come.
    Attributes: path: of the output, without a password; begin: as given.
    """

    def __init__(self, shown: str, schema: pa.Schema, begin: Callable[[], Transaction]) -> None:
        self.path = shown
        self._schema = schema
        self.begin = begin
        self._transaction: Transaction | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._size: tuple[int, int] = (0, 0)
        self._over = False

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """Add a task's rows. Raises: WriteError: the system does not take them."""
        self.write_rows(batch)

    def write_rows(self, batch: pa.RecordBatch) -> None:
        """Append rows, whichever task they come from. Raises: WriteError: the system does not take them."""
        self._waiting.append(batch)
        rows, size = self._size
        self._size = rows + batch.num_rows, size + batch.nbytes
        if self._size[0] >= _SENT_ROWS or self._size[1] >= _SENT_BYTES:
            with self._told():
                self._send()

    def _send(self) -> Transaction:
        if self._transaction is None:
            self._transaction = self.begin()
        waiting, self._waiting, self._size = self._waiting, [], (0, 0)
        if waiting:
            self._transaction.append(pa.Table.from_batches(waiting, self._schema))
        return self._transaction

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            with ours(WriteError, f"output: cannot write {self.path}"):
                yield
        except (SinkError, SourceError) as e:
            raise WriteError(str(e)) from None

    def commit(self) -> None:
        """The job succeeded: its rows are in the table. Once that is done, it does nothing. Raises: WriteError: they are not."""
        if self._over:
            return
        with self._told():
            transaction = self._send()
            transaction.commit()
            self._over = True
            transaction.close()

    def commit_with(self, store: object, commit: Callable[[Sequence[Any]], None]) -> None:
        """As `akrunner.engines.base.JoiningSink`, which see."""
        with self._told():
            self._send()
        commit(())
        with behind_tables():
            self.commit()

    def restart(self) -> None:
        """The job starts again: nothing was written."""
        self.abort()

    def abort(self) -> None:
        """The job failed: the table stays as it was. After `commit` it does nothing."""
        self._waiting, self._size = [], (0, 0)
        transaction, self._transaction = self._transaction, None
        if transaction is not None and not self._over:
            with contextlib.suppress(AkrunnerError), ours(WriteError, ""):
                transaction.close()
