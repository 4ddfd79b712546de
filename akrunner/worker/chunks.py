"""Rows that arrive as columns: unpacks the payload of a chunk to {column: array}, and cuts and joins chunks into batches.

::

    payload (akrunner.wire.column_layout) -> (rows, {column: array [rows, ...] or Ragged}) -> batches of the size asked for
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from akrunner.wire import column_layout as layout
from akrunner.wire.frames import WireError
from akrunner.worker import objects

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: the values of `nulls=`, which says what a script gets for nulls that have no default
NULLS = ("error", "none", "mask")
#: the value of `lazy` by which `filled` keeps nulls
KEPT = "kept"
#: the length that precedes each chunk in a file
LENGTH = struct.Struct("<Q")
#: marks a point among chunks: the rows before it must not wait for rows after it
NOW = (0, None)
#: about how many rows are handed to `tf.data` at a time
ROWS_AT_ONCE = 8192


class Ragged(object):
    """A column of lists whose length varies from row to row.

    Attributes:
        values: the values of all rows, end to end.
        lengths: [rows] int64, the number of values of each row.
        valid: [rows] bool, whether a row is a list and not a null; None if no row is null, or if nulls are not kept.
    """

    def __init__(self, values: NDArray[Any], lengths: NDArray[Any], valid: Optional[NDArray[Any]] = None) -> None:
        self.values = values
        self.lengths = lengths
        self.valid = valid

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, part: slice) -> Ragged:
        first = int(self.lengths[: part.start].sum())
        lengths = self.lengths[part]
        return Ragged(
            self.values[first : first + int(lengths.sum())], lengths, None if self.valid is None else self.valid[part]
        )

    @classmethod
    def joined(cls, parts: Sequence[Ragged]) -> Ragged:
        valid = None
        if any(p.valid is not None for p in parts):
            valid = np.concatenate([np.ones(len(p), bool) if p.valid is None else p.valid for p in parts])
        return cls(np.concatenate([p.values for p in parts]), np.concatenate([p.lengths for p in parts]), valid)

    def take(self, rows: NDArray[Any]) -> Ragged:
        """Return the rows with these numbers, in that order."""
        ends = np.cumsum(self.lengths)
        lengths = self.lengths[rows]
        starts = np.repeat((ends - self.lengths)[rows], lengths)
        inside = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Ragged(self.values[starts + inside], lengths, None if self.valid is None else self.valid[rows])

    def rows(self) -> NDArray[Any]:
        """Return an object array with one array for each row, and None for a null."""
        out = np.empty(len(self), dtype=object)
        ends = np.cumsum(self.lengths)
        # numpy would take a list of arrays of one length for a matrix, so they are assigned one by one
        for i, (start, end) in enumerate(zip((ends - self.lengths).tolist(), ends.tolist())):
            out[i] = self.values[start:end]
        if self.valid is not None:
            out[~self.valid] = None
        return out


class Nulled(object):
    """A column that has nulls and no default for them: to take its array is an error, and only then.

    Attributes:
        name: the column's name.
        values: [rows, ...]; the value of a null row is undefined.
        valid: [rows] bool, whether a row has a value.
    """

    def __init__(self, name: str, values: NDArray[Any], valid: NDArray[Any]) -> None:
        self.name = name
        self.values = values
        self.valid = valid

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, part: Any) -> Nulled:
        return Nulled(self.name, self.values[part], self.valid[part])

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray[Any]:
        return self.array()

    @classmethod
    def joined(cls, parts: Sequence[Any]) -> Nulled:
        name = next(part.name for part in parts if isinstance(part, cls))
        parts = [part if isinstance(part, cls) else cls(name, part, np.ones(len(part), bool)) for part in parts]
        return cls(name, np.concatenate([p.values for p in parts]), np.concatenate([p.valid for p in parts]))

    def take(self, rows: NDArray[Any]) -> Nulled:
        """Return the rows with these numbers, in that order."""
        return self[rows]

    def array(self, first: Union[int, NDArray[Any], None] = None) -> NDArray[Any]:
        """Return the values.

        Args:
            first: for the error: the number of the first row in the task, or an array of each row's number; None if the rows
                are a batch, whose rows are counted from its start.
        Raises:
            ValueError: one of the rows is null.
        """
        if self.valid.all():
            return self.values
        row = int(np.flatnonzero(~self.valid)[0])
        where = "row %d of the batch" % row
        if first is not None:
            where = "row %d of this task's" % (first[row] if isinstance(first, np.ndarray) else first + row)
        dtype = "string" if self.values.dtype.kind == "O" else self.values.dtype.name
        raise ValueError(
            "column %r has a null in %s, and %s has no value for it: give batches() or dataset() defaults={%r: ...}, or "
            "columns=[...] without it where the script does not need it; batches(nulls='none') or 'mask' keeps nulls; or "
            "COALESCE in select= (--select) gives them a value" % (self.name, where, dtype, self.name)
        )


class Batch(Dict[str, Any]):
    """A dict {column: array} in which taking a column raises a ValueError if it has nulls and no default for them.

    Attributes: rows: the number of rows.
    """

    rows = 0

    def __getitem__(self, name: str) -> Any:
        value = dict.__getitem__(self, name)
        return value.array() if isinstance(value, Nulled) else value

    def __iter__(self) -> Iterator[str]:
        # because of this method, dict(batch) and **batch call __getitem__
        return iter(list(self.keys()))

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def values(self) -> Any:
        return [self[name] for name in self]

    def items(self) -> Any:
        return [(name, self[name]) for name in self]

    def pop(self, name: str, *default: Any) -> Any:
        value = dict.pop(self, name, *default)
        return value.array() if isinstance(value, Nulled) else value

    def copy(self) -> Batch:
        other = Batch(self.plain())
        other.rows = self.rows
        return other

    def plain(self) -> Dict[str, Any]:
        """Return a plain dict of the columns without checking them: a column with nulls stays a `Nulled`."""
        return {name: dict.__getitem__(self, name) for name in self.keys()}


def with_nulls(columns: Dict[str, Any], nulls: str) -> Dict[str, Any]:
    """Return {column: array} for a script that asked for nulls.

    Args:
        columns: {column: array, Ragged or Nulled}.
        nulls: "none": a column with nulls in this batch becomes an object array with None for each null; "mask": every column
            becomes a masked array. In both cases a column of lists whose length varies becomes an object array.
    """
    out = {}
    for name, values in columns.items():
        if isinstance(values, Ragged):
            values = values.rows()
        elif nulls == "mask":
            # all values of a null row are masked
            whole = values.values if isinstance(values, Nulled) else values
            mask = np.zeros(whole.shape, bool)
            if isinstance(values, Nulled):
                mask[~values.valid] = True
            values = np.ma.MaskedArray(whole, mask)
        elif isinstance(values, Nulled):
            values = _with_none(values)
        out[name] = values
    return out


def _with_none(nulled: Nulled) -> NDArray[Any]:
    """Return an object array with None for each null; if a row has several values, each element is an array."""
    if nulled.valid.all():
        return nulled.values
    if nulled.values.ndim == 1:
        # the array keeps the type that the numbers had, for `write_batch`
        out: NDArray[Any] = objects.empty(len(nulled), objects.named(nulled.values.dtype.name))
        out[:] = nulled.values
    else:
        out = np.empty(len(nulled), dtype=object)
        for row in np.flatnonzero(nulled.valid).tolist():
            out[row] = nulled.values[row]
    out[~nulled.valid] = None
    return out


def check_nulls(nulls: str) -> str:
    """Return `nulls`. Raises: ValueError: it is not one of `NULLS`."""
    if nulls not in NULLS:
        raise ValueError("nulls=%.100r: give one of %s" % (nulls, ", ".join(map(repr, NULLS))))
    return nulls


def given(columns: Dict[str, Any]) -> Dict[str, Any]:
    """Return a batch as the script gets it: {column: array}. Args: columns: {column: array, Ragged or Nulled}."""
    out = {}
    rows = None
    for name, values in columns.items():
        if isinstance(values, Ragged):
            values = values.rows()
        elif isinstance(values, Nulled):
            rows = len(values)
            values = values.values if values.valid.all() else values
        out[name] = values
    if rows is None:
        return out
    batch = Batch(out)
    batch.rows = rows
    return batch


def read_file(path: str) -> Iterator[memoryview]:
    """Yield the payloads of a file of chunks, as views of the mapped file; writing to them does not change the file."""
    size = os.path.getsize(path)
    if not size:
        return
    with open(path, "rb") as f:
        memory = memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY))
    at = 0
    while at < size:
        length = LENGTH.unpack(memory[at : at + LENGTH.size])[0] if at + LENGTH.size <= size else size
        at += LENGTH.size
        if at + length > size:
            raise WireError("%s is cut short at byte %d of %d" % (path, at, size))
        yield memory[at : at + length]
        at += length


def unpack(
    payload: Union[bytes, bytearray, memoryview], schema: List[Dict[str, Any]], defaults: Optional[Mapping[str, Any]] = None,
    taken: Optional[Sequence[str]] = None, lazy: Union[bool, str] = False, first: int = 0,
) -> Tuple[int, Dict[str, Any]]:  # fmt: skip
    """Return a chunk's (rows, {column: array, Ragged or, if `lazy`, Nulled}).

    Args:
        payload: the chunk.
        schema: list of dicts, as `TaskConfig.schema`.
        defaults: column -> its value for nulls. Without one a null float becomes NaN.
        taken: the names of the columns to unpack; None for all.
        lazy: whether a column other than floats that has nulls and no default becomes a `Nulled`; KEPT: the nulls of floats and
            of lists are kept as well.
        first: the number of the chunk's first row in the task, for errors.
    Raises:
        ValueError: such a column has a null, and `lazy` is false.
        WireError: the payload does not follow the protocol.
    """
    described = {column["name"]: column for column in schema}
    rows, packed = layout.unpack(payload, described)
    columns = {}
    #: columns with nulls that nothing takes the place of, and what is said of each
    wrong: List[Tuple[str, ValueError]] = []
    for header, buffers in packed:
        name = header["name"]
        if taken is not None and name not in taken:
            continue
        valid = None
        if header.get("nulls"):
            valid = np.frombuffer(buffers[-1], np.uint8).astype(bool)
            buffers = buffers[:-1]
        default = (defaults or {}).get(name)
        values = _values(header, buffers, described[name])
        if valid is not None and not isinstance(values, Ragged):
            try:
                values = filled(Nulled(name, values, valid), default, lazy, first)
            except ValueError as e:
                wrong.append((name, e))
                continue
        elif valid is not None and lazy == KEPT:
            values.valid = valid
        columns[name] = values
    if wrong:
        # all of them at once, so that nobody meets one with each run
        others = ", ".join(repr(name) for name, _ in wrong[1:21]) + (" and more" if len(wrong) > 21 else "")
        raise ValueError(str(wrong[0][1]) + ("; the same holds for %s" % others if others else ""))
    return rows, columns


def masked(
    payload: Union[bytes, bytearray, memoryview], schema: Iterable[Dict[str, Any]]
) -> Tuple[int, Dict[str, Tuple[Any, Any]]]:
    """Return a chunk's (rows, {column: (array, valid)}); `valid` is [rows] bool, or None if no row is null.

    Args:
        payload: the chunk.
        schema: as for `unpack`; each of its columns has one value a row.
    Raises:
        WireError: the payload does not follow the protocol.
    """
    described = {column["name"]: column for column in schema}
    rows, packed = layout.unpack(payload, described)
    columns = {}
    for header, buffers in packed:
        valid = np.frombuffer(buffers[-1], np.uint8).astype(bool) if header.get("nulls") else None
        columns[header["name"]] = (_values(header, buffers, described[header["name"]]), valid)
    return rows, columns


def _values(header: Dict[str, Any], buffers: Sequence[Any], column: Dict[str, Any]) -> Any:
    """Return a column's array or Ragged; the value of a null row is undefined."""
    name, shape = header["name"], column["shape"]
    text = column["dtype"] == "bytes"
    varies = shape is None or (text and shape)
    if header["dtype"] != column["dtype"] or header["shape"][1:] != ([None] if varies else shape):
        raise WireError("column %r came as %s %s, not as the schema says" % (name, header["dtype"], header["shape"]))
    if header["form"] == "numbers":
        return np.frombuffer(buffers[0], header["dtype"]).reshape(header["shape"])
    if header["form"] == "ragged":
        values = np.frombuffer(buffers[1], header["dtype"])
        return Ragged(values, np.diff(_offsets(buffers[0], len(values), name)))
    blobs = _blobs(_offsets(buffers[0], len(buffers[1]), name), buffers[1])
    if not varies:
        return blobs
    ragged = Ragged(blobs, np.diff(_offsets(buffers[2], len(blobs), name)))
    if shape is None:
        return ragged
    # a null row has no values, so empty strings take their place
    width = int(np.prod(shape, dtype=np.int64))
    whole = np.full((len(ragged), width), b"", dtype=object)
    there = ragged.lengths == width
    if not (there | (ragged.lengths == 0)).all():
        raise WireError("column %r has rows of other than %d values" % (name, width))
    if width:
        whole[there] = blobs.reshape(-1, width)
    return whole.reshape([len(ragged)] + shape)


