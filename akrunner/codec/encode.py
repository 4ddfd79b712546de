"""Turns a RecordBatch into `tf.train.Example` bytes, all rows of a batch at once.

Every row of a batch has the same shape of message, so the message is written as a template, and the bytes that vary are
scattered into it, a column at a time. All varints of a batch get the same width (the widest that one of them needs; protobuf
readers accept padded varints), so numbers never change a row's layout. Strings, lists of differing length and nulls do change
it: then a row is a sequence of parts, which Arrow joins.

::

    numbers only     [head 12 | template + scattered values | crc 4]  x rows            one matrix
    else             part 0 | part 1 | ... joined row by row; a part is a matrix of fixed width or a binary array

The result is framed as TFRecord (length, its CRC, the Example, its CRC), so that a spool file is written from the bytes as they
arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.arrays import decoded, integers_of, numbers_of, truths_of
from akrunner.codec import crc32c
from akrunner.codec.binary import (
    binary,
    blobs_of,
    data_of,
    join,
    matrix_rows,
    offsets_of,
    regroup,
    spread,
)
from akrunner.codec.protobuf import varint
from akrunner.errors import DataError
from akrunner.schema import feature_kind, is_list, replaced
from akrunner.wire.features import BYTES, FLOAT, INT64, KINDS

U8 = NDArray[np.uint8]
I64 = NDArray[np.int64]

HEAD = 12
TAIL = 4
#: rows with more varying bytes than this get their CRC from the C library
_MAX_LOOKUPS = 256


@dataclass
class _Fixed:
    """A stretch of bytes that has the same length in every row.

    Attributes:
        template: the constant bytes, with zeros where values go.
        values: (position, [rows] or [rows, k] of an unsigned or float dtype) to scatter; little endian.
    """

    template: bytearray
    values: list[tuple[int, NDArray[np.generic]]] = field(default_factory=list)

    def append(self, other: _Fixed) -> None:
        base = len(self.template)
        self.template += other.template
        self.values += [(base + position, value) for position, value in other.values]

    def matrix(self, rows: int) -> U8:
        """Return the bytes of all rows: [rows, length] uint8."""
        length = len(self.template)
        out = np.empty((rows, length), np.uint8)
        if not rows:
            return out
        out[:] = np.frombuffer(bytes(self.template), np.uint8)
        for position, value in self.values:
            shape = (rows, *value.shape[1:])
            strides = (length,) + (value.dtype.itemsize,) * (value.ndim - 1)
            np.ndarray(shape, value.dtype, buffer=out, offset=position, strides=strides)[...] = value
        return out


_Part: TypeAlias = _Fixed | pa.LargeBinaryArray


def encode_examples(batch: pa.RecordBatch, first_row: int = 0, step: int = 1) -> pa.LargeBinaryArray:
    """Return one serialized `tf.train.Example` per row.

    Args:
        batch: columns of types that can be sent to a task (`akrunner.column_types`).
        first_row: the number in the table of the batch's first row, for errors.
        step: the difference between the table's numbers of consecutive rows.
    Returns:
        [rows] large_binary.
    Raises:
        SchemaError: a column has a type that cannot be sent.
        DataError: a value cannot be sent; it names the row and the column.
    """
    rows = batch.num_rows
    parts = _row_parts(batch, first_row, step)
    if len(parts) == 1 and isinstance(parts[0], _Fixed):
        return matrix_rows(parts[0].matrix(rows))
    return join([_as_array(part, rows) for part in parts])


def encode_records(batch: pa.RecordBatch, first_row: int = 0, step: int = 1) -> U8:
    """Return the batch as TFRecord bytes, ready to be appended to a file that `TFRecordDataset` reads. The arguments and errors
    are those of `encode_examples`.

    Returns:
        one contiguous buffer.
    """
    rows = batch.num_rows
    if rows == 0:
        return np.empty(0, np.uint8)
    parts = _row_parts(batch, first_row, step)
    if len(parts) == 1 and isinstance(parts[0], _Fixed):
        return _frame_fixed(parts[0], rows)
    return _frame_joined([_as_array(part, rows) for part in parts], rows)


def check_values(batch: pa.RecordBatch, first_row: int = 0) -> None:
    """Check that `encode_records` takes every value, before any is encoded: for rows that are written in another order than
    they are read in. The errors are those of `encode_examples`.

    Args:
        first_row: the number in the table of the batch's first row.
    """
    for name, column in zip(batch.schema.names, batch.columns):
        kind = feature_kind(name, column.type)
        if kind == BYTES and not is_list(column.type):
            continue
        column = decoded(column)
        where = None
        if column.null_count:
            valid = column.is_valid()
            where = np.flatnonzero(truths_of(valid))
            column = column.filter(valid)
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        names = _RowNames(name, first_row, 1, where)
        offsets = None
        if is_list(column.type):
            offsets, column = _flat(column, names)
        if kind != BYTES:
            _numbers(kind, column, names, offsets)


def record_fronts(batch: pa.RecordBatch, name: str, sizes: I64) -> pa.LargeBinaryArray:
    """Return, for each row, what stands in a TFRecord file before the bytes of one more feature, the row's last: the record's
    head, the columns of `batch`, and the beginning of that feature. The caller writes the feature's bytes behind it, and then
    the checksum of everything but the head (`HEAD` bytes).

    It is for bytes that should not be copied, such as those of an image in its file.

    Args:
        batch: the other columns, at least one.
        name: the name of the feature.
        sizes: [rows] how many bytes the feature has.
    """
    parts = [part for one, column in zip(batch.schema.names, batch.columns) for part in _column_parts(one, column, 0, 1)]
    parts.append(_header(name.encode(), BYTES, sizes, packed=True))
    total = np.asarray(sizes, np.int64)
    for part in parts:
        total = total + (len(part.template) if isinstance(part, _Fixed) else np.diff(offsets_of(part)))
    example = _Fixed(bytearray())
    _put_tagged_length(example, 0x0A, total)
    head = matrix_rows(record_heads(total + len(example.template)))
    return join([head, *(_as_array(part, batch.num_rows) for part in [example, *parts])])


def _frame_fixed(body: _Fixed, rows: int) -> U8:
    length = len(body.template)
    columns: list[tuple[int, U8]] = []
    varying = sum(value.dtype.itemsize * int(np.prod(value.shape[1:])) for _, value in body.values)
    framed = _Fixed(bytearray(record_heads(np.array([length]))[0].tobytes()))
    framed.append(body)
    framed.template += bytes(TAIL)
    out = framed.matrix(rows)
    if varying > _MAX_LOOKUPS:
        width = out.shape[1]
        starts = np.arange(rows, dtype=np.int64) * width + HEAD
        crc = crc32c.crc_of_ranges(out.reshape(-1), starts, starts + length)
    else:
        for position, value in body.values:
            octets = np.ascontiguousarray(value).view(np.uint8).reshape(rows, -1).T
            columns += [(position + i, column) for i, column in enumerate(octets)]
        crc = crc32c.crc_of_layout(bytes(body.template), columns, rows)
    out[:, -TAIL:] = crc32c.mask(crc).view(np.uint8).reshape(rows, TAIL)
    return out.reshape(-1)


def _frame_joined(parts: Sequence[pa.LargeBinaryArray], rows: int) -> U8:
    lengths = np.sum([np.diff(offsets_of(part)) for part in parts], axis=0, dtype=np.int64)
    head = matrix_rows(record_heads(lengths))
    tail = matrix_rows(np.zeros((rows, TAIL), np.uint8))
    joined = join([head, *parts, tail])
    offsets = offsets_of(joined)
    data = joined.buffers()[2]
    flat = np.frombuffer(data, np.uint8)
    if not flat.flags.writeable:
        flat = flat.copy()
    ends = offsets[1:] - TAIL
    crc = crc32c.mask(crc32c.crc_of_ranges(flat, offsets[:-1] + HEAD, ends))
    tails: NDArray[np.uint32] = np.ndarray((len(flat) - TAIL + 1,), "<u4", buffer=flat, strides=(1,))
    tails[ends] = crc
    return flat


def record_heads(lengths: I64) -> U8:
    """Return [rows, 12] the length of each record and its masked CRC."""
    rows = len(lengths)
    out = np.empty((rows, HEAD), np.uint8)
    octets = lengths.astype("<u8").view(np.uint8).reshape(rows, 8)
    out[:, :8] = octets
    columns = [(i, np.ascontiguousarray(octets[:, i])) for i in range(4)]
    crc = crc32c.crc_of_layout(bytes(8), columns, rows)
    out[:, 8:] = crc32c.mask(crc).view(np.uint8).reshape(rows, 4)
    return out


def _row_parts(batch: pa.RecordBatch, first_row: int, step: int) -> list[_Part]:
    """Return the parts of every row, with adjacent fixed parts merged and the Example's own head in front."""
    rows = batch.num_rows
    parts: list[_Part] = []
    for name, column in zip(batch.schema.names, batch.columns):
        for part in _column_parts(name, column, first_row, step):
            if parts and isinstance(part, _Fixed) and isinstance(parts[-1], _Fixed):
                parts[-1].append(part)
            else:
                parts.append(part)
    total: int | I64
    if all(isinstance(part, _Fixed) for part in parts):
        total = sum(len(part.template) for part in parts if isinstance(part, _Fixed))
    else:
        total = np.zeros(rows, np.int64)
        for part in parts:
            total = total + (len(part.template) if isinstance(part, _Fixed) else np.diff(offsets_of(part)))
    head = _Fixed(bytearray())
    _put_tagged_length(head, 0x0A, total)
    if parts and isinstance(parts[0], _Fixed):
        head.append(parts[0])
        return [head, *parts[1:]]
    return [head, *parts]


