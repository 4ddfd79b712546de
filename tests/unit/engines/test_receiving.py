"""What each message of a task means for the attempt, where its rows and reports go, and which failures the host finds itself."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.cluster.failure import FailureKind
from akrunner.engines.base import Reached
from akrunner.engines.kept import KeptRun
from akrunner.engines.onlooker import Onlooker
from akrunner.engines.receiving import Receiver
from akrunner.engines.supervision import events as on
from akrunner.engines.supervision.states import LastWord, Rules, State
from akrunner.engines.tensorboard import EventFiles
from akrunner.errors import DataError, InputLostError, JobError, ProtocolError, SinkError, WriteError
from akrunner.io.table import TableSource
from akrunner.launch import events as said
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec, TaskSpec
from akrunner.wire import column_layout as layout
from akrunner.wire import frames
from akrunner.worker.column_encoding import packed

CHIEF = TaskSpec("chief", 0)
CLOSED = {
    "ok": True,
    "rows": 2,
    "rows_read": 3,
    "main_ns": 5,
    "output_blocked_ns": 0,
    "rows_dropped": 0,
    "rows_padded": 0,
    "notes": [],
}
FAILURE = {"type": "ValueError", "message": "no", "traceback": "Traceback: ...", "phase": "in main()", "time_ns": 9}


class Sink:
    """Attributes: rows: what was written; no: what was refused; error: raised instead of a write."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.error: BaseException | None = None

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        if self.error is not None:
            raise self.error
        self.rows += batch.to_pylist()


class AnswerSink(Sink):
    def __init__(self) -> None:
        super().__init__()
        self.no: list[Any] = []

    def refused(self, task: TaskSpec, record: Any) -> None:
        self.no.append((task.name, record))


class Host:
    """A receiver and what is around it. Attributes: warnings: of the run; conversations: of its tasks."""

    def __init__(self, sink: Sink | None = None, **fields: Any) -> None:
        schema = fields.pop("output_schema", "a bigint")
        declared = Schema.parse(schema, "x") if schema is not None else None
        job = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", output_schema=declared, **fields)
        self.warnings: list[str] = []
        self.conversations: dict[TaskSpec, Any] = {}
        board = EventFiles.of(job, self.warnings)
        run: Any = types.SimpleNamespace(
            job=job, sink=sink, warnings=self.warnings, disks={}, source=None, kept=KeptRun(), board=board
        )
        self.run = run
        session = types.SimpleNamespace(rows_sent=7)
        group: Any = types.SimpleNamespace(sessions={CHIEF: session}, conversations=self.conversations)
        self.receiver = Receiver(run, group, Onlooker(None))
        self.state = State.first(Rules(ClusterSpec()), 0.0, 0.0)

    def take(self, kind: Any, *held: Any) -> Any:
        return self.receiver.take(kind(CHIEF, *held), self.state)

    def written(self, **columns: Any) -> Any:
        rows, parts = packed(columns, None)
        payload = bytearray(b"".join(bytes(part) for part in layout.pack(rows, parts)))
        return self.take(said.Output, frames.Frame(frames.COLUMNS, rows, payload))


class MarkedSink(Sink):
    def __init__(self) -> None:
        super().__init__()
        self.marks: list[Any] = []

    def answered(self, task: TaskSpec, number: int) -> None:
        self.marks.append((task.name, number, len(self.rows)))


def test_a_mark_comes_to_a_sink_that_takes_it_behind_the_rows_before() -> None:
    sink = MarkedSink()
    host = Host(sink)
    host.written(a=[1, 2])
    assert host.take(said.Answered, 4) is None and sink.marks == [(CHIEF.name, 4, 2)]
    assert Host(Sink()).take(said.Answered, 4) is None


def test_a_save_that_is_due_is_told_to_a_source_with_places() -> None:
    told: list[int] = []
    arriving: Any = types.SimpleNamespace(due=told.append)
    host = Host(Sink())
    assert host.take(said.Due, 4) is None, "no such source"
    host.run.source = TableSource(pa.schema([]), lambda: iter(()), arriving=arriving)
    assert host.take(said.Due, 4) is None and told == [4]


