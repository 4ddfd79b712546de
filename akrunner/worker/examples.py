"""Decodes rows that arrive as Examples to {column: array}, with numpy alone, thousands of rows at a time.

::

    0A size | 0A size | 0A size name | 12 size | kind size | 0A size | numbers        an Example, its first feature
             entry      key            feature   list        packed
                                                 0A size bytes 0A size bytes ...      a list of byte strings

The host (`akrunner.codec.encode`) writes the features in the order of the schema, leaves out nulls, and writes the sizes and
the numbers of a column with one width for some thousand rows. So the bytes before a feature's values are the same as in the
first row, or can be read for all rows at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from akrunner.wire.features import KINDS
from akrunner.wire.frames import WireError
from akrunner.worker import chunks, records
from akrunner.worker import defaults as defaulting
from akrunner.worker.column_rows import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from akrunner.worker.data import Evener
    from akrunner.worker.splits import Split
    from akrunner.worker.stream import RowStream

#: if a row's numbers take this many bytes or more on average, each row is copied as a whole
_LONG = 64
#: if fewer lists of strings than this have strings left, they are read one after another
_FEW_LISTS = 16
#: numbers that are decoded at a time
_AT_ONCE = 1 << 14


class ExampleRows(Columns):
    """`Columns` whose rows arrive as Examples: their types are int64, float32 and bytes."""

    def __init__(
        self, schema: List[Dict[str, Any]], path: Optional[str] = None, stream: Optional[RowStream] = None,
        evener: Optional[Evener] = None, split: Optional[Split] = None,
    ) -> None:  # fmt: skip
        typed = [dict(column, dtype=KINDS[column["kind"]].dtype) for column in schema]
        super(ExampleRows, self).__init__(typed, path, stream, evener, split)

    def _chunks(
        self, defaults: Optional[Mapping[str, Any]], taken: Optional[Sequence[str]], lazy: Union[bool, str]
    ) -> Iterator[Tuple[int, Any]]:
        defaults = defaulting.checked(defaults, self._schema)
        first = 0
        mine = self._split.rows() if self._split is not None else None
        for piece in self._pieces():
            if piece is None:
                yield chunks.NOW
                continue
            columns = {}
            buffer, starts, ends = piece
            numbers: Union[int, NDArray[Any]] = first
            rows = len(starts)
            if mine is not None:
                numbers = chunks.among(mine, first, rows)
                starts, ends = starts[numbers - first], ends[numbers - first]
            first += rows
            if not len(starts):
                continue
            for name, values in decoded(buffer, starts, ends, self._schema, taken):
                if isinstance(values, chunks.Nulled):
                    values = chunks.filled(values, (defaults or {}).get(name), lazy, numbers)
                elif isinstance(values, chunks.Ragged) and lazy != chunks.KEPT:
                    values.valid = None
                columns[name] = values
            yield len(starts), columns

    def _pieces(self) -> Iterator[Any]:
        """Yield (bytes, starts, ends) of some thousand records at a time, and None before each barrier of a stream."""
        if self._stream is None:
            memory = records.read_file(self._path)
            if memory is None:
                return
            for starts, ends in records.cut(memory, self._path):
                first, last = int(starts[0]), int(ends[-1])
                yield memory[first:last], starts - first, ends - first
            return
        for count, payload in self._stream.chunks():
            if payload is None:
                yield None
                continue
            lengths = np.frombuffer(payload, np.uint32, count) if 4 * count <= len(payload) else ()
            ends = 4 * count + np.cumsum(lengths, dtype=np.int64)
            if len(lengths) != count or (count and ends[-1] != len(payload)):
                raise WireError("%d rows from the host do not lie in %d bytes" % (count, len(payload)))
            if count:
                yield payload, ends - lengths, ends


def decoded(
    buffer: Union[bytes, bytearray, memoryview],
    starts: NDArray[Any],
    ends: NDArray[Any],
    schema: List[Dict[str, Any]],
    taken: Optional[Sequence[str]] = None,
) -> Iterator[Tuple[str, Any]]:
    """Yield (name, array or Ragged or Nulled) of each column of some records.

    Args:
        buffer: bytes-like.
        starts, ends: int64, where each record begins and ends in the buffer.
        schema: as `TaskConfig.schema`.
        taken: the names of the columns to decode; None for all.
    Raises:
        WireError: the records do not have the layout described above.
    """
    octets = np.frombuffer(buffer, np.uint8)
    at = _Heads(octets, starts, ends).example()
    strings = None
    for column in schema:
        wanted = taken is None or column["name"] in taken
        there, body, size, at = _Heads(octets, at, ends).feature(column, wanted)
        if not wanted:
            continue
        if column["kind"] == "bytes":
            strings = bytes(buffer) if strings is None else strings
            values = _strings(octets, strings, body, size, column)
        else:
            values = _numbers(octets, body, size, column)
        yield column["name"], _spread(values, there, len(starts), column)
    if (at != ends).any():
        row = int(np.flatnonzero(at != ends)[0])
        raise WireError("row %d of a chunk has other features than the schema, or in another order" % row)


class _Heads(object):
    """Reads the tags and sizes before the values, in all rows at once.

    Args:
        octets: uint8, the bytes of all rows.
        at: [rows] where each row is read.
        ends: [rows] where each row ends.
    """

    def __init__(self, octets: NDArray[Any], at: NDArray[Any], ends: NDArray[Any]) -> None:
        self._octets = octets
        self._at = at
        self._ends = ends

    def example(self) -> NDArray[Any]:
        """Return where the first feature of each row begins."""
        if (self._octets[self._at[self._at < self._ends]] != 0x0A).any():
            raise WireError("a chunk of rows holds something else than Examples")
        # an Example without features may have no bytes at all
        return np.where(
            self._at < self._ends, _varint(self._octets, np.minimum(self._at + 1, len(self._octets) - 1))[1], self._at
        )

    def feature(
        self, column: Dict[str, Any], wanted: bool
    ) -> Tuple[Optional[NDArray[Any]], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Read a column's feature, which must come next in each row that has it.

        Returns:
            (the rows that have the feature, None for all; where its values begin; their size in bytes; where the next feature
            of each row begins).
        """
        key = column["name"].encode("utf-8")
        rows = np.flatnonzero(self._at < self._ends)
        at = self._at[rows]
        begin, end = self._entry(at, key)
        mine = begin >= 0
        if not mine.all():
            rows, begin, end = rows[mine], begin[mine], end[mine]
        after = end
        if len(rows) < len(self._at):
            after = self._at.copy()
            after[rows] = end
        there = None if len(rows) == len(self._at) else rows
        if not wanted or not len(rows):
            return there, begin, end - begin, after
        body, size = self._values(begin, end, column)
        return there, body, size, after

    def _entry(self, at: NDArray[Any], key: bytes) -> Tuple[NDArray[Any], NDArray[Any]]:
        """Return (where the feature in the entry begins, -1 if the entry is not named `key`; where the entry ends)."""
        if not len(at):
            return at, at
        size, inside = _varint(self._octets, at + 1)
        end = inside + size
        head = bytes(_tagged(0x0A, len(key))) + key + b"\x12"
        window = _window(self._octets, inside, len(head))
        named = (window == np.frombuffer(head, np.uint8)).all(axis=1)
        # an entry that is shorter than the head cannot match, so it counts as having another name
        return np.where(named, inside + len(head), -1), end

    def _values(self, at: NDArray[Any], end: NDArray[Any], column: Dict[str, Any]) -> Tuple[NDArray[Any], NDArray[Any]]:
        """Return (where the numbers, or the first tagged byte string, begin; their size in bytes)."""
        _, at = _varint(self._octets, at)
        if (self._octets[at] != KINDS[column["kind"]].tag).any():
            raise WireError("column %r came as a list of another kind" % column["name"])
        size, at = _varint(self._octets, at + 1)
        if column["kind"] != "bytes" and len(at):
            if (self._octets[at] != 0x0A).any():
                raise WireError("column %r came as numbers that are not packed" % column["name"])
            size, at = _varint(self._octets, at + 1)
        if ((at + size) != end).any():
            raise WireError("column %r has sizes that do not fit each other" % column["name"])
        return at, size


