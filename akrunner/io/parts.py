"""The files of an output directory while they are written: which rows go into which file, and when a file is full."""

from __future__ import annotations

import contextlib
import posixpath
import time
import uuid
from typing import IO, cast

import pyarrow as pa

from akrunner.errors import WriteError
from akrunner.io import formats
from akrunner.io.compression import Codec
from akrunner.io.destinations import FolderDestination
from akrunner.io.layouts import Layout
from akrunner.io.manifests import Written
from akrunner.io.partitions import directory, divided
from akrunner.io.writers import ExampleWriter, Gate, Writer, flush
from akrunner.spec import TaskSpec

#: the most bytes of rows that all open files together may hold before they write them
_HELD_BYTES = 128 << 20
#: how many rows of a task, and bytes of all tasks, wait until they are divided among directories: dividing few at a time would be a
#: call of the format's writer for every few rows
_WAITING_ROWS, _WAITING_BYTES = 1 << 17, 64 << 20
#: the most bytes of rows that all open files together may have written last: until the next rows, Parquet keeps up to three times as much
_KEPT_BYTES = 256 << 20
#: a file that is nearly full writes what it holds, to see its size, if that is at least this part of a whole file
_WORTH = 8
#: how many bytes of text a byte of a column may become, until the first rows have told
_AS_TEXT = 4.0


class _Part:
    """One open file."""

    def __init__(self, gate: Gate, writer: Writer, name: str, growth: float) -> None:
        self.gate, self.writer, self.name = gate, writer, name
        self.rows = 0
        #: bytes of rows, as they are in memory, that the writer may hold
        self.held = 0
        #: bytes of the rows that reached the file last
        self.kept = 0
        self._growth = growth
        self._given = 0
        # a format may begin its files before the first row
        self._begun = self._at = gate.tell()

    @property
    def size(self) -> int:
        """Return about how many bytes the file would have if it were closed now."""
        return self.gate.tell() + self.bytes_of(self.held)

    def bytes_of(self, held: int) -> int:
        """Return about how many bytes of the file so many bytes of rows become, at most."""
        return int(held * self._growth) + 1

    def write(self, batch: pa.RecordBatch) -> None:
        self.writer.write(batch)
        self.rows += batch.num_rows
        self.held += batch.nbytes
        self._look()

    def flush(self) -> None:
        flush(self.writer)
        self._look()

    def _look(self) -> None:
        """Learn from what has reached the file how much rows grow, or shrink, on their way into it."""
        if self.gate.tell() == self._at:
            return
        self._given += self.held
        self._at, self.kept, self.held = self.gate.tell(), self.held, 0
        self._growth = max((self._at - self._begun) / max(1, self._given), 0.01)


