"""Parses text whose bad rows do not fail the job: they are found, and given to the job's `BadRows`.

::

    piece -> parse -> a batch                                  no row is bad: one call of Arrow's for all rows
                  x-> guess which rows are bad                 all at once
                      the others: parse halves, halves of halves if they fail after all
                      those, each by itself                    a row that fails alone is bad
                      the piece without these rows -> parse -> a batch
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io import suspects
from akrunner.io.bad_rows import BadRow, BadRows
from akrunner.io.casts import asked
from akrunner.io.lines import Positions, count, line_ends, recovered
from akrunner.io.parse import HERE, UNREADABLE, Parser, in_words, newlined
from akrunner.io.text import NOT_CLOSED, Piece, Pieces

#: what an error says before the reason
_BEFORE = re.compile(rf"^(?:source|input_schema): (?:{HERE},? |row \d+, )?")
#: numbers of rows, ascending
_Rows = np.ndarray[tuple[int], np.dtype[np.int64]]
_WRONG = (SourceError, *UNREADABLE)


def tolerant(parser: Parser, pieces: Pieces, bad: BadRows | None, wanted: pa.Schema | None) -> Parser:
    """Return a parser that leaves out bad rows as `Tolerant` does; the parser itself if `bad` is None."""
    return parser if bad is None else Tolerant(parser, pieces, bad, wanted)


class Tolerant:
    """A parser that leaves out bad rows.

    Attributes:
        form, name, names, asked, apart: those of the parser that it uses.
    """

    def __init__(self, parser: Parser, pieces: Pieces, bad: BadRows, wanted: pa.Schema | None) -> None:
        """Args:
        parser: parses the rows.
        pieces: the text.
        bad: takes the bad rows.
        wanted: the columns that the user asked for, with their types and NOT NULL: a row that does not fit them is bad, too.
        """
        parser.apart = self.apart = True
        self.form, self.name, self.asked = parser.form, parser.name, parser.asked
        self._parser = parser
        self._pieces = pieces
        self._bad = bad
        self._wanted = wanted

    @property
    def names(self) -> list[str] | None:
        return self._parser.names

    @names.setter
    def names(self, names: list[str] | None) -> None:
        self._parser.names = names

    @property
    def schema(self) -> pa.Schema | None:
        return self._parser.schema

    @schema.setter
    def schema(self, schema: pa.Schema | None) -> None:
        self._parser.schema = schema

    def seen(self, data: bytes) -> None:
        self._parser.seen(data)

    def headed(self, piece: Piece) -> Piece:
        return self._parser.headed(piece)

    def whole(self, piece: Piece) -> pa.Table:
        return self._parser.whole(piece)

    def suspected(self, piece: Piece, starts: list[int], wanted: pa.Schema | None) -> suspects.Suspected | None:
        return self._parser.suspected(piece, starts, wanted)

    def end(self) -> pa.Schema:
        return self._parser.end()

    def parse(self, piece: Piece) -> pa.RecordBatch:
        """Parse a piece without its bad rows.

        Raises:
            SourceError: the line that names the columns cannot be read, or too many rows are bad.
        """
        piece = self._parser.headed(piece)
        if self._pieces.quoted and b'"' in piece.data:
            ends, loose, opened = recovered(newlined(piece), piece.last)
            if opened is not None:
                piece = self._pieces.put_back(piece, int(ends[-1]) if ends.size else 0)
        else:
            ends, loose = None, []
        batch = self._good(piece) if not loose else None
        if batch is None:
            batch = self._without_bad(piece, line_ends(newlined(piece)) if ends is None else ends, loose)
        if batch.num_rows and not batch.num_columns:
            raise SourceError(
                f"source: cannot read {self.name} as {self.form}: its first rows are objects without a column: {{}}"
            )
        self._parser.seen(piece.data)
        self._bad.were_read(batch.num_rows)
        return batch

    def rows(self, piece: Piece) -> pa.RecordBatch:
        """Parse rows, all of which must be good.

        Raises:
            Exception: one of `_WRONG`: a row is bad. The parser's schema is then as it was.
        """
        schema = self._parser.schema
        try:
            batch = self._parser.rows(piece)
            for field in self._wanted or ():
                if field.name in batch.schema.names:
                    asked(batch.column(field.name), field, 0)
        except BaseException:
            self._parser.schema = schema
            raise
        return batch

    def _good(self, piece: Piece) -> pa.RecordBatch | None:
        """Return the rows of a piece; None if one of them is bad."""
        with contextlib.suppress(*_WRONG):
            return self.rows(piece)
        return None

    def _without_bad(self, piece: Piece, ends: Positions, loose: list[int]) -> pa.RecordBatch:
        """Return the rows of a piece without the bad ones, which are given to `BadRows`."""
        behind = ends.tolist()
        if not behind or behind[-1] < len(piece.data):
            behind.append(len(piece.data))
        starts = [0, *behind[:-1]]
        search = _Search(self, piece, starts, behind, self._bad.room)
        opens = sorted(starts.index(start) for start in loose)
        search.found += [(row, NOT_CLOSED) for row in opens]
        rows = np.delete(np.arange(len(starts)), opens)
        suspected = self.suspected(search.joined(rows.tolist()), search.starts_of(rows), self._wanted)
        if suspected is None or 2 * np.count_nonzero(suspected) > len(rows):
            good = [*search.good(rows)]
        else:
            # the guess of all rows at once spares most of the halving; whether it is right is seen by parsing
            good = [*search.good(rows[~suspected]), *search.each(rows[suspected])]
        try:
            return self._joint(search, np.sort(np.concatenate([np.zeros(0, np.int64), *good])).tolist())
        finally:
            self._give(piece, starts, behind, sorted(search.found))

    def _joint(self, search: _Search, rows: list[int]) -> pa.RecordBatch:
        """Return the rows that are good each by itself. Where the types are still open, the first row that does not fit the
        rows before it is bad."""
        while not search.full:
            batch = self._good(search.joined(rows))
            if batch is not None:
                return batch
            low, high = 0, len(rows) - 1
            reason = ""
            while low < high:
                middle = (low + high) // 2
                why = search.why(search.joined(rows[: middle + 1]))
                if why is None:
                    low = middle + 1
                else:
                    reason, high = why, middle
            search.found.append((rows[low], reason or search.why(search.joined(rows[: low + 1])) or "it does not parse"))
            del rows[low]
        return self._empty()

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], self._parser.schema or pa.schema([]))

    def _give(self, piece: Piece, starts: list[int], ends: list[int], found: list[tuple[int, str]]) -> None:
        line, counted = piece.line, 0
        rows = []
        for row, reason in found:
            line += count(piece.data[counted : starts[row]], piece.newline)
            counted = starts[row]
            rows.append(BadRow(line, reason, piece.of_file(starts[row], ends[row])))
        self._bad.take(self.name, rows)


class _Search:
    """Finds the bad rows of a piece by halving.

    Attributes:
        found: (row, reason) of each bad row.
    """

    def __init__(self, parser: Tolerant, piece: Piece, starts: list[int], ends: list[int], room: int) -> None:
        self.found: list[tuple[int, str]] = []
        self._parser = parser
        self._piece = piece
        self._starts = starts
        self._ends = ends
        self._room = room

    @property
    def full(self) -> bool:
        """Whether more rows are bad than the job allows, so that no others need to be found."""
        return len(self.found) > self._room

    def good(self, rows: _Rows) -> Iterator[_Rows]:
        """Yield rows that can be read, many at a time; add the other rows to `found`."""
        waiting = [rows] if rows.size else []
        while waiting and not self.full:
            rows = waiting.pop()
            why = self.why(self.joined(rows.tolist()))
            if why is None:
                yield rows
            elif rows.size == 1:
                self.found.append((int(rows[0]), why))
            else:
                middle = rows.size // 2
                waiting += [rows[middle:], rows[:middle]]

    def each(self, rows: _Rows) -> Iterator[_Rows]:
        """Yield those of some rows that can be read; add the others to `found`."""
        for at in range(rows.size):
            if self.full:
                return
            yield from self.good(rows[at : at + 1])

    def starts_of(self, rows: _Rows) -> list[int]:
        """Return where each of these rows begins in what `joined` makes of them."""
        sizes = (np.array(self._ends, np.int64) - np.array(self._starts, np.int64))[rows]
        found: list[int] = (np.cumsum(sizes) - sizes).tolist()
        return found

    def why(self, piece: Piece) -> str | None:
        """Return why a piece cannot be read; None if it can. The parser's schema stays as it was."""
        parser = self._parser
        schema = parser.schema
        try:
            parser.rows(piece)
        except SourceError as e:
            return _BEFORE.sub("", str(e))
        except UNREADABLE as e:
            return in_words(e, parser.names)
        finally:
            parser.schema = schema
        return None

    def joined(self, rows: list[int]) -> Piece:
        """Return these rows of the piece, one behind the other."""
        if rows and rows[-1] - rows[0] == len(rows) - 1:
            return Piece(
                self._piece.data[self._starts[rows[0]] : self._ends[rows[-1]]], self._piece.line, False, self._piece.newline
            )
        numbers = np.array(rows, np.int64)
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        runs = [run for run in np.split(numbers, breaks) if run.size]
        data = self._piece.data
        parts = [data[self._starts[int(run[0])] : self._ends[int(run[-1])]] for run in runs]
        return Piece(b"".join(parts), self._piece.line, False, self._piece.newline)
