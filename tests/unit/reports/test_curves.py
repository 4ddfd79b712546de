"""The learning curves."""

from __future__ import annotations

from typing import Any

from akrunner.reports import curves


def report(task: str, step: int | None, **metrics: Any) -> dict[str, Any]:
    return {"task": task, "step": step, "time_ns": 1_000_000_000 * (10 + (step or 0)), **metrics}


def test_a_plot_for_each_metric_with_a_line_for_each_task() -> None:
    told = [report(task, step, lr=0.1, loss=1.0 / step) for step in (1, 2) for task in ("chief:0", "worker:0")]
    loss, rate = curves.plots(told, ["worker:0", "chief:0"], 10.0, [])
    assert loss.columns["name"] == ["worker:0"] * 2 + ["chief:0"] * 2
    assert (loss.title, rate.title, loss.id) == ("loss", "lr", "curve-0") and loss.smooths
    assert loss.columns["x"] == [1, 2, 1, 2] and loss.columns["line"] == [0, 0, 1, 1]
    assert loss.spec["encoding"]["x"]["title"] == "step"


def test_without_steps_it_is_drawn_over_time() -> None:
    (made,) = curves.plots([report("chief:0", 1, loss=1.0), report("chief:0", None, loss=0.5)], [], 10.0, [])
    assert made.spec["encoding"]["x"]["title"] == "seconds" and made.columns["x"] == [1.0, 0.0]


def test_tasks_that_were_started_again_have_a_line_more() -> None:
    told = [report("chief:0", step, loss=1.0) for step in (1, 2, 5, 6)]
    (made,) = curves.plots(told, [], 10.0, [0, 14_000_000_000])
    assert made.columns["line"] == [0, 0, 1, 1] and made.table.rows[1][0] == "chief:0 (start 2)"


def test_what_is_no_number_is_counted_and_left_out() -> None:
    (made,) = curves.plots([report("chief:0", 1, loss="nan"), report("chief:0", 2, loss=0.5), {"loss": 3}], [], 10.0, [])
    assert made.columns["y"] == [0.5] and made.note == "1 value was nan or inf, and cannot be drawn."
    (made,) = curves.plots([report("chief:0", step, loss="inf") for step in (1, 2)], [], 10.0, [])
    assert made.columns["y"] == [] and made.note.startswith("2 values were nan or inf")


def test_very_many_metrics_tasks_and_steps_are_fewer() -> None:
    told = [
        report(f"worker:{task}", step, **{f"m{at}": float(step) for at in range(30)})
        for step in range(200)
        for task in range(20)
    ]
    made = curves.plots(told, [], 0.0, [])
    assert len(made) == 24 and made[0].note == "4 more tasks are not drawn."
    assert made[-1].note == "4 more tasks are not drawn. 6 more metrics are not drawn: m24, m25, m26, m27, m28, m29."
    assert sum(len(one.columns["x"]) for one in made) <= 15_000
