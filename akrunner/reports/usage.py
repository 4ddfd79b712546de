"""Rows and bytes over time, and the memory and the processor of each process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from akrunner.reports.numbers import rates, thinned
from akrunner.reports.plots import Line, Plot, lines

#: processes that are drawn; points of one line, and of all lines of a plot
_TASKS, _MOST, _POINTS = 16, 300, 2_400
HOST = "host"
_SECONDS = "seconds"
_MIB = 1 << 20

Samples = Sequence[Mapping[str, Any]]


def plots(samples: Samples, tasks: Sequence[str], began: float) -> list[Plot]:
    """Return the plots of what was measured; none of what was not.

    Args:
        samples: the lines of `progress.jsonl`.
        tasks: the names of the tasks.
        began: when the run began, in seconds since 1970.
    """
    attempts = [list(group) for _, group in groupby(samples, key=lambda sample: sample.get("attempt", 0))]
    processes = [*tasks[:_TASKS], HOST]
    most = max(30, min(_MOST, _POINTS // (len(processes) * max(1, len(attempts)))))
    note = f"{len(tasks) - _TASKS} more tasks are not drawn." if len(tasks) > _TASKS else ""
    rows = [
        *_growth(attempts, began, "rows in", lambda sample: sample.get("rows_in")),
        *_growth(attempts, began, "rows out", lambda sample: sample.get("rows_out")),
    ]
    size = [
        *_growth(attempts, began, "in", lambda sample: sample["bytes_in"] / _MIB if "bytes_in" in sample else None),
        *_growth(attempts, began, "out", lambda sample: sample["bytes_out"] / _MIB if "bytes_out" in sample else None),
    ]
    memory = [line for one in processes for line in _levels(attempts, began, one, most)]
    cores = [line for one in processes for line in _growth(attempts, began, one, functools.partial(_cpu, process=one), most)]
    made = [
        lines("rows", "Rows", rows, _SECONDS, "rows/s") if rows else None,
        lines("bytes", "Bytes", size, _SECONDS, "MiB/s") if size else None,
        lines("memory", "Memory of each process", memory, _SECONDS, "MiB", note=note) if memory else None,
        lines("processor", "Processor of each process", cores, _SECONDS, "cores", note=note) if cores else None,
    ]
    return [plot for plot in made if plot is not None]


def _cpu(sample: Mapping[str, Any], process: str) -> float | None:
    value = (sample.get("host") or {}).get("cpu_seconds") if process == HOST else sample.get("cpu_seconds", {}).get(process)
    return float(value) if value is not None else None


def _memory(sample: Mapping[str, Any], process: str) -> float | None:
    value = (sample.get("host") or {}).get("memory") if process == HOST else sample.get("memory", {}).get(process)
    return value / _MIB if value else None


def _growth(
    attempts: Sequence[Samples], began: float, name: str, value: Callable[[Mapping[str, Any]], float | None], most: int = _MOST
) -> list[Line]:
    """Return how fast a counter grew, a line for each attempt, each of which begins with 0 (but for the host's, which go on)."""
    made = []
    for part, samples in enumerate(attempts):
        told = [(sample["time_ns"] / 1e9 - began, found) for sample in samples if (found := value(sample)) is not None]
        if told and name != HOST:
            told = [(told[0][0] - float(samples[0].get("seconds", 0.0)), 0.0), *told]
        grown = rates([moment for moment, _ in told], [total for _, total in told])
        made += [_line(name, grown, part, most)] if grown else []
    return made


def _levels(attempts: Sequence[Samples], began: float, process: str, most: int) -> list[Line]:
    made = []
    for part, samples in enumerate(attempts):
        told = [
            (sample["time_ns"] / 1e9 - began, found) for sample in samples if (found := _memory(sample, process)) is not None
        ]
        made += [_line(process, told, part, most)] if told else []
    return made


def _line(name: str, points: Sequence[tuple[float, float]], part: int, most: int) -> Line:
    kept = thinned(np.array([y for _, y in points]), most)
    return Line(name, [(round(points[at][0], 3), float(f"{points[at][1]:.5g}")) for at in kept], part)
