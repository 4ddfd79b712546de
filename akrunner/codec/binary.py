"""Binary arrays of Arrow as (offsets, bytes): makes, cuts, joins and spreads them without looking at single rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import decoded
from akrunner.schema import is_text

U8 = NDArray[np.uint8]
I64 = NDArray[np.int64]


def blobs_of(values: pa.Array) -> pa.LargeBinaryArray:
    values = decoded(values)
    if is_text(values.type) and not pa.types.is_large_string(values.type):
        values = values.cast(pa.large_string())
    return large(values)


def large(values: pa.Array) -> pa.LargeBinaryArray:
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    return values if pa.types.is_large_binary(values.type) else values.cast(pa.large_binary())


def offsets_of(array: pa.LargeBinaryArray) -> I64:
    raw = np.frombuffer(array.buffers()[1], np.int64) if array.buffers()[1] is not None else np.zeros(1, np.int64)
    return raw[array.offset : array.offset + len(array) + 1]


def data_of(array: pa.LargeBinaryArray) -> U8:
    offsets = offsets_of(array)
    buffer = array.buffers()[2]
    if buffer is None:
        return np.empty(0, np.uint8)
    return np.frombuffer(buffer, np.uint8)[offsets[0] : offsets[-1]]


def binary(offsets: I64, flat: U8) -> pa.LargeBinaryArray:
    contiguous = np.ascontiguousarray(flat)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int64)), pa.py_buffer(contiguous)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def matrix_rows(matrix: U8) -> pa.LargeBinaryArray:
    rows, width = matrix.shape
    return binary(np.arange(rows + 1, dtype=np.int64) * width, matrix.reshape(-1))


def join(parts: Sequence[pa.LargeBinaryArray]) -> pa.LargeBinaryArray:
    if len(parts) == 1:
        return parts[0]
    nothing = binary(np.zeros(2, np.int64), np.empty(0, np.uint8))[0]
    return pc.binary_join_element_wise(*parts, nothing)


def regroup(elements: pa.LargeBinaryArray, offsets: I64) -> pa.LargeBinaryArray:
    """Join the elements of each row of a list column: return one binary value per row, made of the same bytes, cut at the ends
    of rows."""
    return binary(offsets_of(elements)[offsets] - offsets_of(elements)[0], data_of(elements))


def spread(dense: pa.LargeBinaryArray, where: I64, rows: int) -> pa.LargeBinaryArray:
    """Return an array of `rows` values with the bytes of the present rows at `where`, and empty values elsewhere."""
    lengths = np.zeros(rows, np.int64)
    lengths[where] = np.diff(offsets_of(dense))
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return binary(offsets, data_of(dense))
