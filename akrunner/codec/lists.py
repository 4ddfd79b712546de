"""The values of lists, end to end -> an array of lists, of whichever of Arrow's types a schema says."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.arrays import array_of
from akrunner.schema import Field

Mask = NDArray[np.bool_]


def misfit(field: Field, offsets: NDArray[np.int64], there: Mask | None) -> tuple[int, str] | None:
    """The first row whose list the column's type does not hold, and what is wrong with it; None: it holds all.

    Args: offsets: [rows + 1] where each row's values begin; there: [rows] which are no nulls, None: all.
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
    """Args: field: the column, of lists; values: of its type of values; the others as of `misfit`, which has found nothing."""
    rows = len(offsets) - 1
    if field.shape is None:
        kind, width = (pa.LargeListArray, np.int64) if pa.types.is_large_list(field.type) else (pa.ListArray, np.int32)
        mask = None if there is None else array_of(~there)
        return kind.from_arrays(array_of(offsets.astype(width)), values, type=field.type, mask=mask)
    size = math.prod(field.shape)
    if there is not None:
        # those of a null are there, too
        at = np.repeat(offsets[:-1], size) + np.tile(np.arange(size), rows)
        values = values.take(array_of(at, np.repeat(there, size)))
    present = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    tensor = isinstance(field.type, pa.BaseExtensionType)
    plain = field.type.storage_type if tensor else field.type
    array = pa.Array.from_buffers(plain, rows, [present], children=[values])
    return pa.ExtensionArray.from_storage(field.type, array) if tensor else array
