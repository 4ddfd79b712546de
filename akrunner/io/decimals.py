"""What columns of decimals become for a script: `decimals=`.

A script is given neither decimals nor anything like them: the numbers of an Example, and numpy's, are whole or floating.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import decoded
from akrunner.checks import check_choice
from akrunner.errors import SourceError
from akrunner.io.casts import asked
from akrunner.io.table import TableSource
from akrunner.schema import is_list

#: what `decimals=` may say, and the Arrow type that decimals become
_TYPES = {"float64": pa.float64(), "text": pa.string(), "int64": pa.int64()}
WAYS = ("refuse", *_TYPES)
#: every number of so many digits is another double
_EXACT_DIGITS = 15
#: Arrow writes numbers with more digits behind the point than this, or with a negative scale, with an exponent: 1E-7
_PLAIN_SCALE = 6


def check_decimals(given: str) -> str:
    """Return `decimals=` after a check.

    Raises:
        ConfigError: it is none of `WAYS`.
    """
    check_choice("decimals", given, WAYS)
    return given


def converted(table: TableSource, way: str) -> TableSource:
    """Return the table with its columns of decimals, and of lists of decimals, in another type.

    Args:
        way: one of `WAYS`. "float64": the nearest double; "text": all digits, without an exponent; "int64": the number without
            its point, so that 12.50 of decimal(10,2) becomes 1250; "refuse": the table is returned unchanged.
    """
    if way == "refuse":
        return table
    schema = pa.schema([field.with_type(_target(field.type, _TYPES[way])) for field in table.schema])
    changed = [field for field in table.schema if schema.field(schema.names.index(field.name)).type != field.type]
    if not changed:
        return table

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in table.batches():
            columns = [
                column if column.type == field.type else _column(column, field, way, rows)
                for column, field in zip(batch.columns, schema)
            ]
            rows += batch.num_rows
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    notes = (*table.notes, *_rounded(changed)) if way == "float64" else table.notes
    # without `files`: machines that read the files themselves would give decimals
    return dataclasses.replace(table, schema=schema, open=batches, files=None, held=None, each=None, notes=notes)


def _target(given: pa.DataType, instead: pa.DataType) -> pa.DataType:
    """Return the type that a column becomes: the same one if it has no decimals."""
    if pa.types.is_dictionary(given):
        return instead if pa.types.is_decimal(given.value_type) else given
    if is_list(given) and not isinstance(given, pa.BaseExtensionType):
        inner = _target(given.value_type, instead)
        if inner == given.value_type:
            return given
        if pa.types.is_fixed_size_list(given):
            return pa.list_(inner, given.list_size)
        return pa.large_list(inner) if pa.types.is_large_list(given) else pa.list_(inner)
    return instead if pa.types.is_decimal(given) else given


def _rounded(fields: list[pa.Field]) -> list[str]:
    """Return what to tell about columns with numbers of more digits than a double keeps."""
    long = [field for field in fields if _digits(field.type) > _EXACT_DIGITS]
    if not long:
        return []
    named = ", ".join(f"{field.name!r} ({field.type})" for field in long[:8])
    return [
        f'source: decimals="float64": of column {named}{" and others" if len(long) > 8 else ""} a float64 keeps {_EXACT_DIGITS} '
        'to 17 digits, and numbers with more are rounded; decimals="text" (--decimals text) keeps them all'
    ]


def _digits(data_type: pa.DataType) -> int:
    while not pa.types.is_decimal(data_type):
        data_type = data_type.value_type
    return int(data_type.precision)


def _column(column: pa.Array, field: pa.Field, way: str, first: int) -> pa.Array:
    """Return a column's values in another type.

    Args:
        field: the column's name and new type.
        first: the number of the column's first row, for errors.
    Raises:
        SourceError: a number does not fit.
    """
    if pa.types.is_dictionary(column.type):
        column = decoded(column)
    if is_list(column.type):
        # lists that begin at the first value can be put together again
        column = pa.concat_arrays([column])
        try:
            values = _values(column.values, way)
        except pa.ArrowInvalid as e:
            raise SourceError(
                f'source: column {field.name!r} cannot become lists of {way} (decimals="{way}", --decimals {way}): {e}; '
                'decimals="text" keeps all digits'
            ) from None
        mask = column.is_null() if column.null_count else None
        if pa.types.is_fixed_size_list(column.type):
            return pa.FixedSizeListArray.from_arrays(values, column.type.list_size, mask=mask)
        made = pa.LargeListArray if pa.types.is_large_list(column.type) else pa.ListArray
        return made.from_arrays(column.offsets, values, mask=mask)
    if way != "int64":
        return _values(column, way)
    try:
        return _unscaled(column).cast(pa.int64())
    except pa.ArrowInvalid:
        # the same again, to find the row
        return asked(
            _unscaled(column),
            pa.field(field.name, pa.int64()),
            first,
            'source: decimals="int64" (--decimals int64; decimals="text" keeps all digits)',
        )


def _values(values: pa.Array, way: str) -> pa.Array:
    if way == "float64":
        return values.cast(pa.float64())
    return _text(values) if way == "text" else _unscaled(values).cast(pa.int64())


def _wide(values: pa.Array) -> pa.Array:
    """Return decimals of 128 or 256 bits with a scale that is not negative."""
    precision, scale = values.type.precision, values.type.scale
    if scale < 0:
        precision, scale = precision - scale, 0
    wanted = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    if values.type.bit_width == 256 and precision <= 38:
        wanted = pa.decimal256(precision, scale)
    return values.cast(wanted)


def _unscaled(values: pa.Array) -> pa.Array:
    """Return decimals without their point: 12.50 becomes 1250. The bytes stay as they are."""
    wide = _wide(values)
    whole = pa.decimal128(38, 0) if wide.type.bit_width == 128 else pa.decimal256(76, 0)
    return pa.Array.from_buffers(whole, len(wide), wide.buffers(), offset=wide.offset)


def _text(values: pa.Array) -> pa.Array:
    """Return decimals as text with all digits that the type has behind the point, and never with an exponent."""
    if 0 <= values.type.scale <= _PLAIN_SCALE:
        return values.cast(pa.string())
    wide = _wide(values)
    scale = wide.type.scale
    text = _unscaled(wide).cast(pa.string())
    if not scale:
        return text
    signs = pc.if_else(pc.starts_with(text, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(text, "-"), scale + 1, "0")
    whole, behind = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(pc.binary_join_element_wise(signs, whole, ""), behind, ".")
