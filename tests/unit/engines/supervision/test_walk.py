"""Whatever happens, in whatever order: no success without the word of every worker and the right counts; after the first failure the end, soon,
for everybody; and always an end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akrunner.cluster.failure import FailureKind
from akrunner.engines.supervision import actions as do
from akrunner.engines.supervision import events as on
from akrunner.engines.supervision import machine
from akrunner.engines.supervision.machine import GATHER
from akrunner.engines.supervision.states import Ending, Failed, LastWord, Phase, TaskState
from akrunner.spec import TaskSpec
from tests.unit.engines.supervision.play import IN_JOIN, IN_MAIN, IN_SESSION, TICK, Play, rules

TIMEOUT = 40.0
#: what happens of itself as long as nobody interferes, twice as often as what does
WELL = ["opened", "ready", "entered", "wrote", "closed"]
ILL = [
    "serving",
    "miscounted",
    "raised",
    "died",
    "hung up",
    "refused",
    "broken",
    "unfinished",
    "lost",
    "cancelled",
    "fault",
    "places",
]


class Walk(Play):
    """Remembers what would be right. Attributes: fine: tasks that have said the last word with the right counts; serve: that they serve, or
    were seen to; failed_at: when the first failure was told."""

    def __init__(self, of: Any) -> None:
        self.fine: set[TaskSpec] = set()
        self.serve: set[TaskSpec] = set()
        self.failed_at = 0.0
        super().__init__(of)

    def go(self, what: str, task: TaskSpec, seconds: float) -> None:
        """One step, for one task, and time passes."""
        if self.state.verdict is not None:
            return
        record, closed = self.state.tasks[task], task in self.fine
        ns = round(self.now * 1e9)
        of = {
            "opened": [on.Opened(task)],
            "ready": [on.Ready(task, 5, 5)],
            "entered": [on.Entered(task)],
            "wrote": [on.Wrote(task, 3, 24)],
            "closed": [on.Closed(task, LastWord(), rows=record.rows_out)],
            "serving": [on.Serving(task)],
            "miscounted": [on.Closed(task, LastWord(), rows=record.rows_out + 1)],
            "raised": [on.Closed(task, LastWord(), failed=Failed(FailureKind.SCRIPT, "raised", ns))],
            "unfinished": [on.Closed(task, LastWord(), rows=record.rows_out, unfinished="t")],
            "lost": [on.Ready(task, 4, 5)],
            "died": [on.PipeEnded(task)],
            "hung up": [on.PipeEnded(task)],
            "refused": [on.Refused(task, self.now)],
            "broken": [on.TaskFailed(task, Failed(FailureKind.BROKEN, "broke the protocol", ns))],
            "cancelled": [on.Cancelled()],
            "fault": [on.HostFault(OSError())],
            "places": [on.PlacesFailed("gone")],
        }
        # a session lets nothing through behind the last word (`TaskSession._take`)
        if not (closed and what in [*WELL, "serving", "miscounted", "raised", "unfinished", "lost"]):
            self.exits[task] = ("exit code 3", False) if what == "died" else ("", False)
            if what == "closed" and task not in self.state.failures:
                self.fine.add(task)
            if what == "serving":
                self.serve.add(task)
            self.happened(*of[what])
        self.wait(seconds)

    def happened(self, *events: on.Event) -> None:
        for event in events:
            over = self.state.verdict is not None
            before, did = self.state, len(self.did)
            super().happened(event)
            if over:
                assert self.state is before and len(self.did) == did
            if self.state.failures and not before.failures:
                self.failed_at = self.now
            self.serve |= {task for task, record in self.state.tasks.items() if record.state is TaskState.SERVING}
            self.check()

    def check(self) -> None:
        state, verdict = self.state, self.state.verdict
        assert len(self.done(do.Start)) <= 1
        assert not state.started or (state.fed and all(record.ready for record in state.tasks.values()))
        if state.failures and verdict is None:
            assert self.now - self.failed_at <= GATHER + 2 * TICK, "somebody has failed, and the others go on"
            assert state.phase is not Phase.STOPPING
        if verdict is None:
            return
        closing = machine.closing(state)
        assert closing.end == self.tasks and {*closing.let_go, *closing.wait_for} <= set(self.tasks)
        assert (verdict.ending is Ending.FAILED) == bool(state.failures)
        if verdict.ending is Ending.SUCCEEDED:
            first, *others = state.rules.cluster.awaited
            assert first in self.fine and all(task in self.fine | self.serve for task in others)
            left = [task for task in self.tasks if state.tasks[task].state is not TaskState.FINISHED]
            assert set(left) <= set(self.stopped()), "who was not done was told"
        if verdict.ending is Ending.FAILED:
            times = [failed.time_ns for _, failed in verdict.failures]
            assert times == sorted(times) and len(times) == len(state.failures)


@st.composite
def walks(draw: Any) -> Any:
    shape = {
        "workers": draw(st.integers(1, 3)),
        "num_ps": draw(st.integers(0, 2)),
        "evaluator": draw(st.booleans()),
        "coordinator": draw(st.booleans()),
        "streaming": draw(st.booleans()),
        "counted": True,
        "wait": {
            "timeout": TIMEOUT,
            "start_timeout": draw(st.sampled_from([1.0, 60.0])),
            "evaluator_timeout": draw(st.sampled_from([0.0, 2.0])),
            "stall_timeout": draw(st.sampled_from([0.0, 3.0])),
            "stall_action": draw(st.sampled_from(["fail", "warn"])),
        },
    }
    of = rules(**shape)
    if draw(st.booleans()) and not of.cluster.coordinator:
        of = rules(**shape, staying=of.cluster.awaited)
    tasks = of.cluster.tasks
    steps: list[Any] = draw(
        st.lists(
            st.tuples(
                st.one_of(st.sampled_from(WELL), st.sampled_from(WELL), st.sampled_from(ILL)),
                st.sampled_from(tasks),
                st.sampled_from([0.0, 0.0, 0.0, 0.05, 0.3, 2.5]),
            ),
            max_size=40,
        )
    )
    return of, steps, draw(st.booleans()), draw(st.sampled_from(["", IN_MAIN, IN_JOIN, IN_SESSION]))


@settings(max_examples=300, deadline=None)
@given(walks())
@pytest.mark.slow
def test_whatever_happens(walk: Any) -> None:
    of, steps, begun, stack = walk
    play = Walk(of)
    play.stacks = {task: stack for task in play.tasks if stack}
    if begun:
        # most of what matters comes later
        play.enter_all()
    for step in steps:
        play.go(*step)
    play.wait(2 * TIMEOUT)
    assert play.state.verdict is not None, "no end"


@settings(max_examples=50, deadline=None)
@given(walks())
def test_all_is_well_that_ends_well(walk: Any) -> None:
    """Every task does what it is to, in whatever order they take turns: a success."""
    of, steps, _, _ = walk
    play = Walk(of)
    play.enter_all()
    for what, task, _ in steps:
        if what == "wrote":
            play.go(what, task, 0.0)
    for task in play.tasks:
        play.go("closed", task, 0.0)
    assert play.verdict.ending is Ending.SUCCEEDED and play.warnings() == []
