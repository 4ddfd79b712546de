"""Memory that is used again: fresh pages cost more than what is done with them."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

#: more than this is not kept from one batch to the next
_KEPT = 32 << 20


class Arena(threading.local):
    """Uninitialised bytes for as long as one batch is worked on; a thread has its own.

    What was given out is given out again after `reset`: nothing that outlives the batch may lie in it.
    """

    def __init__(self) -> None:
        self._memory: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._at = 0

    def reset(self) -> None:
        """Start a batch. Memory for one as large as the last is there at once."""
        if self._at > len(self._memory):
            self._memory = np.empty(min(self._at * 5 // 4, _KEPT), np.uint8)
        self._at = 0

    def take(self, size: int) -> NDArray[np.uint8]:
        """So many bytes, aligned to 64."""
        at = self._at
        self._at += -(-size // 64) * 64
        if self._at > len(self._memory):
            return np.empty(size, np.uint8)
        return self._memory[at : at + size]


arena = Arena()
