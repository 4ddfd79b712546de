"""L4: a stream job while it runs: its output batches as they arrive, its end, its errors."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TypeAlias

import pyarrow as pa

from akrunner.engines.base import Outcome, RowSink, Stats, TaskResult
from akrunner.errors import JobCancelledError
from akrunner.spec import TaskSpec

#: output batches waiting for whoever iterates; past it the scripts wait
_DEPTH = 16

_Item: TypeAlias = pa.RecordBatch | None


class StreamJob:
    """Iterate it for output RecordBatches as they arrive; it ends when the stream has ended and `main` has returned.

    Use it as a context manager, or `close()` it: a job nobody iterates to its end runs on until then.

    Attributes:
        schema: of the batches, None when nothing is written.
        stats: numbers of the job, None until it has ended well. `stats.rows_unread` counts the rows that came when the script
            had returned already.
        tasks: what became of each task; none until then.
        work_dir: the directory of the job, None until then, and unless it was kept (`work_dir=`, `debug=True`).
    """

    def __init__(self, start: Callable[[RowSink, threading.Event], Outcome], schema: pa.Schema | None) -> None:
        """The job starts at once.

        Args:
            start: runs the job with a sink and a cancel event, and blocks until it has ended.
            schema: of the batches it gives; None: it gives none.
        """
        self.schema = schema
        self.stats: Stats | None = None
        self.tasks: tuple[TaskResult, ...] = ()
        self.work_dir: str | None = None
        self._batches: queue.Queue[_Item] = queue.Queue(_DEPTH)
        self._cancel = threading.Event()
        self._error: BaseException | None = None
        self._start = start
        self._thread = threading.Thread(target=self._run, name="akrunner-stream", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            outcome = self._start(self, self._cancel)
            self.stats, self.tasks, self.work_dir = outcome.stats, outcome.tasks, outcome.work_dir
        except BaseException as e:
            self._error = e
        finally:
            self._put(None)

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """The engine's side (`RowSink`).

        Args:
            task: that has written it.
            batch: its rows.
        """
        if batch.num_rows:
            self._put(batch)

    def _put(self, item: _Item) -> None:
        while not self._cancel.is_set():
            try:
                self._batches.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        """The next batch. Raises: what the job failed with."""
        while True:
            try:
                item = self._batches.get(timeout=0.1)
            except queue.Empty:
                if self._thread.is_alive() or not self._batches.empty():
                    continue
                item = None
            if item is not None:
                return item
            self._thread.join()
            error, self._error = self._error, None
            if error is not None and not (self._cancel.is_set() and isinstance(error, JobCancelledError)):
                raise error
            raise StopIteration

    def close(self) -> None:
        """End the job, if it has not ended, and wait until every process is gone. What it had failed with, if nobody has seen
        it yet, is raised here."""
        self._cancel.set()
        self._thread.join()
        error, self._error = self._error, None
        if error is not None and not isinstance(error, JobCancelledError):
            raise error

    @property
    def only_asked(self) -> bool:
        """Whether it has ended, and its script has printed the help it was asked for and done nothing else."""
        return bool(self.tasks) and all(task.only_asked for task in self.tasks)

    def __enter__(self) -> StreamJob:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.close()
        except BaseException:
            # what goes wrong in the block is what the user wants to see
            if error is None:
                raise
