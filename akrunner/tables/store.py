"""What keeps tables, as everybody uses it: on this machine (`local`), or MaxCompute.

::

    with store.reading(name) as reading:            one state of the table, whatever is written meanwhile, until it is closed
        reading.rows                                known without reading rows
        reading.read(["a", "b"], 1000, 500)         any range, again and again, from any thread

    output = store.output(name)                     nothing is touched
    output.part("worker:0").write(batch)            a part for each task (or slice); parts are written at the same time
    commit([output, other])                         now the rows are there, in the order of the parts' keys

Names may hold a partition, or only some of its columns, for all partitions below. Their `start` and `end` are not looked at here:
`TableName.rows` makes a range of them.
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

#: what is said of a table that is to go, and is not there
NOTHING_DROPPED = "nothing is dropped (with --if-exists, or DROP TABLE IF EXISTS, that is no error)"
#: names of what this process has committed: for what is said of a command that a signal ends then
CHANGED: list[str] = []
#: a whole number in the name of a partition: Python's int() takes more, "1_0" and " 1 " for two
_WHOLE = re.compile(r"-?[0-9]+")
#: tables of a project that an error names
_SHOWN = 5
#: partitions of a table that an error names
_SHOWN_PARTITIONS = 10


@dataclass(frozen=True)
class TableInfo:
    """What a table is.

    Attributes:
        columns: without those it is partitioned by; `types.words_of(field)` says MaxCompute's type, `types.comment_of` the comment.
        partitions: names of the columns it is partitioned by; () for none.
        partition_types: MaxCompute's words for the type of each of these; () if all of them are strings.
        comment, lifecycle (days): as in its CREATE TABLE; nothing is deleted by it.
    """

    columns: pa.Schema
    partitions: tuple[str, ...] = ()
    comment: str = ""
    lifecycle: int | None = None
    partition_types: tuple[str, ...] = ()

    @property
    def keys(self) -> list[pa.Field]:
        """The columns it is partitioned by, with their types."""
        return [types.field(*one) for one in zip(self.partitions, self.partition_types or ("string",) * len(self.partitions))]


_R = TypeVar("_R", bound="Reading")


class Reading(abc.ABC):
    """One state of a table, or of some partitions, to be read. Threads may share it.

    Attributes: info; rows: how many; drawn: False: nobody knows the rows yet, or they are not to be looked at: a query over them is
        checked, and gives none.
    """

    info: TableInfo
    rows: int
    drawn: bool = True

    @abc.abstractmethod
    def read(self, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Rows in the table's order, which does not change.

        Args: columns: in this order, those it is partitioned by too; any case; None: the table's own.
            start: the first row, counted from 0; rows: how many at most; None: all that follow.
        Raises: SourceError: there is no such column; the rows cannot be read.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Once or twice; also of one that could not be opened."""

    def read_and_close(
        self, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """As `read`, of a reading that nobody else holds: it is closed behind the last batch."""
        return self._until_read(self.read(columns, start, rows))

    def _until_read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self:
            yield from batches

    def __enter__(self: _R) -> _R:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        # one that somebody let go in the middle
        self.close()


def whole_partition(name: TableName, info: TableInfo) -> Partition:
    """The partition a name holds, in the table's order. Raises: SinkError: it is not one, but several or none."""
    check_keys(name, info, SinkError)
    given = dict(name.partition)
    if any(key not in given for key in info.partitions):
        example = "/".join(f"{key}={given.get(key, '...')}" for key in info.partitions)
        raise SinkError(
            f"{name} is partitioned by {', '.join(info.partitions)}: name one partition of it, {name.whole}/{example}"
        )
    return tuple((key.name, asked_text(name, key, given[key.name], SinkError)) for key in info.keys)


def asked_text(name: TableName, key: pa.Field, value: str, kind: type[ConfigError]) -> str:
    """As `key_text`, of a name that somebody has given, which is named. Raises: ConfigError, of that kind."""
    try:
        return key_text(key, value)
    except SinkError as e:
        raise kind(f"{name}: {e}") from None


def key_text(key: pa.Field, value: str) -> str:
    """The value of a partition column as its type spells it: 01 of a BIGINT is 1. Raises: SinkError: it is none of the type."""
    if pa.types.is_string(key.type):
        return value
    try:
        return str(key_scalar(key, value).as_py())
    except (ValueError, pa.ArrowException, OverflowError):
        raise SinkError(f"the partition column {key.name} is {types.words_of(key)}, and {value!r} is none") from None


def key_scalar(key: pa.Field, value: str) -> pa.Scalar:
    """Raises: ValueError, ArrowException, OverflowError: the text is no value of the column's type."""
    if pa.types.is_integer(key.type):
        if not _WHOLE.fullmatch(value):
            raise ValueError(f"{value!r} is no whole number")
        return pa.scalar(int(value), key.type)
    return pa.scalar(value, pa.string()).cast(key.type)


def no_table(name: TableName, there: Sequence[str], where: str, all_of_them: bool = True) -> str:
    """What is said of a table that is not there: first the names it may have meant, then a few that there are.

    Args: there: names of the project's tables; where: "in" a directory, "at" an address; all_of_them: False: it may have more.
    """
    close = difflib.get_close_matches(name.table, there, n=3)
    meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    shown = [*close, *(one for one in there if one not in close)][:_SHOWN]
    left = len(there) - len(shown)
    more = ("" if not left else f" and {left} more") if all_of_them else " and many more"
    has = f"{', '.join(shown)}{more}" if there else "no tables"
    return f"there is no table {name.whole}: {meant}the project {name.project} has {has} {where}"


def check_keys(name: TableName, info: TableInfo, kind: type[ConfigError]) -> None:
    """Raises: ConfigError, of that kind: the table is not partitioned by what a name says."""
    for key, _ in name.partition:
        if key not in info.partitions:
            by = f"partitioned by {', '.join(info.partitions)}, not by {key}" if info.partitions else "not partitioned"
            raise kind(f"invalid odps table path {str(name)!r}: {name.whole} is {by}")


def known_partitions(every: Sequence[Partition]) -> str:
    """The last of a table's partitions, in words."""
    shown = ["/".join(f"{key}={value}" for key, value in one) for one in every[-_SHOWN_PARTITIONS:]]
    return f"the table has the partitions {', '.join(shown)}" if shown else "the table has no partition"


def check_readable(store: TableStore, name: TableName) -> None:
    """Raises: SourceError: there is no such table, or it has no such partition; it names those that there are."""
    store.describe(name)
    if not store.exists(name):
        raise SourceError(f"{name} does not exist: {known_partitions(store.partitions(name.whole))}")


def check_writable(store: TableStore, name: TableName) -> None:
    """As `TableStore.check_output`, and whoever may not write learns it now: what is there is opened, and left as it is.

    Raises: SinkError.
    """
    store.check_output(name)
    if store.exists(name):
        store.output(name).abort()


class TablePart(Protocol):
    """The rows one task writes. Not for two threads at once; two parts are. Attributes: rows: how many were written."""

    rows: int

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows. Columns go by name; those left out are null; types are cast where no value changes.

        Raises: DataError: there is no such column, or its values do not fit the table's type; WriteError: a full disk, a network.
        """
        ...

    def close(self) -> None:
        """No more rows. `TableOutput.commit` does it for those that are open. Raises: WriteError."""
        ...


class TableOutput(Protocol):
    """What a job writes to a table, or to one partition: there when it is committed. Attributes: name; info."""

    name: TableName
    info: TableInfo

    def part(self, key: str) -> TablePart:
        """A part, and none of what an earlier one of the same key holds. Any thread. Keys sort as `worker:2` before `worker:10`."""
        ...

    def restart(self) -> None:
        """The job starts again: nothing was written."""
        ...

    def commit(self) -> None:
        """The rows are there; in place of the old ones if it overwrites. Raises: WriteError; the table is as it was."""
        ...

    def abort(self) -> None:
        """Leave nothing, and the table as it was. After `commit`, or twice, it does nothing."""
        ...


class TableStore(Protocol):
    """Attributes: kind: "local" or "maxcompute", for what is said about it; place: where, for the same."""

    kind: str
    place: str

    def describe(self, name: TableName) -> TableInfo:
        """Raises: SourceError: there is no such table; it names those that there are."""
        ...

    def exists(self, name: TableName) -> bool:
        """Whether there is the table, and the partition if the name holds one."""
        ...

    def count(self, name: TableName) -> int:
        """Rows, without reading them. Raises: SourceError."""
        ...

    def reading(self, name: TableName) -> Reading:
        """Raises: SourceError: there is no such table or partition, or it cannot be read."""
        ...

    def read(
        self, name: TableName, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """As `Reading.read`, of a reading of its own."""
        ...

    def output(self, name: TableName, overwrite: bool = True) -> TableOutput:
        """Args: overwrite: False: the rows come behind those that are there.

        Raises: SinkError: there is no such table (it gives the SQL that makes one), or no partition is named of one that has them.
        """
        ...

    def check_output(self, name: TableName) -> None:
        """Raise what `output` would of a name, and only look: no partition is made, no session opened. Raises: SinkError."""
        ...

    def create(self, name: TableName, info: TableInfo, if_not_exists: bool = False) -> None:
        """Raises: SinkError: it is there."""
        ...

    def drop(self, name: TableName, if_exists: bool = False) -> None: ...

    def rename(self, name: TableName, table: str) -> None: ...

    def add_columns(self, name: TableName, columns: Sequence[pa.Field]) -> None:
        """Behind those there are; rows that are there have nulls in them. Raises: SinkError."""
        ...

    def add_partitions(self, names: Sequence[TableName], if_not_exists: bool = False) -> None:
        """Add partitions of one table: all of them, or none. Raises: SinkError: one is there."""
        ...

    def drop_partitions(self, names: Sequence[TableName], if_exists: bool = False) -> None:
        """Drop those of one table that the names fit: all of them, or none. Raises: SinkError: one is not there."""
        ...

    def partitions(self, name: TableName) -> list[Partition]:
        """All that the name fits, sorted."""
        ...

    def tables(self, project: str) -> list[str]: ...

    def projects(self) -> list[str]: ...

    def commit(self, outputs: Sequence[TableOutput]) -> None:
        """All of a job's outputs in this store at once: who reads them sees none or all. Raises: WriteError."""
        ...


@runtime_checkable
class SqlStore(Protocol):
    """A store that runs statements itself, where the tables are: MaxCompute."""

    def execute(self, text: str, settings: Mapping[str, str] | None = None) -> tuple[str, pa.Table | None]:
        """Run one statement. Args: settings: what `set` has set before it.

        Returns: (what it did, in a sentence, or ""; the rows it gives, at most 10,000; None: none).

        Raises: ConfigError: it refuses it.
        """
        ...
