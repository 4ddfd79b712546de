"""Draws a `View` for a terminal, as wide as it is at the moment: metrics, then a bar, then the tasks.

::

    loss 0.291  accuracy 0.87  12.3 step/s  step 1,200
    reading ━━━━━━━━━━━━━━━╸──────────────────  45 %  450k of 1M rows  120k rows/s  5 s left
    42 s  8 tasks in main()
    [worker:3] importing the script or taking its rows for 12 s

Only the 16 colours are used that every terminal has for itself, so that they can be read on its ground, light or dark; without colours
the same can be read from words and from two kinds of line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from akrunner.folders.words import printable
from akrunner.progress import words
from akrunner.progress.views import View

#: columns of a bar, at least and at most
_NARROW, _WIDE = 10, 60
#: columns between two parts
_GAP = 2
#: at most so many tasks that differ have a line each
_TASKS = 4
#: lines that are left to what was printed before
_SPARE_LINES = 4
#: numbers, which are what a person looks for
_NUMBER = r"(?<![\w:.])-?\d[\d.,]*(e[-+]?\d+)?[kMGTP]?|(?<!\S)-?(nan|inf)(?!\S)"


class Frame:
    """A view as a Rich renderable: each line fits the terminal.

    Args:
        view: what is drawn.
        name: returns the name by which a task is shown.
        widths: takes how wide each line is, in columns, whenever the frame is drawn.
    """

    def __init__(self, view: View, name: Callable[[str], str] = str, widths: list[int] | None = None) -> None:
        self._view = view
        self._name = name
        self._widths = widths if widths is not None else []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = drawn(self._view, options.max_width, options.size.height, options.ascii_only, self._name)
        self._widths[:] = [line.cell_len for line in lines]
        yield from lines


def drawn(view: View, width: int, height: int, ascii_only: bool, name: Callable[[str], str] = str) -> list[Text]:
    """Return the lines of a view.

    Args: width, height: those of the terminal; ascii_only: whether it shows nothing but ASCII; name: as for `Frame`.
    """
    told = [printable(one) for one in words.metrics(view)]
    lines = [_numbered(_fitting(told, width))] if told else []
    lines.append(_going(view, width, ascii_only))
    if view.tasks:
        lines.append(Text((" " * _GAP).join((words.seconds(view.seconds), words.all_tasks(view, name)))))
    lines += _differing(view, max(1, min(_TASKS, height - len(lines) - _SPARE_LINES)), name)
    for line in lines:
        line.truncate(max(width, 1), overflow="ellipsis")
    return lines


def _fitting(parts: Sequence[str], width: int) -> Text:
    """Return as many parts as fit, and how many do not."""
    shown = list(parts)
    while len(shown) > 1 and _length([*shown, *_others(parts, shown)]) > width:
        shown.pop()
    return Text((" " * _GAP).join([*shown, *_others(parts, shown)]))


def _others(parts: Sequence[str], shown: Sequence[str]) -> list[str]:
    return [f"+{len(parts) - len(shown)}"] if len(shown) < len(parts) else []


def _length(parts: Sequence[str]) -> int:
    return sum(map(cell_len, parts)) + _GAP * (len(parts) - 1)


def _numbered(line: Text) -> Text:
    line.highlight_regex(_NUMBER, "bold")
    return line


def _going(view: View, width: int, ascii_only: bool) -> Text:
    """Return the line with what the job is doing, the bar, and what says how it goes. What matters least is left out where there is no room."""
    doing = words.doing(view)
    rates = [*words.rates(view), "", ""]
    share = words.percent(view.share) if view.share is not None else ""
    # in the order in which they stand; and by how much they matter
    places = [share, words.epoch(view), words.rows(view), rates[0], rates[1], words.left(view)]
    if not view.tasks and view.seconds:
        places.append(words.seconds(view.seconds))
    matter = [0, 5, 1, 3, *range(6, len(places)), 2, 4]
    room = width - cell_len(doing) - (_NARROW + _GAP if share else 0)
    kept: set[int] = set()
    for place in matter:
        if places[place] and cell_len(places[place]) + _GAP <= room:
            kept.add(place)
            room -= cell_len(places[place]) + _GAP
    line = Text()
    line.append(doing, "bold")
    if share:
        line.append(" " * _GAP)
        line.append_text(bar(view.share or 0.0, min(_NARROW + max(room, 0), _WIDE), ascii_only))
    for place in sorted(kept):
        line.append(" " * _GAP + places[place], "bold" if place == 0 else "")
    return line


def bar(share: float, width: int, ascii_only: bool) -> Text:
    """Return a bar of which a share is done: the two kinds of line can be told apart without colours, too."""
    done, rest = ("#", "-") if ascii_only else ("━", "─")
    halves = math.floor(share * width * 2)
    full = halves // 2
    half = "╸" if halves % 2 and not ascii_only else ""
    text = Text(done * full + half, style="green")
    text.append(rest * (width - full - len(half)), "dim")
    return text


def _differing(view: View, most: int, name: Callable[[str], str]) -> list[Text]:
    """Return a line for each task that differs from the others, and one that counts those for which there is no room."""
    odd = words.different(view)
    shown = odd if len(odd) <= most else odd[: max(most - 1, 1)]
    lines = [Text(words.difference(one, name), "red" if one.state == "failed" else "yellow") for one in shown]
    if len(shown) < len(odd):
        lines.append(Text(f"and {len(odd) - len(shown):,} more", "yellow"))
    return lines
