"""The interface of every store of tables: the one on this machine (`local`), and MaxCompute.

::

    with store.reading(name) as reading:        one state of the table until it is closed, whatever is written meanwhile
        reading.rows                            known without reading rows
        reading.read(["a", "b"], 1000, 500)     any range, again and again, from any thread

    output = store.output(name)                 changes nothing yet
    output.part("worker:0").write(batch)        a part for each task (or slice); several parts may be written at the same time
    commit([output, other])                     from now on readers see the rows, in the order of the parts' keys

A name may hold a whole partition, or values for only some of the partition columns; the latter means all partitions that have
these values. The stores ignore the `start` and `end` of a name: `TableName.rows` makes a range of them.
"""

from __future__ import annotations

import abc
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.tables import types
from akrunner.tables.names import Partition, TableName

#: the end of the error message when a table that is to be dropped does not exist
NOTHING_DROPPED = "nothing is dropped (with --if-exists, or DROP TABLE IF EXISTS, that is no error)"
#: names of what this process has committed, tables above all: a command that a signal ends lists them in its last message
CHANGED: list[str] = []
#: a whole number in the name of a partition; Python's int() accepts more: "1_0" and " 1 " too
_WHOLE = re.compile(r"-?[0-9]+")
#: how many tables of a project an error names
_SHOWN = 5
#: how many partitions of a table an error names
_SHOWN_PARTITIONS = 10


@dataclass(frozen=True)
class TableInfo:
    """The definition of a table, as its CREATE TABLE gives it.

    Attributes:
        columns: the columns without the partition columns; `types.words_of(field)` returns a column's MaxCompute type,
            `types.comment_of(field)` its comment.
        partitions: names of the partition columns; () for none.
        partition_types: MaxCompute's word for the type of each partition column; () if all of them are strings.
        comment: of the table; "" for none.
        lifecycle: days, or None if it has none; akrunner deletes nothing because of it.
    """

    columns: pa.Schema
    partitions: tuple[str, ...] = ()
    comment: str = ""
    lifecycle: int | None = None
    partition_types: tuple[str, ...] = ()

    @property
    def keys(self) -> list[pa.Field]:
        """Return the partition columns, with their types."""
        return [types.field(*one) for one in zip(self.partitions, self.partition_types or ("string",) * len(self.partitions))]


_R = TypeVar("_R", bound="Reading")


