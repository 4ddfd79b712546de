"""Reads and writes TFRecord files as tables: cuts a byte stream into records, checks their checksums and decodes them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.codec import crc32c
from akrunner.codec.decode import decode_ranges
from akrunner.codec.encode import HEAD, TAIL, encode_records, record_heads
from akrunner.errors import DataError, SourceError
from akrunner.foreign import ours
from akrunner.schema import Schema

_CHUNK = 4 << 20
#: the greatest size of a message in protobuf
_MOST_BYTES = (1 << 31) - 1
_LENGTH = struct.Struct("<Q")


def read_examples(stream: IO[bytes], schema: Schema, name: str = "TFRecord") -> Iterator[pa.RecordBatch]:
    """Yield the Examples of a TFRecord stream as batches of the schema; features that the schema does not name are ignored.

    A length is used only after its own checksum was checked, so that a damaged one does not make the reader read, or hold, the
    rest of the file.

    Raises:
        SourceError: the stream is damaged or cut short.
        DataError: a record does not fit the schema. Both errors name the file and the record.
    """
    data, row, offset = b"", 0, 0
    while True:
        more = _more(stream, data, name, row, offset)
        if not data and not more:
            return
        data = data + more if data else more
        starts, ends, used = cut(data)
        if len(starts):
            flat = np.frombuffer(data, np.uint8)
            check(flat, starts, ends, name, row, offset)
            try:
                yield decode_ranges(schema, flat, starts, ends, row, strict=False)
            except DataError as e:
                raise DataError(f"{name}: {e}", row=e.row, column=e.column) from None
            row += len(starts)
            offset += used
            data = data[used:]


def _more(stream: IO[bytes], data: bytes, name: str, row: int, offset: int) -> bytes:
    """Return what follows `data`, the beginning of a record: at least the rest of that record.

    Args:
        row: the number of the record.
        offset: where in the file it begins.
    Raises:
        SourceError: its length is damaged, or the file ends within it.
    """
    parts: list[bytes] = []
    size, wanted = len(data), 0
    while not parts or size < max(wanted, HEAD):
        if not wanted and size >= HEAD:
            wanted = _wanted((data + b"".join(parts))[:HEAD], name, row, offset)
        with ours(SourceError, f"source: cannot read {name} after record {row}, at byte {offset} (unpacked)"):
            parts.append(stream.read(_CHUNK))
        size += len(parts[-1])
        if not parts[-1]:
            if size:
                raise SourceError(f"source: {name} is cut short: record {row} begins at byte {offset}, and {size} bytes follow")
            break
    return b"".join(parts)


def _wanted(head: bytes, name: str, row: int, offset: int) -> int:
    """Return how many bytes the record with this head has, with its head and tail.

    Raises:
        SourceError: the head is damaged, or the record is longer than an Example can be.
    """
    length: int = _LENGTH.unpack_from(head)[0]
    if _masked(head[:8]) != head[8:]:
        raise _damaged(name, row, offset, "length")
    if length > _MOST_BYTES:
        raise SourceError(
            f"source: {name}: record {row} at byte {offset} has {length} bytes; an Example has at most {_MOST_BYTES}"
        )
    return HEAD + length + TAIL


def _damaged(name: str, row: int, offset: int, what: str) -> SourceError:
    return SourceError(f"source: {name} is damaged: record {row} at byte {offset} has a wrong checksum of its {what}")


def framed(record: bytes) -> bytes:
    """Return one record with its length and its checksums around it."""
    length = _LENGTH.pack(len(record))
    return length + _masked(length) + record + _masked(record)


def _masked(data: bytes) -> bytes:
    """Return the masked checksum of bytes, as it is written in a file."""
    return crc32c.mask(np.array([crc32c.crc_of(data)], np.uint32)).astype("<u4").tobytes()


def cut(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Find the whole records in `data`; return the starts and ends of their payloads, and how many bytes of `data` they use.

    Each length tells where the next record lies, so the code has to go from record to record; but a run of records of one
    length is found at once.
    """
    flat = np.frombuffer(data, np.uint8)
    starts: list[NDArray[np.int64]] = []
    ends: list[NDArray[np.int64]] = []
    at, size = 0, len(data)
    while at + HEAD <= size:
        (length,) = _LENGTH.unpack_from(data, at)
        stride = HEAD + length + TAIL
        if at + stride > size:
            break
        most = (size - at) // stride
        run = 1
        if most > 1 and data[at + stride : at + stride + 8] == data[at : at + 8]:
            heads = np.ndarray((most, 8), np.uint8, buffer=flat[at:], strides=(stride, 1)).copy().view("<u8")[:, 0]
            differs = np.flatnonzero(heads != length)
            run = int(differs[0]) if len(differs) else most
        first = at + HEAD + np.arange(run, dtype=np.int64) * stride
        starts.append(first)
        ends.append(first + length)
        at += run * stride
    none = np.empty(0, np.int64)
    return (np.concatenate(starts), np.concatenate(ends), at) if starts else (none, none, 0)


def check(
    flat: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], name: str, first: int = 0, offset: int = 0
) -> None:
    """Check the checksums of the lengths and the data of whole records.

    Args:
        first: the number of the first record in the file.
        offset: where in the file `flat` begins.
    Raises:
        SourceError: a checksum is wrong. Records behind one with a damaged length are not looked at, as they are not really
            records.
    """
    words: NDArray[np.uint32] = np.ndarray((len(flat) - 3,), "<u4", buffer=flat, strides=(1,))
    lengths = ends - starts
    if (lengths == lengths[0]).all():
        heads = np.full(len(lengths), record_heads(lengths[:1])[0, 8:].view("<u4")[0])
    else:
        heads = record_heads(lengths)[:, 8:].copy().view("<u4")[:, 0]
    odd = np.flatnonzero(heads != words[starts - 4])
    whole = int(odd[0]) if len(odd) else len(starts)
    bad = np.flatnonzero(crc32c.mask(crc32c.crc_of_ranges(flat, starts[:whole], ends[:whole])) != words[ends[:whole]])
    if len(bad) or len(odd):
        at = int(bad[0]) if len(bad) else whole
        raise _damaged(name, first + at, offset + int(starts[at]) - HEAD, "data" if len(bad) else "length")


def write_examples(stream: IO[bytes], batch: pa.RecordBatch) -> None:
    """Append a batch to a TFRecord stream, one Example for each row."""
    stream.write(encode_records(batch).data)
