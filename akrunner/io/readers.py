"""One file of a format -> its schema and its batches, read as they are drawn.

Not through `pyarrow.dataset`: importing it imports pandas where that is installed, half a second on every job, and its
scanner reads far ahead.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Iterator, List, Optional, Tuple

import numpy as np
import pyarrow as pa

from akrunner.arrays import known_numbers_of
from akrunner.errors import SourceError
from akrunner.foreign import ours
from akrunner.io import parse, partitions
from akrunner.io.ahead import ahead
from akrunner.io.blocks import parquet_file
from akrunner.io.paths import Files
from akrunner.io.table import BATCH_ROWS, opened_once
from akrunner.io.text import Pieces
from akrunner.schema import Schema

#: the last bytes of an Arrow stream that was ended, not cut short
_STREAM_ENDS = b"\xff\xff\xff\xff\x00\x00\x00\x00"

#: (schema, batches) of one opened file
Opened = Tuple[pa.Schema, Iterator[pa.RecordBatch]]


def open_files(files: Files, wanted: Optional[Schema]) -> Tuple[pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]:
    """(schema, what opens the batches of all files one after another).

    Args:
        files: of one format, not TFRecord; wanted: the columns to take, and their types where the format leaves them to be guessed.
    Raises: SourceError: the first file cannot be read, or has no such column.
    """
    reader = _Reader(files, wanted)
    schema, first = reader.open(files.paths[0], None)

    def again() -> Iterator[pa.RecordBatch]:
        return reader.every(schema, reader.open(files.paths[0], None)[1])

    return schema, opened_once(reader.every(schema, first), again)


class _Reader:
    """Opens files that are one table."""

    def __init__(self, files: Files, wanted: Optional[Schema]) -> None:
        self.files = files
        self.wanted = pa.schema([(field.name, field.type) for field in wanted]) if wanted is not None else None
        self.named = partitions.columns(files.paths, files.base)
        self._unseen: List[str] = []

    def open(self, path: str, like: Optional[pa.Schema]) -> Opened:
        """Args: like: the schema of the first file; None: this is it."""
        form = {"csv": self._csv, "jsonl": self._jsonl, "parquet": self._parquet, "arrow": self._arrow}[self.files.format]
        with ours(SourceError, f"source: cannot read {path} as {self.files.format}"):
            before = os.stat(path) if self.files.is_local else None
            schema, batches = form(path, self._unnamed(like))
        batches = _unchanged(path, before, batches) if before is not None else batches
        schema, batches = partitions.added(schema, batches, self.named, path)
        return self._taken(path, schema, batches)

    def every(self, schema: pa.Schema, first: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from first
        for path in self.files.paths[1:]:
            other, batches = self.open(path, schema)
            if other.equals(schema):
                yield from batches
                continue
            self._check_names(path, other.names, schema.names)
            for batch in batches:
                columns = [_cast(batch, field, path) for field in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _check_names(self, path: str, names: List[str], first: List[str]) -> None:
        for one, other, some, more in ((path, self.files.paths[0], names, first), (self.files.paths[0], path, first, names)):
            missing = next((name for name in more if name not in some), None)
            if missing is not None:
                raise SourceError(
                    f"source: {one} has no column {missing!r}, which {other} has; input_schema= (--input-schema) says which to take"
                )

    def _taken(self, path: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Opened:
        """Only the columns that are wanted."""
        if self.wanted is None:
            return schema, batches
        names = self.wanted.names
        missing = next((name for name in names if name not in schema.names), None)
        if missing is not None:
            raise parse.no_column(path, missing, schema.names)
        taken = pa.schema([schema.field(name) for name in names])
        return taken, (batch if batch.schema.names == names else batch.select(names) for batch in batches)

    def _unnamed(self, like: Optional[pa.Schema]) -> Optional[pa.Schema]:
        """Without the columns that stand in names of directories."""
        if like is None:
            return None
        return pa.schema([field for field in like if field.name not in self.named])

    def _asked(self) -> Optional[pa.Schema]:
        return self._unnamed(self.wanted)

    def _csv(self, path: str, like: Optional[pa.Schema]) -> Opened:
        pieces, close = pieces_of(self.files, path, True)
        asked = self._asked()
        only = asked.names if asked is not None else None
        if asked is not None:
            # text is no list: the cast says so
            asked = pa.schema([field for field in asked if not pa.types.is_nested(field.type)])
        with _closed_on_failure(close):
            schema, batches = parse.opened(pieces, parse.CsvParser(pieces, asked, like, only))
        return schema, ahead(_closing(batches, close))

    def _jsonl(self, path: str, like: Optional[pa.Schema]) -> Opened:
        pieces, close = pieces_of(self.files, path, False)
        asked = self._asked()
        parser = parse.JsonParser(pieces, asked, like if asked is None else None)
        with _closed_on_failure(close):
            schema, batches = parse.opened(pieces, parser)
        return schema, ahead(_closing(self._seen(parser, path, batches), close))

    def _seen(self, parser: parse.JsonParser, path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Raises: SourceError: no object of any file has a column that was asked for."""
        yield from batches
        unseen = parser.unseen.names
        self._unseen = unseen if path == self.files.paths[0] else [name for name in self._unseen if name in unseen]
        if path == self.files.paths[-1] and self._unseen:
            where = path if len(self.files.paths) == 1 else f"{self.files.paths[0]} to {path}"
            raise SourceError(f"input_schema: no object in {where} has a {self._unseen[0]!r}")

    def _parquet(self, path: str, like: Optional[pa.Schema]) -> Opened:
        source = _seekable(self.files, path)
        with _closed_on_failure(source.close):
            file = parquet_file(source)
        return file.schema_arrow.remove_metadata(), _counted(file, path)

    def _arrow(self, path: str, like: Optional[pa.Schema]) -> Opened:
        source = _seekable(self.files, path)
        with _closed_on_failure(source.close):
            return self._arrow_of(source, path)

    def _arrow_of(self, source: Any, path: str) -> Opened:
        if source.read(6) == b"ARROW1":
            reader = pa.ipc.open_file(source)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
            return reader.schema, _valid(batches)
        size = source.seek(0, 2)
        source.seek(max(0, size - len(_STREAM_ENDS)))
        if source.read() != _STREAM_ENDS:
            raise SourceError(f"source: cannot read {path} as arrow: it is no Arrow file or stream, or is cut short")
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema, _whole_stream(_valid(iter(stream)), source, size, path)


