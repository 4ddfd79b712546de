"""Tables for people: one line per row, as wide as the terminal.

::

    id  label  image          digit        narrow columns are whole, wide ones share the rest of the width;
    1   a      [0.31, 0.39…   7            columns for which there is no room are named below
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

#: the least characters in which a column can be read; how many of the columns that are not shown are named
_LEGIBLE, _NAMED = 12, 3
_GAP = "  "
_CUT = "…"


def lines(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> tuple[list[str], int]:
    """Lay a table out in lines.

    Args:
        width: of each line, in characters; None for as wide as the table needs.
    Returns:
        (lines, the first of them the titles; how many of the columns they show, at least one).
    """
    columns = [[_plain(cell) for cell in column] for column in zip(titles, *rows)]
    natural = [max(map(cell_len, column)) for column in columns]
    widths = _shared(natural, width) if width is not None else natural
    shown = [[_fitted(cell, wide) for cell in column] for column, wide in zip(columns, widths)]
    return [_GAP.join(row).rstrip() for row in zip(*shown)], len(widths)


def others(titles: Sequence[str], shown: int, how: str) -> str:
    """Return the line for the columns that are not shown: "... 3 more columns (a, b, c); --output FILE keeps them all"; "" if
    all are shown.

    Args:
        how: a clause that says how to get the other columns.
    """
    hidden = len(titles) - shown
    if not hidden:
        return ""
    few = ", ".join(map(_plain, titles[shown : shown + _NAMED])) + (", ..." if hidden > _NAMED else "")
    return f"... {hidden} more column{'s' * (hidden > 1)} ({few}); {how}"


def _shared(natural: Sequence[int], width: int) -> list[int]:
    """Return the width of each column there is room for: narrow columns get the width they need, wide ones share the rest
    evenly.
    """
    fits = _fitting([min(_LEGIBLE, one) for one in natural], width)
    left = width - len(_GAP) * (fits - 1)
    widths = [0] * fits
    # the narrow columns first: the columns behind them share what they do not need
    for number, place in enumerate(sorted(range(fits), key=lambda at: natural[at])):
        widths[place] = max(1, min(natural[place], left // (fits - number)))
        left -= widths[place]
    return widths


def _fitting(least: Sequence[int], width: int) -> int:
    """Return how many columns there is room for if each is to be readable; at least one."""
    taken = 0
    for number, one in enumerate(least):
        taken += one + len(_GAP) * bool(number)
        if taken > width:
            return max(1, number)
    return len(least)


def _plain(cell: str) -> str:
    """Return the cell on one line, without characters that would control a terminal."""
    return cell if cell.isprintable() else "".join(one if one.isprintable() else " " for one in cell)


def _fitted(cell: str, width: int) -> str:
    """Return the cell in exactly `width` characters, cut if it is longer."""
    return set_cell_size(cell, width) if cell_len(cell) <= width else set_cell_size(cell, width - 1) + _CUT
