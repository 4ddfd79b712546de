"""Text files as tables: a row for each line, or several files side by side as columns. No Python object is made for a line."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.errors import SourceError
from akrunner.foreign import ours, redacted
from akrunner.io.lines import count as count_bytes
from akrunner.io.table import TableSource

#: endings of the names of text files
ENDINGS = (".txt", ".text", ".txt.gz", ".txt.bz2")
_CHUNK = 4 << 20
#: most bytes of a line
_MOST_BYTES = 1 << 30
_ROWS = 16384
#: how many files are looked at to see how their lines end, and how many bytes of each
_LOOKED, _BEGINNING = 100, 64 << 10
#: byte order mark -> encoding that is not supported; those of UTF-32 come first, as UTF-16's is a beginning of one
_OTHERS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def lines_of(path: str, column: str) -> TableSource:
    """Return the lines of a text file, without line ends, as a table; gzip and bzip2 files are unpacked."""
    schema = pa.schema([pa.field(column, pa.string())])
    return TableSource(
        schema, lambda: (pa.record_batch([lines], schema=schema) for lines in lines_in(path)), redacted(path), replayable=True
    )


def side_by_side(paths: Sequence[str], columns: Sequence[str]) -> TableSource:
    """Return files whose lines belong together as columns of a table. Raises: SourceError: one has more lines than another."""
    counts = [count_lines(path) for path in paths]
    if len(set(counts)) > 1:
        for path in paths:
            # the counts of a file in another encoding are meaningless: reading its lines raises the error that says so
            for _ in lines_in(path):
                pass
        shown = ", ".join(f"{redacted(path)} {count:,}" for path, count in zip(paths, counts))
        raise SourceError(
            f'source: files that stand side by side need as many lines each, and they have: {shown}; in quotes, "*.txt" reads '
            "one after the other"
        )
    schema = pa.schema([pa.field(column, pa.string()) for column in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        streams = [_Cut(lines_in(path)) for path in paths]
        while True:
            parts = [stream.take(_ROWS) for stream in streams]
            if not len(parts[0]):
                return
            if len({len(part) for part in parts}) > 1:
                raise SourceError(f"source: {redacted(paths[0])} or its neighbour was changed while it was read")
            yield pa.record_batch(parts, schema=schema)

    return TableSource(schema, batches, " and ".join(redacted(path) for path in paths), replayable=True)


def columns_for(paths: Sequence[str], instead: str = "name their columns: columns='text,label' (--columns)") -> list[str]:
    """Return a column name for each file: the file's name without endings.

    Args: instead: what to do about two files of one name.
    Raises: SourceError: two are the same.
    """
    names = []
    for path in paths:
        stem = os.path.basename(path)
        for ending in (".gz", ".bz2", ".txt", ".text"):
            stem = stem.removesuffix(ending)
        names.append(stem or "text")
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise SourceError(f"source: two of the files are called {twice!r}; {instead}")
    return names


def count_lines(path: str) -> int:
    """Return the number of lines of a file; the last one may lack its line end."""
    lines, last = 0, b"\n"
    with ours(SourceError, f"source: cannot read {path}"), _opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            lines += count_bytes(chunk, b"\n")
            last = chunk[-1:]
    return lines + (last != b"\n")


def other_ends(paths: Sequence[str]) -> list[str]:
    """Return a warning about files whose lines seem to end with CR alone, which is not taken for a line end here.

    Only the beginnings of the first files are read. Raises: SourceError: a file cannot be read.
    """
    odd = []
    for path in paths[:_LOOKED]:
        with ours(SourceError, f"source: cannot read {path}"), _opened(path) as stream:
            text = stream.read(_BEGINNING)
        # a CR at the end of the text does not count, as its LF may be cut off
        alone = text[:-1].count(b"\r") - text.count(b"\r\n")
        if alone > text.count(b"\n"):
            odd.append(redacted(path))
    if not odd:
        return []
    more = f" and {len(odd) - 1:,} more" if len(odd) > 1 else ""
    return [
        f"{odd[0]}{more}: lines seem to end with CR alone, as on old Macs, and a row ends with LF (or CR LF) only, so that "
        "many are one row: tr '\\r' '\\n' < OLD > NEW makes lines of them"
    ]


def _opened(path: str) -> Any:
    if "://" in path:
        return fsspec.open(path, "rb", compression="infer")
    return pa.input_stream(path, compression="detect")


def lines_in(path: str) -> Iterator[pa.StringArray]:
    """Read a file as arrays of lines. Raises: SourceError: the file cannot be read or is not UTF-8, or a line is too long."""
    row, size = 0, 0
    # the beginning of a line, in pieces: to join them for each piece that comes would take a long line quadratic time
    begun: list[bytes] = []
    with ours(SourceError, f"source: cannot read {path}"), _opened(path) as stream:
        first = True
        while True:
            chunk = stream.read(_CHUNK)
            if first:
                chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
            whole = chunk.rfind(b"\n") + 1
            if whole or (not chunk and begun):
                lines = cut(b"".join([*begun, chunk[:whole]]), path, row)
                row += len(lines)
                begun, size = [], 0
                yield lines
            if not chunk:
                return
            if whole < len(chunk):
                begun.append(chunk[whole:] if whole else chunk)
                size += len(begun[-1])
            if size > _MOST_BYTES:
                raise SourceError(
                    f"source: {redacted(path)}: line {row + 1} is longer than {_MOST_BYTES >> 20} MiB; is it a text file?"
                )


def cut(text: bytes, path: str, row: int) -> pa.StringArray:
    """Return the lines of a text. Args: text: not empty; path, row: the file, and how many of its lines came before, for errors.

    Raises: SourceError: a line is not UTF-8.
    """
    flat = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(flat == 10)
    if not len(ends) or ends[-1] != len(flat) - 1:
        ends = np.concatenate((ends, [len(flat)]))
    # first cut into lines that still have their line ends, which are removed below
    offsets = np.concatenate(([0], np.minimum(ends + 1, len(flat)))).astype(np.int32)
    lines = pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    lines = pc.replace_substring_regex(lines, r"\r?\n\z", "") if b"\r" in text else pc.replace_substring(lines, "\n", "")
    try:
        return lines.cast(pa.string())
    except pa.ArrowInvalid:
        bad = next(i for i, line in enumerate(lines.to_pylist()) if not _is_text(line))
        raise SourceError(
            f"source: {redacted(path)}: line {row + bad + 1} is no UTF-8 text{other_text(text) if not row else ''}"
        ) from None


def unmarked(data: bytes) -> tuple[bytes, str]:
    """Return (the bytes of a text file without a byte order mark, why they are no text or "")."""
    text = data.removeprefix(codecs.BOM_UTF8)
    try:
        text.decode()
    except UnicodeDecodeError as e:
        return b"", f"it is no UTF-8 text (byte {e.start}){other_text(text)}"
    return text, ""


def other_text(data: bytes) -> str:
    """Return words for a message that name the encoding of a text that is not UTF-8; "": its beginning does not tell."""
    begins = next((name for mark, name in _OTHERS.items() if data.startswith(mark)), None)
    return f" (it begins as {begins})" if begins else ""


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Cut:
    """Turns arrays of any lengths into arrays of the length that is asked for; the last may be shorter."""

    def __init__(self, arrays: Iterator[pa.Array]) -> None:
        self._arrays = arrays
        self._held: list[pa.Array] = []
        self._rows = 0

    def take(self, rows: int) -> pa.Array:
        while self._rows < rows and (more := next(self._arrays, None)) is not None:
            self._held.append(more)
            self._rows += len(more)
        whole = pa.concat_arrays(self._held) if self._held else pa.array([], pa.string())
        taken, rest = whole[:rows], whole[rows:]
        self._held, self._rows = [rest], len(rest)
        return taken
