"""A table of a PyFlink program as a source, and what submits its job from within the program; a stand-in takes PyFlink's place."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.flink import program
from akrunner.engines.flink.host import table as table_module
from akrunner.engines.flink.host.client import Submission
from akrunner.engines.flink.host.table import FlinkTable, ProgramGraph, ProgramSubmitter
from akrunner.engines.flink.program import submit
from akrunner.errors import ClusterError, ConfigError, SourceError
from akrunner.schema import Schema
from akrunner.spec import JobSpec, ScriptSpec

SCHEMA = pa.schema([("a", pa.int64())])
JOB = JobSpec(ScriptSpec("s.py", "s.py"), Schema.from_arrow(SCHEMA), "/py")


class Running:
    """A job that runs. Args: states: Flink's words for it, one after the other; an error is raised."""

    id = "j1"

    def __init__(self, *states: Any, error: Exception | None = None) -> None:
        self._states = list(states)
        self._error = error
        self.cancelled = self.closed = False

    def state(self) -> str:
        state = self._states.pop(0)
        if isinstance(state, Exception):
            raise state
        return str(state)

    def result(self) -> None:
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        self.cancelled = True
        raise RuntimeError("its cluster is gone")

    def close(self) -> None:
        self.closed = True


class Bridge(SimpleNamespace):
    """In place of what imports PyFlink. Attributes: given: the arguments of its latest call."""

    given: Any = None
    running: Any = None

    def table_of(self, source: Any) -> Any:
        return f"table of {source}"

    def arrow_schema(self, table: Any) -> pa.Schema:
        return SCHEMA

    def check(self, table: Any, mode: str) -> None:
        self.given = table, mode

    def submit(self, *given: Any) -> Any:
        self.given = given
        if isinstance(self.running, Exception):
            raise self.running
        return self.running

    def attach(self, *given: Any) -> Any:
        self.given = given
        if isinstance(self.running, Exception):
            raise self.running
        return "what they write", SCHEMA


@pytest.fixture
def bridge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bridge]:
    made = Bridge(
        master=lambda table: f"{table}:8081", operators_compile=lambda: True, has_checkpoints=lambda table: table == "t",
        slots=lambda table, job: 5,
    )  # fmt: skip
    monkeypatch.setattr(program, "bridge", made, raising=False)
    monkeypatch.setattr(program, "planner", SimpleNamespace(be_ready=lambda table: None), raising=False)
    monkeypatch.setattr(table_module, "_package", lambda: "/akrunner.pyz")
    for name in ("_EXPECTED_POLL_SECONDS", "_BEGINS_POLL_SECONDS", "_RUNS_POLL_SECONDS"):
        monkeypatch.setattr(table_module, name, 0.0)
    yield made


def test_a_table_is_a_source_whose_rows_do_not_come_here(bridge: Bridge) -> None:
    source = FlinkTable.of("stream")
    assert source.table == "table of stream" and source.schema == SCHEMA and source.elsewhere and source.replayable
    assert source.output is None and source.pairs is None
    with pytest.raises((SourceError, ConfigError), match="the rows of a PyFlink table do not come through this process"):
        list(source.batches())


def test_its_environment_says_what_there_is(bridge: Bridge) -> None:
    source = FlinkTable(SCHEMA, iter, table="t")  # type: ignore[arg-type]
    source.check("stream")
    assert bridge.given == ("t", "stream")
    assert source.master == "t:8081" and source.operators_compile() and source.has_checkpoints and source.slots(JOB) == 5


def watched(bridge: Bridge, running: Any) -> tuple[ProgramSubmitter, Submission]:
    """A job that was submitted, after its end."""
    bridge.running = running
    submitter = FlinkTable(SCHEMA, iter, table="t").submitter(JOB, {"a": "b"}, True)  # type: ignore[arg-type]
    submission = submitter.submit({"name": "akrunner"})
    assert submission.ended.wait(30)
    return submitter, submission


def test_a_job_is_watched_to_its_end(bridge: Bridge) -> None:
    running = Running("CREATED", "RUNNING", "FINISHED")
    submitter, submission = watched(bridge, running)
    assert (submission.id, submission.state, submission.failed) == ("j1", "FINISHED", None)
    assert bridge.given == ("t", JOB, "/akrunner.pyz", {"name": "akrunner"}, {"a": "b"}, True)
    submitter.close()
    assert running.closed and not running.cancelled


@pytest.mark.parametrize("graph", [True, False])
def test_a_job_that_merely_runs_is_asked_seldom_until_somebody_hurries(
    graph: bool, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_module, "_BEGINS_POLL_SECONDS", 1000.0)
    monkeypatch.setattr(table_module, "_RUNS_POLL_SECONDS", 1000.0)
    running = Running("RUNNING", "RUNNING", "FINISHED")
    if graph:
        bridge.running = lambda result, table: running
        made: Any = ProgramGraph("t", JOB, SCHEMA, {}, True)
        submission = made.submit({"name": "akrunner"})
        made.executed("a result")
    else:
        bridge.running = running
        made = ProgramSubmitter("t", JOB, {}, True)
        submission = made.submit({"name": "akrunner"})
    assert not submission.ended.wait(0.1) and submission.state != "RUNNING", "nobody has been asked"
    made.hurry(submission)
    assert submission.ended.wait(30) and submission.state == "FINISHED", "it is asked at once, and often from then on"
    made.close()


