"""Conversions of numbers and booleans between Arrow and numpy, as they lie in memory, without pandas.

Arrow's own functions (`pa.array`, `pa.scalar`, `to_numpy`, `to_pandas_dtype`) import pandas first, if it is installed: that
costs every job half a second and the memory. Some versions do not work without pandas (`to_pandas_dtype` of pyarrow 25).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.column_types import DTYPES, TIMES, Family, family_of, type_of

#: bytes with memory of their own, or a view of memory that will be used again
Octets = bytes | memoryview


def arrow_type(name: str) -> pa.DataType | None:
    """Return Arrow's type of integers, floats or booleans for numpy's name of it, None if there is none."""
    row = DTYPES.get(name)
    return row.arrow if row is not None else None


def numbers_of(array: pa.Array) -> NDArray[np.generic]:
    """Return integers or floats as they lie in memory; the value at a null is undefined."""
    row = type_of(array.type)
    assert row is not None and row.family in (Family.WHOLE, Family.REAL), array.type
    dtype = np.dtype(row.dtype)
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def known_numbers_of(array: pa.Array) -> NDArray[np.generic]:
    """Return integers or floats as `numbers_of` does, with 0 for each null."""
    values = numbers_of(array)
    return np.where(truths_of(array.is_valid()), values, values.dtype.type(0)) if array.null_count else values


def integers_of(values: pa.Array) -> pa.Array:
    """Return times, booleans and decimals without a fraction as int64 (times in their unit).

    Raises: pa.ArrowInvalid: a value does not fit.
    """
    if family_of(values.type) in TIMES and values.type.bit_width == 32:
        # Arrow casts these only to integers of 32 bits
        values = values.cast(pa.int32())
    elif pa.types.is_decimal(values.type) and values.type.bit_width < 128:
        # Arrow casts these to no type that holds larger numbers
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    return values.cast(pa.int64())


def counted(integers: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return the timestamps, dates or times that integers stand for: the inverse of `integers_of`.

    Raises: pa.ArrowInvalid: a value does not fit.
    """
    return integers.cast(pa.int32() if data_type.bit_width == 32 else pa.int64()).cast(data_type)


def as_decimals(numbers: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return whole numbers, given as integers or as floats, as decimals without a fraction.

    Raises: pa.ArrowInvalid: a value does not fit, or has a fraction.
    """
    if family_of(numbers.type) is not Family.WHOLE:
        # by way of int64: if Arrow cast floats to decimals, it would round a fraction
        numbers = numbers.cast(pa.int64())
    # in two steps: Arrow casts integers only to decimals that can hold every number of the integers' type
    return numbers.cast(pa.decimal128(20, 0)).cast(data_type)


def truths_of(array: pa.BooleanArray) -> NDArray[np.bool_]:
    """Return booleans without nulls as a numpy array."""
    if not len(array):
        return np.empty(0, np.bool_)
    octets = np.frombuffer(array.buffers()[1], np.uint8)
    return np.unpackbits(octets, count=array.offset + len(array), bitorder="little")[array.offset :].view(np.bool_)


def array_of(values: NDArray[np.generic], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return integers, floats or booleans of numpy as an Arrow array.

    Args: valid: False for each null; None: there are no nulls.
    """
    kind = pa.from_numpy_dtype(values.dtype)
    packed = np.packbits(values.view(np.uint8), bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    present = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [present, pa.py_buffer(packed)])


def octets_of(values: Sequence[Octets], kind: pa.DataType) -> pa.Array:
    """Return byte strings as an array of a binary type, or of a text type if they are UTF-8.

    Raises: OverflowError: they have more bytes than the type's 32-bit offsets can count.
    """
    wide = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=ends[1:])
    if not wide and ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{ends[-1]:,} bytes in one array of {kind}")
    places = pa.py_buffer(ends if wide else ends.astype(np.int32))
    return pa.Array.from_buffers(kind, len(values), [None, places, pa.py_buffer(b"".join(values))])


def texts_of(values: Sequence[str]) -> pa.Array:
    """Return texts as an Arrow array of strings."""
    return octets_of([value.encode() for value in values], pa.string())


def decoded(column: pa.Array) -> pa.Array:
    """Return the values of a dictionary column, one for each row; other columns are returned unchanged.

    A row is null if its index is null, or if its index points at a null.
    """
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def nested(tensors: pa.Array) -> pa.Array:
    """Return tensors of one shape as lists of lists, in the order of their dimensions' names.

    Args:
        tensors: a column of `pa.fixed_shape_tensor`; a permutation of the dimensions is applied.
    Returns: [rows] lists of shape [dimension 0] of lists of shape [dimension 1] and so on; a null tensor is a null.
    """
    kind, storage, rows = tensors.type, tensors.storage, len(tensors)
    shape, size = list(kind.shape), kind.storage_type.list_size
    # not `flatten`, which leaves out the values of nulls
    values = storage.values.slice(storage.offset * size, rows * size)
    if kind.permutation is not None:
        order = (
            np.arange(rows * size, dtype=np.int64).reshape(rows, *shape).transpose(0, *(one + 1 for one in kind.permutation))
        )
        values = values.take(pa.Array.from_buffers(pa.int64(), order.size, [None, pa.py_buffer(order.tobytes())]))
        shape = [shape[one] for one in kind.permutation]
    for length in reversed(shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, length)
    return pa.FixedSizeListArray.from_arrays(values, shape[0], mask=storage.is_null())


def shown_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with dictionaries that have no nulls among their values: each such null becomes a null index.

    Arrow does not count nulls among a dictionary's values, and cannot join dictionaries that have some.
    """
    # each look at `columns` makes new objects
    given = batch.columns
    columns = [_shown(column) for column in given]
    if all(one is other for one, other in zip(columns, given)):
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
        # Arrow cannot decode dictionaries of views; such columns come here again once they are strings
        return column
    if inner is column:
        encoded = decoded(column).dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(plain.index_type), encoded.dictionary, ordered=plain.ordered)
    text = inner.type.value_type
    if pa.types.is_fixed_size_list(plain):
        return column.cast(pa.list_(text, plain.list_size)).cast(plain)
    return column.cast(pa.large_list(text) if pa.types.is_large_list(plain) else pa.list_(text)).cast(plain)


def first_wrong(count: int, tried: Callable[[int, int], object], kinds: type[Exception] | tuple[type[Exception], ...]) -> int:
    """Return the number of the first of some values that is wrong, by halving: it is known that one is.

    Args:
        count: how many values there are.
        tried: called with (start, stop); raises an exception of `kinds` if one of the values from `start` to before `stop` is
            wrong.
    """
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        try:
            tried(low, middle + 1)
            low = middle + 1
        except kinds:
            high = middle
    return low
