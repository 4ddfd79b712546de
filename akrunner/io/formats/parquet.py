"""Parquet files."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io.extents import Extent
from akrunner.io.formats.base import Compression, Counted, Format, Opened, Reading, closed_on_failure
from akrunner.io.shared import DISKS, Place
from akrunner.io.table import BATCH_ROWS
from akrunner.io.writers import Gathered, Writer

#: a row group that has at most so many bytes is fetched as a whole; of a larger one, so many of each column at a time
_GROUP_BYTES, _PIECE_BYTES = 128 << 20, 4 << 20


class Parquet(Format):
    """Parquet files. The blocks of a file are the numbers of its row groups."""

    name = "parquet"
    endings = (".parquet", ".pq")
    spread = True
    lakes = True
    compressions = ("zstd", "snappy", "gzip", "brotli", "lz4")

    def begins(self, head: bytes) -> bool:
        return head.startswith(b"PAR1")

    def open(self, table: Reading, path: str, like: pa.Schema | None) -> Opened:
        source = table.seekable(path)
        with closed_on_failure(source.close):
            file = _file(source)
        schema = file.schema_arrow.remove_metadata()
        table.extent.has_rows(file.metadata.num_rows)
        return schema, _counted(file, path, table.within(schema), table.extent)

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        import pyarrow.parquet as pq

        return Gathered(pq.ParquetWriter(stream, schema))

    def compressing_writer(self, stream: IO[bytes], schema: pa.Schema, compression: Compression) -> Writer:
        import pyarrow.parquet as pq

        made = pq.ParquetWriter(stream, schema, compression=compression.name, compression_level=compression.level)
        return Gathered(made)

    def stored(self, schema: pa.Schema) -> pa.Schema | None:
        import pyarrow.parquet as pq

        made = io.BytesIO()
        pq.ParquetWriter(made, schema).close()
        return pq.read_schema(io.BytesIO(made.getvalue()))

    def blocks(self, path: str, schema: pa.Schema, first: str, place: Place = DISKS) -> list[Counted] | None:
        with place.open(path) as source, _file(source) as file:
            if not file.schema_arrow.remove_metadata().equals(schema):
                return None
            return [(group, file.metadata.row_group(group).num_rows) for group in range(file.num_row_groups)]

    def rows(self, path: str, block: Any, schema: pa.Schema, place: Place = DISKS) -> Iterator[pa.RecordBatch]:
        with place.open(path) as source, _group(source, block) if place.away else _file(source) as file:
            yield from file.iter_batches(BATCH_ROWS, row_groups=[block])

    def row_count(self, path: str) -> int | None:
        import pyarrow.parquet as pq

        return int(pq.read_metadata(path).num_rows)

    def null_counts(self, path: str) -> dict[str, int | None]:
        import pyarrow.parquet as pq

        metadata = pq.read_metadata(path)
        found: Counter[str] = Counter()
        unknown = set()
        for group in range(metadata.num_row_groups):
            for place in range(metadata.num_columns):
                column = metadata.row_group(group).column(place)
                statistics = column.statistics
                if statistics is None or not statistics.has_null_count or "." in column.path_in_schema:
                    unknown.add(column.path_in_schema.partition(".")[0])
                else:
                    found[column.path_in_schema] += statistics.null_count
        return {**found, **dict.fromkeys(unknown)}


def _file(source: Any) -> Any:
    """Return a `ParquetFile` that reads as rows are drawn, not a whole row group, or file, before the first batch."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False)


def _group(source: Any, group: int) -> Any:
    """Return a `ParquetFile` that fetches a row group in a few large requests; piece by piece, if it is too large for memory."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(source)
    row_group = metadata.row_group(group)
    size = sum(row_group.column(place).total_compressed_size for place in range(row_group.num_columns))
    return pq.ParquetFile(source, metadata=metadata, buffer_size=_PIECE_BYTES, pre_buffer=size <= _GROUP_BYTES)


def _counted(file: Any, path: str, only: list[str] | None, extent: Extent) -> Iterator[pa.RecordBatch]:
    rows, said = 0, file.metadata.num_rows
    with file:
        for batch in file.iter_batches(BATCH_ROWS, columns=only):
            rows += batch.num_rows
            extent.reached(rows, said)
            yield batch
    if rows != said:
        raise SourceError(f"source: {path} says it has {said} rows, and has {rows}: it is damaged")


FORMAT = Parquet()
