"""One attempt from its start to its end: what is started, taken, ended and raised. Processes and the launcher are stand-ins."""

from __future__ import annotations

import contextlib
import itertools
import queue
import types
from collections.abc import Iterator
from typing import Any

import pytest

from akrunner.cluster.failure import FailureKind
from akrunner.engines import supervisor
from akrunner.engines.base import Progress
from akrunner.engines.kept import KeptRun
from akrunner.engines.supervisor import AttemptFailed, Supervisor
from akrunner.errors import JobCancelledError, JobError, JobStalledError, JobTimeoutError, ReadError, ScriptFailedError
from akrunner.io.extents import Extent
from akrunner.launch import events as said
from akrunner.launch.process import Exit
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec, SupervisionSpec, TaskSpec

CHIEF = TaskSpec("chief", 0)
FAILURE = {"type": "ValueError", "message": "no", "traceback": "Traceback: ...", "phase": "in main()", "time_ns": 9}
CLOSED = {"ok": True, "rows": 0, "rows_read": 0, "main_ns": 2_000_000_000, "output_blocked_ns": 0, "rows_dropped": 0, "rows_padded": 0, "notes": []}  # fmt: skip
FAILED = {**CLOSED, "ok": False, "failure": FAILURE}


class Stage:
    """What an attempt is made of, and what became of it.

    Attributes:
        did: what was done, in order.
        starts: what the task says once it is started; enters: and once it is told to begin.
        error: of a thread of the host. exit: of its process.
        check: what the launcher's `check` raises. counted: from when on the job's time counts; it begins at 1000.
    """

    def __init__(self) -> None:
        self.did: list[str] = []
        self.starts: list[Any] = [(said.Opened, {}), (said.Ready, {"rows": 5, "waited_ns": 7})]
        self.enters: list[Any] = [(said.Entered, {}), (said.Closed, CLOSED)]
        self.error: BaseException | None = None
        self.exit: Exit | None = Exit(0, None, 100, 1.5, 11)
        self.check: BaseException | None = None
        self.explain: BaseException | None = None
        self.told: list[Progress] = []
        self.sent: list[str] = []
        self.warnings: list[str] = []
        self.bad_rows: list[str] = []
        self.cancel: Any = None
        self.guard: list[str | None] = []
        self.tables: Any = None
        self.counted = 1000.0

    def run(self, **wait: Any) -> Any:
        job = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", ClusterSpec(), supervision=SupervisionSpec(**wait))
        work = types.SimpleNamespace(
            path="/work", keep=False, save_shares=lambda rows, splits: self.did.append(f"shares {rows}"),
            save_stall=lambda text: self.did.append("stall saved"), log_path=lambda task: "/work/log",
        )  # fmt: skip
        run: Any = types.SimpleNamespace(
            job=job, source=None, sink=None, observer=self, cancel=self.cancel, work=work, warnings=self.warnings, began=1000.0, counted=self.counted, disks={}, kept=KeptRun(), board=None,
            guard=types.SimpleNamespace(check=lambda: self.guard.pop() if self.guard else None),
            patience=types.SimpleNamespace(heard=self.heard), tables=self.tables, hear=lambda: self.warnings.extend(self.bad_rows),
        )  # fmt: skip
        made = Supervisor(run, Launcher(self), 1)  # type: ignore[arg-type]
        return made.run()

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        self.did.append("Ctrl-C is heard")
        yield
        self.did.append("Ctrl-C is not heard")

    def progress(self, progress: Progress) -> None:
        self.told.append(progress)

    def log(self, task: str, line: str) -> None: ...


class Launcher:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def __enter__(self) -> None:
        self.stage.did.append("launcher opens")

    def __exit__(self, *error: Any) -> None:
        self.stage.did.append("launcher closes")

    def starts(self) -> Any:
        return {"chief:0": "cold"}

    def check(self) -> None:
        if self.stage.check is not None:
            raise self.stage.check

    def explain(self) -> None:
        self.stage.did.append("explain")
        if self.stage.explain is not None:
            raise self.stage.explain

    def take_model(self) -> None:
        self.stage.did.append("model taken")


