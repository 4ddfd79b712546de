"""The tables that a job's scripts ask for: the state that all its tasks share. `akrunner.engines.conversation` handles
each task's requests.

Outputs are committed when the job has succeeded (`JobTables.commit`); otherwise none of them is.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from akrunner.engines.works import WorkQueues
from akrunner.errors import ConfigError, ReadError, SinkError, SourceError, WriteError
from akrunner.foreign import underway
from akrunner.spec import TablesSpec, TaskSpec
from akrunner.tables.names import TableName
from akrunner.tables.store import Reading, TableOutput, TablePart


@dataclass
class Counts:
    """The number of rows of one table.

    Attributes:
        rows_read: rows sent to all tasks together.
        rows_written: rows committed, or about to be.
    """

    rows_read: int = 0
    rows_written: int = 0


class SlicePart:
    """One slice of an output, which a process of a task writes.

    When a process opens the slice again, the rows of the earlier opening are dropped, even while they are being written.

    Attributes:
        task, process, request: the task, its process and the number of its request that write the slice.
        replaces: earlier requests that wrote the same slice and are not closed.
        rows: the rows so far.
        closed: whether the task has said that these are all.
    """

    def __init__(self, part: TablePart, task: str, process: str, request: int, replaces: list[int]) -> None:
        self.task, self.process, self.request, self.replaces = task, process, request, replaces
        self.rows = 0
        self.closed = False
        self._part = part
        self._dropped = False
        self._lock = threading.Lock()

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch of rows. Does nothing after `drop`.

        Raises:
            DataError, WriteError: as `TablePart.write`.
        """
        with self._lock:
            if not self._dropped:
                self._part.write(batch)
                self.rows += batch.num_rows

    def close(self) -> None:
        """Close the slice: these are all its rows.

        Raises:
            WriteError: as `TablePart.close`; or fewer or more rows were written than came.
        """
        with self._lock:
            if not self._dropped:
                self._part.close()
                if self._part.rows != self.rows:
                    raise WriteError(f"{self.rows:,} rows came, and {self._part.rows:,} were written")
            self.closed = True

    def drop(self) -> None:
        """Ignore the rows that still come, because a later opening writes the slice now."""
        with self._lock:
            self._dropped = True


