"""Parses pieces of JSON lines into RecordBatches, with pyarrow. No guess of a type changes a number."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.json as pa_json

from akrunner.errors import SourceError
from akrunner.io import exact, suspects, zones
from akrunner.io.lines import Positions, line_ends
from akrunner.io.parse import HERE, LARGE, UNREADABLE, batch_of, check_depth, located, too_deep
from akrunner.io.text import Piece, Pieces
from akrunner.schema import to_floats

#: deeper lists and objects are of no use, and their types are too long to print
_LEVELS = 50


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
            raise located(self, piece, self._ends(piece), e) from None
        if table.num_rows and not table.num_columns:
            raise SourceError(f"source: cannot read {self.name} as jsonl: line {piece.line}: an object without a column: {{}}")
        self.seen(piece.data)
        table = self._checked(piece, table)
        self._rows += table.num_rows
        return batch_of(table)

    def rows(self, piece: Piece) -> pa.RecordBatch:
        check_depth(piece, self.name)
        return batch_of(self._checked(piece, self.whole(piece)))

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
            pa_json.ReadOptions(block_size=len(piece.data) + 1, use_threads=len(piece.data) > LARGE),
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


def _check_types(schema: pa.Schema, name: str) -> None:
    for field in schema:
        kinds = [field.type]
        for _ in range(_LEVELS + 1):
            kinds = [one.field(i).type for one in kinds if pa.types.is_nested(one) for i in range(one.num_fields)]
        if kinds:
            raise too_deep(f"column {field.name!r} of {name}")
