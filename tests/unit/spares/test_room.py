"""What warm workers really take is what counts: memory that several share once."""

from __future__ import annotations

import pytest

from akrunner.spares import room
from akrunner.spares.spare import Memory

TEMPLATE, FORK = Memory(600 << 20, 400 << 20, 3 << 20), Memory(230 << 20, 80 << 20, 3 << 20)


def test_a_fork_fits_where_one_that_imports_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "memory_left", lambda: 8 << 30)
    found = room.Room(700 << 20)
    there = [TEMPLATE, FORK, FORK]
    assert found.exceeded(there) == "" and found.lacks(there, [FORK, FORK], fork=True) == ""
    words = "one has 600 MiB of memory, and all may have 700 MiB (max_memory=)"
    assert found.lacks(there, [FORK, FORK], fork=False) == words
    assert found.exceeded([*there, FORK, FORK]) == words
    assert found.exceeded([]) == ""


def test_a_machine_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "memory_left", lambda: 100 << 20)
    assert room.Room(1 << 40).exceeded([FORK]) == "the machine has only 100 MiB of memory left"
    assert "only 100 MiB" in room.Room(1 << 40).lacks([], [], fork=True)
