"""Where the rows go that the scripts write: a table in memory, or a file that is there only when the job succeeded."""

from __future__ import annotations

import contextlib
import os
import posixpath
import uuid
from typing import IO, Any, Callable, Dict, List, Optional, Protocol

import fsspec
import pyarrow as pa
import pyarrow.csv as pa_csv

from akrunner.errors import SinkError
from akrunner.io import paths
from akrunner.schema import Schema, is_list
from akrunner.spec import TaskSpec

#: writes a batch to a TFRecord stream
ExampleWriter = Callable[[IO[bytes], pa.RecordBatch], None]


class MemorySink:
    """Keeps everything; for results that fit memory."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: Dict[TaskSpec, List[pa.RecordBatch]] = {}

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        self._batches.setdefault(task, []).append(batch)

    def restart(self) -> None:
        """The job starts again: nothing was written."""
        self._batches.clear()

    def table(self) -> pa.Table:
        """All rows: chief's first, then worker 0's, worker 1's, ...; each task's in the order it wrote them."""
        batches = [batch for task in sorted(self._batches) for batch in self._batches[task]]
        return pa.Table.from_batches(batches, schema=self._schema)


class FileSink:
    """One file, written as the rows arrive, under another name until `commit`.

    Args:
        path: local, or any URL fsspec opens for writing.
        form: csv, parquet, jsonl, arrow or tfrecord; None: by the name.
        overwrite: whether a file of that name may be replaced.
    Raises: SinkError: it exists, its directory does not, its format is not known, or cannot hold a column.
    """

    def __init__(
        self, path: str, schema: pa.Schema, write_examples: ExampleWriter, form: Optional[str] = None, overwrite: bool = False
    ) -> None:
        self.path = os.fspath(path)
        form = form or paths.format_of(self.path)
        if form not in paths.ENDINGS:
            known = " ".join(endings[0] for endings in paths.ENDINGS.values())
            raise SinkError(
                f"output: {self.path} does not say its format (known: {known}); give output_format= (--output-format)"
            )
        if self.path.lower().endswith((".gz", ".bz2")):
            raise SinkError(f"output: {self.path}: compressed output is not written; parquet compresses by itself")
        self.format = form
        self._schema = schema
        self._write_examples = write_examples
        self._check_types()
        try:
            self._fs, self._target = fsspec.core.url_to_fs(os.path.expanduser(self.path))
            self._check_place(overwrite)
        except (ValueError, ImportError, OSError) as e:
            if isinstance(e, SinkError):
                raise
            raise SinkError(f"output: cannot open {self.path}: {e}") from None
        folder, name = posixpath.split(self._target)
        self._partial = posixpath.join(folder, f".{name}.{uuid.uuid4().hex[:8]}.partial")
        self._stream: Optional[Any] = None
        self._writer: Optional[_Writer] = None

    def _check_place(self, overwrite: bool) -> None:
        if self._fs.isdir(self._target):
            raise SinkError(f"output: {self.path} is a directory; name a file in it")
        if not overwrite and self._fs.exists(self._target):
            raise SinkError(f"output: {self.path} exists; give overwrite=True (--overwrite) to replace it")
        folder = posixpath.dirname(self._target)
        local = isinstance(self._fs, fsspec.implementations.local.LocalFileSystem)
        if local and not os.path.isdir(folder):
            raise SinkError(f"output: there is no directory {folder}; make it first")
        if local and not os.access(folder, os.W_OK):
            raise SinkError(f"output: nothing may be written in {folder}")

    def _check_types(self) -> None:
        if self.format == "tfrecord":
            Schema.from_arrow(self._schema)  # refuses what an Example cannot hold
        for field in self._schema:
            if self.format == "csv" and (pa.types.is_nested(field.type) or _is_blob(field.type)):
                raise SinkError(f"output: a CSV cannot hold column {field.name!r} ({field.type}); write parquet or arrow")
            if self.format == "jsonl" and _is_blob(field.type.value_type if is_list(field.type) else field.type):
                raise SinkError(f"output: JSON cannot hold column {field.name!r} ({field.type}); write parquet or arrow")

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        self._open().write(batch)

    def _open(self) -> "_Writer":
        if self._writer is None:
            self._stream = self._fs.open(self._partial, "wb")
            self._writer = _writer(self.format, self._stream, self._schema, self._write_examples)
        return self._writer

    def commit(self) -> None:
        """The job succeeded: finish the file and move it into place."""
        self._open().close()
        assert self._stream is not None
        self._stream.close()
        self._fs.mv(self._partial, self._target)

    def restart(self) -> None:
        """The job starts again: nothing was written."""
        self.abort()
        self._stream = self._writer = None

    def abort(self) -> None:
        """The job failed: leave nothing, and what was there before as it was."""
        with contextlib.suppress(Exception):
            if self._writer is not None:
                self._writer.close()
        with contextlib.suppress(Exception):
            if self._stream is not None:
                self._stream.close()
                self._fs.rm(self._partial)


class LineWriter:
    """Writes batches to a stream as lines, each batch at once. Args: form: jsonl or csv; schema: of the batches, None: takes nothing."""

    def __init__(self, stream: IO[bytes], form: str, schema: Optional[pa.Schema]) -> None:
        self._stream = stream
        self._writer: Optional[_Writer] = None
        if schema is not None:
            self._writer = _JsonLines(stream) if form == "jsonl" else pa_csv.CSVWriter(stream, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Raises: OSError: nobody takes it any more."""
        if self._writer is not None:
            self._writer.write(batch)
            self._stream.flush()

    def close(self) -> None:
        """Finish; the stream stays open."""
        if self._writer is not None:
            self._writer.close()
            self._stream.flush()


def _is_blob(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


class _Writer(Protocol):
    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


def _writer(form: str, stream: IO[bytes], schema: pa.Schema, write_examples: ExampleWriter) -> _Writer:
    if form == "parquet":
        import pyarrow.parquet as pq

        return _Arrow(pq.ParquetWriter(stream, schema))
    if form == "csv":
        return _Arrow(pa_csv.CSVWriter(stream, schema))
    if form == "arrow":
        return _Arrow(pa.ipc.new_file(stream, schema))
    if form == "jsonl":
        return _JsonLines(stream)
    return _Examples(stream, write_examples)


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


class _JsonLines:
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
