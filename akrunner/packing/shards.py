"""Writing of one shard: under a temporary name, then renamed, so that it appears completely or not at all.

::

    rows of files:  [what stands before the bytes | the bytes, as they were read | checksum] x rows -> writev; nothing is copied
    rows of tables: a batch at a time

The checksum of the whole file is combined from the checksums that each record has anyway.
"""

from __future__ import annotations

import io
import itertools
import os
import uuid
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from akrunner import leftovers
from akrunner.arrays import Octets, octets_of
from akrunner.codec import crc32c, encode_records
from akrunner.codec.binary import data_of, offsets_of
from akrunner.codec.encode import HEAD, record_fronts
from akrunner.io import formats
from akrunner.io.formats import arrow, parquet
from akrunner.io.rename import sync
from akrunner.packing.sealed import Sum

#: how many buffers one call of writev takes
_MOST_BUFFERS = 1020
PARTIAL = ".partial"
#: how many bytes the checksum behind a record has
_TAIL = 4


class Writer(Protocol):
    """Writes rows to an open file in one format."""

    def write_rows(self, batch: pa.RecordBatch) -> None: ...

    def write_files(self, batch: pa.RecordBatch, field: pa.Field, datas: Sequence[Octets], crcs: crc32c.U32 | None) -> None:
        """Write rows that have a file each.

        Args:
            batch: the other columns.
            field: field of the column with the files' bytes; it is the last column, but in Parquet and Arrow files the first.
            datas: the bytes of each file.
            crcs: CRC-32C of each file; None: not known.
        """

    def settle(self) -> None:
        """Wait until the rows given so far are written, so that their memory may be used for something else."""

    def close(self) -> None:
        """Write what is left, and end the file's format."""

    def stop(self) -> None:
        """Stop writing, whether or not it succeeded."""


class ShardFile:
    """A shard while it is being written.

    Args:
        folder: directory of the temporary file.
        form: format of the shard.
        schema: columns of the rows.
        writer: thread that writes records while the next ones are made; None: the calling thread writes them.
    Attributes:
        rows: number of rows written so far.
        sum: checksum of the bytes written so far.
    """

    def __init__(self, folder: str, form: str, schema: pa.Schema, writer: ThreadPoolExecutor | None = None) -> None:
        self._partial = os.path.join(folder, uuid.uuid4().hex[:16] + PARTIAL)
        leftovers.register(self._partial)
        self._stream = open(self._partial, "xb", buffering=0)
        self.rows = 0
        self.sum = Sum()
        self._writer: Writer = (
            _Records(self._stream, self.sum, writer)
            if formats.named(form).examples
            else _Columns(form, self._stream, self.sum, schema)
        )

    def write_rows(self, batch: pa.RecordBatch) -> None:
        self._writer.write_rows(batch)
        self.rows += batch.num_rows

    def write_files(self, batch: pa.RecordBatch, field: pa.Field, datas: Sequence[Octets], crcs: crc32c.U32 | None) -> None:
        if datas:
            self._writer.write_files(batch, field, datas, crcs)
            self.rows += len(datas)

    def settle(self) -> None:
        """Wait until the bytes given so far are written, so that they may be overwritten.

        The bytes of one `write_files` may also be overwritten once the next call has returned.
        """
        self._writer.settle()

    def commit(self, path: str) -> int:
        """Finish the file, and give it its name, `path`. Returns: the number of its bytes."""
        self._writer.close()
        sync(self._stream)
        size = os.fstat(self._stream.fileno()).st_size
        self._stream.close()
        os.replace(self._partial, path)
        leftovers.forget(self._partial)
        return size

    def drop(self) -> None:
        """Give the file up, and remove it."""
        self._writer.stop()
        self._stream.close()
        leftovers.drop(self._partial)


