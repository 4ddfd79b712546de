"""What each task did when."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.reports import timeline

S = 1_000_000_000


def change(at: float, task: str, state: str, attempt: int = 0) -> dict[str, Any]:
    return {"time_ns": int(at * S), "attempt": attempt, "task": task, "state": state}


def sample(at: float, came: int, went: int, attempt: int = 0, seconds: float = 1.0) -> dict[str, Any]:
    fields = {"task_bytes_in": {"chief:0": came}, "task_rows_out": {"chief:0": went}}
    return {"time_ns": int(at * S), "attempt": attempt, "seconds": seconds, **fields}


CHANGES = [change(11, "chief:0", "starting"), change(12, "chief:0", "running"), change(16, "chief:0", "finished")]


def spans(made: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(made.columns[name] for name in ("task", "begin", "end", "phase", "share", "strip"))))


def test_bars_go_from_one_state_to_the_next_and_to_the_end() -> None:
    made = timeline.plot(CHANGES, [], {}, ["chief:0"], 10.0, 20.0)
    assert spans(made) == [
        ("chief:0", 1.0, 2.0, "starting", 1.0, 0),
        ("chief:0", 2.0, 6.0, "main", 1.0, 0),
        ("chief:0", 6.0, 10.0, "done", 1.0, 0),
    ]
    assert made is not None and made.table.rows == [["chief:0", "1.0 s", "4.0 s", "4.0 s"]]
    assert made.table.head == ["", "starting", "main", "done"]


def test_waiting_is_shown_where_the_doctor_has_seen_it() -> None:
    inputs = {
        "chief:0": {"windows": [[0.0, 5, 0.5, 0.5], [1.0, 5, 0.0, 1.0], [3.5, 1, 1.0, 0.0]]},
        "worker:9": {"windows": [[0, 1, 1, 1]]},
    }
    made = timeline.plot(CHANGES, [], inputs, ["chief:0"], 10.0, 20.0)
    assert [span for span in spans(made) if span[3] == timeline.WAITS] == [
        ("chief:0", 2.0, 3.0, timeline.WAITS, 0.5, -1),
        ("chief:0", 5.5, 6.0, timeline.WAITS, 1.0, -1),
    ]
    assert made is not None and made.table.rows[0][made.table.head.index(timeline.WAITS)] == "1.0 s"


def test_rows_that_come_and_go_are_a_strip_below() -> None:
    samples = [sample(12, 100, 0), sample(13, 100, 4), sample(14, 100, 4), sample(16, 30, 0, attempt=1)]
    made = timeline.plot(CHANGES, samples, {}, ["chief:0"], 10.0, 20.0)
    assert [span for span in spans(made) if span[5] == 1] == [
        ("chief:0", 1.0, 2.0, timeline.COMES, 1.0, 1),
        ("chief:0", 5.0, 6.0, timeline.COMES, 0.3, 1),
        ("chief:0", 2.0, 3.0, timeline.GOES, 1.0, 1),
    ]


def test_no_rows_come_before_a_task_has_begun() -> None:
    """On Flink the time before the first sample was a wait for slots."""
    late = {**sample(19, 100, 0), "seconds": 8.5}
    made = timeline.plot([change(18, "chief:0", "starting")], [late], {}, ["chief:0"], 10.0, 20.0)
    assert [span[1:3] for span in spans(made) if span[5] == 1] == [(8.0, 9.0)]


def test_of_many_tasks_some_are_drawn() -> None:
    tasks = [f"worker:{at}" for at in range(70)]
    made = timeline.plot([change(11, task, "running") for task in tasks], [], {}, tasks, 10.0, 20.0)
    assert made is not None and len(made.columns["task"]) == 64 and made.note == "6 more tasks are not drawn."


@pytest.mark.parametrize("changes", [[], [change(1, "chief:0", "unheard of")], [{"task": "chief:0"}]])
def test_without_states_there_is_none(changes: list[dict[str, Any]]) -> None:
    assert timeline.plot(changes, [], {}, ["chief:0"], 10.0, 20.0) is None
