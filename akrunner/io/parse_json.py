"""Parses pieces of JSON lines into RecordBatches, with pyarrow. No guess of a type changes a number."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from akrunner.column_types import Family, family_of
from akrunner.errors import SourceError
from akrunner.io import exact, suspects, zones
from akrunner.io.lines import Positions, line_ends
from akrunner.io.parse import HERE, LARGE, UNREADABLE, batch_of, check_depth, located, too_deep
from akrunner.io.text import Piece, Pieces
from akrunner.schema import is_list, to_floats

#: deeper lists and objects are of no use, and their types are too long to print
_LEVELS = 50
#: Arrow's message for a value that is not of the kind that its column's type has: a number, a text, a list
_CHANGED = re.compile(r"Column\(/(?P<path>.*?)\) changed from (?P<was>\w+) to (?P<kind>\w+)")
#: families of types whose values stand as texts in JSON that Arrow's parser of JSON does not know
_AS_TEXT = (Family.DATE, Family.TIME_OF_DAY, Family.SPAN)
#: a span as DuckDB writes it, to microseconds
_SPAN = r"^(?P<sign>-?)(?P<hours>\d+):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)(?:\.(?P<rest>\d{1,6}))?$"
#: Arrow's words for kinds of values -> ours
_KINDS = {"number": "a number", "string": "a text", "boolean": "a boolean", "array": "a list", "object": "an object"}


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
        read = None if self.schema is None else pa.schema([field.with_type(_read_as(field.type)) for field in self.schema])
        try:
            table = pa_json.read_json(
                pa.BufferReader(piece.data),
                pa_json.ReadOptions(block_size=len(piece.data) + 1, use_threads=len(piece.data) > LARGE),
                pa_json.ParseOptions(explicit_schema=read, unexpected_field_behavior=unknown),
            )
        except pa.ArrowInvalid as e:
            raise _named(e, self.schema) from None
        for field in self.schema or ():
            if _read_as(field.type) != field.type:
                number = table.schema.get_field_index(field.name)
                made = [_made(chunk, field) for chunk in table.column(number).chunks]
                table = table.set_column(number, field, pa.chunked_array(made, field.type))
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


def _read_as(data_type: pa.DataType) -> pa.DataType:
    """Return the type in which Arrow's parser is asked for values; `_made` makes the column's own of that.

    Floats are read as doubles, as Arrow reads 1e300 into a float as infinity; decimals as wider ones, as a text with a point and
    no digit but 0 behind it (5.0) may stand for a whole one; dates, times of day and spans as text, which Arrow does not parse.
    """
    if pa.types.is_floating(data_type):
        return pa.float64()
    if pa.types.is_decimal(data_type):
        return pa.decimal256(76, min(max(data_type.scale, 0) + 1, 76))
    if family_of(data_type) in _AS_TEXT:
        return pa.string()
    if isinstance(data_type, pa.FixedShapeTensorType):
        return data_type
    if is_list(data_type):
        return pa.list_(_read_as(data_type.value_type))
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(one.name, _read_as(one.type)) for one in data_type])
    return data_type


def _made(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return a column that was read as `_read_as` says in the type of its field.

    Raises:
        pa.ArrowInvalid: a value does not fit; the message has the column's name and type.
    """
    try:
        return _converted(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise pa.ArrowInvalid(f"column {field.name!r}: JSON conversion error to {field.type}: {e}") from None


def _converted(column: pa.Array, target: pa.DataType) -> pa.Array:
    if column.type == target:
        return column
    if is_list(target) and pa.types.is_list(column.type):
        values = _converted(column.values, target.value_type)
        same = pa.ListArray.from_arrays(column.offsets, values, mask=column.is_null() if column.null_count else None)
        return same if same.type == target else same.cast(target)
    if pa.types.is_struct(target):
        # `field` has the whole of a child, also where its parent is null
        children = [_converted(column.field(i), one.type) for i, one in enumerate(target)]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=column.is_null())
    if pa.types.is_floating(target):
        return to_floats(column, target)
    family = family_of(target)
    if family is Family.TIME_OF_DAY:
        # Arrow has no cast from text to these
        days = pc.binary_join_element_wise("1970-01-01", column, " ")
        return days.cast(pa.timestamp("ns")).cast(target)
    return _spans(column).cast(target) if family is Family.SPAN else column.cast(target)


def _spans(column: pa.Array) -> pa.Array:
    """Return texts like "-72:00:00.5", hours, minutes and seconds, as durations.

    Raises:
        pa.ArrowInvalid: one is another text.
    """
    parts = pc.extract_regex(column, _SPAN)
    odd = pc.and_(parts.is_null(), column.is_valid())
    if pc.any(odd).as_py():
        raise pa.ArrowInvalid(f"{column.filter(odd)[0].as_py()!r} is no span like '72:00:00.5'")
    hours, minutes, seconds = (pc.struct_field(parts, name).cast(pa.int64()) for name in ("hours", "minutes", "seconds"))
    rest = pc.utf8_rpad(pc.struct_field(parts, "rest"), 6, "0").cast(pa.int64())
    whole = pc.add_checked(
        pc.multiply_checked(pc.add(pc.multiply(pc.add(pc.multiply_checked(hours, 60), minutes), 60), seconds), 10**6), rest
    )
    negative = pc.equal(pc.struct_field(parts, "sign"), "-")
    return pc.if_else(negative, pc.negate(whole), whole).cast(pa.duration("us"))


def _named(error: pa.ArrowInvalid, schema: pa.Schema | None) -> pa.ArrowInvalid:
    """Return an error of Arrow's parser, with the column's name and declared type in front if a value is of another kind."""
    found = _CHANGED.search(str(error))
    path = found["path"].split("/") if found is not None else [""]
    if found is None or schema is None or path[0] not in schema.names:
        return error
    told = f"column {path[0]!r} is {schema.field(path[0]).type}, and a value here is {_KINDS.get(found['kind'], found['kind'])}"
    return pa.ArrowInvalid(f"{told} (changed from {found['was']} to {found['kind']})")


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
