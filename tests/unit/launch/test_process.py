"""A worker process: how its end is said, what it inherits, and how it is ended; no process is started."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from akrunner.launch import process
from akrunner.launch.pipes import Pipes
from akrunner.launch.process import Exit, LocalProcess, OthersChild, stop_all, sweep, worker_environment
from akrunner.wire.ending import HOST, MARK
from tests.conftest import wait_for

GIB = 1 << 30


def ended(code: int | None = None, number: int | None = None, peak: int = 0, lost: str = "") -> Exit:
    return Exit(code, number, peak, 0.0, 0, lost)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (ended(0), "exit code 0"),
        (ended(3), "exit code 3"),
        (ended(None, signal.SIGSEGV), "SIGSEGV (exit code 139): segmentation fault"),
        (ended(None, signal.SIGABRT), "SIGABRT (exit code 134): abort"),
        (ended(None, signal.SIGTERM), "SIGTERM (exit code 143): asked to end"),
        (ended(None, signal.SIGUSR1), "SIGUSR1 (exit code 138)"),
        (ended(None, 99), "signal 99 (exit code 227)"),
        (ended(None, None, 0, "an unknown exit code: lost"), "an unknown exit code: lost"),
    ],
)
def test_an_end_is_said_in_words(end: Exit, words: str) -> None:
    assert end.words() == words


@pytest.mark.parametrize(
    ("peak", "known", "words"),
    [
        (5 * GIB, False, "killed, likely out of memory; peak RSS 5.0 GiB of 16.0 GiB"),
        (4 * GIB, False, "killed from outside, by a person, a scheduler or the out-of-memory killer; peak RSS 4.0 GiB of 16.0 GiB"),
        (700, False, "killed from outside, by a person, a scheduler or the out-of-memory killer; peak RSS 700 B of 16.0 GiB"),
        (1536, True, "killed by the kernel's out-of-memory killer; peak RSS 2 KiB of 16.0 GiB"),
        ((1 << 20) - 1, True, "killed by the kernel's out-of-memory killer; peak RSS 1 MiB of 16.0 GiB"),
        (700 << 20, True, "killed by the kernel's out-of-memory killer; peak RSS 700 MiB of 16.0 GiB"),
    ],
)  # fmt: skip
def test_who_may_have_killed_it_is_said(peak: int, known: bool, words: str) -> None:
    killed = dataclasses.replace(ended(None, signal.SIGKILL, peak), memory=16 * GIB, out_of_memory=known)
    assert killed.words() == f"SIGKILL (exit code 137): {words}"


def test_without_the_memory_of_its_machine_none_is_named() -> None:
    told = ended(None, signal.SIGKILL, 5 * GIB).words()
    assert told == (
        "SIGKILL (exit code 137): killed from outside, by a person, a scheduler or the out-of-memory killer; peak RSS 5.0 GiB"
    )


def test_a_worker_inherits_all_but_what_would_change_its_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF2_BEHAVIOR", "1")
    monkeypatch.setenv("OF_A_TEST", "mine")
    monkeypatch.setenv(MARK, "another job's")
    env = worker_environment({"OF_A_TEST": "given", "MORE": "größe"}, "job-1", "/work")
    assert env["OF_A_TEST"] == "given" and env["MORE"] == "größe" and env["PATH"] == os.environ["PATH"]
    assert "TF2_BEHAVIOR" not in env and env[MARK] == "job-1"
    host = json.loads(env[HOST])
    assert host["pid"] == os.getpid() and host["remove"] == "/work" and host["start"]
    assert worker_environment({"TF2_BEHAVIOR": "0"}, "job-1")["TF2_BEHAVIOR"] == "0", "who sets it means it"
    assert json.loads(worker_environment({}, "job-1")[HOST])["remove"] == ""


class StandIn(LocalProcess):
    """A worker process that is none: it ends when `end` is set, and notes the signals of its group."""

    def __init__(self, pipes: Pipes, how: Exit | BaseException) -> None:
        self.how, self.end, self.signals, self.died_of = how, threading.Event(), list[int](), set[int]()
        # no process has such a number
        super().__init__(1 << 30, *pipes.near)

    def _awaited(self) -> Exit:
        self.end.wait(60)
        if isinstance(self.how, BaseException):
            raise self.how
        return self.how

    def _signal_group(self, number: int) -> None:
        self.signals.append(number)
        if number in self.died_of:
            self.end.set()


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    for fd in (*made.near, *made.far):
        try:
            os.close(fd)
        except OSError:
            pass


def test_its_end_is_noticed_and_its_children_are_killed(pipes: Pipes) -> None:
    one = StandIn(pipes, ended(3))
    assert one.wait(0) is None and one.exit is None and one.signals == []
    one.end.set()
    assert one.wait(60) == one.exit == ended(3)
    assert one.signals == [signal.SIGKILL]
    # its number may be another process's by now
    one.terminate(), one.kill(), one.signal(signal.SIGINT), one.abandon()
    assert one.signals == [signal.SIGKILL]


@pytest.mark.parametrize("counts", [(3, 3), (3, 4)])
def test_of_a_killed_process_it_is_known_what_memory_it_had(
    counts: tuple[int, int], pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is that of its container, and the killer's count that of its container, too: on Flink both are the TaskManager's."""
    killed = iter(counts)
    monkeypatch.setattr(process, "cgroups", SimpleNamespace(killed=lambda: next(killed), memory_bytes=lambda: 2 * GIB))
    one = StandIn(pipes, ended(None, signal.SIGKILL, GIB))
    one.end.set()
    end = one.wait(60)
    assert end is not None and (end.memory, end.out_of_memory) == (2 * GIB, counts == (3, 4))


