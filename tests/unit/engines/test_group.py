"""The processes of an attempt as one: what is summed up of them, how they are asked for their stacks, and in which order they end.

No process is started: sessions, feeder and launcher are stand-ins.
"""

from __future__ import annotations

import errno
import os
import types
from collections.abc import Mapping
from typing import Any

import pytest

from akrunner.engines import group as grouping
from akrunner.engines.group import TaskGroup
from akrunner.engines.kept import KeptRun
from akrunner.engines.onlooker import Onlooker
from akrunner.engines.supervision.actions import Closing
from akrunner.errors import StartError
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec, TaskSpec
from akrunner.wire import STACKS_SIGNAL

CHIEF, WORKER, SERVER = TaskSpec("chief", 0), TaskSpec("worker", 0), TaskSpec("ps", 0)


class Process:
    """Attributes: exit: None, it runs; ends: whether it ends when it is waited for."""

    exit = None

    def __init__(self, did: list[str], name: str, ends: bool) -> None:
        self.did, self.name, self.ends = did, name, ends
        self.signals: list[int] = []
        self.sampled_cpu = 0.0
        self.sampled_rss = 7
        self.sampled_memory = 5
        self.trees = [1.0, 3.5]

    def sample(self) -> None:
        self.sampled_cpu += 2.0

    def tree_cpu(self) -> float:
        return self.trees.pop(0)

    def signal(self, number: int) -> None:
        self.signals.append(number)

    def wait(self, seconds: float) -> Any:
        return "ended" if self.ends else None

    def terminate(self) -> None:
        self.did.append(f"terminate {self.name}")

    def kill(self) -> None:
        self.did.append(f"kill {self.name}")


class Log:
    """Attributes: later: what was printed since a position; position; unwritten: why the log is not whole."""

    position = 10
    unwritten: BaseException | None = None
    later = ""

    def ended(self) -> None: ...

    def since(self, position: int) -> str:
        assert position == 10
        return self.later

    def tail(self, lines: int) -> str:
        return f"the last {lines} lines"


class Session:
    def __init__(self, did: list[str], task: TaskSpec, ends: bool = True) -> None:
        self.did, self.task = did, task
        self.process = Process(did, task.name, ends)
        self.log = Log()
        self.writer = types.SimpleNamespace(bytes=100)
        self.rows_sent = 10
        self.error: BaseException | None = None
        self.gone = False

    def start(self) -> None:
        if self.gone:
            raise BrokenPipeError
        self.did.append(f"start {self.task.name}")

    def stop(self) -> None:
        self.did.append(f"stop {self.task.name}")

    def deafen(self) -> None:
        self.did.append(f"deafen {self.task.name}")

    def close(self, until: float) -> None:
        self.did.append(f"close {self.task.name}")


class Feeder:
    error: BaseException | None = None
    rows_dropped = 3

    def __init__(self, did: list[str]) -> None:
        self.did = did

    def stop(self) -> None:
        self.did.append("feeder stops")

    def join(self) -> None:
        self.did.append("feeder joined")


class Launcher:
    """Attributes: elsewhere: who feeds the rows in place of the host."""

    def __init__(self, did: list[str], elsewhere: Any = None) -> None:
        self.did, self.elsewhere = did, elsewhere
        self.noted: list[str] = []

    def notes(self) -> list[str]:
        return self.noted

    def addresses(self) -> Mapping[TaskSpec, str]:
        self.noted.append("the host reads the table")
        return {CHIEF: "127.0.0.1:1"}

    def feeder(self, sessions: Any) -> Any:
        return self.elsewhere

    def ready(self) -> None:
        self.did.append("ready")

    def ended(self) -> None:
        self.did.append("launcher ended")


