"""A table that can be read: `TableSource`, which every source becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from akrunner.arrays import shown_nulls
from akrunner.errors import SourceError
from akrunner.foreign import ours

if TYPE_CHECKING:
    from akrunner.io.bad_rows import BadRows
    from akrunner.io.extents import Extent
    from akrunner.io.paths import Files
    from akrunner.io.streams.arriving import Arriving
    from akrunner.io.systems.pg_snapshot import Snapshot

#: the most rows in a batch that a reader gives
BATCH_ROWS = 65536
#: the most bytes by whose content a file is known again
HEAD_BYTES = 1 << 16


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class TableSource:
    """A table that can be read.

    Attributes:
        schema: the schema of every batch.
        open: opens the table and returns its batches.
        name: the table's name in errors.
        replayable: whether the table can be read more than once.
        elsewhere: whether the rows reach the tasks without coming through this process.
        files: the files that are read as they stand; None if the table is more than the content of files.
        read_from: the files that the table comes from, whatever is done with their rows.
        held: (how many machines read at the same time, whether they may be sent a password) -> one state of a table of a database, for
            them to read it as it stands. None if they cannot, or the table is more than that; raises `Unshared`, or anything.
        stop: ends a read that is running in another thread, as far as that is possible.
        each: (schema, the name of whatever has that schema) -> (path, table) of each file, in that schema, or in the table's
            own if it is None. Opens no file before its table is read. None if the table is not made of files.
        bad: takes the table's bad rows; None: they are errors, or the table can have none.
        arriving: of a stream whose positions are stored: stores them; None of all other tables.
        notes: warnings about the table, which its job shows.
        head: returns the first bytes of a growing file that were read so far, at most `HEAD_BYTES`; None of all other tables.
        extent: says how far the table has been read, and how many rows it has; None: nobody knows.
    """

    schema: pa.Schema
    open: Callable[[], Iterator[pa.RecordBatch]]
    name: str = "the table"
    replayable: bool = False
    elsewhere: bool = False
    files: Files | None = None
    read_from: Files | None = None
    held: Callable[[int, bool], Snapshot] | None = None
    stop: Callable[[], None] = _nothing
    each: Callable[[pa.Schema | None, str], list[tuple[str, TableSource]]] | None = None
    bad: BadRows | None = None
    notes: tuple[str, ...] = ()
    arriving: Arriving | None = None
    head: Callable[[], bytes] | None = None
    extent: Extent | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, in order.

        Raises:
            SourceError: they cannot be read.
        """
        with ours(SourceError, f"source: cannot read {self.name}"):
            yield from map(shown_nulls, self.open())


@dataclass(frozen=True)
class Awaited:
    """A table whose first rows tell its columns and may come at any time: it is opened after all that can be checked without them.

    Attributes:
        open: opens the table; blocks until these rows have come.
    """

    open: Callable[[], TableSource]


def no_rows() -> TableSource:
    """Return the table of a job without an input table: its script itself asks for the tables that it reads."""
    return TableSource(pa.schema([]), lambda: iter(()), "no table", replayable=True)


def opened_once(
    first: Iterator[pa.RecordBatch], again: Callable[[], Iterator[pa.RecordBatch]]
) -> Callable[[], Iterator[pa.RecordBatch]]:
    """Return a function that returns `first`, which is already open, on the first call, and calls `again` on each later one."""
    held = [first]
    return lambda: held.pop() if held else again()
