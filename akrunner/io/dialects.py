"""Reads CSV with other delimiters and quotes than `,` and `"` and without a line of names, by the code that reads all CSV.

::

    a;'b'  -- swap -->  a,"b"  (cut into pieces of whole rows)  -- swap back -->  a;'b'  (parsed by Arrow with these marks)
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv as pa_csv

from akrunner.errors import ConfigError
from akrunner.io import parse_csv
from akrunner.io.csv_options import swap
from akrunner.io.formats.base import pieces_of
from akrunner.io.paths import Files
from akrunner.io.text import Piece, Pieces


class Dialect:
    """The characters that stand between cells and around them.

    Attributes:
        delimiter: the character between cells.
        quote: the character around cells; None for no quotes.
        there: a table for `bytes.translate` that swaps these characters with `,` and `"`; None if nothing changes.
        back: the table that undoes the swap.
    """

    def __init__(self, delimiter: str, quote: str | None) -> None:
        """Raises:
        ConfigError: the delimiter or the quote is not one ASCII character, ends a line, or both are the same.
        """
        for name, mark in (("fieldDelimiter", delimiter), ("quoteChar", quote)):
            if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in "\r\n"):
                raise ConfigError(f"{name}={mark!r}: one ASCII character is needed, and not the end of a line")
        if delimiter == quote:
            raise ConfigError(f"quoteChar={quote!r} is the fieldDelimiter, too")
        self.delimiter = delimiter
        self.quote = quote
        self.there, self.back = swap(delimiter, quote)


class _Parser(parse_csv.CsvParser):
    """Parses text of a dialect.

    Args:
        types: the names and types of all columns, in the order of the file.
    """

    def __init__(self, pieces: Pieces, types: pa.Schema, dialect: Dialect) -> None:
        super().__init__(pieces, asked=types, names=types.names)
        self._dialect = dialect

    def _read(self, piece: Piece, types: pa.Schema, only: list[str] | None) -> pa.Table:
        data = piece.data if self._dialect.back is None else piece.data.translate(self._dialect.back)
        names = self.names or []
        return pa_csv.read_csv(
            pa.BufferReader(data),
            pa_csv.ReadOptions(column_names=names, block_size=len(data) + 1),
            pa_csv.ParseOptions(
                delimiter=self._dialect.delimiter,
                quote_char=self._dialect.quote or False,
                newlines_in_values=b'"' in piece.data,
                ignore_empty_lines=len(names) > 1,
            ),
            pa_csv.ConvertOptions(column_types=types, include_columns=only),
        )


def csv_batches(files: Files, path: str, types: pa.Schema, dialect: Dialect, skip_first: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file.

    Args:
        types: the names and types of its columns.
        skip_first: whether to leave out the first line, which is not a row.
    Raises:
        SourceError: the file cannot be read.
    """
    pieces, close = pieces_of(files, path, True, dialect.there, dialect.back)
    try:
        parser = _Parser(pieces, types, dialect)
        while (piece := pieces.next()) is not None:
            if skip_first:
                end = piece.data.find(piece.newline) + 1 or len(piece.data)
                piece = piece.cut(end)
                skip_first = False
            if piece.data:
                batch = parser.parse(piece)
                if batch.num_rows:
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=types)
    finally:
        close()
