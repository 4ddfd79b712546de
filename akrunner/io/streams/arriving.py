"""Rows that arrive in a stream, and when their position may be stored: once what was made of them is safe.

::

    feeder      take -> rows -> tasks
                mark: every task gets a BARRIER frame behind these rows          number -> position
    receiver    a task's ANSWERED frame: what it wrote for the rows before is here, in order
    consumer    has written, and flushed, all of that -> commit(position)

A crash in between loses nothing: the rows behind the last stored position come again.

In a transaction (`TransactionSink`) the consumer commits what was written and the position together, and says `stored` afterwards.

A script that saves its model (`task_config.checkpoint`) answers only the marks at which it has saved. All tasks save at the same
marks; each mark tells the place in the stream, which is saved with the model, and from which the next attempt, or job, goes on::

    a task      DUE -> due -> feeder: the next mark is one to save at
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner.errors import ConfigError, ReadError
from akrunner.io.limits import check_time
from akrunner.io.streams.base import START_SECONDS, Address, Away, StreamSource
from akrunner.io.table import TableSource

#: seconds from mark to mark while rows come; if none come, rows are marked at once
_MARK_SECONDS = 1.0
#: seconds that one call of `take` may wait, so that a stop is noticed
_TAKE_SECONDS = 0.25
#: seconds between two tries to reach a server
_AGAIN_SECONDS = 0.5
#: seconds that a source may still wait for a position to be stored after the stream was stopped
_SETTLE_SECONDS = 1.5


@dataclass(frozen=True)
class Mark:
    """A place behind rows that were sent to the tasks.

    Attributes:
        number: the mark's number, from 1 on.
        position: the source's position there.
    """

    number: int
    position: Any


#: sends a mark: (its number, whether tasks that save do it there, the place in the stream)
Send = Callable[[int, bool, Mapping[str, Any]], bool | None]


class Arriving:
    """The rows of a stream while a job reads them.

    Args:
        source: the stream.
        wait: seconds for which a server that goes away is waited for.
        idle: the stream ends once no row has come for so many seconds, not even a bad one; None: it never ends.
    """

    def __init__(self, source: StreamSource, wait: float, idle: float | None = None) -> None:
        self._source = source
        self._wait = wait
        self._idle = idle
        self._stopped = threading.Event()
        self._finished = False
        self._lock = threading.Lock()
        self._number = 0
        #: each mark, and the tasks that have not answered it
        self._marks: deque[tuple[Mark, set[str]]] = deque()
        self._ended = False
        #: the number of the last mark whose position is stored
        self._stored = 0
        self._storing = threading.Condition()
        self._tasks: frozenset[str] = frozenset()
        self._send: Send | None = None
        #: whether a task wants to save
        self._due = threading.Event()
        #: the number of the last mark to save at
        self._saved_at = 0
        #: whether rows have come since then
        self._unsaved = False
        self._closed = False
        #: whether all tasks were sent the last mark
        self._all = True
        #: whether a task has asked to save; why none may, "": they may
        self._saves, self._no_saves = False, ""
        #: when a server was back that had been away: what came before that says nothing of what it has
        self._back = 0.0

    @property
    def name(self) -> str:
        """The stream's name."""
        return self._source.name

    @property
    def source(self) -> StreamSource:
        """The stream."""
        return self._source

    @property
    def whole(self) -> bool:
        """Whether the rows have ended, and every task has answered all of them."""
        with self._lock:
            return self._ended and not self._marks

    def stop(self) -> None:
        """Let the rows of this attempt end, as if the stream had ended; any thread may call it."""
        self._stopped.set()

    def finish(self) -> None:
        """Let the rows end for good, also those of an attempt that begins later; any thread may call it."""
        self._finished = True
        self._stopped.set()

    # -- before an attempt

    def begin(self, place: Mapping[str, Any] | None) -> None:
        """Make ready for an attempt, while nothing is read.

        Args:
            place: the place in the stream that the newest save has; None: the rows begin behind the position that was stored
                last.
        Raises:
            AkrunnerError: the rows behind that place cannot be read.
        """
        with self._lock:
            # tasks that are gone answer no more
            self._marks.clear()
            self._saved_at = 0
            self._ended = False
        self._send = None
        self._due.clear()
        self._unsaved = False
        if not self._finished:
            self._stopped.clear()
        self._source.begin(place)

    # -- the feeder

    def marking(self, tasks: Sequence[str], send: Send) -> None:
        """Begin to mark positions.

        Args:
            tasks: the names of the tasks that get rows.
            send: sends every task a mark, behind the rows that it was sent: its number, whether tasks that save do it there,
                and the place in the stream.
        """
        self._tasks, self._send = frozenset(tasks), send

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they come.

        Whoever asks for the next batch must have sent the one before to the tasks.

        Raises:
            ReadError: the server was away for too long.
            AkrunnerError: a row cannot be read.
        """
        self._reached(self._source.connect)
        marked = came = time.monotonic()
        while not self._stopped.is_set():
            batch = self._reached(lambda: self._source.take(_TAKE_SECONDS))
            now = time.monotonic()
            rows = batch.num_rows if batch is not None else 0
            if batch is not None:
                self._unsaved = True
            if rows:
                yield batch
            # only a stream that may end asks, as a source that waits in vain for its ends says that it ends without them
            if batch is not None or (self._idle is not None and not self._source.ready):
                came = now = time.monotonic()
            came = max(came, self._back)
            due = self._due.is_set()
            if due or not rows or now - marked >= _MARK_SECONDS:
                self._mark(due)
                marked = now
            if batch is None and (self._source.ended or (self._idle is not None and now - came >= self._idle)):
                break
        self._mark(save=True)
        with self._lock:
            self._ended = True

    def _mark(self, save: bool) -> None:
        """Send a mark, if rows have come since the last one. Args: save: whether it is one to save at."""
        position = self._source.position()
        if self._send is None or (position is None and not (save and self._unsaved)):
            return
        with self._lock:
            self._number += 1
            number = self._number
            self._marks.append((Mark(number, position), set(self._tasks)))
            if save:
                self._saved_at = number
                self._due.clear()
        self._unsaved = not save
        self._all = self._send(number, save, self._source.reached()) is not False

    def settle(self) -> None:
        """Mark the rows so far, and return once their position is stored.

        The source calls this from within `take`, before it gives up rows that another reader will get. It returns without that
        soon after the stream was stopped.
        """
        self._mark(save=True)
        number, until = self._number, None
        with self._storing:
            while self._all and self._stored < number and (until is None or time.monotonic() < until):
                self._storing.wait(_TAKE_SECONDS)
                if until is None and self._stopped.is_set():
                    until = time.monotonic() + _SETTLE_SECONDS

    def _reached(self, call: Callable[[], Any], at_end: float = 0.0) -> Any:
        """Return what a call returns, once the server can be reached; None if the stream was stopped meanwhile.

        Args:
            call: the call.
            at_end: seconds that the server is waited for even if the stream was stopped.
        Raises:
            ReadError: it was away for too long.
            JobTimeoutError: the time of the job that this thread has is over.
        """
        since: float | None = None
        while True:
            try:
                found = call()
            except Away as e:
                now = time.monotonic()
                if since is None:
                    since = now
                    warnings.warn(f"source: {e}; it is waited for, {self._wait:g} s at most", RuntimeWarning, stacklevel=2)
                if now - since >= self._wait:
                    raise ReadError(
                        f"source: {e}, and was not back within {self._wait:g} s (?wait= says how long it is waited for)"
                    ) from None
                check_time(self.name)
                if self._stopped.wait(min(_AGAIN_SECONDS, self._wait)) and now - since >= at_end:
                    return None
                time.sleep(_TAKE_SECONDS if self._stopped.is_set() else 0)
                continue
            if since is not None:
                self._back = time.monotonic()
                away = self._back - since
                warnings.warn(f"source: {self.name} is back after {away:.0f} s", RuntimeWarning, stacklevel=2)
            return found

    # -- the receiver and the consumer

    def refuse_saves(self, why: str) -> None:
        """Fail a job whose tasks save. Raises: ConfigError: one has asked to save already. Args: why: the error's words."""
        with self._lock:
            self._no_saves, saves = why, self._saves
        if saves:
            raise ConfigError(why)

    def due(self, number: int) -> None:
        """Note that a task wants to save.

        Args: number: of the mark at which it has saved last; 0: it has not saved.
        Raises: ConfigError: this job's tasks may not save.
        """
        with self._lock:
            if self._no_saves:
                raise ConfigError(self._no_saves)
            self._saves = True
            # the mark to save at that was sent since will do
            if number >= self._saved_at:
                self._due.set()

    def answered(self, task: str, number: int) -> list[Mark]:
        """Note that a task has answered all rows before a mark.

        Returns:
            the marks before which all rows are answered now, in order.
        """
        ready: list[Mark] = []
        with self._lock:
            for other, waiting in self._marks:
                if other.number <= number:
                    waiting.discard(task)
            while self._marks and not self._marks[0][1]:
                mark = self._marks.popleft()[0]
                if mark.position is None and ready:
                    # no rows had come between a mark and the one to save at behind it
                    ready[-1] = Mark(mark.number, ready[-1].position)
                else:
                    # also one without a position: `settle` waits for it, and the rows behind it belong to the next transaction
                    ready.append(mark)
        return ready

    def stored(self, mark: Mark) -> None:
        """Note that the position of a mark is stored."""
        with self._storing:
            self._stored = mark.number
            self._storing.notify_all()

    def commit(self, mark: Mark) -> None:
        """Store the position of a mark: what was made of the rows before it is safe.

        Raises:
            ReadError: the server was away for too long.
            JobTimeoutError: the job's time is over.
            AkrunnerError: the position cannot be stored.
        """

        if mark.position is None:
            self.stored(mark)
            return

        def stored() -> bool:
            self._source.commit(mark.position)
            return True

        if self._reached(stored, START_SECONDS):
            self.stored(mark)
        else:
            warnings.warn(
                f"source: {self.name}: what was read last could not be stored, and comes again next time",
                RuntimeWarning,
                stacklevel=2,
            )

    def close(self) -> None:
        """Leave the stream, after the job has ended."""
        if not self._closed:
            self._closed = True
            self._source.close()


def table_of(source: StreamSource, address: Address, check: Callable[[], None] = lambda: None) -> TableSource:
    """Return a stream as a table that never ends.

    Args:
        source: the stream.
        address: its URL, which says how long it is waited for (`wait=`, `idle=`).
        check: raises an error if the stream cannot be read.
    """
    arriving = Arriving(source, address.wait, address.seconds("idle", None))
    check()
    return TableSource(source.schema, arriving.batches, source.name, stop=arriving.stop, arriving=arriving)
