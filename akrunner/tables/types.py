"""Translates between MaxCompute's column types and Arrow's."""

from __future__ import annotations

import re

import pyarrow as pa

from akrunner.checks import whole_of
from akrunner.column_types import TABLE, UNITS, Family, type_of, wider
from akrunner.errors import SchemaError

_PLAIN: dict[str, pa.DataType] = {
    **{row.maxcompute: row.arrow for row in TABLE if row.sql and row.maxcompute},
    # MaxCompute has more types than these: in a schema of akrunner one word stands for all units of time
    "datetime": pa.timestamp("ms"),
    "timestamp": pa.timestamp("ns"),
    "timestamp_ntz": pa.timestamp("ns"),
    "json": pa.string(),
}
#: spellings from other SQL dialects
_ALIASES = {"integer": "int", "long": "bigint", "bool": "boolean", "text": "string", "real": "float", "numeric": "decimal"}
_LENGTHS = {"varchar": 65535, "char": 255}
#: keys of a field's metadata: MaxCompute's words for the type, where several MaxCompute types share one Arrow type; the comment
_WORDS, _COMMENT = b"odps", b"comment"
_TOKEN = re.compile(r"\s*(?:(?P<quoted>`[^`]*`)|(?P<word>\w+)|(?P<mark>[<>(),:]))")
_DEEPEST = 20


def parse_type(text: str) -> pa.DataType:
    """Return the Arrow type for MaxCompute's words: `bigint`, `decimal(10,2)`, `array<string>`, `map<string,bigint>`,
    `struct<a:bigint,b:string>`.

    Raises:
        SchemaError: MaxCompute has no such type; the message names the types it has.
    """
    return _Parser(text).parse()[0]


def field(name: str, text: str, comment: str = "", nullable: bool = True) -> pa.Field:
    """Make a column from MaxCompute's words for its type; the column keeps the words in its metadata if its Arrow type does not
    imply them.

    Raises:
        SchemaError: the words name no type.
    """
    data_type, words = _Parser(text, name).parse()
    return noted(pa.field(name, data_type, nullable), words if words != words_of(pa.field(name, data_type)) else "", comment)


def noted(column: pa.Field, words: str, comment: str) -> pa.Field:
    """Return the field with MaxCompute's words for its type and a comment in its metadata.

    Args:
        words: "" if the Arrow type implies them.
        comment: "" for none.
    """
    known = {key: value.encode() for key, value in ((_WORDS, words), (_COMMENT, comment)) if value}
    return column.with_metadata(known or None) if known else column.remove_metadata()


def words_of(column: pa.Field) -> str:
    """Return MaxCompute's words for the type of a column: `bigint`, `double`, `string`, `varchar(10)`.

    Raises:
        SchemaError: MaxCompute has no type for it.
    """
    kept = (column.metadata or {}).get(_WORDS)
    return str(kept.decode()) if kept else type_words(column.type, column.name)


def comment_of(column: pa.Field) -> str:
    return str((column.metadata or {}).get(_COMMENT, b"").decode())


def type_words(data_type: pa.DataType, name: str = "") -> str:
    """Return MaxCompute's words for an Arrow type.

    Args:
        name: of the column, for the message.
    Raises:
        SchemaError: MaxCompute has no type for it.
    """
    if pa.types.is_timestamp(data_type) and UNITS[data_type.unit] <= UNITS["ms"]:
        return "datetime"
    row = type_of(data_type)
    known = wider(row, lambda one: one.maxcompute) if row is not None else None
    if known is not None and known.family is not Family.DECIMAL:
        return known.maxcompute
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_dictionary(data_type):
        return type_words(data_type.value_type, name)
    if pa.types.is_map(data_type):
        return f"map<{type_words(data_type.key_type, name)},{type_words(data_type.item_type, name)}>"
    if pa.types.is_struct(data_type):
        return "struct<" + ",".join(f"{_quoted(one.name)}:{type_words(one.type, name)}" for one in data_type) + ">"
    if pa.types.is_nested(data_type) or isinstance(data_type, pa.FixedShapeTensorType):
        return f"array<{type_words(data_type.value_type, name)}>"
    raise SchemaError(f"column {name!r} is {data_type}, for which MaxCompute has no type; CAST it to one it has (select=)")


#: MaxCompute's words -> DuckDB's, where they differ
DUCKDB = {"string": "VARCHAR", "binary": "BLOB", "datetime": "TIMESTAMP_MS", "timestamp": "TIMESTAMP_NS"}


