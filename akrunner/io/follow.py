"""Turns text that is still being written (a pipe, a growing file) into batches, as soon as there are whole lines."""

from __future__ import annotations

import os
import select
import stat
import threading
from collections.abc import Callable, Iterator

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.foreign import ours
from akrunner.io import limits, parse
from akrunner.io.bad_rows import BadRows
from akrunner.io.formats.lines import Lines
from akrunner.io.readers import no_bad_rows
from akrunner.io.table import HEAD_BYTES, TableSource
from akrunner.io.tolerant import tolerant
from akrunner.schema import Schema

_BLOCK = 1 << 20
_POLL_SECONDS = 0.02


def open_text(fd: int, form: Lines, schema: Schema | None, follow: bool, name: str, bad: BadRows | None = None) -> TableSource:
    """Open the lines of a file descriptor as a table.

    Args:
        fd: the descriptor; it is read from its current position.
        form: the format of the lines.
        schema: the columns and their types; None: they are guessed from the first lines, for which the call waits.
        follow: whether to wait at the end for more lines, for ever; False: the table ends there.
        name: the path of the file, or a name for errors.
        bad: takes bad rows; None: they are errors.
    Raises:
        SourceError: the first lines do not parse, or `bad` is given and lines of this format cannot be bad.
        JobTimeoutError: the job's time was over while the call waited for them.
    """
    if bad is not None and not form.tolerant:
        raise no_bad_rows(name)
    over = threading.Event()
    head = bytearray()
    read = _growing(fd, name, over, head) if follow else _coming(fd, name)
    with ours(SourceError, f"source: cannot read {name} as {form.name}"):
        form, pieces, notes = form.text(read, name, growing=True, wait=schema is None, bad=bad)
    read_first = (lambda: bytes(head)) if follow else None
    asked = pa.schema([(field.name, field.type) for field in schema]) if schema is not None else None
    parser = tolerant(form.parser(pieces, asked), pieces, bad, schema.arrow if schema is not None else None)
    if schema is not None:
        return TableSource(
            schema.arrow,
            lambda: _judged(_as_asked(parse.batches(pieces, parser), schema.arrow), bad),
            name,
            stop=over.set,
            bad=bad,
            head=read_first,
        )
    with ours(SourceError, f"source: cannot read {name} as {form.name}"):
        guessed, batches = parse.opened(pieces, parser)
    return TableSource(
        guessed, lambda: _judged(batches, bad), name, stop=over.set, bad=bad, notes=tuple(notes), head=read_first
    )


def _as_asked(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the batches in the schema that was asked for, with its columns' NOT NULL."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _judged(batches: Iterator[pa.RecordBatch], bad: BadRows | None) -> Iterator[pa.RecordBatch]:
    """Yield the batches; judge at their end whether too many rows were bad."""
    yield from batches
    if bad is not None:
        bad.end()


def _coming(fd: int, name: str) -> Callable[[int], bytes]:
    """Return a function that reads what comes through a file descriptor. While the table is opened, it waits no longer than the job's
    time."""

    def read(size: int) -> bytes:
        while (left := limits.check_time(_rows_of(name))) is not None:
            if select.select([fd], [], [], left)[0]:
                break
        return os.read(fd, _BLOCK)

    return read


def _rows_of(name: str) -> str:
    return f"rows of {name}"


def _growing(fd: int, path: str, over: threading.Event, head: bytearray) -> Callable[[int], bytes]:
    """Return a function that reads a file that is still growing: at the file's end it waits for more, until `over` is set; while the
    table is opened, no longer than the job's time.

    The function raises SourceError if the file became shorter, was removed or was replaced by another one: what is written to
    the new file would never be read.

    Args:
        head: gets the first bytes that are read, at most `HEAD_BYTES`.
    """
    regular = stat.S_ISREG(os.fstat(fd).st_mode)

    def read(size: int) -> bytes:
        while not (data := os.read(fd, _BLOCK)):
            limits.check_time(_rows_of(path))
            if regular:
                _check_there(fd, path)
            if over.wait(_POLL_SECONDS):
                return b""
        head.extend(data[: max(0, HEAD_BYTES - len(head))])
        return data

    return read


def _check_there(fd: int, path: str) -> None:
    ours_, at = os.fstat(fd), os.lseek(fd, 0, os.SEEK_CUR)
    if ours_.st_size < at:
        raise SourceError(f"source: {path}, which is followed, became shorter: {ours_.st_size} bytes, and {at} were read")
    try:
        there = os.stat(path)
    except FileNotFoundError:
        raise SourceError(f"source: {path}, which is followed, was removed; all {at} bytes of it were read") from None
    if (there.st_ino, there.st_dev) != (ours_.st_ino, ours_.st_dev):
        raise SourceError(
            f"source: another file was put in the place of {path}, which is followed (rotated?); all {at} bytes of the old "
            "one were read"
        )