class Group:
    stage: Stage

    def __init__(self, run: Any, launcher: Any, onlooker: Any) -> None:
        stage = self.stage
        self.events: queue.Queue[said.Event] = queue.Queue()
        self.conversations: dict[TaskSpec, Any] = {}
        self.streaming = None
        self.feeder = types.SimpleNamespace(
            finished=True,
            refused=None,
            refused_at=0.0,
            in_source=False,
            splits=[],
            seconds=0.5,
            extent=Extent(9),
            share_read=0.5,
            partitioner=types.SimpleNamespace(shares=(5,)),
        )
        process = types.SimpleNamespace(
            exit=stage.exit, wait=lambda seconds: stage.exit, sampled_cpu=0.0, sampled_rss=0, sampled_memory=0, unread=lambda: 0
        )
        log = types.SimpleNamespace(tail=lambda lines: "the log", position=0)
        self.sessions = {
            CHIEF: types.SimpleNamespace(
                task=CHIEF, script="/no/such/s.py", process=process, log=log, rows_sent=5, hello={"python": "3.11"}, left=None, error=None,
                writer=types.SimpleNamespace(bytes=50, blocked_ns=0, queued=0), stop=lambda: stage.did.append("stop"),
            )
        }  # fmt: skip
        self.bytes_sent, self.rows_sent, self.rows_given = 50, 5, 5

    @property
    def error(self) -> BaseException | None:
        return self.stage.error

    def find_places(self) -> Any:
        self.stage.did.append("places found")
        return {CHIEF: "127.0.0.1:1"}

    def spawn(self, addresses: Any, attempt: int) -> None:
        self.stage.did.append(f"spawn attempt {attempt}")
        self._say(self.stage.starts)

    def start(self) -> None:
        self.stage.did.append("start")
        self._say(self.stage.enters)

    def _say(self, events: list[Any]) -> None:
        for kind, *body in events:
            self.events.put(kind(CHIEF, *body))

    def used(self) -> dict[str, Any]:
        return {}

    def sample(self) -> float:
        return 0.0

    def stacks(self, tasks: Any, quietly: bool = False) -> Any:
        return {task: "Current thread" for task in tasks}

    def look_closely(self) -> tuple[float, float]:
        return 0.0, 1.0

    def end(self, closing: Any) -> None:
        self.stage.did.append("group ends")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage()
    monkeypatch.setattr(Group, "stage", made, raising=False)
    monkeypatch.setattr(supervisor, "TaskGroup", Group)
    # what passes between two looks at the clock is half a second, and nobody waits for it
    clock = itertools.count(1000.0, 0.5)
    monkeypatch.setattr(supervisor, "time", types.SimpleNamespace(monotonic=lambda: next(clock), time_ns=lambda: 7))
    monkeypatch.setattr(supervisor, "_TICK", 0.0001)
    return made


def test_what_is_found_in_the_source_is_a_warning(stage: Stage) -> None:
    stage.bad_rows = ["source: t.csv line 3: why"]
    assert stage.bad_rows[0] in stage.run().stats.warnings


def test_an_attempt_that_succeeds_takes_its_steps_in_order(stage: Stage) -> None:
    outcome = stage.run()
    assert stage.did == [
        "launcher opens", "Ctrl-C is heard", "places found", "spawn attempt 1", "shares {'chief:0': 5}", "start", "Ctrl-C is not heard",
        "group ends", "model taken", "launcher closes",
    ]  # fmt: skip
    (task,) = outcome.tasks
    assert (task.name, task.rows_in, task.main_seconds, task.exit, task.python) == ("chief:0", 5, 2.0, "exit code 0", "3.11")
    stats = outcome.stats
    assert (stats.attempt, stats.shares, stats.rows_in, stats.bytes_in, stats.feed_seconds) == (1, (5,), 5, 50, 0.5)
    assert stats.starts == {"chief:0": "cold"} and 0 < stats.start_seconds < stats.seconds and outcome.work_dir is None


def test_the_last_progress_that_is_told_is_that_of_the_end(stage: Stage) -> None:
    stage.enters.insert(1, (said.Report, {"metrics": {"loss": 0.5}, "step": 1, "time_ns": 1}))
    assert stage.run().stats.reports == [{"task": "chief:0", "step": 1, "time_ns": 1, "loss": 0.5}]
    last = stage.told[-1]
    assert last.states == {"chief:0": "finished"} and (last.rows_in, last.bytes_in) == (5, 50)
    assert last.reports == {"chief:0": {"loss": 0.5}} and last.seconds > 0
    assert last.tasks["chief:0"].rows_in == 5 and last.tasks["chief:0"].step == 1
    assert (last.rows_total, last.share_read, last.fed, last.attempt) == (9, 0.5, True, 1)


def test_a_script_that_raised_is_the_attempts_failure(stage: Stage) -> None:
    stage.enters = [(said.Entered, {}), (said.Closed, FAILED)]
    with pytest.raises(AttemptFailed) as failed:
        stage.run()
    assert failed.value.kind is FailureKind.SCRIPT and failed.value.root.task == "chief:0"
    assert stage.did[-3:] == ["group ends", "explain", "launcher closes"]
    error = failed.value.error("/kept", ["a warning"])
    assert isinstance(error, ScriptFailedError) and error.warnings == ("a warning",) and error.work_dir == "/kept"
    assert str(error).startswith("[chief:0] ") and "ValueError" in str(error)


