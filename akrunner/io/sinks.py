"""Where the rows that the scripts write go: a table in memory, or an output that exists only once the job has succeeded."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import IO, Any, Protocol, cast

import fsspec
import pyarrow as pa

from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.foreign import ours, redacted
from akrunner.io import formats, partitions
from akrunner.io.commits import behind_tables, last_step
from akrunner.io.compression import Codec, codec_named
from akrunner.io.csv_options import CsvOptions, word_of
from akrunner.io.csv_text import TAB_ENDINGS
from akrunner.io.destinations import Destination, FileDestination, FolderDestination, file_destination, folder_destination
from akrunner.io.layouts import PLAIN, Layout
from akrunner.io.manifests import sealing
from akrunner.io.parts import Parts
from akrunner.io.paths import database_of, expand
from akrunner.io.piped import Piped
from akrunner.io.readers import open_files
from akrunner.io.sorting import Sorter
from akrunner.io.table import TableSource
from akrunner.io.unfinished import is_directory
from akrunner.io.writers import ExampleWriter, Gate, Gathered, Writer
from akrunner.spec import TaskSpec


class MemorySink:
    """Keeps all rows in memory, for results that fit there.

    Args:
        schema: the schema of the rows; None: the schema of the first batch.
    """

    def __init__(self, schema: pa.Schema | None) -> None:
        self._schema = schema
        self._batches: dict[TaskSpec, list[pa.RecordBatch]] = {}

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        self._batches.setdefault(task, []).append(batch)

    def restart(self) -> None:
        """Forget all rows, because the job starts again."""
        self._batches.clear()

    def table(self) -> pa.Table:
        """Return all rows: the chief's first, then worker 0's, worker 1's, ...; each task's in the order in which it wrote
        them. Return None if no schema was given and no batch came that has one."""
        batches = [batch for task in sorted(self._batches) for batch in self._batches[task]]
        if self._schema is None and not batches:
            return None
        return pa.Table.from_batches(batches, schema=self._schema)


class CommittedSink(Protocol):
    """Takes rows, which become an output only with `commit`."""

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None: ...

    def commit(self) -> None: ...

    def commit_with(self, store: Any, commit: Callable[[Sequence[Any]], None]) -> None: ...

    def abort(self) -> None: ...


class FirstBatchSink:
    """A file, a directory or a database table that is opened with the first batch, whose columns it takes.

    All methods but `abort` and `restart` raise WriteError if the output cannot be opened or written. `commit` and `commit_with`
    also raise it if no row was written, because the columns are unknown then.

    Args:
        path: as in `FileSink`.
        opened: opens the output for rows of a schema, or raises SinkError.
    """

    def __init__(self, path: str, opened: Callable[[pa.Schema], CommittedSink]) -> None:
        self.path = path
        self._opened = opened
        self._sink: CommittedSink | None = None

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        if self._sink is None:
            try:
                self._sink = self._opened(batch.schema)
            except SinkError as e:
                raise WriteError(str(e)) from None
        self._sink.write(task, batch)

    def restart(self) -> None:
        """Drop what was written, because the job starts again; its first batch decides the columns anew."""
        self.abort()
        self._sink = None

    def commit(self) -> None:
        """Commit the output, as `FileSink.commit` does."""
        self._written().commit()

    def commit_with(self, store: object, commit: Callable[[Sequence[Any]], None]) -> None:
        """Commit together with the job's output tables, as `akrunner.engines.base.JoiningSink.commit_with` says."""
        self._written().commit_with(store, commit)

    def abort(self) -> None:
        """Drop the output, as `FileSink.abort` does."""
        if self._sink is not None:
            self._sink.abort()

    def _written(self) -> CommittedSink:
        if self._sink is None:
            raise WriteError(
                f"output: no task wrote a row, so nobody knows the columns of {redacted(self.path)}, and it was not made; for "
                "a table without rows give output_schema= (--output-schema)"
            )
        return self._sink


