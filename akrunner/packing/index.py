"""Files to pack, as columns: no Python object a file.

::

    directory, remote directory, list of files -> Spilled -> Index: name, size, mtime, class [, the list's other columns]
"""

from __future__ import annotations

import mmap
import os
import re
import tempfile
import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, decoded, known_numbers_of, octets_of, texts_of, truths_of
from akrunner.errors import WriteError
from akrunner.foreign import underway

#: a whole number, as it is written
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,18})\Z")

I64 = NDArray[np.int64]

#: of the columns that are ours; no table's own begin so
NAME, SIZE, MTIME, CLASS = "\x1fname", "\x1fsize", "\x1fmtime", "\x1fclass"
SPLIT, LABEL = "\x1fsplit", "\x1flabel"
#: of a list of files: which of its rows, and the path as it stands there, null where that is the name
ROW, TEXT = "\x1frow", "\x1ftext"
#: rows that are made at a time
ROWS = 65536
#: what a name may say that is how a byte is written
_LIKE_A_BYTE = re.compile(rb"\\(x[0-9a-f]{2})")


@dataclass
class Index:
    """Attributes: table: a row a file, in any order; base: the directory names are relative to, None if they are all URLs; passed_over: names
    that were not taken, and how many; listed: a table names the files; start: how many characters of each name are the directory's, of URLs."""

    table: pa.Table
    base: str | None
    passed_over: Sequence[str] = ()
    passed: int = 0
    listed: bool = False
    start: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def rows(self, places: I64) -> pa.Table:
        """Some rows, in the order of the places. (Arrow's `take` would make one piece of all columns for it.)"""
        batches = self.table.to_batches()
        starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
        order = np.argsort(places, kind="stable")
        ordered = places[order]
        cuts = np.searchsorted(ordered, starts)
        parts = [
            batch.take(array_of(ordered[a:b] - start))
            for batch, start, a, b in zip(batches, starts.tolist(), cuts[:-1].tolist(), cuts[1:].tolist())
            if b > a
        ]
        back = np.empty(len(places), np.int64)
        back[order] = np.arange(len(places))
        return pa.Table.from_batches(parts, schema=self.table.schema).combine_chunks().take(array_of(back))

    @property
    def extra(self) -> list[pa.Field]:
        """The columns of a list of files that are packed as they are."""
        return [field for field in self.table.schema if not field.name.startswith("\x1f")]


class Spilled:
    """Batches of an index -> a table whose columns lie in a file that has no name: the memory is the system's, and nothing is left of it whoever dies."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="akrunner-pack-")
        # of one that was begun, and broke
        weakref.finalize(self, self._file.close)
        self._writer: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Raises: WriteError: the disk is full."""
        with underway(WriteError, f"cannot write an index of the files to the temporary directory {tempfile.gettempdir()}"):
            if self._writer is None:
                self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), batch.schema)
            self._writer.write_batch(batch)

    def table(self, schema: pa.Schema) -> pa.Table:
        """Args: schema: of a table without rows."""
        if self._writer is None:
            self._file.close()
            return schema.empty_table()
        with underway(WriteError, f"cannot write an index of the files to the temporary directory {tempfile.gettempdir()}"):
            self._writer.close()
            self._file.flush()
            mapped = mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ)
        self._file.close()
        return pa.ipc.open_stream(pa.BufferReader(pa.py_buffer(mapped))).read_all()


class Gathered:
    """Rows that come one by one -> columns, some thousands at a time."""

    def __init__(self) -> None:
        self._names: list[bytes] = []
        self._sizes: list[int] = []
        self._times: list[int] = []
        self._spilled = Spilled()

    def add(self, name: bytes, size: int, mtime: int) -> None:
        self.more([name], [size], [mtime])

    def more(self, names: list[bytes], sizes: list[int], mtimes: list[int]) -> None:
        """Several rows."""
        self._names += names
        self._sizes += sizes
        self._times += mtimes
        if len(self._names) >= ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._names:
            self._spilled.add(batch_of(self._names, np.array(self._sizes, np.int64), np.array(self._times, np.int64)))
            self._names, self._sizes, self._times = [], [], []

    def table(self) -> pa.Table:
        """All rows, as they came."""
        self._flush()
        return self._spilled.table(_SCHEMA)


_SCHEMA = pa.schema([(NAME, pa.large_binary()), (SIZE, pa.int64()), (MTIME, pa.int64())])


def batch_of(names: list[bytes], sizes: I64, times: I64) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([octets_of(names, pa.large_binary()), array_of(sizes), array_of(times)], schema=_SCHEMA)


def text_of(names: Any) -> pa.Array:
    """Names as text; bytes that are no UTF-8 are written as \\xNN, and the backslash of a name that says that itself as \\x5c."""
    if isinstance(names, pa.ChunkedArray):
        names = names.combine_chunks() if names.num_chunks else octets_of([], names.type)
    try:
        text = names.cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        escaped = (_LIKE_A_BYTE.sub(rb"\\x5c\1", name) for name in names.to_pylist())
        return texts_of([name.decode("utf-8", "backslashreplace") for name in escaped])
    if pc.any(pc.match_substring(text, "\\x")).as_py():
        text = pc.replace_substring_regex(text, _LIKE_A_BYTE.pattern.decode(), r"\\x5c\1")
    return text


