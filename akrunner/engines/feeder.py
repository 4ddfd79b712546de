"""The thread that reads the table and sends every worker its rows.

::

    source -> chunks -> deal -> encode -> pipe of each worker
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from akrunner import codec
from akrunner.engines.base import MarkedSource, RowSource, StoppableSource, extent_of
from akrunner.errors import JobCancelledError, ReadError
from akrunner.foreign import underway
from akrunner.io.partitioner import Partitioner, rechunk
from akrunner.io.splits import Splitter
from akrunner.launch.session import TaskSession
from akrunner.spec import JobSpec, TaskSpec

_TICK = 0.1
#: how many seconds to wait for the thread's end: while it is in a source, and in all
_SOURCE_WAIT, _END_WAIT = 2.0, 30.0


class _WorkerGone(Exception):
    """A worker process takes no more rows.

    Attributes:
        session: the worker's session; None if all workers of a stream are gone.
    """

    def __init__(self, session: TaskSession | None) -> None:
        super().__init__()
        self.session = session


@dataclass(frozen=True)
class Given:
    """The rows that have reached a task by another way than through the host.

    Attributes:
        rows: the number of rows.
        dropped: the number of rows that came after the task had ended.
        bytes: their size.
        finished: whether these are all.
        error: why no more rows come; None if there is no error.
    """

    rows: int = 0
    dropped: int = 0
    bytes: int = 0
    finished: bool = False
    error: Exception | None = None


class Feeder:
    """The thread that reads the table and sends every worker its rows.

    Attributes:
        error: why it stopped early; None if it did not.
        finished: whether every worker was sent the END of its rows.
        seconds: from the first row sent to the last.
        in_source: whether it is waiting for the source to give rows.
        splits: [workers, splits], the number of rows of each split that each worker got; empty if rows are not split.
        refused: the session that took no more rows; None if there is none.
        refused_at: when that was, by `time.monotonic`.
        extent: says how many rows the source has, and how far it has been read; None if nobody knows.
    """

    def __init__(self, job: JobSpec, source: RowSource, sessions: Mapping[TaskSpec, TaskSession]) -> None:
        self.job = job
        self.source = source
        self.sessions = sessions
        self.partitioner = Partitioner(len(job.cluster.with_rows))
        self.splitter = Splitter(job.split) if job.split is not None else None
        self.splits: list[list[int]] = (
            [[0] * len(job.split.names) for _ in job.cluster.with_rows] if job.split is not None else []
        )
        self.error: BaseException | None = None
        self.finished = False
        self.in_source = False
        self.refused: TaskSession | None = None
        self.refused_at = 0.0
        self.seconds = 0.0
        self.extent = extent_of(source)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def share_read(self) -> float | None:
        """Which share of the source has been read, 0 to 1; None: nobody knows."""
        return self.extent.share if self.extent is not None else None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="akrunner-feeder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def join(self) -> None:
        """Wait for the thread to end.

        While a source gives no rows, the thread can be woken only if the source has a `stop`. Everything else ends soon,
        and must have ended: a thread that is inside Arrow when the interpreter is torn down crashes the process.
        """
        deadline = time.monotonic() + _END_WAIT
        while self._thread is not None and self._thread.is_alive() and time.monotonic() < deadline:
            self._thread.join(_TICK)
            if self.in_source:
                if isinstance(self.source, StoppableSource):
                    self.source.stop()
                deadline = min(deadline, time.monotonic() + _SOURCE_WAIT)

    def _run(self) -> None:
        try:
            self._feed()
            self._say_end()
            self.finished = True
        except _WorkerGone as e:
            # the worker's own events say how it ended
            self.refused_at = time.monotonic()
            self.refused = e.session
        except BaseException as e:
            if not self._stopped.is_set():
                self.error = e

    def _feed(self) -> None:
        job, fed = self.job, [self.sessions[task] for task in self.job.cluster.with_rows]
        parts = self.partitioner.parts
        began = None
        for chunk in rechunk(self._drawn(), job.chunk_rows * parts, job.chunk_bytes * parts):
            for part, first, share in self.partitioner.deal(chunk):
                # encode before waiting: the first rows are ready by the time the workers are
                payload = codec.encode_frame(share, job.data_format, False, first, parts)
                marks = self.splitter.marks(share, first, parts) if self.splitter is not None else None
                with self._when_greeted(fed[part]) as session:
                    began = began or time.monotonic()
                    session.send_rows(payload, share.num_rows, marks.data if marks is not None else None)
                if marks is not None:
                    counted = np.bincount(marks, minlength=len(self.splits[part])).tolist()
                    self.splits[part] = [before + more for before, more in zip(self.splits[part], counted)]
        self.seconds = time.monotonic() - began if began else 0.0

    def _drawn(self) -> Iterator[pa.RecordBatch]:
        with underway(ReadError, "source"):
            batches = self.source.batches()
        while True:
            self.in_source = True
            try:
                with underway(ReadError, "source"):
                    batch = next(batches, None)
            finally:
                self.in_source = False
            if batch is None:
                return
            yield batch

    @contextlib.contextmanager
    def _when_greeted(self, session: TaskSession) -> Iterator[TaskSession]:
        """Wait until a session takes rows. A broken pipe within the block means that the worker has ended; elsewhere an
        OSError is the source's own trouble."""
        while not session.wait_until_greeted(_TICK) and not self._stopped.is_set():
            pass
        if self._stopped.is_set():
            raise JobCancelledError("stopped")
        try:
            yield session
        except OSError as e:
            raise _WorkerGone(session) from e

    def _say_end(self) -> None:
        shares = self.partitioner.shares
        for session in self.sessions.values():
            with self._when_greeted(session):
                session.end_of_rows(self.partitioner.rows, shares, self.splits)


