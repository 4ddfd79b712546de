"""A table that can be read: what every source becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from akrunner.arrays import shown_nulls
from akrunner.errors import SourceError
from akrunner.foreign import ours

if TYPE_CHECKING:
    from akrunner.io.paths import Files

#: rows of the batches readers give
BATCH_ROWS = 65536


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class TableSource:
    """A table that can be read.

    Attributes: schema: of every batch; name: for errors; replayable: whether it can be read again; elsewhere: whether its rows reach
    the tasks without coming through this process; files: what it is read from as it stands, None when there is more to it;
    read_from: the files it comes from, whatever is done with them; stop: ends a read that another thread is in, as far as it can be;
    each: (schema, what has it) -> (path, table) of each file, in that schema, or in the table's if it is None. Nothing is opened before it is read.
    None: it is not made of files.
    """

    schema: pa.Schema
    open: Callable[[], Iterator[pa.RecordBatch]]
    name: str = "the table"
    replayable: bool = False
    elsewhere: bool = False
    files: Files | None = None
    read_from: Files | None = None
    stop: Callable[[], None] = _nothing
    each: Callable[[pa.Schema | None, str], list[tuple[str, TableSource]]] | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in order. Raises: SourceError: they cannot be read."""
        with ours(SourceError, f"source: cannot read {self.name}"):
            yield from map(shown_nulls, self.open())


def no_rows() -> TableSource:
    """The input of a job that has none: its script asks for what it reads."""
    return TableSource(pa.schema([]), lambda: iter(()), "no table", replayable=True)


def opened_once(
    first: Iterator[pa.RecordBatch], again: Callable[[], Iterator[pa.RecordBatch]]
) -> Callable[[], Iterator[pa.RecordBatch]]:
    """What gives `first`, which is open already, when it is called for the first time, and opens anew after that."""
    held = [first]
    return lambda: held.pop() if held else again()
