"""Where rows of text end: at the ends of lines, except those within quotes (RFC 4180)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]

_NEWLINE, _RETURN, _QUOTE = b'\n\r"'
#: the bytes behind which a quoted cell may begin; a quote behind another quote is a quote in the cell
_BEFORE_QUOTED = np.frombuffer(b',\n\r"', np.uint8)
_OPENING = re.compile(rb'(?:\A|(?<=[,\n\r]))"')


class LooseQuote(Exception):
    """A cell of several lines has more text behind its closing quote: two quotes that are not closed were taken for a pair.

    Attributes:
        position: the position of the quote that opens the cell.
    """

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def line_ends(text: bytes) -> Positions:
    """Return [lines] the positions behind the ends of lines."""
    return np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE) + 1


def row_ends(text: bytes, quoted: bool) -> Positions | None:
    """Return [rows] the positions behind the ends of rows.

    Args:
        text: begins where a row begins.
        quoted: whether the text is CSV, whose quoted cells may contain ends of lines.
    Returns:
        None if a quote is where no quote should be: then only `csv_row_ends`, which goes from quote to quote, can tell which
        quotes belong together.
    """
    view = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(view == _NEWLINE)
    if quoted and b'"' in text:
        quotes = np.flatnonzero(view == _QUOTE)
        opening, closing = quotes[::2], quotes[1::2]
        if not np.isin(view[opening[opening > 0] - 1], _BEFORE_QUOTED).all():
            return None
        if not np.isin(view[closing[closing < len(view) - 1] + 1], _BEFORE_QUOTED).all():
            return None
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return ends + 1


def csv_row_ends(text: bytes) -> tuple[Positions, int | None]:
    """Return ([rows] the positions behind the ends of rows, the position of the quote that opens a cell which the text does not
    close; None if it closes all cells).

    Raises:
        LooseQuote: a cell of several lines has text behind its closing quote.
    """
    ends = row_ends(text, quoted=True)
    if ends is not None and text.count(b'"') % 2 == 0:
        return ends, None
    cells = np.array(list(_quoted_cells(text)), np.int64).reshape(-1, 2)
    opened = int(cells[-1, 0]) if len(cells) and cells[-1, 1] > len(text) else None
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE)
    if len(cells):
        before = np.searchsorted(cells[:, 0], ends) - 1
        ends = ends[(before < 0) | (ends >= cells[before, 1])]
    return ends + 1, opened


def recovered(text: bytes, last: bool) -> tuple[Positions, list[int], int | None]:
    """Return what `csv_row_ends` returns, also for a text in which quotes are not closed: a row with such a quote ends with the
    line of the quote, and the next line begins a row.

    Args:
        text: begins where a row begins.
        last: whether no more text comes behind it, which could close a quote.
    Returns:
        ([rows] the positions behind the ends of rows, the positions at which rows with such a quote begin, the position of the
        quote that opens a cell which text behind this one may close; None if there is none).
    """
    found: list[Positions] = []
    loose: list[int] = []
    at = 0
    while True:
        try:
            ends, opened = csv_row_ends(text[at:])
        except LooseQuote as e:
            position = at + e.position
        else:
            if opened is None or not last:
                found.append(ends + at)
                return np.concatenate(found), loose, None if opened is None else at + opened
            position = at + opened
        before, _ = csv_row_ends(text[at:position])
        found.append(before + at)
        loose.append(int(before[-1]) + at if before.size else at)
        at = text.find(b"\n", position) + 1 or len(text)
        found.append(np.array([at], np.int64))
        if at == len(text):
            return np.concatenate(found), loose, None


def _quoted_cells(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield (position of the opening quote, position behind the closing one) of every quoted cell. The second is beyond the
    text if the cell is not closed."""
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        start = opening.start()
        at = text.find(b'"', opening.end()) + 1
        while at and text[at : at + 1] == b'"':
            at = text.find(b'"', at + 1) + 1
        if not at:
            yield start, len(text) + 1
            return
        if at < len(text) and text[at] not in b",\r\n" and text.find(b"\n", start, at) >= 0:
            raise LooseQuote(start)
        yield start, at


def rows_before(text: bytes, ends: Positions) -> int:
    """Return how many of the rows that end at `ends` are not blank."""
    starts = np.concatenate(([0], ends[:-1]))
    lengths = ends - starts
    blank = lengths == 1
    if b"\r" in text:
        blank |= (lengths == 2) & (np.frombuffer(text, np.uint8)[starts] == _RETURN)
    return len(ends) - int(np.count_nonzero(blank))


#: how many bytes are counted at a time: few enough to stay in the processor's cache
_AT_ONCE = 1 << 16


def count(text: bytes, one: bytes) -> int:
    """Return what `text.count(one)` returns for a single byte, several times as fast."""
    view = np.frombuffer(text, np.uint8)
    return sum(int(np.count_nonzero(view[at : at + _AT_ONCE] == one[0])) for at in range(0, len(view), _AT_ONCE))


def long_lines(text: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of every line longer than `size` bytes, without looking at the other lines."""
    start = 0
    while start + size < len(text):
        end = text.rfind(b"\n", start, start + size) + 1
        if not end:
            end = text.find(b"\n", start + size) + 1 or len(text)
            yield start, end
        start = end


def depth(text: bytes) -> int:
    """Return how deep the brackets of a JSON text are nested; brackets in strings count, too."""
    # [ and { differ in one bit, and so do ] and }
    upper = np.frombuffer(text, np.uint8) | 0x20
    steps = (upper == ord("{")).astype(np.int8) - (upper == ord("}")).astype(np.int8)
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))
