"""Text that is still being written (a pipe, a growing file) -> batches, as soon as whole lines are there."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator

import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.foreign import ours
from akrunner.io import parse
from akrunner.io.formats.lines import Lines
from akrunner.io.table import TableSource
from akrunner.io.text import Pieces
from akrunner.schema import Schema

_BLOCK = 1 << 20
_POLL_SECONDS = 0.02


def open_text(fd: int, form: Lines, schema: Schema | None, follow: bool, name: str) -> TableSource:
    """Lines of a file descriptor as a table.

    Args:
        fd: read from where it stands; form: of the lines.
        schema: columns and types; None: guessed from the first lines that come, which are waited for.
        follow: at the end wait for more, for ever; else the end is the end.
        name: of the file, or for errors.
    Raises: SourceError: the first lines do not parse.
    """
    pieces = Pieces(_growing(fd, name) if follow else lambda size: os.read(fd, _BLOCK), form.quoted, name, growing=True)
    asked = pa.schema([(field.name, field.type) for field in schema]) if schema is not None else None
    parser = form.parser(pieces, asked)
    if schema is not None:
        return TableSource(schema.arrow, lambda: _as_asked(parse.batches(pieces, parser), schema.arrow), name)
    with ours(SourceError, f"source: cannot read {name} as {form.name}"):
        guessed, batches = parse.opened(pieces, parser)
    return TableSource(guessed, lambda: batches, name)


def _as_asked(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """With what the schema says of nulls."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _growing(fd: int, path: str) -> Callable[[int], bytes]:
    """What reads a file that is still growing: waits at its end.

    Raises: SourceError: it became shorter, was removed, or has another in its place: what is written to that would never be read.
    """
    regular = stat.S_ISREG(os.fstat(fd).st_mode)

    def read(size: int) -> bytes:
        while not (data := os.read(fd, _BLOCK)):
            if regular:
                _check_there(fd, path)
            time.sleep(_POLL_SECONDS)
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
            f"source: another file was put in the place of {path}, which is followed (rotated?); all {at} bytes of the old one were read"
        )
