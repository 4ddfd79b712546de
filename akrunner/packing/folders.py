"""Turns a directory of files, with a folder for each class, into an index of the files."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Sequence
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, octets_of
from akrunner.checks import counted
from akrunner.errors import SourceError
from akrunner.foreign import ours, redacted
from akrunner.io.formats import BUILT_IN
from akrunner.io.paths import is_local
from akrunner.packing import images
from akrunner.packing.index import CLASS, MTIME, NAME, ROWS, SIZE, Gathered, Index, numbers, text_of, truths
from akrunner.packing.result import quoted
from akrunner.packing.settings import MOST_BYTES

TEXTS = (".txt", ".text")
#: names of directories that are probably splits, not classes
_SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval", "holdout"}
_SHOWN = 3
#: ending of a name that says what kind of file it is
_SOME_ENDING = r"\.[A-Za-z0-9]{1,5}\z"


def listed(source: str) -> tuple[pa.Table, str | None]:
    """List every file below a directory, hidden ones left out.

    Returns: (a table of the name, size and mtime of each file; the absolute directory, or None if it is a URL).
    Raises: SourceError: the directory cannot be read, or a directory in it is reached by two paths.
    """
    with ours(SourceError, f"source: cannot look into {source}"):
        fs, path = fsspec.core.url_to_fs(os.path.expanduser(source))
        if is_local(fs):
            base = os.path.abspath(path)
            return _local(base), base
        return _remote(fs, path), None


def _local(base: str) -> pa.Table:
    gathered = Gathered()
    met = {_identity(os.stat(base)): os.fsencode(base)}
    folders = [b""]
    while folders:
        inside = folders.pop()
        path = os.path.join(os.fsencode(base), inside)
        with ours(SourceError, f"source: cannot look into {os.fsdecode(path)}"):
            names, sizes, times = _files_in(path, inside, gathered, folders, met)
        gathered.more(names, sizes, times)
    return gathered.table()


def _files_in(
    path: bytes, inside: bytes, gathered: Gathered, folders: list[bytes], met: dict[tuple[int, int], bytes]
) -> tuple[list[bytes], list[int], list[int]]:
    """List the files of one directory.

    Args:
        path: the directory.
        inside: its path below the directory that is packed.
        gathered: takes the files when there are very many.
        folders: the directory's own directories are appended to it.
        met: identity of each directory that was met -> its path.
    Returns:
        (names, sizes, times) of the files that are not in `gathered` yet.
    """
    names: list[bytes] = []
    sizes: list[int] = []
    times: list[int] = []
    above = inside + b"/" if inside else b""
    with os.scandir(path) as entries:
        for entry in entries:
            own = entry.name
            if own.startswith(b"."):
                continue
            try:
                about = entry.stat()
            except OSError:
                # a link to nothing: the error is reported when the file is read
                gathered.add(above + own, -1, 0)
                continue
            mode = stat.S_IFMT(about.st_mode)
            if mode == stat.S_IFDIR:
                first = met.setdefault(_identity(about), entry.path)
                if first != entry.path:
                    raise SourceError(f"source: {_twice(entry.path, first)}")
                folders.append(above + own)
                continue
            names.append(above + own)
            sizes.append(about.st_size if mode == stat.S_IFREG and about.st_size <= MOST_BYTES else -1)
            times.append(about.st_mtime_ns)
            if len(names) == ROWS:
                gathered.more(names, sizes, times)
                names, sizes, times = [], [], []
    return names, sizes, times


def _twice(path: bytes, first: bytes) -> str:
    """Return the error message for a directory that is reached by two paths."""
    link, other = (first, path) if os.path.islink(first) and not os.path.islink(path) else (path, first)
    return f"{os.fsdecode(link)} leads to {os.fsdecode(other)}, whose files would be there twice; remove the link"


def _identity(about: os.stat_result) -> tuple[int, int]:
    return about.st_dev, about.st_ino


def _remote(fs: Any, path: str) -> pa.Table:
    """List a remote directory; names are whole URLs, so that several threads can read the files."""
    gathered = Gathered()
    for found, about in fs.find(path, detail=True).items():
        inside = posixpath.relpath(found, path)
        if not any(part.startswith(".") for part in inside.split("/")):
            gathered.add(fs.unstrip_protocol(found).encode(), -1 if about.get("size") is None else int(about["size"]), 0)
    return gathered.table()


def ending_of(endings: tuple[str, ...]) -> str:
    """Return a regular expression that matches names with one of the endings."""
    return "(?:" + "|".join(re.escape(one) for one in endings) + r")\z"


def matching(table: pa.Table, endings: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which names have one of the endings, in upper or lower case [rows]."""
    return _matching(table, ending_of(endings))


