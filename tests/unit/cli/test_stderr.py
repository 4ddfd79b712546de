"""What is said on stderr while a command works: nobody waits for a reader who does not read, and who reads later has it all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import pty
import re
import select
import signal
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from rich.console import Console

from akrunner.cli import guarded, stderr
from akrunner.cli.progress import Line
from akrunner.cli.show import Screen
from akrunner.engines.base import Progress
from akrunner.errors import JobError, JobTimeoutError
from akrunner.launch.logs import LogPump

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
    assert out.go_on()
    out.write("more")
    had: list[str] = []
    reader = threading.Thread(target=lambda: had.append(taken(reading, len(MUCH) + 4)))
    reader.start()
    out.end(JobError("no limit and no signal"))
    reader.join(60)
    assert had == [MUCH + "more"] and not out.go_on()


def test_what_is_kept_has_an_end(reading: int) -> None:
    out = stderr.Stderr()
    out.begin()
    for _ in range(200):
        out.write(MUCH)
    assert len(out._left) < stderr._MOST + 2 * len(MUCH)
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


def test_a_task_s_lines_wait_for_who_reads_and_hold_nobody_else_up(reading: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stderr, "_READER_SECONDS", 1000.0)
    screen = Screen(as_json=False, quiet=False, log=True)
    screen._out.begin()
    screen.note(MUCH)
    printed = threading.Thread(target=lambda: screen.log("chief:0", "a line"))
    printed.start()
    screen.note("a note")
    assert printed.is_alive()
    said = _until(reading, "a line\n")
    printed.join(60)
    assert "akrunner: a note\n" in said and not screen._out.go_on()


def test_a_task_s_line_comes_as_it_was_printed_without_colours(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(as_json=False, quiet=False, log=True)
    screen.known_as = {"chief:0": "worker 0"}
    screen.log("chief:0", "a\t[b] \x1b[31mc\x07")
    assert capsys.readouterr().err == "[chief:0 (worker 0)] a\t[b] c\\x07\n"


@pytest.mark.slow
def test_a_reader_who_pauses_keeps_no_line_from_the_log_and_gets_them_all_later(reading: int, tmp_path: Path) -> None:
    lines = [f"{number} {'x' * 60}" for number in range(5000)]
    screen = Screen(as_json=False, quiet=False, log=True)
    log, writes = os.pipe()
    with screen:
        pump = LogPump(log, str(tmp_path / "log"), lambda line: screen.log("chief:0", line))
        os.write(writes, b"".join(f"{line}\n".encode() for line in lines[:500]))
        for line in lines[500:]:
            os.write(writes, f"{line}\n".encode())
        os.close(writes)
        pump.join(60)
        assert not pump._thread.is_alive() and pump.error is None
        assert (tmp_path / "log").read_text().splitlines() == lines and pump.tail(1) == lines[-1]
        had: list[str] = []
        reader = threading.Thread(target=lambda: had.append(_until(reading, lines[-1])))
        reader.start()
    reader.join(60)
    assert re.findall(r"[0-9]+ x+", had[0]) == lines


def test_what_is_left_out_is_told(reading: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stderr, "_MOST", len(MUCH))
    out = stderr.Stderr()
    out.begin()
    # the first goes in part, the second is kept
    for text in (f"{MUCH}\n", f"{MUCH}\n", "left\n", "out\n"):
        out.write(text)
    had: list[str] = []
    reader = threading.Thread(target=lambda: had.append(_until(reading, "read them ...]\n")))
    reader.start()
    out.end()
    reader.join(60)
    assert had == [f"{MUCH}\n{MUCH}\n[... 9 bytes left out, as nobody read them ...]\n"]


def test_a_progress_line_is_left_out_while_the_terminal_is_behind() -> None:
    reads, writes = pty.openpty()
    with standing_in(writes):
        out = stderr.Stderr()
    out.begin()
    with Line(stderr.console(out, _environ={}), "starting", False) as line:
        out.write(MUCH)
        for _ in range(100):
            line.show(lambda: "12 rows")
            assert line._live is not None
            line._live.refresh()
        # the terminal takes some of the text later than it was written
        assert out._left and not set(out._left) - set(b"x\n")
    out.end(JobTimeoutError("over"))
    os.close(reads)
    os.close(writes)


def test_a_progress_line_goes_on_when_a_stopped_terminal_is_started_again() -> None:
    reads, writes = pty.openpty()
    with standing_in(writes):
        out = stderr.Stderr()
    out.begin()
    with Line(stderr.console(out, _environ={}), "starting", False) as line:
        _until(reads, "starting")
        # Ctrl-S, and Ctrl-Q when a frame has found no room
        os.write(reads, b"\x13")
        words = iter(range(1_000_000))
        while not out._left:
            line.show(lambda: f"{next(words)} rows")
            time.sleep(0.01)
        line.show(lambda: "the newest")
        os.write(reads, b"\x11")
        _until(reads, "the newest")
    out.end()
    os.close(reads)
    os.close(writes)


def _until(reads: int, words: str) -> str:
    """Read a terminal until it shows these words."""
    had, until = "", time.monotonic() + 60
    while words not in had:
        assert select.select([reads], [], [], until - time.monotonic())[0], had
        had += os.read(reads, 1 << 16).decode()
    return had


def test_what_a_pipe_had_no_room_for_comes_at_the_next_look_at_the_progress() -> None:
    reads, writes = os.pipe()
    with standing_in(writes):
        screen = Screen(as_json=False, quiet=False, log=True)
    screen._out.begin()
    screen.note(MUCH)
    size = len(f"akrunner: {MUCH}\n")
    had = taken(reads, 1)
    while len(had) < size:
        screen.progress(Progress(1.0, 0, 0, 0, 0, {}, {}))
        had += taken(reads, 1)
    assert had == f"akrunner: {MUCH}\n" and not screen._out._left
    os.close(reads)
    os.close(writes)


@pytest.fixture(params=["pipe", "terminal"])
def gone(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the reader of what stands for stderr go, and fail if Rich hears of it: it would send stdout to /dev/null, and end."""
    reads, writes = os.pipe() if request.param == "pipe" else pty.openpty()
    os.close(reads)

    def hears(_: Console) -> NoReturn:
        raise AssertionError("Rich was told")

    with pytest.MonkeyPatch.context() as patch, standing_in(writes):
        patch.setattr(Console, "on_broken_pipe", hears)
        yield
    os.close(writes)


