"""Converts a RecordBatch to and from the payload of columns, laid out as they lie in memory. Layout: `akrunner.wire.column_layout`.

Towards a worker every column keeps its own type: doubles stay doubles. Nothing is copied if Arrow's memory already has the
right layout.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, as_decimals, counted, decoded, integers_of, known_numbers_of, truths_of
from akrunner.codec.binary import blobs_of, data_of, offsets_of
from akrunner.codec.encode import list_layout
from akrunner.codec.lists import listed, misfit
from akrunner.column_types import NUMBERS, TIMES, Family, family_of
from akrunner.errors import DataError, ProtocolError
from akrunner.schema import Field, Schema, is_list, is_text, replaced, to_floats
from akrunner.wire import column_layout as layout
from akrunner.wire.features import BYTES
from akrunner.wire.frames import WireError

_Packed = tuple[dict[str, Any], list[Any]]


def encode_columns(batch: pa.RecordBatch, first_row: int = 0, step: int = 1) -> list[Any]:
    """Return a batch as buffers to send one after another. The arguments and errors are those of `encode_examples`."""
    packed = []
    # pyarrow 16 cannot hash a schema with metadata
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
    # before the nulls are counted: in a dictionary array Arrow counts only the nulls among the indices
    column = decoded(column)
    if column.null_count:
        valid = truths_of(column.is_valid())
    if field.kind == BYTES:
        blobs = blobs_of(column)
        header = {"form": "blob", "dtype": "bytes", "shape": [len(column)]}
        return _with_nulls(header, [_from_zero(offsets_of(blobs)), data_of(blobs)], valid)
    if valid is not None:
        column = pa.nulls(len(column), pa.float32()) if pa.types.is_null(column.type) else column
    values = _native(field, column, lambda at: first_row + step * at)
    return _with_nulls({"form": "numbers", "dtype": field.dtype, "shape": [len(column)]}, [values], valid)


def _encoded_lists(field: Field, column: pa.Array, first_row: int, step: int) -> _Packed:
    rows, valid = len(column), None
    dense = column
    if column.null_count:
        valid = truths_of(column.is_valid())
        dense = column.filter(column.is_valid())
    where = np.arange(rows) if valid is None else np.flatnonzero(valid)
    offsets, flat = list_layout(dense)
    cuts = offsets

    def row_of(value: int) -> int:
        return first_row + step * int(where[int(np.searchsorted(cuts, value, side="right")) - 1])

    if flat.null_count:
        row = row_of(int(np.flatnonzero(truths_of(flat.is_null()))[0]))
        what = f"row {row}, column {field.name!r}: a list has a null in it; fill or drop it, here or in select= (--select)"
        raise DataError(what, row=row, column=field.name)
    if valid is not None:
        lengths = np.zeros(rows, np.int64)
        lengths[where] = np.diff(offsets)
        offsets = _offsets(lengths)
    if field.kind == BYTES:
        blobs = blobs_of(flat)
        header: dict[str, Any] = {"form": "blob", "dtype": "bytes", "shape": [rows, None]}
        return _with_nulls(header, [_from_zero(offsets_of(blobs)), data_of(blobs), offsets], valid)
    values = _native(field, flat, row_of)
    if field.shape is None:
        return _with_nulls({"form": "ragged", "dtype": field.dtype, "shape": [rows, None]}, [offsets, values], valid)
    shape = [rows, *field.shape]
    if valid is not None:
        spread = np.zeros(shape, values.dtype)
        spread[where] = values.reshape(len(where), *field.shape)
        values = spread
    return _with_nulls({"form": "numbers", "dtype": field.dtype, "shape": shape}, [values], valid)


def _native(field: Field, values: pa.Array, row_of: Callable[[int], int]) -> NDArray[np.generic]:
    """Return Arrow numbers as a numpy array of the field's dtype, with 0 for a null.

    Args:
        row_of: returns the row of a value by its position, for errors.
    """
    family = family_of(values.type)
    if family is Family.TRUTH:
        values = values.cast(pa.int8())
    elif family not in NUMBERS:
        try:
            values = integers_of(values)
        except pa.ArrowInvalid:
            fits = [v is None or -(2**63) <= int(v) < 2**63 for v in values.to_pylist()]
            row = row_of(fits.index(False))
            value = values[fits.index(False)].as_py()
            what = (
                f"row {row}, column {field.name!r}: {value!r} does not fit a signed 64-bit integer; select= (--select) makes "
                f"text of it: {replaced(field.name)}"
            )
            raise DataError(what, row=row, column=field.name) from None
    array = known_numbers_of(values)
    return cast(NDArray[np.generic], np.ascontiguousarray(array.astype(field.dtype, copy=False)))


def _with_nulls(header: dict[str, Any], buffers: list[Any], valid: NDArray[np.bool_] | None) -> _Packed:
    if valid is None:
        return header, buffers
    return dict(header, nulls=True), [*buffers, valid.astype(np.uint8)]


def _from_zero(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.ascontiguousarray(offsets - offsets[0])


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def decode_columns(
    schema: Schema,
    payload: bytes | bytearray,
    first_row: int = 0,
    rows: int | None = None,
    rounding: bool = True,
) -> pa.RecordBatch:
    """Return the batch that `output_writer.write_batch` sent. Every part of the payload is checked before it is used.

    Args:
        schema: the output schema.
        payload: the payload of one frame.
        first_row: the number of its first row, for errors.
        rows: how many rows it must have; None: any number.
        rounding: whether doubles may become narrower floats, because the user asked for these.
    Raises:
        WireError: the payload is not laid out as `akrunner.wire.column_layout` says.
        DataError: a column's values do not fit its type.
    """
    return _arranged(schema, layout.unpack(payload, schema.names, rows), first_row, rounding)


def column_types(
    payload: bytes | bytearray, rows: int | None = None, given: Mapping[str, pa.DataType] = MappingProxyType({})
) -> dict[str, pa.DataType | None]:
    """Return the columns that `output_writer.write_batch` sent, in order, each with the type that its values have; None if they
    do not tell it.

    Args:
        payload: as in `decode_columns`.
        rows: as in `decode_columns`.
        given: the types of the input's columns, as the script gets them. If a column's values leave its type open, the type of
            the input's column of the same name decides.
    Raises:
        WireError: the payload is not laid out as `akrunner.wire.column_layout` says.
    """
    count, packed = layout.unpack(payload, None, rows)
    return {header["name"]: _Column(header, buffers, count).own_type(given.get(header["name"])) for header, buffers in packed}


def decode_some_columns(schema: Schema, payload: bytes | bytearray | memoryview, first_row: int, rows: int) -> pa.RecordBatch:
    """Return the batch of a payload that has only some columns of a schema, as `decode_columns` does.

    Raises:
        ProtocolError: the payload is not laid out as `akrunner.wire.column_layout` says, or has a column that the schema lacks, or
            none.
        DataError: a column's values do not fit its type.
    """
    try:
        unpacked = layout.unpack(payload, None, rows)
        names = [header["name"] for header, _ in unpacked[1]]
        unknown = [name for name in names if name not in schema.names]
        if unknown or not names:
            raise WireError(f"it has a column {unknown[0]!r}, which is not asked for" if unknown else "it has no columns")
        fields = {field.name: field for field in schema}
        return _arranged(Schema(tuple(fields[name] for name in names)), unpacked, first_row)
    except WireError as e:
        raise ProtocolError(f"an add rows frame: {e}") from None


def _arranged(schema: Schema, unpacked: layout.Unpacked, first_row: int, rounding: bool = True) -> pa.RecordBatch:
    rows, packed = unpacked
    arrays = {header["name"]: _Column(header, buffers, rows, rounding) for header, buffers in packed}
    columns = [arrays[field.name].as_type(field, first_row) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema.arrow)


class _Column:
    """One column as it was received. Its header was checked before; its offsets are checked here."""

    def __init__(self, header: Mapping[str, Any], buffers: list[memoryview], rows: int, rounding: bool = True) -> None:
        """Args:
        rounding: as in `decode_columns`.
        """
        self.header = header
        self.rows = rows
        self.rounding = rounding
        self.shape: list[int | None] = header["shape"]
        self.is_bytes: bool = header["dtype"] == "bytes"
        self.valid: NDArray[np.bool_] | None = None
        if header.get("nulls"):
            *buffers, valid = buffers
            self.valid = np.frombuffer(valid, np.uint8) != 0
        self.ends: NDArray[np.int64] | None = None
        if None in self.shape:
            self.ends = np.frombuffer(buffers[2 if self.is_bytes else 0], np.int64)
        self.values: Any = None
        self.offsets: NDArray[np.int64] | None = None
        if self.is_bytes:
            self.offsets, self.values = np.frombuffer(buffers[0], np.int64), buffers[1]
            layout.check_offsets(self.offsets, len(self.values), header["name"])
            count = len(self.offsets) - 1
        else:
            # numpy has no bool for a byte that is neither 0 nor 1
            truths = header["dtype"] == "bool"
            raw = np.frombuffer(buffers[-1], "uint8" if truths else header["dtype"])
            self.values = raw != 0 if truths else raw
            count = len(raw)
        if self.ends is not None:
            layout.check_offsets(self.ends, count, header["name"])

    def as_type(self, field: Field, first_row: int) -> pa.Array:
        """Return the column as an array of the field's type."""
        self.field, self.first_row = field, first_row
        if self.valid is not None and not field.nullable and not self.valid.all():
            raise self.error(int(np.flatnonzero(~self.valid)[0]), "is null, but the schema says NOT NULL")
        if self.valid is not None and not self.valid.any():
            # nulls fit any type
            return pa.nulls(self.rows, field.type)
        width = self.width
        if (width != 1) != field.is_list and not (field.is_list and width is not None and len(self.shape) > 1):
            have = "one value" if width == 1 else "several values"
            want = "many (array or tensor)" if field.is_list else "one"
            raise self.error(0, f"has {have} a row; the schema's {field.type} wants {want}")
        if not field.is_list:
            return self.cast(self.flat(self.valid), field.value_type)
        values = self.cast(self.flat(None), field.value_type)
        offsets = self.ends if self.ends is not None else np.arange(self.rows + 1, dtype=np.int64) * (width or 0)
        wrong = misfit(field, offsets, self.valid)
        if wrong is not None:
            raise self.error(*wrong)
        return listed(field, values, offsets, self.valid)

    def own_type(self, given: pa.DataType | None = None) -> pa.DataType | None:
        """Return the type of a row's value; None if the values do not tell it.

        Args:
            given: as in `column_types`.
        """
        values, text = self.flat(None), self.header["form"] == "text"
        listed = given is not None and is_list(given)
        if self.valid is not None and not self.valid.any():
            # nulls have no type of their own
            if self.header.get("untyped") or (self.is_bytes and not text):
                return given
        elif not len(values) and (self.header.get("untyped") or self.header["form"] != "ragged"):
            # lists without values have no type of their own
            return given if listed else None
        own = values.type
        if self.is_bytes:
            own = pa.string() if text else text_or_bytes(values, given)
        elif own == pa.float16():
            # no file format has float16
            own = pa.float32()
        # a list of one value stays a list if the input's column has lists
        return pa.list_(own) if self.width != 1 or (len(self.shape) > 1 and listed) else own

    @property
    def width(self) -> int | None:
        """The number of values that each row has; None if rows differ."""
        if None in self.shape:
            return None
        return math.prod(size for size in self.shape[1:] if size is not None)

    def flat(self, valid: NDArray[np.bool_] | None) -> pa.Array:
        """Return all values, end to end; text is still unchecked bytes."""
        if self.offsets is None:
            return array_of(self.values, valid)
        present = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
        buffers = [present, pa.py_buffer(self.offsets), pa.py_buffer(self.values)]
        return pa.Array.from_buffers(pa.large_binary(), len(self.offsets) - 1, buffers)

    def cast(self, values: pa.Array, target: pa.DataType) -> pa.Array:
        if values.type == target:
            return values
        if pa.types.is_null(target) and (self.valid is None or self.valid.any()):
            raise self.error(
                0 if self.valid is None else int(np.argmax(self.valid)), "has a value; a column of type null has none"
            )
        if not len(values):
            # empty lists, whose values have no known type
            return pa.nulls(0, target)
        if not _compatible(values.type, target):
            raise self.error(0, f"is {self.header['dtype']}, which cannot become {target}")
        try:
            cast = _cast(values, target)
        except pa.ArrowInvalid as e:
            if is_text(target):
                raise self.error(self.row_of(self.culprit(values, target)), "is not UTF-8; declare it as varbinary") from None
            at = self.culprit(values, target)
            if family_of(target) is Family.WHOLE and family_of(values.type) is Family.WHOLE:
                # Arrow's message names other limits
                bits, signed = target.bit_width, not pa.types.is_unsigned_integer(target)
                ends = f"{-(2 ** (bits - 1))} to {2 ** (bits - 1) - 1}" if signed else f"0 to {2**bits - 1}"
                raise self.error(self.row_of(at), f"does not fit {target}: {values[at].as_py()} is not within {ends}") from None
            raise self.error(self.row_of(at), f"does not fit {target}: {e}") from None
        if not self.rounding:
            self.check_kept(values, cast)
        return cast

    def check_kept(self, values: pa.Array, cast: pa.Array) -> None:
        """Check that no value lost digits in a cast.

        Raises:
            DataError: a double has more digits than the type to which it was cast.
        """
        if family_of(values.type) is not Family.REAL or family_of(cast.type) is not Family.REAL:
            return
        before = known_numbers_of(values)
        after = known_numbers_of(cast).astype(before.dtype)
        lost = np.flatnonzero((before != after) & ~np.isnan(before))
        if len(lost):
            at = int(lost[0])
            raise self.error(
                self.row_of(at),
                f"is {values.type}, and does not fit {cast.type}: {before[at].item()!r} would be {after[at].item()!r}",
            )

    def culprit(self, values: pa.Array, target: pa.DataType) -> int:
        """Return the position of the first value that cannot be cast."""
        low, high = 0, len(values)
        while high - low > 1:
            middle = (low + high) // 2
            try:
                _cast(values.slice(low, middle - low), target)
                low = middle
            except pa.ArrowInvalid:
                high = middle
        return low

    def row_of(self, value: int) -> int:
        """Return the row of a value, by the value's position."""
        if self.ends is not None:
            return int(np.searchsorted(self.ends, value, side="right")) - 1
        return value // (self.width or 1)

    def error(self, row: int, what: str) -> DataError:
        at = self.first_row + row
        return DataError(f"row {at}: column {self.field.name!r} {what}", row=at, column=self.field.name)


