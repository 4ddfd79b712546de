"""Turns `tf.train.Example` bytes into a RecordBatch, all rows at once. The inverse of `akrunner.codec.encode`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.arrays import array_of, as_decimals, counted
from akrunner.codec.binary import binary
from akrunner.codec.lists import listed, misfit
from akrunner.codec.parse import Parsed, parse
from akrunner.column_types import TIMES, Family, family_of, limits
from akrunner.errors import DataError
from akrunner.schema import Field, Schema, is_text, shortened
from akrunner.wire.features import BY_NUMBER, KINDS
from akrunner.wire.near import nearest

U8 = NDArray[np.uint8]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


def decode_examples(
    schema: Schema, buffer: bytes | U8, lengths: I64, first_row: int = 0, *, strict: bool = True
) -> pa.RecordBatch:
    """Return a RecordBatch of the schema for serialized Examples that lie end to end.

    Args:
        schema: the wanted columns.
        buffer: the Examples, one after another.
        lengths: [rows] the bytes of each.
        first_row: the number of the first row, for errors.
        strict: whether to refuse a feature that the schema does not name; else it is ignored.
    Returns:
        [rows] with `schema.arrow`; a missing feature is null.
    Raises:
        DataError: a row is not an Example, a value has another type or count or does not fit, a feature is unknown, or a value
            is null where the schema says NOT NULL.
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    flat = np.frombuffer(buffer, np.uint8) if not isinstance(buffer, np.ndarray) else buffer
    return decode_ranges(schema, flat, ends - lengths, ends, first_row, strict=strict)


def decode_ranges(
    schema: Schema, flat: U8, starts: I64, ends: I64, first_row: int = 0, *, strict: bool = True
) -> pa.RecordBatch:
    """Return a RecordBatch for the Examples at `flat[starts[i]:ends[i]]`, as `decode_examples` does."""
    rows = len(starts)
    try:
        parsed = parse(flat, starts, ends, [field.name.encode() for field in schema])
    except DataError as e:
        row = first_row + (e.row or 0)
        raise DataError(f"row {row}: {str(e).split(' ', 2)[2]}", row=row) from None
    if strict and parsed.unknown:
        name, at = min(parsed.unknown.items(), key=lambda item: item[1])
        text = name.decode("utf-8", "replace")
        raise DataError(
            f"row {first_row + at} has a feature {shortened(text)}, which is not in the output schema "
            f"({', '.join(schema.names)})" + nearest(text, schema.names),
            row=first_row + at,
            column=text,
        )
    columns = [_Column(field, parsed, rows, first_row).array() for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema.arrow)


