"""Which way of showing progress a stream has. What each way shows: `tests/unit/cli/test_displays.py`."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from akrunner.errors import ConfigError
from akrunner.screens.ways import check, on


def console(terminal: bool, **variables: str) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, _environ=variables)


@pytest.mark.parametrize(
    ("given", "terminal", "way"),
    [("auto", True, "bar"), ("bar", False, "plain"), ("auto", False, "plain"), ("json", True, "json"), ("none", False, "none")],
)
def test_what_is_no_terminal_gets_lines(given: str, terminal: bool, way: str) -> None:
    assert on(console(terminal), given) == way


def test_a_terminal_that_cannot_move_its_cursor_gets_lines() -> None:
    assert on(console(True, TERM="dumb"), "bar") == "plain"


def test_another_way_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="it='tqdm': it is auto, bar, plain, none or json; none shows no progress"):
        check("tqdm", "it")
