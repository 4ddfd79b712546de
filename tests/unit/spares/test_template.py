"""A process that imports once and is forked for each worker: what is said to it and heard of it. (The process is a stand-in: pipes and a socket.)"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.launch.process import Exit
from akrunner.spares import spare, template
from akrunner.spares.template import CannotFork, ForkedProcess, Template
from akrunner.spares.wanted import Wanted
from akrunner.wire import frames, messages

MINE = Wanted("/python", {"A": "1", "TMPDIR": "/mine", "PWD": "/mine"}, "/overlay", (3,), {"T": "1"}, {})
#: no process has such a number
GONE = 2**22


class Child:
    """The process as this end has it; the other end of its pipes is `far`. Attributes: killed: how often; given: what it was started with."""

    def __init__(self, given: tuple[Any, ...], socket_fd: int) -> None:
        # a number that runs, so that it does not seem dead; nothing is ever sent to it
        self.pid, self.exit, self.given, self.killed = os.getpid(), None, given, 0
        (commands, self.input_fd), (self.output_fd, says), (self.log_fd, self.prints) = os.pipe(), os.pipe(), os.pipe()
        self.hears = frames.FrameReader(commands, frames.TO_SPARE)
        self.says = frames.FrameWriter(says)
        self.socket = socket.socket(fileno=os.dup(socket_fd))
        self._open = [commands, says, self.prints]

    def read(self) -> tuple[int, dict[str, Any]]:
        frame = self.hears.read()
        assert frame is not None
        return frame.kind, messages.read(frame)

    def kill(self) -> None:
        self.killed += 1
        self.close()

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())
        self.socket.close()

    def wait(self, seconds: float | None) -> Exit | None:
        return self.exit


class Held:
    """Stands for `leftovers`. Attributes: held: marks and groups."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        self.mark = self.watch = self.held.append

    def unmark(self, value: Any) -> None:
        if value in self.held:
            self.held.remove(value)

    unwatch = unmark


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    found = Held()
    monkeypatch.setattr(template, "leftovers", found)
    monkeypatch.setattr(spare, "leftovers", found)
    return found


Made = Callable[[], tuple[Template, Child]]