class _Committed(ABC):
    """An output that is written to its destination and counts only from `commit` on.

    All methods but `abort` raise WriteError if the output cannot be written.
    """

    path: str
    _destination: Destination
    _over = False

    @abstractmethod
    def _finish(self) -> None:
        """Write what is still to be written; does nothing when called again."""

    @abstractmethod
    def _drop_all(self) -> None:
        """End every writer and throw its bytes away."""

    def commit(self) -> None:
        """Finish the output and move it into place, because the job succeeded. Does nothing if that is already done."""
        if self._over:
            return
        with _told(self.path, self._destination.at):
            self._finish()
            # files are moved one by one, also in stores: a step that is cut off would leave old ones beside new ones
            last_step(redacted(self.path), self._place)
        self._over = True

    def _place(self) -> None:
        """Move the finished output into place."""
        self._destination.commit()

    def commit_with(self, store: object, commit: Callable[[Sequence[Any]], None]) -> None:
        """Commit together with the job's output tables, as `akrunner.engines.base.JoiningSink.commit_with` says."""
        with _told(self.path, self._destination.at):
            self._finish()
        commit(())
        with behind_tables():
            self.commit()

    def restart(self) -> None:
        """Drop what was written, because the job starts again."""
        self.abort()

    def abort(self) -> None:
        """Remove what was written and leave what was there before as it was, because the job failed. Does nothing after
        `commit`."""
        if self._over:
            return
        self._drop_all()
        self._destination.abort()


class FileSink(_Committed):
    """One file, which is written as the rows arrive and exists only from `commit` on (`akrunner.io.destinations` says how).

    All methods but `abort` raise WriteError if the file cannot be written.

    Args:
        path: a local path, or any URL that fsspec can open for writing.
        form: the name of a format; None: the file's name tells it.
        overwrite: whether an existing file of that name may be replaced.
        layout: how the file is written; `sort_by` means nothing here (`sink_to`).
    Raises:
        SinkError: the file exists, its directory does not, its format is unknown, or the format cannot hold a column.
    """

    _destination: FileDestination

    def __init__(
        self,
        path: str,
        schema: pa.Schema,
        write_examples: ExampleWriter,
        form: str | None = None,
        overwrite: bool = False,
        layout: Layout = PLAIN,
    ) -> None:
        self.path = os.fspath(path)
        layout.check_one_file(self.path)
        self.format, self._codec = _format_of(self.path, form)
        self._csv = _check_csv(layout.csv, self.format, self.path)
        self._schema = schema
        self._write_examples = write_examples
        self._compression = layout.compression
        formats.named(self.format).check(schema)
        layout.check(self.format, schema)
        self._destination = file_destination(self.path, overwrite, formats.named(self.format).lakes)
        self._stream: IO[bytes] | None = None
        self._gate: Gate | None = None
        self._writer: Writer | None = None
        self._finished = False

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        self.write_rows(batch)

    def write_rows(self, batch: pa.RecordBatch) -> None:
        """Append rows, whichever task they come from."""
        with _told(self.path, self._destination.at):
            self._open().write(batch)

    def _open(self) -> Writer:
        if self._writer is None:
            self._stream = self._destination.open()
            self._gate = Gate(self._stream)
            self._writer = formats.writer_of(
                self.format,
                cast(IO[bytes], self._gate),
                self._schema,
                self._write_examples,
                self._codec,
                self._compression,
                self._csv,
                self.path,
            )
        return self._writer

    def _finish(self) -> None:
        if not self._finished:
            self._open().close()
            if isinstance(self._stream, Piped):
                # its reader may not read, and the last step hears no signal
                self._stream.flush()
            self._writer = None
            self._finished = True

    def _drop_all(self) -> None:
        _drop(self._gate, self._writer)
        self._gate = self._writer = None
        self._finished = False


