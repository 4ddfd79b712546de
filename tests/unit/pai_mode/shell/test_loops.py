"""Loops of a shell script: turn by turn where that is known, otherwise as something that may be run."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import loops
from akrunner.pai_mode.shell.flow import DONE_MARK
from akrunner.pai_mode.shell.reader import Reader
from akrunner.pai_mode.shell.values import marked


def ran(text: str, **variables: str) -> Reader:
    made = Reader(text, "/folder", variables)
    made.read()
    return made


def said(text: str, *arguments: str) -> str | None:
    """What a script has put together in `y`."""
    return ran(f"y=\n{text}", **{str(number): one for number, one in enumerate(arguments, 1)}).value("y")


@pytest.mark.parametrize(
    "text, made",
    [
        ("for x in a b c; do y=$y$x; done", "abc"),
        ("for x in; do y=$y$x; done", ""),
        ("for x in 'a b' c; do y=$y$x,; done", "a b,c,"),
        ("l='a b'; for x in $l; do y=$y$x,; done", "a,b,"),
        ("for x in {1..3}; do y=$y$x; done; y=$y$x", "1233"),
        ('for x in "$@"; do y=$y$x,; done', "p q,r,"),
        ("for x; do y=$y$x,; done", "p q,r,"),
        ("for x in 1 2 3; do [ $x = 2 ] && continue; y=$y$x; done", "13"),
        ("for x in 1 2 3; do [ $x = 2 ] && break; y=$y$x; done", "1"),
        ("for x in 1 2; do for z in a b; do [ $z = b ] && continue 2; y=$y$x$z; done; y=$y.; done", "1a2a"),
        ("for x in 1 2; do for z in a b; do y=$y$x$z; break 2; done; done", "1a"),
        ("for x in 1 2; do for z in a b; do y=$y$x$z; break 9; done; done", "1a"),
    ],
)
def test_a_turn_for_each_word(text: str, made: str) -> None:
    assert said(text, "p q", "r") == made


@pytest.mark.parametrize(
    "text, made",
    [
        ("i=0; while [ $i -lt 3 ]; do y=$y$i; i=$((i + 1)); done", "012"),
        ("i=0; until [ $i -ge 3 ]; do y=$y$i; i=$((i + 1)); done", "012"),
        ("while false; do y=x; done", ""),
        ("until true; do y=x; done", ""),
        ("for ((i = 0; i < 3; i++)); do y=$y$i; done", "012"),
        ("for ((i = 3; i; i--)); do y=$y$i; done", "321"),
        ("for ((i = 0; ; i++)); do [ $i = 2 ] && break; y=$y$i; done", "01"),
        ("for ((i = 0; i < 4; i++)); do [ $i = 1 ] && continue; y=$y$i; done", "023"),
        ("while read x; do y=$y$x,; done <<E\na b\nc\nE", "a b,c,"),
        ("i=0; while true; do i=$((i + 1)); if [ $i = 3 ]; then break; fi; y=$y$i; done", "12"),
        ("while [ -z $y ]; do y=x; continue; done", "x"),
    ],
)
def test_as_long_as_the_condition_says(text: str, made: str) -> None:
    assert said(text) == made


def test_what_a_loop_came_to() -> None:
    assert ran("for x in a b; do true; done").state.status == "0"
    assert ran("for x in a b; do false; done").state.status == "1"
    assert ran("for x in; do false; done").state.status == "0"
    assert ran("while false; do :; done").state.status == "0"


@pytest.mark.parametrize(
    "text",
    [
        "for x in $(wc -l f); do y=$x; done",
        "for x in *.sql; do y=$x; done",
        "while grep a f; do y=1; done",
        "until grep a f; do y=1; done",
        "for ((i = 0; i < n; i++)); do y=$i; done",
        "for x in a b; do grep $x f && break; y=$y$x; done",
    ],
)
def test_of_turns_nobody_can_count_nothing_is_known_that_they_set(text: str) -> None:
    assert said(f"n=$(wc -l f); z=1\n{text}") == marked("y")


def test_what_turns_nobody_can_count_do_not_set_stays_known() -> None:
    made = ran("z=1; for x in *.sql; do w=2; done")
    assert (made.value("z"), made.value("x"), made.value("w")) == ("1", marked("x"), marked("w"))
    assert made.why == 0 and made.state.status not in ("0", "1", DONE_MARK)


def test_a_loop_that_changes_nothing_ends() -> None:
    made = ran("while true; do sleep 5; done; x=1")
    assert made.value("x") == "1" and len(made.scopes) == 1


def test_a_call_in_a_loop_nobody_can_count_names_the_loop() -> None:
    with pytest.raises(ConfigError, match="line 3: whether this call is made depends on line 2"):
        ran("\nfor f in *.sql; do\nodpscmd -e 1\ndone")


def test_an_exit_in_a_loop_ends_the_script() -> None:
    assert said("for x in a b; do y=$y$x; exit 3; done; y=no") == "a"
    assert said("while true; do y=x; (exit 1); break; done") == "x"


def test_a_break_belongs_to_the_loop_of_its_own_subshell() -> None:
    assert said("for x in a b; do z=$(for v in 1 2; do break 5; done); y=$y$x; done") == "ab"


@pytest.mark.parametrize(
    "text", ["i=0; while true; do i=$((i + 1)); done", "for x in {1..8}; do for z in {1..8}; do :; done; done"]
)
def test_a_loop_without_an_end_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_MOST_ROUNDS", 50)
    with pytest.raises(ConfigError, match="line 2: the script's loops go round more than 50 times"):
        ran(f"\n{text}")


def test_as_many_turns_as_may_be_are_those_of_all_loops_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_MOST_ROUNDS", 6)
    assert said("for x in 1 2 3; do y=$y$x; done; for x in 4 5 6; do y=$y$x; done") == "123456"
    with pytest.raises(ConfigError, match="more than 6 times"):
        said("for x in 1 2 3; do :; done; for x in 4 5 6 7; do :; done")