@pytest.fixture
def made(held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Start one; afterwards it is ended."""
    children: list[Child] = []
    all_: list[Template] = []

    def process(python: str, bundle: str, env: dict[str, str], cwd: str, socket_fd: int) -> Child:
        children.append(Child((python, bundle, env, cwd), socket_fd))
        return children[-1]

    monkeypatch.setattr(template, "spare_process", process)
    monkeypatch.setattr(
        template, "worker_environment", lambda env, mark, remove: {"AKRUNNER_JOB": mark, "B": "2", "TMPDIR": "/host"}
    )

    def make() -> tuple[Template, Child]:
        all_.append(Template(MINE, str(tmp_path), ("tensorflow",)))
        return all_[-1], children[-1]

    yield make
    for one in all_:
        one.end()
    for child in children:
        child.close()


def imported(one: Template, child: Child, alone: str = "") -> None:
    child.says.write_json(frames.WAITING, {"seconds": 1.5, "alone": alone})
    assert one.wait_until_imported() == ""


def test_it_is_started_with_what_may_be_read_while_it_imports(made: Made, held: Held, tmp_path: Path) -> None:
    one, child = made()
    python, bundle, env, cwd = child.given
    assert (python, bundle, cwd) == ("/python", str(tmp_path / "bundle.zip"), str(tmp_path))
    assert env == {"A": "1", "AKRUNNER_JOB": one.mark, "TMPDIR": str(tmp_path / one.mark)}
    assert os.stat(env["TMPDIR"]).st_mode & 0o777 == 0o700 and sorted(one.late) == ["AKRUNNER_JOB", "TMPDIR"]
    kind, told = child.read()
    assert kind == frames.SPARE and told.pop("began_ns") == int(one.began * 1e9)
    assert told == {"env": {"T": "1"}, "cpus": [3], "overlay": "/overlay", "preload": ["tensorflow"], "temp": env["TMPDIR"]}
    assert held.held == [one.mark, os.getpid()]
    one.end()
    one.end()
    assert held.held == [] and child.killed == 1 and not os.path.exists(env["TMPDIR"])


def test_one_that_cannot_be_started_leaves_nothing(held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any) -> Any:
        raise OSError("no processes")

    monkeypatch.setattr(template, "spare_process", refuse)
    with pytest.raises(OSError, match="no processes"):
        Template(MINE, str(tmp_path), ())
    assert list(tmp_path.iterdir()) == [] and held.held == []


def test_when_it_has_imported_it_can_be_forked_or_is_a_spare_itself(made: Made) -> None:
    one, child = made()
    assert not one.waiting
    imported(one, child)
    assert one.waiting and one.alone == "" and one.seconds == 1.5 and "forked from" in one.called
    other, child = made()
    imported(other, child, "it has started a thread")
    assert other.alone == "it has started a thread" and other.called == "the warm worker"


def test_one_that_ends_while_it_imports_says_why(made: Made) -> None:
    one, child = made()
    os.write(child.prints, b"Traceback ...\nModuleNotFoundError: No module named 'tensorflow'\n")
    child.pid, child.exit = GONE, Exit(1, None, 0, 0.0, 0)  # type: ignore[assignment]
    assert (
        one.wait_until_imported() == "the warm worker had ended: exit code 1; ModuleNotFoundError: No module named 'tensorflow'"
    )


def test_one_that_imports_for_longer_than_a_cold_start_is_not_waited_for(made: Made) -> None:
    one, _ = made()
    one.began -= 1000
    assert one.wait_until_imported() == "the warm worker took too long to import TensorFlow"


@contextlib.contextmanager
def answered(child: Child, answer: Callable[[str], dict[str, Any]]) -> Iterator[list[Any]]:
    """What the process answers when it is to fork: the descriptors that came, and the mark."""
    came: list[Any] = []

    def attend() -> None:
        data, descriptors, _, _ = socket.recv_fds(child.socket, 64, 3)
        kind, told = child.read()
        if kind == frames.SPARE:
            kind, told = child.read()
        assert kind == frames.FORK and told["mark"] == data.decode()
        came.extend([told["mark"], *descriptors])
        child.says.write_json(frames.FORKED, {"mark": told["mark"], "pid": GONE, "why": "", **answer(told["mark"])})

    thread = threading.Thread(target=attend, daemon=True)
    thread.start()
    yield came
    thread.join(10)
    for fd in came[1:]:
        with contextlib.suppress(OSError):
            os.close(fd)


class Forked:
    """Stands for the process of a fork."""

    def __init__(self, pid: int, pipes: Any, parent: Template, mark: str) -> None:
        self.pid, self.parent, self.mark, self.exit = pid, parent, mark, None
        self.input_fd, self.output_fd, self.log_fd = pipes.near

    def kill(self) -> None:
        pass

    def wait(self, seconds: float | None) -> None:
        return None


def test_a_fork_has_the_pipes_and_what_was_printed_while_it_imported(
    made: Made, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template, "ForkedProcess", Forked)
    one, child = made()
    os.write(child.prints, b"a warning\n")
    imported(one, child)
    with answered(child, lambda mark: {}) as came:
        fork = one.fork()
        assert (fork.process.pid, fork.mark, fork.parent, fork.late, fork.wanted) == (GONE, came[0], one, one.late, MINE)
        assert held.held == [one.mark, os.getpid(), fork.mark, GONE] and len(came) == 4
        assert os.read(fork.process.log_fd, 100) == b"a warning\n"
        for fd in came[1:]:
            os.close(fd)
        del came[1:]
        os.set_blocking(fork.process.log_fd, False)
        assert os.read(fork.process.log_fd, 100) == b"", "this process has closed its own ends of the worker's side"
    fork.end()
    assert held.held == [one.mark, os.getpid()]


def test_one_that_will_not_fork_says_why_and_nothing_is_held(made: Made, held: Held) -> None:
    one, child = made()
    imported(one, child)
    with answered(child, lambda mark: {"why": "no memory"}), pytest.raises(CannotFork, match="no memory"):
        one.fork()
    assert held.held == [one.mark, os.getpid()] and not one._running and not one._forks


def test_one_that_does_not_answer_is_not_waited_for_for_ever(made: Made, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "_FORKING", 0.0)
    one, child = made()
    imported(one, child)
    with pytest.raises(CannotFork, match="the process that is forked for each did not answer"):
        one.fork()
    assert len(held.held) == 2
    child.pid = GONE
    with pytest.raises(CannotFork, match="the process that warm workers are forked from had ended"):
        one.fork()


def test_no_more_forks_than_one_can_look_after(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "_MOST", 2)
    one, child = made()
    imported(one, child)
    one._running.update(("a", "b"))
    with pytest.raises(CannotFork, match="2 workers forked from one process run already"):
        one.fork()
    one._running.clear()


@pytest.mark.parametrize("status, code, number", [(3 << 8, 3, None), (0, 0, None), (9, None, 9)])
def test_how_a_fork_has_ended_is_told_once(status: int, code: int | None, number: int | None, made: Made) -> None:
    one, child = made()
    imported(one, child)
    one._running.add("m")
    for mark in ("another's", "m"):
        child.says.write_json(frames.ENDED, {"mark": mark, "status": status, "peak_rss": 100, "cpu_seconds": 0.5})
    deadline = time.monotonic() + 10
    ended = None
    while ended is None and time.monotonic() < deadline:
        ended = one.exit_of("m", 1.0)
    assert ended is not None and (ended.code, ended.signal, ended.peak_rss, ended.cpu_seconds) == (code, number, 100, 0.5)
    assert one.exit_of("m", 0.0) is None and one.exit_of("another's", 0.0) is None and not one._running


def test_one_whose_forks_run_goes_with_the_last_of_them(made: Made) -> None:
    one, child = made()
    imported(one, child)
    one._running.update(("a", "b"))
    one.retire()
    assert child.killed == 0
    with pytest.raises(CannotFork, match="is being ended"):
        one.fork()
    one._ended({"mark": "a", "status": 0, "peak_rss": 0, "cpu_seconds": 0.0})
    assert child.killed == 0
    one._ended({"mark": "b", "status": 0, "peak_rss": 0, "cpu_seconds": 0.0})
    assert child.killed == 1 and one.exit_of("b", 0.0) is not None


def test_one_without_forks_or_without_life_goes_at_once(made: Made) -> None:
    one, child = made()
    imported(one, child)
    one.retire()
    assert child.killed == 1
    other, child = made()
    imported(other, child)
    other._running.add("a")
    child.pid = GONE
    other.retire()
    assert child.killed == 1
    child.pid = os.getpid()
    assert other.lifeless() == "the process that warm workers are forked from had ended", "its forks are told so later"


def test_the_temp_directory_of_a_spare_itself_is_left_if_something_is_in_it(made: Made, tmp_path: Path) -> None:
    one, _ = made()
    folder = tmp_path / one.mark
    (folder / "in").touch()
    one._leave_temp()
    assert folder.exists()
    (folder / "in").unlink()
    one._leave_temp()
    one._leave_temp()
    assert not folder.exists()


def forked(parent: Any) -> Exit:
    """How a fork has ended, as this end knows it."""
    ends = [os.pipe() for _ in range(3)]
    process = ForkedProcess(GONE, SimpleNamespace(near=(ends[0][1], ends[1][0], ends[2][0])), parent, "m")  # type: ignore[arg-type]
    ended = process.wait(10)
    for fd in (fd for pair in ends for fd in pair):
        os.close(fd)
    assert ended is not None
    return ended


def test_a_fork_has_ended_as_its_parent_says_or_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Exit(3, None, 100, 0.5, 7)
    parent = SimpleNamespace(exit_of=lambda mark, seconds: told, lifeless=lambda: "", called="it")
    assert forked(parent) is told
    parent = SimpleNamespace(exit_of=lambda mark, seconds: None, lifeless=lambda: "it was stopped", called="it")
    assert forked(parent).lost == "an unknown exit code: it was stopped"
    monkeypatch.setattr(template, "_TELLING", -1.0)
    parent.lifeless = lambda: ""
    assert forked(parent).lost == "an unknown exit code: it did not say"
