"""Cuts text (CSV, JSON lines) into pieces of whole rows, each with the number of its line in the file.

::

    read(n): bytes of a file, a pipe, a URL -> Pieces: cut behind the last row that has ended -> Piece
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from akrunner.errors import SourceError
from akrunner.io.bad_rows import BadRow, BadRows
from akrunner.io.lines import LooseQuote, count, csv_row_ends, recovered

#: about how many bytes are read at a time
PIECE_BYTES = 4 << 20
#: no row is longer than this; if one seems to be, a quote is probably not closed
ROW_BYTES = 32 << 20
#: why a row is bad whose quote has no end
NOT_CLOSED = "a quote is not closed, or closed in the middle of another row; double it if it belongs to the text"
#: how many characters of a row an error shows
SHOWN = 80

#: the mark with which some programs begin UTF-8
BOM = b"\xef\xbb\xbf"
#: the first bytes of files that are neither CSV nor JSON text -> what the file is, and what to do
_OTHER = {
    b"\xff\xfe": "is UTF-16; convert it: iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "is UTF-16; convert it: iconv -f utf-16 -t utf-8",
    b"PAR1": "is a Parquet file by its content; give input_format= (--input-format) parquet",
    b"ARROW1": "is an Arrow file by its content; give input_format= (--input-format) arrow",
    b"\x1f\x8b": "is compressed with gzip by its content; unpack it first",
    b"BZh": "is compressed with bzip2 by its content; unpack it first",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd by its content; unpack it first",
    b"\xfd7zXZ\0": "is compressed with xz by its content; unpack it first",
    b"PK\x03\x04": "is a zip by its content: an Excel file (give input_format=, --input-format, excel), numpy's .npz (npz), or an "
    "archive that must be unpacked first",
    b"Obj\x01": "is an Avro file by its content; give input_format= (--input-format) avro",
    b"\x93NUM": "is an .npy file by its content; give input_format= (--input-format) npy",
}
#: the same of JSON that nobody has called CSV
_JSON_LINES = "is JSON lines by its content; give input_format= (--input-format) jsonl, or csv if these are cells"
_JSON_ARRAY = "is a JSON array by its content; give input_format= (--input-format) json, or csv if these are cells"


def is_other(head: bytes) -> str | None:
    """Return what a file that begins with these bytes is, and what to do; None if it may be text."""
    return next((what for magic, what in _OTHER.items() if head.startswith(magic)), None)


def json_in(head: bytes) -> str | None:
    """Return which JSON a text that begins with these bytes is, and what to do; None if neither its first line nor the first
    element of an array is an object with a name in it."""
    text = head.removeprefix(BOM).decode("utf-8", "replace").lstrip()
    if not re.match(r'(\[\s*)?\{\s*"', text):
        return None
    lines = text.startswith("{")
    try:
        _, end = json.JSONDecoder().raw_decode(text, text.index("{"))
    except (ValueError, RecursionError):
        return None
    if lines:
        # behind the value of a cell, others follow
        return _JSON_LINES if not text[end:].partition("\n")[0].strip() else None
    return _JSON_ARRAY if text[end:].lstrip()[:1] in ("", ",", "]") else None


@dataclass(frozen=True)
class Piece:
    """Whole rows of a text.

    Attributes:
        data: the rows.
        line: the number in the file of the first line, from 1.
        last: whether the text ends with this piece.
        newline: the bytes that end a line.
        back: a table for `bytes.translate` that turns `data` into the bytes of the file; None: they are the same.
    """

    data: bytes
    line: int
    last: bool
    newline: bytes = b"\n"
    back: bytes | None = None

    def cut(self, start: int) -> Piece:
        """Return the part of the piece behind `start`."""
        return replace(self, data=self.data[start:], line=self.line_of(start))

    def line_of(self, position: int) -> int:
        return self.line + count(self.data[:position], self.newline)

    def of_file(self, start: int, end: int) -> bytes:
        """Return the bytes of the file, without ends of lines behind them, that stand between two positions of `data`."""
        data = self.data[start:end].rstrip(b"\r\n")
        return data.translate(self.back) if self.back is not None else data

    def shown(self, start: int) -> str:
        """Return the beginning of the row that starts at `start`, for an error."""
        line = self.data[start : start + 4 * SHOWN].split(self.newline)[0].rstrip(b"\r")
        row = (line.translate(self.back) if self.back is not None else line).decode("utf-8", "replace")
        return repr(row[:SHOWN]) + ("..." if len(row) > SHOWN else "")


class Pieces:
    """Reads a text and cuts it into pieces, each of which ends with a whole row.

    Attributes:
        name: the text's name in errors.
        quoted: whether the text is CSV, whose quoted cells may contain ends of lines.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        quoted: bool,
        name: str,
        growing: bool = False,
        back: bytes | None = None,
        skipped: Callable[[], int] = lambda: 0,
        bad: BadRows | None = None,
    ) -> None:
        """Args:
        read: called with a number of bytes; returns at most as many, as soon as there are any; empty: the text has ended.
        growing: whether rows are given out without waiting for a whole piece of them.
        back: as in `Piece`.
        skipped: called when the text has begun; returns how many lines of the file stand before what `read` returns.
        bad: takes rows whose quotes are not closed; None: they are errors.
        """
        self._back = back
        self._skipped = skipped
        self._bad = bad
        self.name = name
        self.quoted = quoted
        self._read = read
        self._growing = growing
        self._rest = b""
        self._line = 1
        self._begun = False
        self._ended = False
        self._newline = b"\n"

    def next(self) -> Piece | None:
        """Return what has been read, up to the end of its last whole row; wait until there is one. Return None if the text has
        ended.

        Raises:
            SourceError: no row ends within `ROW_BYTES`, or it is not text.
            Exception: whatever `read` raises.
        """
        while not self._ended:
            more = self._read(max(PIECE_BYTES, len(self._rest)))
            self._ended = not more
            data = self._rest + more
            if len(data) < PIECE_BYTES and not (self._growing or self._ended):
                self._rest = data
                continue
            if not self._begun:
                # what ends a line is known once a line has ended, and, if it is \r, once more bytes have come behind it
                open_ = b"\n" not in data and data.find(b"\r", 0, len(data) - 1) < 0
                if (len(data) < 4 or (open_ and len(data) <= ROW_BYTES)) and not self._ended:
                    self._rest = data
                    continue
                data = self._begin(data)
            end = len(data) if self._ended else self._cut(data)
            self._rest = data[end:]
            if len(self._rest) > ROW_BYTES:
                rest = self._piece(self._rest, self._line + count(data[:end], self._newline))
                if self._bad is None or self._opened(rest) is None:
                    self._too_long(rest)
            if end:
                piece = self._piece(data[:end] if self._rest else data, self._line, self._ended)
                self._line += count(piece.data, self._newline)
                return piece
            if len(self._rest) > ROW_BYTES:
                self._leave_out_line()
        return None

    def put_back(self, piece: Piece, start: int) -> Piece:
        """Put back what is behind `start` of the latest piece, so that the next piece begins with it; return the rest of the
        piece."""
        self._rest = piece.data[start:] + self._rest
        self._line = piece.line_of(start)
        if len(self._rest) > ROW_BYTES and self._bad is None:
            self._too_long(self._piece(self._rest, self._line))
        return self._piece(piece.data[:start], piece.line)

    def _piece(self, data: bytes, line: int, last: bool = False) -> Piece:
        return Piece(data, line, last, self._newline, self._back)

    def _begin(self, data: bytes) -> bytes:
        self._begun = True
        self._line += self._skipped()
        other = is_other(data)
        if other is not None:
            raise SourceError(f"source: {self.name} {other}")
        if b"\n" not in data and b"\r" in data[:-1]:
            self._newline = b"\r"
        return data[len(BOM) :] if data.startswith(BOM) else data

    def _cut(self, data: bytes) -> int:
        end = data.rfind(self._newline) + 1
        if end and self.quoted and b'"' in data and count(data[:end], b'"') % 2:
            try:
                ends, _ = csv_row_ends(data)
            except LooseQuote as e:
                if self._bad is None:
                    self.not_closed(self._piece(data, self._line), e.position)
                ends, _, _ = recovered(data, False)
            end = int(ends[-1]) if ends.size else 0
        return end

    def _opened(self, piece: Piece) -> int | None:
        """Return the position of the quote that makes a row too long; None if no quote does."""
        if not self.quoted or b'"' not in piece.data:
            return None
        try:
            return csv_row_ends(piece.data)[1]
        except LooseQuote as e:
            return e.position

    def _leave_out_line(self) -> None:
        """Give the first row of what is left, up to the line of a quote that is never closed, to the bad rows."""
        piece = self._piece(self._rest, self._line)
        end = self._rest.find(self._newline, self._opened(piece) or 0) + 1
        if not end or self._bad is None:
            self._too_long(piece)
        self._bad.take(self.name, [BadRow(self._line, NOT_CLOSED, piece.of_file(0, end))])
        self._rest = self._rest[end:]
        self._line = piece.line_of(end)

    def _too_long(self, piece: Piece) -> NoReturn:
        opened = self._opened(piece)
        if opened is not None:
            self.not_closed(piece, opened)
        raise SourceError(
            f"source: the row in line {piece.line} of {self.name} is longer than {ROW_BYTES >> 20} MiB, too long for text: a "
            f"Parquet, Arrow or TFRecord file may have it: {piece.shown(0)}"
        )

    def not_closed(self, piece: Piece, position: int) -> NoReturn:
        """Raise the error for a quote that is not closed.

        Raises:
            SourceError: always; it shows the row in which the quote is.
        """
        start = max(piece.data.rfind(piece.newline, 0, position) + 1, 0)
        raise SourceError(
            f"source: a quote that opens in line {piece.line_of(position)} of {self.name} is not closed, or closed in the "
            f"middle of another row; double it if it belongs to the text: {piece.shown(start)}"
        )
