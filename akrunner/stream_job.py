"""A stream job while it runs: its output batches as they arrive, its end, its errors."""

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

#: how many output batches wait for the caller that iterates; if there are more, the scripts wait
_DEPTH = 16

_Item: TypeAlias = pa.RecordBatch | None


class StreamJob:
    """A running stream job: an iterator of the output RecordBatches as they arrive.

    The iteration ends when the stream has ended and `main` has returned. Use the job as a context manager, or `close()` it: if
    you stop iterating before its end, it runs on until then.

    Attributes:
        schema: the schema of the batches, None if the script writes nothing.
        stats: numbers of the job, None until the job has ended well. `stats.rows_unread` counts the rows that came after the
            script had returned.
        tasks: the result of each task; empty until the job has ended well.
        work_dir: the directory of the job; None until the job has ended well, and if it was not kept (`work_dir=`,
            `debug=True`).
    """

    def __init__(self, start: Callable[[RowSink, threading.Event], Outcome], schema: pa.Schema | None) -> None:
        """Start the job at once, in a thread.

        Args:
            start: runs the job with a sink and a cancel event, and blocks until the job has ended.
            schema: the schema of the output batches; None: there are none.
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
        """Take a batch of output from the engine, to which the job is a `RowSink`.

        Args:
            task: the task that has written the batch.
            batch: the rows.
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
        """Return the next batch. Raises: the exception that the job failed with."""
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
        """End the job, if it has not ended, and wait until every process is gone.

        If the job had failed, and the iteration has not raised the exception yet, it is raised here.
        """
        self._cancel.set()
        self._thread.join()
        error, self._error = self._error, None
        if error is not None and not isinstance(error, JobCancelledError):
            raise error

    @property
    def only_asked(self) -> bool:
        """Whether the job has ended, and its script has only printed the help it was asked for."""
        return bool(self.tasks) and all(task.only_asked for task in self.tasks)

    def __enter__(self) -> StreamJob:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.close()
        except BaseException:
            # if the block has raised, the user wants to see that exception
            if error is None:
                raise
