"""Attempt after attempt: what is started again and what is not, what is committed, what is kept. Nothing is started."""

from __future__ import annotations

import json
import os
import signal
import time
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.cluster.failure import FailureKind
from akrunner.engines import attempts
from akrunner.engines.base import Outcome, Progress
from akrunner.engines.jobrun import JobRun
from akrunner.engines.supervisor import AttemptFailed
from akrunner.errors import (
    ConfigError,
    JobCancelledError,
    JobError,
    JobTimeoutError,
    ReadError,
    TaskDiedError,
    TaskFailure,
)
from akrunner.io.bad_rows import BadRow, BadRows
from akrunner.io.limits import current, limited
from akrunner.io.table import TableSource
from akrunner.patience import Patience
from akrunner.schema import Schema
from akrunner.spec import JobSpec, ScriptSpec, SupervisionSpec
from akrunner.wire.saves import FOLDER
from tests.unit.engines.test_base import stats

FAILURE = TaskFailure("chief:0", "ended in main(): SIGKILL")
TAKEN = TaskFailure("chief:0", "raised", traceback="OSError: [Errno 98] Address already in use")


class Work:
    """A job's directory that is none. Attributes: did: what was done to it; ends: what the record says; begun_with: the save of each attempt."""

    path, keep = "/work", False

    def __init__(self) -> None:
        self.did: list[str] = []
        self.ends: list[Any] = []
        self.begun_with: list[int | None] = []

    def create(self, job: Any) -> None:
        self.did.append("create")

    def checkpoint_dir(self, job: Any) -> str:
        return str(job.checkpoint_dir)

    def going_on_with(self, save: int | None) -> Work:
        self.begun_with.append(save)
        return self

    def restart(self, job: Any, attempt: int) -> None:
        self.did.append(f"restart {attempt}")

    def close(self) -> None:
        self.did.append("close")

    def close_failed(self) -> str:
        self.did.append("close_failed")
        return "/kept"

    def save_end(self, kept: str, end: Any) -> None:
        self.ends.append((kept, end))


class Sink:
    """Attributes: did: what was done to it."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def write(self, task: Any, batch: Any) -> None: ...

    def restart(self) -> None:
        self.did.append("restart")

    def commit_with(self, store: Any, commit: Any) -> None:
        self.did.append("commit_with")
        commit(["mine"])


class Tables:
    """A job's tables, one of them written. Attributes: did: what was done to them."""

    has_outputs = True
    spec = types.SimpleNamespace(store="store")

    def __init__(self) -> None:
        self.did: list[Any] = []

    def restart(self) -> None:
        self.did.append("restart")

    def commit(self, more: Any = ()) -> None:
        self.did.append(("commit", list(more)))

    def told(self) -> Any:
        return {"t": {"rows_read": 1, "rows_written": 0}}


def outcome() -> Any:
    return Outcome((), types.SimpleNamespace(tables={}, inputs={}, input_verdict=[]), None)  # type: ignore[arg-type]


class Attempt:
    """One attempt, which ends as the test says."""

    ends: list[Any] = []
    numbers: list[int] = []

    def __init__(self, run: JobRun, launcher: Any, attempt: int) -> None:
        self.numbers.append(attempt)

    def run(self) -> Any:
        end = self.ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        return end

    def inputs(self) -> Any:
        return {}


