"""What is drawn over itself, also on a terminal whose size changes."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, Group
from rich.text import Text

from akrunner.screens.live import Live


@pytest.mark.parametrize(("width", "rows"), [(100, 2), (120, 2), (45, 3), (10, 10), (1, 100)])
def test_a_terminal_that_became_narrower_has_wrapped_what_is_drawn_over(width: int, rows: int) -> None:
    stream = io.StringIO()
    where = Console(file=stream, force_terminal=True, width=100, height=200, _environ={})
    live = Live(Group(Text("x" * 90), Text("y" * 10)), where, [90, 10])
    live.start(refresh=True)
    before = len(stream.getvalue())
    where.width = width
    live.refresh()
    drawn = stream.getvalue()[before:]
    live.stop()
    assert drawn.partition("x")[0].count("\x1b[1A\x1b[2K") == rows - 1
