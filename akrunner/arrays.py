"""Numbers and booleans of Arrow <-> numpy, as they lie in memory, without pandas.

Where Arrow does it by itself (`pa.array`, `pa.scalar`, `to_numpy`, `to_pandas_dtype`) it imports pandas first, if that is installed: half
a second, and its memory, of every job. And some versions cannot do without it (`to_pandas_dtype` of pyarrow 25).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.column_types import DTYPES, TIMES, Family, family_of, type_of

#: bytes of somebody's own, or where they lie in memory that is used again
Octets = bytes | memoryview


def arrow_type(name: str) -> pa.DataType | None:
    """Arrow's type of integers, floats or booleans by numpy's name, None: there is none."""
    row = DTYPES.get(name)
    return row.arrow if row is not None else None


def numbers_of(array: pa.Array) -> NDArray[np.generic]:
    """Integers or floats, as they lie in memory: under a null stands anything at all."""
    row = type_of(array.type)
    assert row is not None and row.family in (Family.WHOLE, Family.REAL), array.type
    dtype = np.dtype(row.dtype)
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def known_numbers_of(array: pa.Array) -> NDArray[np.generic]:
    """As `numbers_of`, with 0 where a null is."""
    values = numbers_of(array)
    return np.where(truths_of(array.is_valid()), values, values.dtype.type(0)) if array.null_count else values


def integers_of(values: pa.Array) -> pa.Array:
    """What times, booleans and decimals without a fraction count, as int64. Raises: pa.ArrowInvalid: one does not fit."""
    if family_of(values.type) in TIMES and values.type.bit_width == 32:
        # Arrow goes from these to 32 bits alone
        values = values.cast(pa.int32())
    elif pa.types.is_decimal(values.type) and values.type.bit_width < 128:
        # and from these to nothing that holds more
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    return values.cast(pa.int64())


def counted(integers: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Integers as the timestamps, dates or times they count: the inverse of `integers_of`. Raises: pa.ArrowInvalid: one does not fit."""
    return integers.cast(pa.int32() if data_type.bit_width == 32 else pa.int64()).cast(data_type)


def as_decimals(numbers: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Whole numbers, also such that are floats, as decimals without a fraction. Raises: pa.ArrowInvalid: one does not fit, or has a fraction."""
    if family_of(numbers.type) is not Family.WHOLE:
        # Arrow would round a fraction
        numbers = numbers.cast(pa.int64())
    # Arrow casts to those alone that hold every number of the integers' type
    return numbers.cast(pa.decimal128(20, 0)).cast(data_type)


def truths_of(array: pa.BooleanArray) -> NDArray[np.bool_]:
    """Booleans without nulls."""
    if not len(array):
        return np.empty(0, np.bool_)
    octets = np.frombuffer(array.buffers()[1], np.uint8)
    return np.unpackbits(octets, count=array.offset + len(array), bitorder="little")[array.offset :].view(np.bool_)


def array_of(values: NDArray[np.generic], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Integers, floats or booleans of numpy's. Args: valid: which are no nulls; None: all."""
    kind = pa.from_numpy_dtype(values.dtype)
    packed = np.packbits(values.view(np.uint8), bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    present = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [present, pa.py_buffer(packed)])


def octets_of(values: Sequence[Octets], kind: pa.DataType) -> pa.Array:
    """Byte strings as an array of a binary type, or of one of UTF-8 text that they are."""
    wide = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=ends[1:])
    if not wide and ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{ends[-1]:,} bytes in one array of {kind}")
    places = pa.py_buffer(ends if wide else ends.astype(np.int32))
    return pa.Array.from_buffers(kind, len(values), [None, places, pa.py_buffer(b"".join(values))])


def texts_of(values: Sequence[str]) -> pa.Array:
    """Texts as an array of strings."""
    return octets_of([value.encode() for value in values], pa.string())


def decoded(column: pa.Array) -> pa.Array:
    """The values of a dictionary, one a row: null is what has no index, and whose index points at a null."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def shown_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, its dictionaries without nulls among their values: Arrow does not count these, and cannot join such dictionaries."""
    columns = [_shown(column) for column in batch.columns]
    if all(one is other for one, other in zip(columns, batch.columns)):
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _shown(column: pa.Array) -> pa.Array:
    inner, plain = column, column.type
    lists = pa.types.is_list(plain) or pa.types.is_large_list(plain) or pa.types.is_fixed_size_list(plain)
    if lists and pa.types.is_dictionary(plain.value_type):
        inner = column.values
    if not pa.types.is_dictionary(inner.type) or not inner.dictionary.null_count or pa.types.is_nested(inner.type.value_type):
        return column
    if "_view" in str(inner.type):
        # Arrow decodes none of these; they come again as strings
        return column
    if inner is column:
        encoded = decoded(column).dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(plain.index_type), encoded.dictionary, ordered=plain.ordered)
    text = inner.type.value_type
    if pa.types.is_fixed_size_list(plain):
        return column.cast(pa.list_(text, plain.list_size)).cast(plain)
    return column.cast(pa.large_list(text) if pa.types.is_large_list(plain) else pa.list_(text)).cast(plain)
