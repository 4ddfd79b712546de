"""What a subshell has for itself: what it changes does not reach the script around it."""

from __future__ import annotations

from akrunner.pai_mode.shell.flow import State
from akrunner.pai_mode.shell.scopes import Held, Leave


def test_a_copy_is_the_same_and_its_own() -> None:
    held = Held(
        known={"x": "1", "y": None}, arrays={"a": ["1"]}, arguments=["p"], folder="/f", status="3", frozen=("x",), pipes=True
    )
    copy = held.copy()
    assert copy == held
    assert copy.arguments is not None
    copy.known["x"] = "2"
    copy.arrays["b"] = None
    copy.arguments.append("q")
    copy.folder, copy.status, copy.stale = "/g", "0", True
    copy.frozen += ("z",)
    assert held == Held(
        known={"x": "1", "y": None}, arrays={"a": ["1"]}, arguments=["p"], folder="/f", status="3", frozen=("x",), pipes=True
    )


def test_arguments_nobody_knows_stay_unknown_and_none_stay_none() -> None:
    assert Held().copy().arguments is None
    assert Held(arguments=[]).copy().arguments == []


def test_what_is_left_says_how_far_and_with_what() -> None:
    left = Leave("break", 2)
    assert (str(left), left.kind, left.count, left.state, left.code) == ("break", "break", 2, State.YES, None)
    assert Leave("exit", state=State.NO, code="3").code == "3"


def test_a_script_begins_with_nothing_set() -> None:
    held = Held()
    assert (held.known, held.arrays, held.status, held.frozen) == ({}, {}, "0", ())
    assert not any((held.ends_at_failure, held.needs_values, held.pipes, held.stale))
    assert held.ends_at_failure is False
