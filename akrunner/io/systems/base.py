"""The protocol of a system that keeps tables, and what the inputs and outputs of all systems share."""

from __future__ import annotations

import abc
import contextlib
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.errors import AkrunnerError, ConfigError, SinkError, SourceError, WriteError
from akrunner.foreign import ours, redacted
from akrunner.io.commits import behind_tables, release, still_runs
from akrunner.io.table import BATCH_ROWS, TableSource
from akrunner.schema import is_list
from akrunner.spec import TaskSpec
from akrunner.wire.near import nearest

#: how many rows, or bytes, of a job's output are sent to a database at once
_SENT_ROWS, _SENT_BYTES = 1 << 16, 16 << 20
#: the first word of a query, behind comments and parentheses, and the words with which statements begin that do not read
_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/)*+(\w+)")
_CHANGES = frozenset(
    "insert update delete merge replace upsert truncate drop create alter rename grant revoke copy begin start commit rollback set reset "
    "vacuum analyze attach detach install load do lock".split()
)

#: text that PostgreSQL reads with a time of the day, with one that is the beginning of the day, and with a day
_TIME = r"\d:\d|\d[Tt]\d|\d{8} \d"
_MIDNIGHT = r"[ Tt]00?(:?00(:?00(\.0*)?)?)?($|[^\d:.])"
_DAY = r"\d-\w+-\d|\d/\d|\d\.\d+\.\d|\d{8}[ Tt]"


def tried(shown: str, query: str | None) -> str:
    """Return what an error says was tried when rows were read. Args: shown: the URL in errors; query: what the database runs, if it
    does."""
    return f"source: cannot read {shown}" if query is None else f"source: {shown} cannot run select= (--select)"


@contextlib.contextmanager
def of_parameter(kind: type[ConfigError], parameter: str) -> Iterator[None]:
    """Give errors about a URL the class and the parameter that the URL was given by. Args: kind: SourceError or SinkError."""
    try:
        yield
    except ConfigError as e:
        if type(e) is not ConfigError:
            raise
        raise kind(f"{parameter}: {e}") from None


class System(Protocol):
    """One kind of system that keeps tables. A URL names the system or a file of it; the URL's query part has `table=` and any
    other options.

    Attributes:
        queries: whether it runs SQL itself, so that a URL need not name a table.
        decimals: which of `akrunner.io.decimals.WAYS` its URLs take as `decimals=`, to convert decimals that Arrow cannot hold.
    """

    queries: bool
    decimals: Sequence[str]

    def in_files(self, url: str) -> bool:
        """Whether the URL's table is in files of this machine."""
        ...

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        """Return a table, or a query's result, as it is when it is read.

        Args:
            url: the URL, with `table=` unless a query is given.
            query: SQL that the system itself runs; None: the URL's table is read.
            columns: the only columns of the table that are wanted; None: all.
        Returns:
            the table; none of its rows has been read yet.
        Raises:
            SourceError: the table does not exist, or has a type that Arrow cannot hold.
        """
        ...

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        """Return a sink that writes rows to the URL's table, which is made if it does not exist.

        Args:
            url: the URL, with `table=`.
            schema: the schema of the rows.
            overwrite: whether the rows replace those in the table; else they are added.
        Returns:
            the sink; the table stays as it was until its `commit`.
        Raises:
            SinkError: the rows cannot be written to the table.
        """
        ...


@dataclass(frozen=True)
class Url:
    """The parts of a URL.

    Attributes:
        text: the whole URL.
        shown: the URL without its password.
        base: the URL without its query part.
        options: the options in the query part.
    """

    text: str
    shown: str
    base: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> Url:
        """Return the parts of a URL.

        Raises:
            ConfigError: an option occurs twice.
        """
        base, _, query = text.partition("?")
        options: dict[str, str] = {}
        for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
            if name in options:
                raise ConfigError(f"{redacted(base)}: {name}= stands there twice")
            options[name] = value
        return cls(text, redacted(text), base, options)

    def check(self, ours: Sequence[str], driver: Sequence[str] = ()) -> None:
        """Check that the URL has only known options.

        Args:
            ours: the options that an error lists.
            driver: the options of the system's own driver.
        Raises:
            ConfigError: the URL has another option.
        """
        for name in self.options:
            if name not in ours and name not in driver:
                more = ", and those of the database's driver" if driver else ""
                # without the options, as a misspelt one may have a password
                are = "there is" if len(ours) == 1 and not more else "there are"
                raise ConfigError(
                    f"{redacted(self.base)}: there is no option {name!r} here ({are} "
                    f"{', '.join(ours) or 'none'}{more}){nearest(name, [*ours, *driver])}"
                )

    @property
    def table(self) -> str | None:
        """The name that `table=` gives; None if there is no `table=`.

        Raises:
            ConfigError: the name is empty.
        """
        table = self.options.get("table")
        if table == "":
            raise ConfigError(f"{self.shown}: table= is empty")
        return table


