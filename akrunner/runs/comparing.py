"""Compares two runs: what was asked for, with what it ran, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from akrunner.history.record import plain
from akrunner.jobfile import HEADS, placed
from akrunner.options import of_verb
from akrunner.runs.looking import Run, get

#: numbers of `stats` that tell runs apart
_STATS = (
    "start_seconds",
    "feed_seconds",
    "main_seconds",
    "input_wait_seconds",
    "bytes_in",
    "bytes_out",
    "bound",
    "attempt",
    "bad_rows",
)


@dataclass(frozen=True)
class Difference:
    """One thing in which two runs differ.

    Attributes:
        part: "run", "arguments", "versions", "metrics" or "numbers".
        name: what differs: "user_params.lr", "chief:0 loss".
        first: its value in the first run; None: it has none.
        second: the same of the second run.
    """

    part: str
    name: str
    first: Any
    second: Any


def diff(first: str | Run, second: str | Run) -> list[Difference]:
    """Compare two runs.

    Args:
        first: a run, as for `akrunner.runs.get`.
        second: the other one.
    Returns:
        what differs: how they ran, their arguments, the versions, the metrics that each task reported last, rows and times.
    Raises:
        ConfigError: there is no such run.
    """
    return list(_differences(get(first), get(second)))


def _differences(first: Run, second: Run) -> Iterator[Difference]:
    for part, told in _PARTS.items():
        before, after = told(first), told(second)
        for name in dict.fromkeys([*before, *after]):
            one, other = before.get(name), after.get(name)
            if _compared(first, name, one) != _compared(second, name, other):
                yield Difference(part, name, one, other)


def _compared(run: Run, name: str, value: Any) -> Any:
    """Return what is compared of a value: whole paths, as `akrunner rerun` gives them, and one NaN for all of them."""
    if name in run.left_out:
        # what stands in its place, as <function learn>, is no path
        return value
    if name == "script" and isinstance(value, str):
        value = os.path.join(run.cwd, value)
    elif run.verb in HEADS and any(one.name == name for one in of_verb(run.verb)):
        value = placed(name, value, run.cwd)
    return plain(value)


def _run(run: Run) -> dict[str, Any]:
    names = ("verb", "state", "script", "script_sha256", "cwd", "engine", "error", "message")
    made = {name: getattr(run, name) or None for name in names}
    made["script_sha256"] = run.script_sha256[:12] or None
    return {**made, "tasks": ", ".join(run.tasks), "machine": run.host.get("machine")}


def _arguments(run: Run) -> dict[str, Any]:
    return dict(_flat(run.arguments))


def _versions(run: Run) -> dict[str, Any]:
    return dict(run.versions)


def _metrics(run: Run) -> dict[str, Any]:
    return {f"{task} {name}": value for task, told in run.metrics.items() for name, value in told.items()}


def _numbers(run: Run) -> dict[str, Any]:
    rows = run.rows
    made = {"rows in": rows[0] if rows else None, "rows out": rows[1] if rows else None, "seconds": round(run.seconds, 3)}
    stats = run.stats or {}
    made.update(
        {
            name: round(value, 3) if isinstance(value, float) else value
            for name in _STATS
            if (value := stats.get(name)) is not None
        }
    )
    return {**made, "warnings": len(run.warnings)}


_PARTS = {"run": _run, "arguments": _arguments, "versions": _versions, "metrics": _metrics, "numbers": _numbers}


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield values with the names of those around them: "user_params.lr"."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
