"""A stream job while it runs: its output batches as they arrive, its end, its errors."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TypeAlias

import pyarrow as pa

from akrunner.engines.base import Outcome, RowSink, Stats, TaskResult
from akrunner.errors import AkrunnerError, ConfigError, JobCancelledError, WriteError, in_a_sentence, noted
from akrunner.foreign import in_words
from akrunner.io import streams
from akrunner.io.limits import Limits, under
from akrunner.io.streams.arriving import Arriving, Mark
from akrunner.io.streams.base import StreamSink, TransactionSink
from akrunner.markup import in_notebook
from akrunner.spec import TaskSpec

#: how many output batches wait for the caller that iterates; if there are more, the scripts wait
_DEPTH = 16


@dataclass(frozen=True)
class _Rows:
    """A batch that a task has written.

    Attributes:
        batch: the rows.
        behind: the number of the last mark that the task had answered: the rows were made of rows behind it.
    """

    batch: pa.RecordBatch
    behind: int


_Item: TypeAlias = _Rows | Mark | None


def _called(job: Callable[[], Outcome]) -> Outcome:
    return job()


def _blamed(error: BaseException) -> BaseException:
    """Return the exception with which a job ends whose caller has raised one. One that is none of akrunner's is no fault of akrunner's:
    the caller has not taken the rows."""
    if isinstance(error, AkrunnerError) or not isinstance(error, Exception):
        return error
    return WriteError(f"the job was stopped, as what takes its rows raised {type(error).__name__}: {in_words(error)}")


class StreamJob:
    """A running stream job: an iterator of the output RecordBatches as they arrive.

    The iteration ends when the stream has ended and `main` has returned. Use the job as a context manager, or `close()` it: if
    you stop iterating before its end, it runs on until then.

    Of a source that remembers what was read (`kafka://`, `redis://`, `files://`): asking for the next batch says that everything
    that was made of the rows so far is safe, so that these rows need not come again (at least once).

    Attributes:
        schema: the schema of the batches, None if the script writes nothing.
        stats: numbers of the job, None until the job has ended well. `stats.rows_unread` counts the rows that came after the
            script had returned.
        tasks: the result of each task; empty until the job has ended well.
        work_dir: the directory of the job; None until the job has ended well, and if it was not kept (`work_dir=`,
            `debug=True`).
        run: the name under which the run is kept (`akrunner.runs.get`), None if it is not.
    """

    def __init__(
        self,
        start: Callable[[RowSink, threading.Event], Outcome],
        schema: pa.Schema | None,
        arriving: Arriving | None = None,
        restarts: int = 0,
        resume: bool = False,
        limits: Limits = Limits(),  # noqa: B008 -- a tuple is not changed
        run: str | None = None,
        to_its_end: Callable[[Callable[[], Outcome]], Outcome] = _called,
    ) -> None:
        """Start the job at once, in a thread.

        Args:
            start: runs the job with a sink and a cancel event, and blocks until the job has ended.
            schema: the schema of the output batches; None: there are none.
            arriving: stores the source's positions; None: it has none.
            restarts: how many times the job may be started again after a failure.
            resume: whether it goes on with the saves of an earlier job.
            limits: how long it may take, and what is done with its rows.
            run: the name under which it is kept.
            to_its_end: runs the job, which it is given, and tells and keeps how it ends; it returns, and raises, what the job does.
        """
        self._restarts, self._resume = restarts, resume
        self._limits = limits
        self.run = run
        self.schema = schema
        self.stats: Stats | None = None
        self.tasks: tuple[TaskResult, ...] = ()
        self.work_dir: str | None = None
        self._batches: queue.Queue[_Item] = queue.Queue(_DEPTH)
        self._cancel = threading.Event()
        self._error: BaseException | None = None
        self._arriving = arriving
        self._until: float | None = None
        self._flush: Callable[[], None] | None = None
        #: marks that wait for `release`, None: none has to wait
        self._held: list[Mark] | None = None
        #: the number of the last mark that each task has answered, and of the last one whose position was taken over
        self._answered: dict[str, int] = {}
        self._done = 0
        self._start, self._to_its_end = start, to_its_end
        #: why the caller has ended the job, if by an exception
        self._blamed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="akrunner-stream", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with under(self._limits):
                outcome = self._to_its_end(self._started)
            self.stats, self.tasks, self.work_dir = outcome.stats, outcome.tasks, outcome.work_dir
        except BaseException as e:
            self._error = e
        finally:
            self._put(None)

    def _started(self) -> Outcome:
        """Run the job. Raises: what it raises; if it was cancelled because the caller has failed, why the caller has."""
        try:
            return self._start(self, self._cancel)
        except JobCancelledError:
            if self._blamed is None:
                raise
        raise self._blamed

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """Take a batch of output from the engine, to which the job is a `RowSink`.

        Args:
            task: the task that has written the batch.
            batch: the rows.
        """
        if batch.num_rows:
            self._put(_Rows(batch, self._answered.get(task.name, 0)))

    def answered(self, task: TaskSpec, number: int) -> None:
        """Take from the engine, to which the job is a `MarkedSink`, that a task has answered all rows before a mark.

        Args:
            task: the task.
            number: the mark's number.
        """
        if self._arriving is not None:
            self._answered[task.name] = number
            for mark in self._arriving.answered(task.name, number):
                self._put(mark)

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
        try:
            return self._next()
        except KeyboardInterrupt as e:
            if in_notebook():
                # a cell that is interrupted leaves nothing that goes on, and the kernel does not end
                self._stopped(e)
                with contextlib.suppress(AkrunnerError):
                    self.close()
            raise

    def _next(self) -> pa.RecordBatch:
        while (item := self._item()) is not None:
            if isinstance(item, _Rows):
                return item.batch
            self._taken_over(item)
        self._end()
        raise StopIteration

    def _item(self) -> _Item:
        """Return what comes next from the tasks; None at the end."""
        while True:
            if self._until is not None and time.monotonic() > self._until:
                self._cancel.set()
            try:
                return self._batches.get(timeout=0.1)
            except queue.Empty:
                if not self._thread.is_alive() and self._batches.empty():
                    return None

    def _end(self) -> None:
        """Leave the job after its end. Raises: the exception that the job failed with."""
        self._thread.join()
        self._leave()
        error, self._error = self._error, None
        if error is not None and not (self._cancel.is_set() and isinstance(error, JobCancelledError)):
            raise noted(error)

    def _taken_over(self, mark: Mark) -> None:
        """Store the position of a mark, as the caller has done with all batches before it what it wants to do."""
        if self._held is not None:
            self._held.append(mark)
            return
        with self.limited():
            if self._flush is not None:
                self._flush()
            self._done = mark.number
            if self._arriving is not None:
                self._arriving.commit(mark)

    def _leave(self) -> None:
        """Leave the source, unless positions wait to be stored there."""
        if self._arriving is not None and not self._held:
            self._arriving.close()

    def finish(self, seconds: float | None = None) -> bool:
        """Read no more rows: those that were read are answered, and then the iteration ends.

        Args:
            seconds: after so many seconds the job is ended, if the iteration still goes on; None: it may take any time.

        Returns:
            Whether the source can be ended so: `kafka://`, `redis://`, `files://`, and others whose job goes on after its saves
            (`resume=`, `max_restarts=`). Any other source goes on.
        """
        if self._arriving is None:
            return False
        self._until = time.monotonic() + seconds if seconds is not None else None
        self._arriving.finish()
        return True

    def write_to(self, output: str) -> int:
        """Write all rows to a stream, as they come, until the job has ended. The source's positions are stored only when the
        stream has the rows that were made of what was read; from Kafka to Kafka, with `transactional_id=`, both are stored
        in one transaction (exactly once).

        Args:
            output: the stream's URL: `kafka://broker/topic`, `redis://host/stream`.

        Returns:
            The number of rows written.

        Raises:
            ConfigError: the URL names no such stream, or the script writes no rows.
            SinkError: the stream does not take such rows.
            WriteError: the stream has not taken all rows, or a transaction was aborted.
            JobTimeoutError: the job took longer than `timeout=`, also while the stream's server was away.
            AkrunnerError: the job failed.
        """
        if not streams.is_stream(output):
            raise ConfigError("output: write_to() writes to kafka:// and redis://; iterate over the job to write elsewhere")
        if self.schema is None:
            raise ConfigError("output: the script writes no rows (output_schema= says which it writes)")
        streams.check_restarts(output, self._restarts, self._resume)
        source = self._arriving.source if self._arriving is not None else None
        with self.limited():
            sink = streams.system_of(output).output(output, self.schema, source)
            if self._arriving is not None and isinstance(sink, TransactionSink):
                return self._committed(sink, self._arriving)
            return self._written(sink)

    def _committed(self, sink: TransactionSink, arriving: Arriving) -> int:
        """Write all rows in transactions. The transaction that stores the position of a mark has the rows that were made of rows
        before that mark, and no others: a task that is ahead of another one has its rows in the next transaction."""
        sink.join(arriving.settle)
        ahead: list[_Rows] = []
        try:
            arriving.refuse_saves(
                "task_config.checkpoint() saves a model where its task is, and transactional_id= commits rows where the last "
                "transaction has ended; use one of them"
            )
            while (item := self._item()) is not None:
                if isinstance(item, Mark):
                    sink.commit(item.position)
                    arriving.stored(item)
                    self._done = item.number
                    rows, ahead = ahead, []
                else:
                    rows = [item]
                for one in rows:
                    if one.behind <= self._done:
                        sink.write_rows(one.batch)
                    else:
                        ahead.append(one)
            self._end()
            lost = sink.uncommitted + sum(one.batch.num_rows for one in ahead)
            if arriving.whole and not self._cancel.is_set():
                # what scripts write after the last row
                sink.commit(None)
            elif lost:
                warnings.warn(
                    f"output: {lost:,} rows were thrown away, as not all rows of {arriving.name} that were read were answered: "
                    "these come again next time",
                    RuntimeWarning,
                    stacklevel=3,
                )
        finally:
            sink.close()
        return sink.rows

    def _written(self, sink: StreamSink) -> int:
        self._flush = sink.flush
        try:
            for batch in self:
                sink.write_rows(batch)
            sink.flush()
        finally:
            self._flush = None
            sink.close()
        return sink.rows

    def limited(self) -> contextlib.AbstractContextManager[None]:
        """Give what is done with the rows the job's limits: within the block, who writes them to a database or a stream waits no
        longer than `timeout=` says, and to a database no longer than `stall_timeout=`.

        Returns:
            the block, for `with`.
        """
        return under(self._limits)

    def hold(self) -> None:
        """Store no position of the source until `release`: what the caller makes of the batches is safe only at its end."""
        self._held = []

    def release(self) -> None:
        """Store the positions that were held, after the iteration has ended."""
        held, self._held = self._held or [], None
        for mark in held:
            self._taken_over(mark)
        self._leave()

    def close(self) -> None:
        """End the job, if it has not ended, and wait until every process is gone.

        If the job had failed, and the iteration has not raised the exception yet, it is raised here.
        """
        self._cancel.set()
        self._thread.join()
        self._held = None
        self._leave()
        error, self._error = self._error, None
        if error is not None and not isinstance(error, JobCancelledError):
            raise noted(error)

    def _stopped(self, error: KeyboardInterrupt) -> None:
        kept = f" It is kept as {self.run}." if self.run is not None else ""
        in_a_sentence(error, f"the stream was stopped, and its processes have ended.{kept}")

    @property
    def remembers(self) -> bool:
        """Whether the source remembers what was read of it (`kafka://`, `redis://`, `files://`)."""
        return self._arriving is not None

    @property
    def only_asked(self) -> bool:
        """Whether the job has ended, and its script has only printed the help it was asked for."""
        return bool(self.tasks) and all(task.only_asked for task in self.tasks)

    def __enter__(self) -> StreamJob:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.close()
            return
        # how the job ends is told, and kept, as the failure that ends it
        self._blamed = _blamed(error)
        # the user wants to see the exception of the block
        with contextlib.suppress(BaseException):
            self.close()
        if isinstance(error, KeyboardInterrupt):
            self._stopped(error)
        if not isinstance(error, Exception):
            # a command that a signal has stopped says which run that was
            vars(error).setdefault("run", self.run)
        # as it was before the job ended with it
        error.__traceback__ = trace