class _Records:
    def __init__(self, stream: Any, sum_: Sum, writer: ThreadPoolExecutor | None) -> None:
        self._stream, self._sum, self._executor = stream, sum_, writer
        self._written: Future[None] | None = None

    def write_rows(self, batch: pa.RecordBatch) -> None:
        records = encode_records(batch).data
        self._sum.add(records)
        _write_all(self._stream.fileno(), [records])

    def write_files(self, batch: pa.RecordBatch, field: pa.Field, datas: Sequence[Octets], crcs: crc32c.U32 | None) -> None:
        sizes = np.fromiter(map(len, datas), np.int64, len(datas))
        fronts = record_fronts(batch, field.name, sizes)
        ends = offsets_of(fronts) - offsets_of(fronts)[0]
        flat = data_of(fronts).tobytes()
        places = ends.tolist()
        cut = [flat[a:b] for a, b in itertools.pairwise(places)]
        bodies = [front[HEAD:] for front in cut]
        whole = crc32c.crcs_of_both(bodies, datas) if crcs is None else crc32c.joined(crc32c.crcs_of(bodies), crcs, sizes)
        masked = crc32c.mask(whole).astype("<u4").tobytes()
        tails = [masked[i : i + _TAIL] for i in range(0, len(masked), _TAIL)]
        buffers: list[Any] = [b""] * (3 * len(datas))
        buffers[0::3], buffers[1::3], buffers[2::3] = cut, datas, tails
        pieces = np.array([crc32c.crcs_of([front[:HEAD] for front in cut]), whole, crc32c.crcs_of(tails)], np.uint32)
        lengths = np.array([np.full(len(cut), HEAD), np.diff(ends) - HEAD + sizes, np.full(len(cut), _TAIL)])
        self.settle()
        if self._executor is None:
            self._put(buffers, pieces.T.ravel(), lengths.T.ravel())
        else:
            self._written = self._executor.submit(self._put, buffers, pieces.T.ravel(), lengths.T.ravel())

    def _put(self, buffers: list[Any], crcs: crc32c.U32, lengths: crc32c.I64) -> None:
        self._sum.add_all(buffers, crcs, lengths)
        _write_all(self._stream.fileno(), buffers)

    def settle(self) -> None:
        written, self._written = self._written, None
        if written is not None:
            written.result()

    def close(self) -> None:
        self.settle()

    def stop(self) -> None:
        with suppress(OSError):
            self.settle()


class _Columns:
    """Writes Parquet or Arrow files: each batch becomes a row group or a batch."""

    def __init__(self, form: str, stream: Any, sum_: Sum, schema: pa.Schema) -> None:
        self._schema = schema
        self._sink = Sink(stream, sum_)
        self._writer = writer_of(form, self._sink, schema)

    def write_rows(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def write_files(self, batch: pa.RecordBatch, field: pa.Field, datas: Sequence[Octets], crcs: crc32c.U32 | None) -> None:
        blobs = octets_of(datas, field.type)
        columns = [blobs if one.name == field.name else batch.column(one.name) for one in self._schema]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def settle(self) -> None:
        """Do nothing: rows are written by the calling thread."""

    def close(self) -> None:
        self._writer.close()

    def stop(self) -> None:
        # closed now: Parquet's writer closes itself when it is collected, whatever became of its stream, and no code can catch
        # the error then
        self._sink.over = True
        with suppress(OSError, ValueError, pa.ArrowException):
            self._writer.close()


class Sink(io.RawIOBase):
    """A stream for Arrow's writers, which computes a checksum, and can be told to drop all further bytes.

    Args: stream: the file; sum_: takes the bytes written.
    Attributes: over: whether further bytes are dropped, without an error.
    """

    def __init__(self, stream: Any, sum_: Sum) -> None:
        super().__init__()
        self._stream, self._sum = stream, sum_
        self.over = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        self._sum.add(rest)
        while len(rest) and not self.over:
            rest = rest[self._stream.write(rest) :]
        return size


def _parquet(stream: Any, schema: pa.Schema) -> Any:
    import pyarrow.parquet as pq

    # bytes of files, such as encoded images, are not compressed: they would get no smaller
    blobs = [field.name for field in schema if pa.types.is_binary(field.type)]
    compression = {field.name: "none" if field.name in blobs else "snappy" for field in schema}
    dictionary: Any = [name for name in schema.names if name not in blobs] if blobs else True
    return pq.ParquetWriter(stream, schema, compression=compression, use_dictionary=dictionary or False)


#: format of files with columns -> function that makes Arrow's writer of it
_WRITERS = {parquet.FORMAT.name: _parquet, arrow.FORMAT.name: pa.ipc.new_file}


def writer_of(form: str, stream: Any, schema: pa.Schema) -> Any:
    """Return Arrow's writer of a Parquet or Arrow file. Raises: ArrowException: the format cannot hold a column."""
    return _WRITERS[form](stream, schema)


def _write_all(fd: int, buffers: list[Any]) -> None:
    """Write all bytes of the buffers, in order. Raises: OSError."""
    for first in range(0, len(buffers), _MOST_BUFFERS):
        some = buffers[first : first + _MOST_BUFFERS]
        left: int | None = sum(map(len, some))
        while left:
            done = os.writev(fd, some)
            left -= done
            while some and done >= len(some[0]):
                done -= len(some.pop(0))
            if done:
                some[0] = memoryview(some[0])[done:]