def _column_parts(name: str, column: pa.Array, first_row: int, step: int) -> list[_Part]:
    """Return one column's entry in the feature map, for every row; a null has no entry."""
    kind = feature_kind(name, column.type)
    if str(column.type) in ("string_view", "binary_view"):
        column = column.cast(pa.large_string() if str(column.type) == "string_view" else pa.large_binary())
    # before the nulls are counted: in a dictionary array Arrow counts only the nulls among the indices
    column = decoded(column)
    if column.null_count:
        valid = column.is_valid()
        where = np.flatnonzero(truths_of(valid))
        parts = _present_parts(name, kind, column.filter(valid), _RowNames(name, first_row, step, where))
        dense = join([_as_array(part, len(where)) for part in parts])
        return [spread(dense, where, len(column))]
    return _present_parts(name, kind, column, _RowNames(name, first_row, step, None))


@dataclass(frozen=True)
class _RowNames:
    """Finds the row of the table for a position among the values that are not null, for errors."""

    column: str
    first_row: int
    step: int
    where: I64 | None

    def error(self, position: int, what: str) -> DataError:
        row = self.first_row + self.step * int(self.where[position] if self.where is not None else position)
        return DataError(f"row {row}, column {self.column!r}: {what}", row=row, column=self.column)


def _present_parts(name: str, kind: str, column: pa.Array, names: _RowNames) -> list[_Part]:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    key = name.encode()
    if not is_list(column.type):
        if kind == BYTES:
            return _bytes_parts(key, blobs_of(column))
        values = _numbers(kind, column, names, None)
        return [_fixed_numbers(key, kind, values.reshape(-1, 1))]
    rows = len(column)
    offsets, flat = _flat(column, names)
    lengths = np.diff(offsets)
    if kind == BYTES:
        element = _elements(blobs_of(flat))
        payload = regroup(element, offsets)
        return [_header(key, kind, np.diff(offsets_of(payload)), packed=False), payload]
    values = _numbers(kind, flat, names, offsets)
    if rows and lengths[0] > 0 and (lengths == lengths[0]).all():
        return [_fixed_numbers(key, kind, values.reshape(rows, -1))]
    packed = _pack(kind, values)
    width = packed.shape[1]
    payload = binary(offsets * width, packed.reshape(-1))
    return [_header(key, kind, lengths * width, packed=True), payload]