def _offsets(buffer: Any, size: int, name: str) -> NDArray[Any]:
    offsets = np.frombuffer(buffer, np.int64)
    layout.check_offsets(offsets, size, name)
    return offsets


def _blobs(offsets: NDArray[Any], data: Any) -> NDArray[Any]:
    """Return an object array of byte strings."""
    cuts = offsets.tolist()
    data = bytes(data)
    out = np.empty(len(cuts) - 1, dtype=object)
    out[:] = [data[a:b] for a, b in zip(cuts, cuts[1:])]
    return out


def filled(nulled: Nulled, default: Any, lazy: Union[bool, str], first: Union[int, NDArray[Any]]) -> Any:
    """Return a column with its nulls replaced, or a `Nulled`.

    Args:
        nulled: the column.
        default: the value for nulls; None: NaN in a column of floats, and an error in another.
        lazy: whether a `Nulled` is returned in place of that error; KEPT: also for floats.
        first: as for `Nulled.array`.
    """
    if default is None and lazy == KEPT:
        return nulled
    if default is None:
        if nulled.values.dtype.kind != "f":
            return nulled if lazy else nulled.array(first)
        default = np.nan
    if isinstance(default, str):
        default = default.encode("utf-8")
    values = nulled.values.copy()
    values[~nulled.valid] = default
    return values


