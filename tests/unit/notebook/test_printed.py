"""The lines that a notebook shows: few, and those that matter."""

from __future__ import annotations

from akrunner.notebook.printed import Printed
from tests.unit.test_markup import HOSTILE, read


def test_the_newest_lines_of_all_tasks() -> None:
    made = Printed()
    assert made.newest() == made.folded() == ""
    for at in range(6):
        made.add(f"worker:{at % 2}", f"line {at}")
    assert read(made.newest()).splitlines() == [f"[worker:{at % 2}] line {at}" for at in range(2, 6)]


def test_the_task_that_failed_comes_first() -> None:
    made = Printed()
    made.add("chief:0", "fine")
    made.add("worker:0", "not fine")
    told = made.folded(first="worker:0")
    assert read(told) == "worker:0 printed 1 linenot finechief:0 printed 1 linefine" and told.count("<details open>") == 1


def test_of_many_lines_and_tasks_the_last_and_the_first_are_kept() -> None:
    made = Printed()
    for at in range(1000):
        made.add("worker:0", f"{at} " + "x" * 10_000)
    for at in range(1, 20):
        made.add(f"worker:{at}", HOSTILE)
    told = read(made.folded(others=": akrunner.runs has them"))
    assert (
        "the last 100 of 1,000 lines900 xxx" in told and "12 more tasks have printed something: akrunner.runs has them" in told
    )
    assert len(made.folded()) < 50_000
