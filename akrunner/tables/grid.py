"""Tables for people: a row a line, as wide as what shows them.

::

    id  label  image          digit        narrow columns are whole, wide ones share what is left,
    1   a      [0.31, 0.39…   7            and columns there is no room for are named
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

#: characters in which a column can be read, and columns that are named of those that are not shown
_LEGIBLE, _NAMED = 12, 3
_GAP = "  "
_CUT = "…"


def lines(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> tuple[list[str], int]:
    """(lines, the first of them the titles; how many of the columns they show, at least one). Args: width: of each line, None: as wide as it has to be."""
    columns = [[_plain(cell) for cell in column] for column in zip(titles, *rows)]
    natural = [max(map(cell_len, column)) for column in columns]
    widths = _shared(natural, width) if width is not None else natural
    shown = [[_fitted(cell, wide) for cell in column] for column, wide in zip(columns, widths)]
    return [_GAP.join(row).rstrip() for row in zip(*shown)], len(widths)


def others(titles: Sequence[str], shown: int, how: str) -> str:
    """ "... 3 more columns (a, b, c); --output FILE keeps them all", "": all are shown. Args: how: the others are had, in words."""
    hidden = len(titles) - shown
    if not hidden:
        return ""
    few = ", ".join(titles[shown : shown + _NAMED]) + (", ..." if hidden > _NAMED else "")
    return f"... {hidden} more column{'s' * (hidden > 1)} ({few}); {how}"


def _shared(natural: Sequence[int], width: int) -> list[int]:
    """The width of each column there is room for: narrow ones have their own, and wide ones the same of what they leave."""
    fits = _fitting([min(_LEGIBLE, one) for one in natural], width)
    left = width - len(_GAP) * (fits - 1)
    widths = [0] * fits
    # the narrow first: what one does not need, those behind it share
    for number, place in enumerate(sorted(range(fits), key=lambda at: natural[at])):
        widths[place] = max(1, min(natural[place], left // (fits - number)))
        left -= widths[place]
    return widths


def _fitting(least: Sequence[int], width: int) -> int:
    """How many columns there is room for, so that each can be read; at least one."""
    taken = 0
    for number, one in enumerate(least):
        taken += one + len(_GAP) * bool(number)
        if taken > width:
            return max(1, number)
    return len(least)


def _plain(cell: str) -> str:
    """On one line, and nothing that a terminal would do."""
    return cell if cell.isprintable() else "".join(one if one.isprintable() else " " for one in cell)


def _fitted(cell: str, width: int) -> str:
    """A cell of that width, cut where it is longer."""
    return set_cell_size(cell, width) if cell_len(cell) <= width else set_cell_size(cell, width - 1) + _CUT
