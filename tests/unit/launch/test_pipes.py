"""The pipes between a host and one worker process."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

import pytest

from akrunner.launch.pipes import Pipes


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def closed(fds: tuple[int, ...]) -> Iterator[None]:
    try:
        yield
    finally:
        for fd in filter(is_open, fds):
            os.close(fd)


def test_what_one_end_writes_the_other_reads() -> None:
    pipes = Pipes()
    with closed((*pipes.near, *pipes.far)):
        input_fd, output_fd, log_fd = pipes.near
        child_read, child_write, child_log = pipes.far
        assert len({*pipes.near, *pipes.far}) == 6
        for writes, reads in ((input_fd, child_read), (child_write, output_fd), (child_log, log_fd)):
            os.write(writes, b"rows")
            assert os.read(reads, 10) == b"rows"


def test_no_other_program_inherits_an_end() -> None:
    pipes = Pipes()
    with closed((*pipes.near, *pipes.far)):
        assert not any(os.get_inheritable(fd) for fd in (*pipes.near, *pipes.far))


def test_once_handed_over_the_pipe_ends_with_the_worker() -> None:
    pipes = Pipes()
    with closed((*pipes.near, *pipes.far)):
        pipes.handed()
        assert not any(map(is_open, pipes.far)) and all(map(is_open, pipes.near))
        assert os.read(pipes.near[1], 1) == b"" == os.read(pipes.near[2], 1)
        with pytest.raises(BrokenPipeError):
            os.write(pipes.near[0], b"x")


def test_close_closes_all_ends() -> None:
    pipes = Pipes()
    pipes.close()
    assert not any(map(is_open, (*pipes.near, *pipes.far)))


@pytest.mark.parametrize("made", [0, 1, 2])
def test_no_pipe_stays_open_when_there_are_no_descriptors_left(made: int, monkeypatch: pytest.MonkeyPatch) -> None:
    really, ends = os.pipe, list[int]()

    def pipe() -> tuple[int, int]:
        if len(ends) == 2 * made:
            raise OSError(24, "Too many open files")
        ends.extend(really())
        return ends[-2], ends[-1]

    monkeypatch.setattr(os, "pipe", pipe)
    with pytest.raises(OSError, match="Too many open files"):
        Pipes()
    assert len(ends) == 2 * made and not any(map(is_open, ends))


def test_pipes_of_rows_are_enlarged_and_that_of_the_log_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    enlarged: list[tuple[int, int]] = []

    def refuses(fd: int, command: int, size: int) -> int:
        enlarged.append((fd, size))
        raise OSError("the limit does not allow it")

    monkeypatch.setattr(fcntl, "fcntl", refuses)
    pipes = Pipes()
    with closed((*pipes.near, *pipes.far)):
        assert enlarged == [(fd, 1 << 20) for fd in pipes.near[:2]]
