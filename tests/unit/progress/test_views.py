"""Metrics in the order in which people look at them, and the last ones of a job."""

from __future__ import annotations

from akrunner.progress.views import in_order, last_metrics


def test_losses_come_first_and_then_accuracies() -> None:
    found = dict.fromkeys(["lr", "acc", "Val_Loss", "loss", "f1", "accuracy"], 0.0)
    assert list(in_order(found)) == ["loss", "acc", "Val_Loss", "accuracy", "lr", "f1"]


def test_the_last_of_each_metric_of_the_chief() -> None:
    reports = [
        {"task": "worker:0", "step": 9, "time_ns": 1, "loss": 7.0},
        {"task": "chief:0", "step": 1, "time_ns": 2, "loss": 3.0, "acc": 0.5},
        {"task": "chief:0", "step": 2, "time_ns": 3, "loss": 2.0},
        {"task": "chief:0", "step": None, "time_ns": 4},
    ]
    assert last_metrics(reports[:3]) == ("chief:0", 2, {"loss": 2.0, "acc": 0.5})
    # the chief has taken its metrics back
    assert last_metrics(reports) == ("worker:0", 9, {"loss": 7.0})
    assert last_metrics(reports[1:]) == ("chief:0", 2, {})
    assert last_metrics(reports[:1]) == ("worker:0", 9, {"loss": 7.0})
    assert last_metrics([]) == ("", None, {})
