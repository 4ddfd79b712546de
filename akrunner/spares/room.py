"""How much of this machine is left for warm workers: memory, and processors."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import psutil

from akrunner.launch.capacity import memory_left
from akrunner.spares.spare import Memory

#: bytes of the machine's memory that warm workers leave free
_SPARED = 512 << 20


class Room:
    """The memory for warm workers.

    Args:
        most_bytes: the memory that all of them together may have.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        #: bytes of the largest worker that has imported TensorFlow itself; bytes that the largest forked worker shares with no
        #: other process
        self._size = self._fork_size = 0

    def lacks(self, there: Sequence[Memory], forks: Sequence[Memory], fork: bool) -> str:
        """Return why there is no memory for one more worker, in words; "" if there is.

        Args:
            there: the memory of the workers and templates that there are.
            forks: the memory of the workers that were forked.
            fork: whether the next worker will be forked.
        """
        self._size = max([self._size, *(one.whole for one in there)])
        self._fork_size = max([self._fork_size, *(one.own for one in forks)])
        size = self._fork_size if fork else self._size
        total, left = sum(one.part for one in there) + size, memory_left()
        return self._words(total, left) if total > self._most or left < size + _SPARED else ""

    def exceeded(self, there: Sequence[Memory]) -> str:
        """Return why one of the workers must end, in words; "" if none must."""
        total, left = sum(one.part for one in there), memory_left()
        if not there or (left >= _SPARED // 2 and total <= self._most):
            return ""
        self._size = max([self._size, *(one.whole for one in there)])
        return self._words(total, left)

    def _words(self, wanted: int, left: int) -> str:
        """Return why memory is short, in words.

        Args:
            wanted: bytes that all workers together would have.
            left: bytes of memory that the machine has left.
        """
        if wanted > self._most:
            return f"one has {self._size >> 20} MiB of memory, and all may have {self._most >> 20} MiB (max_memory=)"
        return f"the machine has only {left >> 20} MiB of memory left"


def cores() -> int:
    """Return how many cores this process may use."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class Processor:
    """Measures how much of the machine's processors is idle."""

    def __init__(self) -> None:
        self._before = self._now()

    def _now(self) -> tuple[float, float]:
        times = psutil.cpu_times()
        return times.idle + getattr(times, "iowait", 0.0), time.monotonic()

    def idle_cores(self) -> float:
        """Return how many cores were idle, on average, since the last call."""
        before, now = self._before, self._now()
        self._before = now
        return (now[0] - before[0]) / max(now[1] - before[1], 1e-3)