def among(mine: NDArray[Any], first: int, rows: int) -> NDArray[Any]:
    """Return the row numbers in `mine` that lie in a chunk.

    Args:
        mine: row numbers, ascending.
        first: the number of the chunk's first row.
        rows: the chunk's rows.
    """
    start, stop = mine.searchsorted([first, first + rows])
    return mine[start:stop]


def picked(columns: Dict[str, Any], numbers: NDArray[Any], first: int, lazy: Union[bool, str]) -> Dict[str, Any]:
    """Return some rows of every column of a chunk.

    Args:
        columns: the chunk's columns, unpacked lazily.
        numbers: the rows' numbers in the task.
        first: the number of the chunk's first row in the task.
        lazy: as for `unpack`.
    """
    out = taken(columns, numbers - first)
    if not lazy:
        out = {name: value.array(numbers) if isinstance(value, Nulled) else value for name, value in out.items()}
    return out


def first(chunks: Iterable[Tuple[int, Any]], limit: int) -> Iterator[Tuple[int, Any]]:
    """Yield chunks up to `limit` rows in all."""
    for rows, columns in chunks:
        if limit <= 0:
            return
        yield min(rows, limit), columns if rows <= limit else cut(columns, 0, limit)
        limit -= rows


def rest(chunks: Iterable[Tuple[int, Any]], left_out: int) -> Iterator[Tuple[int, Any]]:
    """Yield chunks without their first `left_out` rows."""
    for rows, columns in chunks:
        if left_out < rows:
            yield rows - left_out, cut(columns, left_out, rows) if left_out else columns
        left_out = max(0, left_out - rows)


