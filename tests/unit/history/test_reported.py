"""Of each metric, what a task has reported last."""

from __future__ import annotations

from typing import Any

from akrunner.history import reported
from akrunner.history.reported import join, latest


def report(task: str, step: int | None, **metrics: float) -> dict[str, Any]:
    return {"task": task, "step": step, "time_ns": 7, **metrics}


def test_what_is_not_reported_again_still_holds() -> None:
    found = latest(
        [report("chief:0", 1, loss=0.5, acc=0.1), report("worker:0", None, loss=9.0), report("chief:0", 2, loss=0.4)]
    )
    assert found == {"chief:0": {"step": 2, "loss": 0.4, "acc": 0.1}, "worker:0": {"step": None, "loss": 9.0}}
    assert latest([]) == {}


def test_a_report_without_metrics_takes_them_back() -> None:
    assert latest([report("chief:0", 3, loss=0.5), report("chief:0", None)]) == {"chief:0": {"step": 3}}


def test_a_metric_may_be_called_step() -> None:
    assert latest([{**report("chief:0", 3, loss=0.5), "step": 2.5}]) == {"chief:0": {"step": None, "loss": 0.5}}


def test_of_endless_names_the_newest_are_remembered() -> None:
    known: dict[str, dict[str, Any]] = {}
    for number in range(200):
        join(known, report("chief:0", number, **{f"loss_{number}": 0.5}))
    assert len(known["chief:0"]) == reported._MOST + 1 and known["chief:0"]["step"] == 199
    assert "loss_199" in known["chief:0"] and "loss_149" not in known["chief:0"]
