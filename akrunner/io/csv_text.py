"""The bytes of a CSV on their way to `Pieces`: decoded, without the lines that are no rows, with `,` and `"` as marks.

::

    read(n) -> UTF-8 -> without first lines -> marks swapped -> without comments -> Pieces
                                  |
                                  +-> the first 64 kB: what stands between cells, if nobody said it
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from akrunner.errors import SourceError
from akrunner.io.compression import endings
from akrunner.io.csv_options import COMMA, PLAIN, CsvOptions, word_of
from akrunner.io.lines import LooseQuote, csv_row_ends
from akrunner.io.text import BOM, ROW_BYTES, SHOWN, is_other, json_in

#: how many bytes of a text are looked at
HEAD_BYTES = 1 << 16
#: what may stand between cells, if nobody said it
CANDIDATES = (",", ";", "\t", "|")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
#: endings of names of files that have tabs between cells
TABS = (".tsv", ".tab")
#: the same, also of compressed ones
TAB_ENDINGS = endings(*TABS)
_NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*")
_YEAR = re.compile(r"(1[89]|20)\d\d")
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")


class CsvText:
    """One text, read from its beginning.

    Attributes:
        options: how it is written; settled once its beginning was looked at.
        notes: what was found that nobody had said.
        skipped: how many lines stand before its rows and its header.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        options: CsvOptions | None,
        name: str,
        growing: bool = False,
        guessed: bool = False,
    ) -> None:
        """Args:
        read: as for `Pieces`.
        options: what the user said; None: nothing.
        name: the text's name in errors.
        growing: whether `read` waits for what is still being written; then the first rows are all that is looked at.
        guessed: whether nobody has said that it is CSV; then JSON is refused.
        """
        self._guessed = guessed
        self.options = options or CsvOptions()
        self._tabs = name.lower().endswith(TAB_ENDINGS)
        self.notes: list[str] = []
        self.skipped = 0
        self._source = read
        self._name = name
        self._growing = growing
        self._decode: Callable[[bytes, bool], bytes] | None = None
        self._ended = False
        self._begun = False
        self._head = b""
        self._rest = b""
        self._comment: re.Pattern[bytes] | None = None
        self._there: bytes | None = None

    def settle(self) -> CsvOptions:
        """Look at the text's beginning, and wait for it; return how the text is written.

        Raises:
            SourceError: the beginning does not tell what stands between cells, or is not text; or it is JSON, and nobody has
                said that it is CSV.
        """
        head, other = self._beginning()
        found = json_in(head) if self._guessed and not other else None
        if found is not None:
            raise SourceError(f"source: {self._name} {found}")
        if not self.options.delimiter:
            self.options = replace(self.options, delimiter="," if other else self._sniffed(head))
        if self.options.header is True and not other:
            self._look_at_names(head)
        self._go_on(head)
        return self.options

    def unseen(self) -> CsvOptions:
        """Return how the text is written, as far as that is known without looking at it."""
        return replace(self.options, delimiter=self.options.delimiter or ("\t" if self._tabs else ","))

    def read(self, size: int) -> bytes:
        """Return more of the text; empty if it has ended. Nobody looked at the beginning of a text that was not settled: a comma
        is between its cells, or a tab, unless the user or the name says otherwise.

        Raises:
            SourceError: the bytes are not of the text's encoding.
        """
        if not self._begun:
            self.options = self.unseen()
            self._go_on(self._beginning()[0])
        if self._comment is not None:
            return self._without_comments(size)
        return self._marked(size)

    def _go_on(self, head: bytes) -> None:
        self._begun = True
        self._head = head
        self._there = self.options.there
        if self.options.comment:
            mark = self.options.comment.encode()
            mark = re.escape(mark.translate(self._there) if self._there is not None else mark)
            # a quoted cell may contain lines that look like comments, and a comment may contain quotes
            self._comment = re.compile(
                rb'((?:\A|(?<=[,\n\r]))"[^"]*(?:""[^"]*)*(?:"|\Z))|(?:\A|(?<=[\n\r]))' + mark + rb"[^\r\n]*"
            )

    def _marked(self, size: int) -> bytes:
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
        else:
            data = self._utf8(size)
        return data if self._there is None else data.translate(self._there)

    def _without_comments(self, size: int) -> bytes:
        """Return whole rows, with empty lines in place of comments, so that lines keep their numbers."""
        assert self._comment is not None
        while True:
            more = self._marked(size)
            data = self._rest + more
            end = len(data) if not more else max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
            if more and not end:
                self._rest = data
                continue
            text = self._comment.sub(rb"\1", data[:end])
            whole = _whole_rows(text) if more else len(text)
            # a row that ends in what is read next begins the next part, where its cells are found again
            self._rest = text[whole:] + data[end:]
            if whole or not more:
                return text[:whole]

    def _utf8(self, size: int) -> bytes:
        """Return more of the text as UTF-8; empty if it has ended."""
        while not self._ended:
            data = self._source(size)
            self._ended = not data
            text = self._decode(data, self._ended) if self._decode is not None else data
            if text:
                return text
        return b""

    def _beginning(self) -> tuple[bytes, bool]:
        """Return (the beginning of the text behind the lines that are left out, whether it is no text at all)."""
        raw = self._source(HEAD_BYTES)
        while 0 < len(raw) < 4 and (more := self._source(HEAD_BYTES)):
            raw += more
        self._ended = not raw
        encoding = self.options.encoding
        if not encoding and raw.startswith(_UTF16):
            encoding = "utf-16"
            self.notes.append(f"source: {self._name} is read as UTF-16, as it begins")
        elif not encoding and is_other(raw):
            return raw, True
        self.options = replace(self.options, encoding=encoding or "utf-8")
        if self.options.encoding not in PLAIN:
            self._decode = _Decoder(self.options.encoding, self._name).decode
        data = self._decode(raw, self._ended) if self._decode is not None else raw
        while True:
            head = self._behind(data.removeprefix(BOM))
            if self._ended or (head and _has_line(head) and (self._growing or len(head) >= HEAD_BYTES)):
                return head or b"", False
            if len(data) > ROW_BYTES:
                # the pieces say which line is too long
                return data, True
            data += self._utf8(HEAD_BYTES)

    def _behind(self, data: bytes) -> bytes | None:
        """Return what is behind the first lines that are left out; None if they have not ended."""
        newline = b"\r" if b"\n" not in data and b"\r" in data[:-1] else b"\n"
        at, self.skipped = 0, 0
        mark = self.options.comment.encode()
        while self.skipped < self.options.skip or (mark and data.startswith(mark, at)):
            end = data.find(newline, at) + 1
            if not end:
                return None
            at, self.skipped = end, self.skipped + 1
        # the next line may be a comment, too
        return data[at:] if at < len(data) or not mark or self._ended else None

    def _sniffed(self, head: bytes) -> str:
        """Return what stands between cells. Where a comma can be it, it is: most files are so, and all were read so.

        Raises:
            SourceError: several other characters may.
        """
        rows = _rows(head, self._ended)
        first = rows.lstrip("\r\n").split("\n")[0]
        if self._tabs and "\t" in first:
            return "\t"
        there = [mark for mark in CANDIDATES if mark in first]
        if there in ([], [","]):
            # a name such as t.tsv is not proof that a file of one column has a comma in its name
            return "," if not self._tabs or not there or self._is_even(rows, ",") else "\t"
        widths = {mark: _widths(rows, mark, self.options.quote, self._ended) for mark in there}
        if "," in there and not widths[","]:
            # a cell is too long to be looked at here; the parser reads it
            return ","
        there = [mark for mark in there if widths[mark] and widths[mark][0] > 1]
        even = [mark for mark in there if len(set(widths[mark])) == 1]
        if "," in even:
            others = [mark for mark in even if mark != ","]
            if others:
                self.notes.append(self._also(others, widths))
            return ","
        if not there or ("," in there and len(even) != 1):
            # where a row has more or fewer cells, the parser says which
            return ","
        if len(even) == 1:
            self.notes.append(self._word(even[0], rows))
            return even[0]
        line = first.rstrip("\r")
        what = "not all rows have as many cells" if not even else "all rows have as many cells either way"
        marks = even or there
        raise SourceError(
            f"source: {self._name} may be {' or '.join(f'{mark!r}-separated ({widths[mark][0]} cells)' for mark in marks)}, and "
            f"{what}; give input_csv= (--input-csv) {' or '.join(f'delimiter={word_of(mark)}' for mark in marks)}: "
            f"{line[:SHOWN]!r}{'...' if len(line) > SHOWN else ''}"
        )

    def _is_even(self, rows: str, mark: str) -> bool:
        widths = _widths(rows, mark, self.options.quote, self._ended)
        return not widths or len(set(widths)) == 1

    def _also(self, others: list[str], widths: Mapping[str, list[int]]) -> str:
        """Return the note that a comma is between cells, and that others could be."""
        ways = " or ".join(f"{mark!r} ({widths[mark][0]} cells, delimiter={word_of(mark)})" for mark in others)
        return (
            f"source: {self._name} is read as ','-separated ({widths[','][0]} cells); {ways} would part its rows evenly, too: "
            "input_csv= (--input-csv) says which it is"
        )

    def _look_at_names(self, head: bytes) -> None:
        """Note that the first line may be a row: it has numbers, and no text above a number, as names would be."""
        rows = list(itertools.islice(_tried(_rows(head, self._ended), self.options.delimiter, self.options.quote), 2))
        if len(rows) < 2 or len(rows[0]) != len(rows[1]):
            return
        pairs = [(bool(_NUMBER.fullmatch(name)), bool(_NUMBER.fullmatch(cell))) for name, cell in zip(*rows)]
        # columns may well be called by their years
        numbers = [name for name, (number, _) in zip(rows[0], pairs) if number and not _YEAR.fullmatch(name)]
        if numbers and (False, True) not in pairs:
            self.notes.append(
                f"source: the first line of {self._name} is taken for the columns' names, and {numbers[0]!r} is a number; if it is a "
                "row, give input_csv= (--input-csv) header=no, or the names (header=id,price)"
            )

    def _word(self, mark: str, rows: str) -> str:
        text = f"source: {self._name} is read as {mark!r}-separated; input_csv= (--input-csv) delimiter={word_of(mark)} says so, too"
        cells = next(iter(list(_read(rows, mark, self.options.quote))[1:]), [])
        if self.options.decimal == "." and any(map(_DECIMAL_COMMA.fullmatch, cells)):
            text += "; numbers with a decimal comma stay text: decimal=comma makes them numbers"
        return text