def _valid(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What others wrote is looked through before anything follows its offsets. Raises: pa.ArrowInvalid."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _whole_stream(batches: Iterator[pa.RecordBatch], source: Any, size: int, path: str) -> Iterator[pa.RecordBatch]:
    yield from batches
    if source.tell() < size:
        raise SourceError(f"source: {path} holds more behind the end of its Arrow stream: several streams in one file?")


def _counted(file: Any, path: str) -> Iterator[pa.RecordBatch]:
    rows, said = 0, file.metadata.num_rows
    with file:
        for batch in file.iter_batches(BATCH_ROWS):
            rows += batch.num_rows
            yield batch
    if rows != said:
        raise SourceError(f"source: {path} says it has {said} rows, and has {rows}: it is damaged")


def _unchanged(path: str, before: os.stat_result, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Raises: SourceError: the file was written to, in place, while it was read; one that was put in its place does not matter."""
    yield from batches
    try:
        after = os.stat(path)
    except FileNotFoundError:
        return
    same = (after.st_ino, after.st_dev) == (before.st_ino, before.st_dev)
    if same and (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise SourceError(f"source: {path} was changed while it was read; give a copy of it, or mode stream with follow=")


def _cast(batch: pa.RecordBatch, field: pa.Field, path: str) -> pa.Array:
    column = batch.column(field.name)
    try:
        cast = column.cast(field.type)
        if pa.types.is_floating(field.type) and pa.types.is_floating(column.type):
            # Arrow rounds a double without a word
            back = known_numbers_of(cast.cast(column.type))
            if not np.array_equal(back, known_numbers_of(column), equal_nan=True):
                raise pa.ArrowInvalid("it would be rounded")
        return cast
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise SourceError(
            f"source: column {field.name!r} of {path} is {column.type}, and cannot become {field.type}, as in the first file: {e}; "
            f"input_schema= (--input-schema) says which type it is to have"
        ) from None


@contextlib.contextmanager
def _closed_on_failure(close: Callable[[], Any]) -> Iterator[None]:
    """What the block cannot read is closed at once, not whenever it is collected."""
    try:
        yield
    except BaseException:
        close()
        raise


def _closing(batches: Iterator[pa.RecordBatch], close: Callable[[], Any]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    finally:
        close()


def pieces_of(
    files: Files, path: str, quoted: bool, there: Optional[bytes] = None, back: Optional[bytes] = None
) -> Tuple[Pieces, Callable[[], Any]]:
    """The text of a file, unpacked on the way, and what closes it. Args: there: table for `bytes.translate` of it; back: from that."""
    if files.is_local:
        file: Any = pa.input_stream(path, compression="detect", buffer_size=0)
    else:
        file = files.filesystem.open(path, "rb", compression="infer")
    read = file.read if there is None else lambda size: file.read(size).translate(there)
    return Pieces(read, quoted, path, back=back), file.close


def _seekable(files: Files, path: str) -> Any:
    return pa.OSFile(path) if files.is_local else pa.PythonFile(files.filesystem.open(path, "rb"), mode="r")


def scan(dataset: Any) -> Iterator[pa.RecordBatch]:
    """All rows of a `pyarrow.dataset.Dataset`, with little read ahead: memory must not grow with the table."""
    scanner = dataset.scanner(batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)
    return iter(scanner.to_reader())
