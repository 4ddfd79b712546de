"""Findings of a checkup together: the worst of them, those of one state, and as text and JSON. More of it is in `test_beside`."""

from __future__ import annotations

import json

import pytest

from akrunner.checkup.lines import BROKEN, LOOK, OK, Checkup, Line, worst

FINE, ODD, GONE = (
    Line("memory", OK, "is there"),
    Line("ports", LOOK, "few", "more of them"),
    Line("disk", BROKEN, "full\nindeed", "make room"),
)


@pytest.mark.parametrize(
    "lines, state, ok",
    [([], OK, True), ([FINE], OK, True), ([FINE, ODD], LOOK, True), ([ODD, FINE], LOOK, True), ([GONE, ODD, FINE], BROKEN, False), ([FINE, GONE], BROKEN, False)],
)  # fmt: skip
def test_a_checkup_is_as_well_as_its_worst_line(lines: list[Line], state: str, ok: bool) -> None:
    found = Checkup(tuple(lines))
    assert (found.state, found.ok, worst(iter(lines))) == (state, ok, state)


def test_lines_of_one_state_keep_their_order() -> None:
    other = Line("clock", OK, "right")
    found = Checkup((FINE, GONE, other))
    assert found.of(OK) == [FINE, other] and found.of(LOOK) == []


def test_as_text_each_line_begins_with_its_state_and_ends_with_what_to_do() -> None:
    assert str(Checkup((FINE, ODD, GONE))).splitlines() == [
        "ok         memory: is there",
        "look here  ports: few",
        "             -> more of them",
        "broken     disk: full",
        "             indeed",
        "             -> make room",
    ]
    assert str(Checkup(())) == ""


def test_as_json_it_has_its_state_its_lines_and_the_job() -> None:
    told = json.loads(json.dumps(Checkup((ODD,), {"id": 7}).asdict()))
    assert told == {
        "state": "look here",
        "lines": [{"about": "ports", "state": "look here", "found": "few", "do": "more of them"}],
        "job": {"id": 7},
    }
    assert Checkup(()).asdict() == {"state": "ok", "lines": [], "job": None}