def _matching(table: pa.Table, pattern: str) -> NDArray[np.bool_]:
    found = [truths(pc.match_substring_regex(text_of(chunk), pattern, ignore_case=True)) for chunk in table.column(NAME).chunks]
    return np.concatenate([np.zeros(0, np.bool_), *found])


def _links_to_nothing(table: pa.Table) -> NDArray[np.bool_]:
    """Return which files of a local directory could not be looked at, because they are links that lead to nothing [rows]."""
    lost: NDArray[np.bool_] = (numbers(table.column(SIZE)) < 0) & (numbers(table.column(MTIME)) == 0)
    return lost


def kind_of(table: pa.Table, source: str) -> str:
    """Return what a directory holds, by the names of its files: "images", "texts" or "rows" (tables).

    Raises: SourceError: it holds none of these.
    """
    if not table.num_rows:
        raise SourceError(f"source: there are no files in {redacted(source)}")
    tables = tuple(ending for form in BUILT_IN if not form.doubtful for ending in form.endings)
    for kind, endings in (("images", images.ENDINGS), ("rows", tables), ("texts", TEXTS)):
        if matching(table, endings).any():
            return kind
    first = min(text_of(table.column(NAME)).to_pylist())
    raise SourceError(
        f"source: by their names, the files in {redacted(source)} are no images, texts or tables ({first} ...); kind= "
        "(--kind) says what they are: images, texts, rows (of tables), or files, which are packed as they are"
    )


def index_of(table: pa.Table, base: str | None, kind: str, source: str, classes: bool, by_folder: bool) -> Index:
    """Return the index of a directory's files of one kind, with their classes.

    Args:
        table: the files of the directory, as `listed` returns them.
        base: the directory; None: it is a URL.
        kind: images, texts or files.
        source: the directory as it was given.
        classes: whether folders are classes.
        by_folder: whether the first folders are splits, and folders of classes are below them.
    Raises:
        SourceError: there are no files; files lie beside the folders of classes or splits; or all folders have names of splits.
    """
    mask = (
        matching(table, {"images": images.ENDINGS, "texts": TEXTS}[kind])
        if kind != "files"
        else np.ones(table.num_rows, np.bool_)
    )
    if not mask.any():
        # no name fits the kind that the user gave, who knows better than the names: take all files
        mask[:] = True
    # a link to nothing may have led to an image, or to a folder of images, unless its name says something else
    lost = _links_to_nothing(table) if base is not None else np.zeros(table.num_rows, np.bool_)
    mask |= lost & ~_matching(table, _SOME_ENDING)
    others = table.column(NAME).filter(array_of(~mask))
    others = others.take(pc.sort_indices(others))
    taken = table if mask.all() else table.filter(array_of(mask))
    if not taken.num_rows:
        raise SourceError(f"source: there are no files in {redacted(source)}")
    start = _start(base, source)
    if by_folder:
        _check_splits(taken, start, source)
    column: Any = pa.chunked_array([pa.nulls(taken.num_rows, pa.string())])
    if classes:
        found = pa.chunked_array([folders_of(_inside(chunk, start), by_folder) for chunk in taken.column(NAME).chunks])
        known = array_of(~lost[mask])
        _check_classes(taken.filter(known), start, found.filter(known), source, by_folder)
        column = found if found.null_count < len(found) else column
    index = Index(taken.append_column(CLASS, column), base, text_of(others[:_SHOWN]).to_pylist(), len(others), start=start)
    return index


def _start(base: str | None, source: str) -> int:
    """Return how many characters of each name belong to the directory: 0 for a local one, whose names are relative to it."""
    if base is not None:
        return 0
    root = fsspec.core.url_to_fs(source)
    return len(root[0].unstrip_protocol(root[1]).rstrip("/")) + 1


def _inside(names: pa.Array, start: int) -> pa.Array:
    """Return the names relative to the directory. Args: start: how many characters of each name belong to the directory."""
    return pc.utf8_slice_codeunits(text_of(names), start) if start else text_of(names)


def folders_of(inside: pa.Array, second: bool = False) -> pa.Array:
    """Return the first folder of each name, or with `second` the second one; null if it has none [rows]."""
    pattern = r"\A[^/]*/(?P<c>[^/]+)/" if second else r"\A(?P<c>[^/]+)/"
    return pc.struct_field(pc.extract_regex(inside, pattern), "c")