def failed(kind: FailureKind = FailureKind.DIED, root: TaskFailure = FAILURE) -> AttemptFailed:
    return AttemptFailed(kind, root, lambda kept: TaskDiedError("it died", failure=root, work_dir=kept))


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a job whose attempts end so. Returns: what it gave, the run."""
    monkeypatch.setattr(Attempt, "numbers", [])

    def go(
        *ends: Any, max_restarts: int = 1, tables: Tables | None = None, replayable: bool = True, spec: Any = None,
        source: Any = None, attempt: type[Attempt] = Attempt,
    ) -> Any:  # fmt: skip
        monkeypatch.setattr(attempts, "Supervisor", attempt)
        Attempt.ends = list(ends)
        spec = spec or JobSpec(
            ScriptSpec("s.py", "s.py"),
            Schema(()),
            "python",
            supervision=SupervisionSpec(max_restarts=max_restarts, restart_delay=0),
        )
        source = source or types.SimpleNamespace(replayable=replayable)
        work, guard, patience = Work(), types.SimpleNamespace(), types.SimpleNamespace()
        run = JobRun(spec, source, Sink(), None, None, work, guard, patience, tables)  # type: ignore[arg-type]
        all_of_them = attempts._Attempts(run, lambda work, guard: None)  # type: ignore[arg-type, return-value]
        try:
            return all_of_them.run(), run
        except BaseException as e:
            return e, run

    return go


@pytest.mark.parametrize(
    ("around", "own", "timeout", "since"),
    [(None, 600, 600, "now"), (None, None, None, "now"), (60, 60, 60, "before"), (60, 600, 60, "before"), (60, None, 60, "before"), (60, 5, 5, "now")],
)  # fmt: skip
def test_a_job_has_no_more_time_than_the_one_of_its_thread(around: Any, own: Any, timeout: Any, since: str) -> None:
    spec = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", supervision=SupervisionSpec(timeout=own, max_restarts=2))
    with limited(around, None):
        before = current().began
        now = time.monotonic()
        job, counted = attempts._in_time(spec, now)
    assert job.supervision == SupervisionSpec(timeout=timeout, max_restarts=2)
    assert counted >= now if since == "now" else counted == before


def test_the_first_succeeds(job: Any) -> None:
    done, run = job(outcome())
    assert isinstance(done, Outcome) and run.work.did == ["create", "close"] and run.sink.did == [] and run.work.ends == []


def test_what_the_doctor_says_is_among_the_numbers(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "verdict", lambda stats: ["[chief:0] it waits"])
    done, _ = job(outcome())
    assert done.stats.input_verdict == ["[chief:0] it waits"]


def test_one_more_with_nothing_of_the_first(job: Any) -> None:
    tables = Tables()
    done, run = job(failed(), outcome(), tables=tables)
    assert isinstance(done, Outcome) and Attempt.numbers == [0, 1]
    assert run.work.did == ["create", "restart 0", "close"]
    assert run.sink.did == ["restart", "commit_with"] and tables.did == ["restart", ("commit", ["mine"])]
    assert run.warnings == ["[chief:0] ended in main(): SIGKILL; everything was started again (1 of 1)"]


def test_no_more_than_were_allowed(job: Any) -> None:
    error, run = job(failed(), failed())
    assert isinstance(error, TaskDiedError) and error.work_dir == "/kept" and len(error.warnings) == 1
    assert run.work.did[-1] == "close_failed" and run.work.ends[0][0] == "/kept" and run.work.ends[0][1]["state"] == "failed"
    assert isinstance(error.__cause__, type(None)) and error.__suppress_context__


def test_a_port_that_was_taken_does_not_count(job: Any) -> None:
    done, _ = job(failed(FailureKind.SCRIPT, TAKEN), failed(), outcome())
    assert isinstance(done, Outcome) and Attempt.numbers == [0, 1, 2]
    error, _ = job(failed(FailureKind.OUTPUT), max_restarts=5)
    assert isinstance(error, TaskDiedError), "the same rows would be refused again"


def test_rows_that_come_once(job: Any) -> None:
    error, _ = job(failed(FailureKind.SCRIPT, TAKEN), max_restarts=0, replayable=False)
    assert isinstance(error, TaskDiedError)
    spec = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", supervision=SupervisionSpec(max_restarts=1))
    with pytest.raises(ConfigError, match="max_restarts: the source can be read only once"):
        spec.check_restarts(False, "the source")
    spec.check_restarts(True, "the source")


def test_a_stream_goes_on_only_if_its_place_can_be_set() -> None:
    def spec(**fields: Any) -> JobSpec:
        return JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", mode="stream", **fields)

    again = SupervisionSpec(max_restarts=1)
    with pytest.raises(ConfigError, match="max_restarts: the rows of stdin come once.*give kafka://"):
        spec(supervision=again).check_restarts(False, "stdin")
    with pytest.raises(ConfigError, match="resume: the rows of stdin come once"):
        spec(resume=True).check_restarts(False, "stdin")
    marked = spec(supervision=again, resume=True, marked=True)
    marked.check_restarts(False, "kafka://b/t")
    assert marked.can_restart(False) and not spec(marked=True).can_restart(False)


def test_each_attempt_of_a_stream_begins_at_the_newest_save(job: Any, tmp_path: Path) -> None:
    begun: list[Any] = []
    place = {"topic": "t", "offsets": {"0": 5}}
    folder = tmp_path / FOLDER / "chief-0" / "00000001"

    class Saves(Attempt):
        """Saves before it ends."""

        def run(self) -> Any:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "position.json").write_text(json.dumps({"run_id": "mine", "place": place}))
            return super().run()

    arriving = types.SimpleNamespace(begin=begun.append)
    spec = JobSpec(
        ScriptSpec("s.py", "s.py"), Schema(()), "python", mode="stream", marked=True, run_id="mine",
        checkpoint_dir=str(tmp_path), supervision=SupervisionSpec(max_restarts=1, restart_delay=0),
    )  # fmt: skip
    table = TableSource(pa.schema([]), lambda: iter(()), arriving=arriving)  # type: ignore[arg-type]
    done, run = job(failed(), outcome(), spec=spec, source=table, attempt=Saves)
    assert isinstance(done, Outcome) and begun == [None, place] and run.work.begun_with == [0, 1]


def test_tables_are_committed_once_with_the_sink(job: Any) -> None:
    tables = Tables()
    done, run = job(outcome(), tables=tables)
    assert run.sink.did == ["commit_with"] and tables.did == [("commit", ["mine"])]
    assert done.stats.tables == {"t": {"rows_read": 1, "rows_written": 0}}
    tables.has_outputs, tables.did = False, []
    _, run = job(outcome(), tables=tables)
    assert run.sink.did == [] and tables.did == [("commit", [])]


def test_what_no_task_is_to_blame_for(job: Any) -> None:
    cancelled, run = job(JobCancelledError("the job was stopped by its caller"))
    assert isinstance(cancelled, JobCancelledError) and run.work.ends[0][1]["error"] == "JobCancelledError"
    unread, _ = job(ReadError("the disk is gone"))
    assert isinstance(unread, ReadError) and unread.work_dir == "/kept"
    fault, run = job(ZeroDivisionError("injected"))
    assert isinstance(fault, JobError) and "a fault in akrunner itself" in str(fault) and fault.fault
    assert isinstance(fault.__cause__, ZeroDivisionError) and run.work.ends[0][1]["error"] == "JobError"
    wrong, run = job(ConfigError("no"))
    assert isinstance(wrong, ConfigError) and run.work.ends[0][1]["error"] == "ConfigError"


def test_a_signal_is_a_job_that_was_stopped(job: Any) -> None:
    error, run = job(KeyboardInterrupt())
    assert isinstance(error, KeyboardInterrupt) and run.work.ends[0][1]["state"] == "stopped"
    assert run.work.did == ["create", "close_failed"]


def test_the_numbers_say_how_many_rows_were_bad_and_where_they_are(tmp_path: Path) -> None:
    bad = BadRows.of(tmp_path, 100)
    assert bad is not None
    bad.begin()
    bad.take("t.csv", [BadRow(3, "why", b"x")])
    source = TableSource(pa.schema([]), lambda: iter(()), bad=bad)
    told = attempts._with_bad_rows(Outcome((), stats(), None), source).stats
    bad.commit()
    assert told.bad_rows == 1 and told.bad_rows_file is not None and Path(told.bad_rows_file).exists()
    assert told.warnings == [f"source: 1 row of the input could not be read and was written to {bad.file}"]


class Clock:
    """A clock that only a wait moves. Attributes: waits: how long each was."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now


