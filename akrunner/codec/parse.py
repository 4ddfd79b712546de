"""Finds where the values of every feature are in many serialized `tf.train.Example`s at once, without reading the values yet.

Records written by one program mostly look alike, so two guesses are tried before the bytes are read one by one:

1. *Whole record*: take one record's layout; every record of the same length whose structural bytes are equal has its
   values at the same places.
2. *Next feature*: where lengths differ (strings, varints), take the head of the next feature of one record, and compare it
   with the next head of all the others; lengths may differ, and are then checked against each other.

Records that no guess fits are parsed one at a time; that is right for every legal encoding, and slow.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from akrunner.codec.protobuf import Feature, read_example, read_varint, tagged
from akrunner.codec.scratch import arena
from akrunner.errors import DataError
from akrunner.wire.features import BY_NUMBER

U8 = NDArray[np.uint8]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MAX_TEMPLATE = 4096
_MAX_TEMPLATES = 6
#: how many rows are compared at a time: few enough to stay in the processor's cache, and in memory that is not given back in
#: between
_AT_ONCE = 512
_MAX_HEADS = 64
_MAX_FEATURES = 10_000
_MOST_UNKNOWN = 100


@dataclass(frozen=True)
class Block:
    """Records of one layout, copied side by side: the values of one of their features are at `records[:, offset : offset +
    length]`. Reading this column is many times faster than reading the same values through `Spans.start`.

    Attributes:
        rows: [n] the positions of the records in the batch.
        starts: [n] where each record begins in the buffer.
        records: [n, width] the bytes of the records.
        offset: where the feature's values begin in each record.
        length: how many bytes the values have.
        kind: as in `Spans`.
    """

    rows: I64
    starts: I64
    records: U8
    offset: int
    length: int
    kind: int

    @property
    def floats(self) -> NDArray[np.float32]:
        """[n] The first float of each record."""
        shape, strides = (len(self.rows),), (self.records.shape[1],)
        return np.ndarray(shape, "<f4", buffer=self.records, offset=self.offset, strides=strides)

    @property
    def octets(self) -> U8:
        """[n, length] The bytes of the feature's values."""
        return self.records[:, self.offset : self.offset + self.length]


