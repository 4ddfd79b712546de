"""Paths and URLs -> files of one format, on whatever fsspec opens."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass
from typing import List, Optional, Sequence, Union

import fsspec

from akrunner.errors import ConfigError, SourceError
from akrunner.foreign import redacted
from akrunner.schema import nearest

PathLike = Union[str, "os.PathLike[str]"]

#: format -> endings
ENDINGS = {
    "csv": (".csv", ".csv.gz", ".csv.bz2"),
    "parquet": (".parquet", ".pq"),
    "jsonl": (".jsonl", ".ndjson", ".json", ".jsonl.gz"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "tfrecord": (".tfrecord", ".tfrecords", ".tfr", ".tfrecord.gz", ".tfrecords.gz"),
}


@dataclass(frozen=True)
class Files:
    """Attributes: paths: in order, as the filesystem names them; format: key of `ENDINGS`; base: their common directory."""

    filesystem: fsspec.AbstractFileSystem
    paths: List[str]
    format: str
    base: Optional[str]

    @property
    def is_local(self) -> bool:
        return "file" in _protocols(self.filesystem)


def local_path(given: PathLike, parameter: str, instead: str = "") -> str:
    """The absolute path of a file or directory that has to be on this machine: `file://` is taken, other URLs are no paths.

    Args: parameter: what it was given as; instead: half a sentence, what works in place of a URL.
    Raises: ConfigError: it is a URL, or nothing.
    """
    try:
        text = os.fsdecode(given)
    except TypeError:
        raise ConfigError(f"{parameter} must be a path, not {type(given).__name__}") from None
    text = re.sub(r"^file://(localhost)?(?=/)|^file:(?=/[^/])", "", text)
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*(?=://|::)", text)
    if scheme:
        hint = f"; {instead}" if instead else ""
        raise ConfigError(
            f"{parameter}: {redacted(text)} is a URL, and {parameter} must be on this machine's file systems{hint}"
        )
    if not text or "\0" in text:
        raise ConfigError(f"{parameter}: the path is empty" if not text else f"{parameter}: the path has a NUL byte in it")
    return os.path.abspath(os.path.expanduser(text))


def format_of(path: str) -> Optional[str]:
    """By the name's ending; None when it tells nothing."""
    name = path.lower()
    return next((form for form, endings in ENDINGS.items() if name.endswith(endings)), None)


def check_format(form: Optional[str], parameter: str) -> None:
    """Raises: SourceError: no format is called so."""
    if form is not None and form not in ENDINGS:
        raise SourceError(f"{parameter}={form!r}: known formats are {', '.join(ENDINGS)}{nearest(form, list(ENDINGS))}")


def expand(given: Union[PathLike, Sequence[PathLike]], form: Optional[str]) -> Files:
    """Find the files.

    Args:
        given: a path, many, globs or directories; local or any URL fsspec opens.
        form: their format; None: by their names.
    Raises: SourceError: nothing is there, formats are mixed, or a name tells none.
    """
    check_format(form, "input_format")
    names = [os.fspath(given)] if isinstance(given, (str, os.PathLike)) else [os.fspath(one) for one in given]
    if not names:
        raise SourceError("source: the list of paths is empty")
    found: List[str] = []
    filesystem: Optional[fsspec.AbstractFileSystem] = None
    base: Optional[str] = None
    for name in names:
        fs, path = _open_url(name)
        if filesystem is not None and type(fs) is not type(filesystem):
            raise SourceError(f"source: {names[0]} and {name} are on different file systems; give them to two jobs")
        filesystem = fs
        matched, directory = _matches(fs, path, name)
        base = base or directory
        found.extend(matched)
    assert filesystem is not None
    formats = {format_of(path) for path in found} if form is None else {form}
    if len(formats) > 1:
        raise SourceError(f"source: files of several formats ({', '.join(sorted(map(str, formats)))}); give input_format=")
    only = formats.pop()
    if only is None:
        endings = " ".join(endings[0] for endings in ENDINGS.values())
        raise SourceError(f"source: {found[0]} does not say its format (known: {endings}); give input_format= (--input-format)")
    return Files(filesystem, found, only, base)


def _open_url(name: str) -> "tuple[fsspec.AbstractFileSystem, str]":
    try:
        fs, path = fsspec.core.url_to_fs(os.path.expanduser(name))
    except (ValueError, ImportError) as e:
        # fsspec says so itself for all others
        hint = "; install them: pip install 'fsspec[http]'" if "HTTPFileSystem" in str(e) else ""
        raise SourceError(f"source: cannot open {name}: {e}{hint}") from None
    return fs, path


def _matches(fs: fsspec.AbstractFileSystem, path: str, name: str) -> "tuple[List[str], Optional[str]]":
    try:
        if fs.isdir(path):
            every = sorted(p for p in fs.find(path) if not _is_hidden(p, path))
            if not every:
                raise SourceError(f"source: the directory {name} has no files in it")
            return every, path
        if fs.exists(path):
            return [path], None
        if any(mark in path for mark in "*?["):
            matched = sorted(p for p in fs.glob(path) if fs.isfile(p))
            if not matched:
                raise SourceError(f"source: no file matches {name}")
            return matched, None
    except OSError as e:
        raise SourceError(f"source: cannot look at {name}: {e}") from e
    folder = posixpath.dirname(path)
    beside = [posixpath.basename(p) for p in fs.ls(folder, detail=False)] if fs.isdir(folder) else []
    raise SourceError(f"source: there is no file {name}{nearest(posixpath.basename(path), beside)}")


def _is_hidden(path: str, base: str) -> bool:
    """As data tools have it: `_SUCCESS`, `.crc` and the like are not data."""
    inside = posixpath.relpath(path, base)
    return any(part.startswith((".", "_")) for part in inside.split("/"))


def _protocols(fs: fsspec.AbstractFileSystem) -> Sequence[str]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
