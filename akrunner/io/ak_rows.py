"""Reads and writes the rows of Alink's `.ak` files in whole blocks; no row is looked at by itself.

::

    ALK | length of a row (3 bytes; FFFFFF and 4 more if it is longer) | nulls, a bit a column | columns that are not null | ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa

from akrunner.column_types import NUMBERS, TABLE, Family, type_of, wider
from akrunner.errors import SinkError, SourceError
from akrunner.io.units import texts_of, units_of, within

MAGIC = b"ALK"
#: FLK is from a later Alink; its rows are the same
_MAGICS = (MAGIC, b"FLK")
_LONG = 0xFFFFFF
_BLOCK = 1 << 18
#: how many bytes a row may have
_LONGEST = 1 << 28

Bytes = np.ndarray[Any, Any]

#: Alink's name of a type -> ours; of several names for a type, the first is written
TYPES: dict[str, pa.DataType] = {
    # Java's times count nanoseconds
    name: pa.timestamp("ns") if row.family is Family.MOMENT else row.arrow
    for row in TABLE
    for name in row.alink
}
#: types of fixed width, as Java writes them
_FIXED: dict[pa.DataType, str] = {
    row.arrow: ">i1" if row.family is Family.TRUTH else np.dtype(row.dtype).newbyteorder(">").str
    for row in TABLE
    if row.alink and row.family in NUMBERS
}
_DAY = 86_400_000
#: the greatest number of milliseconds that an int64 holds as nanoseconds
_MOST_MS = (1 << 63) // 1_000_000 - 1


class Damaged(Exception):
    """A row does not match its length."""


# -- reading


def read(stream: IO[bytes], schema: pa.Schema, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file.

    Args:
        stream: the file's data, from its beginning.
        name: the file's name in errors.
    Raises:
        SourceError: the data is damaged.
    """
    if stream.read(3) not in _MAGICS:
        raise SourceError(f"{name}: its data does not begin with ALK: it is no .ak file")
    held, rows = b"", 0
    while True:
        piece = stream.read(max(_BLOCK, min(len(held), 1 << 26)))
        held += piece
        if not held:
            return
        if not piece:
            raise SourceError(f"{name}: it is cut short, in row {rows}")
        if len(held) >= 7 and _length(held) > _LONGEST:
            raise SourceError(f"{name}: row {rows} is said to have {_length(held)} bytes; it is damaged, or too long")
        if len(held) < _ends(held):
            continue
        starts, ends = _bodies(np.frombuffer(held, np.uint8))
        try:
            batch = _decoded(held, starts, ends, schema)
        except (Damaged, UnicodeDecodeError, pa.ArrowInvalid, IndexError) as e:
            raise SourceError(f"{name}: rows {rows} to {rows + len(starts) - 1} are damaged: {e}") from None
        rows += batch.num_rows
        held = held[int(ends[-1]) :]
        yield batch


def _length(held: bytes) -> int:
    short = int.from_bytes(held[:3], "big")
    return int.from_bytes(held[3:7], "big") if short == _LONG else short


def _ends(held: bytes) -> int:
    """Return the position at which the first row ends; at least one more than there is, if its length has not come yet."""
    header = 7 if held[:3] == b"\xff\xff\xff" else 3
    return header if len(held) < header else header + _length(held)


def _bodies(data: Bytes) -> tuple[Bytes, Bytes]:
    """Return (where the bodies of all whole rows begin, where they end).

    A row tells only where the next one begins, so the steps are doubled until they lead out of the block.
    """
    size = len(data)
    padded = np.concatenate([data, np.zeros(7, np.uint8)]).astype(np.int64)
    length = padded[:size] << 16 | padded[1 : size + 1] << 8 | padded[2 : size + 2]
    long = length == _LONG
    header = np.where(long, 7, 3)
    if long.any():
        at = np.flatnonzero(long)
        length[at] = padded[at + 3] << 24 | padded[at + 4] << 16 | padded[at + 5] << 8 | padded[at + 6]
    step = np.minimum(np.arange(size) + header + length, size + 1)
    jump = np.concatenate([step, [size + 1, size + 1]]).astype(np.int32)
    reached = np.zeros(1, np.int64)
    while True:
        more = jump[reached]
        more = more[more < size]
        if not len(more):
            break
        reached = np.concatenate([reached, more])
        jump = jump[jump]
    starts, ends = reached + header[reached], step[reached]
    whole = ends <= size
    return starts[whole], ends[whole]


