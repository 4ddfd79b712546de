"""What is said on stderr while a command works: nobody waits for a reader who does not read, and who reads later has it all."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import termios
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from rich.console import Console

from akrunner.cli import stderr
from akrunner.cli.progress import Line
from akrunner.cli.show import Screen
from akrunner.errors import JobError, JobTimeoutError

#: more than a pipe or a terminal holds
MUCH = "x" * 100_000


@contextlib.contextmanager
def standing_in(writes: int) -> Iterator[None]:
    """Have a descriptor stand for stderr in a block."""
    with pytest.MonkeyPatch.context() as patch, open(writes, "w", closefd=False) as file:
        # pytest sets that of `sys` before each part of a test
        patch.setattr(stderr, "sys", SimpleNamespace(stderr=file))
        yield


@pytest.fixture(params=["pipe", "terminal"])
def reading(request: pytest.FixtureRequest) -> Iterator[int]:
    """The end that nobody reads yet of what stands for stderr."""
    reads, writes = os.pipe() if request.param == "pipe" else pty.openpty()
    if request.param == "terminal":
        # no \r before each \n
        modes: list[Any] = termios.tcgetattr(writes)
        modes[1] &= ~termios.OPOST
        termios.tcsetattr(writes, termios.TCSANOW, modes)
    with standing_in(writes):
        yield reads
    os.close(reads)
    os.close(writes)


def taken(reads: int, size: int) -> str:
    had = b""
    while len(had) < size:
        had += os.read(reads, 1 << 16)
    return had.decode()


def test_while_a_command_works_nobody_waits_and_a_reader_who_comes_later_has_it_all(reading: int) -> None:
    out = stderr.Stderr()
    out.begin()
    out.write(MUCH)
    assert out.behind
    out.write("more")
    had: list[str] = []
    reader = threading.Thread(target=lambda: had.append(taken(reading, len(MUCH) + 4)))
    reader.start()
    out.end(JobError("no limit and no signal"))
    reader.join(60)
    assert had == [MUCH + "more"] and not out.behind


def test_what_is_kept_has_an_end(reading: int) -> None:
    out = stderr.Stderr()
    out.begin()
    for _ in range(100):
        out.write(MUCH)
    assert len(out._left) < 2 * stderr._MOST
    out.end(JobTimeoutError("over"))


@pytest.mark.parametrize("error", [JobTimeoutError("over"), KeyboardInterrupt()])
def test_a_limit_or_a_signal_gives_the_rest_up(error: BaseException, reading: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stderr, "GIVEN_UP_SECONDS", 0.1)
    begun = time.monotonic()
    with pytest.raises(type(error)), stderr.working() as console:
        console.print(MUCH)
        raise error
    stderr.say_aside("what is kept", error)
    assert time.monotonic() - begun < 10


def test_outside_of_a_block_the_reader_is_waited_for_until_a_signal_comes(reading: int) -> None:
    class Came(BaseException):
        pass

    def came(number: int, frame: object) -> None:
        raise Came

    before = signal.signal(signal.SIGUSR1, came)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises(Came):
            stderr.console().print(MUCH)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_task_s_lines_wait_and_hold_nobody_else_up(reading: int) -> None:
    screen = Screen(as_json=False, quiet=False, log=True)
    screen._out.begin()
    screen.note(MUCH)
    printed = threading.Thread(target=lambda: screen.log("chief:0", "a line"))
    printed.start()
    screen.note("a note")
    assert printed.is_alive()
    said = ""
    while "a line" not in said:
        said += os.read(reading, 1 << 16).decode()
    printed.join(60)
    assert "akrunner: a note\n" in said and not screen._out.behind


def test_a_progress_line_is_left_out_while_the_terminal_is_behind() -> None:
    reads, writes = pty.openpty()
    with standing_in(writes):
        out = stderr.Stderr()
    out.begin()
    with Line(stderr.console(out, _environ={}), "starting", False) as line:
        out.write(MUCH)
        kept = len(out._left)
        for _ in range(100):
            line.show(lambda: "12 rows")
            assert line._live is not None
            line._live.refresh()
        assert len(out._left) == kept
    out.end(JobTimeoutError("over"))
    os.close(reads)
    os.close(writes)


def test_a_reader_that_is_gone_is_told_to_who_writes_and_not_at_the_end() -> None:
    reads, writes = os.pipe()
    with standing_in(writes):
        out = stderr.Stderr()
    out.begin()
    out.write(MUCH)
    os.close(reads)
    with pytest.raises(BrokenPipeError):
        out.write("more")
    assert not out.behind
    out.end()
    os.close(writes)


def test_without_a_descriptor_it_is_python_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    with stderr.working() as console:
        console.print("said")
        assert not console.is_terminal
    assert capsys.readouterr().err == "said\n"


def test_a_task_s_line_to_a_reader_that_is_gone_is_handled_by_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    """As any other print of a console is: the job goes on, and is no fault of akrunner."""

    def gone(_: Console) -> NoReturn:
        raise SystemExit(1)

    monkeypatch.setattr(Console, "on_broken_pipe", gone)
    reads, writes = os.pipe()
    with standing_in(writes):
        screen = Screen(as_json=False, quiet=False, log=True)
    screen._out.begin()
    screen.note(MUCH)
    os.close(reads)
    with pytest.raises(SystemExit):
        screen.log("chief:0", "a line")
    os.close(writes)