def test_what_is_known_of_the_machines_comes_in_place_of_how_the_tasks_ended(stage: Stage) -> None:
    stage.enters, stage.explain = [(said.Closed, FAILED)], JobError("the TaskManager is gone")
    with pytest.raises(JobError, match="the TaskManager is gone"):
        stage.run()
    assert stage.did[-1] == "launcher closes"


def test_a_process_that_ended_without_a_word_is_told_with_how_it_ended(stage: Stage) -> None:
    stage.enters, stage.exit = [(said.Entered, {}), (said.Ended,)], Exit(3, None, 0, 0.0, 5)
    with pytest.raises(AttemptFailed, match="exit code 3") as failed:
        stage.run()
    assert failed.value.kind is FailureKind.DIED


def test_the_kernels_killer_is_named_by_the_error_and_by_the_failure(stage: Stage) -> None:
    stage.enters, stage.exit = [(said.Entered, {}), (said.Ended,)], Exit(None, 9, 0, 0.0, 5, out_of_memory=True)
    with pytest.raises(AttemptFailed) as failed:
        stage.run()
    failure = failed.value.error("", []).failure
    assert failure is not None
    assert "out-of-memory killer; peak" in failure.what and "from outside" not in failure.exit
    assert failure.exit in failure.what


def test_a_pipe_that_ended_before_its_process_did(stage: Stage) -> None:
    stage.enters, stage.exit = [(said.Entered, {}), (said.Ended,)], None
    with pytest.raises(AttemptFailed, match="closed its pipe to the host and ran on"):
        stage.run()


def test_whatever_the_source_raises_is_raised_as_it_is(stage: Stage) -> None:
    stage.starts, stage.error = [], ReadError("row 7")
    with pytest.raises(ReadError, match="^row 7$"):
        stage.run()
    assert stage.did[-2:] == ["group ends", "launcher closes"] and "model taken" not in stage.did


def test_a_job_that_its_caller_stops_is_cancelled(stage: Stage) -> None:
    stage.starts, stage.cancel = [], types.SimpleNamespace(is_set=lambda: True)
    with pytest.raises(JobCancelledError, match="stopped by its caller"):
        stage.run()
    assert stage.did[-2:] == ["group ends", "launcher closes"]


def test_a_job_that_takes_too_long_has_the_stacks_of_its_tasks(stage: Stage) -> None:
    stage.enters = [(said.Entered, {})]
    with pytest.raises(AttemptFailed) as failed:
        stage.run(timeout=30)
    assert failed.value.kind is FailureKind.TIMEOUT
    error = failed.value.error("", [])
    assert isinstance(error, JobTimeoutError) and "timeout=30" in str(error)
    assert error.failure is not None and error.failure.log_tail == "Current thread"


def test_the_time_in_which_tables_were_opened_counts(stage: Stage) -> None:
    stage.run(timeout=300)
    stage.counted -= 300
    with pytest.raises(AttemptFailed) as failed:
        stage.run(timeout=300)
    assert failed.value.kind is FailureKind.TIMEOUT


def test_a_job_in_which_nothing_moves_is_stalled_and_what_is_known_is_saved(stage: Stage) -> None:
    stage.enters = [(said.Entered, {})]
    with pytest.raises(AttemptFailed) as failed:
        stage.run(stall_timeout=20)
    assert failed.value.kind is FailureKind.STALLED and "stall saved" in stage.did
    error = failed.value.error("", [])
    assert isinstance(error, JobStalledError) and "nothing has moved for" in str(error)


def test_rows_of_tables_that_move_are_no_stall(stage: Stage) -> None:
    class Tables:
        @property
        def moved(self) -> int:
            self.asked = getattr(self, "asked", 0) + 1
            if self.asked == 100:
                stage.error = ReadError("enough")
            return self.asked

    stage.enters, stage.tables = [(said.Entered, {})], Tables()
    with pytest.raises(ReadError, match="enough"):
        stage.run(stall_timeout=20)


def test_what_the_tasks_run_in_may_fail(stage: Stage) -> None:
    stage.enters, stage.check = [(said.Entered, {})], JobError("the Flink job has failed")
    with pytest.raises(AttemptFailed, match="the Flink job has failed") as failed:
        stage.run()
    assert failed.value.kind is FailureKind.DIED


def test_a_guard_that_was_replaced_is_warned_of(stage: Stage) -> None:
    stage.guard = ["another guard"]
    assert "another guard" in stage.run().stats.warnings


def test_what_is_open_is_closed_though_nothing_could_be_started(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(self: Group) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Group, "find_places", no)
    with pytest.raises(ZeroDivisionError):
        stage.run()
    assert stage.did == ["launcher opens", "Ctrl-C is heard", "group ends", "launcher closes"]
