"""What each task has reported last: of each metric, as a script may report its loss often, and others now and then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: how many metrics of a task are remembered
_MOST = 50
#: keys of a report that are no metrics (`akrunner.history.samples.Reported`)
_OTHERS = ("task", "step", "time_ns")


def join(known: dict[str, dict[str, Any]], report: Mapping[str, Any]) -> None:
    """Add a report to what was reported before. One without metrics says that those of its task hold no longer.

    Args:
        known: task -> "step", its newest one or None, and each metric's newest value; it is changed.
        report: "task", "step", "time_ns", and the metrics.
    """
    metrics = {name: value for name, value in report.items() if name not in _OTHERS}
    before = known.get(str(report.get("task")), {})
    # a metric may have this name, too
    step = report.get("step")
    told = {**(before if metrics else {}), "step": step if isinstance(step, int) else before.get("step"), **metrics}
    for name in [name for name in told if name != "step"][: -_MOST or None]:
        del told[name]
    known[str(report.get("task"))] = told


def latest(reports: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return by task what it reported last. Args: reports: in their order, as for `join`."""
    known: dict[str, dict[str, Any]] = {}
    for report in reports:
        join(known, report)
    return known
