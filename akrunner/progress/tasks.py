"""Which tasks of a job differ from the others: they are behind, have failed, or are slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from akrunner.engines.supervision.states import TaskState
from akrunner.progress.views import TaskView
from akrunner.progress.words import number

#: how far a task has come; the states of a line are as far as each other
_ORDER = (
    (TaskState.STARTING,),
    (TaskState.IMPORTING,),
    (TaskState.READY,),
    (TaskState.RUNNING, TaskState.SERVING),
    (TaskState.FINISHED, TaskState.ENDED),
)
_RANKS = {state: rank for rank, states in enumerate(_ORDER) for state in states}
_STATES = {state.value: state for state in TaskState}
#: a task is slow that does less than this share of what is usual
_SLOW = 0.5
#: with fewer tasks at work nobody can say what is usual
_LEAST = 3


def in_words(state: str) -> str:
    """Return a state in words for people. Args: state: the word of a `TaskState`; any other, such as `RESTARTING`, is in words already."""
    return _STATES[state].doing if state in _STATES else state


def differing(tasks: Sequence[TaskView]) -> Mapping[str, str]:
    """Return in what tasks differ from the others: name -> words. Tasks that do not differ are left out."""
    return {**_behind(tasks), **_slow(tasks), **{one.name: one.doing for one in tasks if one.state == TaskState.FAILED.value}}


def _behind(tasks: Sequence[TaskView]) -> dict[str, str]:
    """Return the tasks that the others are ahead of, if they are fewer than these."""
    ranks = {one.name: _RANKS[state] for one in tasks if (state := _STATES.get(one.state)) in _RANKS}
    if not ranks:
        return {}
    usual = sorted(ranks.values())[len(ranks) // 2]
    return {one.name: one.doing for one in tasks if ranks.get(one.name, usual) < usual}


def _slow(tasks: Sequence[TaskView]) -> dict[str, str]:
    """Return the tasks that do far fewer steps, or rows, in a second than is usual."""
    for unit, rates in (
        ("step/s", {one.name: one.steps_per_second for one in tasks}),
        ("rows/s", {one.name: one.rows_per_second for one in tasks}),
    ):
        known = {name: rate for name, rate in rates.items() if rate is not None}
        if len(known) < _LEAST:
            continue
        usual = sorted(known.values())[len(known) // 2]
        slow = {name: rate for name, rate in known.items() if rate < _SLOW * usual}
        if slow:
            return {name: f"slow: {_rate(rate)} {unit}, the others {_rate(usual)}" for name, rate in slow.items()}
    return {}


def _rate(value: float) -> str:
    return number(float(f"{value:.3g}"))
