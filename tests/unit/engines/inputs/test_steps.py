"""Advice on causes outside of the pipeline, each rule by itself: saving, a thread that computes, Python between the steps."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.inputs.measures import Advice
from akrunner.engines.inputs.steps import of_lock, of_python, of_saving, of_standing
from tests.unit.engines.inputs.test_wording import CHAIN, record


def told(**more: Any) -> dict[str, Any]:
    return record({}, CHAIN, **more)


def line(share: float, at: str = "/a/t.py:5", main: bool = True, where: str = "", **more: Any) -> dict[str, Any]:
    return {"main": main, "at": at, "in": where, "share": share, **more}


def rules(found: list[Advice]) -> list[str]:
    return [one.rule for one in found]


@pytest.mark.parametrize("seconds, advised", [(1.0, True), (0.99, False), (0.0, False)])
def test_saving_is_mentioned_from_a_tenth_of_the_time_on(seconds: float, advised: bool) -> None:
    assert rules(of_saving(told(spent={"checkpoint": seconds}))) == (["checkpoint"] if advised else [])


def test_saving_promises_half_of_what_it_takes() -> None:
    (one,) = of_saving(told(spent={"summary": 4.0}))
    assert (one.share, one.saves) == (pytest.approx(0.4), pytest.approx(0.2)) and one.what.startswith(
        "40% of the steps' time is writing summaries"
    )
    (main,) = of_saving(told(spent={"summary": 5.5}, known=False))
    assert main.what.startswith("50% of main's time is")


@pytest.mark.parametrize(
    "what, times, change",
    [
        ("checkpoint", 100, "save every 100 steps or more"), ("report", 100, "report every 100 steps"), ("checkpoint", 4, "one takes 1 s, and there is one for 25 steps: one for 900 steps takes 2%"),
        ("output", 100, "if there is one for a batch already, one for 40 batches"), ("output", 1000, "write more rows at a time (output_writer.write_batch)"), ("checkpoint", 0, "save every some hundred steps"),
    ],
)  # fmt: skip
def test_how_seldom_is_enough_follows_from_how_often_it_was(what: str, times: int, change: str) -> None:
    (one,) = of_saving(told(spent={what: 4.0}, times={what: times}))
    assert change in one.change


def test_the_first_of_few_is_slow_and_no_reason_to_save_less() -> None:
    few = {"spent": {"summary": 0.4}, "times": {"summary": 2}, "wait": 1.0, "between": 1.0}
    assert of_saving(told(**few)) == []
    assert rules(of_saving(told(**{**few, "times": {"summary": 50}}))) == ["summary"]


def test_what_came_before_the_second_step_is_no_part_of_the_steps_time() -> None:
    began = {"spent": {"summary": 4.0}, "times": {"summary": 5}, "early": {"summary": 3.2}, "early_times": {"summary": 1}}
    assert of_saving(told(**began)) == []
    (one,) = of_saving(told(**{**began, "early": {"summary": 2.0}}))
    assert one.share == pytest.approx(0.2) and one.change.startswith("one takes 0.5 s, and there is one for 25 steps")
    (main,) = of_saving(told(**began, known=False))
    assert main.share == pytest.approx(4.0 / 11.0), "main's time has all of it"
    waits = {"by": "batches", "spent": {"pipe": 2.0}, "early": {"pipe": 1.5}}
    assert of_saving(told(**waits)) == []


def test_rows_that_do_not_come_are_the_sources_fault() -> None:
    assert rules(of_saving(told(by="batches", spent={"pipe": 2.0, "checkpoint": 2.0}))) == ["pipe"]
    assert rules(of_saving(told(by="dataset", spent={"pipe": 2.0}))) == []


def test_a_thread_of_the_scripts_own_is_named_with_its_line_and_nothing_is_promised() -> None:
    (one,) = of_lock(told(lines=[line(0.9, main=False, computes=0.9)]))
    assert one.rule == "lock" and one.saves == 0.0 and "computes at t.py:5 for 90%" in one.what
    assert of_lock(told()) == []


def test_pandas_between_the_steps_is_the_one_thing_to_change_there() -> None:
    lines = [line(0.3, where="pandas"), line(0.1, at="/a/t.py:9", where="pandas")]
    (one,) = of_python(told(lines=lines, within={"calls": 100, "inside": 1.0}, wait=1.0, between=9.0))
    assert one.rule == "pandas" and one.share == pytest.approx(0.4) and "pandas at t.py:5" in one.what
    assert of_python(told(lines=lines, looks=9)) == [], "a few looks may be chance"
    nothing = {"lines": lines, "by": "", "pipelines": [], "tensorflow": False}
    assert of_python(told(**nothing)) == [], "it may have nothing else to do"


@pytest.mark.parametrize(
    "does, words",
    [
        ("prints", "which prints"),
        ("records", "which takes records apart"),
        ("tensors", "which makes tensors"),
        ("", "metrics, prints and the like"),
    ],
)
def test_python_between_the_steps_is_told_by_what_its_line_does(does: str, words: str) -> None:
    lines = [line(0.5, does=does, where="numpy" if not does else "")]
    (one,) = of_python(told(lines=lines, within={"calls": 100, "inside": 1.0}, wait=1.0, between=9.0))
    assert one.rule == "beside" and one.share == pytest.approx(0.8) and words in one.words
    assert one.saves == pytest.approx(0.25 if does else 0.0), (
        "of code that computes it is not known how long it takes elsewhere"
    )


def test_feeding_is_told_where_the_script_waits_for_it() -> None:
    assert "feed_dict" in rules(of_python(told(by="feed_dict")))
    assert of_python(told(by="feed_dict", wait=0.9, between=9.1)) == []


def test_the_time_between_calls_is_told_with_the_busiest_line() -> None:
    (one,) = of_python(told(by="call", outside=6.0, lines=[line(0.6)]))
    assert (
        one.rule == "between" and one.saves == pytest.approx(0.2) and "60% of the steps' time is between the calls" in one.what
    )
    (thread,) = of_python(told(by="call", outside=6.0, lines=[line(0.5, where="queue")]))
    assert thread.rule == "thread" and thread.saves == 0.0
    assert of_python(told(by="call", outside=0.9, lines=[line(0.6)])) == []


def test_a_script_that_stands_is_told_where() -> None:
    stands = [line(0.5, computes=0.1, where="requests")]
    (one,) = of_standing(told(lines=stands))
    assert one.rule == "beside" and "waits at t.py:5 (requests), and hardly computes" in one.what
    (shared,) = of_standing(told(lines=stands, idle=0.1))
    assert "or computes: other processes use the processor, too" in shared.what
    assert of_standing(told(lines=stands, idle=0.1, by="batches")) == []
    assert of_standing(told(lines=[line(0.2, computes=0.1)])) == [] == of_standing(told(lines=stands, by="call"))


@pytest.mark.parametrize("what", ["output", "pipe"])
def test_shares_of_steps_that_took_milliseconds_are_not_judged(what: str) -> None:
    short = {
        "by": "batches",
        "batches": 3,
        "wait": 0.004,
        "between": 0.033,
        "first": 1.65,
        "spent": {what: 0.02},
        "times": {what: 3},
    }
    assert of_saving(told(**short)) == []
    assert rules(of_saving(told(**{**short, "between": 0.6, "spent": {what: 0.4}}))) == [what]


def test_one_write_of_all_rows_cannot_be_made_larger() -> None:
    assert of_saving(told(spent={"output": 4.0}, times={"output": 1})) == []
    assert rules(of_saving(told(spent={"output": 4.0}, times={"output": 2}))) == ["output"]
