"""JSON arrays of objects (`[{"a": 1}, {"a": 2}]`), pretty-printed or not, cut into pieces of whole objects as they are read.

::

    [\\n  {"a": 1},\\n  {\\n    "a": 2\\n  }\\n]\\n
     |        |  the array's own brackets and commas become blanks: what is left are objects, which Arrow parses
     v        v  one after another, and every byte keeps its place, and so its line
     \\n  {"a": 1} \\n  {\\n    "a": 2\\n  }\\n

Only the pieces are in memory, not the array. All bytes of a piece are looked at together, by numpy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io import parse, parse_json
from akrunner.io.lines import Positions
from akrunner.io.text import BOM, PIECE_BYTES, ROW_BYTES, SHOWN, Piece, Pieces

_BLANKS = b" \t\r\n"
_QUOTE, _COMMA, _SLASH, _OPEN, _CLOSE = b'",\\{]'
#: within how many bytes at its beginning an array must open; else a file is read as lines
_LOOKED = 1 << 16


def begins_array(read: Callable[[int], bytes], or_lines: bool = False) -> tuple[bool, Callable[[int], bytes]]:
    """Return (whether a text begins as an array does, a function that reads the text from its beginning).

    Args:
        read: reads the text, as in `Pieces`.
        or_lines: whether a text is lines if its array ends on its line and more stands behind it: then the array is a bad line.
    """
    head = b""
    # a connection may give the bytes of the mark one by one
    while len(head) < len(BOM) or (len(head) < _LOOKED and not head.removeprefix(BOM).strip(_BLANKS)):
        more = read(_LOOKED)
        if not more:
            break
        head += more
    array = head.removeprefix(BOM).lstrip(_BLANKS).startswith(b"[")
    if array and or_lines:
        while len(head) < ROW_BYTES and not _next_line(head):
            more = read(PIECE_BYTES)
            if not more:
                break
            head += more
        array = not (_next_line(head) and _is_one_line(head))
    held = [head]

    def again(size: int) -> bytes:
        if not held[0]:
            return read(size)
        data, held[0] = held[0][:size], held[0][size:]
        return data

    return array, again


def _first_line(head: bytes) -> tuple[bytes, bytes]:
    """Return the first line with something in it, and what stands behind it, both without blanks around."""
    # no string of JSON has an end of a line in it
    line, *rest = re.split(rb"[\r\n]", head.removeprefix(BOM).strip(_BLANKS), maxsplit=1)
    return line.rstrip(_BLANKS), b"".join(rest).lstrip(_BLANKS)


def _next_line(head: bytes) -> bool:
    return bool(_first_line(head)[1])


def _is_one_line(head: bytes) -> bool:
    """Whether the array with which a text begins ends on its line."""
    line = _first_line(head)[0][1:]
    close = _elements(line).close
    return close is not None and line[close] == _CLOSE


@dataclass(frozen=True)
class _Elements:
    """What is in a text that begins inside an array, where an element begins.

    Attributes:
        starts: [elements] the positions of the elements' opening brackets; the last element may lack its end.
        ends: [elements] the positions behind their closing brackets.
        others: the positions of what is between elements and is not blank: commas, or what should not be there.
        close: the position of the bracket that closes the array; None if there is none.
        deepest: how deep the brackets are nested.
    """

    starts: Positions
    ends: Positions
    others: Positions
    close: int | None
    deepest: int


def _elements(data: bytes) -> _Elements:
    view = np.frombuffer(data, np.uint8)
    outside = _outside_strings(data, view)
    # [ and { differ in one bit, and so do ] and }
    upper = view | 0x20
    opening = upper == ord("{")
    brackets = np.flatnonzero((opening | (upper == ord("}"))) & outside)
    depths = np.cumsum(np.where(opening[brackets], 1, -1))
    closing = np.flatnonzero(depths < 0)
    close = int(brackets[closing[0]]) if closing.size else None
    if close is not None:
        brackets, depths = brackets[: closing[0]], depths[: closing[0]]
    opens = opening[brackets]
    starts, ends = brackets[opens & (depths == 1)], brackets[~opens & (depths == 0)] + 1
    limit = len(data) if close is None else close
    steps = np.zeros(limit + 1, np.int8)
    steps[starts] = 1
    # an end and a start may be at the same place
    steps[ends] -= 1
    between = np.cumsum(steps[:limit], dtype=np.int8) == 0
    part = view[:limit]
    for blank in _BLANKS:
        between &= part != blank
    return _Elements(starts, ends, np.flatnonzero(between), close, int(depths.max(initial=0)))


def _outside_strings(data: bytes, view: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return [bytes] whether each byte is outside of strings."""
    quotes = view == _QUOTE
    if b"\\" in data:
        slashes = np.flatnonzero(view == _SLASH)
        # a quote is part of a string if an odd number of backslashes stands before it
        first = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
        last = np.append(first[1:], len(slashes)) - 1
        behind = slashes[last[(last - first) % 2 == 0]] + 1
        quotes[behind[behind < len(view)]] = False
    inside: npt.NDArray[np.uint8] = np.bitwise_xor.accumulate(quotes.view(np.uint8))
    outside: npt.NDArray[np.bool_] = inside == 0
    return outside


class _ArrayPiece(Piece):
    """Objects of an array, of which one may have many lines."""

    def shown(self, start: int) -> str:
        row = b" ".join(self.data[start : start + 8 * SHOWN].split()).decode("utf-8", "replace")
        return repr(row[:SHOWN]) + ("..." if len(row) > SHOWN else "")