class Spans:
    """Where the values of one feature are.

    Attributes:
        start: [rows] where a row's values begin in the buffer: packed floats, packed varints, or tagged byte strings.
        length: [rows] how many bytes they have.
        kind: [rows] 0 absent, 1 bytes, 2 float, 3 int64, 4 present with no list set.
        blocks: rows of one layout. The arrays above are made from the blocks on first use; a column of numbers seldom needs
            them.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.blocks: list[Block] = []
        self._arrays: tuple[I64, I64, NDArray[np.int8]] | None = None

    def only_blocks(self, kind: int) -> bool:
        """Whether every row is in a block of this kind."""
        same = all(block.kind == kind and block.length for block in self.blocks)
        return self._arrays is None and same and sum(len(block.rows) for block in self.blocks) == self.rows

    @property
    def start(self) -> I64:
        return self._laid_out()[0]

    @property
    def length(self) -> I64:
        return self._laid_out()[1]

    @property
    def kind(self) -> NDArray[np.int8]:
        return self._laid_out()[2]

    def _laid_out(self) -> tuple[I64, I64, NDArray[np.int8]]:
        if self._arrays is None:
            start, length, kind = np.zeros(self.rows, np.int64), np.zeros(self.rows, np.int64), np.zeros(self.rows, np.int8)
            for block in self.blocks:
                start[block.rows] = block.starts + block.offset
                length[block.rows] = block.length
                kind[block.rows] = block.kind
            self._arrays = start, length, kind
        return self._arrays


@dataclass
class Parsed:
    """Result of `parse`.

    Attributes:
        buffer: the bytes into which the spans point: the input, and repacked copies of lists that were not packed.
        spans: the spans of each feature, by its name.
        unknown: features that are not in `wanted`: name -> the first row found that has it.
        order: [rows] the position of each row when the rows of the layouts that were found are laid end to end; empty if there
            is one layout.
    """

    buffer: U8
    spans: dict[bytes, Spans] = field(default_factory=dict)
    unknown: dict[bytes, int] = field(default_factory=dict)
    order: I64 = field(default_factory=lambda: np.empty(0, np.int64))


def parse(buffer: U8, starts: I64, ends: I64, wanted: Collection[bytes]) -> Parsed:
    """Find the features called `wanted` in the Examples `buffer[starts[i]:ends[i]]`.

    Returns:
        the spans of each feature; of two entries with the same name in a record, the later wins, as in protobuf.
    Raises:
        DataError: a record is not a `tf.train.Example`; its `row` is the record's position.
    """
    return _Parser(buffer, starts, ends, wanted).run()


@dataclass(frozen=True)
class _Layout:
    """Where everything is in records of one length.

    Attributes:
        bits: the bits of the record that are structure, not values, as words.
        want: what these bits must be.
        features: (name, offset, length, kind) of each feature.
    """

    bits: NDArray[np.uint64]
    want: NDArray[np.uint64]
    features: tuple[tuple[bytes, int, int, int], ...]

    @classmethod
    def of(cls, record: U8, length: int, features: list[Feature], start: int) -> _Layout:
        """Return the layout of one record, padded to whole words, whose features were read at `start`."""
        mask = np.zeros(len(record), np.uint8)
        mask[:length] = 0xFF
        placed = []
        for feature in features:
            offset = feature.start - start
            placed.append((feature.name, offset, feature.length, feature.kind))
            if feature.kind == 3:
                mask[offset : offset + feature.length] = 0x80
            elif feature.kind == 2:
                mask[offset : offset + feature.length] = 0
            elif feature.kind == 1:
                for at, size in tagged(record[offset : offset + feature.length].tobytes()):
                    mask[offset + at : offset + at + size] = 0
        return cls(mask.view("<u8"), (record & mask).view("<u8"), tuple(placed))


#: length -> layouts seen lately; a layout that fits a record is right for it, wherever it was seen
_recent: dict[int, list[_Layout]] = {}
_MAX_RECENT = 64


class _Parser:
    def __init__(self, buffer: U8, starts: I64, ends: I64, wanted: Collection[bytes]) -> None:
        arena.reset()
        self.size = len(buffer)
        # room behind the end, so that a window of fixed width may be read anywhere
        self.buffer = arena.take(self.size + _MAX_TEMPLATE + 64)
        self.buffer[: self.size] = buffer
        self.buffer[self.size :] = 0
        self.starts, self.ends = starts, ends
        self.rows = len(starts)
        # make no spans for features that are not wanted, as every row may have others
        self.spans = {name: Spans(self.rows) for name in wanted}
        self.unknown: dict[bytes, int] = {}
        self.extra = bytearray()
        self.matched: list[I64] = []

    def run(self) -> Parsed:
        left: I64 = np.arange(self.rows, dtype=np.int64)
        left = self.by_record(left)
        if len(left) > 8:
            left = self.by_feature(left)
        for row in left.tolist():
            self.one(row)
        buffer = self.buffer
        if self.extra:
            buffer = np.concatenate([self.buffer, np.frombuffer(bytes(self.extra), np.uint8)])
        order = np.empty(0, np.int64)
        if len(self.matched) > 1 and sum(map(len, self.matched)) == self.rows:
            order = np.empty(self.rows, np.int64)
            order[np.concatenate(self.matched)] = np.arange(self.rows)
        return Parsed(buffer, self.spans, self.unknown, order)

    def column(self, name: bytes, row: int) -> Spans | None:
        """Return the spans of a feature that `row` has; None if the feature is not wanted."""
        spans = self.spans.get(name)
        if spans is None and (name in self.unknown or len(self.unknown) < _MOST_UNKNOWN):
            self.unknown[name] = min(row, self.unknown.get(name, row))
        return spans

    def windows(self, positions: I64, width: int) -> U8:
        """Return [n, width] the bytes from each position on; the width must be a multiple of 8."""
        view: NDArray[np.void] = np.ndarray(
            (len(self.buffer) - width + 1,), dtype=f"V{width}", buffer=self.buffer, strides=(1,)
        )
        return view[positions].view(np.uint8).reshape(len(positions), width)

    # -- guess 1: the whole record

    def by_record(self, left: I64) -> I64:
        lengths = self.ends - self.starts
        for _ in range(_MAX_TEMPLATES):
            if len(left) < 8:
                break
            row = int(left[0])
            length = int(lengths[row])
            if not 0 < length <= _MAX_TEMPLATE:
                break
            alike = left[lengths[left] == length]
            if len(alike) * 8 < len(left):
                break
            layout = self.layout(row, length)
            if layout is None:
                break
            matched, records = self.match_record(layout, alike)
            keep = np.ones(self.rows, bool)
            keep[matched] = False
            if len(matched) * 8 < len(left):
                break
            self.matched.append(matched)
            starts = self.starts[matched]
            for name, offset, size, kind in layout.features:
                spans = self.column(name, int(matched[0]))
                if spans is not None:
                    spans.blocks.append(Block(matched, starts, records, offset, size, kind))
            left = left[keep[left]]
        return left

    def layout(self, row: int, length: int) -> _Layout | None:
        """Return one record's layout: a recent one, or one read from its bytes. Return None if the record has an unusual
        form."""
        start = int(self.starts[row])
        record = np.zeros(-(-length // 8) * 8, np.uint8)
        record[:length] = self.buffer[start : start + length]
        recent = _recent.get(length, [])
        for layout in recent:
            if np.array_equal(record.view("<u8") & layout.bits, layout.want):
                return layout
        features = self.read(row)
        if features is None:
            return None
        layout = _Layout.of(record, length, features, start)
        if len(_recent) >= _MAX_RECENT:
            _recent.clear()
        _recent[length] = [layout, *recent[:3]]
        return layout

    def match_record(self, layout: _Layout, alike: I64) -> tuple[I64, U8]:
        """Return which of these records, all of the same length, have the layout; and their bytes, side by side."""
        width = 8 * len(layout.want)
        octets = arena.take(len(alike) * width).reshape(len(alike), width)
        same = np.ones(len(alike), bool)
        for at in range(0, len(alike), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            octets[part] = self.windows(self.starts[alike[part]], width)
            equal = (octets[part].view("<u8") & layout.bits) == layout.want
            if not equal.all():
                same[part] = equal.all(axis=1)
        return (alike, octets) if same.all() else (alike[same], octets[same])

    # -- guess 2: the next feature

    def by_feature(self, left: I64) -> I64:
        """Go through all records together, feature by feature; return the records that no guess fits."""
        position, end, ok = self.open_records(left)
        slow = [left[~ok]]
        rows, position, end = left[ok], position[ok], end[ok]
        pending: list[tuple[I64, I64, I64, _Head]] = []
        heads: list[_Head] = []
        for _ in range(_MAX_FEATURES):
            if not len(rows):
                break
            following, found = self.step(position, end, heads)
            pending += [(rows[index], start, length, head) for index, start, length, head in found]
            # the order of features seldom changes: the features that followed once are tried first again
            heads = [head for _, _, _, head in found]
            slow.append(rows[following < 0])
            going = (following >= 0) & (following < end)
            rows, position, end = rows[going], following[going], end[going]
        again: I64 = np.unique(np.concatenate([*slow, rows]))
        for at, start, length, head in pending:
            spans = self.column(head.name, int(at[0]))
            if spans is not None:
                spans.start[at], spans.length[at], spans.kind[at] = start, length, head.kind
        for spans in self.spans.values():
            spans.kind[again] = 0
        return again

    def step(self, position: I64, end: I64, guesses: list[_Head]) -> tuple[I64, list[tuple[I64, I64, I64, _Head]]]:
        """Find one feature of every record.

        Returns:
            [n] the position after the feature, -1 where no guess fits; and for each guess that fits any: the indices of the
            records that it fits, where their values start, and how long these are.
        """
        following = np.full(len(position), -1, np.int64)
        todo: I64 = np.arange(len(position), dtype=np.int64)
        found: list[tuple[I64, I64, I64, _Head]] = []
        waiting = list(guesses)
        for _ in range(len(guesses) + _MAX_HEADS):
            if not len(todo):
                break
            head = waiting.pop(0) if waiting else self.read_head(int(position[todo[0]]), int(end[todo[0]]))
            fresh = not waiting and head not in guesses
            hit = np.zeros(len(todo), bool)
            if head is not None:
                hit, start, length, stop = self.match_head(head, position[todo], end[todo])
                if hit.any():
                    found.append((todo[hit], start, length, head))
                    following[todo[hit]] = stop
            if fresh and not hit.any():
                hit[0] = True  # the guess does not even fit its own record: the slow way reads it
            todo = todo[~hit]
        return following, found

    def open_records(self, rows: I64) -> tuple[I64, I64, Mask]:
        """Skip the head of each Example; return (position of the first entry, end, whether the head is valid)."""
        start, end = self.starts[rows], self.ends[rows]
        ok = self.buffer[start] == 0x0A
        value, width, fine = self.varints(start + 1)
        position = start + 1 + width
        ok &= fine & (position + value == end) & (end > start)
        return position, end, ok

    def varints(self, positions: I64) -> tuple[I64, I64, Mask]:
        """Return (value, width, whether it is valid) of the varint at each position; at most 5 bytes are read."""
        octets = self.windows(np.minimum(positions, self.size), 8)[:, :5].astype(np.int64)
        more = octets >= 0x80
        width = np.argmin(more, axis=1) + 1
        value = np.zeros(len(positions), np.int64)
        for i in range(5):
            value |= np.where(i < width, octets[:, i] & 0x7F, 0) << (7 * i)
        return value, width, ~more.all(axis=1)

    def read_head(self, position: int, end: int) -> _Head | None:
        """Return the next feature of one record as a guess for the others; None if it has an unusual form."""
        try:
            return _Head.read(self.buffer, position, end)
        except (IndexError, ValueError):
            return None

    def match_head(self, head: _Head, position: I64, end: I64) -> tuple[Mask, I64, I64, I64]:
        """Return (hit [n], and for the hits: start of the values, their length, position of the next feature)."""
        width = len(head.template)
        words = self.windows(np.minimum(position, self.size), width).view("<u8")
        differs = np.zeros(len(position), np.uint64)
        for i, (want, bits) in enumerate(zip(head.template.view("<u8"), head.mask.view("<u8"))):
            if bits:
                differs |= (words[:, i] & bits) ^ want
        hit = differs == 0
        at = position[hit]
        octets = words.view(np.uint8)[hit]
        inner = np.zeros(len(at), np.int64)
        for shift, column in enumerate(head.lengths[-1]):
            inner |= (octets[:, column].astype(np.int64) & 0x7F) << (7 * shift)
        fine = np.ones(len(at), bool)
        for columns, more in zip(head.lengths[:-1], head.distances):
            value = np.zeros(len(at), np.int64)
            for shift, column in enumerate(columns):
                value |= (octets[:, column].astype(np.int64) & 0x7F) << (7 * shift)
            fine &= value == inner + more
        stop = at + head.size + inner
        fine &= stop <= end[hit]
        if not fine.all():
            hit[np.flatnonzero(hit)[~fine]] = False
            at, inner, stop = at[fine], inner[fine], stop[fine]
        # a single byte string keeps its own tag and length, so that only one form has to be read later
        start = at + head.size - (head.keep if head.kind == 1 else 0)
        return hit, start, inner + (head.keep if head.kind == 1 else 0), stop

    # -- one at a time

    def read(self, row: int) -> list[Feature] | None:
        """Return the features of one record; None if one of them is not in the exact form that a guess needs."""
        features = self.features(row)
        names = {feature.name for feature in features}
        if len(names) != len(features) or not all(feature.exact for feature in features):
            return None
        return features

    def one(self, row: int) -> None:
        for feature in self.features(row):
            spans = self.column(feature.name, row)
            if spans is None:
                continue
            start, length = feature.start, feature.length
            if not feature.exact:
                start, length = len(self.buffer) + len(self.extra), len(feature.unpacked)
                self.extra += feature.unpacked
            spans.start[row], spans.length[row], spans.kind[row] = start, length, feature.kind

    def features(self, row: int) -> list[Feature]:
        start, end = int(self.starts[row]), int(self.ends[row])
        try:
            return read_example(self.buffer[start:end].tobytes(), start)
        except (IndexError, ValueError, UnicodeDecodeError) as e:
            raise DataError(f"record {row} is not a tf.train.Example: {e or 'it is cut short'}", row=row) from None


@dataclass(eq=False)
class _Head:
    """The bytes of a feature up to its values; the lengths in them may vary.

    Attributes:
        name: the feature's name.
        kind: as in `Spans`.
        template: [multiple of 8] the bytes that must be equal.
        mask: [multiple of 8] which bits of them are compared.
        lengths: the byte columns of each length varint, from the outermost to that of the values.
        distances: by how much each length but the last exceeds the last.
        size: the number of bytes before the values.
        keep: how many of these are the tag and length of a byte string.
    """

    name: bytes
    kind: int
    template: U8
    mask: U8
    lengths: list[list[int]]
    distances: list[int]
    size: int
    keep: int

    @classmethod
    def read(cls, buffer: U8, position: int, end: int) -> _Head | None:
        data = buffer[position : min(end, position + 1024)].tobytes()
        at = 0
        lengths: list[list[int]] = []
        ends: list[int] = []

        def lengthy(*tags: int) -> int:
            nonlocal at
            tag = data[at]
            if tag not in tags:
                raise ValueError("unusual")
            value, after = read_varint(data, at + 1)
            lengths.append(list(range(at + 1, after)))
            at = after
            ends.append(at)
            return value

        lengthy(0x0A)
        if data[at] != 0x0A:
            return None
        key_length, key_at = read_varint(data, at + 1)
        at = key_at + key_length
        name = data[key_at:at]
        lengthy(0x12)
        tag = data[at]
        lengthy(*(kind.tag for kind in BY_NUMBER.values()))
        keep_from = at
        inner = lengthy(0x0A)
        whole = read_varint(data, 1)[0]
        if ends[0] + whole != at + inner or len(data) < at:
            return None
        width = -(-at // 8) * 8
        mask = np.zeros(width, np.uint8)
        mask[:at] = 0xFF
        for columns in lengths:
            mask[columns] = 0x80
        template = np.zeros(width, np.uint8)
        template[:at] = np.frombuffer(data[:at], np.uint8)
        return cls(
            name, tag >> 3, template & mask, mask, lengths,
            [at - e for e in ends[:-1]], at, at - keep_from,
        )  # fmt: skip
