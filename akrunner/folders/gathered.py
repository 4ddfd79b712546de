"""The listing of a directory's files: a table with a row for each file, so that no Python object is needed for each."""

from __future__ import annotations

import contextlib
import mmap
import re
import tempfile
import weakref
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, known_numbers_of, octets_of, texts_of, truths_of
from akrunner.errors import WriteError
from akrunner.foreign import underway

I64 = NDArray[np.int64]

#: names of the columns of a listing; no column of the user's begins like these
NAME, SIZE, MTIME = "\x1fname", "\x1fsize", "\x1fmtime"
#: how many rows are made at a time
ROWS = 65536
#: how many bytes of batches wait to be joined
_MOST_HELD = 64 << 20
#: most bytes of a file, as an Example has less than 2 GiB
MOST_BYTES = (1 << 31) - (1 << 20)
#: matches text in a name that looks like the escape of a byte
_LIKE_A_BYTE = re.compile(rb"\\(x[0-9a-f]{2})")


class Spilled:
    """Gathers batches of an index into a table whose columns are in a file without a name.

    The system can take the memory back, and nothing of the file is left if the process dies. Small batches are joined before
    they are written: the time to read rows in a random order grows with the number of batches.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="akrunner-files-")
        # closes the file if `table` is never called because of an error
        weakref.finalize(self, _closed, self._file)
        self._writer: Any = None
        self._held: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch. Raises: WriteError: it cannot be written, for example because the disk is full."""
        self._held.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROWS or self._bytes >= _MOST_HELD:
            self._flush()

    def _flush(self) -> None:
        if not self._held:
            return
        with underway(WriteError, f"cannot write an index of the files to the temporary directory {tempfile.gettempdir()}"):
            if self._writer is None:
                self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), self._held[0].schema)
            for batch in _joined(self._held):
                self._writer.write_batch(batch)
        self._held, self._rows, self._bytes = [], 0, 0

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return the table of all batches. Args: schema: schema of the table if there are none. Raises: WriteError."""
        self._flush()
        if self._writer is None:
            self._file.close()
            return schema.empty_table()
        with underway(WriteError, f"cannot write an index of the files to the temporary directory {tempfile.gettempdir()}"):
            self._writer.close()
            self._file.flush()
            mapped = mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ)
        self._file.close()
        return pa.ipc.open_stream(pa.BufferReader(pa.py_buffer(mapped))).read_all()


def _closed(file: Any) -> None:
    # what is still in its buffer is needed no more, and may not fit on the disk
    with contextlib.suppress(OSError):
        file.close()


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the rows of batches as one batch if possible."""
    if len(batches) == 1:
        return batches
    joined = pa.Table.from_batches(batches)
    try:
        joined = joined.combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # dictionaries that do not fit into one: the batches are written as they are
        pass
    return cast("list[pa.RecordBatch]", joined.to_batches())


class Gathered:
    """Gathers the rows of an index that come one by one, and makes columns of some thousands at a time."""

    def __init__(self) -> None:
        self._names: list[bytes] = []
        self._sizes: list[int] = []
        self._times: list[int] = []
        self._spilled = Spilled()

    def add(self, name: bytes, size: int, mtime: int) -> None:
        self.more([name], [size], [mtime])

    def more(self, names: list[bytes], sizes: list[int], mtimes: list[int]) -> None:
        """Add several rows."""
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
        """Return all rows, in the order in which they were added."""
        self._flush()
        return self._spilled.table(_SCHEMA)


_SCHEMA = pa.schema([(NAME, pa.large_binary()), (SIZE, pa.int64()), (MTIME, pa.int64())])


def batch_of(names: list[bytes], sizes: I64, times: I64) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([octets_of(names, pa.large_binary()), array_of(sizes), array_of(times)], schema=_SCHEMA)


def text_of(names: Any) -> pa.Array:
    """Return names as text.

    Bytes that are not UTF-8 are written as \\xNN; the backslash of a name that contains such text itself is written as \\x5c.
    """
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


def released() -> None:
    """Give memory that Arrow has freed but still holds back to the system.

    After a million names were handled, it is more than the index takes.
    """
    pa.default_memory_pool().release_unused()


def numbers(column: Any) -> I64:
    """Return a column of integers as one numpy array, with 0 for nulls."""
    parts = [known_numbers_of(chunk) for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
    whole: I64 = np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64, copy=False)
    return whole


def truths(column: Any) -> NDArray[np.bool_]:
    """Return a column of booleans without nulls as one numpy array."""
    parts = [truths_of(chunk) for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
    return np.concatenate([np.zeros(0, np.bool_), *parts])
