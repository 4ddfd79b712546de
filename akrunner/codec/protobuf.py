"""Reads one serialized `tf.train.Example` byte by byte: right for every legal encoding, and slow.

It is for records that the guesses of `akrunner.codec.parse` do not fit, and for the one record from which a guess is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from akrunner.wire.features import BY_NUMBER


@dataclass
class Feature:
    """One feature of one record.

    Attributes:
        name: the feature's name.
        kind: which list it has: 1 bytes, 2 float, 3 int64, 4 none.
        start: the absolute position of its values.
        length: how many bytes they have.
        exact: whether its list is one packed field (or nothing but tagged byte strings).
        unpacked: a repacked copy of the values, if `exact` is False.
    """

    name: bytes
    kind: int
    start: int
    length: int
    exact: bool
    unpacked: bytes = b""


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a varint is too long")


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (field number, wire type, start, end) of each field of a message; the span of a varint is its own bytes. Fields are
    yielded one at a time, as a message may have as many as it has bytes."""
    while at < end:
        tag, at = read_varint(data, at)
        wire = tag & 7
        if tag < 8:
            raise ValueError("field number 0")
        if wire == 2:
            size, at = read_varint(data, at)
            stop = at + size
        elif wire == 0:
            stop = read_varint(data, at)[1]
        elif wire in (1, 5):
            stop = at + (8 if wire == 1 else 4)
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if stop > end:
            raise ValueError("it is cut short")
        yield tag >> 3, wire, at, stop
        at = stop


def _plainly_tagged(data: bytes, at: int, end: int) -> bool:
    """Whether a bytes_list has nothing but strings, with tags and lengths short enough for the code that reads many of them at
    once."""
    for number, wire, start, stop in _fields(data, at, end):
        if number != 1 or wire != 2 or data[at] != 0x0A or start - at > 6:
            return False
        at = stop
    return True


def read_example(data: bytes, base: int) -> list[Feature]:
    found: dict[bytes, Feature] = {}
    for number, wire, at, end in _fields(data, 0, len(data)):
        if number != 1 or wire != 2:
            continue
        for entry, entry_wire, entry_at, entry_end in _fields(data, at, end):
            if entry != 1 or entry_wire != 2:
                continue
            name = b""
            ranges: list[tuple[int, int]] = []
            for part, part_wire, part_at, part_end in _fields(data, entry_at, entry_end):
                if part_wire != 2:
                    continue
                if part == 1:
                    name = data[part_at:part_end]
                elif part == 2:
                    ranges.append((part_at, part_end))
            found.pop(name, None)
            found[name] = _read_feature(name, data, ranges, base)
    return list(found.values())


def _read_feature(name: bytes, data: bytes, ranges: list[tuple[int, int]], base: int) -> Feature:
    """Return the feature in these stretches of an entry (there is one, except from very unusual writers). The lists are a
    oneof: the last kind of list wins; several pieces of the same list are joined."""
    pieces: list[tuple[int, int]] = []
    kind = 4
    for at, end in ranges:
        for number, wire, start, stop in _fields(data, at, end):
            if number in BY_NUMBER and wire == 2:
                if number != kind:
                    pieces, kind = [], number
                pieces.append((start, stop))
    if kind == 4:
        return Feature(name, 4, base, 0, True)
    if kind == 1:
        start, stop = pieces[0]
        if len(pieces) == 1 and _plainly_tagged(data, start, stop):
            return Feature(name, 1, base + start, stop - start, True)
        body = b"".join(
            b"\x0a" + varint(b - a) + data[a:b]
            for start, stop in pieces
            for n, w, a, b in _fields(data, start, stop)
            if n == 1 and w == 2
        )
        return Feature(name, 1, 0, len(body), False, body)
    wires = (2, 5) if kind == 2 else (2, 0)
    numbers = bytearray()
    count = packed = 0
    for start, stop in pieces:
        for n, w, a, b in _fields(data, start, stop):
            if n == 1 and w in wires:
                count, packed, only = count + 1, packed + (w == 2), (a, b)
                numbers += data[a:b]
    if not numbers:
        return Feature(name, kind, base, 0, True)
    if count == packed == 1:
        return Feature(name, kind, base + only[0], only[1] - only[0], True)
    return Feature(name, kind, 0, len(numbers), False, bytes(numbers))


def varint(value: int) -> bytes:
    """Return the shortest encoding of a number that is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tagged(body: bytes) -> list[tuple[int, int]]:
    """Return (start, length) of each string in the body of a bytes_list."""
    return [(a, b - a) for _, _, a, b in _fields(body, 0, len(body))]
