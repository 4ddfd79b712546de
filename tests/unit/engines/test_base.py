"""What an engine takes and returns: reports as a table, whether only help was asked for, and what each kind of sink can do."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.base import AnswerSink, JoiningSink, Outcome, RestartSink, Stats, StoppableSource, TaskResult, bad_rows_of
from akrunner.io.bad_rows import BadRows
from akrunner.io.table import TableSource


def stats(*reports: dict[str, Any]) -> Stats:
    return Stats(
        *(0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0), host_blocked_seconds=0.0, input_wait_seconds=0.0, output_blocked_seconds=0.0,
        bound="unknown", shares=(), reports=list(reports),
    )  # fmt: skip


def result(only_asked: bool) -> TaskResult:
    return TaskResult("chief:0", 0, 0, 0.0, 0.0, "exit code 0", 0, 0.0, "3.11", "usage:", None, only_asked=only_asked)


def test_reports_are_a_table_with_a_column_for_each_metric() -> None:
    table = stats(
        {"task": "chief:0", "step": 3, "time_ns": 1_000_000_001, "loss": 0.5, "acc": 1},
        {"task": "worker:0", "step": None, "time_ns": 0, "auc": 0.25},
    ).report_table
    assert table.schema == pa.schema(
        [("task", pa.string()), ("step", pa.int64()), ("time", pa.timestamp("ns", "UTC"))]
        + [(name, pa.float64()) for name in ("acc", "auc", "loss")]
    )
    rows = table.drop_columns(["time"]).to_pylist()
    assert rows == [
        {"task": "chief:0", "step": 3, "acc": 1.0, "auc": None, "loss": 0.5},
        {"task": "worker:0", "step": None, "acc": None, "auc": 0.25, "loss": None},
    ]
    assert table["time"].cast(pa.int64()).to_pylist() == [1_000_000_001, 0]


def test_a_metric_that_is_called_time_does_not_replace_the_times() -> None:
    table = stats({"task": "chief:0", "step": 3, "time_ns": 7, "time": 0.5, "time_": 2.0}).report_table
    assert table["time"].cast(pa.int64()).to_pylist() == [7]
    assert table["time__"].to_pylist() == [0.5] and table["time_"].to_pylist() == [2.0]


def test_no_reports_are_an_empty_table() -> None:
    table = stats().report_table
    assert table.num_rows == 0 and table.column_names == ["task", "step", "time"]


def test_the_time_of_a_report_is_in_utc() -> None:
    table = stats({"task": "chief:0", "step": 0, "time_ns": 1_704_164_645_000_000_000}).report_table
    moment = table["time"].cast(pa.timestamp("us", "UTC"))[0].as_py()
    assert moment == datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


@pytest.mark.parametrize("tasks, asked", [([], False), ([True], True), ([True, True], True), ([True, False], False)])
def test_a_job_only_gave_help_if_all_its_tasks_did(tasks: list[bool], asked: bool) -> None:
    assert Outcome(tuple(map(result, tasks)), stats(), None).only_asked == asked


class Plain:
    def write(self, task: Any, batch: Any) -> None: ...


class Restarting(Plain):
    def restart(self) -> None: ...


class Joining(Plain):
    def commit_with(self, store: Any, commit: Any) -> None: ...


class Answering(Plain):
    def refused(self, task: Any, record: Any) -> None: ...


@pytest.mark.parametrize("kind, able", [(RestartSink, Restarting), (JoiningSink, Joining), (AnswerSink, Answering)])
def test_what_a_sink_can_do_is_told_by_its_methods(kind: Any, able: Any) -> None:
    assert [isinstance(one(), kind) for one in (Plain, Restarting, Joining, Answering)] == [
        one is able for one in (Plain, Restarting, Joining, Answering)
    ]


def test_a_source_that_can_be_stopped_says_so_by_its_method() -> None:
    class Source:
        replayable = True

        def batches(self) -> Any: ...

    class Stoppable(Source):
        def stop(self) -> None: ...

    assert isinstance(Stoppable(), StoppableSource) and not isinstance(Source(), StoppableSource)


def test_a_source_without_bad_rows_has_none_to_tell_of() -> None:
    class Source:
        replayable = True

        def batches(self) -> Any: ...

    bad = BadRows.of("skip", 100)
    assert bad_rows_of(Source()) is None
    assert bad_rows_of(TableSource(pa.schema([]), lambda: iter(()), bad=bad)) is bad
