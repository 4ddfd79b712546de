"""A stream job as its caller sees it: batches as they come, its end, its errors, and how it is closed."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from akrunner import stream_job
from akrunner.engines.base import Outcome, RowSink, Stats, TaskResult
from akrunner.errors import ConfigError, JobCancelledError, JobError, WriteError
from akrunner.io import limits
from akrunner.io.streams.arriving import Mark
from akrunner.spec import TaskSpec
from akrunner.stream_job import StreamJob
from tests.conftest import ENDS

STATS = Stats(1.0, 0.5, 0.1, 0.2, 1, 2, 3, 4, 0.0, 0.0, 0.0, "unknown", (1,))
SCHEMA = pa.schema({"id": pa.int64()})
TASK: Any = TaskSpec("worker", 0)
RESULT = TaskResult("worker:0", 1, 1, 0.1, 0.0, "exit code 0", 1, 0.1, "3.11", "", None)


def batch(*ids: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(ids, pa.int64())], SCHEMA)


def outcome(*tasks: TaskResult) -> Outcome:
    return Outcome(tasks, STATS, "/kept")


def test_batches_come_in_their_order_and_empty_ones_are_left_out() -> None:
    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        for one in (batch(1, 2), batch(), batch(3)):
            sink.write(TASK, one)
        return outcome(RESULT)

    with StreamJob(start, SCHEMA) as job:
        assert [one.column(0).to_pylist() for one in job] == [[1, 2], [3]]
        assert (job.schema, job.stats, job.tasks, job.work_dir) == (SCHEMA, STATS, (RESULT,), "/kept")
        assert list(job) == [], "it has ended, however often it is asked"


def test_of_a_job_that_runs_nothing_is_known_yet() -> None:
    may = threading.Event()

    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        sink.write(TASK, batch(1))
        assert may.wait(ENDS)
        return outcome(RESULT)

    with StreamJob(start, SCHEMA) as job:
        assert next(job).num_rows == 1, "while it runs"
        assert (job.stats, job.tasks, job.work_dir, job.only_asked) == (None, (), None, False)
        may.set()
        assert list(job) == [] and job.stats is STATS


def test_scripts_wait_if_nobody_takes_their_batches() -> None:
    written: list[int] = []
    full = threading.Event()

    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        for number in range(100):
            if number == 16:
                full.set()
            sink.write(TASK, batch(number))
            written.append(number)
        return outcome()

    with StreamJob(start, SCHEMA) as job:
        assert full.wait(ENDS) and len(written) == 16, "as many as may wait"
        assert [one.column(0)[0].as_py() for one in job] == list(range(100)), "and none is lost"


def test_an_error_comes_after_the_batches_before_it_and_once() -> None:
    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        sink.write(TASK, batch(1))
        raise JobError("the script failed")

    job = StreamJob(start, SCHEMA)
    assert next(job).num_rows == 1
    with pytest.raises(JobError, match="the script failed"):
        next(job)
    assert list(job) == [] and job.stats is None
    job.close()


def test_who_closes_it_before_the_error_was_seen_gets_the_error() -> None:
    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        raise JobError("the script failed")

    job = StreamJob(start, None)
    with pytest.raises(JobError, match="the script failed"):
        job.close()
    job.close()


def test_closing_cancels_it_and_waits_for_its_end() -> None:
    ended = threading.Event()

    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        assert cancel.wait(ENDS)
        ended.set()
        raise JobCancelledError("cancelled")

    job = StreamJob(start, None)
    assert not ended.is_set()
    job.close()
    assert ended.is_set()
    assert list(job) == [], "what the caller asked for is no error"


def test_closing_frees_a_job_whose_batches_nobody_takes() -> None:
    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        while not cancel.is_set():
            sink.write(TASK, batch(1))
        raise JobCancelledError("cancelled")

    StreamJob(start, SCHEMA).close()


def test_a_job_that_another_has_cancelled_is_an_error() -> None:
    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        raise JobCancelledError("cancelled on the cluster")

    job = StreamJob(start, None)
    with pytest.raises(JobCancelledError, match="on the cluster"):
        next(job)


def test_the_error_of_the_block_is_shown_and_not_the_jobs() -> None:
    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        raise JobError("the job's")

    with pytest.raises(KeyError, match="the block's"), StreamJob(start, None):
        raise KeyError("the block's")
    with pytest.raises(JobError, match="the job's"), StreamJob(start, None):
        pass


@pytest.mark.parametrize(("asked", "only"), [((), False), ((True,), True), ((True, False), False), ((True, True), True)])
def test_only_help_was_asked_for_if_that_is_true_of_every_task(asked: tuple[bool, ...], only: bool) -> None:
    tasks = [dataclasses.replace(RESULT, only_asked=one) for one in asked]
    with StreamJob(lambda sink, cancel: outcome(*tasks), None) as job:
        assert list(job) == [] and job.only_asked is only


class Remembering:
    """A source of positions. Attributes: log: what was done, in order; whole: whether all rows were answered."""

    source = None
    name = "kafka://b/in"

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.whole = True

    def settle(self) -> None:
        """Do nothing."""

    def refuse_saves(self, why: str) -> None:
        assert "task_config.checkpoint()" in why

    def stored(self, mark: Mark) -> None:
        self.log.append(("stored", mark.number))

    def answered(self, task: str, number: int) -> list[Any]:
        return [Mark(number, number)]

    def commit(self, mark: Mark) -> None:
        self.log.append(("commit", mark.position))

    def finish(self) -> None:
        self.log.append("stop")

    def close(self) -> None:
        self.log.append("close")


def remembering() -> tuple[StreamJob, Any]:
    """Start a job that writes 1, marks 1, writes 2, marks 2."""

    def start(sink: Any, cancel: threading.Event) -> Outcome:
        for number in (1, 2):
            sink.write(TASK, batch(number))
            sink.answered(TASK, number)
        return outcome(RESULT)

    source: Any = Remembering()
    return StreamJob(start, SCHEMA, source), source


def test_a_position_is_stored_when_the_next_batch_is_asked_for() -> None:
    job, source = remembering()
    with job:
        seen = [(one.column(0).to_pylist(), list(source.log)) for one in job]
    assert job.remembers and seen == [([1], []), ([2], [("commit", 1)])]
    assert source.log[:3] == [("commit", 1), ("commit", 2), "close"]


def test_no_position_is_stored_of_batches_that_the_caller_did_not_finish() -> None:
    job, source = remembering()
    with job:
        next(job)
    assert set(source.log) == {"close"}


def test_positions_that_are_held_are_stored_at_the_end_or_never() -> None:
    job, source = remembering()
    with job:
        job.hold()
        assert len(list(job)) == 2 and source.log == []
        job.release()
    assert source.log[:3] == [("commit", 1), ("commit", 2), "close"]
    job, source = remembering()
    with job:
        job.hold()
        list(job)
    assert set(source.log) == {"close"}


def test_an_output_is_flushed_before_a_position_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    job, source = remembering()
    job._limits = limits.Limits(timeout=60.0, until=time.monotonic() + 60)
    times: list[float | None] = []

    class Sink:
        rows = 2

        def write_rows(self, rows: pa.RecordBatch) -> None:
            times.append(limits.deadline())
            source.log.append("write_rows")

        def flush(self) -> None:
            source.log.append("flush")

        def close(self) -> None:
            """Do nothing."""

    class System:
        def output(self, url: str, schema: pa.Schema, source: Any) -> Any:
            return Sink()

    monkeypatch.setattr("akrunner.io.streams.system_of", lambda url: System())
    with job:
        assert job.write_to("kafka://b/t") == 2
    wrote = ["write_rows", "flush", ("commit", 1), "write_rows", "flush", ("commit", 2)]
    assert source.log[:8] == [*wrote, "close", "flush"]
    # a server that is away is waited for within the job's time
    assert times == [job._limits.until] * 2 and limits.deadline() is None


class Transaction:
    """A sink of transactions. Attributes: log: as of its source; done: the rows of each transaction."""

    path = "kafka://b/t"

    def __init__(self, log: list[Any]) -> None:
        self.log = log
        self.done: list[list[int]] = []
        self.rows = self.uncommitted = 0
        self._open: list[int] = []

    def join(self, settle: Any) -> None:
        self.log.append("join")

    def write_rows(self, rows: pa.RecordBatch) -> None:
        self._open += rows.column(0).to_pylist()
        self.uncommitted = len(self._open)

    def commit(self, position: Any) -> None:
        self.log.append(("commit", position))
        self.done.append(self._open)
        self._open, self.rows, self.uncommitted = [], self.rows + self.uncommitted, 0

    def flush(self) -> None:
        raise AssertionError("a commit flushes")

    def close(self) -> None:
        self.log.append("closed")


def transacted(monkeypatch: pytest.MonkeyPatch, steps: list[tuple[int, int | None, int]]) -> tuple[Any, Any, Any]:
    """Start a job of two workers. Args: steps: (worker, row that it writes or None, mark that it answers). Returns: the job, its
    source, its sink."""
    source: Any = Remembering()
    waiting = {1: {0, 1}, 2: {0, 1}}

    def answered(task: str, number: int) -> list[Mark]:
        waiting[number].discard(int(task[-1]))
        return [Mark(number, number)] if not waiting[number] else []

    def start(sink: Any, cancel: threading.Event) -> Outcome:
        for worker, row, number in steps:
            task = TaskSpec("worker", worker)
            if row is not None:
                sink.write(task, batch(row))
            else:
                sink.answered(task, number)
        return outcome(RESULT)

    source.answered = answered
    sink = Transaction(source.log)

    class System:
        def output(self, url: str, schema: pa.Schema, source: Any) -> Any:
            return sink

    monkeypatch.setattr("akrunner.io.streams.system_of", lambda url: System())
    return StreamJob(start, SCHEMA, source), source, sink


STEPS: list[tuple[int, int | None, int]] = [
    (0, 1, 0),
    (0, None, 1),
    (0, 3, 0),  # the first worker is ahead: this row is made of rows behind the first mark
    (1, 2, 0),
    (1, None, 1),
    (1, 4, 0),
    (1, None, 2),
    (0, None, 2),
    (0, 5, 0),
]


def test_a_transaction_has_the_rows_that_were_made_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    job, source, sink = transacted(monkeypatch, STEPS)
    with job:
        assert job.write_to("kafka://b/t?transactional_id=t") == 5
    assert sink.done == [[1, 2], [3, 4], [5]]
    moves = [("commit", 1), ("stored", 1), ("commit", 2), ("stored", 2)]
    assert source.log[:7] == ["join", *moves, "close", ("commit", None)] and "closed" in source.log


def test_rows_of_input_that_was_not_answered_are_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    job, source, sink = transacted(monkeypatch, STEPS[:-3])
    source.whole = False
    with job, pytest.warns(RuntimeWarning, match="2 rows were thrown away.*kafka://b/in"):
        assert job.write_to("kafka://b/t?transactional_id=t") == 2
    assert sink.done == [[1, 2]] and "closed" in source.log


def test_finish_ends_the_source_and_only_one_that_can_be_ended() -> None:
    job, source = remembering()
    with job:
        assert job.finish(60.0) and source.log == ["stop"]
        assert len(list(job)) == 2
    with StreamJob(lambda sink, cancel: outcome(RESULT), SCHEMA) as other:
        assert not other.finish() and not other.remembers


def test_a_job_that_does_not_end_in_time_is_ended() -> None:
    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        assert cancel.wait(ENDS)
        raise JobCancelledError("stopped")

    source: Any = Remembering()
    with StreamJob(start, SCHEMA, source) as job:
        job.finish(0.0)
        assert list(job) == []


def test_what_a_job_cannot_be_written_to() -> None:
    with StreamJob(lambda sink, cancel: outcome(RESULT), None) as job:
        with pytest.raises(ConfigError, match="iterate over the job"):
            job.write_to("out.jsonl")
        with pytest.raises(ConfigError, match="output_schema="):
            job.write_to("kafka://b/t")


def test_an_interrupted_block_ends_the_job_in_a_sentence() -> None:
    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        assert cancel.wait(ENDS)
        raise JobCancelledError("the job was stopped")

    with pytest.raises(KeyboardInterrupt) as raised, StreamJob(start, SCHEMA, run="r7"):
        raise KeyboardInterrupt
    assert raised.value._render_traceback_() == [  # type: ignore[attr-defined]
        "KeyboardInterrupt: the stream was stopped, and its processes have ended. It is kept as r7."
    ]
    assert vars(raised.value)["run"] == "r7", "a command says it"


@pytest.mark.parametrize("notebook", [True, False])
def test_a_loop_that_is_interrupted_ends_the_job_in_a_notebook_alone(notebook: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command goes on with what was read."""
    ended = threading.Event()

    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        assert cancel.wait(ENDS)
        ended.set()
        raise JobCancelledError("the job was stopped")

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stream_job, "in_notebook", lambda: notebook)
    job = StreamJob(start, SCHEMA, run="r7")
    with monkeypatch.context() as patched:
        patched.setattr(job, "_item", interrupted)
        with pytest.raises(KeyboardInterrupt) as raised:
            next(job)
    assert ended.is_set() is notebook
    job.close()
    if notebook:
        assert raised.value._render_traceback_() == [  # type: ignore[attr-defined]
            "KeyboardInterrupt: the stream was stopped, and its processes have ended. It is kept as r7."
        ]


