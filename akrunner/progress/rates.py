"""How fast a number grows at the moment: over the last seconds, and not since the beginning."""

from __future__ import annotations

from collections import deque

#: seconds over which a rate is measured
WINDOW_SECONDS = 5.0
#: from fewer seconds than these nothing is concluded
LEAST_SECONDS = 0.5


class Window:
    """The last values of a number that grows, with the times at which it had them.

    Args:
        seconds: how far back the values go.
        changes: keep only values that differ from the one before, and at least two of them, however old: for a number that grows in
            steps which may be further apart than `seconds`.
    """

    def __init__(self, seconds: float = WINDOW_SECONDS, changes: bool = False) -> None:
        self._seconds = seconds
        self._changes = changes
        self._points: deque[tuple[float, float]] = deque()
        self._now = 0.0

    def add(self, now: float, value: float) -> None:
        """Take the number's value. One that is smaller than the last begins anew.

        Args: now: the time in seconds, of a clock that is never set back.
        """
        points = self._points
        self._now = now
        if points and value < points[-1][1]:
            points.clear()
        if self._changes and points and points[-1][1] == value:
            return
        points.append((now, value))
        while len(points) > 2 and points[1][0] <= now - self._seconds:
            points.popleft()

    @property
    def rate(self) -> float | None:
        """How much the number grows in a second; None if that is not known yet.

        After its last change the rate falls once the number has stood still for longer than it took to grow.
        """
        if len(self._points) < 2:
            return None
        (began, first), (ended, last) = self._points[0], self._points[-1]
        seconds, silent = ended - began, self._now - ended
        if silent > seconds:
            seconds += silent
        return (last - first) / seconds if seconds >= LEAST_SECONDS else None
