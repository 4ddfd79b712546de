"""Arrow's own files and streams."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io.extents import Extent
from akrunner.io.formats.base import Compression, Counted, Format, Opened, Reading, closed_on_failure
from akrunner.io.shared import DISKS, Place
from akrunner.io.writers import Gathered, Writer

_MAGIC = b"ARROW1"
#: the last bytes of an Arrow stream that was finished and not cut short
_STREAM_ENDS = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class Arrow(Format):
    """Arrow's own files and streams. The blocks of a file are the numbers of its record batches; a stream has none."""

    name = "arrow"
    endings = (".arrow", ".feather", ".ipc")
    spread = True
    compressions = ("zstd", "lz4")

    def begins(self, head: bytes) -> bool:
        return head.startswith(_MAGIC)

    def open(self, table: Reading, path: str, like: pa.Schema | None) -> Opened:
        source = table.seekable(path)
        with closed_on_failure(source.close):
            if source.read(len(_MAGIC)) == _MAGIC:
                reader = pa.ipc.open_file(source)
                schema, only = reader.schema, table.within(reader.schema)
                if only is not None:
                    fields = pa.ipc.IpcReadOptions(included_fields=[at for at, name in enumerate(schema.names) if name in only])
                    reader = pa.ipc.open_file(source, options=fields)
                batches = _each(reader, table.extent)
                return schema, _valid(batches)
            return _stream(source, path)

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return Gathered(pa.ipc.new_file(stream, schema))

    def compressing_writer(self, stream: IO[bytes], schema: pa.Schema, compression: Compression) -> Writer:
        codec = pa.Codec(compression.name, compression.level) if compression.name in self.compressions else None
        return Gathered(pa.ipc.new_file(stream, schema, options=pa.ipc.IpcWriteOptions(compression=codec)))

    def stored(self, schema: pa.Schema) -> pa.Schema | None:
        return schema

    def blocks(self, path: str, schema: pa.Schema, first: str, place: Place = DISKS) -> list[Counted] | None:
        with place.mapped(path) as memory:
            with pa.ipc.open_file(memory) as file:
                if not file.schema.equals(schema):
                    return None
            # one column is enough to count rows: of a file that is not in memory, no more is fetched
            with pa.ipc.open_file(memory, options=pa.ipc.IpcReadOptions(included_fields=_narrowest(schema))) as file:
                return [(number, file.get_batch(number).num_rows) for number in range(file.num_record_batches)]

    def rows(self, path: str, block: Any, schema: pa.Schema, place: Place = DISKS) -> Iterator[pa.RecordBatch]:
        with place.mapped(path) as memory, pa.ipc.open_file(memory) as file:
            yield file.get_batch(block)


def _each(reader: Any, extent: Extent) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file, and say how far it has been read."""
    rows, batches = 0, reader.num_record_batches
    for number in range(batches):
        batch = reader.get_batch(number)
        rows += batch.num_rows
        extent.reached(number + 1, batches)
        if number + 1 == batches:
            extent.has_rows(rows)
        yield batch


def _narrowest(schema: pa.Schema) -> list[int]:
    """Return the place of the column with the fewest bytes a row, as far as its type says it; [] if there is no column."""
    return sorted(range(len(schema)), key=lambda at: _width(schema.types[at]))[:1]


def _width(kind: pa.DataType) -> float:
    try:
        return float(kind.bit_width)
    except ValueError:
        return math.inf


def _stream(source: Any, path: str) -> Opened:
    size = source.seek(0, 2)
    source.seek(max(0, size - len(_STREAM_ENDS)))
    if source.read() != _STREAM_ENDS:
        raise SourceError(f"source: cannot read {path} as arrow: it is no Arrow file or stream, or is cut short")
    source.seek(0)
    stream = pa.ipc.open_stream(source)
    return stream.schema, _whole(_valid(iter(stream)), source, size, path)


def _valid(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches after checking them, as files of other programs may have wrong offsets.

    Raises:
        pa.ArrowInvalid: a batch is wrong.
    """
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _whole(batches: Iterator[pa.RecordBatch], source: Any, size: int, path: str) -> Iterator[pa.RecordBatch]:
    yield from batches
    if source.tell() < size:
        raise SourceError(f"source: {path} holds more behind the end of its Arrow stream: several streams in one file?")


FORMAT = Arrow()
