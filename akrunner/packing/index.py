"""The index of the files to pack: a table with a row for each file, so that no Python object is needed for each.

::

    directory, remote directory, list of files -> Spilled -> Index: name, size, mtime, class [, the list's other columns]
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, decoded, octets_of, texts_of
from akrunner.folders.gathered import I64, MTIME, NAME, SIZE, numbers, text_of, truths

#: matches the usual text of a whole number
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,18})\Z")


#: names of columns that packing adds; no column of the user's begins like these
CLASS, SPLIT, LABEL = "\x1fclass", "\x1fsplit", "\x1flabel"
#: columns for files from a list: number of the row in the list, and the path as it stands there (null if it equals the name)
ROW, TEXT = "\x1frow", "\x1ftext"


@dataclass
class Index:
    """The files to pack.

    Attributes:
        table: a row for each file, in any order.
        base: the directory that names are relative to; None: all names are URLs.
        passed_over: names of the first files of the directory that are not packed.
        passed: how many files of the directory are not packed.
        listed: whether the files are named by a list.
        start: for URLs in a directory, how many characters of each name belong to the directory; else 0.
    """

    table: pa.Table
    base: str | None
    passed_over: Sequence[str] = ()
    passed: int = 0
    listed: bool = False
    start: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def rows(self, places: NDArray[np.integer[Any]]) -> pa.Table:
        """Return some rows, in the order of `places`. Arrow's `take` would first copy all columns into one piece."""
        order = np.argsort(places, kind="stable")
        back = np.empty(len(places), np.int64)
        back[order] = np.arange(len(places))
        # one column after the other: each is copied twice on its way
        columns = [_taken(column, places[order]).take(array_of(back)) for column in self.table.columns]
        return pa.Table.from_arrays(columns, schema=self.table.schema)

    @property
    def extra(self) -> list[pa.Field]:
        """The other columns of a list of files, which are packed as they are."""
        return [field for field in self.table.schema if not field.name.startswith("\x1f")]


def _taken(column: pa.ChunkedArray, rows: NDArray[np.integer[Any]]) -> pa.Array:
    """Return some rows of a column. Args: rows: their numbers, ascending."""
    starts = np.cumsum([0, *map(len, column.chunks)])
    cuts = np.searchsorted(rows, starts)
    parts = [
        chunk.take(array_of(rows[a:b] - start))
        for chunk, start, a, b in zip(column.chunks, starts.tolist(), cuts[:-1].tolist(), cuts[1:].tolist())
        if b > a
    ]
    return pa.chunked_array(parts, column.type).combine_chunks()


def plain_names(names: Any, base: str | None) -> Any:
    """Return names by which files are told apart: x, ./x, .//x, y/../x and the absolute path of x become the same name.

    Args: base: the directory that names are relative to; None: all names are URLs, which are returned as they are.
    """
    if base is None:
        return names
    # matched as bytes, as a name may not be text
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
        # resolve links: ".." behind a link leads elsewhere than the name says
        real = os.path.realpath(os.path.join(below, name))
        return real.removeprefix(os.path.realpath(below).rstrip(b"/") + b"/")
    start = b"/" if name.startswith(b"/") else b""
    plain = start + b"/".join(part for part in name.split(b"/") if part not in (b"", b"."))
    return plain.removeprefix(below)


def class_names(values: Any) -> list[Any]:
    """Return the distinct classes of a column, sorted as by `in_order`. Nulls and empty texts are no classes."""
    return in_order([one for one in pc.unique(values).to_pylist() if one not in (None, "")])


def in_order(names: Collection[Any]) -> list[Any]:
    """Return classes, sorted.

    Numbers are sorted by value, and so are texts if all are whole numbers (10 comes after 9); other texts by their characters.
    """
    whole = all(isinstance(one, str) and _WHOLE.match(one) for one in names)
    return sorted(names, key=int if whole else None)


def numbered(values: Any, labels: list[str]) -> I64:
    """Return the index of each class in `labels`; -1: it is null or not in them [rows]."""
    found = pc.index_in(plain_text(values), value_set=texts_of(labels))
    return np.where(truths(found.is_valid()), numbers(found), -1)


def plain_text(values: Any) -> Any:
    """Return a column of classes as texts."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return decoded(values).cast(pa.string())


@dataclass(frozen=True)
class Difference:
    """How the files of a listing differ from those that are packed.

    Attributes:
        new: which files of the listing are new [rows].
        broken: which files were left out as broken, and are as they were [rows].
        changed: how many packed files have changed.
        gone: how many packed files are not in the listing.
        some: "changed" and "gone" -> the names of some of these files.
    """

    new: NDArray[np.bool_]
    broken: NDArray[np.bool_]
    changed: int
    gone: int
    some: dict[str, list[str]]


def difference(listed: pa.Table, packed: pa.Table, bad: pa.Array, unfetched: pa.Array | None = None) -> Difference:
    """Compare a listing with the files that earlier runs listed.

    Args:
        listed: the files now.
        packed: the files that earlier runs listed.
        bad: names of those that were left out as broken; one that has changed since counts as new.
        unfetched: names of those that could not be fetched; None: there are none.
    """
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
    # a file that was left out was not packed, so it does not count as gone
    there = truths(pc.is_in(packed.column(NAME), value_set=listed.column(NAME).combine_chunks()))
    for names in never:
        there |= truths(pc.is_in(packed.column(NAME), value_set=names))
    # a file that was left out and mended is in several parts, so count distinct names
    gone = pc.unique(packed.column(NAME).filter(array_of(~there)))
    few = {
        "changed": text_of(listed.column(NAME).filter(array_of(changed))[:3]).to_pylist(),
        "gone": text_of(gone[:3]).to_pylist(),
    }
    return Difference(~known | mended, known & left_out & ~mended, int(changed.sum()), len(gone), few)