def _tagged(tag: int, size: int) -> Iterator[int]:
    yield tag
    while size > 0x7F:
        yield size & 0x7F | 0x80
        size >>= 7
    yield size


def _varint(octets: NDArray[Any], at: NDArray[Any]) -> Tuple[NDArray[Any], NDArray[Any]]:
    """Return the (value, end) of the varints that begin at `at`."""
    first = octets[at]
    value = (first & 0x7F).astype(np.int64)
    after = at + 1
    more = np.flatnonzero(first > 0x7F)
    shift = 7
    while len(more) and shift < 64:
        octet = octets[after[more]]
        value[more] |= (octet & 0x7F).astype(np.int64) << shift
        after[more] += 1
        more = more[octet > 0x7F]
        shift += 7
    return value, after


def _window(octets: NDArray[Any], at: NDArray[Any], size: int) -> NDArray[Any]:
    """Return [len(at), size]: the `size` bytes from each position on; zeros after the last byte of `octets`."""
    beyond = int(at.max()) + size - len(octets) if len(at) else 0
    if beyond > 0:
        octets = np.concatenate([octets, np.zeros(beyond, np.uint8)])
    every: NDArray[np.uint8] = np.ndarray((len(octets) - size + 1, size), np.uint8, octets, strides=(1, 1))
    found: NDArray[Any] = every[at]
    return found


