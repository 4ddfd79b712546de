"""Pieces from a library that may send nothing, or hardly anything: what comes, and what is said when it does not."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from akrunner.launch.timed import timed

Pieces = Generator[bytes, None, None]


def of(*pieces: bytes) -> Pieces:
    yield from pieces


def downloads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "akrunner-download"]


@pytest.mark.parametrize("pieces", [[], [b"a"], [b"a", b"", b"b" * 1000]])
def test_the_same_pieces_come_in_order(pieces: list[bytes]) -> None:
    assert list(timed(of(*pieces), 60, 1)) == pieces
    assert list(timed(of(*pieces), 60, 1, threading.Event())) == pieces
    assert not downloads()


@pytest.mark.parametrize("kind", [ValueError, ConnectionResetError])
def test_what_the_library_raises_comes_behind_what_it_sent(kind: type[Exception]) -> None:
    def breaks() -> Pieces:
        yield b"a"
        raise kind("it broke")

    drawn = timed(breaks(), 60, 1)
    assert next(drawn) == b"a"
    with pytest.raises(kind, match="^it broke$"):
        next(drawn)
    assert not downloads()


@pytest.mark.parametrize("over", [None, threading.Event()])
def test_a_library_that_sends_nothing_is_left_behind(over: threading.Event | None) -> None:
    may_go = threading.Event()

    def stuck() -> Pieces:
        yield b"a"
        may_go.wait(60)

    drawn = timed(stuck(), 0.01, 1, over)
    try:
        assert next(drawn) == b"a"
        with pytest.raises(OSError, match="^it has sent nothing for 0.01 s$"):
            next(drawn)
        (thread,) = downloads()
    finally:
        may_go.set()
    thread.join(60)
    assert not downloads(), "its thread ends when the library returns"


def test_nobody_waits_for_what_is_no_longer_wanted() -> None:
    over, may_go = threading.Event(), threading.Event()

    def stuck() -> Pieces:
        yield b"a"
        may_go.wait(60)
        yield b"b"

    drawn = timed(stuck(), 1000, 1, over)
    assert next(drawn) == b"a"
    over.set()
    may_go.set()
    with pytest.raises(OSError, match="^it was stopped$"):
        next(drawn)
    assert not downloads()


def test_a_library_is_not_asked_before_somebody_wants_its_pieces() -> None:
    asked: list[int] = []

    def asks() -> Pieces:
        asked.append(1)
        yield b"a"

    drawn = timed(asks(), 60, 1)
    assert not asked and not downloads()
    assert next(drawn) == b"a" and asked
    drawn.close()
