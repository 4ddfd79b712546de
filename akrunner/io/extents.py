"""How far a table has been read, and how many rows it has, as far as that is known without reading it for that.

::

    the thread that reads    begin(file), reached(rows, of all), passed(bytes) -> Extent
    any other thread                                                              Extent -> share, rows
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

#: the sizes of at most this many files are looked up; files beyond that count as equally large
_LOOKED_UP = 10_000


class Extent:
    """How far a table has been read. It reads nothing itself: whoever reads the table says where he is.

    Args:
        rows: how many rows the table has; None: not known yet.
        paths: the files of the table, in the order in which they are read; empty: it has none.
        sizes: [files], their sizes in bytes; None: not known, and each counts as much as the others.
    Attributes:
        rows: how many rows the table has; None as long as that is not known.
    """

    def __init__(self, rows: int | None = None, paths: Sequence[str] = (), sizes: Sequence[int] | None = None) -> None:
        self.rows = rows
        self._paths = paths
        self._sizes = sizes
        self._before = [0, *accumulate(sizes if sizes is not None else [1] * len(paths))]
        self._file = -1
        self._size = 0
        self._bytes = 0
        self._share: float | None = None

    @classmethod
    def of_files(cls, paths: Sequence[str], is_local: bool) -> Extent:
        """Return the extent of a table of files. Args: is_local: whether they are files of this machine."""
        sizes = None
        if is_local and len(paths) <= _LOOKED_UP:
            try:
                sizes = [os.stat(path).st_size for path in paths]
            except OSError:
                # whoever reads the file says what is wrong with it
                sizes = None
        return cls(None, paths, sizes if sizes is not None and any(sizes) else None)

    @property
    def share(self) -> float | None:
        """Which share of its files has been read, 0 to 1; None: it has none, nobody reads them here, or their format does not tell."""
        return self._share

    def begin(self, path: str) -> None:
        """Say that one of the files is read from its beginning."""
        ahead = self._file + 1
        # a file may be named twice
        if ahead < len(self._paths) and self._paths[ahead] == path:
            self._file = ahead
        elif path in self._paths:
            self._file = self._paths.index(path)
        else:
            return
        self._size = self._sizes[self._file] if self._sizes is not None else 0
        self._bytes = 0
        self._share = None
        if self._file:
            # the files before it have been read
            self.reached(0, 1)

    def is_sized(self, size: Any) -> None:
        """Say how many bytes the file has that is read, if that is not known; anything but a number says nothing."""
        if not self._size and type(size) is int:
            self._size = size

    def passed(self, size: int) -> None:
        """Say that so many further bytes of the file were read."""
        self._bytes += size
        if self._size:
            self.reached(min(self._bytes, self._size), self._size)

    def reached(self, done: int, of: int) -> None:
        """Say how much of the file has been read: `done` of `of` rows, bytes or blocks."""
        if self._file < 0 or self._before[-1] == 0:
            return
        before, behind = self._before[self._file], self._before[self._file + 1]
        self._share = (before + (behind - before) * (done / of if of else 1.0)) / self._before[-1]

    def has_rows(self, rows: int) -> None:
        """Say how many rows the file has that is read. Of several files, nothing tells how many rows the others have."""
        if len(self._paths) == 1:
            self.rows = rows


def length(source: Any) -> int | None:
    """Return the number of rows of a table in memory, None if it is not known."""
    if isinstance(source, Mapping):
        # a mapping of arrays, which all have the same length
        return length(next(iter(source.values()), ()))
    if isinstance(source, (list, tuple)):
        return None if any(isinstance(one, (str, os.PathLike)) for one in source[:1]) else len(source)
    if isinstance(source, (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray, np.ndarray)):
        return len(source)
    # a frame or a column of pandas or polars; a lazy query that has not run yet has no shape
    known = type(source).__module__.partition(".")[0] in ("pandas", "polars")
    shape = getattr(source, "shape", None) if known else None
    return int(shape[0]) if isinstance(shape, tuple) else None
