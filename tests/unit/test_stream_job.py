"""A stream job as its caller sees it: batches as they come, its end, its errors, and how it is closed."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.base import Outcome, RowSink, Stats, TaskResult
from akrunner.errors import JobCancelledError, JobError
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