def test_a_reader_who_is_gone_ends_nothing(gone: None) -> None:
    screen = Screen(as_json=False, quiet=False, log=True)
    with screen:
        screen.log("chief:0", "a line")
        screen.progress(Progress(1.0, 0, 0, 0, 0, {}, {}, ("it is slow",)))
        screen.note(MUCH)
        screen.log("chief:0", "another")
    screen.note("and behind it")
    stderr.say_aside("what is kept", KeyboardInterrupt())
    assert guarded.ended(_fails, as_json=False) == 1
    assert not screen._out._left


def _fails() -> NoReturn:
    raise JobError("it failed")


def test_a_reader_who_goes_while_text_waits_for_him_ends_nothing() -> None:
    reads, writes = os.pipe()
    with standing_in(writes):
        out = stderr.Stderr()
        out.begin()
        out.write(MUCH)
        assert out._left
        os.close(reads)
        out.end()
        out.write("more")
    assert not out._left
    os.close(writes)


class Refusing(io.StringIO):
    """As Python's own stream is when the descriptor is only open for reading (`2< FILE`)."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def flush(self) -> None:
        self.write("")


def test_a_stderr_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stderr, "sys", SimpleNamespace(stderr=Refusing()))
    stderr.console().print("said")


def test_without_a_descriptor_it_is_python_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    with stderr.working() as console:
        console.print("said")
        assert not console.is_terminal
    assert capsys.readouterr().err == "said\n"


def test_every_command_speaks_in_this_way_on_stderr() -> None:
    """Else a reader who is gone ends the command, and it blames stdout. `signals` has a lock of its own to mind."""
    places = [path for path in Path(stderr.__file__).parent.glob("*.py") if path.name not in ("stderr.py", "signals.py")]
    assert len(places) > 20
    other = [path.name for path in places if re.search(r"\berr=True|file=sys\.stderr|stderr\.write", path.read_text())]
    assert other == []


def test_a_sentence_for_a_reader_who_is_gone_is_no_error(gone: None) -> None:
    stderr.say("x" * 100_000)
