"""Finds the records in a TFRecord file, without TensorFlow.

::

    | length 8 | its checksum 4 | the record | its checksum 4 |   little endian
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Tuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEAD = 12
TAIL = 4
_LENGTH = struct.Struct("<Q")
#: most records that are returned at a time
_AT_ONCE = 8192
#: most bytes of the records that are returned at a time
_BYTES_AT_ONCE = 8 << 20
#: so many records of one length are returned as a part of their own
_RUN = 1024


def read_file(path: str) -> Optional[memoryview]:
    """Return the bytes of a file, as a view of the mapped file; None if the file is empty."""
    if not os.path.getsize(path):
        return None
    with open(path, "rb") as f:
        return memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))


def cut(data: memoryview, name: str = "the file") -> Iterator[Tuple[NDArray[Any], NDArray[Any]]]:
    """Yield (starts, ends) of the records in `data`, some thousands at a time, as int64 arrays.

    Each record's length tells where the next one begins, so records are read one by one; but many records of one length are
    found at once.

    Args:
        data: the bytes of the file.
        name: the file's name, for the error.
    Raises:
        ValueError: the last record is cut short.
    """
    at, size = 0, len(data)
    while at < size:
        starts, ends, at = _cut(data, at, size, name)
        yield from stretches(starts, ends, _BYTES_AT_ONCE)


def stretches(starts: NDArray[Any], ends: NDArray[Any], size: int) -> Iterator[Tuple[NDArray[Any], NDArray[Any]]]:
    """Yield the same records in parts of at most `size` bytes, with at least one record in each."""
    while len(starts):
        count = max(1, int((ends - starts[0]).searchsorted(size, "right")))
        yield starts[:count], ends[:count]
        starts, ends = starts[count:], ends[count:]


def _cut(data: memoryview, at: int, size: int, name: str) -> Tuple[NDArray[Any], NDArray[Any], int]:
    length = _length(data, at, size, name)
    stride = HEAD + length + TAIL
    most = min(_AT_ONCE, (size - at) // stride)
    heads: NDArray[np.uint64] = np.ndarray((most,), "<u8", buffer=data, offset=at, strides=(stride,))
    differs = np.flatnonzero(heads != length)
    run = int(differs[0]) if len(differs) else most
    if run >= min(_RUN, most) and run > 1:
        starts = at + HEAD + np.arange(run, dtype=np.int64) * stride
        return starts, starts + length, at + run * stride
    first: List[int] = []
    last: List[int] = []
    unpack, room = _LENGTH.unpack_from, size - HEAD - TAIL
    while at <= room and len(first) < _AT_ONCE:
        (length,) = unpack(data, at)
        end = at + HEAD + length
        if end + TAIL > size:
            break
        first.append(at + HEAD)
        last.append(end)
        at = end + TAIL
    return np.array(first, np.int64), np.array(last, np.int64), at


def _length(data: memoryview, at: int, size: int, name: str) -> int:
    length: int
    (length,) = _LENGTH.unpack_from(data, at) if at + HEAD <= size else (size,)
    if at + HEAD + length + TAIL > size:
        raise ValueError("%s is cut short: a record begins at byte %d, and %d bytes follow" % (name, at, size - at))
    return length