class StreamFeeder(Feeder):
    """Sends rows as they come, chunk by chunk, to one worker after the other.

    A worker that has ended gets no more rows: those it would have got are dropped, and counted as not read.

    Attributes:
        started: an event that is set once every task may be sent rows.
        rows_dropped: the number of rows for workers that had ended.
    """

    def __init__(self, job: JobSpec, source: RowSource, sessions: Mapping[TaskSpec, TaskSession]) -> None:
        super().__init__(job, source, sessions)
        self.started = threading.Event()
        self.rows_dropped = 0
        self._gone: set[int] = set()

    def _feed(self) -> None:
        job, fed = self.job, [self.sessions[task] for task in self.job.cluster.with_rows]
        while not self.started.wait(_TICK):
            if self._stopped.is_set():
                raise JobCancelledError("stopped")
        began = time.monotonic()
        gone = self._gone
        turn = 0
        if job.marked and isinstance(self.source, MarkedSource) and self.source.arriving is not None:
            self.source.arriving.marking([task.name for task in job.cluster.with_rows], self._mark)
        for batch in self._drawn():
            if self._stopped.is_set():
                raise JobCancelledError("stopped")
            for chunk in rechunk([batch], job.chunk_rows, job.chunk_bytes):
                part = turn % len(fed)
                turn += 1
                if part not in gone:
                    try:
                        self._send(fed[part], chunk)
                        self.partitioner.shares[part] += chunk.num_rows
                    except _WorkerGone:
                        gone.add(part)
                if part in gone:
                    self.rows_dropped += chunk.num_rows
                self.partitioner.rows += chunk.num_rows
            if len(gone) == len(fed):
                raise _WorkerGone(None)
        self.seconds = time.monotonic() - began

    def _mark(self, number: int, save: bool, place: Mapping[str, Any]) -> bool:
        """Send every worker a barrier (`TaskSession.barrier`). Called from within the source, when all its rows so far are sent."""
        for part, task in enumerate(self.job.cluster.with_rows):
            if part not in self._gone:
                try:
                    with self._when_greeted(self.sessions[task]) as session:
                        session.barrier(number, save, place)
                except _WorkerGone:
                    self._gone.add(part)
        # who has returned answers nothing
        return not self._gone

    def _send(self, session: TaskSession, chunk: pa.RecordBatch) -> None:
        parts = codec.encode_frame(chunk, self.job.data_format, True, self.partitioner.rows)
        with self._when_greeted(session):
            session.stream_rows(parts, chunk.num_rows)

    def _say_end(self) -> None:
        for session in self.sessions.values():
            with contextlib.suppress(_WorkerGone), self._when_greeted(session):
                session.end_of_rows(self.partitioner.rows, self.partitioner.shares, self.splits)


class CountingFeeder(StreamFeeder):
    """Feeds no rows itself, because they reach the workers on their own machines. It waits until every worker has all its
    rows, and tells the workers that the rows have ended.

    Args:
        given: returns the rows that a session's task has got so far.
    """

    def __init__(
        self, job: JobSpec, source: RowSource, sessions: Mapping[TaskSpec, TaskSession], given: Callable[[TaskSession], Given]
    ) -> None:
        super().__init__(job, source, sessions)
        self._given = given

    @property
    def share_read(self) -> float | None:
        """None: the source is not read here, but where the workers are."""
        return None

    def _feed(self) -> None:
        fed = [self.sessions[task] for task in self.job.cluster.with_rows]
        began = time.monotonic()
        self.in_source = True
        try:
            while not all([self._look(part, session) for part, session in enumerate(fed)]):
                if self._stopped.wait(_TICK / 4):
                    raise JobCancelledError("stopped")
        finally:
            self.in_source = False
        self.partitioner.rows = sum(self.partitioner.shares)
        self.rows_dropped = sum(self._given(session).dropped for session in fed)
        self.seconds = time.monotonic() - began

    def _look(self, part: int, session: TaskSession) -> bool:
        given = self._given(session)
        if given.error is not None:
            with underway(ReadError, "source"):
                raise given.error
        session.was_given(given.rows, given.bytes)
        self.partitioner.shares[part] = given.rows
        return given.finished or session.process.exit is not None
