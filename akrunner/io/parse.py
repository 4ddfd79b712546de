"""What the parsers of CSV (`parse_csv`) and of JSON lines (`parse_json`) have in common: every error names its line."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io import suspects
from akrunner.io.lines import Positions, depth, long_lines
from akrunner.io.text import Piece, Pieces
from akrunner.schema import repeated
from akrunner.wire.near import nearest

#: values nested some hundred thousand levels deep end Arrow's parser with SIGSEGV, so it gets none deeper than this
DEEPEST = 5000
#: the number of bytes from which on several processors parse together
LARGE = 1 << 18
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_COLUMN = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?")
#: where a row is, in the errors of a parser that parses rows apart
HERE = "this row"
#: the exceptions that pyarrow raises for text that it cannot read
UNREADABLE = (pa.ArrowException, KeyError, UnicodeDecodeError)


#: the most characters of Arrow's messages
_LONGEST = 500


class Parser(Protocol):
    """Parses the pieces of one text.

    Attributes:
        form: the name of the text's format.
        name: the text's name in errors.
        names: the names of all its columns, where Arrow's errors number the columns (CSV); else None.
        schema: the schema of the batches; None until the parser has parsed a row, unless it is known from the start.
        asked: the columns whose types the user gave.
        apart: whether the errors of `rows` say `HERE` where the row is, because the caller knows its line.
    """

    form: str
    name: str
    asked: list[str]
    names: list[str] | None
    schema: pa.Schema | None
    apart: bool

    def parse(self, piece: Piece) -> pa.RecordBatch:
        """Parse a piece.

        Raises:
            SourceError: a row does not parse; the message names its line.
        """
        ...

    def headed(self, piece: Piece) -> Piece:
        """Return the piece without the line that names the columns; the piece itself if that was read before, or if the format
        has no such line.

        Raises:
            SourceError: the line cannot be read.
        """
        ...

    def rows(self, piece: Piece) -> pa.RecordBatch:
        """Parse whole rows, all of whose quotes are closed, without the line that names the columns. It sets the schema if that
        is None, also if it raises.

        Raises:
            SourceError: a value is not what the text says, or does not fit the type of its column.
            Exception: one of `UNREADABLE`: the text does not parse.
        """
        ...

    def suspected(self, piece: Piece, starts: list[int], wanted: pa.Schema | None) -> suspects.Suspected | None:
        """Guess which rows cannot be read, all rows at once; None if that cannot be guessed.

        Args:
            piece: as for `rows`.
            starts: where the rows begin.
            wanted: the columns that the user asked for.
        """
        ...

    def seen(self, data: bytes) -> None:
        """Note which columns a text has that `rows` has parsed, for formats in which any row may lack any column."""
        ...

    def whole(self, piece: Piece) -> pa.Table:
        """Parse text with the types that are known so far.

        Raises:
            Exception: one of `UNREADABLE`: the text does not parse.
        """
        ...

    def end(self) -> pa.Schema:
        """Return the schema of a text that has no rows.

        Raises:
            SourceError: the text does not tell its columns.
        """
        ...


def check_depth(piece: Piece, name: str) -> None:
    """Check how deep the values of a piece are nested.

    Raises:
        SourceError: a value is nested so deep that Arrow's parser would end the process.
    """
    for start, end in long_lines(piece.data, DEEPEST):
        row = piece.data[start:end]
        if depth(row) > DEEPEST and depth(_STRING.sub(b"", row)) > DEEPEST:
            raise too_deep(f"line {piece.line_of(start)} of {name}")


def too_deep(what: str) -> SourceError:
    """Return the error for what is nested deeper than Arrow's parser survives."""
    return SourceError(f"source: {what} is nested too deep to be read")


def located(parser: Parser, piece: Piece, ends: Positions, error: BaseException) -> SourceError:
    """Return the error of a piece with its line. It finds, by halving, the fewest first rows of the piece that cannot be read:
    the last of them is the wrong one."""
    positions = [*ends.tolist(), len(piece.data)] if not ends.size or ends[-1] < len(piece.data) else ends.tolist()
    low, high = 0, len(positions) - 1
    while low < high:
        middle = (low + high) // 2
        try:
            parser.whole(Piece(piece.data[: positions[middle]], piece.line, False, piece.newline))
            low = middle + 1
        except UNREADABLE as e:
            error, high = e, middle
    start = positions[low - 1] if low else 0
    blanks = (b"\n", b"\r") if parser.names is not None else (b"\n", b"\r", b" ", b"\t")
    while piece.data[start : start + 1] in blanks and start + 1 < len(piece.data):
        start += 1
    what = in_words(error, parser.names)
    if "unexpected field" in what and parser.schema is not None:
        what = f"column {_unknown_key(piece.data[start:], parser.schema)} is not one of the others ({', '.join(parser.schema.names)})"
    return SourceError(
        f"source: cannot read {parser.name} as {parser.form}: line {piece.line_of(start)}: {what}: "
        f"{piece.shown(start)}{advice(error, parser)}"
    )


