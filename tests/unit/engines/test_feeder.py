"""Who gets which rows, and what ends the feeding; its thread is this one, and nobody is at the other end of a pipe."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.feeder import CountingFeeder, Feeder, Given, StreamFeeder
from akrunner.errors import ReadError
from akrunner.io.extents import Extent
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec, SplitSpec, TaskSpec

SCHEMA = pa.schema([("a", pa.int64())])


class Session:
    """Attributes: sent: rows of each chunk; marks: of them; end: what was said when there were no more; gone: it takes nothing."""

    def __init__(self, task: TaskSpec, gone: bool = False) -> None:
        self.task = task
        self.gone = gone
        self.sent: list[int] = []
        self.marks: list[int] = []
        self.barriers: list[tuple[int, int]] = []
        self.end: Any = None
        self.given = (0, 0)
        self.process = types.SimpleNamespace(exit=None)

    @property
    def rows_sent(self) -> int:
        return sum(self.sent)

    def wait_until_greeted(self, seconds: float) -> bool:
        return True

    def send_rows(self, payload: Any, rows: int, marks: Any = None) -> None:
        if self.gone:
            raise BrokenPipeError
        self.sent.append(rows)
        self.marks += list(marks) if marks is not None else []

    def stream_rows(self, payload: Any, rows: int) -> None:
        self.send_rows(payload, rows)

    def barrier(self, number: int, save: bool, place: Any) -> None:
        if self.gone:
            raise BrokenPipeError
        self.barriers.append((number, self.rows_sent))

    def end_of_rows(self, total: int, shares: Any, splits: Any = ()) -> None:
        if self.gone:
            raise BrokenPipeError
        self.end = (total, list(shares))

    def was_given(self, rows: int, size: int) -> None:
        self.given = (rows, size)


class Source:
    """So many rows, in batches of ten. Args: error: raised behind them."""

    replayable = True

    def __init__(self, rows: int, error: Any = None) -> None:
        self.rows = rows
        self.error = error

    def batches(self) -> Iterator[pa.RecordBatch]:
        for first in range(0, self.rows, 10):
            yield pa.record_batch({"a": list(range(first, min(first + 10, self.rows)))})
        if self.error is not None:
            raise self.error


def fed(source: Source, gone: Any = (), of: Any = Feeder, **options: Any) -> Any:
    """What is fed. Returns: the feeder, when it has ended; the sessions."""
    job = JobSpec(
        ScriptSpec("s.py", "s.py"), Schema.from_arrow(SCHEMA), "python", ClusterSpec(2, num_ps=1), chunk_rows=8, **options
    )
    sessions: dict[TaskSpec, Any] = {task: Session(task, task.name in gone) for task in job.cluster.tasks}
    feeder = of(job, source, sessions)
    if isinstance(feeder, StreamFeeder):
        feeder.started.set()
    feeder._run()
    return feeder, list(sessions.values())


def test_rows_are_shared_out_to_within_one() -> None:
    feeder, (chief, worker, server) = fed(Source(25))
    assert feeder.finished and feeder.error is None and not feeder.in_source
    assert sorted([chief.rows_sent, worker.rows_sent]) == [12, 13] and server.sent == []
    assert chief.end == worker.end == server.end == (25, feeder.partitioner.shares), "all are told, also who gets none"


def test_rows_of_splits_are_marked_and_counted() -> None:
    split = SplitSpec(("train", "test"), (0.5, 0.5))
    feeder, (chief, worker, _) = fed(Source(40), split=split)
    assert len(chief.marks) == chief.rows_sent and set(chief.marks) <= {0, 1}
    assert [sum(counts) for counts in feeder.splits] == [chief.rows_sent, worker.rows_sent]
    assert feeder.splits[0] == [chief.marks.count(0), chief.marks.count(1)]


def test_a_worker_that_takes_no_more_is_told_of_and_is_no_error_here() -> None:
    feeder, (_, worker, _) = fed(Source(25), gone=["worker:0"])
    assert not feeder.finished and feeder.error is None
    assert feeder.refused is worker and feeder.refused_at > 0


@pytest.mark.parametrize("of", [Feeder, StreamFeeder])
def test_a_source_that_raises(of: Any) -> None:
    feeder, (chief, worker, _) = fed(Source(25, OSError("the disk is gone")), of=of)
    assert isinstance(feeder.error, ReadError) and "the disk is gone" in str(feeder.error)
    assert not feeder.finished and chief.end is None and worker.end is None


def test_who_has_stopped_it_wants_no_error() -> None:
    job = JobSpec(ScriptSpec("s.py", "s.py"), Schema.from_arrow(SCHEMA), "python")
    sessions: Any = {task: Session(task) for task in job.cluster.tasks}
    feeder = Feeder(job, Source(25, OSError()), sessions)
    feeder.stop()
    feeder._run()
    assert feeder.error is None and not feeder.finished


def test_a_stream_goes_round_in_turns() -> None:
    feeder, (chief, worker, server) = fed(Source(40), of=StreamFeeder)
    assert feeder.finished and (chief.sent, worker.sent) == ([8, 8, 8, 8], [2, 2, 2, 2]), "chunk by chunk"
    assert (
        feeder.partitioner.rows == 40
        and feeder.partitioner.shares == [chief.rows_sent, worker.rows_sent]
        and feeder.rows_dropped == 0
    )
    assert server.end == (40, feeder.partitioner.shares)


def test_rows_of_a_stream_for_one_that_has_returned_are_dropped_and_counted() -> None:
    feeder, (chief, _, _) = fed(Source(40), gone=["worker:0"], of=StreamFeeder)
    assert feeder.finished and feeder.refused is None
    assert feeder.rows_dropped + chief.rows_sent == 40 and feeder.rows_dropped > 0
    feeder, _ = fed(Source(40), gone=["chief:0", "worker:0"], of=StreamFeeder)
    assert not feeder.finished and feeder.error is None, "nobody is left"


def test_rows_that_come_another_way_are_counted() -> None:
    given = {"chief:0": Given(7, 1, 56, True), "worker:0": Given(5, 0, 40, True)}

    def counting(job: Any, source: Any, sessions: Any) -> CountingFeeder:
        return CountingFeeder(job, source, sessions, lambda session: given[session.task.name])

    feeder, (chief, worker, _) = fed(Source(0), of=counting)
    assert feeder.finished and (chief.given, worker.given) == ((7, 56), (5, 40))
    assert (feeder.partitioner.rows, feeder.partitioner.shares, feeder.rows_dropped) == (12, [7, 5], 1)
    given["worker:0"] = Given(error=OSError("no such file"))
    feeder, _ = fed(Source(0), of=counting)
    assert isinstance(feeder.error, ReadError) and not feeder.in_source


def test_it_says_how_far_the_source_has_been_read_if_it_reads_it_itself() -> None:
    class Measured(Source):
        extent = Extent(25, ["a", "b"], [1, 3])

    Measured.extent.begin("a")
    Measured.extent.reached(1, 1)
    feeder, _ = fed(Measured(25))
    assert feeder.extent.rows == 25 and feeder.share_read == 0.25
    feeder, _ = fed(Source(25))
    assert feeder.extent is None and feeder.share_read is None
    given = dict.fromkeys(("chief:0", "worker:0"), Given(1, finished=True))
    feeder, _ = fed(Measured(25), of=lambda *of: CountingFeeder(*of, lambda session: given[session.task.name]))
    assert feeder.extent.rows == 25 and feeder.share_read is None, "the files are read elsewhere"


class Marked(Source):
    """Marks its rows behind the second batch, and at their end."""

    @property
    def arriving(self) -> Any:
        return self

    def marking(self, tasks: list[str], send: Any) -> None:
        self.tasks, self.send = tasks, send

    def batches(self) -> Iterator[pa.RecordBatch]:
        for number, one in enumerate(super().batches()):
            if number == 2:
                self.send(1, False, {})
            yield one
        self.send(2, True, {})


def test_marks_come_behind_the_rows_that_were_sent_before() -> None:
    source = Marked(40)
    feeder, (chief, worker, server) = fed(source, of=StreamFeeder, mode="stream", marked=True)
    assert feeder.finished and source.tasks == ["chief:0", "worker:0"]
    assert [number for number, _ in chief.barriers] == [number for number, _ in worker.barriers] == [1, 2]
    assert chief.barriers[0][1] + worker.barriers[0][1] == 20 and chief.barriers[1][1] + worker.barriers[1][1] == 40
    assert server.barriers == []


def test_a_worker_that_is_gone_gets_no_mark() -> None:
    feeder, (chief, worker, _) = fed(Marked(40), gone=["worker:0"], of=StreamFeeder, mode="stream", marked=True)
    assert feeder.finished and [number for number, _ in chief.barriers] == [1, 2] and worker.barriers == []
    assert feeder.rows_dropped == 40 - chief.rows_sent
