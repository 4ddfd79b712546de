"""Memory that is given out again for each batch."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from akrunner.codec import scratch
from akrunner.codec.scratch import Arena


def overlap(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    return np.shares_memory(one, other)


def test_what_is_taken_for_one_batch_never_overlaps() -> None:
    arena = Arena()
    for _ in range(3):
        arena.reset()
        taken = [arena.take(size) for size in (1, 64, 0, 65, 1000)]
        assert [len(one) for one in taken] == [1, 64, 0, 65, 1000]
        for number, one in enumerate(taken):
            one[:] = number
        assert all((one == number).all() for number, one in enumerate(taken))


def test_a_batch_as_large_as_the_last_one_finds_its_memory() -> None:
    arena = Arena()
    arena.take(1000)
    arena.reset()
    first = arena.take(1000)
    arena.reset()
    again = arena.take(1000)
    assert overlap(first, again)
    # a batch that is larger takes what it lacks elsewhere
    assert not overlap(arena.take(5000), again)


def test_pieces_begin_at_multiples_of_64() -> None:
    arena = Arena()
    arena.take(1000)
    arena.reset()
    first, second, third = arena.take(1), arena.take(65), arena.take(1)
    begin = first.__array_interface__["data"][0]
    assert [one.__array_interface__["data"][0] - begin for one in (second, third)] == [64, 192]


def test_no_more_than_the_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_KEPT", 128)
    arena = Arena()
    arena.take(4096)
    arena.reset()
    large = arena.take(4096)
    assert len(large) == 4096
    arena.reset()
    small = arena.take(128)
    assert not overlap(small, large)
    arena.reset()
    assert overlap(arena.take(128), small)


def test_each_thread_has_its_own() -> None:
    arena = Arena()
    arena.take(1000)
    arena.reset()
    ours = arena.take(500)
    theirs: list[NDArray[np.uint8]] = []

    def other() -> None:
        for _ in range(2):
            arena.reset()
            theirs.append(arena.take(500))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert not any(overlap(ours, one) for one in theirs)
