"""One state of a local table, read by any number of threads.

::

    opening     under the lock, so that no process puts a table in place: every file is opened or, if there are many, linked
                into a directory of this reading's own
    reading     row counts come from the footers; a range reads only the row groups it overlaps, and only the columns that
                are asked for
    meanwhile   files that a writer replaces or a user removes stay readable, because they are open
"""

from __future__ import annotations

import bisect
import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from akrunner import leftovers
from akrunner.arrays import truths_of
from akrunner.errors import SourceError
from akrunner.foreign import ours
from akrunner.io.table import BATCH_ROWS
from akrunner.io.unfinished import partial_of
from akrunner.tables import layout, types
from akrunner.tables.names import Partition, TableName
from akrunner.tables.renames import removed
from akrunner.tables.store import Reading, TableInfo, key_scalar
from akrunner.wire.near import nearest

#: how many files are held open; if there are more, links are made instead
_OPEN = 64


class _File:
    """One file of a reading.

    Attributes:
        shown: its path, for messages.
        path: the path it is opened by.
        partition: the partition its rows belong to.
        rows: how many rows it has.
        types: the (name, Arrow type) pairs of its columns.
        names: column in lower case -> its name in the file.
    """

    def __init__(self, shown: str, path: str, partition: Partition) -> None:
        self.shown, self.path, self.partition = shown, path, partition
        with _told(shown), self._open() as file:
            self._metadata = file.metadata
            schema = file.schema_arrow
        self.rows: int = self._metadata.num_rows
        self.types = list(zip(schema.names, schema.types))
        self.names: dict[str, str] = {}
        for name in schema.names:
            if name.lower() in self.names:
                raise SourceError(f"source: {shown} has two columns called {name.lower()!r}")
            self.names[name.lower()] = name

    def _open(self, metadata: Any = None) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetFile(pa.OSFile(self.path), metadata=metadata, buffer_size=1 << 20, pre_buffer=False)

    def read(self, names: list[str], start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows from `start` up to `stop`, with the columns `names` of the file."""
        if not names:
            for at in range(start, stop, BATCH_ROWS):
                rows = min(BATCH_ROWS, stop - at)
                yield pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
            return
        groups, first = self._groups(start, stop)
        skip, left = start - first, stop - start
        with _told(self.shown), self._open(self._metadata) as file:
            for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=names):
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                batch = batch.slice(skip, left)
                skip, left = 0, left - batch.num_rows
                yield batch
                if not left:
                    return
            raise SourceError(f"source: {self.shown} says it has {self.rows} rows, and has fewer: it is damaged")

    def _groups(self, start: int, stop: int) -> tuple[list[int], int]:
        """Return (the row groups that a range overlaps, the number of the first row of the first of them)."""
        found: list[int] = []
        first = at = 0
        for group in range(self._metadata.num_row_groups):
            rows = self._metadata.row_group(group).num_rows
            if at < stop and at + rows > start:
                first = first if found else at
                found.append(group)
            at += rows
        return found, first


class LocalReading(Reading):
    """One state of a local table. See `store.Reading`.

    Attributes:
        root: the directory of all local tables.
    """

    def __init__(self, root: str, name: TableName, info: TableInfo, partitions: list[layout.Placed]) -> None:
        """Open the files. The caller holds the lock.

        Raises:
            SourceError: a file cannot be read.
            OSError: a directory cannot be read.
        """
        self.info = info
        self.root = root
        self._name = name
        self._held: list[int] = []
        self._links: str | None = None
        self._lock = threading.Lock()
        self._readers = 0
        self._closed = False
        try:
            self._files = [one for one in self._opened(root, partitions) if one.rows]
        except BaseException:
            self._release()
            raise
        self._ends: list[int] = []
        for file in self._files:
            self._ends.append((self._ends[-1] if self._ends else 0) + file.rows)
        self.rows = self._ends[-1] if self._ends else 0

    def _opened(self, root: str, partitions: list[layout.Placed]) -> list[_File]:
        found: list[tuple[str, Partition]] = []
        for partition, folder in partitions:
            found.extend((os.path.join(folder, name), partition) for name in layout.data_files(folder))
        if len(found) > _OPEN and os.access(root, os.W_OK):
            with contextlib.suppress(OSError):
                return self._linked(root, found)
        return [_File(path, self._fd(path), partition) for path, partition in found]

    def _fd(self, path: str) -> str:
        """Open a file, and return a path that leads to it as it is now, even if it is renamed or removed later."""
        with ours(SourceError, f"source: cannot open {path}"):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._held.append(fd)
        return f"/proc/self/fd/{fd}"

    def _linked(self, root: str, found: list[tuple[str, Partition]]) -> list[_File]:
        self._links = partial_of(os.path.join(root, "reading"))
        leftovers.register(self._links)
        os.mkdir(self._links, 0o700)
        linked: list[tuple[str, str, Partition]] = []
        for number, (path, partition) in enumerate(found):
            link = os.path.join(self._links, str(number))
            os.link(os.path.realpath(path), link)
            linked.append((path, link, partition))
        return [_File(*one) for one in linked]

    def read(self, columns: Sequence[str] | None = None, start: int = 0, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """See `store.Reading.read`."""
        fields = fields_of(self._name, self.info, columns)
        stop = self.rows if rows is None else min(self.rows, start + rows)
        return self._read(fields, max(0, start), stop)

    @property
    def paths(self) -> list[str]:
        """Return the paths of the files that `query` names."""
        return [file.path for file in self._files]

    def query(self) -> str:
        """Return SQL with which DuckDB reads the rows, and only the columns and partitions it needs. Valid until the reading
        is closed.
        """
        groups: list[tuple[_File, list[str]]] = []
        for file in self._files:
            if not groups or (groups[-1][0].partition, groups[-1][0].types) != (file.partition, file.types):
                groups.append((file, []))
            groups[-1][1].append(file.path)
        none = ", ".join(f"CAST(NULL AS {types.duckdb_words(kind)}) AS {quoted(name)}" for name, kind in self._columns())
        return " UNION ALL ".join(self._group(*group) for group in groups) or f"SELECT {none} WHERE false"

    def _columns(self) -> list[tuple[str, pa.DataType]]:
        return [(field.name, field.type) for field in self.info.columns] + [(key.name, key.type) for key in self.info.keys]

    def _group(self, file: _File, paths: list[str]) -> str:
        values = dict(file.partition)
        columns = []
        for name, kind in self._columns():
            if name in values:
                found = literal(values[name])
            else:
                found = quoted(file.names[name.lower()]) if name.lower() in file.names else "NULL"
            columns.append(f"CAST({found} AS {types.duckdb_words(kind)}) AS {quoted(name)}")
        files = ", ".join(map(literal, paths))
        return f"SELECT {', '.join(columns)} FROM read_parquet([{files}], hive_partitioning = false)"

    def _read(self, fields: list[pa.Field], start: int, stop: int) -> Iterator[pa.RecordBatch]:
        with self._lock:
            if self._closed:
                raise SourceError(f"source: the reading of {self._name} is closed")
            self._readers += 1
        schema = pa.schema([field.remove_metadata() for field in fields])
        try:
            at = bisect.bisect_right(self._ends, start)
            while start < stop:
                file, first = self._files[at], self._ends[at - 1] if at else 0
                end = min(stop, self._ends[at])
                yield from self._of_file(file, schema, start - first, end - first)
                start, at = end, at + 1
        finally:
            with self._lock:
                self._readers -= 1
                done = self._closed and not self._readers
            if done:
                self._release()

    def _of_file(self, file: _File, schema: pa.Schema, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        values = dict(file.partition)
        names = list(dict.fromkeys(file.names[field.name.lower()] for field in schema if field.name.lower() in file.names))
        # the file may hold partition columns too: the name of its directory has their values
        names = [name for name in names if name.lower() not in values]
        for batch in file.read(names, start, stop):
            columns = []
            for field in schema:
                low = field.name.lower()
                if low in values:
                    columns.append(pa.repeat(key_scalar(field, values[low]), batch.num_rows))
                elif low in file.names:
                    columns.append(_as(batch.column(file.names[low]), field, file.shown))
                else:
                    columns.append(pa.nulls(batch.num_rows, field.type))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def close(self) -> None:
        """Close the reading. Reads that are under way continue to their end."""
        with self._lock:
            done = not self._closed and not self._readers
            self._closed = True
        if done:
            self._release()

    def _release(self) -> None:
        while self._held:
            os.close(self._held.pop())
        if self._links is not None:
            removed(self._links)
            self._links = None


def fields_of(name: TableName, info: TableInfo, columns: Sequence[str] | None) -> list[pa.Field]:
    """Return the columns of a table that are asked for; its own columns if `columns` is None.

    Raises:
        SourceError: the table has no column of such a name.
    """
    if columns is None:
        return list(info.columns)
    known = {field.name.lower(): field for field in info.columns}
    known.update((key.name, key) for key in info.keys)
    for column in columns:
        if column.lower() not in known:
            raise SourceError(
                f"source: {name.whole} has no column {column!r} (it has {', '.join(known)}){nearest(column, list(known))}"
            )
    return [known[column.lower()] for column in columns]


def _as(column: pa.Array, field: pa.Field, shown: str) -> pa.Array:
    """Return a file's column in the type of the table's column.

    Raises:
        SourceError: a value does not fit the type, as may be in a file that a user put there.
    """
    if column.type == field.type:
        return column
    try:
        cast = column.cast(field.type)
        if pa.types.is_floating(column.type) and pa.types.is_floating(field.type):
            lost = truths_of(pc.fill_null(pc.and_not(pc.is_inf(cast), pc.is_inf(column)), False))
            if lost.any():
                raise pa.ArrowInvalid("a value would become infinite")
        return cast
    except pa.ArrowException as e:
        raise SourceError(
            f"source: column {field.name!r} of {shown} is {column.type}, and the table's is {types.words_of(field)}: {e}"
        ) from None


def _told(shown: str) -> Any:
    return ours(SourceError, f"source: cannot read {shown} as parquet (is it whole?)")


def quoted(name: str) -> str:
    """Return a name in the quotes that DuckDB wants."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a DuckDB literal."""
    return "'" + text.replace("'", "''") + "'"