@pytest.mark.parametrize(
    "kind, held, means",
    [
        (said.Opened, [{}], on.Opened(CHIEF)), (said.Entered, [{}], on.Entered(CHIEF)), (said.Serving, [{}], on.Serving(CHIEF)),
        (said.Ended, [], on.PipeEnded(CHIEF)), (said.Ready, [{"rows": 6, "waited_ns": 4}], on.Ready(CHIEF, 6, 7, 4)),
        (said.Passed, [{"rows": 2, "bytes": 30}], on.Wrote(CHIEF, 2, 30)),
    ],
)  # fmt: skip
def test_a_message_becomes_an_event(kind: Any, held: list[Any], means: on.Event) -> None:
    assert Host().take(kind, *held) == means


def test_rows_go_to_the_sink_and_are_counted() -> None:
    host = Host(sink := Sink())
    wrote = host.written(a=[1, 2])
    assert (wrote.task, wrote.rows) == (CHIEF, 2) and wrote.bytes > 16
    assert sink.rows == [{"a": 1}, {"a": 2}]


def test_rows_without_a_sink_are_counted_all_the_same() -> None:
    assert Host(None).written(a=[1]).rows == 1


def test_a_declared_column_rounds_what_is_written_to_it() -> None:
    host = Host(sink := Sink(), output_schema="a float")
    assert host.written(a=[0.1]).rows == 1
    assert sink.rows == [{"a": pytest.approx(0.1)}]


def test_rows_of_a_job_that_writes_none_change_nothing() -> None:
    host = Host(sink := Sink(), output_schema=None)
    assert host.written(a=[1]) is None and sink.rows == []


def test_a_row_that_does_not_fit_is_the_tasks_failure_with_the_number_of_the_row() -> None:
    host = Host(sink := Sink(), output_schema="a bigint not null")
    host.state = host.state.with_rows(CHIEF, 100, 0)
    failed = host.written(a=[1, None])
    assert failed.task == CHIEF and failed.failed.kind is FailureKind.OUTPUT and failed.failed.time_ns > 0
    assert "output_schema= (--output-schema) refuses" in failed.failed.what and "101" in failed.failed.what
    assert sink.rows == []


def test_a_frame_that_is_none_breaks_the_protocol() -> None:
    failed = Host(Sink()).take(said.Output, frames.Frame(frames.COLUMNS, 1, bytearray(b"\xff" * 3)))
    assert failed.failed.kind is FailureKind.BROKEN and failed.failed.what.startswith("broke the protocol: ")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SinkError("output: no")])
def test_rows_that_cannot_be_stored_end_the_job(error: BaseException) -> None:
    sink = Sink()
    sink.error = error
    with pytest.raises(WriteError, match="output"):
        Host(sink).written(a=[1])


def test_rows_that_passed_by_the_host_and_were_lost() -> None:
    with pytest.raises(WriteError, match="the disk"):
        Host().take(said.Passed, {"lost": "the disk"})
    refused = Host().take(said.Passed, {"error": "row 3"})
    assert refused.failed.kind is FailureKind.OUTPUT and refused.failed.what.endswith("row 3")
    broken = Host().take(said.Passed, {"broken": "half a frame"})
    assert (broken.failed.kind, broken.failed.what) == (FailureKind.BROKEN, "broke the protocol: half a frame")


@pytest.mark.parametrize(
    "error, kind, what",
    [
        (DataError("row"), FailureKind.OUTPUT, "wrote a row"), (InputLostError("row"), FailureKind.LOST, "row"),
        (ProtocolError("row"), FailureKind.BROKEN, "broke the protocol: row"), (frames.WireError("row"), FailureKind.BROKEN, "broke the protocol: row"),
    ],
)  # fmt: skip
def test_rows_of_a_table_that_cannot_be_right_are_the_tasks_failure(error: Exception, kind: FailureKind, what: str) -> None:
    failed = Host().take(said.TableFailed, error, "row")
    assert (failed.failed.kind, failed.failed.what) == (kind, what)


def test_a_table_that_cannot_be_stored_ends_the_job_and_anything_else_is_our_fault() -> None:
    with pytest.raises(WriteError, match=r"^\[chief:0\] the disk is full$"):
        Host().take(said.TableFailed, WriteError("the disk is full"), "the disk is full")
    with pytest.raises(JobError, match="KeyError: x; a fault in akrunner itself") as caught:
        Host().take(said.TableFailed, KeyError("x"), "KeyError: x")
    assert caught.value.fault