def quoted(name: str) -> str:
    """Return a name quoted for SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def dotted(table: str) -> str:
    """Return a table's name quoted for SQL.

    Args:
        table: NAME, or SCHEMA.NAME.
    """
    schema, dot, name = table.partition(".")
    return f"{quoted(schema)}.{quoted(name)}" if dot and name else quoted(table)


def check_reads(query: str, shown: str) -> None:
    """Check that a query for a database reads. (The database would tell of a syntax error, as the query stands within another.)

    Args:
        shown: the database in errors.
    Raises:
        SourceError: it begins as a statement that changes something.
    """
    first = _FIRST_WORD.match(query)
    if first is not None and first[1].lower() in _CHANGES:
        raise SourceError(
            f"select= (--select): {shown} runs only a query that reads, which begins with SELECT or WITH, and no {first[1].upper()}"
        )


def check_asked(columns: Iterable[str], names: Sequence[str], shown: str) -> None:
    """Check that a table has the columns that are asked for, before others are looked at, whose types may be refused.

    Raises:
        SourceError: it lacks one.
    """
    for name in columns:
        if name not in names:
            raise SourceError(f"source: {shown} has no column {name!r} (it has {', '.join(names)}){nearest(name, names)}")


def check_columns(table: pa.Schema, rows: pa.Schema, shown: str) -> None:
    """Check that a table has all columns of the rows.

    Raises:
        SinkError: the rows have a column that the table lacks.
    """
    for name in rows.names:
        if name not in table.names:
            raise SinkError(
                f"output: {shown} has no column {name!r} (it has {', '.join(table.names)}){nearest(name, table.names)}; leave "
                "it out, or name another table"
            )


def made_meanwhile(shown: str) -> SinkError:
    """Return the error of a job that found no table when it began, and finds one at its first rows, to which it would add them."""
    return SinkError(
        f"output: {shown}: another program has made this table since the job began, and the rows would be added to its rows; nothing was "
        "written: run the job again to add them, or name another table"
    )


def check_truths(rows: pa.Table, names: Iterable[str], first: int, shown: str) -> None:
    """Check that numbers which a database casts to booleans are 0 or 1: it would make true of any other.

    Args:
        names: the columns that are booleans in the table.
        first: the number of the first row, for errors.
    Raises:
        WriteError: one is another number.
    """
    for name in names:
        values = rows.column(name)
        while is_list(values.type):
            values = pc.list_flatten(values)
        if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            continue
        if pc.all(pc.is_in(values, pa.array([0, 1, None], values.type))).as_py() is False:
            row, value = next(found for found in enumerate(rows.column(name).to_pylist()) if not _are_truths(found[1]))
            raise WriteError(
                f"output: {shown}: row {first + row}, column {name!r}: {value} is neither 0 nor 1, and the table's column is boolean"
            )


def _are_truths(value: Any) -> bool:
    return all(map(_are_truths, value)) if isinstance(value, list) else value in (0, 1, None)


def days_lost(name: str, kind: str, shown: str) -> SinkError:
    """Return the error that a column of moments cannot become one of times of a day. Args: kind: the database's words for its type."""
    return SinkError(
        f"output: {shown}: column {name!r} has moments, and the table's column is {kind}, which would lose their days; write the time "
        "of the day, or to a column of timestamps"
    )


def check_days(rows: pa.Table, names: Iterable[str], first: int, shown: str) -> None:
    """Check that moments, and text, which PostgreSQL casts to days are the beginnings of days: it would leave the time away.

    Args:
        names: the columns that are days in the table, or lists of days.
        first: the number of the first row, for errors.
    Raises:
        WriteError: one has a time.
    """
    for name in names:
        for row, value in _first_wrong(rows.column(name), _with_times):
            raise WriteError(
                f"output: {shown}: row {first + row}, column {name!r}: {value} is no beginning of a day, and the table's column is a "
                "date, which would lose the time"
            )


def check_hours(rows: pa.Table, names: Iterable[str], first: int, shown: str) -> None:
    """Check that text which PostgreSQL casts to times of a day has no day: it would leave the day away.

    Args:
        names: the columns that are times of a day in the table, or lists of them.
        first: the number of the first row, for errors.
    Raises:
        WriteError: one has a day.
    """
    for name in names:
        for row, value in _first_wrong(rows.column(name), _with_days):
            raise WriteError(
                f"output: {shown}: row {first + row}, column {name!r}: {value} has a day, and the table's column is a time, which would "
                "lose it"
            )


