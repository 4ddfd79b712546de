"""A job in a PyFlink program: what is done at each end of an attempt, how often it is started again, and what the program is told."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.base import Outcome, Stats
from akrunner.engines.flink.host import attached as attached_module
from akrunner.engines.flink.host.attached import Attached
from akrunner.engines.flink.host.client import Submission
from akrunner.engines.flink.rest import Address
from akrunner.errors import (
    ClusterError,
    ConfigError,
    JobCancelledError,
    JobError,
    JobManagerLostError,
    JobTimeoutError,
    OutputError,
    ScriptFailedError,
    StartError,
    TaskDiedError,
)

MASTER = Address("http", "flink", 8081)
OUTCOME = Outcome((), Stats(1.0, 0.1, 0.2, 0.3, 1, 2, 3, 4, 0.0, 0.0, 0.0, "unknown", (), warnings=["its own"]), None)


class Subtasks:
    """In place of the Flink job's. Args: again: what comes of each new start, None: new subtasks; gone: whether one was lost; broken:
    whether by a fault."""

    def __init__(self, *again: str | None, gone: bool = False, broken: bool = False) -> None:
        self._again = list(again)
        self._gone = gone
        self._broken = broken
        self.submitted = Submission()
        self.comes = threading.Event()
        self.left: list[tuple[str | None, bool]] = []
        self.closed = False

    def wait_for_first(self) -> None:
        assert self.comes.wait(30)

    def leave(self, error: str | None = None, final: bool = True) -> None:
        self.left.append((error, final))

    def any_gone(self) -> bool:
        return self._gone

    def hopeless(self) -> bool:
        return self._broken

    def start_again(self, state: Callable[[str], str | None]) -> str | None:
        self.state = state
        return self._again.pop(0)

    def disconnect(self) -> None:
        self.closed = True


def run_of(*ends: BaseException | Outcome) -> Callable[[], Outcome]:
    """Attempts that end like that, one after the other."""
    left = list(ends)

    def run() -> Outcome:
        end = left.pop(0)
        if isinstance(end, BaseException):
            raise end
        return end

    return run


def attached(subtasks: Any, *ends: BaseException | Outcome, restarts: int | None = None) -> Attached:
    """A job whose subtasks have come."""
    made = Attached("the table", subtasks, run_of(*ends), MASTER, restarts)
    subtasks.comes.set()
    return made


def test_nothing_runs_before_a_subtask_comes() -> None:
    subtasks = Subtasks()
    job = Attached("the table", subtasks, run_of(OUTCOME))  # type: ignore[arg-type]
    assert job.table == "the table" and not job._begun.is_set()
    with pytest.raises(TimeoutError, match="have you executed the table"):
        job.wait(0.0)
    subtasks.comes.set()
    assert job.wait(30).stats.warnings == ["its own"]
    assert subtasks.left == [(None, True)] and subtasks.closed


def test_no_subtask_is_waited_for_without_end() -> None:
    subtasks = Subtasks()
    job = Attached("the table", subtasks, run_of(OUTCOME), slot_timeout=0.05)  # type: ignore[arg-type]
    with pytest.raises(
        StartError,
        match=r"^no subtask came within 0.05 s \(slot_timeout=\); its Flink job is being submitted: has the program executed",
    ):
        job.wait()
    subtasks.comes.set()
    assert job.wait().stats.warnings == ["its own"], "the program may execute the table later"


def test_a_batch_program_may_compute_for_long_before_a_subtask_comes() -> None:
    subtasks = Subtasks()
    job = Attached("the table", subtasks, run_of(OUTCOME), slot_timeout=0.05)  # type: ignore[arg-type]
    subtasks.submitted.state = "RUNNING"
    coming = threading.Timer(0.5, subtasks.comes.set)
    coming.start()
    assert job.wait(result="what execute_insert() returned").stats.warnings == ["its own"]
    coming.join()


def test_what_the_program_has_executed_is_watched() -> None:
    subtasks = Subtasks()
    results: list[Any] = []
    job = Attached("the table", subtasks, run_of(OUTCOME), executed=results.append)  # type: ignore[arg-type]
    subtasks.comes.set()
    job.wait(30, result="what execute_insert() returned")
    job.wait()
    assert results == ["what execute_insert() returned"]


def test_an_error_before_the_first_subtask_ends_the_wait() -> None:
    class None_(Subtasks):
        def wait_for_first(self) -> None:
            raise StartError("Flink did not run the job: no slots")

    job = Attached("the table", None_(), run_of(OUTCOME))  # type: ignore[arg-type]
    with pytest.raises(StartError, match="no slots"):
        job.wait()


def test_an_error_is_given_to_flink_and_to_the_program() -> None:
    error = ScriptFailedError("[worker:0] its script failed")
    subtasks = Subtasks()
    job = attached(subtasks, error)
    for _ in range(2):
        with pytest.raises(ScriptFailedError) as caught:
            job.wait(30)
        assert caught.value is error
    assert subtasks.left == [("ScriptFailedError: [worker:0] its script failed", True)] and subtasks.closed


def test_a_fault_of_akrunners_own_has_its_traceback() -> None:
    subtasks = Subtasks()
    job = attached(subtasks, AttributeError("no such thing"))
    with pytest.raises(
        JobError, match="akrunner's own thread 'attached' failed:\n(.|\n)*AttributeError: no such thing"
    ) as caught:
        job.wait(30)
    assert caught.value.fault
    assert subtasks.left == [("AttributeError: no such thing", True)]


# -- started again


def test_without_checkpoints_nothing_is_started_again() -> None:
    job = attached(Subtasks(None, gone=True), TaskDiedError("[worker:0] lost"), OUTCOME)
    with pytest.raises(TaskDiedError):
        job.wait(30)


def test_a_script_is_started_again_as_often_as_it_may() -> None:
    subtasks = Subtasks(None, None)
    job = attached(subtasks, ScriptFailedError("one\ntrace"), ScriptFailedError("two"), OUTCOME, restarts=2)
    stats = job.wait(30).stats
    assert stats.attempt == 2
    assert stats.warnings == [
        "one; Flink has started everything again", "two; Flink has started everything again", "its own",
    ]  # fmt: skip
    assert subtasks.left == [("ScriptFailedError: one\ntrace", False), ("ScriptFailedError: two", False), (None, True)]
    assert OUTCOME.stats.warnings == ["its own"] and OUTCOME.stats.attempt == 0


def test_and_not_more_often() -> None:
    subtasks = Subtasks(None, None)
    job = attached(subtasks, ScriptFailedError("one"), ScriptFailedError("two"), OUTCOME, restarts=1)
    with pytest.raises(ScriptFailedError, match="two"):
        job.wait(30)
    assert [final for _, final in subtasks.left] == [False, True]


def test_a_subtask_that_is_lost_is_no_failure_of_the_script() -> None:
    job = attached(Subtasks(None, None, None, gone=True), *[TaskDiedError("lost")] * 3, OUTCOME, restarts=0)
    assert job.wait(30).stats.attempt == 3


def test_nor_does_a_fault_go_round_although_its_subtask_is_lost() -> None:
    subtasks = Subtasks(None, gone=True, broken=True)
    job = attached(subtasks, JobError("akrunner's own thread 'log' failed"), OUTCOME, restarts=5)
    with pytest.raises(JobError, match="own thread"):
        job.wait(30)
    assert [final for _, final in subtasks.left] == [True]
    fault = JobError("the job could not go on; a fault in akrunner itself")
    fault.fault = True
    again = attached(Subtasks(None), fault, OUTCOME, restarts=5)
    with pytest.raises(JobError, match="the job could not go on"):
        again.wait(30)


@pytest.mark.parametrize("error", [OutputError("no"), JobTimeoutError("no"), JobManagerLostError("no")])
def test_what_would_fail_again_is_not_started_again(error: JobError) -> None:
    job = attached(Subtasks(None, gone=True), error, OUTCOME, restarts=5)
    with pytest.raises(type(error)):
        job.wait(30)


@pytest.mark.parametrize(
    ("ended", "words"),
    [("CANCELED", "the Flink job was cancelled"), ("FINISHED", "the Flink job was stopped, as a savepoint does")],
)
def test_a_job_that_somebody_has_ended_is_said(ended: str, words: str) -> None:
    job = attached(Subtasks(ended), ScriptFailedError("one"), restarts=5)
    with pytest.raises(JobCancelledError, match=f"^{words}$"):
        job.wait(30)


def test_a_job_that_flink_does_not_start_again_fails_with_what_was_first() -> None:
    job = attached(Subtasks(None, "FAILED"), ScriptFailedError("one"), ScriptFailedError("two"), restarts=5)
    with pytest.raises(ScriptFailedError, match="^two") as caught:
        job.wait(30)
    assert caught.value.warnings == (
        "one; Flink has started everything again", "Flink has not started the job again: it is FAILED",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cluster", "answer", "state"), [(None, "RUNNING", None), (MASTER, "RUNNING", "RUNNING"), (MASTER, None, None)]
)
def test_the_cluster_is_asked_for_a_jobs_state(
    cluster: Address | None, answer: str | None, state: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Rest:
        def __init__(self, master: Address) -> None:
            assert master is MASTER

        def state(self, job: str) -> str:
            assert job == "j1"
            if answer is None:
                raise ClusterError("master=: no answer")
            return answer

    monkeypatch.setattr(attached_module, "Rest", Rest)
    subtasks = Subtasks()
    job = Attached(None, subtasks, run_of(OUTCOME), cluster)  # type: ignore[arg-type]
    subtasks.comes.set()
    assert job._state("j1") == state
    job.wait(30)


# -- its rows


@pytest.fixture
def collecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What Flink does when it is asked for the rows: `error`, or `rows`."""
    does: dict[str, Any] = {"error": None, "rows": pa.table({"a": [1]})}

    def collected(table: object) -> pa.Table:
        assert table == "the table"
        if does["error"] is not None:
            raise does["error"]
        return does["rows"]

    sql = types.ModuleType("akrunner.engines.flink.host.sql")
    vars(sql)["collected"] = collected
    monkeypatch.setitem(sys.modules, sql.__name__, sql)
    yield does


def test_its_rows_come_here(collecting: dict[str, Any]) -> None:
    job = attached(Subtasks(), OUTCOME)
    assert job.collect() is collecting["rows"]
    job.wait(30)


def test_why_the_tasks_failed_says_more_than_flink(collecting: dict[str, Any]) -> None:
    collecting["error"] = ConfigError("Flink cannot compute the table: java.lang.Exception")
    job = attached(Subtasks(), ScriptFailedError("its script failed"))
    assert job._begun.wait(30)
    with pytest.raises(ScriptFailedError, match="its script failed"):
        job.collect()


def test_flinks_own_error_is_said_where_no_task_has_failed(collecting: dict[str, Any]) -> None:
    collecting["error"] = ConfigError("Flink cannot compute the table: java.lang.Exception")
    subtasks = Subtasks()
    job = Attached("the table", subtasks, run_of(OUTCOME))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="java.lang.Exception"):
        job.collect()
    subtasks.comes.set()
    job.wait(30)
    with pytest.raises(ConfigError, match="java.lang.Exception"):
        job.collect()