class Parts:
    """The files of a directory. Methods raise whatever the destination or a writer raises.

    Attributes:
        files: the files that are complete.
    """

    def __init__(
        self,
        destination: FolderDestination,
        form: str,
        schema: pa.Schema,
        write_examples: ExampleWriter,
        layout: Layout,
        codec: Codec | None = None,
    ) -> None:
        self._destination, self._form, self._layout, self._codec = destination, form, layout, codec
        # a directory's files are found again by their endings
        tabs = layout.csv is not None and layout.csv.delimiter == "\t"
        self._ending = (".tsv" if tabs else formats.named(form).endings[0]) + (codec.ending if codec is not None else "")
        self._schema = layout.files_schema(schema)
        self._write_examples = write_examples
        self._open: dict[tuple[TaskSpec, str], _Part] = {}
        self._numbers: dict[tuple[TaskSpec, str], int] = {}
        #: rows that are not yet divided among directories
        self._waiting: dict[TaskSpec, list[pa.RecordBatch]] = {}
        self._waiting_bytes = 0
        self.files: list[Written] = []
        # rows that are added come behind those that are there, so names begin with the time
        self._mark = f"-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:8]}" if layout.append else ""

    def name_of(self, task: TaskSpec) -> str:
        """Return the name of the only file of a task in a directory that has neither partitions nor full files."""
        return f"part-{task.role}-{task.index}{self._mark}{self._ending}"

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """Append a task's rows."""
        if not self._layout.partition_by:
            self._put(task, "", batch)
            return
        if not batch.num_rows:
            return
        waiting = self._waiting.setdefault(task, [])
        waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= _WAITING_BYTES:
            self._divide_all()
        elif sum(one.num_rows for one in waiting) >= _WAITING_ROWS:
            self._divide(task)

    def _divide(self, task: TaskSpec) -> None:
        """Write the rows of a task that wait to the files of their directories."""
        batches = self._waiting.pop(task)
        self._waiting_bytes -= sum(one.nbytes for one in batches)
        batch = pa.concat_batches(batches)
        del batches
        for folder, rows in divided(batch, self._layout.partition_by):
            self._put(task, folder, rows)

    def _divide_all(self) -> None:
        for task in list(self._waiting):
            self._divide(task)

    def write_nothing(self) -> None:
        """Make a file without rows, so that a directory without rows has its columns."""
        nulls = [None] * len(self._layout.partition_by)
        self._part(TaskSpec("chief", 0), directory(self._layout.partition_by, nulls))

    def finish(self) -> None:
        """Write the rows that wait, and close all files."""
        self._divide_all()
        self._close_all()

    def _close_all(self) -> None:
        for key in list(self._open):
            self._end(key)

    def drop(self) -> None:
        """Close all files, and throw away what they hold."""
        for part in self._open.values():
            part.gate.shut()
            with contextlib.suppress(Exception):
                part.writer.close()
        self._open, self._numbers, self.files = {}, {}, []
        self._waiting, self._waiting_bytes = {}, 0

    def _put(self, task: TaskSpec, folder: str, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            self._part(task, folder)
        while rows.num_rows:
            part = self._part(task, folder)
            # the files are in the order in which they were written to last
            self._open[task, folder] = self._open.pop((task, folder))
            fit = self._fitting(part, rows)
            if fit:
                part.write(rows.slice(0, fit))
                rows = rows.slice(fit)
            if not fit or part.rows == self._layout.max_rows:
                self._end((task, folder))
        self._bound()

    def _fitting(self, part: _Part, rows: pa.RecordBatch) -> int:
        """Return how many of the rows still fit in a file; a file has at least one row, however large that is."""
        most: int = rows.num_rows
        if self._layout.max_rows is not None:
            most = min(most, self._layout.max_rows - part.rows)
        limit = self._layout.max_bytes
        if limit is None:
            return most
        each = max(1, rows.nbytes // rows.num_rows)
        if part.size + part.bytes_of(most * each) > limit:
            if part.bytes_of(part.held) > limit // _WORTH:
                part.flush()
            most = min(most, (limit - part.size) // part.bytes_of(each))
        return max(most, 0 if part.rows else 1)

    def _part(self, task: TaskSpec, folder: str) -> _Part:
        key = task, folder
        if key in self._open:
            return self._open[key]
        if self._layout.order:
            # the rows come in the order of their directories
            self._close_all()
        if len(self._open) >= self._destination.most:
            raise WriteError(
                f"partition_by= (--partition-by): the rows have more combinations of values in "
                f"{', '.join(self._layout.partition_by)} than files can be open here ({self._destination.most}); name fewer "
                f"columns, or give sort_by= (--sort-by), with which one file is written after another"
            )
        self._destination.make()
        name = posixpath.join(folder, self._name(key))
        gate = Gate(self._destination.open(name))
        found = formats.named(self._form)
        writer = formats.writer_of(
            self._form,
            cast(IO[bytes], gate),
            self._schema,
            self._write_examples,
            self._codec,
            self._layout.compression,
            self._layout.csv,
        )
        self._open[key] = _Part(gate, writer, name, 1.0 if found.compressions else _AS_TEXT)
        return self._open[key]

    def _name(self, key: tuple[TaskSpec, str]) -> str:
        whole = self.name_of(key[0])
        number = self._numbers[key] = self._numbers.get(key, -1) + 1
        if not number and not (self._layout.max_rows or self._layout.max_bytes):
            return whole
        return f"{whole.removesuffix(self._ending)}-{number:05}{self._ending}"

    def _end(self, key: tuple[TaskSpec, str]) -> None:
        part = self._open[key]
        part.writer.close()
        self._destination.finish(part.name)
        self.files.append(Written(part.name, part.rows, part.gate.tell()))
        del self._open[key]

    def _bound(self) -> None:
        """Let the files that hold the most write it, if all together hold too much; and close those to which no rows have come
        for the longest time, if what they have written last is too much. If rows come for these again, they get another file."""
        if sum(part.held for part in self._open.values()) > _HELD_BYTES:
            largest = sorted(self._open.values(), key=lambda part: part.held, reverse=True)
            for part in largest[: max(1, len(largest) // 2)]:
                part.flush()
        kept = sum(part.kept for part in self._open.values())
        if kept <= _KEPT_BYTES:
            return
        for key, part in list(self._open.items())[:-1]:
            if kept <= _KEPT_BYTES // 2:
                break
            kept -= part.kept
            self._end(key)
