"""On which side the time of a job went, and what Python's lines tell where no dataset is drawn from."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.inputs import unseen
from akrunner.engines.inputs.unseen import COMPUTE, INPUT, UNKNOWN, bound
from akrunner.engines.inputs.wording import verdict
from tests.unit.engines.inputs.test_wording import CHAIN, record


def line(share: float, at: str = "/a/t.py:5", main: bool = True, where: str = "", **more: Any) -> dict[str, Any]:
    return {"main": main, "at": at, "in": where, "share": share, **more}


def told(**more: Any) -> dict[str, Any]:
    return record({}, CHAIN, **more)


@pytest.mark.parametrize(
    "more, share, most",
    [
        ({}, 0.8, 0.8), ({"wait": 0.0, "between": 0.0}, 0.0, 0.0), ({"known": False, "unlooked": 5.0}, 0.0, 0.5), ({"elsewhere": True}, 0.0, 0.0), ({"unlooked": 1.0}, 0.8, 0.9),
    ],
)  # fmt: skip
def test_the_share_of_waiting_is_known_only_where_steps_are(more: dict[str, Any], share: float, most: float) -> None:
    assert unseen.wait_share(told(**more)) == pytest.approx(share) and unseen.most_waiting(told(**more)) == pytest.approx(most)


@pytest.mark.parametrize(
    "inputs, waited, main, side",
    [
        ({}, 0.0, 1.0, UNKNOWN), ({}, 2.0, 1.0, INPUT), ({"a": told()}, 0.0, 11.0, INPUT), ({"a": told(wait=1.0, between=9.0)}, 0.0, 11.0, COMPUTE), ({"a": told(wait=3.0, between=7.0)}, 0.0, 11.0, UNKNOWN),
        ({"a": told(wait=0.4, between=0.05)}, 0.0, 1.0, UNKNOWN), ({"a": told(wait=1.0, between=9.0), "b": told()}, 0.0, 11.0, INPUT), ({"a": told(wait=1.0, between=9.0, hidden=True)}, 0.0, 11.0, UNKNOWN),
        ({"a": told(wait=1.0, between=9.0, first=6.0)}, 0.0, 11.0, INPUT), ({"a": told(wait=1.0, between=9.0, first=3.0)}, 0.0, 11.0, UNKNOWN), ({"a": told(wait=1.0, between=9.0, spent={"checkpoint": 3.0})}, 0.0, 11.0, UNKNOWN),
        ({"a": told(wait=1.0, between=9.0, outside=3.0)}, 0.0, 11.0, UNKNOWN),
    ],
    ids=range(12),
)  # fmt: skip
def test_on_which_side_the_time_went(inputs: Any, waited: float, main: float, side: str) -> None:
    assert bound(inputs, waited, main) == side


@pytest.mark.parametrize(
    "more, late",
    [
        ({"first": 6.0}, True),
        ({"first": 5.0}, False),
        ({"first": 0.45, "main": 0.5}, False),
        ({"first": 6.0, "elsewhere": True}, False),
        ({"first": 6.0, "by": "function"}, False),
    ],
)
def test_a_first_batch_that_took_most_of_main_was_late(more: dict[str, Any], late: bool) -> None:
    assert unseen.late(told(**more)) == late


@pytest.mark.parametrize(
    "more, nothing",
    [({}, False), ({"used": 0.1, "busy": 0.05}, True), ({"used": 0.1, "busy": 0.5}, False), ({"used": 0.3, "busy": 0.0}, False), ({"used": 0.1, "cards": False}, True), ({"used": 0.1, "looks": 5}, False), ({"used": 0.1}, True),
     ({"used": 0.1, "lines": [line(0.5, where="tensorflow", computes=0.1)]}, False), ({"used": 0.1, "lines": [line(0.5, where="tensorflow", computes=0.9)]}, True)],
)  # fmt: skip
def test_whether_anything_computes(more: dict[str, Any], nothing: bool) -> None:
    assert unseen.nothing_computes(told(**more)) == nothing


def test_a_line_that_waits_outside_tensorflow_is_where_the_script_stands() -> None:
    lines = [
        line(0.5, computes=0.1, where="requests"),
        line(0.2, at="/a/t.py:9", computes=0.2, does="sleeps"),
        line(0.9, computes=0.9),
        line(0.9, computes=0.1, where="keras"),
        line(0.9, computes=0.1, does="loops"),
    ]
    at, share = unseen.standing(told(lines=lines))
    assert at == "t.py:5 (requests)" and share == pytest.approx(0.7)
    assert unseen.standing(told(lines=lines), asleep=True) == ("t.py:9", pytest.approx(0.2))
    assert unseen.standing(told(lines=lines, spent={"checkpoint": 3.0}))[1] == pytest.approx(0.4), (
        "saving has a sentence of its own"
    )
    assert unseen.standing(told(lines=lines, looks=9)) == ("", 0.0) == unseen.standing(told())


def test_python_between_steps_is_what_is_neither_waiting_nor_in_a_function() -> None:
    assert unseen.python_between(
        told(wait=2.0, between=8.0, within={"calls": 100, "inside": 3.0}, spent={"summary": 1.0})
    ) == pytest.approx(0.4)
    assert unseen.python_between(told(wait=2.0, between=8.0, within={"calls": 49, "inside": 3.0})) == 0.0, (
        "it calls functions seldom"
    )
    assert unseen.python_between(told(by="function", within={"calls": 100, "inside": 0.0})) == 0.0
    assert unseen.python_between(
        told(by="batches", wait=0.0, between=4.0, calls={"calls": 100, "inside": 1.0})
    ) == pytest.approx(0.75)


def test_the_busiest_line_is_named_with_its_package() -> None:
    lines = [
        line(0.3, at="/a/t.py:1"),
        line(0.2, at="/a/t.py:1", where="numpy"),
        line(0.4, at="/a/t.py:2"),
        line(0.9, at="/a/t.py:3", where="tensorflow"),
        line(0.9, at="/a/t.py:4", main=False),
    ]
    assert unseen.busiest(told(lines=lines)) == ("t.py:1 (numpy)", pytest.approx(0.5))
    assert unseen.busiest(told(lines=lines, looks=9)) == ("", 0.0)
    assert unseen.in_tensorflow(told(lines=lines)) == pytest.approx(0.9)


def test_a_thread_of_the_scripts_own_computes_all_the_time_or_is_none() -> None:
    busy = [
        line(0.4, main=False, computes=0.9),
        line(0.3, at="/a/t.py:6", main=False, computes=0.6),
        line(0.9, main=False, computes=0.1),
    ]
    found = unseen.own_thread(told(lines=busy))
    assert found is not None and found["at"] == "/a/t.py:5"
    for more in ({"lines": busy[:1]}, {"lines": busy, "looks": 9}, {"lines": busy, "by": "function"}):
        assert unseen.own_thread(told(**more)) is None


def test_python_of_the_pipeline_holds_up_short_steps_only() -> None:
    python = {"python": {"calls": 10, "wall": 4.0, "steps": 4.0, "computed": 3.0}}
    assert unseen.python_computes(told(**python)) == pytest.approx(0.3)
    assert unseen.python_beside(told(**python)) == 0.0, "each step takes 100 ms"
    assert unseen.python_beside(told(**python, batches=1000)) == pytest.approx(0.3)
    assert unseen.python_computes(told(**python, known=False)) == 0.0 == unseen.python_computes(told())


@pytest.mark.parametrize(
    "more, words",
    [
        ({"asked": 0}, "--profile-input (profile_input=20)"), ({"asked": 20, "batches": 100}, "a look at more steps (--profile-input 100)"), ({"asked": 20, "batches": 1000}, "a look at more steps (--profile-input 200)"),
        ({"asked": 20, "batches": 39}, "a look at a longer run"), ({"served": True}, "--profile-input in a job of one task"), ({"asked": 9000, "batches": 10**6}, "a look at a longer run"),
    ],
)  # fmt: skip
def test_what_to_ask_for_to_learn_more(more: dict[str, Any], words: str) -> None:
    assert unseen.look(told(**more)) == words


def test_what_is_said_where_nobody_knows() -> None:
    assert "another thread" in unseen.told(told(elsewhere=True))[0] and "a tf.function" in unseen.told(told(hidden=True))[0]
    nothing = told(by="", pipelines=[])
    assert unseen.told(nothing) == [unseen.NOTHING_READ] and unseen.told({**nothing, "asked": 0}) == []
    assert unseen.told(told()) == []
    own = unseen.told(told(by="", lines=[line(0.5), line(0.3, where="keras")]))[0]
    assert (
        own.startswith(unseen.UNSURE) and "50% of the time since the first step, Python is at t.py:5, 30% in TensorFlow" in own
    )


def test_a_stream_whose_rows_come_slowly_is_not_bound_by_its_input() -> None:
    waits = {"spent": {"pipe": 7.0}, "asked": 0, "given": None}
    assert unseen.arriving(told(**waits)) and bound({"a": told(**waits)}, 9.0, 11.0) == UNKNOWN
    for other in ({"given": 7}, {"spent": {"pipe": 2.0}}):
        assert not unseen.arriving(told(**{**waits, **other})) and bound({"a": told(**{**waits, **other})}, 0.0, 11.0) == INPUT
    assert verdict({"inputs": {"worker:0": told(**waits)}, "tables": {}}) == []