def plain_names(names: Any, base: str | None) -> Any:
    """Names by which files are told apart: x, ./x, .//x, y/../x and the whole path of x are the same."""
    if base is None:
        return names
    # binaries: a name may be no text
    whole = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    below = os.fsencode(base).rstrip(b"/") + b"/"
    odd = pc.or_(pc.match_substring_regex(whole, rb"(?s)\A/|\A\./|/\.?/|(\A|/)\.\./"), pc.invert(pc.is_valid(whole)))
    if not truths(odd).any():
        return whole
    plain = [
        _plain(one, below) if is_odd and one and b"://" not in one[:16] else one
        for one, is_odd in zip(whole.to_pylist(), truths(odd).tolist())
    ]
    return octets_of(plain, whole.type)


def _plain(name: bytes, below: bytes) -> bytes:
    if b".." in name.split(b"/") and b"\0" not in name:
        # behind a link it leads elsewhere than its name says
        real = os.path.realpath(os.path.join(below, name))
        return real.removeprefix(os.path.realpath(below).rstrip(b"/") + b"/")
    start = b"/" if name.startswith(b"/") else b""
    plain = start + b"/".join(part for part in name.split(b"/") if part not in (b"", b"."))
    return plain.removeprefix(below)


def released() -> None:
    """The memory that Arrow keeps of what is no longer there is the system's again: of a million names it is more than what is left of them."""
    pa.default_memory_pool().release_unused()


def numbers(column: Any) -> I64:
    """A whole column of integers, 0 for a null."""
    parts = [known_numbers_of(chunk) for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
    whole: I64 = np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64, copy=False)
    return whole


def truths(column: Any) -> NDArray[np.bool_]:
    """A whole column of booleans without nulls."""
    parts = [truths_of(chunk) for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
    return np.concatenate([np.zeros(0, np.bool_), *parts])


def class_names(values: Any) -> list[Any]:
    """The different classes of a column, `in_order`. A null is none, nor is an empty text."""
    return in_order([one for one in pc.unique(values).to_pylist() if one not in (None, "")])


def in_order(names: Collection[Any]) -> list[Any]:
    """Classes, sorted: numbers by their size, also where all are texts of whole numbers, so that 10 comes behind 9; other texts by their characters."""
    whole = all(isinstance(one, str) and _WHOLE.match(one) for one in names)
    return sorted(names, key=int if whole else None)


def numbered(values: Any, labels: list[str]) -> I64:
    """[rows] The number of each class in `labels`, -1 for a null."""
    found = pc.index_in(plain_text(values), value_set=texts_of(labels))
    return np.where(truths(found.is_valid()), numbers(found), -1)


def plain_text(values: Any) -> Any:
    """Classes as texts."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return decoded(values).cast(pa.string())


@dataclass(frozen=True)
class Difference:
    """A listing against what was packed. Attributes: new: [rows] which are new; broken: [rows] which were left out as broken, and are as they were; changed,
    gone: how many of the packed ones are so; some: names of these."""

    new: NDArray[np.bool_]
    broken: NDArray[np.bool_]
    changed: int
    gone: int
    some: dict[str, list[str]]


def difference(listed: pa.Table, packed: pa.Table, bad: pa.Array, unfetched: pa.Array | None = None) -> Difference:
    """Args: bad: names of `packed` that were left out as broken: one that has changed since is new; unfetched: that could not be fetched, None: all could."""
    where = pc.index_in(listed.column(NAME), value_set=packed.column(NAME).combine_chunks())
    known = truths(pc.is_valid(where))
    rows = numbers(where)
    changed = np.zeros(len(listed), np.bool_)
    for name in (SIZE, MTIME):
        before = numbers(packed.column(name))
        if len(before):
            changed |= known & (before[rows] != numbers(listed.column(name)))
    left_out = truths(pc.is_in(listed.column(NAME), value_set=bad))
    mended = left_out & changed
    never = [bad] if unfetched is None else [bad, unfetched]
    for names in never:
        changed &= ~truths(pc.is_in(listed.column(NAME), value_set=names))
    # what was left out was not packed, so nobody misses it
    there = truths(pc.is_in(packed.column(NAME), value_set=listed.column(NAME).combine_chunks()))
    for names in never:
        there |= truths(pc.is_in(packed.column(NAME), value_set=names))
    # several parts have the name of a file that was left out, and mended
    gone = pc.unique(packed.column(NAME).filter(array_of(~there)))
    few = {
        "changed": text_of(listed.column(NAME).filter(array_of(changed))[:3]).to_pylist(),
        "gone": text_of(gone[:3]).to_pylist(),
    }
    return Difference(~known | mended, known & left_out & ~mended, int(changed.sum()), len(gone), few)
