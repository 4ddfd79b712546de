"""The learning curves: a plot for each metric, with a line for each task."""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from akrunner.history.record import number
from akrunner.history.samples import Reported
from akrunner.history.words import ranked
from akrunner.reports.numbers import thinned
from akrunner.reports.plots import Line, Plot, lines

#: metrics, and tasks of each, that are drawn; points of all lines together, and of one line at least and at most
_METRICS, _TASKS = 24, 16
_POINTS, _FEWEST, _MOST = 12_000, 30, 400
#: what a report has beside its metrics
_AROUND = frozenset(Reported.__annotations__)


def plots(reports: Iterable[Mapping[str, Any]], tasks: Sequence[str], began: float, starts: Sequence[int]) -> list[Plot]:
    """Return the learning curves.

    Args:
        reports: the lines of `metrics.jsonl`.
        tasks: the names of the tasks, in the order of the legends.
        began: when the run began, in seconds since 1970.
        starts: when each attempt began, in nanoseconds since 1970, in order.
    """
    found = _by_metric(reports, starts)
    shown = ranked(found)[:_METRICS]
    drawn = sum(min(_TASKS, len(found[name])) for name in shown)
    most = max(_FEWEST, min(_MOST, _POINTS // max(1, drawn)))
    rank = {task: at for at, task in enumerate(tasks)}
    ordered = [dict(sorted(found[name].items(), key=lambda one: rank.get(one[0][0], len(rank)))) for name in shown]
    made = [_plot(at, name, ordered[at], began, most) for at, name in enumerate(shown)]
    rest = ranked(found)[_METRICS:]
    if rest:
        names = ", ".join(rest[:_METRICS]) + (", ..." if len(rest) > _METRICS else "")
        told = f"{len(rest):,} more metric{'s are' if len(rest) > 1 else ' is'} not drawn: {names}."
        made[-1] = dataclasses.replace(made[-1], note=" ".join(filter(None, (made[-1].note, told))))
    return made


#: metric -> (task, attempt) -> [step or None, time_ns, value]
_Found = dict[str, dict[tuple[str, int], list[tuple[int | None, int, Any]]]]


def _by_metric(reports: Iterable[Mapping[str, Any]], starts: Sequence[int]) -> _Found:
    found: _Found = {}
    for report in reports:
        task, when = report.get("task"), report.get("time_ns")
        if not isinstance(task, str) or not isinstance(when, int):
            continue
        attempt = max(0, bisect.bisect_right(starts, when) - 1)
        for name, value in report.items():
            if name not in _AROUND:
                found.setdefault(name, {}).setdefault((task, attempt), []).append((report.get("step"), when, number(value)))
    return found


def _plot(
    at: int, name: str, found: Mapping[tuple[str, int], list[tuple[int | None, int, Any]]], began: float, most: int
) -> Plot:
    by_step = all(step is not None for told in found.values() for step, _, _ in told)
    tasks = list(dict.fromkeys(task for task, _ in found))
    left = [f"{len(tasks) - _TASKS} more tasks are not drawn."] if len(tasks) > _TASKS else []
    drawn, none = [], 0
    for (task, attempt), told in found.items():
        if task in tasks[:_TASKS]:
            points = [(step if by_step and step is not None else when / 1e9 - began, value) for step, when, value in told]
            finite = [(float(x), float(y)) for x, y in points if isinstance(y, (int, float)) and math.isfinite(y)]
            none += len(points) - len(finite)
            kept = thinned(np.array([y for _, y in finite]), most)
            drawn += [Line(task, [finite[place] for place in kept], attempt)] if finite else []
    left += [f"{none:,} value{'s were' if none > 1 else ' was'} nan or inf, and cannot be drawn."] if none else []
    x = "step" if by_step else "seconds"
    return lines(f"curve-{at}", name, drawn, x, name, zero=False, whole=by_step, smooths=True, note=" ".join(left))
