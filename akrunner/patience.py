"""Delays Ctrl-C, and the signals SIGTERM, SIGHUP and SIGQUIT if the program handles them, until the job can be
interrupted safely.

::

    with Patience() as patience:           signals are caught, and kept for later
        ...make, start...
        with patience.heard():             a signal is raised at once, and only once
            ...wait...
        ...end, remove...                  kept for later; the third signal in all interrupts even this
                                           at the end, the kept signal is given to the program's own handler
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
#: a signal that comes while things are made or ended interrupts this if it is the third in all
_ENOUGH = 3


class Patience:
    """Context manager for the thread that runs a job. It does nothing in any thread but Python's main thread, as signals
    are raised only there."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._kept: list[int] = []
        self._seen = 0
        self._open = False

    def __enter__(self) -> Patience:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                listener = signal.getsignal(number)
                # a signal without a Python handler is left alone
                if callable(listener):
                    self._before[number] = listener
                    signal.signal(number, self._came)
        return self

    @property
    def waits(self) -> bool:
        """Whether a signal is kept."""
        return bool(self._kept)

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Pass a signal on to the program's handler at once while in this block. Once the handler has raised, later
        signals are kept again."""
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
        # set before anything else: any signal from now on comes while things are being ended
        self._open = False
        self._before[number](number, frame)
        self._open = True  # the handler did not raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, listener in self._before.items():
            signal.signal(number, listener)
        if self._kept and error is None:
            number = self._kept[0]
            self._before[number](number, None)