class JobTables:
    """The tables that the tasks of a job share. May be used by any thread. Must be closed.

    Attributes:
        counts: the number of rows of each table, by the name that a script used first.
        moved: the number of frames of rows so far, in both directions.
    """

    def __init__(self, spec: TablesSpec, chunk_rows: int, chunk_bytes: int) -> None:
        self.spec = spec
        self.chunk = (chunk_rows, chunk_bytes)
        self.counts: dict[str, Counts] = {}
        self.moved = 0
        self._inputs = [TableName.parse(one, spec.project) for one in spec.inputs]
        self._outputs = [TableName.parse(one, spec.project) for one in spec.outputs]
        self._readings: list[tuple[TableName, Reading]] = []
        self._open: list[tuple[TableName, TableOutput]] = []
        #: (table with its partition, number of the slice) -> the part that is written
        self._slices: dict[tuple[str, int], SlicePart] = {}
        self._lock = threading.RLock()
        self.works = WorkQueues(self._rows_of)

    # -- what is read

    def reading(self, text: str) -> tuple[TableName, Reading]:
        """Return the parsed name of a table, and one state of it, which is the same for every task of the job.

        Raises:
            ConfigError: the text is no table's name.
            SourceError: it is none of the job's tables, or it cannot be read.
        """
        name = TableName.parse(text, self.spec.project)
        if not any(_holds(known, name) for known in self._inputs):
            listed = ", ".join(self.spec.inputs) or "there are none"
            written = any(_holds(known, name) for known in self._outputs)
            more = (
                "; it is one of its outputs, which are only written: to read what was there before, name it in both"
                if written
                else ""
            )
            raise SourceError(
                f"table {text} not predefined: it is none of the job's tables (-Dtables, tables=): {listed}{more}"
            )
        with self._lock:
            for known, reading in self._readings:
                if known.same(name):
                    return name, reading
            with underway(ReadError, f"table {text}"):
                made = self._reading(name)
            self._readings.append((name, made))
            return name, made

    def _reading(self, name: TableName) -> Reading:
        """Return a new reading of a table.

        Raises:
            SourceError: it cannot be read; the message is worded for the author of a script.
        """
        try:
            made: Reading = self.spec.store.reading(name)
            return made
        except SourceError as e:
            raise type(e)(f"-Dtables (tables=): {str(e).removeprefix('source: ')}") from e

    def _rows_of(self, text: str) -> tuple[int, int]:
        name, reading = self.reading(text)
        return name.rows(reading.rows)

    def has_read(self, name: TableName, rows: int) -> None:
        with self._lock:
            self._counts_of(name).rows_read += rows
            self.moved += 1

    # -- what is written

    def output(self, text: str, task: TaskSpec, number: int, process: str, request: int) -> tuple[TableOutput, SlicePart]:
        """Return an output and its part for a slice. What the same process of the task has written to the slice before is
        dropped.

        Args:
            number: the number of the slice.
            process: "number:random" of the task's process, or of a process that it has started.
            request: the number of the task's request.
        Raises:
            ConfigError: another task, or another process, writes this slice.
            SinkError: the table is none of the job's outputs (`table xxx not predefined`), or there is no such table.
        """
        name = TableName.parse(text, self.spec.project)
        if not any(known.same(name) for known in self._outputs):
            listed = ", ".join(self.spec.outputs) or "there are none"
            raise SinkError(
                f"table {text} not predefined: it is none of the job's outputs (-Doutputs, output_tables=): {listed}"
            )
        with self._lock:
            output = self._output(name)
            place = _place(output.name)
            earlier = self._slices.get((place, number))
            if earlier is not None:
                _check_same(earlier, text, number, task.name, process)
                # drop them here before the store does, so that no thread writes them meanwhile
                earlier.drop()
            with underway(WriteError, f"table {text}"):
                # each slice has a key of its own: the rows lie in the order of the slices
                part = output.part(f"slice:{number}")
            replaces = [earlier.request] if earlier is not None and not earlier.closed else []
            made = self._slices[place, number] = SlicePart(part, task.name, process, request, replaces)
            return output, made

    def _output(self, name: TableName) -> TableOutput:
        for known, output in self._open:
            if known.same(name):
                return output
        with underway(WriteError, f"table {name}"):
            made: TableOutput = self.spec.store.output(name, self.spec.overwrite)
        self._open.append((name, made))
        return made

    def has_moved(self) -> None:
        """Count a frame of rows that was written."""
        with self._lock:
            self.moved += 1

    def _counts_of(self, name: TableName) -> Counts:
        for known in self.counts:
            if TableName.parse(known, self.spec.project).same(name):
                return self.counts[known]
        return self.counts.setdefault(str(name).partition("?")[0], Counts())

    # -- the end

    def restart(self) -> None:
        """Forget what was written and which works were taken, because the job starts again."""
        with self._lock:
            for part in self._slices.values():
                # a thread of the attempt that failed may still have rows for it
                part.drop()
            for _, output in self._open:
                with underway(WriteError, f"table {output.name}"):
                    output.restart()
            self._slices.clear()
            self.counts.clear()
            self.works = WorkQueues(self._rows_of)

    @property
    def has_outputs(self) -> bool:
        """Whether a task has opened an output."""
        return bool(self._open)

    def commit(self, more: Sequence[TableOutput] = ()) -> None:
        """Commit all outputs that were opened, in one step, after the job has succeeded.

        Args:
            more: further outputs of the same store, committed in the same step.
        Raises:
            WriteError: none of the outputs is committed.
        """
        with self._lock:
            for (at, number), part in self._slices.items():
                if not part.closed:
                    raise WriteError(
                        f"table {at}: {part.task} was ended before it had closed its TableWriter(..., slice_id={number}), so "
                        "that its rows are not whole; no output table was changed"
                    )
            for name, _ in self._open:
                rows = [part.rows for (at, _), part in self._slices.items() if at == _place(name)]
                self._counts_of(name).rows_written = sum(rows)
            if self._open or more:
                with underway(WriteError, "output tables"):
                    self.spec.store.commit([*(output for _, output in self._open), *more])

    def told(self) -> dict[str, dict[str, int]]:
        """Return for the job's stats: table -> the numbers of rows read and written."""
        return {name: {"rows_read": one.rows_read, "rows_written": one.rows_written} for name, one in self.counts.items()}

    def close(self) -> None:
        """Close all tables. Every output that was not committed is as it was before the job."""
        with self._lock, contextlib.ExitStack() as every:
            # each of them, also when closing another one fails
            for _, output in self._open:
                every.callback(output.abort)
            for _, reading in self._readings:
                every.callback(reading.close)
            self._open, self._readings = [], []


def _place(name: TableName) -> str:
    """Return the name of a table, or partition, in a spelling that is always the same."""
    return str(name.at(tuple(sorted(name.partition))))


def _check_same(earlier: SlicePart, text: str, number: int, task: str, process: str) -> None:
    """Check that the same task and process write a slice again.

    Raises:
        ConfigError: another task, or another process, writes the slice.
    """
    if earlier.task != task:
        raise ConfigError(
            f"slice_id={number} of table {text} is written by {earlier.task} already: give each task that writes a table a "
            "slice_id of its own (its task_index)"
        )
    if earlier.process != process:
        raise ConfigError(
            f"slice_id={number} of table {text} is written by another process of {task} already (process "
            f"{earlier.process.partition(':')[0]}): give each process that opens a table to write a slice_id of its own, or "
            "let them share a writer that was opened before they were forked"
        )


def _holds(known: TableName, asked: TableName) -> bool:
    """Whether the name `asked` is the table, or are some of the partitions, that the name `known` stands for."""
    return (known.project, known.table) == (asked.project, asked.table) and set(known.partition) <= set(asked.partition)
