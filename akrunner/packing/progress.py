"""Progress of a run: how many rows are done, how fast it is, and when it will be done."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from akrunner.progress.rates import Window
from akrunner.progress.views import ROWS, View

#: seconds between two reports, and seconds over which the rate is measured
_EVERY, _STRETCH = 0.2, 15.0


@dataclass(frozen=True)
class PackProgress:
    """How far a run is.

    Attributes:
        doing: what the run does at the moment, in a word: listing, reading, writing, ...
        rows: rows that are done, with those that an earlier run did.
        total: rows in all; None: not known.
        bytes: bytes read by this run; of tables those that their rows take in memory.
        seconds: seconds since this run began.
        rate: rows per second over the last seconds.
        seconds_left: estimated seconds to the end; None: unknown.
    """

    doing: str
    rows: int
    total: int | None
    bytes: int
    seconds: float
    rate: float
    seconds_left: float | None


class Meter:
    """Counts rows and bytes, and reports progress.

    Args: tell: called now and then with the progress, in the thread that packs; None: nothing is reported.
    """

    def __init__(self, tell: Callable[[PackProgress], None] | None = None) -> None:
        self._tell = tell
        self._began = time.monotonic()
        self._told = 0.0
        self._points: deque[tuple[float, int]] = deque()
        self.doing = "listing"
        self.total: int | None = None
        self.rows = self.bytes = 0

    def starts(self, doing: str, total: int | None = None) -> None:
        """Begin another activity. Args: doing: the activity, in a word; total: how many rows it has; None: not known."""
        self.doing, self.rows, self.total = doing, 0, total
        self._points.clear()
        self._points.append((time.monotonic(), 0))
        self._report(True)

    def goes_on(self, rows: int) -> None:
        """Count rows that an earlier run has done."""
        self.rows += rows
        self._points.clear()
        self._points.append((time.monotonic(), self.rows))

    def add(self, rows: int, size: int = 0) -> None:
        self.rows += rows
        self.bytes += size
        self._report(False)

    def _report(self, at_once: bool) -> None:
        now = time.monotonic()
        if self._tell is None or not (at_once or now - self._told >= _EVERY):
            return
        self._told = now
        self._points.append((now, self.rows))
        while len(self._points) > 2 and now - self._points[0][0] > _STRETCH:
            self._points.popleft()
        first, rows = self._points[0]
        rate = (self.rows - rows) / (now - first) if now > first else 0.0
        left = (self.total - self.rows) / rate if self.total is not None and rate > 0 else None
        self._tell(PackProgress(self.doing, self.rows, self.total, self.bytes, now - self._began, rate, left))


def view_of(progress: PackProgress, packed: Window) -> View:
    """Return how far a run is, for a display. Args: packed: takes how many bytes are packed so far."""
    packed.add(progress.seconds, progress.bytes)
    return View(
        seconds=progress.seconds,
        doing=progress.doing,
        share=min(progress.rows / progress.total, 1.0) if progress.total else None,
        share_of=ROWS if progress.total else "",
        rows=progress.rows,
        rows_total=progress.total,
        rows_per_second=progress.rate or None,
        bytes_per_second=packed.rate,
        seconds_left=progress.seconds_left,
    )