class JavaError(Exception):
    """As py4j raises it."""


JavaError.__module__ = "py4j.protocol"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (JavaError("An error occurred\n: java.lang.Exception: x\nCaused by: no slots"), "no slots"),
        (AttributeError("no such thing"), "akrunner's own thread 'flink' failed:\nTraceback"),
    ],
)
@pytest.mark.parametrize("when", ["failed", "asked"])
def test_why_it_has_failed_is_said_in_words(when: str, error: Exception, words: str, bridge: Bridge) -> None:
    running = Running("RUNNING", "FAILED", error=error) if when == "failed" else Running("RUNNING", error)
    submitter, submission = watched(bridge, running)
    assert submission.failed is not None and submission.failed.startswith(words)
    assert submission.fault is isinstance(error, AttributeError)
    submitter.close()


def test_one_that_no_jobmanager_takes_over_has_failed(bridge: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submit, "TAKE_OVER_SECONDS", 0.0)
    submitter, submission = watched(bridge, Running("RUNNING", "SUSPENDED", "SUSPENDED"))
    assert (submission.state, submission.fault) == ("SUSPENDED", False)
    assert submission.failed is not None and submission.failed.startswith("its JobManager has gone")
    submitter.close()


def test_a_cluster_that_does_not_answer_any_more_is_no_fault(bridge: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submit, "TAKE_OVER_SECONDS", 0.0)
    gone = ClusterError("no Flink cluster answers at http://t:8081")
    submitter, submission = watched(bridge, Running("RUNNING", gone, gone, gone))
    assert (submission.failed, submission.fault) == (str(gone), False)
    submitter.close()


def test_one_that_was_cancelled_has_not_failed(bridge: Bridge) -> None:
    submitter, submission = watched(bridge, Running("CANCELLING", "CANCELED"))
    assert submission.state == "CANCELED" and submission.failed is None
    submitter.close()


@pytest.mark.parametrize("over", [True, False])
def test_only_a_job_that_runs_is_cancelled_and_its_errors_are_not_the_callers(over: bool, bridge: Bridge) -> None:
    running = Running("FINISHED")
    submitter, submission = watched(bridge, running)
    if not over:
        submission = Submission()
    submitter.cancel(submission)
    assert running.cancelled is not over
    submitter.close()


@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (JavaError("x\nCaused by: org.X: no such table"), "^source: Flink cannot run it: org.X: no such table$"),
        (ConfigError("column 'a': Flink has no uint64"), "^column 'a': Flink has no uint64$"),
    ],
)
def test_what_flink_refuses_is_the_sources_error(error: Exception, words: str, graph: bool, bridge: Bridge) -> None:
    bridge.running = error
    submitter = ProgramGraph("t", JOB, SCHEMA, {}, True) if graph else ProgramSubmitter("t", JOB, {}, True)
    with pytest.raises(ConfigError, match=words):
        submitter.submit({"name": "akrunner"})


def test_one_that_never_ran_can_be_closed(bridge: Bridge) -> None:
    ProgramSubmitter("t", JOB, {}, True).close()


def test_a_graph_is_built_into_the_program_which_runs_it(bridge: Bridge) -> None:
    graph = ProgramGraph("t", JOB, SCHEMA, {"a": "b"}, False)
    assert graph.table is None and graph.output is None
    submission = graph.submit({"name": "akrunner"})
    assert (graph.table, graph.output) == ("what they write", SCHEMA)
    assert bridge.given == ("t", JOB, "/akrunner.pyz", {"name": "akrunner"}, {"a": "b"}, False, SCHEMA)
    assert submission.state == "waiting to be executed by its program" and not submission.ended.is_set()
    graph.cancel(submission)
    graph.close()
    assert not submission.ended.is_set()


def test_a_graph_that_was_executed_is_watched_once(bridge: Bridge) -> None:
    graph = ProgramGraph("t", JOB, SCHEMA, {}, False)
    submission = graph.submit({"name": "akrunner"})
    error = JavaError("An error occurred\n: java.lang.Exception: x\nCaused by: no slots")
    results = []

    def running(result: str, table: str) -> Running:
        results.append((result, table))
        return Running("CREATED", "FAILED", error=error)

    bridge.running = running
    graph.executed("a result")
    graph.executed("the same")
    assert submission.ended.wait(30)
    assert (submission.id, submission.state, submission.failed, submission.fault) == ("j1", "FAILED", "no slots", False)
    assert results == [("a result", "t"), ("the same", "t")], "each is checked"


def test_akrunner_is_written_once_for_all_jobs_of_a_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    written: list[str] = []
    left: list[Any] = []
    monkeypatch.setattr(table_module.leftovers, "temp_folder", lambda name: str(tmp_path))
    monkeypatch.setattr(table_module, "write_package", written.append)
    monkeypatch.setattr(table_module.atexit, "register", lambda *given: left.append(given))
    table_module._package.cache_clear()
    try:
        assert table_module._package() == table_module._package() == f"{tmp_path}/akrunner.pyz"
    finally:
        table_module._package.cache_clear()
    assert written == [f"{tmp_path}/akrunner.pyz"] and left == [(table_module.leftovers.drop, str(tmp_path))]