def _unknown_key(data: bytes, schema: pa.Schema) -> str:
    """Return the first key of the first object that is not a column of the schema; Arrow does not say which key it was."""
    text = data.decode("utf-8", "replace").lstrip()
    try:
        keys: list[str] = list(json.JSONDecoder().raw_decode(text)[0])
    except (ValueError, RecursionError):
        keys = []
    return next((repr(key) for key in keys if key not in schema.names), "of this object")


def in_words(error: BaseException, names: Sequence[str] | None) -> str:
    """Return Arrow's message with the column's name in place of its number, and without the row's number, which counts from the
    start of the piece."""
    # the value that the message shows may have several lines
    text = "\\n".join(str(error).strip().splitlines()) or type(error).__name__
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    found = _COLUMN.search(text)
    if found is not None:
        number = int(found[1])
        column = f"column {names[number]!r}" if names is not None and number < len(names) else f"column {number + 1}"
        text = f"{column}: {text[: found.start()]}{text[found.end() :]}"
    text = re.sub(r" in row \d+$", "", re.sub(r"Row #\d+: ", "", text))
    return re.sub(r"(Expected \d+ columns, got \d+): .*", r"\1", text, flags=re.DOTALL)


def advice(error: BaseException, parser: Parser) -> str:
    """Return advice for an error of Arrow's; "" if there is none."""
    text = str(error)
    if not any(words in text for words in ("conversion error", "changed from", "Failed to convert", "unexpected field")):
        return ""
    if "Column() changed from object" in text:
        return (
            "; a row of JSON lines is an object, {...}: if the file has another format, say so (input_format=, --input-format)"
        )
    found = _COLUMN.search(text)
    number = int(found[1]) if found is not None else -1
    given = parser.names is not None and 0 <= number < len(parser.names) and parser.names[number] in parser.asked
    if parser.asked and " is string, and a value here is" in text:
        return "; input_schema= (--input-schema) says that it is text: give it the type that its values have"
    if given or (found is None and parser.asked):
        return "; input_schema= (--input-schema) says its type: give it a wider one, or string to keep it as it stands"
    return "; the types were guessed from the file's beginning: give input_schema= (--input-schema) with the right ones"


def no_column(text: str, name: str, names: Sequence[str], parameter: str = "input_schema") -> SourceError:
    """Return the error for a column that a parameter names and a text does not have."""
    return SourceError(f"{parameter}: {text} has no column {name!r} (it has {', '.join(names)}){nearest(name, list(names))}")


def check_once(text: str, names: Sequence[str], wanted: Sequence[str] | None = None) -> None:
    """Check that no two of the columns that are taken have the same name.

    Args:
        text: the table's name in errors.
        wanted: the columns that are taken; None: all.
    Raises:
        SourceError: two of them have the same name.
    """
    twice = repeated([name for name in names if wanted is None or name in wanted])
    if twice is not None:
        raise SourceError(
            f"source: two columns of {text} are called {twice!r}; rename one, or name them apart with select= (--select), "
            f"where the second is called {twice + '_1'!r}"
        )


def opened(pieces: Pieces, parser: Parser) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return (schema, all batches) of a text. Waits for its first row.

    Raises:
        SourceError: the text cannot be read.
    """
    rest = batches(pieces, parser)
    first = next(rest, None)
    if first is None:
        return parser.schema or parser.end(), iter(())
    return first.schema, itertools.chain([first], rest)


def batches(pieces: Pieces, parser: Parser) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a text as they arrive."""
    while (piece := pieces.next()) is not None:
        batch = parser.parse(piece)
        if batch.num_rows:
            yield batch


def batch_of(table: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table as one batch."""
    if not table.num_rows:
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in table.schema], schema=table.schema)
    return table.combine_chunks().to_batches()[0]


def newlined(piece: Piece) -> bytes:
    """Return the text of a piece with \\n at the end of every line."""
    return piece.data if piece.newline == b"\n" else piece.data.replace(piece.newline, b"\n")
