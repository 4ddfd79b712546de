"""Where the rows go that the scripts write: a table in memory, or a file that is there only when the job succeeded."""

from __future__ import annotations

import contextlib
import os
import posixpath
import uuid
from typing import IO, Any, Dict, List, Optional, Tuple, Union

import fsspec
import pyarrow as pa
import pyarrow.csv as pa_csv

from akrunner.errors import SinkError
from akrunner.io import paths
from akrunner.io.writers import SPREAD, ExampleWriter, JsonLines, Writer, writer_of
from akrunner.schema import Schema, is_list
from akrunner.spec import TaskSpec


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
        self.check_types(form, schema)
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
        self._writer: Optional[Writer] = None

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

    @staticmethod
    def check_types(form: str, schema: pa.Schema) -> None:
        """Raises: SinkError: the format cannot hold a column."""
        if form == "tfrecord":
            Schema.from_arrow(schema)  # refuses what an Example cannot hold
        for field in schema:
            if form == "csv" and (pa.types.is_nested(field.type) or _is_blob(field.type)):
                raise SinkError(f"output: a CSV cannot hold column {field.name!r} ({field.type}); write parquet or arrow")
            if form == "jsonl" and _is_blob(field.type.value_type if is_list(field.type) else field.type):
                raise SinkError(f"output: JSON cannot hold column {field.name!r} ({field.type}); write parquet or arrow")

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        self._open().write(batch)

    def _open(self) -> Writer:
        if self._writer is None:
            self._stream = self._fs.open(self._partial, "wb")
            self._writer = writer_of(self.format, self._stream, self._schema, self._write_examples)
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


class PartsSink:
    """A directory with a file of each task that writes, written under another name until `commit`.

    Args: as for `FileSink`; path: ends in "/"; form: parquet unless it says otherwise.
    Attributes: partial: the directory while it is written; format; spread: whether other machines may write files of it themselves.
    Raises: SinkError: as `FileSink`.
    """

    def __init__(
        self, path: str, schema: pa.Schema, write_examples: ExampleWriter, form: Optional[str] = None, overwrite: bool = False
    ) -> None:
        self.path = os.fspath(path)
        self.format = form or "parquet"
        paths.check_format(self.format, "output_format")
        self._schema = schema
        self._write_examples = write_examples
        self._overwrite = overwrite
        try:
            self._fs, target = fsspec.core.url_to_fs(os.path.expanduser(self.path))
        except (ValueError, ImportError, OSError) as e:
            raise SinkError(f"output: cannot open {self.path}: {e}") from None
        self._target = target.rstrip("/")
        self._check_place()
        folder, name = posixpath.split(self._target)
        self.partial = posixpath.join(folder, f".{name}.{uuid.uuid4().hex[:8]}.partial")
        self.spread = self.format in SPREAD and isinstance(self._fs, fsspec.implementations.local.LocalFileSystem)
        self._open: Dict[TaskSpec, Tuple[Any, Writer]] = {}
        # what cannot be written is said before anything starts
        FileSink.check_types(self.format, schema)

    def _check_place(self) -> None:
        if self._fs.exists(self._target) and not self._fs.isdir(self._target):
            raise SinkError(f"output: {self.path} is a file; leave out the / at its end, or name a directory")
        if not self._overwrite and self._fs.exists(self._target) and self._fs.ls(self._target):
            raise SinkError(f"output: {self.path} exists; give overwrite=True (--overwrite) to replace it")

    def open(self) -> None:
        """Make the directory, so that whoever writes a file of it finds it. Raises: SinkError."""
        try:
            self._fs.makedirs(self.partial, exist_ok=True)
        except OSError as e:
            raise SinkError(f"output: cannot make {self.partial}: {e.strerror or e}") from None

    def file_of(self, task: TaskSpec) -> str:
        """Where a task's rows go meanwhile."""
        return posixpath.join(self.partial, f"part-{task.role}-{task.index}{paths.ENDINGS[self.format][0]}")

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        self._writer(task).write(batch)

    def _writer(self, task: TaskSpec) -> Writer:
        if task not in self._open:
            self.open()
            stream = self._fs.open(self.file_of(task), "wb")
            self._open[task] = stream, writer_of(self.format, stream, self._schema, self._write_examples)
        return self._open[task][1]

    def commit(self) -> None:
        """The job succeeded: finish every file and move the directory into place."""
        self.open()
        if not self._open and not self._fs.ls(self.partial):
            # a table without rows has its columns
            self._writer(TaskSpec("chief", 0))
        for stream, writer in self._open.values():
            writer.close()
            stream.close()
        before = self.partial + ".before"
        if self._fs.exists(self._target):
            self._fs.mv(self._target, before, recursive=True)
        self._fs.mv(self.partial, self._target, recursive=True)
        if self._fs.exists(before):
            self._fs.rm(before, recursive=True)

    def restart(self) -> None:
        """The job starts again: nothing was written."""
        self.abort()

    def abort(self) -> None:
        """The job failed: leave nothing, and what was there before as it was."""
        for stream, writer in self._open.values():
            with contextlib.suppress(Exception):
                writer.close()
            with contextlib.suppress(Exception):
                stream.close()
        self._open = {}
        with contextlib.suppress(Exception):
            self._fs.rm(self.partial, recursive=True)


def sink_to(
    path: str, schema: pa.Schema, write_examples: ExampleWriter, form: Optional[str] = None, overwrite: bool = False
) -> Union[FileSink, PartsSink]:
    """One file; or a directory of files, for a path that ends in "/". Args and raises: as theirs."""
    made = PartsSink if path.endswith("/") else FileSink
    return made(path, schema, write_examples, form, overwrite)


class LineWriter:
    """Writes batches to a stream as lines, each batch at once. Args: form: jsonl or csv; schema: of the batches, None: takes nothing."""

    def __init__(self, stream: IO[bytes], form: str, schema: Optional[pa.Schema]) -> None:
        self._stream = stream
        self._writer: Optional[Writer] = None
        if schema is not None:
            self._writer = JsonLines(stream) if form == "jsonl" else pa_csv.CSVWriter(stream, schema)

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
