"""Text files as tables: a row a line; several, side by side, as columns. No Python object a line."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.errors import SourceError
from akrunner.foreign import ours, redacted
from akrunner.io.lines import count as count_bytes
from akrunner.io.table import TableSource

_CHUNK = 4 << 20
#: the longest line
_MOST_BYTES = 1 << 30
_ROWS = 16384
#: files, and bytes of each, of which it is looked at how lines end
_LOOKED, _BEGINNING = 100, 64 << 10
#: what other texts begin with; UTF-32 begins as UTF-16 does, and goes on
_OTHERS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def lines_of(path: str, column: str) -> TableSource:
    """The lines of a text file (gzip and bzip2 are unpacked), without their ends."""
    schema = pa.schema([pa.field(column, pa.string())])
    return TableSource(
        schema, lambda: (pa.record_batch([lines], schema=schema) for lines in _lines(path)), redacted(path), replayable=True
    )


def side_by_side(paths: Sequence[str], columns: Sequence[str]) -> TableSource:
    """Files whose lines belong together, as the columns of a table. Raises: SourceError: one has more lines than another."""
    counts = [count_lines(path) for path in paths]
    if len(set(counts)) > 1:
        for path in paths:
            # bytes of other texts are counted as lines by chance
            for _ in _lines(path):
                pass
        shown = ", ".join(f"{redacted(path)} {count:,}" for path, count in zip(paths, counts))
        raise SourceError(
            f'source: files that stand side by side need as many lines each, and they have: {shown}; in quotes, "*.txt" reads one after the other'
        )
    schema = pa.schema([pa.field(column, pa.string()) for column in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        streams = [_Cut(_lines(path)) for path in paths]
        while True:
            parts = [stream.take(_ROWS) for stream in streams]
            if not len(parts[0]):
                return
            if len({len(part) for part in parts}) > 1:
                raise SourceError(f"source: {redacted(paths[0])} or its neighbour was changed while it was read")
            yield pa.record_batch(parts, schema=schema)

    return TableSource(schema, batches, " and ".join(redacted(path) for path in paths), replayable=True)


def columns_for(paths: Sequence[str]) -> list[str]:
    """Names for the columns of files: theirs, without endings."""
    names = []
    for path in paths:
        stem = os.path.basename(path)
        for ending in (".gz", ".bz2", ".txt", ".text"):
            stem = stem.removesuffix(ending)
        names.append(stem or "text")
    if len(set(names)) < len(names):
        raise SourceError(
            f"source: two of the files are called {names[0]!r}; name their columns: columns='text,label' (--columns)"
        )
    return names


def count_lines(path: str) -> int:
    """How many there are; the last one may lack its end."""
    lines, last = 0, b"\n"
    with ours(SourceError, f"source: cannot read {path}"), _opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            lines += count_bytes(chunk, b"\n")
            last = chunk[-1:]
    return lines + (last != b"\n")


def other_ends(paths: Sequence[str]) -> list[str]:
    """What is to be said of files whose lines do not end as lines do here: with CR alone. Their beginnings are looked at. Raises: SourceError."""
    odd = []
    for path in paths[:_LOOKED]:
        with ours(SourceError, f"source: cannot read {path}"), _opened(path) as stream:
            text = stream.read(_BEGINNING)
        # the other half of what ends one may be cut off
        alone = text[:-1].count(b"\r") - text.count(b"\r\n")
        if alone > text.count(b"\n"):
            odd.append(redacted(path))
    if not odd:
        return []
    more = f" and {len(odd) - 1:,} more" if len(odd) > 1 else ""
    return [
        f"{odd[0]}{more}: lines seem to end with CR alone, as on old Macs, and a row ends with LF (or CR LF) only, so that many are one row: "
        "tr '\\r' '\\n' < OLD > NEW makes lines of them"
    ]


def _opened(path: str) -> Any:
    return pa.input_stream(path, compression="detect")


def _lines(path: str) -> Iterator[pa.StringArray]:
    """Arrays of lines. Raises: SourceError: the file cannot be read, is no UTF-8, or a line is too long."""
    row, rest = 0, b""
    with ours(SourceError, f"source: cannot read {path}"), _opened(path) as stream:
        first = True
        while True:
            chunk = stream.read(_CHUNK)
            if first:
                chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
            text = rest + chunk if rest else chunk
            whole = len(text) if not chunk else text.rfind(b"\n") + 1
            if not chunk and not text:
                return
            if whole:
                lines = _cut(text[:whole], path, row)
                row += len(lines)
                yield lines
            rest = text[whole:]
            if len(rest) > _MOST_BYTES:
                raise SourceError(f"source: {path}: line {row + 1} is longer than {_MOST_BYTES >> 20} MiB; is it a text file?")
            if not chunk:
                return


def _cut(text: bytes, path: str, row: int) -> pa.StringArray:
    flat = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(flat == 10)
    if not len(ends) or ends[-1] != len(flat) - 1:
        ends = np.concatenate((ends, [len(flat)]))
    # every line has its end in it for a moment
    offsets = np.concatenate(([0], np.minimum(ends + 1, len(flat)))).astype(np.int32)
    lines = pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    lines = pc.replace_substring_regex(lines, r"\r?\n\z", "") if b"\r" in text else pc.replace_substring(lines, "\n", "")
    try:
        return lines.cast(pa.string())
    except pa.ArrowInvalid:
        bad = next(i for i, line in enumerate(lines.to_pylist()) if not _is_text(line))
        raise SourceError(
            f"source: {path}: line {row + bad + 1} is no UTF-8 text{other_text(text) if not row else ''}"
        ) from None


def other_text(data: bytes) -> str:
    """In what a text that is no UTF-8 is written, behind that; "": it does not say."""
    begins = next((name for mark, name in _OTHERS.items() if data.startswith(mark)), None)
    return f" (it begins as {begins})" if begins else ""


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Cut:
    """Arrays of any lengths -> arrays of the length that is asked for, but for the last."""

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
