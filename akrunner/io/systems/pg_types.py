"""The types of PostgreSQL: what each becomes in Arrow, or why it is refused, and what Arrow's types become in PostgreSQL.

The driver returns some types as PostgreSQL's own bytes, and silently changes some values (arrays of arrays become flat,
infinite dates finite). The code here asks for such columns in another way, or refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from akrunner.column_types import is_octets
from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.io.pg_ranges import Column, in_query
from akrunner.io.systems.base import quoted

#: what numerics without a fixed precision may become: `?decimals=`
DECIMALS = ("float64", "text")
#: types whose text contains all of their value
_AS_TEXT = frozenset("json jsonb uuid inet cidr macaddr macaddr8 xml name citext".split())
#: for types whose text is of little use: how a query should convert them
_WAYS = {
    "interval": "EXTRACT(epoch FROM {0})",
    "money": "{0}::numeric::float8",
    "timetz": "{0}::time",
}
#: Arrow's type -> PostgreSQL's, in the words of `format_type`
_WRITTEN: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.uint64(): "numeric(20,0)",
    pa.float16(): "real",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.time32("s"): "time without time zone",
    pa.time32("ms"): "time without time zone",
    pa.time64("us"): "time without time zone",
}
#: Arrow's types that the driver cannot send -> the types in which they are sent
_SENT: Mapping[pa.DataType, pa.DataType] = {
    pa.uint64(): pa.decimal128(20, 0),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.time64("us"),
    pa.time32("ms"): pa.time64("us"),
    pa.large_string(): pa.string(),
}
_OID = re.compile(r"unnamed<oid:(\d+)>")


def described(cursor: Any, schema: pa.Schema, decimals: str | None, shown: str) -> list[Column]:
    """Return the columns of a query.

    Args:
        schema: the schema that the driver reports.
        decimals: one of `DECIMALS`; None: numerics without a fixed precision are refused.
    Raises:
        SourceError: a type is refused, or two columns have the same name.
    """
    found: list[Column] = []
    for field in schema:
        if field.name in [one.name for one in found]:
            raise SourceError(
                f"source: {shown}: two columns are called {field.name!r}; give one another name: {quoted(field.name)} AS other"
            )
        found.append(_described(cursor, field, decimals, shown))
    return found


def _described(cursor: Any, field: pa.Field, decimals: str | None, shown: str) -> Column:
    name, word = quoted(field.name), _word(cursor, field)
    array = word.startswith("_")
    of = word[1:] if array else word
    looks = (f"array_ndims({name})", "has arrays of arrays, which would be flat: turn them into text") if array else ("", "")
    if array:
        # a slice begins at 1; the driver refuses arrays that begin elsewhere, and lists do not say where they begin
        name = f"{name}[:]"
    text = f"{name}::text[]" if array else f"{name}::text"
    asked: dict[str, tuple[pa.DataType, str]] = {
        "oid": (pa.int64(), f"{name}::bigint{'[]' if array else ''}"),
        **{one: (pa.string(), text) for one in (*_AS_TEXT, "enum")},
    }
    if of == "numeric":
        kind, expression = _numeric(field, array, decimals, name, shown)
    elif of in asked:
        kind, expression = asked[of]
    elif array:
        kind, expression = field.type.value_type if pa.types.is_list(field.type) else field.type, name
    else:
        kind, expression = field.type, name
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_interval(kind) or pa.types.is_struct(kind) or of in _WAYS:
        said = in_query(field.name)
        way = _WAYS.get(of, "{0}::text").format(said)
        raise SourceError(
            f"source: {shown}: column {field.name!r} is of PostgreSQL's type {of}{'[]' if array else ''}, which has no like "
            f"here; leave ?table= out and write the query, which the database runs: --select 'SELECT {way} AS {said}, ... "
            "FROM ...' (select=)"
        )
    return Column(field.name, pa.list_(kind) if array else kind, f"{expression} AS {quoted(field.name)}", looks)


def _word(cursor: Any, field: pa.Field) -> str:
    """Return PostgreSQL's word for a column's type: "_int4" for an array of int4, "enum" for all enum types."""
    word = str((field.metadata or {}).get(b"POSTGRESQL:type", b""), "utf-8")
    oid = _OID.fullmatch(word)
    if oid is None:
        return word
    cursor.execute(
        "SELECT CASE WHEN t.typtype = 'e' THEN 'enum' WHEN e.typtype = 'e' THEN '_enum' ELSE t.typname END FROM pg_type t "
        "LEFT JOIN pg_type e ON e.oid = t.typelem WHERE t.oid = $1",
        (int(oid[1]),),
    )
    row = cursor.fetchone()
    return str(row[0]) if row is not None else word


def _numeric(field: pa.Field, array: bool, decimals: str | None, name: str, shown: str) -> tuple[pa.DataType, str]:
    more = "[]" if array else ""
    if decimals == "float64":
        return pa.float64(), f"{name}::float8{more}"
    if decimals == "text":
        return pa.string(), f"{name}::text{more}"
    mod = int((field.metadata or {}).get(b"POSTGRESQL:typmod", b"-1"))
    said = in_query(field.name)
    precision, scale = ((mod - 4) >> 16) & 0xFFFF, (mod - 4) & 0x7FF
    if mod < 4 or precision > 38 or scale > precision or array:
        raise SourceError(
            f"source: {shown}: column {field.name!r} is of PostgreSQL's type "
            f"numeric{more}{'' if mod < 4 else f'({precision},{scale})'}, which holds more digits than any type here: put "
            "&decimals=float64 (or decimals=text, which keeps them all) behind ?table=..., or write the query: --select "
            f"'SELECT {said}::float8{more} AS {said}, ... FROM ...' (select=)"
        )
    return pa.decimal128(precision, scale), f"{name}::text"


class Written(NamedTuple):
    """A column of an output.

    Attributes:
        name: its name.
        type: its type in PostgreSQL.
        sent: the Arrow type in which the driver gets it.
    """

    name: str
    type: str
    sent: pa.DataType


def written(schema: pa.Schema, shown: str) -> list[Written]:
    """Return the columns of an output.

    Raises:
        SinkError: PostgreSQL has no type for a column.
    """
    return [_written(field.name, field.type, shown) for field in schema]


def _written(name: str, kind: pa.DataType, shown: str) -> Written:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        value = _written(name, kind.value_type, shown)
        if not value.type.endswith("[]"):
            return Written(name, value.type + "[]", pa.list_(value.sent))
    elif pa.types.is_timestamp(kind):
        zone = "without" if kind.tz is None else "with"
        return Written(name, f"timestamp {zone} time zone", pa.timestamp("us", kind.tz and "UTC"))
    elif pa.types.is_decimal(kind) and kind.precision <= 38 and kind.scale >= 0:
        return Written(name, f"numeric({kind.precision},{kind.scale})", kind)
    elif is_octets(kind):
        return Written(name, "bytea", pa.binary())
    elif kind in _WRITTEN:
        return Written(name, _WRITTEN[kind], _SENT.get(kind, kind))
    raise SinkError(
        f"output: {shown}: column {name!r} is of type {kind}, for which PostgreSQL has none; give another in output_schema="
    )


def sendable(rows: pa.Table, columns: Sequence[Written]) -> pa.Table:
    """Return rows in the types that the driver takes.

    Raises:
        WriteError: a value cannot be converted.
    """
    arrays = []
    for column, kind in zip(rows.columns, columns):
        try:
            arrays.append(column if column.type == kind.sent else column.cast(kind.sent))
        except pa.ArrowInvalid as e:
            raise WriteError(f"output: column {kind.name!r} cannot become PostgreSQL's {kind.type}: {e}") from None
    return pa.Table.from_arrays(arrays, names=[one.name for one in columns])
