"""The timeline of the tasks: what each did when, how long it waited for its input meanwhile, and when rows came and went.

::

    worker:0   [waits        ]        a strip above: the share of the time in which the script waited for its input
               [starting|importing|main|done]
               [rows in][rows out]    a strip below: when rows came, and when it wrote some
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from akrunner.history.words import took
from akrunner.reports.plots import SCHEMA, Plot, Table

#: a state of `akrunner.history.samples.Change` -> its words; in the order of the legend
STATES = {
    "starting": "starting",
    "importing": "importing, receiving rows",
    "ready": "waiting for the others",
    "running": "main",
    "serving": "serving the others",
    "finished": "done",
    "ended": "done",
    "failed": "failed",
}
WAITS, COMES, GOES = "waiting for input", "rows arrive", "writing rows"
_COLOURS = {
    "starting": "#9aa5b1",
    "importing, receiving rows": "#c3a5e0",
    "waiting for the others": "#d9cf8f",
    "main": "#4c90c0",
    "serving the others": "#7fb8a4",
    "done": "#c9d1d9",
    "failed": "#d1495b",
    WAITS: "#e8842c",
    COMES: "#8a63b8",
    GOES: "#2a9d5c",
}
#: tasks that are drawn; pieces of a strip, and of all strips together
_TASKS, _PIECES, _ALL_PIECES = 64, 120, 4_000
#: pixels of a task, of its bar, of a strip, and from the middle of one to that of the other; and the same of many tasks
_SIZES, _SMALL, _MANY = (34, 12, 5, 10), (20, 8, 3, 6), 16
#: a strip's share of the time below this is not drawn
_LEAST = 0.01


@dataclass(frozen=True)
class Span:
    """A stretch of a task's time. Seconds count from the run's beginning.

    Attributes:
        phase: what it did, in the words of the legend.
        share: for how much of it, up to 1.
        strip: -1 of the strip above, 1 of the one below, 0 of the bar between.
    """

    task: str
    begin: float
    end: float
    phase: str
    share: float = 1.0
    strip: int = 0


def plot(
    changes: Sequence[Mapping[str, Any]],
    samples: Sequence[Mapping[str, Any]],
    inputs: Mapping[str, Any],
    tasks: Sequence[str],
    began: float,
    ended: float,
) -> Plot | None:
    """Return the timeline; None if nothing is known of it.

    Args:
        changes: the lines of `states.jsonl`.
        samples: the lines of `progress.jsonl`.
        inputs: `stats["inputs"]`, empty if it is not known.
        tasks: the names of the tasks.
        began, ended: when the run began, and ended, or now; in seconds since 1970.
    """
    shown = list(tasks[:_TASKS])
    bars = [span for span in _bars(changes, began, ended) if span.task in shown]
    if not bars:
        return None
    strips = [span for span in (*_waits(bars, inputs), *_rows(samples, began, bars, len(shown))) if span.task in shown]
    spans = [*bars, *strips]
    columns: dict[str, list[Any]] = {
        "task": [span.task for span in spans],
        "begin": [round(span.begin, 3) for span in spans],
        "end": [round(span.end, 3) for span in spans],
        "phase": [span.phase for span in spans],
        "share": [round(span.share, 3) for span in spans],
        "strip": [span.strip for span in spans],
    }
    there = {span.phase for span in spans}
    used = [phase for phase in _COLOURS if phase in there]
    note = f"{len(tasks) - _TASKS} more tasks are not drawn." if len(tasks) > _TASKS else ""
    spec = _spec(shown, used, {span.strip for span in spans})
    colours = [(phase, _COLOURS[phase]) for phase in used]
    table = _in_numbers(shown, spans)
    return Plot(
        "timeline", "What each task did when", spec, columns, table, note=note, height=50 + spec["height"], legend=colours
    )


def _bars(changes: Iterable[Mapping[str, Any]], began: float, ended: float) -> list[Span]:
    by_task: dict[str, list[tuple[float, str]]] = {}
    for change in changes:
        state = STATES.get(str(change.get("state")))
        if state is not None and isinstance(change.get("time_ns"), int):
            by_task.setdefault(str(change.get("task")), []).append((change["time_ns"] / 1e9 - began, state))
    made = []
    for task, told in by_task.items():
        for (at, state), (until, _) in pairwise([*told, (max(ended - began, told[-1][0]), "")]):
            made.append(Span(task, max(0.0, at), max(0.0, until), state))
    return made


def _waits(bars: Iterable[Span], inputs: Mapping[str, Any]) -> list[Span]:
    """Return how much of each window of main the input doctor has seen the task wait, in the last attempt."""
    mains = {bar.task: bar for bar in bars if bar.phase == STATES["running"]}
    made = []
    for task, record in inputs.items():
        windows = record.get("windows") if isinstance(record, Mapping) else None
        main = mains.get(task)
        for at, _, wait, between in windows if main is not None and windows else ():
            whole = wait + between
            if main is not None and whole > 0 and wait / whole >= _LEAST:
                begin = main.begin + at
                made.append(Span(task, begin, min(main.end, begin + whole), WAITS, wait / whole, -1))
    return [span for span in made if span.end > span.begin]


def _rows(samples: Sequence[Mapping[str, Any]], began: float, bars: Sequence[Span], tasks: int) -> list[Span]:
    """Return when rows came to each task, and when it wrote some; how much, as a share of its busiest moment.

    Args: bars: what the tasks did, as nothing came before they did anything; tasks: their number.
    """
    firsts: dict[str, float] = {}
    for bar in bars:
        firsts[bar.task] = min(bar.begin, firsts.get(bar.task, bar.begin))
    kept = samples[:: max(1, len(samples) // max(20, min(_PIECES, _ALL_PIECES // tasks)))]
    made = []
    for field, phase in (("task_bytes_in", COMES), ("task_rows_out", GOES)):
        found: dict[str, list[tuple[float, float, float]]] = {}
        for one, other in pairwise([*_starts(kept), *samples[-1:]]):
            begin, end = one["time_ns"] / 1e9 - began, other["time_ns"] / 1e9 - began
            if one.get("attempt") != other.get("attempt") or end <= begin:
                continue
            for task, total in other.get(field, {}).items():
                more = total - one.get(field, {}).get(task, 0)
                since = max(begin, firsts.get(task, begin))
                if since < end:
                    found.setdefault(task, []).append((since, end, more / (end - since)))
        for task, told in found.items():
            most = max(rate for _, _, rate in told)
            made += [Span(task, a, b, phase, rate / most, 1) for a, b, rate in told if most and rate / most >= _LEAST]
    return made


def _starts(samples: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """Yield samples, with one before the first of each attempt: nothing had come by then."""
    attempt = None
    for sample in samples:
        if sample.get("attempt") != attempt:
            attempt = sample.get("attempt")
            yield {"time_ns": sample["time_ns"] - int(sample.get("seconds", 0.0) * 1e9), "attempt": attempt}
        yield sample


def _spec(tasks: Sequence[str], phases: Sequence[str], strips: Collection[int]) -> dict[str, Any]:
    numbers = {"type": "quantitative"}
    encoding = {
        "x": {"field": "begin", **numbers, "title": "seconds", "axis": {"grid": True}},
        "x2": {"field": "end"},
        "y": {"field": "task", "type": "nominal", "sort": None, "title": None, "scale": {"domain": list(tasks)}},
        "color": {
            "field": "phase",
            "type": "nominal",
            "sort": None,
            "scale": {"domain": list(phases), "range": [_COLOURS[phase] for phase in phases]},
            "legend": None,
        },
        "opacity": {"field": "share", **numbers, "scale": None, "legend": None},
        "tooltip": [
            {"field": "task", "type": "nominal", "title": " "},
            {"field": "phase", "type": "nominal", "title": "does"},
            {"field": "share", **numbers, "title": "share", "format": ".0%"},
            {"field": "begin", **numbers, "title": "from second", "format": ",.2f"},
            {"field": "end", **numbers, "title": "to second", "format": ",.2f"},
        ],
    }
    step, bar, thin, apart = _SIZES if len(tasks) <= _MANY else _SMALL
    marks = ((0, bar, 0), (-1, thin, -apart), (1, thin, apart))
    return {
        "$schema": SCHEMA,
        "description": "What each task did when: a bar for each, above it how long it waited for input, below it when rows came and went",
        "width": "container",
        "height": step * len(tasks),
        "data": {"name": "points"},
        "layer": [
            {
                "transform": [{"filter": f"datum.strip === {strip}"}],
                "mark": {"type": "bar", "height": size, "yOffset": offset, "clip": True, "aria": False},
                "encoding": encoding,
            }
            for strip, size, offset in marks
            if strip in strips
        ],
    }


def _in_numbers(tasks: Sequence[str], spans: Iterable[Span]) -> Table:
    totals: dict[tuple[str, str], float] = {}
    for span in spans:
        length = span.end - span.begin
        totals[span.task, span.phase] = totals.get((span.task, span.phase), 0.0) + (
            length * span.share if span.phase == WAITS else length
        )
    phases = [phase for phase in _COLOURS if any(phase == known for _, known in totals) and phase not in (COMES, GOES)]
    rows = [[task, *(took(totals[task, phase]) if (task, phase) in totals else "" for phase in phases)] for task in tasks]
    return Table(["", *phases], rows)