class Reading(abc.ABC):
    """One state of a table, or of some of its partitions, to be read. Threads may share it.

    Attributes:
        info: the table's definition.
        rows: how many rows there are.
        drawn: False if the rows are not known yet, or must not be read: then a query over them is checked, and gives no rows.
    """

    info: TableInfo
    rows: int
    drawn: bool = True

    @abc.abstractmethod
    def read(self, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield rows in the table's order, which does not change.

        Args:
            columns: names in the order wanted, in any case; partition columns are allowed; None for the table's own columns.
            start: the first row, counted from 0.
            rows: the largest number of rows; None for all from `start` on.
        Raises:
            SourceError: there is no such column; the rows cannot be read.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Release what the reading holds. May be called twice, and on a reading whose opening failed."""

    def read_and_close(
        self, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows as `read` does, and close this reading after the last batch. For a caller that shares it with no other."""
        return self._until_read(self.read(columns, start, rows))

    def _until_read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self:
            yield from batches

    def __enter__(self: _R) -> _R:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        # for a reading that its user dropped without closing it
        self.close()


def whole_partition(name: TableName, info: TableInfo) -> Partition:
    """Return the one partition that a name holds, with the keys in the table's order.

    Raises:
        SinkError: the name holds no partition, or only some of its keys.
    """
    check_keys(name, info, SinkError)
    given = dict(name.partition)
    if any(key not in given for key in info.partitions):
        example = "/".join(f"{key}={given.get(key, '...')}" for key in info.partitions)
        raise SinkError(
            f"{name} is partitioned by {', '.join(info.partitions)}: name one partition of it, {name.whole}/{example}"
        )
    return tuple((key.name, asked_text(name, key, given[key.name], SinkError)) for key in info.keys)


def asked_text(name: TableName, key: pa.Field, value: str, kind: type[ConfigError]) -> str:
    """Return `key_text(key, value)`, for a table name that the user gave.

    Raises:
        ConfigError: as `key_text`, but of the class `kind`, and with the name in the message.
    """
    try:
        return key_text(key, value)
    except SinkError as e:
        raise kind(f"{name}: {e}") from None


def key_text(key: pa.Field, value: str) -> str:
    """Return the value of a partition column as its type spells it: "01" of a BIGINT becomes "1".

    Raises:
        SinkError: the text is no value of the column's type.
    """
    if pa.types.is_string(key.type):
        return value
    try:
        return str(key_scalar(key, value).as_py())
    except (ValueError, pa.ArrowException, OverflowError):
        raise SinkError(f"the partition column {key.name} is {types.words_of(key)}, and {value!r} is none") from None


def key_scalar(key: pa.Field, value: str) -> pa.Scalar:
    """Return the value of a partition column as a scalar of the column's type.

    Raises:
        ValueError, ArrowException, OverflowError: the text is no value of that type.
    """
    if pa.types.is_integer(key.type):
        if not _WHOLE.fullmatch(value):
            raise ValueError(f"{value!r} is no whole number")
        return pa.scalar(int(value), key.type)
    return pa.scalar(value, pa.string()).cast(key.type)


def no_table(name: TableName, there: Sequence[str], where: str, all_of_them: bool = True) -> str:
    """Return the error message for a table that does not exist: first the similar names, then a few of the project's tables.

    Args:
        there: names of the project's tables.
        where: "in" a directory, or "at" an address.
        all_of_them: False if the project may have more tables than `there`.
    """
    close = difflib.get_close_matches(name.table, there, n=3)
    meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    shown = [*close, *(one for one in there if one not in close)][:_SHOWN]
    left = len(there) - len(shown)
    more = ("" if not left else f" and {left} more") if all_of_them else " and many more"
    has = f"{', '.join(shown)}{more}" if there else "no tables"
    return f"there is no table {name.whole}: {meant}the project {name.project} has {has} {where}"


def check_keys(name: TableName, info: TableInfo, kind: type[ConfigError]) -> None:
    """Check that a table is partitioned by every key in a name.

    Raises:
        ConfigError: it is not; the error is of the class `kind`.
    """
    for key, _ in name.partition:
        if key not in info.partitions:
            by = f"partitioned by {', '.join(info.partitions)}, not by {key}" if info.partitions else "not partitioned"
            raise kind(f"invalid odps table path {str(name)!r}: {name.whole} is {by}")


def known_partitions(every: Sequence[Partition]) -> str:
    """Return a clause that names the last of a table's partitions, for an error message."""
    shown = ["/".join(f"{key}={value}" for key, value in one) for one in every[-_SHOWN_PARTITIONS:]]
    return f"the table has the partitions {', '.join(shown)}" if shown else "the table has no partition"


def check_readable(store: TableStore, name: TableName) -> None:
    """Check that a table, and the partition a name holds, exist.

    Raises:
        SourceError: they do not; the message names the tables or partitions that do.
    """
    store.describe(name)
    if not store.exists(name):
        raise SourceError(f"{name} does not exist: {known_partitions(store.partitions(name.whole))}")


def check_writable(store: TableStore, name: TableName) -> None:
    """Check as `TableStore.check_output` does, and also that the caller has permission to write: an existing table or partition
    is opened as an output, and given up without a change.

    Raises:
        SinkError: the table cannot be written.
    """
    store.check_output(name)
    if store.exists(name):
        store.output(name).abort()


class TablePart(Protocol):
    """The rows that one task writes. Two threads must not use one part at once; they may use two parts at once.

    Attributes:
        rows: how many rows were written.
    """

    rows: int

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows. Columns are matched by name; columns left out become null; types are cast if no value changes.

        Raises:
            DataError: the table has no such column, or a value does not fit the column's type.
            WriteError: the disk is full, or the network fails.
        """
        ...

    def close(self) -> None:
        """Finish the part: no more rows follow. `TableOutput.commit` closes the parts that are still open.

        Raises:
            WriteError: the rows cannot be written.
        """
        ...


class TableOutput(Protocol):
    """The rows that a job writes to a table, or to one partition. Readers see them after `commit`.

    Attributes:
        name: of the table or partition.
        info: the table's definition.
    """

    name: TableName
    info: TableInfo

    def part(self, key: str) -> TablePart:
        """Return a new part, and discard the rows of an earlier part with the same key.

        May be called from any thread. Keys sort by their numbers: `worker:2` before `worker:10`.
        """
        ...

    def restart(self) -> None:
        """Discard all rows written so far, because the job starts again."""
        ...

    def commit(self) -> None:
        """Make the rows visible to readers; if the output overwrites, they replace the old rows.

        Raises:
            WriteError: it failed; the table is as it was.
        """
        ...

    def abort(self) -> None:
        """Discard the rows and leave the table as it was. Does nothing after `commit`, or when called again."""
        ...


class TableStore(Protocol):
    """A store of tables.

    Attributes:
        kind: "local" or "maxcompute", for messages.
        place: the directory or address of the store, for messages.
    """

    kind: str
    place: str

    def describe(self, name: TableName) -> TableInfo:
        """Return the definition of a table.

        Raises:
            SourceError: there is no such table; the message names the tables that there are.
        """
        ...

    def exists(self, name: TableName) -> bool:
        """Whether the table exists, and the partition too if the name holds one."""
        ...

    def count(self, name: TableName) -> int:
        """Return how many rows there are, without reading them.

        Raises:
            SourceError: there is no such table or partition, or it cannot be read.
        """
        ...

    def reading(self, name: TableName) -> Reading:
        """Open the table, or the partitions that the name holds, to be read.

        Raises:
            SourceError: there is no such table or partition, or it cannot be read.
        """
        ...

    def read(
        self, name: TableName, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows as `Reading.read` does, from a reading that is opened for this call and closed at its end."""
        ...

    def output(self, name: TableName, overwrite: bool = True) -> TableOutput:
        """Open the table, or the partition that the name holds, to be written.

        Args:
            overwrite: False: the new rows follow the rows that are there.
        Raises:
            SinkError: there is no such table (the message gives the SQL that makes one), or the table is partitioned and the
                name
                holds no partition.
        """
        ...

    def check_output(self, name: TableName) -> None:
        """Raise what `output` would raise for a name, without making a partition or opening a session.

        Raises:
            SinkError: the table cannot be written.
        """
        ...

    def create(self, name: TableName, info: TableInfo, if_not_exists: bool = False) -> None:
        """Create a table.

        Raises:
            SinkError: the table exists.
        """
        ...

    def drop(self, name: TableName, if_exists: bool = False) -> None: ...

    def rename(self, name: TableName, table: str) -> None: ...

    def add_columns(self, name: TableName, columns: Sequence[pa.Field]) -> None:
        """Add columns behind the existing ones; they are null in the rows that are there.

        Raises:
            SinkError: there is no such table, or it cannot have these columns.
        """
        ...

    def add_partitions(self, names: Sequence[TableName], if_not_exists: bool = False) -> None:
        """Add partitions to one table: all of them, or none.

        Raises:
            SinkError: a partition exists.
        """
        ...

    def drop_partitions(self, names: Sequence[TableName], if_exists: bool = False) -> None:
        """Drop every partition of one table that fits one of the names: all of them, or none.

        Raises:
            SinkError: a name fits no partition.
        """
        ...

    def partitions(self, name: TableName) -> list[Partition]:
        """Return all partitions that the name fits, sorted."""
        ...

    def tables(self, project: str) -> list[str]: ...

    def projects(self) -> list[str]: ...

    def commit(self, outputs: Sequence[TableOutput]) -> None:
        """Commit all outputs of a job in this store at once: a reader sees the rows of all of them, or of none.

        Raises:
            WriteError: it failed.
        """
        ...


@runtime_checkable
class SqlStore(Protocol):
    """A store that runs statements itself, where the tables are: MaxCompute."""

    def execute(self, text: str, settings: Mapping[str, str] | None = None) -> tuple[str, pa.Table | None]:
        """Run one statement.

        Args:
            settings: names and values that earlier `set` statements gave.
        Returns:
            (a sentence that says what the statement did, or ""; the rows it gives, at most 10,000, or None if it gives none).
        Raises:
            ConfigError: the store refuses the statement.
        """
        ...
