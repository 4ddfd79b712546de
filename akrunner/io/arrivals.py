"""Turns rows that arrive one by one into batches: a batch ends when it is full or old enough, whichever comes first.

::

    puller thread   the iterable, row by row -> pending (bounded: a slow job holds the source back)
    reader          pending -> a batch as soon as it is full, or its first row has waited long enough
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

#: how many batches' worth of rows may wait
_DEPTH = 4


def by_size_or_age(
    rows: Iterable[Any], to_batch: Callable[[list[Any]], pa.RecordBatch], size: int, seconds: float
) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most `size` rows; a batch waits no longer than `seconds` for more rows.

    After a pause the first row is given out at once, as there are no other rows to join it with.

    Args:
        rows: drawn by a thread of its own, which reads at most `_DEPTH` batches ahead.
        to_batch: makes a batch of rows.
    Raises:
        BaseException: whatever the iterable raises, after the rows before it were given out.
    """
    pending = _Pending(size * _DEPTH)
    thread = threading.Thread(target=pending.pull, args=(rows,), name="akrunner-source", daemon=True)
    thread.start()
    try:
        left = 0.0
        while True:
            taken = pending.take(size, left + seconds / 4)
            if taken:
                yield to_batch(taken)
                left = time.monotonic()
            elif pending.finished:
                break
        if pending.error is not None:
            raise pending.error
    finally:
        pending.close()


class _Pending:
    """The rows between the two threads.

    Attributes:
        finished: whether the iterable has ended and no row is left.
        error: the exception that ended the iterable; None if it ended by itself.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: deque[Any] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._closed = False
        self.error: BaseException | None = None

    @property
    def finished(self) -> bool:
        return self._ended and not self._rows

    def pull(self, rows: Iterable[Any]) -> None:
        try:
            for row in rows:
                with self._changed:
                    while len(self._rows) >= self._most and not self._closed:
                        self._changed.wait(0.5)
                    if self._closed:
                        return
                    self._rows.append(row)
                    self._changed.notify()
        except BaseException as e:
            self.error = e
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify()

    def take(self, size: int, not_before: float) -> list[Any]:
        """Return up to `size` rows: as soon as there are that many, or once the time `not_before` has come and there is at
        least one."""
        with self._changed:
            while len(self._rows) < size and not self._ended:
                wait = not_before - time.monotonic()
                if self._rows and wait <= 0:
                    break
                self._changed.wait(wait if self._rows and wait > 0 else 0.5)
            taken = [self._rows.popleft() for _ in range(min(size, len(self._rows)))]
            self._changed.notify()
            return taken

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
