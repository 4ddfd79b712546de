"""Writes that never block, whatever the descriptor is."""

from __future__ import annotations

import os
import pty
import socket
from pathlib import Path

import pytest

from akrunner.io import unblocked
from akrunner.io.unblocked import Unblocked

#: more than a pipe, a socket or a terminal holds
MUCH = bytes(8 << 20)


def unread(kind: str) -> tuple[int, int]:
    if kind == "socket":
        one, other = socket.socketpair()
        return one.detach(), other.detach()
    return pty.openpty() if kind == "terminal" else os.pipe()


@pytest.mark.parametrize(("kind", "again"), [("pipe", True), ("pipe", False), ("socket", False), ("terminal", True)])
def test_as_much_is_written_as_there_is_room_for(kind: str, again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not again:
        # a pipe of another user, or a system without /proc
        monkeypatch.setattr(unblocked, "_opened_again", lambda fd: fd)
    reading, writing = unread(kind)
    end = Unblocked(writing)
    whole = 0
    while written := end.write(MUCH):
        whole += written
    assert 0 < whole < len(MUCH)
    had = len(os.read(reading, 1 << 20))
    while had < whole:
        had += len(os.read(reading, 1 << 20))
    assert end.ready(60) and end.write(b"more") == 4
    assert os.read(reading, 10) == b"more" and end.isatty() == (kind == "terminal")
    end.close()
    os.close(reading)


def test_the_flags_of_others_stay_as_they_are() -> None:
    reading, writing = os.pipe()
    end = Unblocked(os.dup(writing))
    assert os.get_blocking(writing) and not os.get_blocking(end.fileno())
    end.close()
    os.close(reading)
    os.close(writing)


def test_a_file_takes_everything_where_it_stands(tmp_path: Path) -> None:
    with open(tmp_path / "o", "wb") as file:
        end = Unblocked(os.dup(file.fileno()))
        assert end.write(MUCH) == len(MUCH)
        end.close()
        file.write(b"more")
    assert (tmp_path / "o").stat().st_size == len(MUCH) + 4


def test_what_is_only_read_is_closed_and_told() -> None:
    reading, writing = os.pipe()
    with pytest.raises(OSError, match="Bad file descriptor"):
        Unblocked(reading)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reading)
    with pytest.raises(BrokenPipeError):
        # nobody else has an end to read
        os.write(writing, b"x")
    os.close(writing)
