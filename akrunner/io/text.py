"""Text (CSV, JSON lines) -> pieces of whole rows, of which the line in the file is known.

::

    read(n): bytes of a file, a pipe, a URL -> Pieces: cut behind the last row that has ended -> Piece
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from akrunner.errors import SourceError
from akrunner.io.lines import LooseQuote, count, csv_row_ends

#: bytes read at a time, about
PIECE_BYTES = 4 << 20
#: no row is longer: rather a quote is never closed
ROW_BYTES = 32 << 20
#: how much of a row is shown in an error
SHOWN = 80

_BOM = b"\xef\xbb\xbf"
#: what a file begins with that is no text of ours -> what it is, and what to do
_OTHER = {
    b"\xff\xfe": "is UTF-16; convert it: iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "is UTF-16; convert it: iconv -f utf-16 -t utf-8",
    b"PAR1": "is a Parquet file by its content; give input_format= (--input-format) parquet",
    b"ARROW1": "is an Arrow file by its content; give input_format= (--input-format) arrow",
    b"\x1f\x8b": "is compressed with gzip by its content; its name should end in .gz",
    b"BZh": "is compressed with bzip2 by its content; its name should end in .bz2",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd by its content; unpack it first",
    b"PK\x03\x04": "is a zip archive (or an Excel file) by its content; unpack or convert it first",
}


@dataclass(frozen=True)
class Piece:
    """Whole rows of a text.

    Attributes: data; line: number of its first line in the file, from 1; last: the text ends with it; newline: what ends its lines; back:
    table for `bytes.translate` to what stands in the file, None: that is it.
    """

    data: bytes
    line: int
    last: bool
    newline: bytes = b"\n"
    back: bytes | None = None

    def cut(self, start: int) -> Piece:
        """What is behind `start`."""
        return replace(self, data=self.data[start:], line=self.line_of(start))

    def line_of(self, position: int) -> int:
        return self.line + count(self.data[:position], self.newline)

    def shown(self, start: int) -> str:
        """The beginning of the row that starts there, for an error."""
        line = self.data[start : start + 4 * SHOWN].split(self.newline)[0].rstrip(b"\r")
        row = (line.translate(self.back) if self.back is not None else line).decode("utf-8", "replace")
        return repr(row[:SHOWN]) + ("..." if len(row) > SHOWN else "")


class Pieces:
    """Cuts what it reads behind the last row that has ended.

    Attributes: name: of the text, for errors; quoted: it is CSV, whose cells may have ends of lines in quotes.
    """

    def __init__(
        self, read: Callable[[int], bytes], quoted: bool, name: str, growing: bool = False, back: bytes | None = None
    ) -> None:
        """Args: read: as many bytes as there are, at most so many; none: the text has ended; growing: rows are not to wait for others;
        back: as of `Piece`."""
        self._back = back
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
        """What has come, up to the end of its last whole row; waits for one. None: the text has ended.

        Raises: SourceError: no row ends within `ROW_BYTES`; it is no text. Whatever `read` raises.
        """
        while not self._ended:
            more = self._read(max(PIECE_BYTES, len(self._rest)))
            self._ended = not more
            data = self._rest + more
            if len(data) < PIECE_BYTES and not (self._growing or self._ended):
                self._rest = data
                continue
            if not self._begun:
                # what ends a line is known when one has ended, and more than a \r of it has come
                open_ = b"\n" not in data and data.find(b"\r", 0, len(data) - 1) < 0
                if (len(data) < 4 or (open_ and len(data) <= ROW_BYTES)) and not self._ended:
                    self._rest = data
                    continue
                data = self._begin(data)
            end = len(data) if self._ended else self._cut(data)
            self._rest = data[end:]
            if len(self._rest) > ROW_BYTES:
                self._too_long(self._piece(self._rest, self._line + count(data[:end], self._newline)))
            if end:
                piece = self._piece(data[:end] if self._rest else data, self._line, self._ended)
                self._line += count(piece.data, self._newline)
                return piece
        return None

    def put_back(self, piece: Piece, start: int) -> Piece:
        """Join what is behind `start` of the piece that was given last to what comes next. Returns: what is left of the piece."""
        self._rest = piece.data[start:] + self._rest
        self._line = piece.line_of(start)
        if len(self._rest) > ROW_BYTES:
            self._too_long(self._piece(self._rest, self._line))
        return self._piece(piece.data[:start], piece.line)

    def _piece(self, data: bytes, line: int, last: bool = False) -> Piece:
        return Piece(data, line, last, self._newline, self._back)

    def _begin(self, data: bytes) -> bytes:
        self._begun = True
        other = next((what for magic, what in _OTHER.items() if data.startswith(magic)), None)
        if other is not None:
            raise SourceError(f"source: {self.name} {other}")
        if b"\n" not in data and b"\r" in data[:-1]:
            self._newline = b"\r"
        return data[len(_BOM) :] if data.startswith(_BOM) else data

    def _cut(self, data: bytes) -> int:
        end = data.rfind(self._newline) + 1
        if end and self.quoted and b'"' in data and count(data[:end], b'"') % 2:
            try:
                ends, _ = csv_row_ends(data)
            except LooseQuote as e:
                self.not_closed(self._piece(data, self._line), e.position)
            end = int(ends[-1]) if ends.size else 0
        return end

    def _too_long(self, piece: Piece) -> NoReturn:
        if self.quoted and b'"' in piece.data:
            try:
                opened = csv_row_ends(piece.data)[1]
            except LooseQuote as e:
                opened = e.position
            if opened is not None:
                self.not_closed(piece, opened)
        raise SourceError(
            f"source: the row in line {piece.line} of {self.name} is longer than {ROW_BYTES >> 20} MiB, too long for text: a "
            f"Parquet, Arrow or TFRecord file may have it: {piece.shown(0)}"
        )

    def not_closed(self, piece: Piece, position: int) -> NoReturn:
        """Raises: SourceError: the quote there."""
        start = max(piece.data.rfind(piece.newline, 0, position) + 1, 0)
        raise SourceError(
            f"source: a quote that opens in line {piece.line_of(position)} of {self.name} is not closed, or closed in the middle of "
            f"another row; double it if it belongs to the text: {piece.shown(start)}"
        )
