"""Parses pieces of CSV into RecordBatches, with pyarrow. No guess of a type changes a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from akrunner.errors import SourceError
from akrunner.io import exact, suspects
from akrunner.io.csv_options import COMMA, CsvOptions, word_of
from akrunner.io.lines import LooseQuote, Positions, count, csv_row_ends, recovered
from akrunner.io.parse import HERE, LARGE, UNREADABLE, batch_of, in_words, located, newlined, no_column
from akrunner.io.text import Piece, Pieces
from akrunner.schema import repeated

#: cells that mean, in a column of numbers, that there is no value
_NO_VALUES = frozenset({"", "nan", "null"})


class CsvParser:
    """Parses CSV.

    Attributes:
        schema: the schema of the batches; None until it is guessed.
        name: the text's name in errors.
        names: the names of all columns.
    """

    form = "csv"

    def __init__(
        self,
        pieces: Pieces,
        asked: pa.Schema | None = None,
        like: pa.Schema | None = None,
        only: Sequence[str] | None = None,
        names: list[str] | None = None,
        csv: CsvOptions = COMMA,
        sure: bool = False,
    ) -> None:
        """Args:
        asked: the types of columns that the user gave.
        like: types that were guessed from another text.
        only: the columns to take; None: all.
        names: the names of the columns, if no line of the text has them.
        csv: how the text is written.
        sure: whether the user said what stands between cells.
        """
        self._csv = csv
        self._sure = sure
        self._back = csv.back
        self.name = pieces.name
        self.schema: pa.Schema | None = None
        self._pieces = pieces
        self._types = asked or like or pa.schema([])
        self.asked: list[str] = asked.names if asked is not None else []
        self._only = list(only) if only is not None else None
        self._parameter = "input_schema" if asked is not None else "columns"
        self.names = names
        self.apart = False
        self._rows = 0

    def parse(self, piece: Piece) -> pa.RecordBatch:
        piece = self.headed(piece)
        if self._is_blank(piece):
            return pa.RecordBatch.from_pylist([], self.schema or pa.schema([]))
        try:
            table = self.whole(piece)
        except UNREADABLE as e:
            fewer = self._whole_cells(piece, -1)
            if fewer is piece:
                raise located(self, piece, self._ends(piece), e) from None
        else:
            fewer = self._whole_cells(piece, table.num_rows)
        if fewer is not piece:
            return self.parse(fewer)
        table = self._checked(piece, table)
        self._rows += table.num_rows
        return batch_of(table)

    def rows(self, piece: Piece) -> pa.RecordBatch:
        if self._is_blank(piece):
            return pa.RecordBatch.from_pylist([], self.schema or pa.schema([]))
        return batch_of(self._checked(piece, self.whole(piece)))

    def suspected(self, piece: Piece, starts: list[int], wanted: pa.Schema | None) -> suspects.Suspected | None:
        types = self.schema or self._types
        if not starts or self.names is None:
            return None
        found = suspects.of_cells(piece.data, starts, len(self.names))
        rest = np.flatnonzero(~found)
        behind = [*starts[1:], len(piece.data)]
        text = b"".join(piece.data[starts[row] : behind[row]] for row in rest)
        try:
            texts = pa.schema([(name, pa.string()) for name in self.names])
            words = self._read(Piece(text, piece.line, False, piece.newline), texts, self._only)
        except UNREADABLE:
            return None
        if words.num_rows != rest.size:
            # blank lines are no rows
            return None
        kept = {field.name: field for field in wanted or ()}
        asked = pa.schema([kept.get(field.name, field).with_type(field.type) for field in types])
        found[rest] = suspects.of_values(words, asked, self._conversion(types, self._only).null_values, self._csv.decimal)
        return found

    def seen(self, data: bytes) -> None:
        pass

    def _is_blank(self, piece: Piece) -> bool:
        # in a table of one column an empty line is an empty cell
        return not piece.data or (not piece.data.strip(b"\r\n") and len(self.names or ()) != 1)

    def _checked(self, piece: Piece, table: pa.Table) -> pa.Table:
        """Check that no value of the parsed rows is another one than in the text, and settle the types if they are open."""
        if self.schema is None:
            table = self._guessed(piece, table)
        else:
            for name, (row, value) in self._identifiers(piece, table).items():
                exact.refuse_identifier(self._at(piece)(row), name, value)
            for name in exact.suspicious(table):
                exact.check(self._at(piece), name, table[name], self._words(piece, name), name not in self.asked)
        self._check_wrapped(piece, table)
        return table

    def whole(self, piece: Piece) -> pa.Table:
        return self._read(piece, self.schema or self._types, self._only)

    def end(self) -> pa.Schema:
        """Return the schema of a text that has no rows.

        Raises:
            SourceError: nothing tells the columns.
        """
        given = list(self._csv.header) if not isinstance(self._csv.header, bool) else None
        if self.names is None and given is None and not self._types:
            error = SourceError(f"source: {self.name} is empty: it has no line that names the columns")
            error.tells_no_columns = True
            raise error
        names = self.names or given or self._types.names
        types = {field.name: field.type for field in self._types}
        return pa.schema([(name, types.get(name, pa.null())) for name in self._only or names])

    def _read(self, piece: Piece, types: pa.Schema, only: list[str] | None) -> pa.Table:
        names = self.names
        data = piece.data if self._back is None else piece.data.translate(self._back)
        table = pa_csv.read_csv(
            pa.BufferReader(data),
            pa_csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=len(data) > LARGE),
            pa_csv.ParseOptions(
                delimiter=self._csv.delimiter,
                quote_char=self._csv.quote or False,
                newlines_in_values=b'"' in piece.data,
                # in a table of one column an empty line is an empty cell
                ignore_empty_lines=names is None or len(names) > 1,
            ),
            self._conversion(types, only),
        )
        return table if self._csv.null is None else _nulled(table, self._csv.null)

    def _conversion(self, types: pa.Schema, only: list[str] | None) -> pa_csv.ConvertOptions:
        options = pa_csv.ConvertOptions(column_types=types, include_columns=only, decimal_point=self._csv.decimal)
        if self._csv.null is not None:
            options.null_values = ["", *self._csv.null]
        elif not any(pa.types.is_integer(field.type) and field.name in self.asked for field in types):
            # NaN is a value of floats, not a null; in a column of integers that the user asked for it can only mean a null
            options.null_values = [word for word in options.null_values if word.lstrip("-").lower() != "nan"]
        if not self.asked:
            # 1 and 0 are booleans only where the user asked for booleans; a guess would lose what the cell says
            options.true_values = [word for word in options.true_values if word != "1"]
            options.false_values = [word for word in options.false_values if word != "0"]
        return options

    def headed(self, piece: Piece) -> Piece:
        """Take the names of the columns from the first line that is not blank, and return the text behind that line. If no line
        has names, return the piece."""
        if self.names is not None:
            return piece
        data = piece.data
        start = len(data) - len(data.lstrip(b"\r\n"))
        end = data.find(piece.newline, start) + 1 or len(data)
        if b'"' in data[start:end]:
            end = next((end for end in self._ends(piece).tolist() if end > start), len(data))
        try:
            line = Piece(data[start:end] + b"\n", piece.line, False)
            names = self._read(line, pa.schema([]), None).schema.names if end > start else []
        except UNREADABLE as e:
            raise SourceError(
                f"source: cannot read {self.name} as csv: line {piece.line_of(start)}: {in_words(e, None)}"
            ) from None
        if not names:
            return piece
        if self._csv.header is not True:
            if self.apart and not isinstance(self._csv.header, bool):
                # the first row may be a bad one
                names = list(self._csv.header)
            else:
                names = self._given_names(len(names), piece.line_of(start))
            self._check_names(names)
            return piece
        self._check_names(names)
        return piece.cut(end)

    def _check_names(self, names: list[str]) -> None:
        twice = repeated(names)
        if twice is not None:
            raise SourceError(f"source: two columns of {self.name} are called {twice!r}; rename one in its first line")
        only = names[0] if len(names) == 1 and not self._sure else ""
        if found := set(only) & (set(",;\t|") - {self._csv.delimiter}):
            ways = " or ".join(f"delimiter={word_of(mark)}" for mark in sorted(found))
            raise SourceError(
                f"source: {self.name} has one column, {only!r}, if {self._csv.delimiter!r} stands between its cells; give "
                f"input_csv= (--input-csv) {ways}, or delimiter={word_of(self._csv.delimiter)} if it is one column"
            )
        if len(names) == 1 and self._csv.comment:
            raise SourceError(
                f"source: {self.name} has one column, in which a line may be empty, and so cannot be left out as a comment; "
                "leave comment out of input_csv= (--input-csv); skip leaves out first lines"
            )
        self.names = names
        for name in self._only or ():
            if name not in names:
                raise no_column(self.name, name, names, self._parameter)

    def _given_names(self, count: int, line: int) -> list[str]:
        """Return the names of the columns of a text that has no line of names.

        Raises:
            SourceError: the text does not have as many columns as there are names.
        """
        header = self._csv.header
        if isinstance(header, bool):
            return [f"f{number}" for number in range(count)]
        if len(header) != count:
            raise SourceError(
                f"source: line {line} of {self.name} has {count} cells, and there are {len(header)} names of columns "
                f"({', '.join(header)}); name all columns, in their order, in header of input_csv= (--input-csv), or in "
                "input_schema= (--input-schema)"
            )
        return list(header)

    def _guessed(self, piece: Piece, table: pa.Table) -> pa.Table:
        """Guess, from the first rows, the types of the columns whose types were not given; return the rows in these types."""
        for field in table.schema:
            # Arrow guesses bytes for a column that cannot be a string
            if pa.types.is_binary(field.type) and field.name not in self._types.names:
                raise SourceError(
                    f"source: column {field.name!r} of {self.name} is not UTF-8; give input_csv= (--input-csv) with the file's "
                    f"encoding, such as encoding=latin-1, or input_schema= (--input-schema) with '{field.name} bytes'"
                )
        types = {field.name: field.type for field in table.schema}
        for field in table.schema:
            # NA may also mean Namibia: a column of such words alone becomes text if some of the words are not those of missing
            # numbers
            if pa.types.is_null(field.type) and field.name not in self.asked:
                there = pc.unique(self._words(piece, field.name)())
                if any(not self._is_no_value(word) for word in there.to_pylist() if word is not None):
                    types[field.name] = pa.string()
        odd = self._identifiers(piece, table)
        for name, (row, value) in odd.items():
            if name in self._types.names:
                # the types are those of the first file
                exact.refuse_identifier(self._at(piece)(row), name, value)
            types[name] = pa.string()
        for name in exact.suspicious(table):
            if name in odd:
                continue
            words, guessed = self._words(piece, name), name not in self.asked
            types[name] = exact.guess(self._at(piece), name, table[name], words, guessed)
        self.schema = pa.schema(list(types.items()))
        return table if self.schema == table.schema else self.whole(piece)

    def _identifiers(self, piece: Piece, table: pa.Table) -> dict[str, tuple[int, str]]:
        """Return {column: (row, value)} of identifiers such as 01234 or 0x1F in columns that were guessed to be numbers."""
        kinds = {field.name: field.type for field in table.schema if field.name not in self.asked}
        numbers = [name for name, kind in kinds.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
        if not numbers or not exact.may_have_identifiers(piece.data):
            return {}
        words = self._read(piece, pa.schema([(name, pa.string()) for name in numbers]), numbers).combine_chunks()
        rows = {name: exact.first_identifier(words[name]) for name in numbers}
        return {name: (row, words[name][row].as_py()) for name, row in rows.items() if row is not None}

    def _check_wrapped(self, piece: Piece, table: pa.Table) -> None:
        """Check hexadecimal numbers in columns of integers that the user asked for.

        Raises:
            SourceError: a number is beyond the type of its column.
        """
        if not exact.may_be_hexadecimal(piece.data):
            return
        for field in table.schema:
            if field.name in self.asked and pa.types.is_signed_integer(field.type):
                text = self._words(piece, field.name)()
                row = exact.first_wrapped(text, table[field.name].combine_chunks())
                if row is not None:
                    exact.refuse_wrapped(self._at(piece)(row), field.name, text[row].as_py(), field.type)

    def _words(self, piece: Piece, name: str) -> Callable[[], pa.Array]:
        """Return a function that reads the cells of a column as text."""

        def words() -> pa.Array:
            found = self._read(piece, pa.schema([(name, pa.string())]), [name]).column(0).combine_chunks()
            return found if self._csv.decimal == "." else pc.replace_substring(found, self._csv.decimal, ".")

        return words

    def _is_no_value(self, word: str) -> bool:
        """Whether a cell means, in a column of numbers, that there is no value."""
        return word.strip().lower().lstrip("-") in _NO_VALUES or word in (self._csv.null or ())

    def _at(self, piece: Piece) -> Callable[[int], str]:
        def at(row: int) -> str:
            if self.apart:
                return HERE
            ends = self._ends(piece).tolist()
            starts = [0, *ends]
            if len(self.names or ()) > 1:
                starts = [start for start, end in zip(starts, [*ends, len(piece.data)]) if piece.data[start:end].strip()]
            return f"line {piece.line_of(starts[row])} of {self.name} (row {self._rows + row})"

        return at

    def _ends(self, piece: Piece) -> Positions:
        if self.apart:
            return recovered(newlined(piece), piece.last)[0]
        try:
            return csv_row_ends(newlined(piece))[0]
        except LooseQuote as e:
            self._pieces.not_closed(piece, e.position)

    def _whole_cells(self, piece: Piece, rows: int) -> Piece:
        """Return the piece up to its last whole row, and put the rest back.

        Args:
            rows: how many rows the parser found in the piece; -1: it could not parse the piece.
        Raises:
            SourceError: a quote is not closed.
        """
        data = newlined(piece)
        if b'"' not in data:
            return piece
        try:
            if rows == count(data, b"\n") + (not data.endswith(b"\n")):
                # no cell contains the end of a line, unless the last one does
                start = data.rfind(b"\n", 0, len(data) - 1) + 1
                if csv_row_ends(data[start:])[1] is None:
                    return piece
            ends, opened = csv_row_ends(data)
        except LooseQuote as e:
            self._pieces.not_closed(piece, e.position)
        if opened is None:
            return piece
        if piece.last:
            self._pieces.not_closed(piece, opened)
        return self._pieces.put_back(piece, int(ends[-1]) if ends.size else 0)


def _nulled(table: pa.Table, words: Sequence[str]) -> pa.Table:
    """Return the table with nulls in place of these words in its columns of text."""
    for number, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            column = table.column(number)
            there = pc.is_in(column, pa.array(words, field.type))
            if pc.any(there).as_py():
                table = table.set_column(number, field, pc.if_else(there, pa.scalar(None, field.type), column))
    return table