class Group:
    """A group with sessions in it. Attributes: did: what was done to anything, in order; warnings: of the run."""

    def __init__(self, mode: str = "batch", elsewhere: Any = None, late: tuple[TaskSpec, ...] = ()) -> None:
        self.did: list[str] = []
        self.warnings: list[str] = []
        job = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", ClusterSpec(2, 1), mode=mode)
        run: Any = types.SimpleNamespace(
            job=job,
            source=None,
            warnings=self.warnings,
            work=types.SimpleNamespace(path="/work"),
            tables=None,
            kept=KeptRun(),
        )
        self.launcher: Any = Launcher(self.did, elsewhere)
        self.onlooker = Onlooker(None)
        self.group = TaskGroup(run, self.launcher, self.onlooker)
        self.sessions = {task: Session(self.did, task, task not in late) for task in job.cluster.tasks}
        self.group.sessions.update(self.sessions)  # type: ignore[arg-type]

    def fed_by(self, feeder: Any) -> Any:
        self.group.feeder = feeder
        return feeder


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody sleeps. Returns: for how long each would have."""
    naps: list[float] = []
    monkeypatch.setattr(grouping, "time", types.SimpleNamespace(sleep=naps.append))
    return naps


def test_bytes_rows_and_processor_time_are_those_of_all_tasks() -> None:
    made = Group()
    assert (made.group.bytes_sent, made.group.rows_sent, made.group.rows_given) == (300, 30, 30)
    assert made.group.sample() == 6.0 and made.group.sample() == 12.0


def test_rows_of_a_stream_that_nobody_took_were_given_too() -> None:
    made = Group(mode="stream")
    assert made.group.streaming is made.group.feeder
    made.group.streaming.rows_dropped = 5  # type: ignore[union-attr]
    assert (made.group.rows_sent, made.group.rows_given) == (30, 35)


def test_a_close_look_takes_a_second_and_gives_what_was_used_in_it(slept: list[float]) -> None:
    assert Group().group.look_closely() == (7.5, 1.0) and slept == [1.0]


def test_the_feeders_error_comes_before_those_of_sessions() -> None:
    made = Group()
    feeder = made.fed_by(Feeder(made.did))
    assert made.group.error is None
    made.sessions[WORKER].error = second = KeyError("session")
    assert made.group.error is second
    feeder.error = first = ValueError("feeder")
    assert made.group.error is first


def test_rows_may_be_fed_elsewhere() -> None:
    other = types.SimpleNamespace()
    for mode, streaming in (("batch", None), ("stream", other)):
        made = Group(mode, other)
        assert made.group.find_places() == {CHIEF: "127.0.0.1:1"}
        assert made.group.feeder is other and made.group.streaming is streaming
    made = Group()
    before = made.group.feeder
    made.group.find_places()
    assert made.group.feeder is before, "the host feeds them where nobody else does"
    made.group.find_places()
    assert made.warnings == ["the host reads the table"], "another attempt says it no second time"


def test_every_task_is_told_to_begin_and_one_that_is_gone_is_no_error() -> None:
    made = Group(mode="stream")
    made.sessions[CHIEF].gone = True
    made.group.start()
    assert made.did == ["ready", "start worker:0", "start ps:0"]
    assert made.group.streaming is not None and made.group.streaming.started.is_set()


def test_stacks_are_what_a_task_prints_when_it_is_asked(slept: list[float]) -> None:
    made = Group()
    made.sessions[CHIEF].log.later = "Current thread"
    assert made.group.stacks([CHIEF, SERVER]) == {CHIEF: "Current thread", SERVER: "the last 60 lines"}
    assert [one.process.signals for one in made.sessions.values()] == [[STACKS_SIGNAL], [], [STACKS_SIGNAL]]
    assert len(slept) == 1 and 0 < slept[0] < 1


def test_nobody_is_waited_for_if_nobody_is_asked(slept: list[float]) -> None:
    assert Group().group.stacks([]) == {} and sum(slept) == 0


def test_stacks_that_are_asked_for_quietly_are_hidden_while_they_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    made, hidden = Group(), []
    monkeypatch.setattr(grouping.time, "sleep", lambda seconds: hidden.append(made.onlooker.no_stacks))
    made.group.stacks([CHIEF], quietly=True)
    made.group.stacks([CHIEF])
    assert hidden == [True, False] and not made.onlooker.no_stacks

    def gone(number: int) -> None:
        raise OSError

    monkeypatch.setattr(made.sessions[CHIEF].process, "signal", gone)
    with pytest.raises(OSError):
        made.group.stacks([CHIEF], quietly=True)
    assert not made.onlooker.no_stacks, "whatever happens, they are shown again"


def closing(**fields: Any) -> Closing:
    return Closing(**{"let_go": (), "wait_for": (), "end": (CHIEF, WORKER, SERVER), "grace": 0.0, **fields})


def test_an_attempt_ends_from_its_rows_to_its_threads() -> None:
    made = Group()
    made.fed_by(Feeder(made.did))
    made.group.conversations[WORKER] = types.SimpleNamespace(  # type: ignore[assignment]
        stop=lambda: made.did.append("conversation stops"), join=lambda: made.did.append("conversation joined")
    )
    made.group.end(closing(let_go=(WORKER,), wait_for=(WORKER,)))
    phases = ["feeder stops", "conversation stops", "deafen", "stop worker:0", "terminate", "kill", "launcher ended", "close", "conversation joined", "feeder joined"]  # fmt: skip
    order = [next(i for i, phase in enumerate(phases) if did.startswith(phase)) for did in made.did]
    assert order == sorted(order) and set(order) == set(range(len(phases))), made.did
    for each in ("deafen", "terminate", "kill", "close"):
        assert sorted(did.split()[1] for did in made.did if did.startswith(each)) == ["chief:0", "ps:0", "worker:0"]
    assert made.warnings == []


def test_what_the_launcher_could_not_keep_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Group()
    made.fed_by(Feeder(made.did))
    monkeypatch.setattr(made.launcher, "ended", lambda: made.launcher.noted.append("work_dir= is without a pipe"))
    made.group.end(closing())
    assert made.warnings == ["work_dir= is without a pipe"]


def test_every_step_of_the_end_is_made_though_one_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Group()
    made.fed_by(Feeder(made.did))

    def fails(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(made.launcher, "ended", fails)
    monkeypatch.setattr(made.sessions[CHIEF], "close", fails)
    with pytest.raises(ZeroDivisionError):
        made.group.end(closing())
    assert {"kill ps:0", "close worker:0", "feeder joined"} <= set(made.did)


def test_a_task_that_hangs_after_it_was_done_is_warned_of() -> None:
    made = Group(late=(WORKER, SERVER))
    made.fed_by(Feeder(made.did))
    made.group.end(closing(wait_for=(CHIEF, WORKER, SERVER)))
    (warning,) = made.warnings
    assert warning.startswith("worker:0, ps:0 had finished, but did not end within 0 s")


def test_tasks_that_were_never_started_are_not_ended() -> None:
    made = Group()
    made.fed_by(Feeder(made.did))
    del made.group.sessions[SERVER]
    made.group.end(closing(let_go=(SERVER,), wait_for=(SERVER,)))
    assert not any("ps:0" in did for did in made.did)


def test_a_log_that_is_not_whole_is_warned_of() -> None:
    made = Group()
    made.fed_by(Feeder(made.did))
    made.sessions[WORKER].log.unwritten = OSError(errno.EIO, os.strerror(errno.EIO))
    made.group.end(closing())
    (warning,) = made.warnings
    assert warning.startswith("[worker:0] its log is not whole: ") and "work_dir=" in warning


@pytest.mark.parametrize("error", [OSError(errno.EAGAIN, "Resource temporarily unavailable"), MemoryError(), RuntimeError("can't start new thread")])  # fmt: skip
def test_a_process_that_cannot_be_started_is_named(error: BaseException) -> None:
    made = Group()
    made.group.sessions.clear()
    made.launcher.context = lambda task, config, attempt: {}
    made.group._run.work.save_context = lambda task, context: None  # type: ignore[method-assign]

    def start(task: TaskSpec) -> None:
        raise error

    made.launcher.start = start
    with pytest.raises(StartError, match=r"^\[chief:0\] cannot be started: "):
        made.group.spawn({task: "127.0.0.1:1" for task in made.sessions}, 0)


def test_what_the_processes_use_is_told_by_task() -> None:
    made = Group()
    made.group.sample()
    tasks = [task.name for task in made.group.sessions]
    used = made.group.used()
    assert used["rss"] == dict.fromkeys(tasks, 7) and used["cpu_seconds"] == dict.fromkeys(tasks, 2.0)
    assert used["memory"] == dict.fromkeys(tasks, 5) and used["task_bytes_in"].keys() == set(tasks)


def test_a_task_whose_threads_cannot_be_started_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Group()
    made.group.sessions.clear()
    made.launcher.context = lambda task, config, attempt: {}
    made.launcher.start = lambda task: types.SimpleNamespace(log_fd=-1)
    work: Any = made.group._run.work
    work.save_context, work.log_path = lambda task, context: None, lambda task: "/work/log"

    def pump(*args: Any, **more: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(grouping, "LogPump", pump)
    with pytest.raises(StartError, match=r"^\[chief:0\] cannot be started: "):
        made.group.spawn({task: "127.0.0.1:1" for task in made.sessions}, 0)
