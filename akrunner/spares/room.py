"""How much of this machine is left for warm workers: memory, and processors."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import psutil

from akrunner.launch.capacity import memory_left
from akrunner.spares.spare import Memory

#: memory of the machine that is left alone
_SPARED = 512 << 20


class Room:
    """Memory. Args: most_bytes: that all of them may have."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        #: bytes of the largest, which has imported, and of what the largest fork shares with nobody
        self._size = self._fork_size = 0

    def lacks(self, there: Sequence[Memory], forks: Sequence[Memory], fork: bool) -> str:
        """Why there is none for one more, in words; "" when there is.

        Args: there: what those have that there are; forks: those of them that were forked; fork: the next is one.
        """
        self._size = max([self._size, *(one.whole for one in there)])
        self._fork_size = max([self._fork_size, *(one.own for one in forks)])
        size = self._fork_size if fork else self._size
        total, left = sum(one.part for one in there) + size, memory_left()
        return self._words(total, left) if total > self._most or left < size + _SPARED else ""

    def exceeded(self, there: Sequence[Memory]) -> str:
        """Why one of them is to end, in words; "" when none is."""
        total, left = sum(one.part for one in there), memory_left()
        if not there or (left >= _SPARED // 2 and total <= self._most):
            return ""
        self._size = max([self._size, *(one.whole for one in there)])
        return self._words(total, left)

    def _words(self, wanted: int, left: int) -> str:
        """Args: wanted: bytes by all of them; left: on this machine."""
        if wanted > self._most:
            return f"one has {self._size >> 20} MiB of memory, and all may have {self._most >> 20} MiB (max_memory=)"
        return f"the machine has only {left >> 20} MiB of memory left"


def cores() -> int:
    """Those this process may use."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class Processor:
    """How much of the machine's processors is not used."""

    def __init__(self) -> None:
        self._before = self._now()

    def _now(self) -> tuple[float, float]:
        times = psutil.cpu_times()
        return times.idle + getattr(times, "iowait", 0.0), time.monotonic()

    def idle_cores(self) -> float:
        """Since it was asked last."""
        before, now = self._before, self._now()
        self._before = now
        return (now[0] - before[0]) / max(now[1] - before[1], 1e-3)