def test_what_was_killed_before_a_job_took_the_process_does_not_count(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm worker waits for its job."""
    killed = iter([3, 4, 4])
    monkeypatch.setattr(process, "cgroups", SimpleNamespace(killed=lambda: next(killed), memory_bytes=lambda: 2 * GIB))
    one = StandIn(pipes, ended(None, signal.SIGKILL, GIB))
    one.begins()
    one.end.set()
    end = one.wait(60)
    assert end is not None and not end.out_of_memory


def test_its_end_is_known_also_if_its_memory_is_not(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> int:
        raise ValueError("no such limit")

    monkeypatch.setattr(process, "cgroups", SimpleNamespace(killed=lambda: 0, memory_bytes=fails))
    one = StandIn(pipes, ended(None, signal.SIGKILL, GIB))
    one.end.set()
    assert one.wait(60) == ended(None, signal.SIGKILL, GIB) and one.signals == [signal.SIGKILL]


def test_an_end_that_nobody_knows_is_an_end_too(pipes: Pipes) -> None:
    one = StandIn(pipes, OSError("no such child"))
    one.sampled_rss, one.sampled_cpu = 5, 1.5
    one.end.set()
    end = one.wait(60)
    assert end is not None and end.words() == "an unknown exit code: waiting for it raised OSError: no such child"
    assert (end.peak_rss, end.cpu_seconds, end.code, end.signal) == (5, 1.5, None, None)
    assert one.signals == [signal.SIGKILL]


def test_no_thread_for_it_means_no_process(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[StandIn] = []

    def refuses(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    class Kept(StandIn):
        def _signal_group(self, number: int) -> None:
            super()._signal_group(number)
            made.append(self)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuses)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            Kept(pipes, ended(0))
    assert made[0].signals == [signal.SIGKILL]
    for fd in pipes.near:
        with pytest.raises(OSError):
            os.fstat(fd)


def test_what_was_written_and_not_read(pipes: Pipes) -> None:
    one = StandIn(pipes, ended(0))
    assert one.unread() == 0
    os.write(one.input_fd, b"12345")
    assert one.unread() == 5
    os.read(pipes.far[0], 2)
    assert one.unread() == 3
    os.close(one.input_fd)
    assert one.unread() == 0, "a pipe that is closed"
    one.end.set()
    one.wait(60)


def test_a_process_that_is_gone_used_nothing_more(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    one = StandIn(pipes, ended(0))
    for tool in (psutil, None):
        monkeypatch.setattr(process, "psutil", tool)
        one.sample()
        assert (one.sampled_rss, one.sampled_cpu, one.tree_cpu()) == (0, 0.0, 0.0)
    one.pid = os.getpid()
    for tool in (psutil, None):
        monkeypatch.setattr(process, "psutil", tool)
        one.sampled_rss = 0
        one.sample()
        assert one.sampled_rss > 1 << 20
    one.sampled_rss = 1 << 60
    one.sample()
    assert one.sampled_rss == 1 << 60, "the largest is kept"
    one.end.set()
    one.wait(60)


@pytest.mark.parametrize(("now", "killed"), [("100", True), ("", True), ("200", False)])
def test_a_number_that_another_process_has_by_now_is_left_alone(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch, now: str, killed: bool
) -> None:
    kills: list[tuple[int, int]] = []
    monkeypatch.setattr(process, "started", lambda pid: "100")
    monkeypatch.setattr(os, "killpg", lambda group, number: kills.append((group, number)))
    end = threading.Event()

    class Forked(OthersChild):
        def _awaited(self) -> Exit:
            end.wait(60)
            return ended(0)

    one = Forked(1 << 30, *pipes.near)
    monkeypatch.setattr(process, "started", lambda pid: now)
    one.terminate()
    end.set()
    assert one.wait(60) == ended(0)
    assert kills == ([(1 << 30, signal.SIGTERM), (1 << 30, signal.SIGKILL)] if killed else [])


@pytest.mark.parametrize("told", [True, False], ids=["the system tells it", "it does not"])
def test_the_end_of_anothers_child_is_waited_for_and_asked_for_only_where_it_must(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    # stands for what the system has for it: there is something to read when the process has ended
    watched, lives = os.pipe()
    monkeypatch.setattr(os, "pidfd_open", lambda pid: watched) if told else monkeypatch.delattr(os, "pidfd_open")
    start, looks = ["100"], list[int]()
    monkeypatch.setattr(process, "started", lambda pid: looks.append(pid) or start[0])
    monkeypatch.setattr(os, "killpg", lambda group, number: None)

    class Forked(OthersChild):
        def _awaited(self) -> Exit:
            self._wait_until_gone()
            return ended(0)

    one = Forked(1 << 30, *pipes.near)
    if told:
        assert one.wait(0.3) is None and len(looks) == 2
    else:
        wait_for(lambda: len(looks) > 4)
        os.close(watched)
    start[0] = ""
    os.close(lives)
    assert one.wait(60) == ended(0)


class Asked:
    """Stands for a process on any machine: notes what it is asked."""

    def __init__(self, dies_of: str) -> None:
        self.dies_of, self.said, self.waited = dies_of, list[str](), list[float | None]()
        self.exit: Exit | None = ended(0) if dies_of == "ended before" else None

    def _asked(self, how: str) -> None:
        if self.exit is None:
            self.said.append(how)
            if how == self.dies_of:
                self.exit = ended(0)

    def terminate(self) -> None:
        self._asked("terminate")

    def kill(self) -> None:
        self._asked("kill")

    def wait(self, seconds: float | None) -> Exit | None:
        self.waited.append(seconds)
        return self.exit


def test_all_are_asked_to_end_before_any_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    before, polite, deaf, stays = (Asked(how) for how in ("ended before", "terminate", "kill", "nothing"))
    processes: Any = [before, polite, deaf, stays]
    stop_all(processes, 10)
    assert before.said == [] == before.waited
    assert polite.said == ["terminate"] and deaf.said == ["terminate", "kill"] == stays.said
    # the grace is for all of them together
    assert [one.waited[0] for one in (polite, deaf, stays)] == [6.0, 2.0, 0.0]
    assert all(one.waited[1] is not None and one.waited[1] <= 5 for one in (polite, deaf, stays))


class Running:
    """Stands for a process of the system's."""

    def __init__(
        self, pid: int, mark: str, born: float = 1000, status: str = "running", error: Exception | None = None
    ) -> None:
        self.pid, self._mark, self._born, self._status, self._error, self.killed = pid, mark, born, status, error, False

    def create_time(self) -> float:
        return self._born

    def environ(self) -> dict[str, str]:
        if self._error is not None:
            raise self._error
        return {MARK: self._mark}

    def status(self) -> str:
        if self.killed:
            raise psutil.NoSuchProcess(self.pid)
        return self._status

    def kill(self) -> None:
        self.killed = True


@pytest.mark.parametrize("has_files", [True, False])
def test_only_what_carries_a_mark_of_the_job_is_swept(monkeypatch: pytest.MonkeyPatch, has_files: bool) -> None:
    """Also where the system shows environments as files, a process is asked again: another may have its number by then."""
    ours = [Running(11, "job-1"), Running(12, "job-2"), Running(13, "job-1", born=998.5)]
    others = [
        Running(21, "job-3"), Running(22, "job-1", born=997), Running(os.getpid(), "job-1"), Running(23, "job-1", status="zombie"),
        Running(24, "job-1", error=psutil.AccessDenied()), Running(25, "job-1", error=FileNotFoundError()), Running(26, ""),
    ]  # fmt: skip
    running = {one.pid: one for one in (*others, *ours)}
    monkeypatch.setattr(process.procfs, "shows_environments", lambda: has_files)
    if has_files:
        monkeypatch.setattr(process.procfs, "marked", lambda name, values: list(running))
        monkeypatch.setattr(psutil, "Process", running.__getitem__)
    else:
        monkeypatch.setattr(psutil, "process_iter", lambda: iter(running.values()))
    assert sweep(["job-1", "job-2"], 1000) == [11, 12, 13]
    assert all(one.killed for one in ours) and not any(one.killed for one in others)
    assert sweep([], 1000) == []


def test_a_sweep_without_psutil_asks_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    left, kills = [[7, 8], [8], []], list[tuple[int, int]]()

    def kill(pid: int, number: int) -> None:
        kills.append((pid, number))
        if pid == 7:
            raise ProcessLookupError

    monkeypatch.setattr(process, "psutil", None)
    monkeypatch.setattr(process.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(
        process.procfs, "marked", lambda name, values: left.pop(0) if (name, values) == (MARK, ["job-1"]) else []
    )
    monkeypatch.setattr(os, "kill", kill)
    assert sweep(["job-1"], 0) == [8, 8]
    assert kills == [(7, signal.SIGKILL), (8, signal.SIGKILL), (8, signal.SIGKILL)]