class _Column:
    """One column of the result, built from where its values are."""

    def __init__(self, field: Field, parsed: Parsed, rows: int, first_row: int) -> None:
        self.field = field
        self.buffer = parsed.buffer
        self.order = parsed.order
        self.spans = parsed.spans[field.name.encode()]
        self.rows = rows
        self.first_row = first_row
        self.code = KINDS[field.kind].number

    def array(self) -> pa.Array:
        spans, field = self.spans, self.field
        if self.code != 1 and not field.is_list and self.rows and spans.only_blocks(self.code):
            return self.numbers_in_blocks()
        kind = spans.kind
        wrong = (kind != self.code) & (kind != 0) & (kind != 4)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise self.error(
                row, f"has a {BY_NUMBER[int(kind[row])].field}, but {_named(field)} wants a {BY_NUMBER[self.code].field}"
            )
        present = kind == self.code
        if not field.is_list and self.code != 1:
            # an empty list holds no value: it counts as a missing feature
            present &= spans.length > 0
        if not field.nullable and not present.all():
            raise self.error(int(np.flatnonzero(~present)[0]), "is missing, but the schema says NOT NULL")
        if self.code == 1:
            return self.strings(present)
        return self.lists(present) if field.is_list else self.numbers(present)

    def error(self, row: int, what: str) -> DataError:
        at = self.first_row + row
        return DataError(f"row {at}: column {self.field.name!r} {what}", row=at, column=self.field.name)

    # -- numbers

    def numbers_in_blocks(self) -> pa.Array:
        """Return a column of one number per row when all rows are in blocks: the code does not look for single rows."""
        parts: list[NDArray[Any]] = []
        for block in self.spans.blocks:
            if self.code == 2:
                if block.length != 4:
                    raise self.several(int(block.rows[0]))
                parts.append(block.floats)
            else:
                found, ok = _varints_in(block.octets)
                self.one_each(block.rows, ok)
                parts.append(found)
        values = np.concatenate(parts)
        return self.typed(values if len(parts) == 1 else values[self.order], None, None)

    def numbers(self, present: Mask) -> pa.Array:
        """Return a column of one number per row, wherever the numbers are."""
        values: NDArray[Any] = np.zeros(self.rows, np.float32 if self.code == 2 else np.int64)
        where = np.flatnonzero(present)
        start, length = self.spans.start[where], self.spans.length[where]
        if self.code == 2:
            self.one_each(where, length == 4)
            view: NDArray[np.float32] = np.ndarray((len(self.buffer) - 3,), "<f4", buffer=self.buffer, strides=(1,))
            values[where] = view[start]
        else:
            values[where], ok = _varints_at(self.buffer, start, length)
            self.one_each(where, ok)
        return self.typed(values, None if present.all() else ~present, None)

    def one_each(self, rows: I64, ok: Mask) -> None:
        if not ok.all():
            raise self.several(int(rows[int(np.flatnonzero(~ok)[0])]))

    def several(self, row: int) -> DataError:
        return self.error(row, f"has several values, but {_named(self.field)} is one; declare it as array<...>")

    def lists(self, present: Mask) -> pa.Array:
        where = np.flatnonzero(present)
        start, length = self.spans.start[where], self.spans.length[where]
        flat = _gather(self.buffer, start, length)
        self.whole(where, start, length)
        if self.code == 2:
            values: NDArray[Any] = flat.view("<f4")
            counts = length // 4
        else:
            values, ends, longest = _varints(flat)
            if longest > 10:
                begins = np.concatenate([[0], ends[:-1]])
                first = begins[np.diff(np.concatenate([[0], ends])) > 10][0]
                row = where[np.searchsorted(np.cumsum(length), first, side="right")]
                raise self.error(int(row), "holds a varint of more than 10 bytes")
            counts = np.diff(np.searchsorted(ends, np.concatenate([[0], np.cumsum(length)]), side="right"))
        owner = np.repeat(where, counts)
        return self.listed(self.typed(values, None, owner), counts, where, present)

    def whole(self, where: I64, start: I64, length: I64) -> None:
        """Check that no list ends inside a value."""
        bad = length % 4 != 0 if self.code == 2 else (length > 0) & (self.buffer[start + length - 1] >= 0x80)
        if bad.any():
            raise self.error(int(where[int(np.flatnonzero(bad)[0])]), f"has a {BY_NUMBER[self.code].field} that is cut short")

    def listed(self, values: pa.Array, counts: I64, where: I64, present: Mask) -> pa.Array:
        every = np.zeros(self.rows, np.int64)
        every[where] = counts
        offsets = np.zeros(self.rows + 1, np.int64)
        np.cumsum(every, out=offsets[1:])
        there = None if present.all() else present
        wrong = misfit(self.field, offsets, there)
        if wrong is not None:
            raise self.error(*wrong)
        return listed(self.field, values, offsets, there)

    def typed(self, values: NDArray[Any], null: Mask | None, owner: I64 | None) -> pa.Array:
        """Return numpy int64 or float32 values in the column's value type; raise a DataError for a value that does not fit.

        Args:
            null: the rows that are null; None: there are none.
            owner: the row of each value; None: each row has one value.
        """
        target = self.field.value_type
        if pa.types.is_null(target):
            some = np.flatnonzero(np.ones(len(values), bool) if null is None else ~null)
            if len(some):
                at = int(some[0])
                raise self.error(at if owner is None else int(owner[at]), "has a value; a column of type null has none")
            return pa.nulls(len(values), target)
        array = array_of(values, None if null is None else ~null)
        ends = limits(target)
        if ends is not None:
            bad = (values < ends[0]) | (values > ends[1])
            if bad.any():
                raise self.misfit(values, bad, owner, target)
        if family_of(target) is Family.DECIMAL:
            most = 10 ** min(target.precision, 19) - 1
            bad = (values < -min(most, 2**63)) | (values > min(most, 2**63 - 1))
            if bad.any():
                raise self.misfit(values, bad, owner, target)
            return as_decimals(array, target)
        return counted(array, target) if family_of(target) in TIMES else array.cast(target)

    def misfit(self, values: NDArray[Any], bad: Mask, owner: I64 | None, target: pa.DataType) -> DataError:
        at = int(np.flatnonzero(bad)[0])
        return self.error(at if owner is None else int(owner[at]), f"is {values[at]}, which does not fit {target}")

    # -- strings

    def strings(self, present: Mask) -> pa.Array:
        where = np.flatnonzero(present)
        spans, field = self.spans, self.field
        start, length = spans.start[where], spans.length[where]
        if field.is_list:
            begins, sizes, counts = _split_strings(self.buffer, start, length)
            return self.listed(self.text(begins, sizes, np.repeat(where, counts)), counts, where, present)
        size, width, _ = _length_after_tag(self.buffer, start)
        empty = length == 0
        bad = ~empty & (1 + width + size != length)
        if bad.any():
            raise self.error(
                int(where[np.flatnonzero(bad)[0]]), f"has several values, but {_named(field)} is one; declare it as array<...>"
            )
        if empty.any():
            if not field.nullable:
                raise self.error(int(where[np.flatnonzero(empty)[0]]), "is missing, but the schema says NOT NULL")
            where, start, size, width = where[~empty], start[~empty], size[~empty], width[~empty]
        values = self.text(start + 1 + width, size, where)
        if len(where) == self.rows:
            return values
        index = np.full(self.rows, -1, np.int64)
        index[where] = np.arange(len(where))
        return values.take(array_of(index, index >= 0))

    def text(self, start: I64, length: I64, owner: I64) -> pa.Array:
        target = self.field.value_type
        blobs = _slices(self.buffer, start, length)
        if pa.types.is_fixed_size_binary(target):
            other = length != target.byte_width
            if other.any():
                at = int(np.flatnonzero(other)[0])
                raise self.error(int(owner[at]), f"has the length {length[at]}, which does not fit {target}")
        if not is_text(target):
            return blobs.cast(target)
        try:
            return blobs.cast(pa.large_string()).cast(target)
        except pa.ArrowInvalid:
            for row, blob in zip(owner.tolist(), blobs):
                try:
                    blob.as_py().decode()
                except UnicodeDecodeError as e:
                    raise self.error(row, f"is not UTF-8 ({e.reason}); declare it as varbinary") from None
            raise


