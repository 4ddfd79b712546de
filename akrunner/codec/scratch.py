"""Memory that is used again for each batch: getting fresh pages costs more than the work that is done in them."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

#: more bytes than this are not kept from one batch to the next
_KEPT = 32 << 20


class Arena(threading.local):
    """Uninitialised bytes for the time in which one batch is processed; each thread has its own.

    After `reset` the same bytes are given out again, so nothing that outlives the batch may lie in them.
    """

    def __init__(self) -> None:
        self._memory: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._at = 0

    def reset(self) -> None:
        """Start a new batch. There is memory at once for a batch as large as the last one, up to `_KEPT` bytes."""
        if self._at > len(self._memory):
            self._memory = np.empty(min(self._at * 5 // 4, _KEPT), np.uint8)
        self._at = 0

    def take(self, size: int) -> NDArray[np.uint8]:
        """Return that many bytes, aligned to 64."""
        at = self._at
        self._at += -(-size // 64) * 64
        if self._at > len(self._memory):
            return np.empty(size, np.uint8)
        return self._memory[at : at + size]


arena = Arena()