def text_or_bytes(values: pa.Array, given: pa.DataType | None = None) -> pa.DataType:
    """Return the type of byte strings. TensorFlow's strings are bytes, so byte strings that are all UTF-8 are text, unless the
    input's column of the same name has bytes.

    Args:
        given: the type of the input's column of this name; None: there is none.
    """
    if given is not None and family_of(given.value_type if is_list(given) else given) is Family.OCTETS:
        return pa.binary()
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.binary()
    return pa.string()


def _cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the values in another type.

    Raises:
        pa.ArrowInvalid: a value does not fit.
    """
    have, want = family_of(values.type), family_of(target)
    if want is Family.TRUTH and have is Family.WHOLE:
        ends = pc.min_max(values).as_py()
        if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] <= 1:
            # Arrow turns every number but 0 into true
            raise pa.ArrowInvalid(f"{ends['min'] if ends['min'] < 0 else ends['max']} is neither 0 nor 1")
        return values.cast(pa.int64()).cast(target)
    if want is Family.REAL and have is Family.REAL:
        return to_floats(values, target)
    if want is Family.REAL and have is Family.WHOLE:
        try:
            return values.cast(target)
        except pa.ArrowInvalid:
            return _exact_floats(values, target)
    if want is Family.DECIMAL:
        return as_decimals(values, target)
    return counted(values, target) if want in TIMES else values.cast(target)


def _exact_floats(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return whole numbers as floats. Arrow itself refuses every number beyond the range in which a float holds all integers,
    even one that the float holds exactly.

    Raises:
        pa.ArrowInvalid: a number would lose digits.
    """
    floats = values.cast(target, safe=False)
    for one, other in zip(known_numbers_of(values).tolist(), known_numbers_of(floats).tolist()):
        if math.isinf(other) or int(other) != one:
            raise pa.ArrowInvalid(f"{one} would lose digits")
    return floats


def _compatible(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether a cast keeps the meaning: numbers become numbers, and text and bytes become text or bytes."""
    given, wanted = family_of(have), family_of(want)
    if is_text(want) or wanted is Family.OCTETS:
        return given not in NUMBERS
    if wanted in TIMES:
        return given is Family.WHOLE
    if wanted in (Family.TRUTH, Family.DECIMAL):
        return given in (Family.TRUTH, Family.WHOLE) or (given is Family.REAL and wanted is Family.DECIMAL)
    return given in NUMBERS and not (given is Family.TRUTH and wanted is Family.REAL)
