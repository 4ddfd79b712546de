"""What a running job tells other programs: an event is an object of JSON. `docs/progress.schema.json` declares them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from akrunner.progress.views import View

#: the version of the events. A change that makes a reader of the old ones fail raises it; new keys, and new kinds of events, do not
VERSION = 1
PROGRESS, WARNING, NOTE, LOG, END = "progress", "warning", "note", "log", "end"


def event(kind: str, time_ns: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event.

    Args:
        kind: its kind.
        time_ns: when it happened, in nanoseconds since the epoch.
        body: its own keys.
    """
    return {"event": kind, "version": VERSION, "time": time_ns / 1e9, **body}


def of_view(view: View) -> dict[str, Any]:
    """Return the keys of an event of progress. Numbers that JSON does not have (NaN, infinities) are null."""
    return {
        "seconds": round(view.seconds, 3),
        "doing": view.doing,
        "attempt": view.attempt,
        "metrics": finite(view.metrics),
        "metrics_of": view.metrics_of or None,
        "step": view.step,
        "steps_per_second": _rounded(view.steps_per_second),
        "share": _rounded(view.share, 6),
        "share_of": view.share_of or None,
        "epoch": view.epoch,
        "epochs": view.epochs,
        "rows": view.rows,
        "rows_total": view.rows_total,
        "rows_in": view.rows_in,
        "rows_out": view.rows_out,
        "rows_per_second": _rounded(view.rows_per_second),
        "bytes_per_second": _rounded(view.bytes_per_second),
        "seconds_left": _rounded(view.seconds_left),
        "tasks": [
            {
                "name": one.name,
                "state": one.state,
                "seconds": round(one.seconds, 3),
                "rows_in": one.rows_in,
                "rows_out": one.rows_out,
                "step": one.step,
                "differs": one.differs or None,
            }
            for one in view.tasks
        ],
    }


def finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Return metrics with null in place of numbers that JSON does not have."""
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}


def _rounded(value: float | None, places: int = 3) -> float | None:
    return round(value, places) if value is not None and math.isfinite(value) else None