def _first_wrong(column: pa.ChunkedArray, wrong: Callable[[Any], Any]) -> Iterator[tuple[int, Any]]:
    """Yield (the number of its row, the value) of the first value of a column, or of its lists, that is wrong; nothing if none is.

    Args:
        wrong: says of each of many values whether it is; None: they are of a type of which none is.
    """

    def found(part: pa.ChunkedArray) -> pa.Scalar | None:
        while is_list(part.type):
            part = pc.list_flatten(part)
        if pa.types.is_timestamp(part.type):
            # without their zone, moments are in UTC, as the database's session is
            part = part.cast(pa.timestamp(part.type.unit))
        is_wrong = wrong(part)
        at = pc.index(is_wrong, True).as_py() if is_wrong is not None else -1
        return part[at] if at >= 0 else None

    if (value := found(column)) is not None:
        yield next(row for row in range(len(column)) if found(column.slice(row, 1)) is not None), value


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _with_times(values: pa.ChunkedArray) -> Any:
    if _is_text(values.type):
        return pc.and_(pc.match_substring_regex(values, _TIME), pc.invert(pc.match_substring_regex(values, _MIDNIGHT)))
    if not pa.types.is_timestamp(values.type):
        return None
    return pc.not_equal(pc.floor_temporal(values, unit="day"), values)


def _with_days(values: pa.ChunkedArray) -> Any:
    return pc.match_substring_regex(values, _DAY) if _is_text(values.type) else None


def slices(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of at most `BATCH_ROWS` rows."""
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


class Transaction(abc.ABC):
    """The connection of an output, in one transaction."""

    @abc.abstractmethod
    def append(self, rows: pa.Table) -> None:
        """Send rows."""

    def ready(self) -> None:  # noqa: B027 -- most transactions have nothing to do here
        """Do what `commit` would do and `close` can take back, so that little can fail later; no rows are sent after it. Does
        nothing when called again."""

    @abc.abstractmethod
    def commit(self) -> None:
        """Commit the rows that were sent. A new table to which no rows were sent is made with its columns."""

    @abc.abstractmethod
    def close(self) -> None:
        """Roll back what was not committed, and close the connection."""


class TableSink:
    """Writes a job's output to a table in a system: once the job has succeeded all rows are there, before that none.

    Args:
        shown: the table's name in errors.
        schema: the schema of the rows.
        begin: opens the transaction; it is called when the first rows come.
        at: the local path that is written, so that a full disk can be named; None: the table is elsewhere.
        is_new: whether there is no table yet, and one that another program makes meanwhile is not to be added to.
    Attributes:
        path: the URL of the output, without its password.
        begin, is_new: as given.
    """

    def __init__(
        self, shown: str, schema: pa.Schema, begin: Callable[[], Transaction], at: str | None = None, is_new: bool = False
    ) -> None:
        self.path, self.is_new = shown, is_new
        self._at = at
        self._schema = schema
        self.begin = begin
        self._transaction: Transaction | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._size: tuple[int, int] = (0, 0)
        self._over = False

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """Append a task's rows.

        Raises:
            WriteError: the system does not take them.
        """
        self.write_rows(batch)

    def write_rows(self, batch: pa.RecordBatch) -> None:
        """Append rows, whichever task they come from.

        Raises:
            WriteError: the system does not take them.
        """
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
            with ours(WriteError, f"output: cannot write {self.path}", self._at):
                yield
        except (SinkError, SourceError) as e:
            raise WriteError(str(e)) from None

    def commit(self) -> None:
        """Commit the rows, because the job succeeded. Does nothing if that is already done.

        Raises:
            WriteError: the rows are not in the table.
        """
        if self._over:
            return
        with self._told():
            transaction = self._send()
            try:
                transaction.commit()
            except BaseException as e:
                # nothing is rolled back, or closed, while it may still be committed
                self._over = still_runs(e)
                raise
            self._over = True
        release(transaction.close, f"output: {self.path}")

    def commit_with(self, store: object, commit: Callable[[Sequence[Any]], None]) -> None:
        """Commit together with the job's output tables, as `akrunner.engines.base.JoiningSink.commit_with` says."""
        with self._told():
            self._send().ready()
        commit(())
        with behind_tables():
            self.commit()

    def restart(self) -> None:
        """Roll back what was written, because the job starts again."""
        self.abort()

    def abort(self) -> None:
        """Leave the table as it was, because the job failed. Does nothing after `commit`."""
        self._waiting, self._size = [], (0, 0)
        transaction, self._transaction = self._transaction, None
        if transaction is not None and not self._over:
            with contextlib.suppress(AkrunnerError), ours(WriteError, ""):
                transaction.close()