class ArrayPieces(Pieces):
    """Reads the text of an array and cuts it into pieces, each of which has whole objects and ends with \\n."""

    def __init__(self, read: Callable[[int], bytes], name: str) -> None:
        """Args: as in `Pieces`."""
        super().__init__(read, False, name)
        #: whether a comma stands before what is read next
        self._behind_comma = False

    def next(self) -> Piece | None:
        """Return the objects that have been read.

        Raises:
            SourceError: what is read is no array of objects, an object is longer than `ROW_BYTES` or nested too deep, or the
                array does not end.
            Exception: whatever `read` raises.
        """
        while not self._ended:
            more = self._read(max(PIECE_BYTES, len(self._rest)))
            data = self._rest + more
            if more and len(data) < PIECE_BYTES:
                self._rest = data
                continue
            if not self._begun:
                data = self._begin(data)
                at = len(data) - len(data.lstrip(_BLANKS))
                data = data[:at] + b" " + data[at + 1 :]
            piece = self._taken(data, ended=not more)
            if piece is not None:
                return piece
        return None

    def _piece(self, data: bytes, line: int, last: bool = False) -> Piece:
        return _ArrayPiece(data, line, last, self._newline)

    def _taken(self, data: bytes, ended: bool) -> Piece | None:
        """Return the objects in the text up to the last comma between them, or to the end of the array, and keep the rest; None
        if there is no whole object."""
        found = _elements(data)
        self._check(data, found)
        if found.close is not None:
            self._check_end(data, found.close)
            end = found.close + 1
        elif ended:
            raise SourceError(
                f"source: cannot read {self.name} as jsonl: its array has no end: it is cut "
                "short, or a quote or bracket is not closed"
            )
        else:
            end = int(found.others[-1]) + 1 if len(found.others) else 0
        self._rest = data[end:] if found.close is None else b""
        if len(self._rest) > ROW_BYTES:
            row = self._rest.lstrip(_BLANKS)
            self._too_long(self._piece(row, self._line_of(data, len(data) - len(row))))
        if not end:
            return None
        self._behind_comma = True
        cut = np.frombuffer(data, np.uint8, end).copy()
        cut[found.others] = ord(" ")
        cut[-1] = ord("\n")
        piece = self._piece(cut.tobytes(), self._line, found.close is not None)
        self._line = self._line_of(data, end)
        return piece

    def _line_of(self, data: bytes, position: int) -> int:
        return self._piece(data, self._line).line_of(position)

    def _check(self, data: bytes, found: _Elements) -> None:
        """Check that objects and commas take turns.

        Raises:
            SourceError: they do not, something else stands between them, or they are nested too deep.
        """
        if found.deepest > parse.DEEPEST:
            raise parse.too_deep(f"a value in line {self._line} or later of {self.name}")
        view = np.frombuffer(data, np.uint8)
        commas = view[found.others] == _COMMA
        objects = view[found.starts] == _OPEN
        in_turn = np.searchsorted(found.ends, found.others, "right") == np.arange(1, len(found.others) + 1)
        after = np.searchsorted(found.others, found.starts) == np.arange(len(found.starts))
        odd = [int(one[0]) for one in (found.others[~commas], found.starts[~objects]) if len(one)]
        if odd:
            self._refuse(data, min(odd), "an element of its array is no object")
        lone = [int(one[0]) for one in (found.others[~in_turn], found.starts[~after]) if len(one)]
        if found.close is not None:
            if data[found.close] != _CLOSE:
                self._refuse(data, found.close, "a bracket closes what is not open")
            if len(found.others) >= max(len(found.starts), 1) or (self._behind_comma and not len(found.starts)):
                lone.append(int(found.others[-1]) if len(found.others) else found.close)
        if lone:
            self._refuse(data, min(lone), "between two objects there must be one comma")

    def _check_end(self, data: bytes, close: int) -> None:
        """Check that nothing comes behind the array. Reads the text to its end.

        Raises:
            SourceError: something does.
        """
        rest, line = data[close + 1 :], self._line_of(data, close + 1)
        while rest:
            if rest.strip(_BLANKS):
                at = len(rest) - len(rest.lstrip(_BLANKS))
                piece = self._piece(rest, line)
                raise self._error(piece, at, "something follows the end of its array")
            line += rest.count(self._newline)
            rest = self._read(PIECE_BYTES)
        self._ended = True

    def _refuse(self, data: bytes, position: int, what: str) -> NoReturn:
        raise self._error(self._piece(data, self._line), position, what)

    def _error(self, piece: Piece, position: int, what: str) -> SourceError:
        return SourceError(
            f"source: cannot read {self.name} as jsonl: line {piece.line_of(position)}: {what}: {piece.shown(position)}"
        )


class ArrayParser(parse_json.JsonParser):
    """Parses the pieces of `ArrayPieces`."""

    def whole(self, piece: Piece) -> pa.Table:
        # Arrow takes what comes behind the last end of a line for the beginning of another block
        return super().whole(piece if piece.data.endswith(b"\n") else replace(piece, data=piece.data + b"\n"))

    def _ends(self, piece: Piece) -> Positions:
        # each part ends where the next object begins, so that what begins behind an end is an object
        return _elements(piece.data).starts[1:]

    def _check(self, piece: Piece) -> None:
        """Do nothing: the pieces were checked when they were cut."""

    def _has_null(self, data: bytes) -> bool:
        return False
