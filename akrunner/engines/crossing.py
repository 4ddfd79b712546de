"""The types that the columns of a table have on their way to a script that asks for the table, and on their way back.

Numbers, booleans, strings and bytes cross as they are. MaxCompute's other types (datetime, decimal, array, map, ...)
cross as text, lists and structs as JSON, and are read from text on the way back.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.column_types import NUMBERS, UNITS, Family, family_of
from akrunner.engines import nested
from akrunner.errors import DataError, ReadError
from akrunner.schema import Field, Schema
from akrunner.tables import types
from akrunner.tables.store import TableInfo
from akrunner.wire.messages import TableColumn

#: the part of Arrow's message with Arrow's name of a type; akrunner's message has MaxCompute's name already
_UNSAID = re.compile(r" as a scalar of type .*")
#: exceptions that are raised for a text that is no value of a type
_ODD = (pa.ArrowException, ValueError, TypeError, OverflowError, RecursionError)


def described(info: TableInfo) -> list[TableColumn]:
    """Return the description of a table's columns that a worker is sent; the partition columns come last
    (`akrunner.wire.messages`)."""
    told = [
        TableColumn(name=one.name, type=types.words_of(one), dtype=_dtype(one), partition=False, nullable=one.nullable)
        for one in info.columns
    ]
    parts = [
        TableColumn(name=one.name, type=types.words_of(one), dtype=_dtype(one), partition=True, nullable=False)
        for one in info.keys
    ]
    return told + parts


def _dtype(column: pa.Field) -> str:
    return Field(column.name, column.type).dtype if _crosses(column.type) else "bytes"


def _crosses(data_type: pa.DataType) -> bool:
    """Whether a script can be given values of this type as they are."""
    family = family_of(data_type)
    return family in NUMBERS or family in (Family.TEXT, Family.OCTETS)


def crossed(batch: pa.RecordBatch, table: str) -> pa.RecordBatch:
    """Return a table's rows as a script gets them.

    Raises:
        ReadError: a column has a value that text cannot represent; the error names the column.
    """
    columns = []
    for name, column in zip(batch.schema.names, batch.columns):
        try:
            columns.append(_as_crossing(column))
        except _ODD as e:
            raise ReadError(
                f"table {table}: column {name!r} ({types.type_words(column.type)}) has a value that a script cannot be given: "
                f"{e}; select other columns, or CAST it in a table made for the script"
            ) from None
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _as_crossing(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if _crosses(column.type) else _as_text(column)


def _as_text(column: pa.Array) -> pa.Array:
    data_type = column.type
    if pa.types.is_timestamp(data_type):
        # a datetime is shown with its milliseconds where there are any, as MaxCompute does
        return pc.replace_substring_regex(_moments(column), pattern=r"\.0+$", replacement="")
    if pa.types.is_date(data_type):
        return _moments(column)
    if pa.types.is_nested(data_type):
        values = column.to_pylist()
        return pa.array([None if one is None else nested.to_json(one, data_type) for one in values], pa.string())
    return column.cast(pa.string())


def _moments(column: pa.Array) -> pa.Array:
    text = column.cast(pa.string())
    # for a time that no calendar has, Arrow gives a text in angle brackets that says so
    odd = pc.fill_null(pc.starts_with(text, "<"), False)
    if pc.any(odd).as_py():
        raise ValueError(text.filter(odd)[0].as_py().strip("<>"))
    return text


def written(info: TableInfo) -> Schema:
    """Return the columns that a script may write, with the types in which they come."""
    return Schema(tuple(Field(one.name, one.type if _crosses(one.type) else pa.string()) for one in info.columns))


def back(batch: pa.RecordBatch, info: TableInfo, first: int = 0) -> pa.RecordBatch:
    """Return the rows that a script wrote, in the table's types.

    Args:
        first: the number of the batch's first row.
    Raises:
        DataError: a text is no value of its column's type, or a value is null in a column that has no nulls.
    """
    columns = []
    for name, column in zip(batch.schema.names, batch.columns):
        known = info.columns.field(name)
        if column.type != known.type:
            column = _from_text(column, known, first)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def said(error: DataError) -> str:
    """Return the codec's message about a value, with MaxCompute's names of types."""
    return str(error).replace("declare it as varbinary", "declare it as BINARY")


def _from_text(column: pa.Array, known: pa.Field, first: int) -> pa.Array:
    try:
        return _made(column, known)
    except _ODD:
        # convert one by one, to find the row that fails
        for row in range(len(column)):
            try:
                _made(column.slice(row, 1), known)
            except _ODD as e:
                raise DataError(
                    f"row {first + row}, column {known.name!r}: text that is no {types.words_of(known)}: "
                    f"{_UNSAID.sub('', str(e))}",
                    row=first + row,
                    column=known.name,
                ) from None
        raise


def _made(column: pa.Array, known: pa.Field) -> pa.Array:
    """Return the values that texts represent. Raises what `_ODD` lists."""
    if pa.types.is_nested(known.type):
        values = [None if one is None else nested.from_json(one, known.type) for one in column.to_pylist()]
        return pa.array(values, known.type)
    if pa.types.is_timestamp(known.type):
        # digits that are finer than the column's unit are cut off, as PyODPS does it
        digits = UNITS[known.type.unit]
        column = pc.replace_substring_regex(column, pattern=rf"(\.\d{{{digits}}})\d+$", replacement=r"\1")
    elif pa.types.is_date(known.type):
        column = pc.replace_substring_regex(column, pattern=r"[ T]00:00:00(\.0+)?$", replacement="")
    return column.cast(known.type)