def _decoded(held: bytes, starts: Bytes, ends: Bytes, schema: pa.Schema) -> pa.RecordBatch:
    data = np.concatenate([np.frombuffer(held, np.uint8), np.zeros(16, np.uint8)])
    nulls = (len(schema) + 7) // 8
    at = starts + nulls
    if (at > ends).any():
        raise Damaged("a row is shorter than the nulls of its columns")
    columns = []
    # where the units of texts end: at bytes whose highest bit is not set
    last = np.flatnonzero(data < 0x80)
    for i, field in enumerate(schema):
        valid = (data[starts + i // 8] >> (7 - i % 8) & 1) == 0
        column, taken = _column(data, last, at[valid], ends[valid], field.type)
        at = at.copy()
        at[valid] += taken
        if (at > ends).any():
            raise Damaged(f"column {field.name!r} goes beyond the end of its row")
        columns.append(column if valid.all() else _spread(column, valid))
    if (at != ends).any():
        raise Damaged("a row is longer than its columns")
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _spread(column: pa.Array, valid: Bytes) -> pa.Array:
    return column.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


def _column(data: Bytes, last: Bytes, at: Bytes, ends: Bytes, kind: pa.DataType) -> tuple[pa.Array, Bytes]:
    """Return (the values, how many bytes each takes) of a column's cells that are not null."""
    if kind in _FIXED:
        numbers = _fixed(data, at, _FIXED[kind])
        return pa.array(numbers != 0 if pa.types.is_boolean(kind) else numbers, kind), np.full(len(at), numbers.itemsize)
    if pa.types.is_timestamp(kind):
        milliseconds, nanos = _fixed(data, at, ">i8"), _fixed(data, at + 8, ">i4").astype(np.int64)
        if (np.abs(milliseconds) > _MOST_MS).any():
            raise Damaged("a time is before 1677 or after 2262")
        # both numbers contain the milliseconds
        whole = milliseconds - np.mod(milliseconds, 1000)
        return pa.array(whole * 1_000_000 + nanos, kind), np.full(len(at), 12)
    if pa.types.is_date(kind):
        # it is the midnight of the writer's time zone: take the nearest day
        days = (_fixed(data, at, ">i8") + _DAY // 2) // _DAY
        return pa.array(days.astype(np.int32), pa.int32()).cast(kind), np.full(len(at), 8)
    if pa.types.is_binary(kind):
        size = _fixed(data, at, ">i4").astype(np.int64)
        if ((size < 0) | (at + 4 + size > ends)).any():
            raise Damaged("bytes go beyond the end of their row")
        raw = data[within(at + 4, size)].tobytes()
        offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int32)
        return pa.Array.from_buffers(kind, len(at), [None, pa.py_buffer(offsets), pa.py_buffer(raw)]), 4 + size
    return _texts(data, last, at, ends)


def _fixed(data: Bytes, at: Bytes, kind: str) -> Bytes:
    width = np.dtype(kind).itemsize
    places = np.minimum(at[:, None] + np.arange(width), len(data) - 1)
    numbers: Bytes = data[places].view(kind)[:, 0].astype(kind.replace(">", "="))
    return numbers


def _texts(data: Bytes, last: Bytes, at: Bytes, ends: Bytes) -> tuple[pa.Array, Bytes]:
    """Read texts: the number of UTF-16 units plus one, then each unit; all of these in groups of seven bits, one per byte."""
    first = np.searchsorted(last, at)
    begin = last[np.minimum(first, len(last) - 1)] + 1
    if (begin - at > 5).any() or (begin > ends).any():
        raise Damaged("a text has no length")
    told = np.zeros(len(at), np.int64)
    for i in range(5):
        here = at + i < begin
        told[here] |= (data[(at + i)[here]].astype(np.int64) & 0x7F) << (7 * i)
    units = np.maximum(told - 1, 0)
    if (units > ends - begin).any():
        raise Damaged("a text goes beyond the end of its row")
    stop = np.where(units > 0, last[np.minimum(first + units, len(last) - 1)] + 1, begin)
    if (stop > ends).any():
        raise Damaged("a text goes beyond the end of its row")
    marks = last[within(first + 1, units)]
    before = last[within(first, units)] if len(marks) else marks
    width = marks - before
    if (width > 3).any():
        raise Damaged("a text holds what is no letter")
    value = data[marks].astype(np.uint32)
    for back in (1, 2):
        wide = width > back
        value[wide] = value[wide] << 7 | (data[marks[wide] - back] & 0x7F)
    found = texts_of(value.astype(np.uint16), units)
    return (found if (told > 0).all() else _spread(found.filter(pa.array(told > 0)), told > 0)), stop - at


# -- writing


def check_types(schema: pa.Schema, name: str) -> None:
    """Check that the cells of all columns can be written.

    Raises:
        SinkError: a column has a type whose cells cannot be written.
    """
    for field in schema:
        if _writer(field.type) is None:
            advice = (
                "make it text first: TypeConvertBatchOp().setTargetType('STRING').setSelectedCols([...])"
                if "list" in str(field.type) or "tensor" in str(field.type)
                else "cast it first (select, TypeConvertBatchOp)"
            )
            raise SinkError(
                f"{name}: column {field.name!r} is {field.type}, and how Alink writes such cells in .ak files is not known "
                f"here; {advice}"
            )


def schema_text(schema: pa.Schema) -> str:
    """Return the columns as the text that a file has for them."""
    return ", ".join(f"{field.name} {_name(field.type)}" for field in schema)


def _name(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    if pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return "STRING"
    if pa.types.is_large_binary(kind):
        return "VARBINARY"
    return next(name for name, known in TYPES.items() if known == _held(kind))


def _held(kind: pa.DataType) -> pa.DataType:
    """Return the type of Alink's that holds the numbers of a type; a type that is not numeric is returned as it is."""
    row = type_of(kind)
    found = wider(row, lambda one: one.alink) if row is not None and row.family in NUMBERS else None
    return found.arrow if found is not None else kind


def encoded(batch: pa.RecordBatch) -> bytes:
    """Return rows as the bytes that `read` takes, without `MAGIC` at the beginning."""
    rows, nulls = batch.num_rows, (batch.num_columns + 7) // 8
    masks = np.zeros((rows, nulls), np.uint8)
    parts: list[tuple[Bytes, Bytes]] = []
    for i, column in enumerate(batch.columns):
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        masks[~valid, i // 8] |= 1 << (7 - i % 8)
        writer = _writer(column.type)
        assert writer is not None
        flat, size = writer(column.drop_null())
        lengths = np.zeros(rows, np.int64)
        lengths[valid] = size
        parts.append((flat, lengths))
    body = nulls + sum((lengths for _, lengths in parts), np.zeros(rows, np.int64))
    long = body >= _LONG
    header = np.where(long, 7, 3)
    begin = np.cumsum(header + body) - (header + body)
    out = np.zeros(int((header + body).sum()), np.uint8)
    for i in range(3):
        out[begin + i] = np.where(long, 0xFF, body >> (16 - 8 * i) & 0xFF)
    for i in range(4):
        out[begin[long] + 3 + i] = body[long] >> (24 - 8 * i) & 0xFF
    at = begin + header
    for i in range(nulls):
        out[at + i] = masks[:, i]
    at = at + nulls
    for flat, lengths in parts:
        out[within(at, lengths)] = flat
        at = at + lengths
    return out.tobytes()


def _writer(kind: pa.DataType) -> Callable[[pa.Array], tuple[Bytes, Any]] | None:
    """Return a function that writes values of a type that are not null: (their bytes end to end, how many each has). None: it
    is unknown here how Alink writes such values."""
    types = pa.types
    kind = _held(kind)
    if kind in _FIXED:
        return lambda column: _fixed_bytes(column.cast(kind), _FIXED[kind])
    if types.is_string(kind) or types.is_large_string(kind):
        return _text_bytes
    if types.is_dictionary(kind) and types.is_string(kind.value_type):
        return lambda column: _text_bytes(column.dictionary_decode())
    if types.is_timestamp(kind) and kind.tz is None:
        return _time_bytes
    if types.is_date32(kind):
        return lambda column: _fixed_bytes(pa.array(column.cast(pa.int32()).to_numpy().astype(np.int64) * _DAY), ">i8")
    return _blob_bytes if types.is_binary(kind) or types.is_large_binary(kind) else None


def _fixed_bytes(column: pa.Array, kind: str) -> tuple[Bytes, Any]:
    numbers = column.to_numpy(zero_copy_only=False).astype(kind)
    return np.frombuffer(numbers.tobytes(), np.uint8), numbers.itemsize


def _time_bytes(column: pa.Array) -> tuple[Bytes, Any]:
    nanoseconds = column.cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy(zero_copy_only=False)
    row = np.zeros(len(nanoseconds), np.dtype([("ms", ">i8"), ("nanos", ">i4")]))
    row["ms"], row["nanos"] = nanoseconds // 1_000_000, np.mod(nanoseconds, 1_000_000_000)
    return np.frombuffer(row.tobytes(), np.uint8), 12


def _blob_bytes(column: pa.Array) -> tuple[Bytes, Any]:
    column = column.cast(pa.large_binary())
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    size = np.diff(offsets)
    data = np.frombuffer(column.buffers()[2], np.uint8) if column.buffers()[2] is not None else np.zeros(0, np.uint8)
    out = np.zeros(int((4 + size).sum()), np.uint8)
    begin = np.cumsum(4 + size) - (4 + size)
    for i in range(4):
        out[begin + i] = size >> (24 - 8 * i) & 0xFF
    out[within(begin + 4, size)] = data[offsets[0] : offsets[-1]] if len(size) else data[:0]
    return out, 4 + size


def _text_bytes(column: pa.Array) -> tuple[Bytes, Any]:
    units, lengths = units_of(column)
    told = lengths + 1
    head = 1 + sum(((told >= 1 << (7 * i)).astype(np.int64) for i in range(1, 5)), np.zeros(len(told), np.int64))
    width = 1 + (units >= 0x80).astype(np.int64) + (units >= 0x4000)
    ends = np.concatenate([[0], np.cumsum(width)])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    size = head + ends[offsets[1:]] - ends[offsets[:-1]]
    out = np.zeros(int(size.sum()), np.uint8)
    begin = np.cumsum(size) - size
    for i in range(5):
        here = head > i
        out[begin[here] + i] = (told[here] >> (7 * i) & 0x7F) | np.where(head[here] > i + 1, 0x80, 0)
    # where each unit goes: in order, moved on by the length fields before it
    at = ends[:-1] + np.repeat(begin + head - ends[offsets[:-1]], lengths)
    value = units.astype(np.int64)
    for i in range(3):
        here = width > i
        out[at[here] + i] = (value[here] >> (7 * i) & 0x7F) | np.where(width[here] > i + 1, 0x80, 0)
    return out, size
