"""Schemas: `"id bigint, p double"` <-> `Schema` <-> Arrow schema, and which feature each column becomes.

Everything that depends on a type is in `akrunner.column_types`. A worker process is told about its columns by
`Schema.describe`.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.column_types import MANY, TABLE, UNITS, WORDS, ColumnType, Family, family_of, type_of
from akrunner.errors import SchemaError
from akrunner.wire.features import BYTES
from akrunner.wire.near import nearest

#: numpy's short names: i8 is int64
_NUMPY_LETTERS = re.compile(r"[iu][1248]|f[48]")
#: reserved words of DuckDB's SQL, which must be quoted as column names
_RESERVED = frozenset(
    "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default "
    "deferrable desc describe distinct do else end except false fetch for foreign from group having in initially intersect "
    "into lambda lateral leading limit not null offset on only or order pivot pivot_longer pivot_wider placing primary "
    "qualify references returning select show some summarize symmetric table then to trailing true union unique unpivot using "
    "variadic when where window with".split()
)
#: bytes of a column's name; limited because every Example contains the names of its columns
_LONGEST_NAME = 1000
_AS_JSON = "CAST(to_json({}) AS VARCHAR)"
#: how many fields of a struct the error names that refuses it
_FIELDS = 5
_SHOWN = 200
_TOKEN = re.compile(r"\s*(?:(?P<quoted>`[^`]*`|\"[^\"]*\")|(?P<word>\w+)|(?P<mark>[][,<>()])|(?P<bad>\S))")


@dataclass(frozen=True)
class Field:
    """One column.

    Attributes:
        name: the column's name in the table.
        type: the Arrow type of a value.
        nullable: False if the schema says NOT NULL.
        unsized: whether the schema says `timestamp` without a unit.
    """

    name: str
    type: pa.DataType
    nullable: bool = True
    unsized: bool = dataclasses.field(default=False, compare=False)

    @cached_property
    def is_list(self) -> bool:
        return is_list(self.type)

    @cached_property
    def value_type(self) -> pa.DataType:
        """Return the Arrow type of one number or string: the element type of a list, else the type itself."""
        return self.type.value_type if self.is_list else self.type

    @cached_property
    def kind(self) -> str:
        """Return which list of a `tf.train.Feature` holds the column: int64, float or bytes."""
        return feature_kind(self.name, self.type)

    @cached_property
    def shape(self) -> tuple[int, ...] | None:
        """Return the shape of one value: () for a scalar, None for a list whose length may differ from row to row."""
        if not self.is_list:
            return ()
        if isinstance(self.type, pa.FixedShapeTensorType):
            return tuple(self.type.shape)
        if pa.types.is_fixed_size_list(self.type):
            return (self.type.list_size,)
        return None

    @cached_property
    def dtype(self) -> str:
        """Return numpy's name for one number of the column if rows travel as columns; "bytes" for text and bytes."""
        row = type_of(self.value_type)
        # of the types that can cross, only dictionaries of text have no row
        return row.dtype if self.kind != BYTES and row is not None else BYTES

    @property
    def words(self) -> str:
        """Return the type in the words that `Schema.parse` takes after the name: "int64 not null", "array<float>".

        See `Schema.words` for the types that have such words.
        """
        words = f"array<{_word(self.value_type)}>" if self.is_list else _word(self.type)
        return words if self.nullable else f"{words} not null"

    def describe(self) -> dict[str, Any]:
        """Return what a worker process is told of the column.

        The dict has the name, kind, dtype, shape (null if it varies), type in words, unit of a time, and whether it is
        nullable.
        """
        return {
            "name": self.name,
            "kind": self.kind,
            "dtype": self.dtype,
            "shape": None if self.shape is None else list(self.shape),
            "type": str(self.value_type),
            "unit": getattr(self.value_type, "unit", None),
            "nullable": self.nullable,
        }


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order.

    Attributes:
        fields: one for each column: its name, its Arrow type, whether it may be null.
    Raises:
        SchemaError: two columns share a name, or a type cannot cross to a script.
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for field in self.fields:
            if field.name in seen:
                raise SchemaError(f"two columns are called {shortened(field.name)}; name them apart (select='...')")
            seen.add(field.name)
            check_name(field.name)
            feature_kind(field.name, field.type)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @cached_property
    def names(self) -> list[str]:
        """Return the names of the columns, in order."""
        return [field.name for field in self.fields]

    @cached_property
    def arrow(self) -> pa.Schema:
        """Return the schema as an Arrow schema."""
        return pa.schema([pa.field(field.name, field.type, field.nullable) for field in self.fields])

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        """Make a schema from an Arrow schema.

        Args:
            schema: a `pyarrow.Schema`.
        Returns:
            the schema with the same columns.
        Raises:
            SchemaError: a column's type cannot cross; the error names the CAST to write.
        """
        if not isinstance(schema, pa.Schema):
            raise SchemaError(f"a schema of pyarrow's is needed, not {type(schema).__name__}")
        return cls(tuple(Field(field.name, field.type, field.nullable) for field in schema))

    @classmethod
    def parse(cls, text: str, parameter: str = "output_schema") -> Schema:
        """Parse a text like `"f0 string, f1 bigint not null, v FLOAT_TENSOR, w array<double>"`. Case is ignored in type names.

        Args:
            text: the schema.
            parameter: the argument that the text was given by, for the error.
        Returns:
            the schema.
        Raises:
            SchemaError: the text is no schema; the error has a caret under the word that is wrong.
        """
        if not isinstance(text, str):
            raise SchemaError(f"{parameter} must be text like 'id bigint, p double', not {type(text).__name__}")
        return _Parser(text, parameter).parse()

    @property
    def words(self) -> str:
        """Return the text that `parse` takes for this schema: "id int64, v array<float>".

        There are words for scalars and lists; of the times, for dates and for timestamps without a zone or in UTC.
        """
        return ", ".join(f"{_quoted(field.name)} {field.words}" for field in self.fields)

    def describe(self) -> list[dict[str, Any]]:
        """Describe the columns as scripts get them.

        Returns:
            a dict for each column, as in `task_config.schema`.
        """
        return [field.describe() for field in self.fields]


