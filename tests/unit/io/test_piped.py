"""Bytes for pipes and devices whose readers stop reading."""

from __future__ import annotations

import os
import pty
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from akrunner.errors import JobStalledError, JobTimeoutError, SinkError
from akrunner.io import unblocked
from akrunner.io.destinations import file_destination
from akrunner.io.limits import limited
from akrunner.io.piped import Piped, check_writable, is_special, opened

#: more than a pipe, a socket or a terminal holds
MUCH = bytes(8 << 20)


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe: one to read, and one to write, which belongs to the `Piped` of the test."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def unread(kind: str) -> tuple[int, int]:
    """Return the ends of something that nobody reads: the one to read, and the one to write."""
    if kind == "socket":
        one, other = socket.socketpair()
        return one.detach(), other.detach()
    return pty.openpty() if kind == "terminal" else os.pipe()


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    special = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/7", str(tmp_path / "pipe")]
    assert all(map(is_special, special))
    assert not any(map(is_special, [str(tmp_path), str(tmp_path / "file"), str(tmp_path / "gone"), "stdout"]))


@pytest.mark.parametrize(("kind", "again"), [("pipe", True), ("pipe", False), ("socket", False), ("terminal", True)])
def test_a_reader_that_does_not_read_is_waited_for_within_the_limits(
    kind: str, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not again:
        # a pipe of another user, or a system without /proc
        monkeypatch.setattr(unblocked, "_opened_again", lambda fd: fd)
    for timeout, stall, error, said in (
        (0.3, None, JobTimeoutError, r"timeout=0.3 s .* waited for whoever reads stdout"),
        (60, 0.3, JobStalledError, r"moved for 0.3 s: the job waits for whoever reads stdout\n.*--stall-timeout"),
    ):
        reading, writing = unread(kind)
        stream = Piped(writing, "stdout")
        begun = time.monotonic()
        with limited(timeout, stall), pytest.raises(error, match=said):
            stream.write(MUCH)
            stream.flush()
        stream.drop()
        assert stream.closed and time.monotonic() - begun < 10
        os.close(reading)


def test_what_is_dropped_waits_for_nobody(ends: tuple[int, int]) -> None:
    reading, writing = ends
    os.set_blocking(writing, False)
    filled = os.write(writing, MUCH)
    os.set_blocking(writing, True)
    stream = Piped(writing, "stdout")
    stream.write(b"a few rows")
    stream.drop()
    stream.drop()
    assert len(os.read(reading, len(MUCH))) == filled and os.read(reading, 1) == b""


@pytest.mark.parametrize("again", [True, False])
def test_a_slow_reader_has_every_byte(again: bool, ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    if not again:
        monkeypatch.setattr(unblocked, "_opened_again", lambda fd: fd)
    reading, writing = ends
    wanted = os.urandom(1 << 20)
    had = bytearray()

    def read() -> None:
        while part := os.read(reading, 30000):
            had.extend(part)
            time.sleep(0.001)

    reader = threading.Thread(target=read)
    reader.start()
    # each time less than what is waited for in all
    with limited(60, 5), Piped(writing, "stdout") as stream:
        for at in range(0, len(wanted), 100_000):
            stream.write(wanted[at : at + 100_000])
    reader.join(60)
    assert bytes(had) == wanted


def test_a_large_write_stays_large(ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    write = os.write

    def written(fd: int, data: memoryview) -> int:
        sizes.append(len(data))
        return write(fd, data)

    with Piped(ends[1], "stdout") as stream:
        monkeypatch.setattr(os, "write", written)
        for _ in range(1000):
            stream.write(b"12345")
        stream.flush()
        stream.write(bytes(50_000))
        monkeypatch.undo()
    assert sizes == [5000] and len(os.read(ends[0], 1 << 20)) == 55_000


def test_the_flags_of_others_stay_as_they_are(ends: tuple[int, int]) -> None:
    with Piped(os.dup(ends[1]), "stdout") as stream:
        assert os.get_blocking(ends[1]) and not os.get_blocking(stream.fileno()) and not stream.isatty()
    os.close(ends[1])


def test_an_end_that_is_only_read_is_not_opened_anew_for_writing(ends: tuple[int, int], tmp_path: Path) -> None:
    """Its bytes would go to nobody, as those of `<(gzip > o.gz)`."""
    reading, writing = ends
    os.close(writing)
    with pytest.raises(OSError, match="Bad file descriptor"):
        opened(f"/dev/fd/{reading}", "o")
    with pytest.raises(SinkError, match=rf"^output: /dev/fd/{reading} is only open for reading; a shell's >\(...\) can"):
        file_destination(f"/dev/fd/{reading}", False)


@pytest.mark.parametrize("path", ["/dev/fd/x.csv", "/dev/fd/", "/dev/fd/99999999999", "/proc/self/fd/1/x", "/dev/fd/-1"])
def test_a_path_that_names_no_descriptor_is_told(path: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"No such file or directory: '{path}'"):
        opened(path, "o")
    with pytest.raises(SinkError, match=f"^output: {path}: No such file or directory$"):
        check_writable(path)


def test_a_file_is_written_where_it_is(tmp_path: Path) -> None:
    with open(tmp_path / "o", "wb") as file:
        file.write(b"one ")
        file.flush()
        with opened(f"/dev/fd/{file.fileno()}", "o") as stream:
            stream.write(b"two ")
        file.write(b"three")
    assert (tmp_path / "o").read_bytes() == b"one two three"


def test_a_reader_that_is_gone_is_told_at_once(ends: tuple[int, int]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = Piped(writing, "stdout")
    with pytest.raises(BrokenPipeError):
        stream.write(MUCH)
    stream.drop()


def test_a_full_device_is_told() -> None:
    stream = opened("/dev/full", "o")
    stream.write(b"x")
    with pytest.raises(OSError, match="No space"):
        stream.flush()
    stream.drop()


def test_a_signal_ends_the_wait(ends: tuple[int, int]) -> None:
    class Came(BaseException):
        pass

    def came(number: int, frame: object) -> None:
        raise Came

    before = signal.signal(signal.SIGUSR1, came)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        stream = Piped(ends[1], "stdout")
        begun = time.monotonic()
        with pytest.raises(Came):
            stream.write(MUCH)
        stream.drop()
        assert time.monotonic() - begun < 10
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_fifo_waits_for_its_reader_if_it_shall(tmp_path: Path) -> None:
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    with pytest.raises(OSError, match="No such device"):
        opened(path, "fifo")
    with limited(0.2, None), pytest.raises(JobTimeoutError, match="waited for somebody to read fifo"):
        opened(path, "fifo", wait=True)
    with limited(60, 0.2), pytest.raises(JobStalledError, match="waits for somebody to read fifo"):
        opened(path, "fifo", wait=True)
    had: list[bytes] = []

    def read() -> None:
        time.sleep(0.2)
        had.append(Path(path).read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    with limited(60, None), opened(path, "fifo", wait=True) as stream:
        stream.write(b"rows")
    reader.join(60)
    assert had == [b"rows"]
