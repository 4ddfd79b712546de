"""A view in words."""

from __future__ import annotations

import dataclasses

import pytest

from akrunner.progress import words
from akrunner.progress.views import PREDICTING, READING, RUNNING, SCRIPT, STARTING, TaskView, View


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0"), (0.0291312, "0.02913"), (12345, "12,345"), (99_999, "99,999"), (450_000, "450k"), (1_234_567, "1.23M"), (-2e9, "-2G"),
     (float("nan"), "nan"), (float("-inf"), "-inf"), (1e-9, "1e-09"), (1e30, "1e+30"), (1e308, "1e+308"), (999.94, "999.9"), (999.96, "1,000"),
     (-999.96, "-1,000"), (12345.678, "12,346"), (99_999.4, "99,999"), (99_999.9, "100k"), (99_999.5, "100k"), (100_000, "100k"),
     (999_400, "999k"), (999_700, "1M"), (-999_700, "-1M"), (999_499_999, "999M"), (999_500_001, "1G"), (999.4e15, "999P"), (999.7e15, "1e+18")],
)  # fmt: skip
def test_a_number_has_few_figures(value: float, told: str) -> None:
    assert words.number(value) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-1, "0.0 s"),
        (4.24, "4.2 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.96, "1 min 0 s"),
        (599.9, "10 min 0 s"),
        (3599.7, "1 h 0 min"),
        (86_399.8, "1 d 0 h"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
    ],
)
def test_a_time(seconds: float, told: str) -> None:
    assert words.seconds(seconds) == told


def test_bytes() -> None:
    assert [words.size(one) for one in (0, 812, 7_500_000, 81e9)] == ["0 B", "812 B", "7.5 MB", "81 GB"]
    assert [words.size(one) for one in (999.7, 9_960, 999_700, 9_940_000)] == ["1.0 kB", "10 kB", "1.0 MB", "9.9 MB"]


def test_only_all_of_it_is_a_hundred_percent() -> None:
    assert [words.percent(one) for one in (0, 0.999, 1.0)] == ["0 %", "99 %", "100 %"]
    assert [words.percent(step / 100) for step in range(101)] == [f"{step} %" for step in range(101)]


def test_a_metric_does_not_fill_the_screen() -> None:
    assert words.named({"loss": 0.5, "a" * 5000: 1.0}) == ["loss 0.5", "a" * 59 + "… 1"]


def many(count: int, state: str = "in main()") -> tuple[TaskView, ...]:
    return tuple(TaskView(f"worker:{at}", "running", state) for at in range(count))


def test_metrics_are_first_in_a_line() -> None:
    view = View(
        42.2,
        READING,
        {"loss": 0.291},
        "chief:0",
        1200,
        12.31,
        0.45,
        450_000,
        1_000_000,
        450_000,
        0,
        120_000.4,
        7.5e6,
        4.6,
        0,
        many(8),
    )
    assert words.line(view) == (
        "42 s: loss 0.291, 12.31 step/s, step 1,200; reading 45 %, 450k of 1M rows, 120k rows/s, 7.5 MB/s, 5 s left; 8 tasks in main()"
    )


@pytest.mark.parametrize(
    ("view", "line"),
    [
        (View(0.4, STARTING, tasks=many(1, "starting")), "0.4 s: starting; worker:0 starting"),
        (View(80, RUNNING, rows_in=150, rows=0, tasks=many(1)), "1 min 20 s: running, 150 rows in; worker:0 in main()"),
        (
            View(80, RUNNING, rows_in=150, rows_out=20, rows=20, attempt=1),
            "1 min 20 s: running, attempt 2, 150 rows in, 20 out",
        ),
        (
            View(3, PREDICTING, share=0.5, rows=10, rows_out=10, rows_in=15, seconds_left=0.1),
            "3.0 s: predicting 50 %, 15 rows in, 10 out, 1 s left",
        ),
        (View(3, "listing", rows=7), "3.0 s: listing, 7 rows"),
        (View(3, RUNNING, rows_out=7), "3.0 s: running, 7 rows out"),
    ],
)
def test_what_is_not_known_is_left_out(view: View, line: str) -> None:
    assert words.line(view) == line


def test_tasks_that_differ_are_named_as_many_as_fit() -> None:
    odd = tuple(TaskView(f"worker:{at}", "importing", "importing", 12.0, differs="importing") for at in range(5))
    slow = TaskView("worker:9", "running", "in main()", 12.0, differs="slow: 1 step/s, the others 9")
    view = View(3, STARTING, tasks=(*many(2), *odd, slow))
    assert words.all_tasks(view) == "8 tasks: 5 importing, 3 in main()"
    assert words.line(view, lambda name: name.upper()).endswith(
        "[WORKER:0] importing for 12 s, [WORKER:1] importing for 12 s, [WORKER:2] importing for 12 s, and 3 more"
    )
    assert words.difference(slow) == "[worker:9] slow: 1 step/s, the others 9"
    assert words.all_tasks(View(1, STARTING)) == ""


def test_an_epoch_says_of_how_many_and_whose_time_is_left() -> None:
    view = View(1.0, RUNNING, share=0.45, share_of=SCRIPT, rows=9, rows_total=9, rows_in=9, epoch=3, epochs=10, seconds_left=5)
    assert (words.epoch(view), words.rows(view), words.left(view)) == ("epoch 3 of 10", "9 rows in", "5 s left")
    alone = dataclasses.replace(view, epochs=None)
    assert (words.epoch(alone), words.left(alone)) == ("epoch 3", "5 s left in the epoch")
    assert words.line(alone).startswith("1.0 s: running 45 %, epoch 3, 9 rows in, 5 s left in the epoch")