def rebatched(chunks: Iterable[Tuple[int, Any]], batch_size: int, drop_remainder: bool = False) -> Iterator[Dict[str, Any]]:
    """Yield batches of `batch_size` rows from chunks (rows, columns).

    The last batch, and the one before a `NOW`, may have fewer rows. With `drop_remainder` none has: rows before a `NOW` wait
    for more, and rows left over at the end are dropped.
    """
    held: List[Dict[str, Any]] = []
    held_rows = 0
    for rows, columns in chunks:
        if columns is None:
            if held_rows and not drop_remainder:
                yield joined(held)
                held, held_rows = [], 0
            continue
        at = 0
        if held_rows:
            at = min(rows, batch_size - held_rows)
            held.append(cut(columns, 0, at))
            held_rows += at
            if held_rows < batch_size:
                continue
            yield joined(held)
            held, held_rows = [], 0
        while rows - at >= batch_size:
            yield cut(columns, at, at + batch_size)
            at += batch_size
        if at < rows:
            held, held_rows = [cut(columns, at, rows)], rows - at
    if held_rows and not drop_remainder:
        yield joined(held)


def stacks(rows: Iterable[Tuple[int, Any]], batch_size: int, drop_remainder: bool, at_once: int) -> Iterator[Dict[str, Any]]:
    """Yield stacks of batches, {column: [batches, batch_size, ...]}, of at least `at_once` rows each.

    Before a `NOW` and at the end, the rows that are there are yielded, the last of them as one short batch (not with
    `drop_remainder`).

    Args:
        rows: chunks (rows, columns) without ragged columns.
    """
    held, count = [], 0
    for more, columns in itertools.chain(rows, [NOW]):
        if columns is not None:
            held.append(columns)
            count += more
        now = columns is None
        if not count or (count < max(at_once, batch_size) and not now):
            continue
        some = joined(held)
        rest = count % batch_size
        whole = count - rest
        if whole:
            yield _stacked(cut(some, 0, whole), batch_size)
        held, count = ([cut(some, whole, count)], rest) if rest else ([], 0)
        if now and rest and not drop_remainder:
            yield _stacked(held[0], rest)
            held, count = [], 0


