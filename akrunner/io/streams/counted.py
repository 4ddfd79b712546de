"""A table, or a file that grows, as a stream whose place is a number of rows.

::

    open() -> rows -> helper thread -> take          the first rows are left out again when it begins at a place

Nothing is remembered anywhere but in the saves of `task_config.checkpoint()`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.foreign import ours
from akrunner.io.bad_rows import BadMessages, BadRows
from akrunner.io.streams.arriving import Arriving
from akrunner.io.streams.base import TAKEN_ROWS, WAIT_SECONDS, check_rows_by, checksum, gone, rows_by, same_place
from akrunner.io.table import TableSource
from akrunner.reader import Late, Reader

#: seconds to wait until the helper thread has closed what it reads
_CLOSING = 1.0


def counted(
    first: TableSource, name: str, again: Callable[[], TableSource], read_as: Mapping[str, Any] | None = None
) -> TableSource:
    """Return a table as a stream whose place can be set.

    Args:
        first: the table.
        name: what it is called in saves: a path.
        again: opens it once more.
        read_as: what decides where its rows begin, as JSON values; None: nothing that a user says.
    """
    source = _Counted(first, name, again)
    source.read_as = read_as or {}
    arriving = Arriving(source, WAIT_SECONDS)
    # its rows have to come in one order, so that no machine may read the files itself
    return dataclasses.replace(
        first, open=arriving.batches, stop=arriving.stop, arriving=arriving, files=None, held=None, each=None, replayable=False
    )


class _Counted:
    """The rows of a table as a `StreamSource`."""

    ready = True
    #: files give their own to `BadRows`
    bad: BadRows | None = None

    read_as: Mapping[str, Any] = {}

    def __init__(self, first: TableSource, name: str, again: Callable[[], TableSource]) -> None:
        self.schema = first.schema
        self.name = first.name
        self._called = name
        #: takes the rows that are not counted
        self._left_out = first.bad
        self._first: TableSource | None = first
        self._again = again
        self._table: TableSource | None = None
        self._reader: Reader[pa.RecordBatch] | None = None
        self._begin = self._rows = self._told = 0
        self.ended = False
        #: which file the rows are of, and that file as it was at the last save; None and {} if the table is no file
        self._number = _number(name)
        self._file: BinaryIO | None = None
        self._seal: dict[str, int] = {}

    def begin(self, place: Mapping[str, Any] | None) -> None:
        self._begin = 0
        if self._first is None:
            self._number = _number(self._called) or self._number
        if place is not None:
            self._begin = same_place(place, "table", self._called)["rows"]
            check_rows_by(self.name, place, self.schema, self._left_out, self.read_as)
            self._check_file(place)
            self._know_bad_rows(place)

    def _know_bad_rows(self, place: Mapping[str, Any]) -> None:
        """Let nobody count bad rows of a growing file that an earlier job has counted before its save."""
        if self._first is not None and isinstance(self._left_out, BadMessages):
            self._left_out.goes_on(self.name, place.get("bad_line", 0), place["rows"])
            # rows that were read only to tell the columns, and maybe counted, are read again
            self._first = None

    def _check_file(self, place: Mapping[str, Any]) -> None:
        """Check that a file begins as it did when a save was made. Raises: SourceError: it does not."""
        if "bytes" not in place:
            return
        with ours(SourceError, f"source: cannot read {self.name}"):
            with open(self._called, "rb") as file:
                size, now, same = place["bytes"], os.fstat(file.fileno()).st_size, _begins_so(file, place)
        if now < size:
            raise gone(self.name, f"it has {now:,} bytes, and had {size:,}: it was cut off, or replaced (rotated?)")
        if not same:
            raise gone(self.name, f"its first {size:,} bytes are not those that it had: it was replaced (rotated?)")

    def connect(self) -> None:
        self.close()
        self._table, self._first = self._first or self._again(), None
        self._open_file()
        self._rows = self._told = self._begin
        self.ended = False
        self._reader = Reader(_few(self._behind(self._table.batches())), "akrunner-counted")

    def _open_file(self) -> None:
        """Open the file that the table reads, as its path may name another one by the next save.

        Raises:
            SourceError: it cannot be read, or its path names another one already.
        """
        if self._number is None:
            return
        with ours(SourceError, f"source: cannot read {self.name}"):
            # a buffer would still have what was in a file that is written anew
            self._file = open(self._called, "rb", buffering=0)
            number, self._seal = _number(self._file.fileno()), _seal(self._file)
        if number != self._number:
            raise SourceError(
                f"source: another file was put in the place of {self.name} while the job began (rotated?): start the job again"
            )

    def _behind(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows behind the place. Raises: SourceError: there are fewer rows before it than there were."""
        left = self._begin
        for batch in batches:
            if left < batch.num_rows:
                yield batch.slice(left)
            left = max(0, left - batch.num_rows)
        if left:
            raise gone(self.name, f"it has {self._begin - left:,} rows, and the save was made behind {self._begin:,}")

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
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._seal = self._newest(self._file)
        place = {"table": self._called, "rows": self._rows, **rows_by(self.schema, self._left_out, self.read_as), **self._seal}
        if isinstance(self._left_out, BadMessages):
            place["bad_line"] = self._left_out.last_line(self.name)
        return place

    def _newest(self, file: BinaryIO) -> dict[str, int]:
        """Return what a save says now of the file whose rows were counted. Raises: OSError: it cannot be read."""
        # what is at the path may be another file by now, or this one may have been cut off and written anew: neither has these rows
        if self._table is not None and self._table.head is not None:
            head = self._table.head()
            read = {"bytes": len(head), "checksum": checksum(io.BytesIO(head), len(head))}
            if not _begins_so(file, read):
                # the last seal may be of what was written anew before it was made; only the head is certainly of what was read
                return read
        return _seal(file) if _begins_so(file, self._seal) else self._seal

    def commit(self, position: Any) -> None:
        """Do nothing: only a save remembers the place."""

    def close(self) -> None:
        if self._reader is not None and self._table is not None:
            self._table.stop()
            self._reader.stop(_CLOSING)
            self._reader = None
        if self._file is not None:
            self._file.close()
            self._file = None


def _number(file: str | int) -> tuple[int, int] | None:
    """Return what tells a file from others (device, inode); None if it is no file. Args: file: its path or descriptor."""
    try:
        state = os.stat(file)
    except OSError:
        return None
    return (state.st_dev, state.st_ino) if stat.S_ISREG(state.st_mode) else None


def _seal(file: BinaryIO) -> dict[str, int]:
    """Return what a save says of a file: its bytes, and their checksum. Raises: OSError: it cannot be read."""
    size = os.fstat(file.fileno()).st_size
    return {"bytes": size, "checksum": checksum(file, size)}


def _begins_so(file: BinaryIO, seal: Mapping[str, Any]) -> bool:
    """Whether a file begins as it did when a save was made. Raises: OSError: it cannot be read."""
    size: int = seal["bytes"]
    return os.fstat(file.fileno()).st_size >= size and bool(checksum(file, size) == seal["checksum"])


def _few(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows, at most `TAKEN_ROWS` at once: between two batches a save can be made."""
    for batch in batches:
        for at in range(0, batch.num_rows, TAKEN_ROWS):
            yield batch.slice(at, TAKEN_ROWS)
