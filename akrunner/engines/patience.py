"""Ctrl-C, and a SIGTERM, SIGHUP or SIGQUIT somebody listens for, at moments that can bear it.

::

    with Patience() as patience:           heard by us; kept for later
        ...make, start...
        with patience.heard():             raised at once, and only once
            ...wait...
        ...end, remove...                  kept for later; a third one cuts it short
                                           what was kept is given to whoever listened before
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
#: the one that comes while things are made or ended, and is the third in all, is enough
_ENOUGH = 3


class Patience:
    """Context manager for the thread that runs a job. In any other thread than Python's first it does nothing: signals are not raised
    there."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._kept: list[int] = []
        self._seen = 0
        self._open = False

    def __enter__(self) -> Patience:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                listener = signal.getsignal(number)
                # what ends the process without a word of Python's is none of ours
                if callable(listener):
                    self._before[number] = listener
                    signal.signal(number, self._came)
        return self

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """In this block the first one is raised at once."""
        self._open = True
        try:
            if self._kept:
                self._raise(self._kept.pop(0), None)
            yield
        finally:
            self._open = False

    def _came(self, number: int, frame: FrameType | None) -> None:
        self._seen += 1
        if self._open:
            self._raise(number, frame)
        else:
            self._kept.append(number)
            if self._seen >= _ENOUGH:
                self._kept.clear()
                self._before[number](number, frame)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        # before anything else: whatever comes from now on comes while things are being ended
        self._open = False
        self._before[number](number, frame)
        self._open = True  # the listener has raised nothing

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, listener in self._before.items():
            signal.signal(number, listener)
        if self._kept and error is None:
            number = self._kept[0]
            self._before[number](number, None)
