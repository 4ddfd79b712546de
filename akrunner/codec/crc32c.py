"""Masked CRC-32C of many records at once, as TFRecord needs it.

CRC is linear over GF(2): the CRC of a record is the XOR of what each of its bytes contributes at its distance from the record's
end. So for records of one layout only the bytes that vary need a look-up, for a whole column of rows at a time. Records of any
length are processed in steps of eight bytes. Long records (`LONG_RECORD` bytes and more) go through a C library if there is
one: for them the call costs little beside the work on the bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

try:
    import google_crc32c
except ImportError:
    # the Python of a Flink worker has numpy, but not this
    google_crc32c = None
if google_crc32c is not None and google_crc32c.implementation != "c":
    # without a C library this package computes byte by byte in Python (and warns); numpy is faster
    google_crc32c = None

#: whether long records go through a C library
IN_C = google_crc32c is not None
#: the directory of that library's module `_crc32c`, for an interpreter without packages; "" if there is none
LIBRARY = os.path.dirname(google_crc32c.__file__) if IN_C else ""

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

#: from this many bytes per record on, a C call for it is cheaper than eight-byte steps in numpy
LONG_RECORD = 640
_POLYNOMIAL = np.uint32(0x82F63B78)
_MASK_DELTA = np.uint32(0xA282EAD8)


@lru_cache(maxsize=1)
def _byte_table() -> U32:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ np.where(table & np.uint32(1), _POLYNOMIAL, np.uint32(0))
    return table


class _Distance:
    """The contribution of byte value b at distance d from the end of a record: `table(d)[b]`. Tables are made as needed."""

    def __init__(self) -> None:
        self._tables: list[U32] = [_byte_table()]

    def table(self, distance: int) -> U32:
        base = self._tables[0]
        while len(self._tables) <= distance:
            last = self._tables[-1]
            self._tables.append(base.take((last & np.uint32(0xFF)).astype(np.intp)) ^ (last >> np.uint32(8)))
        return self._tables[distance]


@lru_cache(maxsize=1)
def _distance() -> _Distance:
    return _Distance()


def mask(crc: U32) -> U32:
    """Return the CRCs masked as TFRecord does it: rotated right by 15 bits, with a constant added."""
    rotated = (crc >> np.uint32(15)) | (crc << np.uint32(17))
    return rotated + _MASK_DELTA


def crc_of(data: bytes) -> int:
    """Return the unmasked CRC-32C of a byte string."""
    if google_crc32c is None:
        length = np.array([len(data)])
        return int(_crc_by_words(np.frombuffer(data, np.uint8), length, length, -(-len(data) // 8) * 8)[0]) if data else 0
    return cast(int, google_crc32c.value(data))


def extended(crc: int, data: Any) -> int:
    """Return the CRC-32C of a byte string, given the CRC-32C of its beginning and the bytes behind that. Meant for many bytes
    if `IN_C`.

    Args:
        crc: the CRC-32C of the beginning.
        data: the bytes behind it, as bytes or another buffer.
    """
    if google_crc32c is None:
        data = bytes(data)
        return int(joined(np.array([crc], np.uint32), np.array([crc_of(data)], np.uint32), np.array([len(data)]))[0])
    # the C library takes no memoryview
    return cast(int, google_crc32c.extend(crc, data if isinstance(data, bytes) else np.frombuffer(data, np.uint8)))


def crcs_of(values: Sequence[bytes]) -> U32:
    """Return [rows] the unmasked CRC-32C of byte strings."""
    return np.fromiter(map(crc_of if google_crc32c is None else google_crc32c.value, values), np.uint32, len(values))


def crcs_of_both(firsts: Sequence[bytes], seconds: Sequence[bytes | memoryview]) -> U32:
    """Return the CRC-32C of pairs of byte strings, as if they were joined; with the C library (`IN_C`) without copying them.

    Args:
        firsts: [rows] the first string of each pair.
        seconds: [rows] the second string of each pair.
    Returns:
        [rows] unmasked.
    """
    if google_crc32c is None:
        return np.fromiter((crc_of(first + second) for first, second in zip(firsts, seconds)), np.uint32, len(firsts))
    return np.fromiter(map(google_crc32c.extend, map(google_crc32c.value, firsts), seconds), np.uint32, len(firsts))


def joined(firsts: U32, seconds: U32, lengths: I64) -> U32:
    """Return the CRC-32C of pairs of byte strings, as if they were joined, from the CRC-32C of each.

    Args:
        firsts: [rows] the CRC of each first string.
        seconds: [rows] the CRC of each second string.
        lengths: [rows] the length of each second string.
    Returns:
        [rows] unmasked.
    """
    return _followed(firsts, lengths) ^ seconds


def of_all(crcs: U32, lengths: I64) -> int:
    """Return the CRC-32C of byte strings, as if they were joined, from the CRC-32C of each.

    Args:
        crcs: [strings] the CRC of each.
        lengths: [strings] the length of each.
    Returns:
        unmasked.
    """
    behind = int(lengths.sum()) - np.cumsum(lengths)
    return int(np.bitwise_xor.reduce(_followed(crcs, behind), initial=0))


#: how many bits of a number of zero bytes are looked up together
_DIGIT = 4


def _followed(crcs: U32, zeros: I64) -> U32:
    """Return [rows] what each CRC becomes when that many zero bytes follow."""
    for digit in range(-(-int(zeros.max(initial=0)).bit_length() // _DIGIT)):
        crcs = _shifted(_zeros(digit), (zeros >> (_DIGIT * digit)) & ((1 << _DIGIT) - 1), crcs)
    return crcs


@cache
def _zeros(digit: int) -> U32:
    """Return [16, 4, 256] what v * 16^digit zero bytes make of each of the four bytes of a CRC; the XOR of all four is what
    they make of the CRC."""
    octets = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    tables = np.empty((1 << _DIGIT, *octets.shape), np.uint32)
    tables[0] = octets
    if digit:
        before = _zeros(digit - 1)
        tables[1] = _shifted(before, 1, before[-1])
    else:
        tables[1] = _byte_table()[octets & np.uint32(0xFF)] ^ (octets >> np.uint32(8))
    for value in range(2, len(tables)):
        tables[value] = _shifted(tables, 1, tables[value - 1])
    return tables


def _shifted(tables: U32, values: I64 | int, crcs: U32) -> U32:
    octets = [(crcs >> np.uint32(8 * i)) & np.uint32(0xFF) for i in range(4)]
    first, second, third, fourth = (tables[values, i, octet] for i, octet in enumerate(octets))
    shifted: U32 = first ^ second ^ third ^ fourth
    return shifted


def crc_of_layout(template: bytes, columns: Iterable[tuple[int, U8]], rows: int) -> U32:
    """Return the CRC-32C of `rows` records of one length that differ only in some byte columns.

    Args:
        template: [length] the record with every varying byte zero.
        columns: (position, bytes [rows]) for each varying byte.
        rows: how many records there are.
    Returns:
        [rows] unmasked.
    """
    acc = np.full(rows, crc_of(template), dtype=np.uint32)
    last = len(template) - 1
    distance = _distance()
    for position, values in columns:
        acc ^= distance.table(last - position).take(values, mode="clip")
    return acc


def crc_of_ranges(flat: U8, starts: I64, ends: I64) -> U32:
    """Return the CRC-32C of `flat[starts[i]:ends[i]]` for every i.

    Args:
        flat: [bytes].
        starts: [rows].
        ends: [rows].
    Returns:
        [rows] unmasked.
    """
    rows = len(starts)
    if rows == 0:
        return np.zeros(0, np.uint32)
    lengths = ends - starts
    longest = int(lengths.max())
    if google_crc32c is not None and (longest >= LONG_RECORD or rows < 16):
        data = flat.tobytes()
        pieces = [data[a:b] for a, b in zip(starts.tolist(), ends.tolist())]
        return np.fromiter(map(google_crc32c.value, pieces), np.uint32, rows)
    return _crc_by_words(flat, ends, lengths, -(-longest // 8) * 8)


def _crc_by_words(flat: U8, ends: I64, lengths: I64, width: int) -> U32:
    """Return the CRC of each record: right-align the records in rows of `width` bytes (leading zeros do not change a CRC that
    starts at zero), then go through them a word at a time, all rows together."""
    rows = len(ends)
    padded = np.concatenate([np.zeros(width, np.uint8), flat])
    windows: NDArray[np.void] = np.ndarray((len(flat) + 1,), dtype=f"V{width}", buffer=padded, strides=(1,))
    aligned = windows[ends].view(np.uint8).reshape(rows, width)
    aligned *= np.arange(width, dtype=np.int16) >= (width - lengths).astype(np.int16)[:, None]
    words = np.ascontiguousarray(aligned.view("<u8").T)
    tables = [_distance().table(7 - i) for i in range(8)]
    crc = np.zeros(rows, np.uint32)
    for word in words:
        octets = (word ^ crc).view(np.uint8).reshape(rows, 8)
        crc = tables[0].take(octets[:, 0], mode="clip")
        for i in range(1, 8):
            crc ^= tables[i].take(octets[:, i], mode="clip")
    return crc ^ _start_value(width).take(lengths) ^ np.uint32(0xFFFFFFFF)


@cache
def _start_value(longest: int) -> U32:
    """Return [longest + 1] what the initial 0xFFFFFFFF becomes after each number of zero bytes."""
    table = _byte_table()
    values = np.empty(longest + 1, np.uint32)
    state = np.uint32(0xFFFFFFFF)
    for i in range(longest + 1):
        values[i] = state
        state = table[int(state) & 0xFF] ^ (state >> np.uint32(8))
    return values
