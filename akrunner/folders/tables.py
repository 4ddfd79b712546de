"""Many small files as one table, which is read as it is drawn.

::

    directory, pattern -> listing, sorted -> Pool, batches ahead -> images: path, label, bytes, height, width, format
                                                                   texts:  path, label, text
                                                                   lines:  path, line, text
    files of lines, side by side -> a column of each

Nothing is read for columns that names alone tell.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import array_of, octets_of, texts_of
from akrunner.checks import check_path, kind_in_words
from akrunner.errors import SourceError
from akrunner.folders import images, listing, texts
from akrunner.folders.gathered import MOST_BYTES, NAME, SIZE, Gathered, numbers, released, text_of
from akrunner.folders.pool import BATCH_BYTES, EMPTY, THREADS, Batch, Pool, asked_of
from akrunner.folders.remote import Unfetched
from akrunner.folders.words import quoted
from akrunner.foreign import ours, redacted
from akrunner.io import paths
from akrunner.io.paths import Files
from akrunner.io.table import BATCH_ROWS, TableSource

#: format -> its columns
SCHEMAS = {
    "images": pa.schema(
        [
            ("path", pa.string()),
            ("label", pa.string()),
            ("bytes", pa.binary()),
            ("height", pa.int64()),
            ("width", pa.int64()),
            ("format", pa.string()),
        ]
    ),
    "texts": pa.schema([("path", pa.string()), ("label", pa.string()), ("text", pa.string())]),
    "lines": pa.schema([("path", pa.string()), ("line", pa.int64()), ("text", pa.string())]),
}
_ENDINGS = {"images": images.ENDINGS, "texts": listing.TEXTS, "lines": texts.ENDINGS}
#: columns that the name of a file tells
_OF_NAMES = {"path", "label"}
#: how many files an error names
_SHOWN = 3
#: texts with more bytes are not read as a whole for their lines
_LARGE = 8 << 20
_WILD = "*?["
_OTHER_NAME = "their columns have the names of the files: give one of them by a copy, or a link, of another name"


def open_folder(
    source: Any, form: str, columns: Sequence[str] | None = None, read: Collection[str] | None = None
) -> TableSource:
    """Open a directory, or the files that a pattern matches, as a table of a row for each file or line, sorted by name.

    Args:
        source: a path or URL of a directory, a pattern, or a file; for lines also several files, which stand side by side.
        form: images, texts or lines.
        columns: the only columns of the table, if it has them all; None: all.
        read: the columns whose values are needed; the others may be null. None: all.
    Raises:
        SourceError: there is no such file in it, or one of them cannot be read, as far as the listing shows.
    """
    names = _names_of(source, form)
    if len(names) > 1:
        return _side_by_side(names, form)
    (name,) = names
    found, read_from = _found(name, form)
    _check_listed(found)
    schema = SCHEMAS[form]
    if columns is not None and set(columns) <= set(schema.names):
        schema = pa.schema([schema.field(one) for one in dict.fromkeys(columns)])
    needed = set(schema.names) if read is None else set(read) & set(schema.names)
    if "label" in needed:
        _check_labels(found)
    rows = _READ[form]
    return TableSource(schema, lambda: rows(found, schema, needed), redacted(name), replayable=True, read_from=read_from)


def _names_of(source: Any, form: str) -> list[str]:
    given = source if isinstance(source, (list, tuple)) else [source]
    if not given or not all(isinstance(one, (str, os.PathLike)) for one in given):
        raise SourceError(f"input_format={form!r} (--input-format) is for a directory; the source is {type(source).__name__}")
    names = [check_path("source", one, SourceError) for one in given]
    if len(names) > 1 and form != "lines":
        raise SourceError(
            f"source: input_format={form!r} (--input-format) takes one directory or pattern, and {len(names)} are given; give the "
            "directory that holds them, or a pattern in quotes"
        )
    return names


def _side_by_side(names: list[str], form: str) -> TableSource:
    """Open files whose lines belong together as one table, with a column for each file."""
    odd = next((one for one in names if any(mark in one for mark in _WILD) or listing.directory_of(one) is not None), None)
    if odd is not None:
        raise SourceError(
            f"source: of several sources of lines each is a file, a column of the table, and {redacted(odd)} is none; give a "
            "directory or a pattern alone"
        )
    files = None if any("://" in one for one in names) else paths.expand(names, form)
    every = files.paths if files is not None else names
    table = texts.side_by_side(every, texts.columns_for(every, _OTHER_NAME))
    return TableSource(table.schema, table.open, table.name, replayable=True, read_from=files)


@dataclass(frozen=True)
class _Found:
    """The files of a table.

    Attributes:
        table: name, size and time of each file, sorted by name.
        base: the directory that names are relative to; None: names are whole URLs.
        start: for URLs, how many characters of each name belong to the directory.
        shown: the source as it was given, without secrets.
        form: images, texts or lines.
        can_pack: whether `akrunner pack` takes the source, as it is a directory.
    """

    table: pa.Table
    base: str | None
    start: int
    shown: str
    form: str
    can_pack: bool = False

    def inside(self, first: int, end: int) -> pa.Array:
        """Return the names of some files, relative to the directory, as text [rows]."""
        names = listing.inside_of(self.table.column(NAME)[first:end], self.start)
        # what stands behind the name in a URL may be a signature
        return pc.replace_substring_regex(names, r"\?.*\z", "") if self.base is None else names

    def of_names(self, first: int, end: int) -> dict[str, pa.Array]:
        """Return the columns that the names of some files tell."""
        names = self.inside(first, end)
        return {"path": names, "label": listing.folders_of(names)}

    def place(self, row: int) -> str:
        """Return the path or URL of a file."""
        name = self.table.column(NAME)[row].as_py()
        return name.decode() if self.base is None else os.fsdecode(os.path.join(os.fsencode(self.base), name))

    def words(self, row: int) -> str:
        """Return the path or URL of a file for messages."""
        (name,) = text_of(self.table.column(NAME)[row : row + 1]).to_pylist()
        return redacted(name) if self.base is None else quoted(os.path.join(self.base, name))


def _found(name: str, form: str) -> tuple[_Found, Files]:
    """List the files of a directory or a pattern. Returns: the files, and what an output must not replace."""
    fs, path = paths.filesystem_of(name)
    if "http" in paths.protocols(fs):
        return _of_web(name, form), Files(fs, [path], form, None)
    with ours(SourceError, f"source: cannot look at {name}"):
        if not fs.isdir(path):
            return _matched(name, form)
    table, base = listing.listed(name)
    table = _of_kind(table, form, name)
    return (
        _Found(_sorted(table), base, listing.start_of(base, name), redacted(name), form, True),
        Files(fs, [base or path], form, base or path),
    )


def _of_web(name: str, form: str) -> _Found:
    """Return a file of a web server, which does not say which files there are."""
    path = urlsplit(name).path
    if path.endswith("/") or not path or any(mark in path for mark in _WILD):
        raise SourceError(
            f"source: {redacted(name)} is a directory or a pattern, and a web server does not list its files; name a file, or "
            "copy them to a directory"
        )
    gathered = Gathered()
    gathered.add(name.encode(), -1, 0)
    return _Found(gathered.table(), None, name.index(path, name.index("://") + 3) + path.rindex("/") + 1, redacted(name), form)


def _of_kind(table: pa.Table, form: str, name: str) -> pa.Table:
    """Return the files that are of a format by their names, or that say by no ending what they are."""
    if not table.num_rows:
        raise SourceError(f"source: there are no files in {redacted(name)}")
    mask = listing.matching(table, _ENDINGS[form])
    if not mask.any():
        mask = ~listing.matching_pattern(table, listing.SOME_ENDING)
    if mask.any():
        return table if mask.all() else table.filter(array_of(mask))
    first = sorted(text_of(table.column(NAME)[: 1 << 16]).to_pylist())[:_SHOWN]
    raise SourceError(
        f"source: by their names, there are no {'images' if form == 'images' else 'texts'} in {redacted(name)} "
        f"({', '.join(map(quoted, first))}{' ...' if table.num_rows > _SHOWN else ''}): such names end with "
        f"{' '.join(_ENDINGS[form])}; a pattern takes files whatever their names are: "
        f"'{redacted(name).rstrip('/')}/**/*.ENDING'"
    )


def _matched(name: str, form: str) -> tuple[_Found, Files]:
    """List the files that a pattern matches, or the one file that a path names."""
    files = paths.expand(name, form)
    base = files.base if files.base is not None else posixpath.dirname(files.paths[0])
    gathered = Gathered()
    every = files.paths
    if "/." not in name:
        # a wildcard matches no hidden directory, as none of a directory is read
        every = [path for path in every if not any(part.startswith(".") for part in posixpath.relpath(path, base).split("/"))]
    if not every:
        raise SourceError(f"source: no file matches {redacted(name)}, but for hidden ones")
    if files.is_local:
        base = os.path.abspath(base)
        for path in every:
            about = os.stat(path)
            gathered.add(os.fsencode(os.path.relpath(path, base)), about.st_size, about.st_mtime_ns)
        return _Found(_sorted(gathered.table()), base, 0, redacted(name), form), files
    for path in every:
        gathered.add(files.filesystem.unstrip_protocol(path).encode(), -1, 0)
    start = len(files.filesystem.unstrip_protocol(base).rstrip("/")) + 1
    return _Found(_sorted(gathered.table()), None, start, redacted(name), form), files


def _sorted(table: pa.Table) -> pa.Table:
    table = table.take(pc.sort_indices(table.column(NAME)))
    released()
    return table


def _check_listed(found: _Found) -> None:
    """Raise a SourceError if the listing shows that files cannot be read."""
    sizes = numbers(found.table.column(SIZE))
    odd = (sizes == 0) & (found.form == "images") | (sizes > MOST_BYTES)
    if found.base is not None:
        odd |= sizes < 0
    rows = np.flatnonzero(odd).tolist()
    if rows:
        raise _refused(found, {row: _why_not(found, row, int(sizes[row])) for row in rows[: _SHOWN + 1]}, len(rows))


def _why_not(found: _Found, row: int, size: int) -> str:
    if size == 0:
        return EMPTY
    if size > 0:
        return f"it has {size:,} bytes; a row can have {MOST_BYTES:,}"
    try:
        mode = os.stat(found.place(row)).st_mode
    except FileNotFoundError:
        return "a link that leads to nothing"
    except OSError as e:
        return str(e.strerror)
    return f"it is {kind_in_words(mode)}, not a file"


def _check_labels(found: _Found) -> None:
    """Raise a SourceError if the first folders are splits by their names, so that they cannot be labels."""
    labels: set[str | None] = set()
    for first in range(0, found.table.num_rows, BATCH_ROWS):
        labels |= set(pc.unique(listing.folders_of(found.inside(first, first + BATCH_ROWS))).to_pylist())
    splits = listing.splits_among([one for one in labels if one is not None]) if None not in labels else []
    if splits:
        raise SourceError(
            f"source: the folders {', '.join(splits)} of {found.shown} are splits by their names, not labels; give one of them "
            f"({os.path.join(found.shown, splits[-1])}), or leave label out: columns=['path', ...] (--columns path,...)"
        )


def _refused(found: _Found, problems: dict[int, str], number: int | None = None) -> SourceError:
    """Return the error for files that cannot be rows.

    Args: problems: row -> why, half a sentence; number: how many there are; None: those of `problems`.
    """
    number = len(problems) if number is None else number
    # packing can do more about an image than a job
    resized = [why.partition("; resize=") for why in problems.values()]
    shown = [f"{found.words(row)}: {why}" for row, (why, _, _) in zip(sorted(problems), resized)][:_SHOWN]
    more = f"; and {number - len(shown):,} more" if number > len(shown) else ""
    it, them = ("it", "the file") if number == 1 else ("them", "the files")
    if all(isinstance(why, Unfetched) for why in problems.values()):
        do = "if that passes, run the job again"
    elif found.form != "images" or not found.can_pack:
        do = f"mend or remove {it}; a pattern that does not match {it} leaves {it} out"
    elif any(mark for _, mark, _ in resized):
        do = f"remove {them}, or `akrunner pack {found.shown} OUT --resize WIDTHxHEIGHT` makes PNGs that a job reads: --input OUT/all"
    else:
        do = f"mend or remove {it}; `akrunner pack {found.shown} OUT --bad-rows skip` leaves {it} out, for --input OUT/all"
    return SourceError(f"source: {'; '.join(shown)}{more}: {do}")


def _of_batch(found: _Found, batch: Batch) -> tuple[int, int]:
    """Return (first row and end of the rows) of a batch."""
    first = batch.key[0] + batch.first
    return first, first + len(batch.datas)


def _named_only(found: _Found, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows of which names alone tell the values that are needed."""
    for first in range(0, found.table.num_rows, BATCH_ROWS):
        end = min(first + BATCH_ROWS, found.table.num_rows)
        yield _record(found.of_names(first, end), schema, end - first)