def test_a_task_that_breaks_the_protocol_has_failed() -> None:
    failed = Host().take(said.Broken, ProtocolError("it said ready before opened"))
    assert failed.failed.kind is FailureKind.BROKEN
    assert failed.failed.what == "broke the protocol: it said ready before opened"


def test_chunks_without_an_answer_go_to_a_sink_that_takes_them() -> None:
    sink = AnswerSink()
    assert Host(sink).take(said.Refused, FAILURE) is None
    assert sink.no == [("chief:0", FAILURE)]
    assert Host(Sink()).take(said.Refused, FAILURE) is None, "any other sink is told nothing"


def test_reports_are_kept_and_the_last_metrics_of_each_task(tmp_path: Path) -> None:
    host = Host(tensorboard=str(tmp_path / "board"))
    for step, metrics in ((1, {"loss": 2.0, "acc": 0.5}), (2, {"loss": 1.0})):
        assert host.take(said.Report, {"metrics": metrics, "step": step, "time_ns": 4}) is None
    assert host.receiver.metrics == {"chief:0": {"loss": 1.0, "acc": 0.5}}
    assert host.receiver.reports == [
        {"task": "chief:0", "step": 1, "time_ns": 4, "loss": 2.0, "acc": 0.5},
        {"task": "chief:0", "step": 2, "time_ns": 4, "loss": 1.0},
    ]
    host.take(said.Report, {"metrics": {}, "step": None, "time_ns": 5})
    assert host.receiver.metrics == {}, "metrics that were taken back are not shown any more"
    host.run.board.close(True)
    assert [path.parent.name for path in (tmp_path / "board").rglob("events.*")] == ["chief-0"]


def test_no_metric_replaces_what_is_told_of_its_report() -> None:
    host = Host()
    host.take(said.Report, {"metrics": {"task": 0.5, "step": 1.5, "time_ns": 2.5, "loss": 1.0}, "step": 3, "time_ns": 4})
    assert host.receiver.reports == [{"task": "chief:0", "step": 3, "time_ns": 4, "loss": 1.0}]
    assert host.receiver.metrics == {"chief:0": {"loss": 1.0}}


def test_how_far_a_script_is_stays_until_it_tells_more() -> None:
    host = Host()
    for done in (1, 2):
        assert host.take(said.Reached, {"done": done, "total": 4, "epoch": 1, "epochs": None}) is None
    assert host.receiver.reached == {"chief:0": Reached(2, 4, 1)} and host.receiver.reached["chief:0"].share == 0.5


def test_a_last_message_of_a_task_that_is_done() -> None:
    assert Host().take(said.Closed, CLOSED) == on.Closed(CHIEF, LastWord.of(CLOSED), 2, 3)


def test_a_last_message_of_a_task_that_has_failed() -> None:
    closed = Host().take(said.Closed, {**CLOSED, "ok": False, "failure": FAILURE})
    assert closed.failed.kind is FailureKind.SCRIPT and "ValueError" in closed.failed.what
    assert (closed.failed.time_ns, closed.failed.traceback) == (9, "Traceback: ...")


@pytest.mark.parametrize("tables, told", [([], ""), (["odps://p/tables/t", "odps://p/tables/u"], "odps://p/tables/t")])
def test_a_table_whose_rows_have_not_all_come_is_named(tables: list[str], told: str) -> None:
    host = Host()
    host.conversations[CHIEF] = types.SimpleNamespace(unfinished=lambda: tables)
    assert host.take(said.Closed, CLOSED).unfinished == told


def test_times_that_were_written_as_numbers_are_warned_of() -> None:
    given = Schema.from_arrow(pa.schema([("when", pa.timestamp("us"))]))
    job = JobSpec(ScriptSpec("s.py", "s.py"), given, "python", output_inferred=True)
    host = Host(Sink())
    run: Any = types.SimpleNamespace(job=job, sink=None, warnings=[], disks={})
    group: Any = types.SimpleNamespace(sessions={}, conversations={})
    host.receiver = Receiver(run, group, Onlooker(None))
    assert host.receiver.warnings == []
    host.written(when=[1, 2])
    (warning,) = host.receiver.warnings
    assert "when" in warning
