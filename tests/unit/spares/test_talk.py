"""What the process that keeps warm workers and a job say to each other, when one of them talks nonsense or has no more of something."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.spares import client, daemon, talk
from akrunner.spares.wanted import Wanted

MINE = Wanted("/python", {}, "", (), {}, {})


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def gone(fds: list[int]) -> bool:
    """Whether nobody holds the other end of these pipes any more."""
    for fd in fds:
        with contextlib.suppress(BrokenPipeError):
            os.write(fd, b"x")
            return False
    return True


@pytest.mark.parametrize(
    ("answer", "pipes"),
    [
        ({"why": "none was ready"}, 3),
        ({}, 3),
        ({"pid": "x", "mark": "", "began": 0, "late": []}, 3),
        ({"pid": 0, "mark": "", "began": 0, "late": []}, 3),
        ({"pid": 99999999, "mark": "", "began": 0, "late": []}, 2),
        ({"pid": 99999999, "mark": "", "began": 0, "late": None}, 3),
        ({"pid": 99999999, "mark": "", "began": 10**400, "late": []}, 3),
        ({"pid": 99999999, "mark": "", "began": float("inf"), "late": []}, 3),
        ({"pid": float("inf"), "mark": "", "began": 0, "late": []}, 3),
        ({"pid": 10**30, "mark": "", "began": 0, "late": []}, 3),
    ],
)
def test_an_answer_that_is_no_worker(pair: tuple[socket.socket, socket.socket], answer: dict[str, Any], pipes: int) -> None:
    """Its descriptors are closed, as are such that come with a message that has none."""
    ours, theirs = pair
    ends = [os.pipe() for _ in range(pipes + 1)]
    talk.say(theirs, {"heard": True}, [ends[0][0]])
    talk.say(theirs, answer, [read for read, _ in ends[1:]])
    for read, _ in ends:
        os.close(read)
    try:
        if "why" in answer:
            assert client._asked(ours, MINE, []) == "none was ready"
        else:
            with pytest.raises(talk.TalkError, match="not understood"):
                client._asked(ours, MINE, [])
        assert gone([write for _, write in ends])
    finally:
        for _, write in ends:
            os.close(write)


def test_no_thread_for_a_connection(pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cut off, and whoever comes next is heard."""
    ours, theirs = pair

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def accept() -> tuple[socket.socket, None]:
        if theirs.fileno() < 0:
            kept._stopping.set()
            raise TimeoutError
        return theirs, None

    listening: Any = SimpleNamespace(socket=SimpleNamespace(settimeout=bool, accept=accept), close=list)
    pool: Any = SimpleNamespace(asleep=lambda: False, close=list)
    kept = daemon.Daemon(listening, pool, {})
    monkeypatch.setattr(daemon, "signal", SimpleNamespace(SIGTERM=15, SIGINT=2, signal=lambda *given: None))
    monkeypatch.setattr(threading.Thread, "start", start)
    kept.serve()
    assert ours.recv(1) == b"" and not kept._silent
    assert all(kept._room.acquire(blocking=False) for _ in range(daemon._MOST))