def _flat(column: pa.Array, names: _RowNames) -> tuple[I64, pa.Array]:
    """Return (where each list begins and ends, the values of all lists).

    Raises:
        DataError: a value is null.
    """
    offsets, flat = list_layout(column)
    if flat.null_count:
        bad = int(np.flatnonzero(truths_of(flat.is_null()))[0])
        position = int(np.searchsorted(offsets, bad, side="right")) - 1
        raise names.error(
            position, "a list has a null in it, which a feature cannot hold; fill or drop it, here or in select= (--select)"
        )
    return offsets, flat


def _fixed_numbers(key: bytes, kind: str, values: NDArray[np.generic]) -> _Fixed:
    """Return the entries of rows that all have k packed numbers.

    Args:
        values: [rows, k] float32 or int64.
    """
    rows, k = values.shape
    if kind == FLOAT:
        scatter = values.astype("<f4", copy=False)
        size = 4 * k
    else:
        packed = _pack(INT64, values.reshape(-1))
        size = k * packed.shape[1]
        scatter = packed.reshape(rows, size)
    part = _header(key, kind, size, packed=True)
    position = len(part.template)
    part.template += bytes(size)
    if size == 1 or (k == 1 and kind == FLOAT):
        part.values.append((position, scatter[:, 0]))
    else:
        part.values.append((position, scatter))
    return part


def _header(key: bytes, kind: str, size: int | I64, packed: bool) -> _Fixed:
    """Return an entry of the feature map up to its values: tags and lengths of the entry, key, feature, list (and packed
    field)."""
    inner = _Fixed(bytearray())
    body = size
    if packed:
        _put_tagged_length(inner, 0x0A, size)
        body = size + len(inner.template)
    listed = _Fixed(bytearray())
    _put_tagged_length(listed, KINDS[kind].tag, body)
    feature = body + len(listed.template)
    valued = _Fixed(bytearray())
    _put_tagged_length(valued, 0x12, feature)
    named = _Fixed(bytearray(b"\x0a" + varint(len(key)) + key))
    entry = _Fixed(bytearray())
    _put_tagged_length(entry, 0x0A, feature + len(valued.template) + len(named.template))
    for part in (named, valued, listed, inner):
        entry.append(part)
    return entry


