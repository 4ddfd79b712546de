"""Parses pieces of text into RecordBatches, with pyarrow. Every error names its line, and no guess of a type changes a
number."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from akrunner.errors import SourceError
from akrunner.io import exact, suspects, zones
from akrunner.io.csv_options import COMMA, CsvOptions, word_of
from akrunner.io.lines import LooseQuote, Positions, count, csv_row_ends, depth, line_ends, long_lines, recovered
from akrunner.io.text import Piece, Pieces
from akrunner.schema import repeated, to_floats
from akrunner.wire.near import nearest

#: values nested some hundred thousand levels deep end Arrow's parser with SIGSEGV, so it gets none deeper than this
DEEPEST = 5000
#: deeper lists and objects are of no use, and their types are too long to print
_LEVELS = 50
#: the number of bytes from which on several processors parse together
_LARGE = 1 << 18
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_COLUMN = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?")
#: cells that mean, in a column of numbers, that there is no value
_NO_VALUES = frozenset({"", "nan", "null"})
#: where a row is, in the errors of a parser that parses rows apart
HERE = "this row"
#: the exceptions that pyarrow raises for text that it cannot read
UNREADABLE = (pa.ArrowException, KeyError, UnicodeDecodeError)


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
                raise _located(self, piece, self._ends(piece), e) from None
        else:
            fewer = self._whole_cells(piece, table.num_rows)
        if fewer is not piece:
            return self.parse(fewer)
        table = self._checked(piece, table)
        self._rows += table.num_rows
        return _batch(table)

    def rows(self, piece: Piece) -> pa.RecordBatch:
        if self._is_blank(piece):
            return pa.RecordBatch.from_pylist([], self.schema or pa.schema([]))
        return _batch(self._checked(piece, self.whole(piece)))

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
            pa_csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=len(data) > _LARGE),
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


class JsonParser:
    """Parses JSON lines: each line has one object.

    Attributes:
        schema: the schema of the batches; None until it is guessed.
        name: the text's name in errors.
    """

    form = "jsonl"

    def __init__(
        self,
        pieces: Pieces,
        asked: pa.Schema | None = None,
        like: pa.Schema | None = None,
        only: Sequence[str] | None = None,
    ) -> None:
        """Args:
        asked: the columns to take, and their types; all others are ignored.
        like: the schema that was guessed from another text.
        only: the columns to take, whose types are guessed; None: all.
        """
        self.name = pieces.name
        self.schema = asked or like
        self.names: list[str] | None = None
        self._only = list(only) if only is not None else None
        self.unseen = Unseen(asked.names if asked is not None else [])
        self.asked: list[str] = asked.names if asked is not None else []
        self.apart = False
        self._rows = 0

    def parse(self, piece: Piece) -> pa.RecordBatch:
        self._check(piece)
        try:
            table = self.whole(piece)
        except UNREADABLE as e:
            raise _located(self, piece, self._ends(piece), e) from None
        if table.num_rows and not table.num_columns:
            raise SourceError(f"source: cannot read {self.name} as jsonl: line {piece.line}: an object without a column: {{}}")
        self.seen(piece.data)
        table = self._checked(piece, table)
        self._rows += table.num_rows
        return _batch(table)

    def rows(self, piece: Piece) -> pa.RecordBatch:
        check_depth(piece, self.name)
        return _batch(self._checked(piece, self.whole(piece)))

    def headed(self, piece: Piece) -> Piece:
        return piece

    def suspected(self, piece: Piece, starts: list[int], wanted: pa.Schema | None) -> suspects.Suspected | None:
        return suspects.of_objects(piece.data, starts, self.schema or wanted or pa.schema([])) if starts else None

    def seen(self, data: bytes) -> None:
        self.unseen.look(data)

    def _checked(self, piece: Piece, table: pa.Table) -> pa.Table:
        """Check that no value of the parsed rows is another one than in the text, and settle the types if they are open."""
        if self.schema is None:
            _check_types(table.schema, self.name)
        first, types = self.schema is None, {field.name: field.type for field in table.schema}
        odd = {name: types[name] for name in ([] if self.asked else exact.suspicious(table))}
        types.update(exact.json_columns(self._at, piece.data, odd, first))
        for name, kind in types.items():
            if zones.has_times(kind):
                types[name] = self._times(piece.data, name, kind, first)
        if first and self._only and set(self._only) <= types.keys():
            types = {name: types[name] for name in self._only}
        if first and table.num_rows:
            self.schema = pa.schema(list(types.items()))
            table = table if self.schema == table.schema else self.whole(piece)
        return table

    def whole(self, piece: Piece) -> pa.Table:
        data = piece.data
        if not data.strip():
            return (self.schema or pa.schema([])).empty_table()
        if not data.isascii():
            # Arrow accepts bytes that are not UTF-8
            data.decode("utf-8")
        if self._has_null(data):
            # Arrow takes a bare null for a row of nulls, and crashes if it is the first row
            raise pa.ArrowInvalid("JSON parse error: null is no object")
        unknown = (
            "ignore" if self.asked or (self._only and self.schema is not None) else "infer" if self.schema is None else "error"
        )
        # Arrow reads 1e300 into a float as infinity
        wide = None if self.schema is None else pa.schema([field.with_type(_widened(field.type)) for field in self.schema])
        table = pa_json.read_json(
            pa.BufferReader(piece.data),
            pa_json.ReadOptions(block_size=len(piece.data) + 1, use_threads=len(piece.data) > _LARGE),
            pa_json.ParseOptions(explicit_schema=wide, unexpected_field_behavior=unknown),
        )
        for field in self.schema or ():
            if _widened(field.type) != field.type:
                number = table.schema.get_field_index(field.name)
                narrow = [to_floats(chunk, field.type) for chunk in table.column(number).chunks]
                table = table.set_column(number, field, pa.chunked_array(narrow, field.type))
        return table

    def _check(self, piece: Piece) -> None:
        """Check what Arrow's parser would not survive.

        Raises:
            SourceError: a value is nested too deep.
        """
        check_depth(piece, self.name)

    def _has_null(self, data: bytes) -> bool:
        """Whether a row is null."""
        return data.lstrip(b" \t\r\n").startswith(b"null") or b"\nnull" in data

    def _ends(self, piece: Piece) -> Positions:
        """Return [rows] the positions behind the ends of rows."""
        return line_ends(piece.data)

    def _times(self, data: bytes, name: str, kind: pa.DataType, first: bool) -> pa.DataType:
        """Return the type of a column of times.

        Raises:
            SourceError: the type is settled, and a time has a zone where the others have none, or has none where they have one.
        """

        def words() -> pa.Array:
            as_text = pa_json.ParseOptions(
                pa.schema([(name, zones.replaced(kind, pa.string()))]), unexpected_field_behavior="ignore"
            )
            read = pa_json.read_json(pa.BufferReader(data), pa_json.ReadOptions(block_size=len(data) + 1), as_text)
            return read.column(0).combine_chunks()

        if first:
            return zones.guess(data, kind, words)
        odd = zones.first_odd(data, kind, words)
        if odd is not None:
            zones.refuse(self._at(odd[0]), name, odd[1])
        return kind

    def end(self) -> pa.Schema:
        """Raise an error, because a text without rows does not tell its columns.

        Raises:
            SourceError: always.
        """
        error = SourceError(f"source: {self.name} is empty, so its columns are not known; give input_schema= (--input-schema)")
        error.tells_no_columns = True
        raise error

    def _at(self, row: int) -> str:
        return HERE if self.apart else f"row {self._rows + row} of {self.name}"


def _widened(data_type: pa.DataType) -> pa.DataType:
    """Return the type with doubles in place of floats."""
    if pa.types.is_float32(data_type):
        return pa.float64()
    if pa.types.is_list(data_type) and pa.types.is_float32(data_type.value_type):
        return pa.list_(pa.float64())
    return data_type


def check_depth(piece: Piece, name: str) -> None:
    """Check how deep the values of a piece are nested.

    Raises:
        SourceError: a value is nested so deep that Arrow's parser would end the process.
    """
    for start, end in long_lines(piece.data, DEEPEST):
        row = piece.data[start:end]
        if depth(row) > DEEPEST and depth(_STRING.sub(b"", row)) > DEEPEST:
            raise too_deep(f"line {piece.line_of(start)} of {name}")


def _check_types(schema: pa.Schema, name: str) -> None:
    for field in schema:
        kinds = [field.type]
        for _ in range(_LEVELS + 1):
            kinds = [one.field(i).type for one in kinds if pa.types.is_nested(one) for i in range(one.num_fields)]
        if kinds:
            raise too_deep(f"column {field.name!r} of {name}")


def too_deep(what: str) -> SourceError:
    return SourceError(f"source: {what} is nested too deep to be read")


def _located(parser: Parser, piece: Piece, ends: Positions, error: BaseException) -> SourceError:
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
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
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
    found = _COLUMN.search(text)
    number = int(found[1]) if found is not None else -1
    given = parser.names is not None and 0 <= number < len(parser.names) and parser.names[number] in parser.asked
    if given or (found is None and parser.asked):
        return "; input_schema= (--input-schema) says its type: give it a wider one, or string to keep it as it stands"
    return "; the types were guessed from the file's beginning: give input_schema= (--input-schema) with the right ones"


def no_column(text: str, name: str, names: Sequence[str], parameter: str = "input_schema") -> SourceError:
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


class Unseen:
    """The columns that were asked for and that no object of a JSON text has had so far; without an error they would silently be
    null everywhere."""

    def __init__(self, names: Sequence[str]) -> None:
        self._spelt = {name: [json.dumps(name, ensure_ascii=ascii).encode() for ascii in (True, False)] for name in names}

    def look(self, data: bytes) -> None:
        for name in [name for name, spelt in self._spelt.items() if any(one in data for one in spelt)]:
            del self._spelt[name]

    @property
    def names(self) -> list[str]:
        return list(self._spelt)


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


def _batch(table: pa.Table) -> pa.RecordBatch:
    if not table.num_rows:
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in table.schema], schema=table.schema)
    return table.combine_chunks().to_batches()[0]


def newlined(piece: Piece) -> bytes:
    """Return the text of a piece with \\n at the end of every line."""
    return piece.data if piece.newline == b"\n" else piece.data.replace(piece.newline, b"\n")
