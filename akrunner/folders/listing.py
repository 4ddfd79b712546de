"""Lists a directory of files, on this machine or at a URL, and tells by names what the files are and which classes they have."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Collection
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.errors import SourceError
from akrunner.folders.gathered import MTIME, NAME, ROWS, SIZE, Gathered, numbers, text_of, truths
from akrunner.foreign import ours
from akrunner.io.paths import is_local, protocols

TEXTS = (".txt", ".text")
#: names of directories that are probably splits, not classes
SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval", "holdout"}
#: ending of a name that says what kind of file it is
SOME_ENDING = r"\.([A-Za-z0-9]{1,5}|[A-Za-z]{6,9})\z"


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
            sizes.append(about.st_size if mode == stat.S_IFREG else -1)
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


def directory_of(name: str) -> str | None:
    """Return the directory that a path or URL names; None: it does not name a directory."""
    if any(mark in name for mark in "*?[") and not os.path.isdir(os.path.expanduser(name)):
        return None
    with ours(SourceError, f"source: cannot look at {name}"):
        fs, path = fsspec.core.url_to_fs(os.path.expanduser(name))
        if is_local(fs):
            return os.path.realpath(path) if os.path.isdir(path) else None
        web = "http" in protocols(fs)
        return (name.rstrip("/") or name) if not web and not posixpath.splitext(path)[1] and fs.isdir(path) else None


def ending_of(endings: tuple[str, ...]) -> str:
    """Return a regular expression that matches names with one of the endings."""
    return "(?:" + "|".join(re.escape(one) for one in endings) + r")\z"


def matching(table: pa.Table, endings: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which names have one of the endings, in upper or lower case [rows]."""
    return matching_pattern(table, ending_of(endings))


def matching_pattern(table: pa.Table, pattern: str) -> NDArray[np.bool_]:
    found = [truths(pc.match_substring_regex(text_of(chunk), pattern, ignore_case=True)) for chunk in table.column(NAME).chunks]
    return np.concatenate([np.zeros(0, np.bool_), *found])


def links_to_nothing(table: pa.Table) -> NDArray[np.bool_]:
    """Return which files of a local directory could not be looked at, because they are links that lead to nothing [rows]."""
    lost: NDArray[np.bool_] = (numbers(table.column(SIZE)) < 0) & (numbers(table.column(MTIME)) == 0)
    return lost


def start_of(base: str | None, source: str) -> int:
    """Return how many characters of each name belong to the directory: 0 for a local one, whose names are relative to it."""
    if base is not None:
        return 0
    root = fsspec.core.url_to_fs(source)
    return len(root[0].unstrip_protocol(root[1]).rstrip("/")) + 1


def inside_of(names: pa.Array, start: int) -> pa.Array:
    """Return the names relative to the directory. Args: start: how many characters of each name belong to the directory."""
    return pc.utf8_slice_codeunits(text_of(names), start) if start else text_of(names)


def splits_among(folders: Collection[str]) -> list[str]:
    """Return the names of folders, sorted, if all of them are splits by their names; else an empty list."""
    return sorted(folders) if all(name.lower() in SPLITS for name in folders) else []


def folders_of(inside: pa.Array, second: bool = False) -> pa.Array:
    """Return the first folder of each name, or with `second` the second one; null if it has none [rows]."""
    pattern = r"\A[^/]*/(?P<c>[^/]+)/" if second else r"\A(?P<c>[^/]+)/"
    return pc.struct_field(pc.extract_regex(inside, pattern), "c")