def duckdb_words(data_type: pa.DataType) -> str:
    """Return DuckDB's words for the Arrow type of a table's column.

    Raises:
        SchemaError: DuckDB has no type for it.
    """
    if pa.types.is_map(data_type):
        return f"MAP({duckdb_words(data_type.key_type)}, {duckdb_words(data_type.item_type)})"
    if pa.types.is_struct(data_type):
        fields = ('"' + one.name.replace('"', '""') + '" ' + duckdb_words(one.type) for one in data_type)
        return f"STRUCT({', '.join(fields)})"
    if pa.types.is_nested(data_type):
        return f"{duckdb_words(data_type.value_type)}[]"
    if pa.types.is_decimal(data_type) and data_type.precision > 38:
        raise SchemaError(f"SQL here has decimals of 38 digits; {type_words(data_type)} has more")
    words = type_words(data_type)
    return DUCKDB.get(words, words.upper())


def as_columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table that is made for rows of this schema; names become lower case.

    Raises:
        SchemaError: MaxCompute has no type for a column.
    """
    return pa.schema([pa.field(one.name.lower(), parse_type(words_of(one)), one.nullable, one.metadata) for one in schema])


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else f"`{name}`"


class _Parser:
    """A recursive descent parser for one type."""

    def __init__(self, text: str, column: str = "") -> None:
        self._text, self._at = text, 0
        self._of = f"column {column!r}: " if column else ""

    def parse(self) -> tuple[pa.DataType, str]:
        """Return the Arrow type, and MaxCompute's words for it.

        Raises:
            SchemaError: the text is no type.
        """
        found = self._type(0)
        if self._text[self._at :].strip():
            raise self._wrong()
        return found

    def _next(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match[0].strip()

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        return match[0].strip() if match else ""

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise self._wrong()

    def _wrong(self) -> SchemaError:
        known = ", ".join([*_PLAIN, "varchar(n)", "char(n)", "decimal(p,s)", "array<...>", "map<...,...>", "struct<...:...>"])
        shown = self._text.strip()
        return SchemaError(f"{self._of}{shown[:100]!r} is no type of MaxCompute's; known are {known}")

    def _type(self, depth: int) -> tuple[pa.DataType, str]:
        word = self._next().lower()
        word = _ALIASES.get(word, word)
        if depth > _DEEPEST:
            raise self._wrong()
        if word in _PLAIN:
            return _PLAIN[word], word
        if word in _LENGTHS:
            numbers = self._numbers(1)
            return pa.string(), f"{word}({numbers[0]})" if numbers else "string"
        if word == "decimal":
            return self._decimal()
        if word == "array":
            self._expect("<")
            inner, words = self._type(depth + 1)
            self._expect(">")
            return pa.list_(inner), f"array<{words}>"
        if word == "map":
            self._expect("<")
            key, key_words = self._type(depth + 1)
            self._expect(",")
            item, item_words = self._type(depth + 1)
            self._expect(">")
            return pa.map_(key, item), f"map<{key_words},{item_words}>"
        if word == "struct":
            return self._struct(depth)
        raise self._wrong()

    def _struct(self, depth: int) -> tuple[pa.DataType, str]:
        self._expect("<")
        fields: list[pa.Field] = []
        words: list[str] = []
        while True:
            name = self._next().strip("`")
            self._expect(":")
            inner, inner_words = self._type(depth + 1)
            fields.append(pa.field(name, inner))
            words.append(f"{_quoted(name)}:{inner_words}")
            if self._peek() != ",":
                break
            self._next()
        self._expect(">")
        return pa.struct(fields), "struct<" + ",".join(words) + ">"

    def _decimal(self) -> tuple[pa.DataType, str]:
        numbers = self._numbers(2)
        precision, scale = ([*numbers, 0])[:2] if numbers else (38, 18)
        if not 1 <= precision <= 76 or scale > precision:
            raise self._wrong()
        make = pa.decimal128 if precision <= 38 else pa.decimal256
        return make(precision, scale), f"decimal({precision},{scale})"

    def _numbers(self, most: int) -> list[int]:
        """Return the numbers in parentheses that follow, or [] if no parenthesis follows."""
        if self._peek() != "(":
            return []
        self._next()
        found: list[int] = []
        while True:
            number = whole_of(self._next())
            if number is None:
                raise self._wrong()
            found.append(number)
            if self._peek() != ",":
                break
            self._next()
        self._expect(")")
        if len(found) > most:
            raise self._wrong()
        return found
