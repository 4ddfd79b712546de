"""The formats' own writers: batches to an open stream. pyarrow, and DuckDB for JSON: a TaskManager's Python has no more."""

from __future__ import annotations

import io
import os
from typing import IO, Any, Callable, List, Optional, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv

from akrunner.errors import SinkError

#: writes a batch to a TFRecord stream
ExampleWriter = Callable[[IO[bytes], pa.RecordBatch], None]
#: formats pyarrow alone writes
SPREAD = ("parquet", "arrow")


class Writer(Protocol):
    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


def writer_of(form: str, stream: IO[bytes], schema: pa.Schema, write_examples: ExampleWriter) -> Writer:
    if form == "parquet":
        import pyarrow.parquet as pq

        return _Arrow(pq.ParquetWriter(stream, schema))
    if form == "csv":
        return _Arrow(pa_csv.CSVWriter(stream, schema))
    if form == "arrow":
        return _Arrow(pa.ipc.new_file(stream, schema))
    if form == "jsonl":
        return JsonLines(stream)
    return _Examples(stream, write_examples)


class Gate(io.RawIOBase):
    """Passes bytes on to a stream, until it is shut: a writer that is given up may write on, and nothing comes of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream: Optional[IO[bytes]] = stream
        self._position = 0

    def shut(self) -> None:
        self._stream = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
        if self._stream is not None:
            self._stream.write(data)
        self._position += size
        return size

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Whoever made the stream flushes it."""


class _Arrow:
    """One of Arrow's own writers. Small batches are gathered: a row group or an IPC message a batch would be slow to read."""

    _ROWS = 65536

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._held: List[pa.RecordBatch] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._rows += batch.num_rows
        if self._rows >= self._ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held).combine_chunks())
            self._held, self._rows = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()


class JsonLines:
    """An object a line, made by DuckDB."""

    def __init__(self, stream: IO[bytes]) -> None:
        import duckdb

        self._stream = stream
        self._connection = duckdb.connect()

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._connection.register("batch", pa.Table.from_batches([batch]))
        ((joined,),) = self._connection.sql("SELECT string_agg(to_json(batch)::VARCHAR, chr(10)) FROM batch").fetchall()
        self._stream.write(joined.encode() + b"\n")

    def close(self) -> None:
        self._connection.close()


class _Examples:
    def __init__(self, stream: IO[bytes], write_examples: ExampleWriter) -> None:
        self._stream = stream
        self._write = write_examples

    def write(self, batch: pa.RecordBatch) -> None:
        self._write(self._stream, batch)

    def close(self) -> None:
        pass


class PartError(Exception):
    """A file that cannot be written, in words."""


class PartFile:
    """One file of a `PartsSink`, written by the machine its rows are on; made with its first rows. Methods raise PartError."""

    def __init__(self, path: str, form: str, schema: pa.Schema) -> None:
        self._path = path
        self._form = form
        self._schema = schema
        self._stream: Optional[IO[bytes]] = None
        self._writer: Optional[Writer] = None

    def write(self, batch: pa.RecordBatch) -> None:
        try:
            if self._writer is None:
                self._stream = open(self._path, "wb")
                self._writer = writer_of(self._form, self._stream, self._schema, _no_examples)
            self._writer.write(batch)
        except OSError as e:
            raise PartError(f"output: cannot write {self._path}: {e.strerror or e}") from None

    def close(self) -> None:
        """All of it is on disk then."""
        if self._writer is None or self._stream is None:
            return
        try:
            self._writer.close()
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
        except OSError as e:
            raise PartError(f"output: cannot write {self._path}: {e.strerror or e}") from None
        self._writer = self._stream = None


def _no_examples(stream: IO[bytes], batch: pa.RecordBatch) -> None:
    raise SinkError("output: TFRecords are written by the host")