def _put_tagged_length(part: _Fixed, tag: int, length: int | I64) -> None:
    """Append a tag and a length; if the length differs between rows, all get the width of the longest."""
    part.template.append(tag)
    if isinstance(length, (int, np.integer)):
        part.template += varint(int(length))
        return
    octets = _pack(INT64, length)
    part.values.append((len(part.template), octets))
    part.template += bytes(octets.shape[1])


def _pack(kind: str, values: NDArray[np.generic]) -> U8:
    """Return the bytes of [n] numbers as [n, width]: 4 bytes for a float, the width of the batch's widest varint for an
    int64."""
    if kind == FLOAT:
        return np.ascontiguousarray(values.astype("<f4", copy=False)).view(np.uint8).reshape(len(values), 4)
    unsigned = np.ascontiguousarray(values, dtype=np.int64).view(np.uint64)
    top = int(unsigned.max()) if len(unsigned) else 0
    width = max(1, -(-top.bit_length() // 7))
    out = np.empty((width, len(unsigned)), np.uint8)
    for i in range(width):
        octet = (unsigned >> np.uint64(7 * i)).astype(np.uint8)
        out[i] = octet & 0x7F if i == width - 1 else octet | 0x80
    return out.T


def _numbers(kind: str, values: pa.Array, names: _RowNames, offsets: I64 | None) -> NDArray[np.generic]:
    """Return Arrow values without nulls as float32 or int64; raise a DataError for a value that would change."""

    def refuse(bad: NDArray[np.bool_], what: str) -> DataError:
        position = int(np.flatnonzero(bad)[0])
        row = position if offsets is None else int(np.searchsorted(offsets, position, side="right")) - 1
        return names.error(row, f"{values[position].as_py()!r} {what}")

    data_type = values.type
    if kind == FLOAT:
        raw = numbers_of(values) if len(values) else np.empty(0, np.float32)
        if pa.types.is_float32(data_type):
            return raw
        with np.errstate(over="ignore"):
            narrow = raw.astype(np.float32)
        lost = np.isinf(narrow) & ~np.isinf(raw)
        if lost.any():
            raise refuse(
                lost,
                "does not fit a float32, the only float a tf.train.Example holds; data_format='columns' (--data-format) keeps "
                "doubles",
            )
        return cast(NDArray[np.generic], narrow)
    try:
        return numbers_of(integers_of(values))
    except pa.ArrowInvalid:
        # it may be a decimal or an unsigned integer
        bad = np.array([not -(2**63) <= int(v) < 2**63 for v in values.to_pylist()])
        raise refuse(
            bad, f"does not fit a signed 64-bit integer; select= (--select) makes text of it: {replaced(names.column)}"
        ) from None


def _bytes_parts(key: bytes, blobs: pa.LargeBinaryArray) -> list[_Part]:
    """Return the parts of a bytes_list with exactly one value; the value's own tag and length are part of the header."""
    sizes = np.diff(offsets_of(blobs))
    if len(sizes) and (sizes == sizes[0]).all() and sizes[0] <= 64 and sizes[0] > 0:
        part = _header(key, BYTES, int(sizes[0]), packed=True)
        flat = data_of(blobs).reshape(len(sizes), -1)
        part.values.append((len(part.template), flat))
        part.template += bytes(int(sizes[0]))
        return [part]
    return [_header(key, BYTES, sizes, packed=True), blobs]


def _elements(blobs: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Return each value with its own tag and length in front, as in a repeated bytes field."""
    part = _Fixed(bytearray())
    _put_tagged_length(part, 0x0A, np.diff(offsets_of(blobs)))
    return join([_as_array(part, len(blobs)), blobs])


def list_layout(column: pa.Array) -> tuple[I64, pa.Array]:
    """Return (offsets [rows + 1] from 0, the values that they cut) of lists of any kind; the values are not
    dictionary-encoded."""
    flat = decoded(column.flatten())
    if pa.types.is_fixed_size_list(column.type):
        return np.arange(len(column) + 1, dtype=np.int64) * column.type.list_size, flat
    offsets = numbers_of(column.offsets).astype(np.int64)
    return offsets - offsets[0], flat


def _as_array(part: _Part, rows: int) -> pa.LargeBinaryArray:
    return matrix_rows(part.matrix(rows)) if isinstance(part, _Fixed) else part