class PartsSink(_Committed):
    """A directory of files, which exists only from `commit` on: one file for each task that writes rows, or more if the layout
    asks for partitions or for smaller files.

    Methods raise as those of `FileSink`.

    Args:
        path: as for `FileSink`, but ends in "/".
        form: as for `FileSink`, but None means parquet.
        layout: how the files are laid out; with an `order`, rows must come in that order (`sink_to`).
    Attributes:
        partial: the directory in which the files are until `commit`.
        format: the name of the files' format.
        spread: whether other machines may write files of the directory themselves.
    """

    _destination: FolderDestination

    def __init__(
        self,
        path: str,
        schema: pa.Schema,
        write_examples: ExampleWriter,
        form: str | None = None,
        overwrite: bool = False,
        layout: Layout = PLAIN,
    ) -> None:
        self.path = os.fspath(path)
        self.format, codec = formats.written_as(formats.check_output_format(form) or "parquet")
        if overwrite and layout.append:
            raise SinkError("append= (--append) adds files to those that overwrite= (--overwrite) replaces; give one of them")
        layout = replace(layout, csv=_check_csv(layout.csv, self.format, self.path))
        self._schema, self._layout = schema, layout
        # report a column that the format cannot hold before anything starts
        layout.check(self.format, schema)
        formats.named(self.format).check(layout.files_schema(schema))
        self._destination = folder_destination(self.path, overwrite, layout.append)
        if self._destination.adds:
            _check_alike(self.path, self.format, schema, layout)
        self.partial = self._destination.partial
        # what writes a file elsewhere knows no layout, and does not say how many rows the file has
        self.spread = formats.named(self.format).spread and self._destination.at is not None and layout == PLAIN
        self._parts = Parts(self._destination, self.format, schema, write_examples, layout, codec)

    def open(self) -> None:
        """Make the directory, so that other machines which write files of it find it.

        Raises:
            SinkError: the directory cannot be made.
        """
        with ours(SinkError, f"output: cannot make {self.partial}", self._destination.at):
            self._destination.make()

    def file_of(self, task: TaskSpec) -> str:
        """Return the path of the file that holds a task's rows until `commit`."""
        return posixpath.join(self.partial, self._parts.name_of(task))

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        with _told(self.path, self._destination.at):
            self._parts.write(task, batch)

    def _finish(self) -> None:
        self._destination.make()
        self._parts.finish()
        if not self._destination.adds and self._destination.empty():
            # even a table without rows has its columns, so one file is written
            self._parts.write_nothing()
            self._parts.finish()

    def _place(self) -> None:
        layout = self._layout
        self._destination.commit(sealing(self._parts.files, self.format, self._schema, layout.partition_by, layout.manifest))

    def _drop_all(self) -> None:
        self._parts.drop()


def _check_delimiter(there: TableSource, form: str, layout: Layout, shown: str) -> None:
    """Check that the same stands between the cells of a directory's files and of those that are to be added.

    Raises:
        SinkError: it does not.
    """
    known = there.read_from.csv if there.read_from is not None else None
    own = [name for name in there.schema.names if name not in layout.partition_by]
    # nothing stands between the cells of a single column
    if not formats.named(form).delimited or known is None or not known.delimiter or len(own) < 2:
        return
    written = (layout.csv.delimiter if layout.csv is not None else "") or ","
    if written != known.delimiter:
        raise SinkError(
            f"append= (--append): {known.delimiter!r} stands between the cells of the files in {shown}, and {written!r} would stand between "
            f"those of the new ones: give output_csv='delimiter={word_of(known.delimiter)}' (--output-csv)"
        )


def _check_alike(path: str, form: str, schema: pa.Schema, layout: Layout) -> None:
    """Check that the files of a directory have the same columns as those that are to be added.

    Args:
        schema: the schema of the rows; one without columns stands for one that is not known yet.
    Raises:
        SinkError: they have others, are of another format, or are not in such directories.
    """
    shown = redacted(path)
    try:
        files = expand(path, None)
    except SourceError as e:
        raise SinkError(f"append= (--append): {shown} cannot be added to: {e}") from None
    if files.format != (formats.named(form).read_as or form):
        raise SinkError(
            f"append= (--append): the files in {shown} are {files.format}, and {form} would be added; give output_format="
            f"{files.format!r} (--output-format {files.format})"
        )
    keys = list(partitions.values_of(files.paths[0], files.base or ""))
    if keys != list(layout.partition_by):
        there = f"in directories of {', '.join(keys)}" if keys else "not in directories of columns"
        raise SinkError(
            f"append= (--append): the files in {shown} are {there}: "
            + (
                f"give partition_by={keys} (--partition-by {','.join(keys)})"
                if keys
                else "leave out partition_by= (--partition-by)"
            )
        )
    if not len(schema) or formats.named(form).examples:
        return
    wanted = layout.files_schema(schema)
    stored = formats.named(form).stored(wanted)
    try:
        opened = open_files(files, None, shown)
    except SourceError as e:
        raise SinkError(f"append= (--append): {shown} cannot be added to: {e}") from None
    _check_delimiter(opened, form, layout, shown)
    found = opened.schema
    there_ = {field.name: field.type for field in found if field.name not in layout.partition_by}
    for field in stored if stored is not None else wanted:
        kind = there_.pop(field.name, None)
        if kind is None or (stored is not None and kind != field.type):
            has = f"have {field.name!r} as {kind}" if kind is not None else f"have no column {field.name!r}"
            raise SinkError(
                f"append= (--append): the files in {shown} {has}, and the rows have {field.type}; write the same columns "
                "(output_schema=, --output-schema), or to another directory"
            )
    if there_:
        raise SinkError(
            f"append= (--append): the files in {shown} have a column {next(iter(there_))!r}, and the rows do not; write the same "
            "columns (output_schema=, --output-schema), or to another directory"
        )