def _gathered(octets: NDArray[Any], at: NDArray[Any], size: NDArray[Any]) -> NDArray[Any]:
    """Return the bytes of all stretches, joined end to end. Args: at: where each begins; size: its bytes."""
    if len(at) and (size == size[0]).all():
        return _window(octets, at, int(size[0])).reshape(-1)
    total = np.cumsum(size)
    whole = int(total[-1]) if len(total) else 0
    if whole >= _LONG * len(at):
        # an index with a number for each byte would take eight times the memory of the bytes
        memory = octets.data
        return np.frombuffer(bytearray().join([memory[a:b] for a, b in zip(at.tolist(), (at + size).tolist())]), np.uint8)
    inside = np.arange(whole) - np.repeat(total - size, size)
    found: NDArray[Any] = octets[np.repeat(at, size) + inside]
    return found


def _numbers(octets: NDArray[Any], at: NDArray[Any], size: NDArray[Any], column: Dict[str, Any]) -> Any:
    """Return the array of a column of numbers, or a Ragged if the number of values varies."""
    packed = _gathered(octets, at, size)
    if column["kind"] == "float":
        values, counts = packed.view("<f4"), size // 4
    else:
        values, counts = _integers(packed, size)
    if column["shape"] is None:
        return chunks.Ragged(values, counts)
    width = int(np.prod(column["shape"], dtype=np.int64))
    if (counts != width).any():
        raise WireError("column %r has rows of other than %d values" % (column["name"], width))
    return values.reshape([len(at)] + column["shape"])


def _integers(packed: NDArray[Any], size: NDArray[Any]) -> Tuple[NDArray[Any], NDArray[Any]]:
    """Return (numbers, how many each row has) of packed varints. Args: size: bytes of each row."""
    last = packed < 0x80
    width = int(last.argmax()) + 1 if len(last) else 1
    if np.count_nonzero(last) * width == len(packed) and last[width - 1 :: width].all():
        # nearly always, all of them have the same width
        return _of_one_width(packed.reshape(-1, width)), size // width
    stops = np.flatnonzero(last)
    if not len(stops):
        return np.zeros(0, np.int64), np.zeros(len(size), np.int64)
    starts = np.concatenate([[0], stops[:-1] + 1])
    before = np.searchsorted(stops, np.concatenate([[0], np.cumsum(size)]))
    return _varint(packed, starts)[0], np.diff(before)


def _of_one_width(octets: NDArray[Any]) -> NDArray[Any]:
    """Return the int64 values of varints that have one width. Args: octets: [values, width]."""
    width = octets.shape[1]
    kind = np.uint32 if width <= 4 else np.uint64
    out = np.empty(len(octets), np.uint64)
    # so few at a time that they fit the processor's cache
    for first in range(0, len(octets), _AT_ONCE):
        some = octets[first : first + _AT_ONCE]
        value: Any = (some[:, 0] & 0x7F).astype(kind)
        for i in range(1, width):
            octet: Any = (some[:, i] & 0x7F).astype(kind)
            octet <<= kind(7 * i)
            value |= octet
        out[first : first + _AT_ONCE] = value
    return out.view(np.int64)