class _Decoder:
    """Turns bytes of an encoding into UTF-8."""

    def __init__(self, encoding: str, name: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._encoding = encoding
        self._name = name
        self._line = 1

    def decode(self, data: bytes, ended: bool) -> bytes:
        try:
            text = self._decoder.decode(data, ended)
        except UnicodeDecodeError as e:
            read = e.object[: e.start].decode(self._encoding, "replace")
            raise SourceError(
                f"source: line {self._line + read.count(chr(10))} of {self._name} is not {self._encoding} ({e.reason}); give "
                "another encoding in input_csv= (--input-csv)"
            ) from None
        self._line += text.count("\n")
        # half of a surrogate pair is no character, and UTF-8 cannot hold it
        return text.encode("utf-8", "replace")


def looks_separated(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a table of text: every row has as many cells, and more than one."""
    if is_other(head) and not head.startswith(_UTF16):
        return False
    encoding = "utf-16" if head.startswith(_UTF16) else "utf-8"
    ended = len(head) < HEAD_BYTES
    rows = _rows(head.decode(encoding, "replace").lstrip("\ufeff").encode(), ended)
    widths = [_widths(rows, mark, COMMA.quote, ended) for mark in CANDIDATES]
    return any(len(one) > 1 and one[0] > 1 and len(set(one)) == 1 for one in widths)


def _has_line(data: bytes) -> bool:
    start = len(data) - len(data.lstrip(b"\r\n"))
    return data.find(b"\n", start) >= 0 or data.find(b"\r", start, len(data) - 1) >= 0


def _rows(head: bytes, ended: bool) -> str:
    """Return the whole lines of a text's beginning, with \\n at their ends."""
    text = head.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return text if ended else text[: text.rfind("\n") + 1]


def _read(rows: str, mark: str, quote: str) -> Iterator[list[str]]:
    lines = io.StringIO(rows, newline="")
    if not quote:
        return csv.reader(lines, delimiter=mark, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=mark, quotechar=quote)


def _tried(rows: str, mark: str, quote: str) -> Iterator[list[str]]:
    """Go through the rows that are not empty, as far as they can be read."""
    with contextlib.suppress(csv.Error):
        yield from filter(None, _read(rows, mark, quote))


def _widths(rows: str, mark: str, quote: str, ended: bool) -> list[int]:
    """Return the number of cells of each row; [] if the rows cannot be read with this mark."""
    try:
        found = [len(row) for row in _read(rows, mark, quote) if row]
    except csv.Error:
        return []
    # the last row may be the beginning of a quoted cell of several lines
    return found if ended or len(found) < 2 else found[:-1]


def _whole_rows(text: bytes) -> int:
    """Return the length of the rows that have ended, of a text that ends with a line. All of it if a quote is wrong, or a row too
    long: the parser says so."""
    if b'"' not in text or len(text) > ROW_BYTES:
        return len(text)
    try:
        ends, opened = csv_row_ends(text if b"\n" in text else text.replace(b"\r", b"\n"))
    except LooseQuote:
        return len(text)
    if opened is None:
        return len(text)
    return int(ends[-1]) if ends.size else 0