def _stacked(columns: Dict[str, Any], batch_size: int) -> Dict[str, Any]:
    return {name: v.reshape((-1, batch_size) + v.shape[1:]) for name, v in columns.items()}


def shuffled(chunks: Iterable[Tuple[int, Any]], buffer_rows: int, seed: Optional[int]) -> Iterator[Tuple[int, Any]]:
    """Yield the rows in a random order: a row moves forward by at most about 2 x `buffer_rows`, but may come much later."""
    random = np.random.RandomState(seed)
    held, held_rows = [], 0
    for rows, columns in chunks:
        held.append(columns)
        held_rows += rows
        if held_rows >= 2 * buffer_rows:
            mixed = _permuted(joined(held), held_rows, random)
            out = held_rows - buffer_rows
            yield out, cut(mixed, 0, out)
            held, held_rows = [cut(mixed, out, held_rows)], buffer_rows
    if held_rows:
        yield held_rows, _permuted(joined(held), held_rows, random)


def cut(columns: Dict[str, Any], start: int, stop: int) -> Dict[str, Any]:
    """Return rows `start` to `stop` of every column, without a copy."""
    part = slice(start, stop)
    return {name: values[part] for name, values in columns.items()}


def joined(parts: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Return several {column: values} joined into one."""
    if len(parts) == 1:
        return parts[0]
    out: Dict[str, Any] = {}
    for name, first in parts[0].items():
        values = [part[name] for part in parts]
        if isinstance(first, Ragged):
            out[name] = Ragged.joined(values)
        elif any(isinstance(value, Nulled) for value in values):
            out[name] = Nulled.joined(values)
        else:
            out[name] = np.concatenate(values)
    return out


def _permuted(columns: Dict[str, Any], rows: int, random: Any) -> Dict[str, Any]:
    return taken(columns, random.permutation(rows))


def taken(columns: Dict[str, Any], rows: NDArray[Any]) -> Dict[str, Any]:
    """Return the rows with these numbers of every column, in that order."""
    return {
        name: values.take(rows) if isinstance(values, (Ragged, Nulled)) else values[rows] for name, values in columns.items()
    }
