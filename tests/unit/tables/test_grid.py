"""Tables for people: no narrow column gives way to a wide one."""

from __future__ import annotations

import pytest

from akrunner.tables import grid

WIDE = "[" + "0.5, " * 60 + "]"
TITLES = ["id", "label", "image", "probs", "digit"]
ROWS = [["1", "a", WIDE, WIDE, "7"], ["2", "NULL", WIDE, WIDE, "8"]]


@pytest.mark.parametrize("width", [46, 80, 200])
def test_narrow_columns_are_whole_and_wide_ones_share_what_is_left(width: int) -> None:
    told, shown = grid.lines(TITLES, ROWS, width)
    assert shown == len(TITLES) and grid.others(TITLES, shown, "") == ""
    assert told[0].split() == TITLES and told[1].split()[:2] == ["1", "a"] and [row[-1] for row in told[1:]] == ["7", "8"]
    assert width - 5 <= max(map(len, told)) <= width and told[1].count("…") == 2


def test_columns_without_room_are_counted_and_named() -> None:
    told, shown = grid.lines(TITLES, ROWS, 30)
    assert told[0].split() == TITLES[:3]
    assert (
        grid.others(TITLES, shown, "--output FILE keeps them all")
        == "... 2 more columns (probs, digit); --output FILE keeps them all"
    )


def test_without_a_width_nothing_is_cut() -> None:
    told, shown = grid.lines(TITLES, ROWS, None)
    assert shown == len(TITLES) and told[1].count(WIDE) == 2


def test_letters_that_take_two_places_and_what_a_terminal_would_do() -> None:
    told, _ = grid.lines(["a", "b"], [["数据数据数据数据", "x\ny\x1b"]], 18)
    assert told == ["a             b", "数据数据数 …  x y"]
