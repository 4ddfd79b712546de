"""A COLUMNS frame's payload -> RecordBatch of the output schema. Layout: `akrunner.wire.columns`."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.errors import DataError
from akrunner.schema import Field, Schema, is_text
from akrunner.wire import columns as layout


def decode_columns(schema: Schema, payload: "bytes | bytearray", first_row: int = 0) -> pa.RecordBatch:
    """What `output_writer.write_batch` sent.

    Args:
        schema: the output schema; payload: of one frame; first_row: number of its first row, for errors.
    Raises: DataError: a column's values do not fit its type.
    """
    rows, packed = layout.unpack(payload)
    arrays = {header["name"]: _Column(header, buffers, rows) for header, buffers in packed}
    columns = [arrays[field.name].as_type(field, first_row) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema.arrow)


class _Column:
    """One column as it came."""

    def __init__(self, header: Mapping[str, Any], buffers: List[memoryview], rows: int) -> None:
        self.header = header
        self.rows = rows
        self.valid: Optional[NDArray[np.bool_]] = None
        if header.get("nulls"):
            *buffers, valid = buffers
            self.valid = np.frombuffer(valid, np.uint8).astype(bool)
        self.buffers = buffers

    def as_type(self, field: Field, first_row: int) -> pa.Array:
        """As an array of the field's type."""
        self.field, self.first_row = field, first_row
        if self.valid is not None and not field.nullable and not self.valid.all():
            raise self.error(int(np.flatnonzero(~self.valid)[0]), "is null, but the schema says NOT NULL")
        width = self.width
        if (width != 1) != field.is_list and not (field.is_list and width is not None and len(self.shape) > 1):
            have = "one value" if width == 1 else "several values"
            want = "many (array or tensor)" if field.is_list else "one"
            raise self.error(0, f"has {have} a row; the schema's {field.type} wants {want}")
        flat = self.flat()
        if not field.is_list:
            return self.cast(flat, field.value_type, self.valid)
        values = self.cast(flat, field.value_type, None)
        if width is None:
            offsets = np.frombuffer(self.buffers[-1 if self.is_bytes else 0], np.int64)
        else:
            offsets = np.arange(self.rows + 1, dtype=np.int64) * width
        if pa.types.is_fixed_size_list(field.type):
            raise self.error(0, f"cannot be read back as {field.type}; declare it as array<...>")
        mask = None if self.valid is None else pa.array(~self.valid)
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, type=field.type, mask=mask)

    @property
    def shape(self) -> List[Optional[int]]:
        return list(self.header["shape"])

    @property
    def width(self) -> Optional[int]:
        """Values a row; None where that differs."""
        if None in self.shape:
            return None
        return int(np.prod([size for size in self.shape[1:] if size is not None])) if len(self.shape) > 1 else 1

    @property
    def is_bytes(self) -> bool:
        return self.header["form"] in ("text", "blob")

    def flat(self) -> pa.Array:
        """All values, end to end."""
        if self.is_bytes:
            offsets, data = self.buffers[:2]
            kind = pa.large_string() if self.header["form"] == "text" else pa.large_binary()
            count = len(offsets) // 8 - 1
            return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
        return pa.array(np.frombuffer(self.buffers[-1], np.dtype(self.header["dtype"])))

    def cast(self, values: pa.Array, target: pa.DataType, valid: Optional[NDArray[np.bool_]]) -> pa.Array:
        if valid is not None:
            values = pa.array(values.to_numpy(zero_copy_only=False), type=values.type, mask=~valid)
        if not _compatible(values.type, target):
            raise self.error(0, f"is {self.header['dtype']}, which cannot become {target}")
        try:
            if pa.types.is_boolean(target) and pa.types.is_integer(values.type):
                return values.cast(pa.int64()).cast(target)
            if pa.types.is_floating(target) and pa.types.is_floating(values.type):
                return values.cast(target, safe=False)
            if pa.types.is_temporal(target):
                return values.cast(pa.int32() if pa.types.is_date32(target) else pa.int64()).cast(target)
            return values.cast(target)
        except pa.ArrowInvalid as e:
            raise self.error(self.culprit(values, target), f"does not fit {target}: {e}") from None

    def culprit(self, values: pa.Array, target: pa.DataType) -> int:
        """Row of the first value that cannot be cast."""
        low, high = 0, len(values)
        while high - low > 1:
            middle = (low + high) // 2
            try:
                values.slice(low, middle - low).cast(target)
                low = middle
            except pa.ArrowInvalid:
                high = middle
        width = self.width
        return low // width if width else low

    def error(self, row: int, what: str) -> DataError:
        at = self.first_row + row
        return DataError(f"row {at}: column {self.field.name!r} {what}", row=at, column=self.field.name)


def _compatible(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether a cast keeps the meaning: numbers to numbers, text and bytes to text or bytes."""
    numeric = pa.types.is_integer(have) or pa.types.is_floating(have) or pa.types.is_boolean(have)
    if is_text(want) or pa.types.is_binary(want):
        return not numeric
    if pa.types.is_temporal(want):
        return bool(pa.types.is_integer(have))
    if pa.types.is_boolean(want):
        return bool(pa.types.is_integer(have) or pa.types.is_boolean(have))
    return numeric and not (pa.types.is_boolean(have) and pa.types.is_floating(want))
