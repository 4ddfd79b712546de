"""The progress line: where it is shown, and that its words are made only then."""

from __future__ import annotations

import io
from typing import NoReturn

import pytest
from rich.console import Console

from akrunner.cli.progress import Line


def console(terminal: bool) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, force_terminal=terminal, width=20, _environ={}), stream


def never() -> NoReturn:
    raise AssertionError("nobody sees these words")


@pytest.mark.parametrize(("terminal", "quiet"), [(False, False), (False, True), (True, True)])
def test_nothing_is_shown_without_a_terminal_or_in_quiet(terminal: bool, quiet: bool) -> None:
    where, stream = console(terminal)
    with Line(where, "starting", quiet) as line:
        line.show(never)
    assert stream.getvalue() == ""


def test_a_terminal_shows_the_first_words_and_then_the_others() -> None:
    where, stream = console(True)
    with Line(where, "starting", False) as line:
        line.show(lambda: "12 rows [worker:0]")
        where.print("")
    assert "starting" in stream.getvalue() and "12 rows [worker:0]" in stream.getvalue(), "brackets are text"


def test_words_that_are_too_long_are_cut_to_one_line() -> None:
    where, stream = console(True)
    with Line(where, "starting", False) as line:
        line.show(lambda: "x" * 30)
        where.print("")
    assert "x" * 19 + "…" in stream.getvalue() and "x" * 20 not in stream.getvalue()


def test_a_name_of_a_metric_forges_no_line() -> None:
    where, stream = console(True)
    with Line(where, "starting", False) as line:
        line.show(lambda: "a\x1b]0;t\x07\nakrunner: x")
        where.print("")
    assert "\\x1b]0;t" in stream.getvalue() and "\x1b]0" not in stream.getvalue() and "\nakrunner" not in stream.getvalue()


def test_after_its_block_it_shows_nothing_even_if_the_block_failed() -> None:
    where, stream = console(True)
    line = Line(where, "starting", False)
    with pytest.raises(ValueError, match="no"), line:
        raise ValueError("no")
    told = stream.getvalue()
    line.show(never)
    assert stream.getvalue() == told
