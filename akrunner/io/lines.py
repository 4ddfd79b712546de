"""Where rows of text end: at the ends of lines, but those within quotes (RFC 4180)."""

from __future__ import annotations

from typing import Optional

import numpy as np
import numpy.typing as npt

_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
#: what a quoted cell begins behind; a quote behind another one is a quote in the cell
_BEFORE_QUOTED = np.frombuffer(b',\n"', np.uint8)


def row_ends(text: bytes, quoted: bool) -> Optional["npt.NDArray[np.int64]"]:
    """[rows] Positions behind the ends of rows.

    Args: text: that begins where a row does; quoted: CSV, whose cells may have ends of lines in quotes.
    Returns: None when a quote is in a cell that does not begin with one: which others belong together is not to be told then.
    """
    view = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(view == _NEWLINE)
    if quoted and b'"' in text:
        quotes = np.flatnonzero(view == _QUOTE)
        opening = quotes[::2]
        if not np.isin(view[opening[opening > 0] - 1], _BEFORE_QUOTED).all():
            return None
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return ends + 1


def rows_before(text: bytes, ends: "npt.NDArray[np.int64]") -> int:
    """How many of the rows that end there are not blank."""
    starts = np.concatenate(([0], ends[:-1]))
    lengths = ends - starts
    blank = lengths == 1
    if b"\r" in text:
        blank |= (lengths == 2) & (np.frombuffer(text, np.uint8)[starts] == _RETURN)
    return len(ends) - int(np.count_nonzero(blank))
