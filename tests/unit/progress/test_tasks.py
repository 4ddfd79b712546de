"""Which tasks are worth a line of their own."""

from __future__ import annotations

import pytest

from akrunner.engines.supervision.states import RESTARTING, TaskState
from akrunner.progress.tasks import differing, in_words
from akrunner.progress.views import TaskView


def tasks(*states: str) -> list[TaskView]:
    return [TaskView(f"worker:{at}", state, in_words(state)) for at, state in enumerate(states)]


@pytest.mark.parametrize(
    ("states", "odd"),
    [
        (["running"] * 64, []),
        (["ready"] * 63 + ["importing"], ["worker:63"]),
        (["running", "running", "failed"], ["worker:2"]),
        # parameter servers do their work; who is done first does not differ
        (["running", "running", "serving"], []),
        (["running", "running", "finished"], []),
        # half of them is no exception
        (["ready", "starting"], ["worker:1"]),
        (["starting", "starting", "ready"], []),
        (["ended", "failed"], ["worker:1"]),
        (["failed"], ["worker:0"]),
    ],
)
def test_those_that_are_behind_or_have_failed_differ(states: list[str], odd: list[str]) -> None:
    assert sorted(differing(tasks(*states))) == odd


def test_every_state_can_be_judged() -> None:
    for state in [*(state.value for state in TaskState), RESTARTING]:
        assert in_words(state) and differing(tasks(state, "running", "running")) is not None
    assert differing(tasks(RESTARTING, RESTARTING)) == {}


def test_those_that_are_slow_differ_if_there_are_enough_to_compare() -> None:
    def at(*rates: float | None) -> list[TaskView]:
        return [TaskView(f"worker:{n}", "running", "in main()", steps_per_second=rate) for n, rate in enumerate(rates)]

    assert differing(at(12, 12.5, 3.1)) == {"worker:2": "slow: 3.1 step/s, the others 12"}
    assert differing(at(12, 12.5, 7)) == {} == differing(at(12, 3)) == differing(at(None, 12, 12))
    written = [TaskView(f"worker:{n}", "running", "in main()", rows_per_second=rate) for n, rate in enumerate((1e4, 1e4, 1e3))]
    assert differing(written) == {"worker:2": "slow: 1,000 rows/s, the others 10,000"}
