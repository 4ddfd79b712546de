"""What a library reads from somewhere, by a thread: who waits for it does not wait for ever.

::

    reader thread   pieces -> one place -> whoever draws, for so many seconds at most
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import Any, Generator, Optional, Union

from akrunner.launch import limits

_TICK = 0.2


def timed(
    pieces: Generator[bytes, None, None], silence: float, least: int, over: Optional[threading.Event] = None
) -> Generator[bytes, None, None]:
    """The same pieces.

    Args: silence: seconds without one, and in which `least` bytes come; over: set when nobody wants them any longer. A thread that is stuck in a library ends when that returns.
    Raises: what `pieces` raises; OSError: they do not come, or hardly, or are not wanted.
    """
    reader = _Reader(pieces)
    reader.thread.start()
    since, came = time.monotonic(), 0
    try:
        while True:
            item = _next(reader, silence, over)
            if isinstance(item, BaseException):
                raise item
            if item is None:
                return
            yield item
            came += len(item)
            now = time.monotonic()
            if now - since > silence:
                if came < least:
                    raise OSError(f"it sends less than {limits.shown(least)} in {silence:g} s")
                since, came = now, 0
    finally:
        reader.over.set()


def _next(reader: "_Reader", silence: float, over: Optional[threading.Event]) -> Union[bytes, BaseException, None]:
    until = time.monotonic() + silence
    while over is None or not over.is_set():
        left = until - time.monotonic()
        try:
            return reader.place.get(timeout=max(0.001, left if over is None else min(left, _TICK)))
        except queue.Empty:
            if time.monotonic() >= until:
                raise OSError(f"it has sent nothing for {silence:g} s") from None
    raise OSError("it was stopped")


class _Reader:
    def __init__(self, pieces: Generator[bytes, None, None]) -> None:
        self._pieces = pieces
        self.place: "queue.Queue[Union[bytes, BaseException, None]]" = queue.Queue(1)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, name="akrunner-download", daemon=True)

    def _run(self) -> None:
        last: Any = None
        try:
            with contextlib.closing(self._pieces):
                for piece in self._pieces:
                    if not self._put(piece):
                        break
        except BaseException as e:  # told to the thread that waits
            last = e
        self._put(last)

    def _put(self, item: Union[bytes, BaseException, None]) -> bool:
        """Whether it is still wanted."""
        while not self.over.is_set():
            try:
                self.place.put(item, timeout=_TICK)
                return True
            except queue.Full:
                continue
        return False
