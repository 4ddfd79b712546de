"""A table, or a file that grows, as a stream whose place is a number of rows.

::

    open() -> rows -> helper thread -> take          the first rows are left out again when it begins at a place

Nothing is remembered anywhere but in the saves of `task_config.checkpoint()`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from akrunner.io.partitioner import behind
from akrunner.io.streams.arriving import Arriving
from akrunner.io.streams.base import TAKEN_ROWS, WAIT_SECONDS, same_place
from akrunner.io.table import TableSource
from akrunner.reader import Late, Reader

#: seconds to wait until the helper thread has closed what it reads
_CLOSING = 1.0


def counted(first: TableSource, name: str, again: Callable[[], TableSource]) -> TableSource:
    """Return a table as a stream whose place can be set.

    Args:
        first: the table.
        name: what it is called in saves: a path.
        again: opens it once more.
    """
    source = _Counted(first, name, again)
    arriving = Arriving(source, WAIT_SECONDS)
    # its rows have to come in one order, so that no machine may read the files itself
    return dataclasses.replace(
        first, open=arriving.batches, stop=arriving.stop, arriving=arriving, files=None, held=None, each=None, replayable=False
    )


class _Counted:
    """The rows of a table as a `StreamSource`."""

    ready = True

    def __init__(self, first: TableSource, name: str, again: Callable[[], TableSource]) -> None:
        self.schema = first.schema
        self.name = first.name
        self._called = name
        self._first: TableSource | None = first
        self._again = again
        self._table: TableSource | None = None
        self._reader: Reader[pa.RecordBatch] | None = None
        self._begin = self._rows = self._told = 0
        self.ended = False

    def begin(self, place: Mapping[str, Any] | None) -> None:
        self._begin = same_place(place, "table", self._called)["rows"] if place is not None else 0

    def connect(self) -> None:
        self.close()
        self._table, self._first = self._first or self._again(), None
        self._rows = self._told = self._begin
        self.ended = False
        self._reader = Reader(_few(behind(self._table.batches(), self._begin)), "akrunner-counted")

    def take(self, seconds: float) -> pa.RecordBatch | None:
        assert self._reader is not None
        try:
            batch = self._reader.next(seconds)
        except Late:
            return None
        if batch is None:
            self.ended = True
            return None
        self._rows += batch.num_rows
        return batch

    def position(self) -> Any:
        if self._rows == self._told:
            return None
        self._told = self._rows
        return self._rows

    def reached(self) -> Mapping[str, Any]:
        return {"table": self._called, "rows": self._rows}

    def commit(self, position: Any) -> None:
        """Do nothing: only a save remembers the place."""

    def close(self) -> None:
        if self._reader is not None and self._table is not None:
            self._table.stop()
            self._reader.stop(_CLOSING)
            self._reader = None


def _few(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows, at most `TAKEN_ROWS` at once: between two batches a save can be made."""
    for batch in batches:
        for at in range(0, batch.num_rows, TAKEN_ROWS):
            yield batch.slice(at, TAKEN_ROWS)