def _record(columns: dict[str, pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Return a batch of these columns, in which those that are missing are null."""
    whole = [columns[field.name] if field.name in columns else pa.nulls(rows, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(whole, schema=schema)


def _image_rows(found: _Found, schema: pa.Schema, needed: set[str]) -> Iterator[pa.RecordBatch]:
    if needed <= _OF_NAMES:
        yield from _named_only(found, schema)
        return
    formats = texts_of(images.FORMATS)
    with Pool(found.base, THREADS) as pool:
        for batch in pool.read(asked_of(found.table, 0, found.table.num_rows)):
            first, end = _of_batch(found, batch)
            looked = images.look(batch.datas)
            problems = {**looked.problems, **batch.problems}
            if problems:
                raise _refused(found, {first + row: problems[row] for row in sorted(problems)})
            columns = found.of_names(first, end)
            if "bytes" in needed:
                columns["bytes"] = octets_of([data for data in batch.datas if data is not None], pa.binary())
            columns["height"], columns["width"] = array_of(looked.height), array_of(looked.width)
            columns["format"] = formats.take(array_of(looked.format))
            # the files' own bytes go before the caller works with their copy
            del batch
            yield _record(columns, schema, end - first)


def _text_rows(found: _Found, schema: pa.Schema, needed: set[str]) -> Iterator[pa.RecordBatch]:
    if needed <= _OF_NAMES:
        yield from _named_only(found, schema)
        return
    with Pool(found.base, THREADS, texts.unmarked) as pool:
        for batch in pool.read(asked_of(found.table, 0, found.table.num_rows)):
            first, end = _of_batch(found, batch)
            # a text may be empty
            problems = {row: why for row, why in batch.problems.items() if why != EMPTY}
            if problems:
                raise _refused(found, {first + row: problems[row] for row in sorted(problems)})
            columns = found.of_names(first, end)
            columns["text"] = octets_of([data or b"" for data in batch.datas], pa.string())
            del batch
            yield _record(columns, schema, end - first)


def _line_rows(found: _Found, schema: pa.Schema, needed: set[str]) -> Iterator[pa.RecordBatch]:
    sizes = numbers(found.table.column(SIZE))
    packed = listing.matching(found.table, (".gz", ".bz2"))
    whole = (sizes > 0) & (sizes <= _LARGE) & ~packed
    small = found.table.filter(array_of(whole))
    held: list[tuple[int, int, pa.Array]] = []
    rows, size = 0, 0
    with Pool(found.base, THREADS) as pool:
        files = _one_by_one(pool, small)
        for row in np.flatnonzero(sizes != 0).tolist():
            place = found.place(row)
            if whole[row]:
                data, why = next(files)
                if data is None:
                    raise _refused(found, {row: why})
                data = data.removeprefix(b"\xef\xbb\xbf")
                parts: Iterator[pa.Array] = iter([texts.cut(data, place, 0)] if data else [])
            else:
                parts = texts.lines_in(place)
            line = 1
            for part in parts:
                for some in (part[at : at + BATCH_ROWS] for at in range(0, len(part), BATCH_ROWS)):
                    held.append((row, line, some))
                    line, rows, size = line + len(some), rows + len(some), size + some.nbytes
                    if rows >= BATCH_ROWS or size >= BATCH_BYTES:
                        yield _of_lines(found, held, schema, needed)
                        held, rows, size = [], 0, 0
        if held:
            yield _of_lines(found, held, schema, needed)


def _one_by_one(pool: Pool, table: pa.Table) -> Iterator[tuple[bytes | None, str]]:
    """Yield (the bytes of a file, why there are none) of each file of a listing."""
    for batch in pool.read(asked_of(table, 0, table.num_rows)):
        for row, data in enumerate(batch.datas):
            yield None if data is None else bytes(data), batch.problems.get(row, "")


def _of_lines(found: _Found, held: list[tuple[int, int, pa.Array]], schema: pa.Schema, needed: set[str]) -> pa.RecordBatch:
    """Return a batch of lines. Args: held: (row of the file, number of the first line, lines) of each part."""
    columns: dict[str, pa.Array] = {}
    counts = np.array([len(part) for _, _, part in held], np.int64)
    if "path" in needed:
        first, end = held[0][0], held[-1][0] + 1
        files = np.repeat(np.array([row for row, _, _ in held], np.int64) - first, counts)
        columns["path"] = found.inside(first, end).take(array_of(files))
    if "line" in needed:
        # counts up within each part
        steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        columns["line"] = array_of(np.repeat(np.array([line for _, line, _ in held], np.int64), counts) + steps)
    if "text" in needed:
        columns["text"] = pa.concat_arrays([part for _, _, part in held])
    return _record(columns, schema, int(counts.sum()))


_READ: dict[str, Callable[[_Found, pa.Schema, set[str]], Iterator[pa.RecordBatch]]] = {
    "images": _image_rows,
    "texts": _text_rows,
    "lines": _line_rows,
}