class SortedSink:
    """An output whose rows are sorted before they are written to it. The order is that of all rows, whichever tasks they come
    from, so a directory has the chief's files only.

    All methods but `abort` raise WriteError if the output cannot be written.

    Args:
        sink: the output.
        schema: the schema of the rows.
        layout: says by what they are sorted.
    """

    def __init__(self, sink: FileSink | PartsSink, schema: pa.Schema, layout: Layout) -> None:
        self.path = sink.path
        self._sink = sink
        self._sorter = Sorter(schema, layout.order)
        self._sorted = False

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        self.write_rows(batch)

    def write_rows(self, batch: pa.RecordBatch) -> None:
        """Take rows, whichever task they come from."""
        with ours(WriteError, "sort_by: cannot keep the rows until they are sorted (TMPDIR)", self._sorter.folder):
            self._sorter.write(batch)

    def commit(self) -> None:
        """Write the rows, and commit the output, as `FileSink.commit` does."""
        self._write_sorted()
        self._sink.commit()

    def commit_with(self, store: object, commit: Callable[[Sequence[Any]], None]) -> None:
        """Commit together with the job's output tables, as `akrunner.engines.base.JoiningSink.commit_with` says."""
        self._write_sorted()
        self._sink.commit_with(store, commit)

    def _write_sorted(self) -> None:
        if self._sorted:
            return
        with ours(WriteError, "sort_by: cannot sort the rows (TMPDIR)", self._sorter.folder):
            for batch in self._sorter.batches():
                self._sink.write(TaskSpec("chief", 0), batch)
        self._sorted = True

    def restart(self) -> None:
        """Drop what was written, because the job starts again."""
        self.abort()
        self._sorted = False

    def abort(self) -> None:
        """Drop the rows and the output, as `FileSink.abort` does."""
        self._sorter.drop()
        self._sink.abort()


def _check_csv(csv: CsvOptions | None, form: str, path: str) -> CsvOptions | None:
    """Return how a file is written if it is CSV.

    Raises:
        SinkError: the user said it, and the file is of another format, or its rows could not be read again.
    """
    if csv is not None and not formats.named(form).delimited:
        raise SinkError(
            f"output_csv= (--output-csv) is for CSV, and {redacted(path)} is {form}; leave it out, or give output_format= "
            "(--output-format) csv"
        )
    if csv is not None and not csv.delimiter:
        csv = replace(csv, delimiter="\t" if path.lower().endswith(TAB_ENDINGS) else ",")
        if csv.delimiter in (csv.decimal, csv.quote):
            raise SinkError(
                f"output_csv: {csv.delimiter!r} stands between cells, and cannot be decimal or quote, too; give another "
                "delimiter, such as delimiter=semicolon"
            )
    return csv


def _format_of(path: str, given: str | None) -> tuple[str, Codec | None]:
    """Return (the name of the format of an output file, how the file is compressed).

    Args:
        given: the value of `output_format=`.
    Raises:
        SinkError: the file's name does not tell its format, or tells another than `given`.
    """
    if path.endswith("/"):
        raise SinkError(f"output: {redacted(path)} is a directory; name a file in it")
    if os.path.isdir(os.path.expanduser(path)):
        # no format would change that
        raise is_directory(path)
    form, asked = formats.written_as(formats.check_output_format(given) or "")
    by_name, codec = formats.format_of(path), codec_named(path)
    if form and by_name == formats.named(form).read_as and path.lower().endswith(formats.named(form).endings):
        by_name = form
    if form and (by_name not in (None, form) or (asked is not None and codec is not asked and (by_name or codec))):
        shown = f"{by_name or ''}{codec.ending if codec is not None else ''}"
        ending = formats.named(form).endings[0] + (asked.ending if asked is not None else "")
        raise SinkError(
            f"output: {redacted(path)} is {shown} by its name, and output_format={given!r} (--output-format {given}) is "
            f"another format: leave that out, or let the name end in {ending}"
        )
    form, codec = form or by_name or "", asked or codec
    if not form and codec is not None:
        # `t.parquet.gz`: the error says more than that the name does not tell a format
        form = formats.format_of(path[: -len(codec.ending)]) or ""
    if not form:
        database = database_of(path)
        if database is not None:
            raise SinkError(f"output: {redacted(path)} would be a database: {database}")
        if re.search(r"\?(?:.*&)?partition(?:_by)?=", path):
            url = f"delta+{path}" if "://" in path else f"delta:///{path}"
            raise SinkError(
                f"output: {redacted(path)} has an option of a lakehouse table, and no such table is there; for a new table of Delta "
                f"write {redacted(url)}"
            )
        scheme, mark, _ = path.partition("://")
        if mark and "::" not in scheme:
            # of a misspelt scheme, it does not matter that no format is named
            with ours(SinkError, f"output: cannot open {path}"):
                fsspec.get_filesystem_class(scheme)
        raise SinkError(
            f"output: {redacted(path)} does not say its format ({formats.known_endings(path)}); give output_format= "
            "(--output-format)"
        )
    if codec is not None:
        formats.check_compressed(form, codec, path)
    return form, codec