class Event:
    """Cancels a job after some waits. Args: after: how many."""

    def __init__(self, clock: Clock, after: int = 10**6) -> None:
        self._clock, self._after = clock, after

    def wait(self, seconds: float) -> bool:
        self._clock.waits.append(seconds)
        self._clock.now += seconds
        self._after -= 1
        return self._after < 0

    def is_set(self) -> bool:
        return self._after < 0


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Wait before an attempt. Returns: the clock, what an observer was told, and the exception that ended the wait, if one did."""

    def go(seconds: float, after: int = 10**6, **limits: Any) -> tuple[Clock, list[Progress], BaseException | None]:
        clock, told = Clock(), []
        monkeypatch.setattr(attempts, "time", clock)
        spec = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", supervision=SupervisionSpec(**limits))
        observer: Any = types.SimpleNamespace(progress=told.append)
        work: Any = Work()
        run = JobRun(
            spec, types.SimpleNamespace(replayable=True), None, observer, Event(clock, after), work, None, Patience(),  # type: ignore[arg-type]
            warnings=["it failed"], began=0.0, counted=0.0,
        )  # fmt: skip
        try:
            attempts._Attempts(run, lambda work, guard: None)._wait(seconds, 2)  # type: ignore[arg-type, return-value]
        except BaseException as e:
            return clock, told, e
        return clock, told, None

    return go


def test_before_an_attempt_there_is_a_wait_that_is_told(waiting: Any) -> None:
    clock, told, error = waiting(5.0)
    assert error is None and clock.now == pytest.approx(105.0) and max(clock.waits) <= 0.1
    assert (
        told[0].states == {"chief:0": "waiting to start again"} and told[0].attempt == 2 and told[0].warnings == ("it failed",)
    )
    assert waiting(0.0)[0].waits == []


def test_a_caller_and_the_end_of_the_time_end_the_wait_at_once(waiting: Any) -> None:
    clock, _, error = waiting(300.0, after=3)
    assert isinstance(error, JobCancelledError) and clock.now < 101
    clock, _, error = waiting(300.0, timeout=102.0)
    assert isinstance(error, JobTimeoutError) and 102 <= clock.now < 102.2
    assert str(error).startswith(
        "the job took longer than timeout=102 s and was stopped while it waited to be started again (restart_delay="
    )


def test_a_signal_ends_the_wait_at_once(waiting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def signalled(self: Event, seconds: float) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return False

    monkeypatch.setattr(Event, "wait", signalled)
    assert isinstance(waiting(300.0)[2], KeyboardInterrupt)


def test_the_wait_comes_before_what_is_begun_again(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        attempts._Attempts, "_wait", lambda self, seconds, attempt: seen.append((seconds > 0, [*self._run.work.did]))
    )
    spec = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", supervision=SupervisionSpec(max_restarts=1))
    job(failed(FailureKind.SCRIPT, TAKEN), failed(), outcome(), spec=spec)
    # of a port that was taken nothing has to recover
    assert seen == [(False, ["create"]), (True, ["create", "restart 0"])]