def _strings(octets: NDArray[Any], whole: bytes, at: NDArray[Any], size: NDArray[Any], column: Dict[str, Any]) -> Any:
    """Return an object array of byte strings, or a Ragged of them. Args: whole: `octets` as bytes."""
    if column["shape"] == []:
        starts, stops = _tagged_string(octets, at)
        if (stops != at + size).any():
            raise WireError("column %r has rows of other than 1 value" % column["name"])
        return _cut(whole, starts, stops)
    rows, starts, stops = _every_string(octets, at, size)
    counts = np.bincount(rows, minlength=len(at)).astype(np.int64)
    values = _cut(whole, starts, stops)
    if column["shape"] is None:
        return chunks.Ragged(values, counts)
    if (counts != np.prod(column["shape"], dtype=np.int64)).any():
        raise WireError("column %r has rows of other than %s values" % (column["name"], column["shape"]))
    return values.reshape([len(at)] + column["shape"])


def _tagged_string(octets: NDArray[Any], at: NDArray[Any]) -> Tuple[NDArray[Any], NDArray[Any]]:
    """Return the (start, end) of the strings whose tags are at `at`."""
    size, starts = _varint(octets, at + 1)
    return starts, starts + size


def _every_string(
    octets: NDArray[Any], at: NDArray[Any], size: NDArray[Any]
) -> Tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the (row, start, end) of every string of some lists, in the order of the rows.

    It finds the first string of all rows, then the second of all rows, and so on, and sorts them at the end.
    """
    rows, ends = np.arange(len(at)), at + size
    found = [(rows[:0], rows[:0], rows[:0])]
    left = size > 0
    while left.any():
        rows, at, ends = rows[left], at[left], ends[left]
        if len(rows) < _FEW_LISTS:
            # if only few long lists are left, it is quicker to find each string by itself
            found.append(_one_by_one(octets, rows, at, ends))
            break
        starts, stops = _tagged_string(octets, at)
        if (stops > ends).any():
            raise WireError("a list of byte strings is cut short")
        found.append((rows, starts, stops))
        at, left = stops, stops < ends
    row, start, stop = (np.concatenate(parts) for parts in zip(*found))
    order = np.argsort(row, kind="stable")
    return row[order], start[order], stop[order]


def _one_by_one(
    octets: NDArray[Any], rows: NDArray[Any], at: NDArray[Any], ends: NDArray[Any]
) -> Tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the same as `_every_string`, one string after another."""
    owners: List[int] = []
    starts: List[int] = []
    stops: List[int] = []
    for row, place, end in zip(rows.tolist(), at.tolist(), ends.tolist()):
        held = octets[place:end].tobytes()
        inside = 0
        before = len(starts)
        while inside < len(held):
            size = shift = 0
            octet = 0x80
            while octet > 0x7F and inside + 1 < len(held):
                inside += 1
                octet = held[inside]
                size |= (octet & 0x7F) << shift
                shift += 7
            inside += 1
            starts.append(place + inside)
            inside += size
            stops.append(place + inside)
            if inside > len(held) or octet > 0x7F:
                raise WireError("a list of byte strings is cut short")
        owners += [row] * (len(starts) - before)
    return np.array(owners, np.int64), np.array(starts, np.int64), np.array(stops, np.int64)


def _cut(whole: bytes, starts: NDArray[Any], stops: NDArray[Any]) -> NDArray[Any]:
    out = np.empty(len(starts), dtype=object)
    out[:] = [whole[a:b] for a, b in zip(starts.tolist(), stops.tolist())]
    return out


def _spread(values: Any, there: Optional[NDArray[Any]], rows: int, column: Dict[str, Any]) -> Any:
    """Return a column of all rows from the values of the rows that have any.

    Args:
        there: the numbers of the rows that have values; None for all.
        rows: the number of all rows.
    """
    if there is None:
        return values
    if isinstance(values, chunks.Ragged):
        lengths = np.zeros(rows, np.int64)
        lengths[there] = values.lengths
        valid = np.zeros(rows, bool)
        valid[there] = True
        return chunks.Ragged(values.values, lengths, valid)
    whole = np.full((rows,) + values.shape[1:], b"" if column["kind"] == "bytes" else 0, values.dtype)
    valid = np.zeros(rows, bool)
    whole[there], valid[there] = values, True
    return chunks.Nulled(column["name"], whole, valid)