def _told(path: str, at: str | None) -> AbstractContextManager[None]:
    return ours(WriteError, f"output: cannot write {path}", at)


def _drop(gate: Gate | None, writer: Writer | None) -> None:
    """End a writer whose bytes are not wanted. It cannot simply be dropped: it would write its end when it is
    garbage-collected."""
    if gate is not None:
        gate.shut()
    with contextlib.suppress(Exception):
        if writer is not None:
            writer.close()


def format_shown(path: str, form: str | None) -> str:
    """Return the format of a planned output; "" if the output is no file, or if another check reports what is wrong with its
    name."""
    return form or ("parquet" if path.endswith("/") else formats.format_of(path)) or ""


def sink_to(
    path: str,
    schema: pa.Schema,
    write_examples: ExampleWriter,
    form: str | None = None,
    overwrite: bool = False,
    layout: Layout = PLAIN,
) -> FileSink | PartsSink | SortedSink:
    """Open a sink for one file; or for a directory of files, if the path ends in "/". The arguments and errors are those of
    `FileSink` and `PartsSink`; the rows are sorted if the layout says so."""
    made = PartsSink if path.endswith("/") else FileSink
    sink = made(path, schema, write_examples, form, overwrite, layout)
    return SortedSink(sink, schema, layout) if layout.sort_by else sink


class LineWriter:
    """Writes batches to a stream as lines, each batch at once.

    Methods raise BrokenPipeError if the reader of the stream is gone, and WriteError if the stream cannot be written.

    Args:
        form: jsonl or csv.
        schema: the schema of the batches; None: batches are ignored.
        name: the name of the stream in errors.
        csv: how CSV is written; None: as the name says, or with commas.
    """

    def __init__(
        self,
        stream: IO[bytes],
        form: str,
        schema: pa.Schema | None,
        name: str = "stdout",
        csv: CsvOptions | None = None,
    ) -> None:
        self._stream = stream
        self._name = name
        self._writer: Writer | None = None
        if schema is not None:
            with self._told():
                self._writer = self._begun(stream, form, schema, csv)

    def _begun(self, stream: IO[bytes], form: str, schema: pa.Schema, csv: CsvOptions | None) -> Writer | None:
        lines = formats.lines_named(form)
        return lines.written_as(csv, self._name).line_writer(stream, schema) if lines is not None else None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        local = os.path.abspath(self._name) if os.path.exists(self._name) else None
        with ours(WriteError, f"output: cannot write {self._name}", local):
            try:
                yield
            except BrokenPipeError as e:
                broken = e
            else:
                return
        raise broken

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is not None:
            with self._told():
                self._writer.write(batch)
                self._stream.flush()

    def close(self) -> None:
        """Write the end of the lines; the stream stays open."""
        if self._writer is not None:
            with self._told():
                self._writer.close()
                self._stream.flush()


class ArrowStream(LineWriter):
    """Writes batches to a stream as Arrow's IPC stream, small ones joined. Methods and arguments are those of `LineWriter`."""

    def _begun(self, stream: IO[bytes], form: str, schema: pa.Schema, csv: CsvOptions | None) -> Writer | None:
        # pyarrow may close what it is given
        return Gathered(pa.ipc.new_stream(cast(IO[bytes], Gate(stream)), schema))