def test_an_exception_of_the_caller_is_how_the_job_ends() -> None:
    """What is told and kept of the job is that, and the caller sees it as it was."""
    seen: list[BaseException] = []

    def start(sink: RowSink, cancel: threading.Event) -> Outcome:
        assert cancel.wait(ENDS)
        raise JobCancelledError("the job was stopped by its caller")

    def to_its_end(job: Callable[[], Outcome]) -> Outcome:
        try:
            return job()
        except BaseException as e:
            seen.append(e)
            raise

    def fail(error: BaseException) -> int:
        with pytest.raises(type(error)) as raised, StreamJob(start, SCHEMA, to_its_end=to_its_end):
            raise error
        assert raised.value is error
        return len(raised.traceback)

    full, stopped, foreign = WriteError("output: the disk is full"), KeyboardInterrupt(), ZeroDivisionError("division by zero")
    # no frames of the job's thread
    assert {fail(error) for error in (full, stopped, foreign)} == {1}
    assert seen[:2] == [full, stopped] and isinstance(seen[2], WriteError)
    assert str(seen[2]) == "the job was stopped, as what takes its rows raised ZeroDivisionError: division by zero"
    StreamJob(start, SCHEMA, to_its_end=to_its_end).close()
    assert isinstance(seen[3], JobCancelledError)
