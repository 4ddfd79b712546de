"""Rows, bytes, memory and processor over time."""

from __future__ import annotations

from typing import Any

from akrunner.reports import usage

S = 1_000_000_000


def sample(at: float, rows: int, cpu: float, attempt: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "time_ns": int(at * S), "attempt": attempt, "seconds": 1.0, "rows_in": rows, "rows_out": 0, "bytes_in": rows << 20, "bytes_out": 0,
        "memory": {"chief:0": 3 << 20}, "cpu_seconds": {"chief:0": cpu}, "host": {"memory": 5 << 20, "cpu_seconds": 7 + cpu}, **more,
    }  # fmt: skip


def test_counters_become_rates_and_levels_stay() -> None:
    rows, size, memory, cores = usage.plots([sample(11, 10, 0.5), sample(13, 30, 2.5)], ["chief:0"], 10.0)
    assert (rows.id, size.id, memory.id, cores.id) == ("rows", "bytes", "memory", "processor")
    assert rows.columns == {
        "x": [1, 3, 1, 3],
        "y": [10, 10, 0, 0],
        "name": ["rows in"] * 2 + ["rows out"] * 2,
        "line": [0, 0, 1, 1],
    }
    assert size.columns["y"] == [10, 10, 0, 0]
    assert list(zip(memory.columns["name"], memory.columns["y"])) == [("chief:0", 3), ("chief:0", 3), ("host", 5), ("host", 5)]
    # the host's own time does not begin with the attempt
    assert list(zip(cores.columns["name"], cores.columns["y"])) == [("chief:0", 0.5), ("chief:0", 1), ("host", 1)]


def test_each_attempt_begins_anew() -> None:
    rows = usage.plots([sample(11, 10, 0.5), sample(13, 4, 0.5, attempt=1)], ["chief:0"], 10.0)[0]
    assert rows.columns["y"] == [10, 4, 0, 0] and rows.columns["line"] == [0, 1, 2, 3]


def test_what_was_not_measured_is_not_drawn() -> None:
    assert usage.plots([], ["chief:0"], 10.0) == []
    old = {"time_ns": 11 * S, "seconds": 1.0, "rows_in": 1, "rows_out": 0, "rss": {"chief:0": 3}}
    assert [one.id for one in usage.plots([old], ["chief:0"], 10.0)] == ["rows"]
    assert [one.id for one in usage.plots([sample(11, 1, 0.5, memory={}, host=None)], ["chief:0"], 10.0)] == [
        "rows",
        "bytes",
        "processor",
    ]
