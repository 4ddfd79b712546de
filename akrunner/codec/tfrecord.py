"""TFRecord files as tables: cut a byte stream into records, check them, decode them."""

from __future__ import annotations

import struct
from typing import IO, Iterator, List, Tuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.codec import crc32c
from akrunner.codec.decode import decode_ranges
from akrunner.codec.encode import HEAD, TAIL, encode_records
from akrunner.errors import DataError, SourceError
from akrunner.schema import Schema

_CHUNK = 4 << 20
_LENGTH = struct.Struct("<Q")


def read_examples(stream: IO[bytes], schema: Schema, name: str = "TFRecord") -> Iterator[pa.RecordBatch]:
    """The Examples of a TFRecord stream as batches of the schema; features the schema does not name are passed over.

    Raises: SourceError: it is damaged or cut short; DataError: a record does not fit the schema.
    """
    rest = b""
    row = 0
    while True:
        chunk = stream.read(_CHUNK)
        data = rest + chunk if rest else chunk
        if not data:
            return
        starts, ends, used = cut(data)
        if not chunk and used < len(data):
            raise SourceError(f"{name} is cut short: {len(data) - used} bytes after record {row + len(starts)}")
        if len(starts):
            flat = np.frombuffer(data, np.uint8)
            check(flat, starts, ends, name, row)
            try:
                yield decode_ranges(schema, flat, starts, ends, row, strict=False)
            except DataError as e:
                raise DataError(f"{name}: {e}", row=e.row, column=e.column) from None
            row += len(starts)
        rest = data[used:]
        if not chunk:
            return


def framed(record: bytes) -> bytes:
    """One record with its length and checksums around it."""
    length = _LENGTH.pack(len(record))
    crcs = [crc32c.mask(np.array([crc32c.crc_of(part)], np.uint32)).astype("<u4").tobytes() for part in (length, record)]
    return length + crcs[0] + record + crcs[1]


def cut(data: bytes) -> Tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """(starts, ends) of the whole records' payloads in `data`, and the bytes they use.

    Each length says where the next one lies, so there is no way around going from record to record; a run of records of one
    length is found at once.
    """
    flat = np.frombuffer(data, np.uint8)
    starts: List[NDArray[np.int64]] = []
    ends: List[NDArray[np.int64]] = []
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


def check(flat: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], name: str, first: int) -> None:
    """Raises: SourceError: a record's CRC is not what its bytes give."""
    words: NDArray[np.uint32] = np.ndarray((len(flat) - 3,), "<u4", buffer=flat, strides=(1,))
    bad = crc32c.mask(crc32c.crc_of_ranges(flat, starts, ends)) != words[ends]
    if bad.any():
        raise SourceError(f"{name} is damaged: record {first + int(np.flatnonzero(bad)[0])} has a wrong checksum")


def write_examples(stream: IO[bytes], batch: pa.RecordBatch) -> None:
    """Append a batch to a TFRecord stream, an Example a row."""
    stream.write(encode_records(batch).data)