def _word(data_type: pa.DataType) -> str:
    """Return the word that `parse` takes for a type: Arrow's name of it, or else the name of its row."""
    words, row = str(data_type), type_of(data_type)
    if pa.types.is_timestamp(data_type) and data_type.tz == "UTC":
        return f"timestamp_ltz({UNITS[data_type.unit]})"
    return words if words in WORDS or row is None or not row.declared or row.of_unit is not None else row.name


def typed(name: str, text: str, parameter: str) -> Field:
    """Make a column from the words for its type: "bigint", "double not null".

    Raises: SchemaError: the text is no type; the error has a caret under the word that is wrong.
    """
    return _Parser(text, f"{parameter}, column {shortened(name)}").type_of(name)


def plain(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plainer types.

    Arrow's views of strings and bytes become strings and bytes: these hold the same values, and Arrow can do more with them.
    Dates become dates in days, and times of day have milliseconds or finer, as in files: a script is given their numbers.
    """
    fields = [field.with_type(_plain(field.type)) for field in schema]
    return schema if fields == list(schema) else pa.schema(fields)


def _plain(data_type: pa.DataType) -> pa.DataType:
    words = str(data_type)
    if pa.types.is_date64(data_type):
        return pa.date32()
    if data_type == pa.time32("s"):
        return pa.time32("ms")
    if words == "string_view":
        return pa.large_string()
    if words == "binary_view":
        return pa.large_binary()
    if pa.types.is_dictionary(data_type) and words.startswith("dictionary<values=string_view"):
        # the type of a Categorical or an Enum of polars
        return pa.dictionary(data_type.index_type, pa.large_string(), data_type.ordered)
    if not is_list(data_type) or isinstance(data_type, pa.FixedShapeTensorType):
        return data_type
    inner = _plain(data_type.value_type)
    if inner == data_type.value_type:
        return data_type
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(inner, data_type.list_size)
    return pa.large_list(inner) if pa.types.is_large_list(data_type) else pa.list_(inner)


def check_name(name: str) -> None:
    """Check a column's name. Raises: SchemaError: it is too long, or UTF-8 cannot hold it."""
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        raise SchemaError(
            f"the column name {shortened(name)} is no text that UTF-8 can hold; rename it (select='...')"
        ) from None
    if size > _LONGEST_NAME:
        raise SchemaError(
            f"the column name {shortened(name)} has {size} bytes, and every row would carry them; rename it (select='...')"
        )


def shortened(text: str) -> str:
    """Return a text in quotes for an error, cut if it is long."""
    return repr(text) if len(text) <= 60 else repr(text[:60]) + "..."


def is_list(data_type: pa.DataType) -> bool:
    """Whether a value of this type is many numbers or strings."""
    return (
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
        or isinstance(data_type, pa.FixedShapeTensorType)
    )


def to_floats(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return values as floats, or lists of floats, rounded to the target's precision.

    Raises: pa.ArrowInvalid: a finite value would become infinite. (Arrow's own cast makes 1e300 infinite without an error.)
    """
    narrow = values.cast(target, safe=False)
    before, after = _flat(values), _flat(narrow)
    if pa.types.is_floating(before.type) and before.type.bit_width > after.type.bit_width:
        lost = pc.and_not(pc.is_inf(after), pc.is_inf(before))
        if pc.any(lost).as_py():
            raise pa.ArrowInvalid(f"{before.filter(lost)[0].as_py()!r} would become infinite")
    return narrow


def to_array(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """Return Python values as an Arrow array.

    Raises: pa.ArrowException, TypeError, ValueError, OverflowError: a value does not fit, or would become infinite.
    """
    array = pa.array(values, type=data_type)
    ends = _flat(array)
    if pa.types.is_float32(ends.type) and pc.any(pc.is_inf(ends)).as_py():
        to_floats(pa.array(values), data_type)
    return array


def _flat(values: pa.Array) -> pa.Array:
    """Return the values of all rows end to end, if each row is a list; else the array unchanged."""
    return pc.list_flatten(values) if is_list(values.type) else values


def feature_kind(name: str, data_type: pa.DataType) -> str:
    """Return which list of a `tf.train.Feature` a column of this type becomes: int64, float or bytes.

    Raises: SchemaError: no such list can hold it; the error names the column and the CAST to write.
    """
    if is_list(data_type):
        inner = data_type.value_type
        if is_list(inner):
            raise _refused(name, data_type, "flatten it to one list a row, or store it as a fixed_shape_tensor")
        if pa.types.is_struct(inner):
            raise _refused(name, data_type, replaced(name, _AS_JSON))
        return feature_kind(name, inner)
    row = type_of(data_type)
    if row is not None:
        if row.family is Family.DECIMAL and data_type.scale != 0:
            raise _refused(name, data_type, replaced(name, "CAST({} AS DOUBLE)"), BY_DECIMALS)
        return row.feature
    types = pa.types
    if types.is_interval(data_type):
        raise _refused(name, data_type, replaced(name, "CAST(EXTRACT(EPOCH FROM {}) AS BIGINT)"))
    if types.is_dictionary(data_type):
        # Arrow cannot decode dictionaries of views
        if is_text(data_type) and str(data_type.value_type) != "string_view":
            return BYTES
        raise _refused(name, data_type, f"{replaced(name)}, or decode the dictionary")
    if types.is_struct(data_type):
        fields = ", ".join(f"{_quoted(name)}.{_quoted(one.name)}" for one in itertools.islice(data_type, _FIELDS))
        raise _refused(
            name, data_type, f"{replaced(name, _AS_JSON)}, or take its fields: * EXCLUDE ({_quoted(name)}), {fields}"
        )
    if str(data_type).startswith("run_end_encoded"):
        raise _refused(name, data_type, f"{replaced(name)}, or decode it with pyarrow.compute.run_end_decode")
    if str(data_type).startswith("extension<pandas."):
        period = f", or frame[{name!r}].dt.to_timestamp()" if "period" in str(data_type) else ""
        raise SchemaError(
            f"column {shortened(name)} is {_in_words(data_type)}, a type of pandas' own; give the frame with "
            f"frame[{name!r}].astype(str) in its place{period}"
        )
    raise _refused(name, data_type, replaced(name))


def replaced(name: str, expression: str = "CAST({} AS VARCHAR)") -> str:
    """Return the text for `select=` that replaces a column by an expression and keeps all others."""
    return f"* REPLACE ({expression.format(_quoted(name))} AS {_quoted(name)})"


def left_out(names: Sequence[str]) -> str:
    """Return the text for `select=` that keeps all columns but the given ones."""
    return f"* EXCLUDE ({', '.join(map(_quoted, names))})"


def renamed(names: Sequence[str], others: Sequence[str]) -> str:
    """Return the text for `select=` that keeps all columns and gives some of them new names.

    Args: names: the columns to rename; others: all names that exist, none of which may be a new name.
    """
    taken = {name.lower() for name in others}
    new = []
    for name in names:
        other = next(one for i in itertools.count(1) if (one := f"{name}_{i}").lower() not in taken)
        taken.add(other.lower())
        new.append(f"{_quoted(name)} AS {_quoted(other)}")
    return f"* RENAME ({', '.join(new)})"


def _quoted(name: str) -> str:
    """Return a column's name as SQL takes it, in quotes if necessary."""
    plain = name.isidentifier() and name.isascii() and name.lower() not in _RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def is_text(data_type: pa.DataType) -> bool:
    """Whether the values of a type are text (kept as UTF-8 bytes in a feature)."""
    return family_of(data_type.value_type if pa.types.is_dictionary(data_type) else data_type) is Family.TEXT


def repeated(names: list[str]) -> str | None:
    """Return the first name that is there twice, None if there is none."""
    return next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None


def _number_of(letters: str) -> str:
    """Return the long form of a short numpy name: "i8" -> "int64"."""
    return {"i": "int", "u": "uint", "f": "float"}[letters[0]] + str(8 * int(letters[1]))


#: the hints for an input's column whose type cannot cross; the text for `select=` follows
BY_DECIMALS = '; decimals="float64" (--decimals float64), "text" or "int64" (without the point) says what all decimals become'
BY_SELECT = "; turn it into one that can with select= (--select): "


def _refused(name: str, data_type: pa.DataType, instead: str, option: str = "") -> SchemaError:
    return SchemaError(
        f"column {shortened(name)} is {_in_words(data_type)}, which a tf.train.Example cannot hold{option}{BY_SELECT}{instead}"
    )


def _in_words(data_type: pa.DataType) -> str:
    words = str(data_type)
    return words if len(words) <= 200 else words[:200] + "..."


class _Parser:
    """A recursive descent parser for one schema text; every error points at the word that it is about."""

    def __init__(self, text: str, parameter: str) -> None:
        self.text = text
        self.parameter = parameter
        self.tokens: list[tuple[str, str, int]] = []
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup
            if kind:
                self.tokens.append((kind, match.group(kind), match.start(kind)))
        self.at = 0

    def parse(self) -> Schema:
        if not self.tokens:
            raise SchemaError(f"{self.parameter} is empty; write for instance 'id bigint, p double'")
        fields: dict[str, Field] = {}
        while True:
            position = self.position()
            field = self.field()
            if field.name in fields:
                raise self.error(f"column {shortened(field.name)} is there twice", position)
            fields[field.name] = field
            if self.at == len(self.tokens):
                return Schema(tuple(fields.values()))
            self.expect(",", "a comma between columns")

    def field(self) -> Field:
        kind, value, position = self.take("a column name")
        if kind not in ("quoted", "word"):
            raise self.error(f"expected a column name, found {shortened(value)}", position)
        return self.typed(value[1:-1] if kind == "quoted" else value)

    def type_of(self, name: str) -> Field:
        """Return the column `name`, from a text that has only the column's type."""
        field = self.typed(name)
        if self.at < len(self.tokens):
            raise self.error(f"expected the end, found {shortened(self.peek())}", self.position())
        return field

    def typed(self, name: str) -> Field:
        """Return the column `name`, whose type comes next in the text."""
        first = self.at
        data_type = self.type(name)
        words = [token[1].lower() for token in self.tokens[first : self.at]]
        unsized = any(word in WORDS and WORDS[word].of_unit and word in WORDS[word].sized for word in words) and not {
            "(",
            "[",
        } & set(words)
        nullable = True
        if self.peek().lower() == "not":
            self.at += 1
            self.expect("null", "NULL after NOT")
            nullable = False
        return Field(name, data_type, nullable, unsized)

    def type(self, column: str) -> pa.DataType:
        kind, value, position = self.take(f"a type for column {shortened(column)}")
        word = value.lower()
        if kind != "word":
            number = _NUMPY_LETTERS.fullmatch(self.peek().lower()) if value in ("<", ">") else None
            hint = f"; numpy's is {_number_of(number[0])!r} here" if number is not None else ""
            raise self.error(f"expected a type for column {shortened(column)}, found {shortened(value)}{hint}", position)
        if word in ("array", "list"):
            self.expect("<", "array<TYPE>")
            if self.peek().lower() in ("array", "list") or self.peek().lower() in MANY:
                raise self.error("an array of arrays cannot cross; flatten it", position)
            inner = self.type(column)
            self.expect(">", "array<TYPE>")
            return pa.list_(inner)
        if word in MANY:
            return pa.list_(MANY[word].arrow)
        if word not in WORDS:
            number = _NUMPY_LETTERS.fullmatch(word)
            if number is not None:
                raise self.error(f"no type is called {shortened(value)}; numpy's is {_number_of(word)!r} here", position)
            # only SQL's names are listed, though numpy's are accepted, too
            told = " ".join([*(row.name for row in TABLE if row.sql), "FLOAT_TENSOR", "DENSE_VECTOR", "array<...>"])
            hint = nearest(word, [*WORDS, *MANY, "array"]) or f"; known: {told}"
            raise self.error(f"no type is called {shortened(value)}{hint}", position)
        if self.peek() == "(":
            data_type = self.sized(word, WORDS[word], position)
        elif self.peek() == "[":
            data_type = self.in_units(word, WORDS[word], position)
        else:
            data_type = WORDS[word].arrow
        return self.zoned(word, data_type)

    def zoned(self, word: str, data_type: pa.DataType) -> pa.DataType:
        """Parse the words behind `timestamp` that say whether the times have a zone, if there are any.

        They are SQL's `with time zone` and `without time zone`, and Flink's `with local time zone`.
        """
        if word != "timestamp" or self.peek().lower() not in ("with", "without"):
            return data_type
        has_zone = self.take("")[1].lower() == "with"
        if has_zone and self.peek().lower() == "local":
            self.at += 1
        self.expect("time", "TIME ZONE")
        self.expect("zone", "ZONE after TIME")
        return pa.timestamp(data_type.unit, "UTC" if has_zone else None)

    def sized(self, word: str, row: ColumnType, position: int) -> pa.DataType:
        self.at += 1
        _, size, where = self.take("a number")
        self.expect(")", "a closing parenthesis")
        if word in row.sized and row.of_unit is not None:
            unit = next((unit for unit, digits in UNITS.items() if size == str(digits)), None)
            if unit is None:
                raise self.error(f"{word} takes (0), (3), (6) or (9)", where)
            return row.of_unit(unit)
        if word in row.sized and size.isdecimal():
            return row.arrow
        raise self.error(f"{word} takes no size", position)

    def in_units(self, word: str, row: ColumnType, position: int) -> pa.DataType:
        """Parse the unit of a time: `timestamp[us]`, as Arrow prints it, or `datetime64[ns]`, as numpy does."""
        self.at += 1
        _, unit, where = self.take("a unit")
        in_utc = row.of_unit is not None and self.peek() == ","
        if in_utc:
            self.utc()
        self.expect("]", "a closing bracket")
        if row.of_unit is None:
            raise self.error(f"{word} takes no unit", position)
        if unit not in UNITS:
            raise self.error(f"{word} takes [s], [ms], [us] or [ns]", where)
        return pa.timestamp(unit, "UTC") if in_utc else row.of_unit(unit)

    def utc(self) -> None:
        """Parse the zone behind a unit, as Arrow prints it: `timestamp[us, tz=UTC]`; `timestamp[us, UTC]` is the same."""
        self.at += 1
        if self.peek() == "tz":
            self.at += 1
            self.expect("=", "tz=UTC")
        position = self.position()
        _, zone, _ = self.take("UTC")
        if zone != "UTC":
            raise self.error("the zone of a schema is UTC: the moments are the same in any other one", position)

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def position(self) -> int:
        return self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.text)

    def take(self, wanted: str) -> tuple[str, str, int]:
        if self.at == len(self.tokens):
            raise self.error(f"expected {wanted}, found the end", len(self.text))
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, value: str, wanted: str) -> None:
        position = self.position()
        _, found, _ = self.take(wanted)
        if found.lower() != value:
            raise self.error(f"expected {wanted}, found {shortened(found)}", position)

    def error(self, what: str, position: int) -> SchemaError:
        # if the text is long, only the part around the word is shown
        first = max(0, position - _SHOWN)
        line = "".join(c if c.isprintable() else " " for c in self.text[first : position + _SHOWN])
        return SchemaError(f"{self.parameter}: {what}\n    {line}\n    {' ' * (position - first)}^")