def _named(field: Field) -> str:
    return f"the schema's {field.type}"


#: spans up to which all their octets are taken at once: for few spans a call of numpy costs more than what it computes
_FEW = 1000


def _varints_at(buffer: U8, start: I64, length: I64) -> tuple[I64, Mask]:
    """Return (value, whether the span is exactly one varint) for each span."""
    ok = (length > 0) & (length <= 10)
    longest = int(min(length.max(initial=0), 10))
    # one octet each is one step of the loop below
    if longest > 1 and len(start) <= _FEW:
        # [octets, spans]
        place = np.arange(longest)[:, None]
        within = place < length
        octets = buffer[np.where(within, start + place, 0)]
        ok &= (~within | ((octets >= 0x80) == (place < length - 1))).all(axis=0)
        parts = np.where(within, octets & 0x7F, 0).astype(np.uint64) << (7 * place).astype(np.uint64)
        return np.bitwise_or.reduce(parts, axis=0, dtype=np.uint64).view(np.int64), ok
    # octet by octet, which takes less memory
    value = np.zeros(len(start), np.uint64)
    for i in range(longest):
        inside = i < length
        octet = buffer[np.where(inside, start + i, 0)]
        value |= np.where(inside, octet & 0x7F, 0).astype(np.uint64) << np.uint64(7 * i)
        ok &= ~inside | ((octet >= 0x80) == (i < length - 1))
    return value.view(np.int64), ok


