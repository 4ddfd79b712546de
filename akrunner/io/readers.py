"""Turns files of one format into a schema and batches, which are read as the caller draws them.

`pyarrow.dataset` is not used: importing it imports pandas where that is installed, which costs every job half a second, and its
scanner reads far ahead.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.foreign import ours, redacted
from akrunner.io import formats, parse, partitions
from akrunner.io.bad_rows import BadRows
from akrunner.io.casts import as_in_first
from akrunner.io.extents import Extent
from akrunner.io.formats.base import Opened, Reading
from akrunner.io.paths import Files
from akrunner.io.table import BATCH_ROWS, TableSource, opened_once
from akrunner.schema import Schema


def open_files(
    files: Files, wanted: Schema | None, shown: str, columns: Sequence[str] | None = None, bad: BadRows | None = None
) -> TableSource:
    """Open files of one format as one table: the rows of all files, one file after another.

    Args:
        files: the files, which must not hold Examples.
        wanted: the columns to take, and their types where the format leaves these to be guessed.
        shown: the table's name in errors.
        columns: the columns to take, of any type, if `wanted` is None; None: all columns.
        bad: takes bad rows; None: they are errors.
    Raises:
        SourceError: the first file cannot be read, or lacks a column; or files of this format have no bad rows.
    """
    if bad is not None and not formats.named(files.format).tolerant:
        raise no_bad_rows(shown)
    reader = _Reader(files, wanted, columns, bad)
    schema, first = reader.begin()
    told = reader.reading.told
    files = replace(files, csv=told.csv or files.csv)

    def again() -> Iterator[pa.RecordBatch]:
        if bad is not None:
            bad.restart()
        return reader.every(schema, reader.open(files.paths[0], None if reader.leads == files.paths[0] else schema)[1])

    def each(like: pa.Schema | None, of: str) -> list[tuple[str, TableSource]]:
        return [
            (path, reader.alone(path, schema if like is None else like, reader.leads if like is None else of))
            for path in files.paths
        ]

    opened = opened_once(reader.every(schema, first), again)
    notes, extent = tuple(told.notes), reader.reading.extent
    if bad is not None:
        # the host counts the bad rows, so no other machine may read the files itself
        return TableSource(schema, opened, shown, True, read_from=files, bad=bad, notes=notes, extent=extent)
    return TableSource(schema, opened, shown, True, files=files, read_from=files, each=each, notes=notes, extent=extent)


def no_bad_rows(name: str) -> SourceError:
    """Return the error for a table whose rows cannot be bad."""
    return SourceError(
        f"bad_rows= (--bad-rows) is for CSV and JSON lines, and {name} is neither: leave it out; select= (--select) leaves out "
        "rows by their values"
    )


class _Reader:
    """Opens the files that make up one table."""

    def __init__(self, files: Files, wanted: Schema | None, columns: Sequence[str] | None, bad: BadRows | None = None) -> None:
        self.bad = bad
        self.files = files
        self.wanted = pa.schema([(field.name, field.type) for field in wanted]) if wanted is not None else None
        self.named = partitions.columns(files.paths, files.base)
        self.only = wanted.names if wanted is not None else list(columns) if columns is not None else None
        inside = [name for name in self.only if name not in self.named] if self.only is not None else None
        fits = wanted.arrow if wanted is not None else None
        extent = Extent.of_files(files.paths, files.is_local)
        self.reading = Reading(files, self._unnamed(self.wanted), inside, bad, fits, extent=extent)
        self._opener = formats.named(files.format).written_as(files.csv).opener(self.reading)
        #: the file whose columns are the table's columns
        self.leads = files.paths[0]

    def begin(self) -> Opened:
        """Return (the table's schema, the batches of the first file). If text files without rows do not tell the types, the
        first file with rows does."""
        paths = self.files.paths
        told: tuple[str, pa.Schema, Iterator[pa.RecordBatch]] | None = None
        for path in paths:
            try:
                schema, batches = self.open(path, None)
            except SourceError as e:
                if not e.tells_no_columns or (path == paths[-1] and told is None):
                    raise
                continue
            if not _untold(schema):
                told = path, schema, batches
                break
            first = next(batches, None)
            if first is not None:
                told = path, schema, itertools.chain([first], batches)
                break
            told = told or (path, schema, iter(()))
        assert told is not None
        self.leads, schema, batches = told
        return schema, batches if self.leads == paths[0] else self.batches(paths[0], schema, self.leads)

    def open(self, path: str, like: pa.Schema | None) -> Opened:
        """Open one file.

        Args:
            like: the schema of the first file; None: this file is the first.
        """
        with ours(SourceError, f"source: cannot read {path} as {self.files.format}"):
            self.reading.extent.begin(path)
            before = os.stat(path) if self.files.is_local else None
            schema, batches = self._opener(path, self._unnamed(like))
        batches = _unchanged(path, before, batches) if before is not None else batches
        schema, batches = partitions.added(schema, batches, self.named, path)
        return self._taken(path, schema, batches)

    def every(self, schema: pa.Schema, first: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from first
        for path in self.files.paths[1:]:
            yield from self.batches(path, schema, self.leads)
        if self.bad is not None:
            self.bad.end()

    def alone(self, path: str, schema: pa.Schema, of: str) -> TableSource:
        """Return one file as a table, in the schema of another file."""
        return TableSource(schema, lambda: self.batches(path, schema, of), redacted(path), True)

    def batches(self, path: str, schema: pa.Schema, of: str) -> Iterator[pa.RecordBatch]:
        """Yield a file's rows in the table's schema.

        Args:
            of: the name of the file or table that has that schema.
        Raises:
            SourceError: the file has other columns, or its values cannot become the schema's types.
        """
        other, batches = self.open(path, schema)
        if other.equals(schema):
            yield from batches
            return
        _check_names(path, other.names, of, schema.names)
        for batch in batches:
            columns = [as_in_first(batch, field, path, "the first file") for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _taken(self, path: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Opened:
        """Return the schema and batches with only the columns that are wanted."""
        names = self.only
        if names is None:
            return schema, batches
        parse.check_once(redacted(path), schema.names, names)
        missing = next((name for name in names if name not in schema.names), None)
        if missing is not None:
            raise parse.no_column(path, missing, schema.names, "input_schema" if self.wanted is not None else "columns")
        taken = pa.schema([schema.field(name) for name in names])
        return taken, (batch if batch.schema.names == names else batch.select(names) for batch in batches)

    def _unnamed(self, like: pa.Schema | None) -> pa.Schema | None:
        """Return the schema without the columns that are written in names of directories."""
        if like is None:
            return None
        return pa.schema([field for field in like if field.name not in self.named])


def _untold(schema: pa.Schema) -> bool:
    """Whether the schema may be incomplete because it comes from text without rows."""
    return not len(schema) or any(pa.types.is_null(field.type) for field in schema)


def _check_names(path: str, names: list[str], first: str, those: list[str]) -> None:
    parse.check_once(redacted(path), names, those)
    for one, other, some, more in ((path, first, names, those), (first, path, those, names)):
        missing = next((name for name in more if name not in some), None)
        if missing is not None:
            raise SourceError(
                f"source: {one} has no column {missing!r}, which {other} has; input_schema= (--input-schema) says which to take"
            )


def _unchanged(path: str, before: os.stat_result, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file, then check that it was not written to meanwhile. It does not matter if another file has
    replaced it.

    Raises:
        SourceError: the file was changed in place while it was read.
    """
    yield from batches
    try:
        after = os.stat(path)
    except FileNotFoundError:
        return
    same = (after.st_ino, after.st_dev) == (before.st_ino, before.st_dev)
    if same and (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise SourceError(
            f"source: {path} was changed while it was read; give a copy of it, or read it as it grows: "
            "akrunner.stream(..., follow=True) (akrunner stream --follow)"
        )


def scan(dataset: Any, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Return all rows of a `pyarrow.dataset.Dataset`. Reads little ahead, so that memory does not grow with the table.

    Args:
        columns: the columns to read; None: all of them.
    """
    scanner = dataset.scanner(columns, batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)
    return iter(scanner.to_reader())
