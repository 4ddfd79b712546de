"""What measurements have in common: a row of the table, and rates."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

#: what was measured: (what, measured, against, ratio, goal, whether it was met)
Row = tuple[str, str, str, str, str, bool]

CHUNK = 8192


def rate(call: Callable[[], Any], units: float, seconds: float = 1.0) -> float:
    """Units a second, the median of several runs after a warm-up."""
    call()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 5:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return units / statistics.median(times)


def ratio_row(what: str, ours: float, theirs: float, goal: float, against: str) -> Row:
    ratio = ours / theirs
    return (what, f"{ours:,.0f} rows/s", f"{against}: {theirs:,.0f} rows/s", f"{ratio:.2f} x", f">= {goal:g} x", ratio >= goal)