def _check_splits(table: pa.Table, start: int, source: str) -> None:
    """Raise a SourceError if files lie beside the folders of splits."""
    beside = [
        name
        for chunk in table.column(NAME).chunks
        for name in _inside(chunk, start).filter(_is_first(chunk, start)).to_pylist()
    ]
    if beside:
        one = len(beside) == 1
        raise SourceError(
            f"source: {counted(len(beside), 'file')} {'lies' if one else 'lie'} beside the folders of splits in "
            f"{redacted(source)} ({_few(sorted(beside))}): move {'it' if one else 'each'} into one of them, or out of the input"
        )


def _is_first(names: pa.Array, start: int) -> pa.Array:
    """Return which names have no folder [rows]."""
    return pc.invert(pc.match_substring(_inside(names, start), "/"))


def _few(names: Sequence[str]) -> str:
    """Return the first few names as text, for a message."""
    return ", ".join(map(quoted, names[:_SHOWN])) + (" ..." if len(names) > _SHOWN else "")


def _check_classes(table: pa.Table, start: int, found: pa.ChunkedArray, source: str, by_folder: bool) -> None:
    if 0 < found.null_count < len(found):
        beside = _inside(table.column(NAME).filter(found.is_null()), start).to_pylist()
        raise SourceError(
            f"source: {counted(len(beside), 'file')} {'lies' if len(beside) == 1 else 'lie'} beside the folders of classes in "
            f"{redacted(source)} ({_few(sorted(beside))}): move each into the folder of its class, or pack them without "
            "classes: label='none' (--label none)"
        )
    names = pc.unique(found).to_pylist()
    splits = [name for name in names if name is not None and name.lower() in _SPLITS]
    if not by_folder and splits and len(splits) == len(names):
        raise SourceError(
            f"source: the folders {', '.join(sorted(splits))} are splits by their names, not classes; split='folders' "
            "(--split folders) takes them so"
        )


def odd_classes(index: Index, classes: list[str], source: str) -> list[str]:
    """Return warnings about folders that may have been taken for classes by mistake, or are empty.

    Args: classes: the classes that have files; source: the directory as it was given.
    """
    said = []
    shown_source = redacted(source)
    if index.base is not None and classes:
        with os.scandir(index.base) as entries:
            there = sorted(os.fsencode(one.name) for one in entries if not one.name.startswith(".") and one.is_dir())
        shown = text_of(octets_of(there, pa.large_binary())).to_pylist()
        empty = [name for name in shown if name not in classes]
        if empty:
            said.append(
                f"{counted(len(empty), 'folder')} of {shown_source} {'has' if len(empty) == 1 else 'have'} nothing to pack, "
                f"and {'is' if len(empty) == 1 else 'are'} no class: {_few(empty)}"
            )
    if len(classes) == 1:
        below = _seconds(index.table, index.start, all_=False)
        if len(below) > 1:
            said.append(
                f"all files are of one class, {classes[0]!r}, as the first folders are the classes; if those in it are "
                f"({_few(below)}), pack {os.path.join(shown_source, classes[0])}"
            )
    elif len(classes) > 1 and len(below := _seconds(index.table, index.start, all_=True)) > 1:
        said.append(
            f"the first folders are the classes ({_few(classes)}), and each of them has the same folders ({_few(below)}): if "
            f"those are the classes, pack {os.path.join(shown_source, classes[0])} and the others each into an output of its "
            "own; if the first folders are splits, split='folders' (--split folders) takes them so"
        )
    return said


def _seconds(table: pa.Table, start: int, all_: bool) -> list[str]:
    """Return the names of the second-level folders, sorted, if every first-level folder has the same ones; else an empty list.

    Args: all_: whether to return an empty list also if a file lies directly in a first-level folder.
    """
    found: dict[str, set[str]] = {}
    for chunk in table.column(NAME).chunks:
        inside = _inside(chunk, start)
        pairs = pc.struct_field(pc.extract_regex(inside, r"\A(?P<c>[^/]+/[^/]+)/"), "c")
        if all_ and pairs.null_count:
            return []
        for pair in pc.unique(pairs).drop_null().to_pylist():
            first, _, second = pair.partition("/")
            found.setdefault(first, set()).add(second)
    below = list(found.values())
    return sorted(below[0]) if below and all(one == below[0] for one in below) else []


def first_folders(table: pa.Table, start: int) -> pa.Array:
    """Return the first folder of each file [rows]. Args: start: the index's `start`."""
    return folders_of(_inside(table.column(NAME), start))


def folder_splits(index: Index) -> list[str]:
    """Return the names of the first folders of a directory, which are its splits, sorted."""
    return sorted(map(str, pc.unique(first_folders(index.table, index.start)).to_pylist()))