def _varints_in(octets: U8) -> tuple[I64, Mask]:
    """Return (value, whether the row is exactly one varint) for each row of [n, width] bytes."""
    width = octets.shape[1]
    value = np.zeros(len(octets), np.uint64)
    ok = np.full(len(octets), width <= 10)
    for i in range(min(width, 10)):
        octet = octets[:, i]
        value |= (octet & 0x7F).astype(np.uint64) << np.uint64(7 * i)
        ok &= (octet >= 0x80) == (i < width - 1)
    return value.view(np.int64), ok


def _varints(flat: U8) -> tuple[I64, I64, int]:
    """Return (values, positions just behind each, bytes of the longest) of all varints that lie end to end."""
    ends = np.flatnonzero(flat < 0x80) + 1
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else np.empty(0, np.int64)
    length = ends - starts
    value = np.zeros(len(ends), np.uint64)
    for i in range(int(min(length.max(initial=0), 10))):
        inside = i < length
        octet = flat[np.where(inside, starts + i, 0)] & 0x7F
        value |= np.where(inside, octet, 0).astype(np.uint64) << np.uint64(7 * i)
    return value.view(np.int64), ends.astype(np.int64), int(length.max(initial=0))


def _length_after_tag(buffer: U8, start: I64) -> tuple[I64, I64, I64]:
    """Return (length, width of its varint, position behind it) for byte strings whose tags are at the starts."""
    size = np.zeros(len(start), np.int64)
    width = np.zeros(len(start), np.int64)
    going = np.ones(len(start), bool)
    for i in range(5):
        octet = buffer[np.minimum(start + 1 + i, len(buffer) - 1)].astype(np.int64)
        size |= np.where(going, octet & 0x7F, 0) << (7 * i)
        width += going
        going &= octet >= 0x80
        if not going.any():
            break
    return size, width, start + 1 + width


def _split_strings(buffer: U8, start: I64, length: I64) -> tuple[I64, I64, I64]:
    """Return (start of each string, its length, how many strings each body has), in order, for the bodies of bytes_lists."""
    at, stop = start.copy(), start + length
    index = np.arange(len(start))
    found: list[tuple[I64, I64, I64]] = []
    counts = np.zeros(len(start), np.int64)
    live = at < stop
    while live.any():
        rows = index[live]
        size, _, after = _length_after_tag(buffer, at[rows])
        found.append((rows, after, size))
        counts[rows] += 1
        at[rows] = after + size
        live = at < stop
    if not found:
        none = np.empty(0, np.int64)
        return none, none, counts
    rows, begins, sizes = (np.concatenate(part) for part in zip(*found))
    order = np.argsort(rows, kind="stable")
    return begins[order], sizes[order], counts


def _slices(buffer: U8, start: I64, length: I64) -> pa.LargeBinaryArray:
    """Return `buffer[start[i]:start[i] + length[i]]` as an Arrow array.

    If the spans lie in order, the values and the gaps between them form one array over the unchanged buffer, and Arrow takes
    every second element of it: a copy in C, instead of one Python slice per row.
    """
    if len(start) == 0:
        return pa.nulls(0, pa.large_binary())
    if (start[1:] < (start + length)[:-1]).any():
        data = buffer.tobytes()
        joined = b"".join(data[a : a + n] for a, n in zip(start.tolist(), length.tolist()))
        return binary(np.concatenate([[0], np.cumsum(length)]), np.frombuffer(joined, np.uint8))
    offsets = np.empty(2 * len(start), np.int64)
    offsets[0::2] = start
    offsets[1::2] = start + length
    both = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    return both.take(array_of(np.arange(0, len(offsets) - 1, 2)))


def _gather(buffer: U8, start: I64, length: I64) -> U8:
    """Return the bytes of the spans, end to end."""
    if len(start) == 0:
        return np.empty(0, np.uint8)
    joined = _slices(buffer, start, length)
    data = joined.buffers()[2]
    if data is None:
        return np.empty(0, np.uint8)
    return np.frombuffer(data, np.uint8)[: int(length.sum())]


__all__ = ["decode_examples", "decode_ranges"]
