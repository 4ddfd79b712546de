"""What one process of the warm ones has of the machine's memory."""

from __future__ import annotations

import os

from akrunner.spares.spare import Memory


def test_memory_that_is_shared_counts_in_part() -> None:
    found = Memory.of(os.getpid())
    assert 0 < found.own <= found.part <= found.whole


def test_one_that_is_gone_has_none() -> None:
    assert Memory.of(1 << 22) == (0, 0, 0)
