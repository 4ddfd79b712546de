"""Makes arrays of lists, of any of Arrow's list types, from values that lie end to end."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.arrays import array_of
from akrunner.schema import Field

Mask = NDArray[np.bool_]


def misfit(field: Field, offsets: NDArray[np.int64], there: Mask | None) -> tuple[int, str] | None:
    """Return the first row whose list does not fit the column's type, and what is wrong with it; None if all lists fit.

    Args:
        offsets: [rows + 1] where each row's values begin.
        there: [rows] False for a null; None: there are no nulls.
    """
    if field.shape is not None:
        size, counts = math.prod(field.shape), np.diff(offsets)
        wrong = counts != size if there is None else (counts != size) & there
        if wrong.any():
            row = int(np.argmax(wrong))
            return row, f"has {counts[row]} values; the schema's {field.type} has {size} a row"
    elif not pa.types.is_large_list(field.type) and len(offsets) and offsets[-1] >= 1 << 31:
        return 0, f"has {offsets[-1]} values in one batch; write fewer rows at a time"
    return None


def listed(field: Field, values: pa.Array, offsets: NDArray[np.int64], there: Mask | None) -> pa.Array:
    """Return an array of lists of the column's type. Call `misfit` before.

    Args:
        field: the column, which has lists.
        values: the values, in the type of the lists' values.
        offsets: as in `misfit`.
        there: as in `misfit`.
    """
    rows = len(offsets) - 1
    if field.shape is None:
        kind, width = (pa.LargeListArray, np.int64) if pa.types.is_large_list(field.type) else (pa.ListArray, np.int32)
        mask = None if there is None else array_of(~there)
        return kind.from_arrays(array_of(offsets.astype(width)), values, type=field.type, mask=mask)
    size = math.prod(field.shape)
    if there is not None:
        # a list of fixed size has values even where it is null
        at = np.repeat(offsets[:-1], size) + np.tile(np.arange(size), rows)
        values = values.take(array_of(at, np.repeat(there, size)))
    present = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    tensor = isinstance(field.type, pa.BaseExtensionType)
    plain = field.type.storage_type if tensor else field.type
    array = pa.Array.from_buffers(plain, rows, [present], children=[values])
    return pa.ExtensionArray.from_storage(field.type, array) if tensor else array
