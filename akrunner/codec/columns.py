"""RecordBatch <-> the payload of columns as they lie in memory. Layout: `akrunner.wire.columns`.

Out to a worker every column keeps its own type: doubles stay doubles. Nothing is copied where Arrow's memory is what is wanted.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Dict, List, Mapping, Optional, Tuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.codec.binary import blobs_of, data_of, offsets_of
from akrunner.codec.encode import list_layout
from akrunner.errors import DataError
from akrunner.schema import BYTES, Field, Schema, is_text
from akrunner.wire import columns as layout

_Packed = Tuple[Dict[str, Any], List[Any]]


def encode_columns(batch: pa.RecordBatch, first_row: int = 0, step: int = 1) -> List[Any]:
    """A batch as buffers to send one after another.

    Args and raises: as `encode_examples`.
    """
    packed = []
    # with metadata pyarrow 16 cannot hash it
    for field, column in zip(_schema_of(batch.schema.remove_metadata()), batch.columns):
        header, buffers = _encoded(field, column, first_row, step)
        packed.append((dict(header, name=field.name), buffers))
    return layout.pack(batch.num_rows, packed)


@functools.lru_cache(maxsize=16)
def _schema_of(schema: pa.Schema) -> Schema:
    return Schema.from_arrow(schema)


def _encoded(field: Field, column: pa.Array, first_row: int, step: int) -> _Packed:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if field.is_list:
        return _encoded_lists(field, column, first_row, step)
    valid = None
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
    if field.kind == BYTES:
        blobs = blobs_of(column)
        header = {"form": "blob", "dtype": "bytes", "shape": [len(column)]}
        return _with_nulls(header, [_from_zero(offsets_of(blobs)), data_of(blobs)], valid)
    if valid is not None:
        # what stands under a null is anything at all
        column = pa.nulls(len(column), pa.float32()) if pa.types.is_null(column.type) else column
        column = column.fill_null(pa.scalar(0, pa.int64()).cast(column.type) if not _is_boolean(column) else False)
    values = _native(field, column, first_row, step)
    return _with_nulls({"form": "numbers", "dtype": field.dtype, "shape": [len(column)]}, [values], valid)


def _encoded_lists(field: Field, column: pa.Array, first_row: int, step: int) -> _Packed:
    rows, valid = len(column), None
    dense = column
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        dense = column.filter(pa.array(valid))
    where = np.arange(rows) if valid is None else np.flatnonzero(valid)
    offsets, flat = list_layout(dense)
    if flat.null_count:
        bad = int(np.flatnonzero(flat.is_null().to_numpy(zero_copy_only=False))[0])
        row = first_row + step * int(where[int(np.searchsorted(offsets, bad, side="right")) - 1])
        what = f"row {row}, column {field.name!r}: a list has a null in it; fill or drop it"
        raise DataError(what, row=row, column=field.name)
    if valid is not None:
        lengths = np.zeros(rows, np.int64)
        lengths[where] = np.diff(offsets)
        offsets = _offsets(lengths)
    if field.kind == BYTES:
        blobs = blobs_of(flat)
        header: Dict[str, Any] = {"form": "blob", "dtype": "bytes", "shape": [rows, None]}
        return _with_nulls(header, [_from_zero(offsets_of(blobs)), data_of(blobs), offsets], valid)
    values = _native(field, flat, first_row, step)
    if field.shape is None:
        return _with_nulls({"form": "ragged", "dtype": field.dtype, "shape": [rows, None]}, [offsets, values], valid)
    shape = [rows, *field.shape]
    if valid is not None:
        spread = np.zeros(shape, values.dtype)
        spread[where] = values.reshape(len(where), *field.shape)
        values = spread
    return _with_nulls({"form": "numbers", "dtype": field.dtype, "shape": shape}, [values], valid)


def _native(field: Field, values: pa.Array, first_row: int, step: int) -> NDArray[np.generic]:
    """Arrow numbers without a null as numpy's, of the field's dtype."""
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        try:
            half = pa.types.is_date32(values.type) or pa.types.is_time32(values.type)
            values = values.cast(pa.int32()) if half else values
            values = values.cast(pa.int8() if _is_boolean(values) else pa.int64())
        except pa.ArrowInvalid:
            fits = [-(2**63) <= int(v) < 2**63 for v in values.to_pylist()]
            row = first_row + step * fits.index(False)
            what = (
                f"row {row}, column {field.name!r}: {values[fits.index(False)].as_py()!r} does not fit a signed 64-bit integer"
            )
            raise DataError(what, row=row, column=field.name) from None
    array = values.to_numpy(zero_copy_only=False) if len(values) else np.empty(0, np.int8)
    return cast(NDArray[np.generic], np.ascontiguousarray(array.astype(field.dtype, copy=False)))


def _with_nulls(header: Dict[str, Any], buffers: List[Any], valid: Optional[NDArray[np.bool_]]) -> _Packed:
    if valid is None:
        return header, buffers
    return dict(header, nulls=True), [*buffers, valid.astype(np.uint8)]


def _is_boolean(values: pa.Array) -> bool:
    return bool(pa.types.is_boolean(values.type))


def _from_zero(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.ascontiguousarray(offsets - offsets[0])


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


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
        return math.prod(size for size in self.shape[1:] if size is not None)

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
        if values.type != target and not _compatible(values.type, target):
            raise self.error(0, f"is {self.header['dtype']}, which cannot become {target}")
        if values.type == target:
            return values
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
