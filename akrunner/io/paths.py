"""Turns paths and URLs into files of one format, on any file system that fsspec can open."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import unquote

import fsspec

from akrunner.checks import ALIKE, check_url, is_within, kind_in_words
from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.foreign import ours, redacted
from akrunner.io import formats, lakehouse
from akrunner.io.csv_options import CsvOptions
from akrunner.io.csv_text import HEAD_BYTES, looks_separated
from akrunner.io.unfinished import ENDINGS, HIDDEN, is_passed_over
from akrunner.wire.near import nearest

PathLike = str | os.PathLike[str]

#: seconds until a web server has taken a connection; and without a byte of an answer
_CONNECT_SECONDS, _SILENCE = 30.0, 60.0
#: the ending of names of files that may have a table in them, or any other text
_TEXT = ".txt"


@dataclass(frozen=True)
class Files:
    """The files that a source is read from.

    Attributes:
        filesystem: the file system of all the files.
        paths: the files in order, as the file system names them.
        format: the name of their format.
        base: the directory that was given, or the one that stands before a pattern's first wildcard.
        directories: the directories that were given.
        patterns: the patterns that were given.
        csv: how they are written, if they are CSV; None: nobody has said it.
        sheet: the table that is read of each file, if the format has several in one; None: none was named.
        guessed: whether only the files' names, or their beginnings, tell their format.
    """

    filesystem: fsspec.AbstractFileSystem
    paths: list[str]
    format: str
    base: str | None
    directories: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    csv: CsvOptions | None = None
    sheet: str | None = None
    guessed: bool = False

    @property
    def is_local(self) -> bool:
        return is_local(self.filesystem)


def local_path(given: PathLike, parameter: str, instead: str = "") -> str:
    """Return the absolute path of a file or directory that must be on this machine. `file://` URLs are taken; other URLs are
    not.

    Args:
        parameter: the name of the parameter that has the path.
        instead: half a sentence that says what works in place of a URL.
    Raises:
        ConfigError: the path is a URL, is empty, is no text, or has a NUL byte in it.
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


def expand(given: PathLike | Sequence[PathLike], form: str | None, untold: str | None = None) -> Files:
    """Find the files of a source.

    Args:
        given: a path, or many; globs or directories; local, or any URL that fsspec can open.
        form: the files' format; None: their names tell it.
        untold: the format of files whose names do not tell it; None: their content tells it.
    Raises:
        SourceError: there are no files, their formats differ, or a name does not tell its format.
    """
    formats.check_format(form, "input_format")
    names = [os.fspath(given)] if isinstance(given, (str, os.PathLike)) else [os.fspath(one) for one in given]
    if not names:
        raise SourceError("source: the list of paths is empty")
    names, sheet = _without_sheets([_text_of(name) for name in names], form)
    matches = [_matched(name) for name in names]
    first = matches[0]
    for name, match in zip(names, matches):
        if type(match.filesystem) is not type(first.filesystem):
            raise SourceError(
                f"source: {redacted(names[0])} and {redacted(name)} are on different file systems; give them to two jobs"
            )
    found = [path for match in matches for path in match.paths]
    _check_tables(names, matches, form)
    only = _one_format(first.filesystem, found, form, untold)
    if formats.format_of(found[0]) is None:
        _check_tables(names, matches, only)
    return Files(
        first.filesystem,
        found,
        only,
        next((match.base for match in matches if match.base is not None), None),
        tuple(match.directory for match in matches if match.directory is not None),
        tuple(match.pattern for match in matches if match.pattern is not None),
        sheet=sheet,
        guessed=form is None,
    )


def _without_sheets(names: list[str], form: str | None) -> tuple[list[str], str | None]:
    """Return the names without `?sheet=NAME`, and the name of the sheet; None if no name has one.

    Raises:
        SourceError: several sheets are named.
    """
    found = [re.fullmatch(r"(.+)\?sheet=([^?]+)", name, re.DOTALL) for name in names]
    found = [one if one is not None and _has_sheets(form or formats.format_of(one[1])) else None for one in found]
    sheets = {unquote(one[2]) if one is not None else None for one in found}
    if len(sheets) > 1:
        shown = ", ".join(sorted(one or "none" for one in sheets))
        raise SourceError(
            f"source: one table is read from sheets of one name, and several are given ({shown}); give them to several jobs"
        )
    return [name if one is None else one[1] for name, one in zip(names, found)], sheets.pop()


def _has_sheets(form: str | None) -> bool:
    return form is not None and formats.named(form).sheets


def _one_format(fs: fsspec.AbstractFileSystem, found: list[str], form: str | None, untold: str | None) -> str:
    told = {form or formats.format_of(path): path for path in reversed(found)}
    if len(told) > 1:
        shown = ", ".join(f"{one or 'unknown'}: {redacted(path)}" for one, path in sorted(told.items(), key=str))
        raise SourceError(f"source: files of several formats ({shown}); give those of one, or input_format= (--input-format)")
    ((only, path),) = told.items()
    only = only or untold
    head = _head(fs, path) if only is None else b""
    only = only or formats.beginning(head[: formats.HEAD_BYTES])
    if only is None and path.lower().endswith(_TEXT) and looks_separated(head):
        only = formats.csv.FORMAT.name
    if only is None:
        database = database_of(path, head) if is_local(fs) else None
        if database is not None:
            raise SourceError(f"source: {redacted(path)} is a database: {database}")
        raise SourceError(
            f"source: {redacted(path)} does not say its format ({formats.known_endings(path)}); give input_format= "
            f"(--input-format), which may also be {', '.join(one.name for one in formats.FOLDERS)}: a folder of such files"
        )
    return only


def _head(fs: fsspec.AbstractFileSystem, path: str) -> bytes:
    """Return the first bytes of a file whose name does not tell its format."""
    with ours(SourceError, f"source: cannot read {path}"), fs.open(path, "rb") as file:
        head: bytes = file.read(HEAD_BYTES if path.lower().endswith(_TEXT) else formats.HEAD_BYTES)
    return head


#: databases in a file: the URL's scheme, the offset of the file's mark, the mark, the endings of names
_DATABASES = (
    ("sqlite", 0, b"SQLite format 3\0", (".sqlite", ".sqlite3", ".db3", ".db")),
    ("duckdb", 8, b"DUCK", (".duckdb", ".ddb")),
)


def database_of(path: str, head: bytes = b"") -> str | None:
    """Return advice that gives the URL of a file that is a database; None if the file is not a database.

    Args:
        head: the file's first bytes, if they are known; without them its name decides.
    """
    for scheme, at, mark, endings in _DATABASES if "://" not in path else ():
        if head[at:].startswith(mark) if head else path.lower().endswith(endings):
            return f"write {scheme}:///{redacted(path)}?table=NAME"
    return None


def _in_lakes(form: str | None) -> bool:
    return form is not None and formats.named(form).lakes


def _check_tables(names: list[str], matches: list[_Match], form: str | None) -> None:
    for name, match in zip(names, matches):
        lakes = [path for path in match.paths if _in_lakes(form or formats.format_of(path))]
        directories = {posixpath.dirname(path) for path in lakes} | (
            {match.directory} if match.directory is not None else set()
        )
        # a web page has no parent directories that could be looked at
        if directories and (match.directory is not None or "http" not in protocols(match.filesystem)):
            with ours(SourceError, f"source: cannot look at {name}"):
                lakehouse.refuse(match.filesystem, redacted(name), sorted(directories), is_local(match.filesystem))


def _text_of(name: str | bytes) -> str:
    if not isinstance(name, str) or "\0" in name or not name:
        raise SourceError(f"source: {name!r} is no path")
    return name


@dataclass(frozen=True)
class _Match:
    """The files that one of the given names stands for. Attributes: as in `Files`."""

    filesystem: fsspec.AbstractFileSystem
    paths: list[str]
    base: str | None = None
    directory: str | None = None
    pattern: str | None = None


def _matched(name: str) -> _Match:
    fs, path = filesystem_of(name)
    local = is_local(fs)
    with ours(SourceError, f"source: cannot look at {name}"):
        if fs.isdir(path):
            every = _beneath(path) if local else sorted(p for p in fs.find(path) if not _is_hidden(p, path))
            if not every:
                # it may be a table whose data is hidden, or lies elsewhere
                lakehouse.refuse(fs, redacted(name), [path], local)
                raise SourceError(f"source: the directory {redacted(name)} has no files in it")
            return _Match(fs, every, path, directory=path)
        if fs.exists(path):
            if local:
                _check_regular(path)
            return _Match(fs, [path])
        if any(mark in path for mark in "*?["):
            base = posixpath.dirname(re.split(r"[*?\[]", path)[0])
            if local:
                _check_open(base, posixpath.relpath(path, base).split("/")[:-1])
            matches = sorted(p for p in fs.glob(path) if not _is_hidden_name(p, path))
            every = [p for p in matches if not fs.isdir(p)]
            if not every:
                why = _only_directories(matches, base) or _others(fs, base)
                raise SourceError(f"source: no file matches {redacted(name)}{why}")
            for one in every if local else ():
                _check_regular(one)
            return _Match(fs, every, base, pattern=path)
        raise _not_there(fs, path, name)


def _only_directories(matches: list[str], base: str) -> str:
    """Return half a sentence about the directories that a pattern matches, "" if there are none. Args: base: what is above them."""
    if not matches:
        return ""
    few = ", ".join(redacted(one) for one in matches[:3]) + (", ..." if len(matches) > 3 else "")
    are = "a directory" if len(matches) == 1 else f"{len(matches):,} directories"
    return f", but {are} ({few}): give {redacted(base)} itself, or a pattern of the files in them"


#: stores whose paths begin with the name of a bucket
_BUCKETS = frozenset({"s3", "s3a", "gs", "gcs", "oss"})
_ONE_SLASH = re.compile(r"([A-Za-z][A-Za-z0-9+]+):/(?!/)")
#: how many names an error shows
_FEW = 5


def _others(fs: fsspec.AbstractFileSystem, base: str) -> str:
    """Return half a sentence about what there is where a pattern matches nothing. Args: base: the directory above its first wildcard."""
    if not is_local(fs):
        return ""
    if fs.exists(base) and not fs.isdir(base):
        return f": {redacted(base)} is no directory"
    if not fs.isdir(base):
        above, own = posixpath.split(base)
        return f": there is no directory {redacted(base)}{nearest(own, _names(fs, above), ALIKE)}"
    there = _names(fs, base)
    few = ", ".join(there[:_FEW]) + (", ..." if len(there) > _FEW else "")
    return f": in {redacted(base)} there {'is' if len(there) == 1 else 'are'} {few or 'no files'}"


def _names(fs: fsspec.AbstractFileSystem, folder: str) -> list[str]:
    """Return the names of what is in a directory, without hidden ones; none if there is no such directory."""
    names = [posixpath.basename(one) for one in fs.ls(folder, detail=False)] if fs.isdir(folder) else []
    return sorted(name for name in names if not name.startswith(HIDDEN))


def _not_there(fs: fsspec.AbstractFileSystem, path: str, name: str) -> SourceError:
    """Return the error for a file that does not exist.

    Raises:
        OSError: the file system gives another reason than that the file does not exist (such as HTTP's 403).
    """
    try:
        fs.info(path)
    except FileNotFoundError:
        pass
    folder, stem = posixpath.dirname(path.rstrip("/")), name.rstrip("/")
    web = "http" in protocols(fs)
    beside = [posixpath.basename(p) for p in fs.ls(folder, detail=False)] if not web and fs.isdir(folder) else []
    near = nearest(posixpath.basename(path.rstrip("/")), beside, ALIKE, before=redacted(stem[: stem.rfind("/") + 1]))
    bucket = path.partition("/")[0]
    if not near and _BUCKETS.intersection(protocols(fs)) and not fs.exists(bucket):
        near = f": there is no bucket {redacted(bucket)}"
    scheme = _ONE_SLASH.match(name)
    if scheme is not None:
        near = f": write {scheme[1]}:// with two slashes"
    return SourceError(f"source: there is no file {redacted(name)}{near}")


def _beneath(base: str) -> list[str]:
    """Return every file of a local directory and of the directories in it, in the order of their names. Links to directories
    are followed.

    Raises:
        SourceError: an entry is not a file, or a directory is met twice.
    """
    found: list[str] = []
    met = {os.path.realpath(base): base}
    for directory, folders, files in os.walk(base, followlinks=True, onerror=_raise):
        folders[:] = [one for one in folders if not one.startswith(HIDDEN)]
        for folder in folders:
            path = os.path.join(directory, folder)
            first = met.setdefault(os.path.realpath(path), path)
            if first != path:
                raise SourceError(
                    f"source: {path} is a link to {first}, whose files are read already; remove it, or name the files"
                )
        for name in files:
            path = os.path.join(directory, name)
            if not is_passed_over(name):
                _check_regular(path)
                found.append(path)
    return sorted(found)


def _check_open(folder: str, parts: Sequence[str]) -> None:
    """Check that the directories into which a pattern leads can be read: a glob silently leaves out the files of those that
    cannot.

    Args:
        folder: the directory to check.
        parts: the pattern's components for the directories below `folder`.
    Raises:
        SourceError: a directory cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            # `**` may stand for any depth
            deep = bool(parts) and "**" in parts[0]
            below = [
                one.path
                for one in (entries if parts else ())
                if one.is_dir(follow_symlinks=not deep)
                and not _is_hidden_name(one.name, parts[0])
                and (deep or fnmatch.fnmatch(one.name, parts[0]))
            ]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as e:
        _raise(e)
    for path in below:
        _check_open(path, parts if deep else parts[1:])


def _raise(error: OSError) -> NoReturn:
    raise SourceError(f"source: cannot look into {error.filename}: {error.strerror}") from error


def _check_regular(path: str) -> None:
    """Check that a path is a regular file.

    Raises:
        SourceError: it is a pipe, a device, a socket, or a link to nothing.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise SourceError(f"source: {path} is a link to nothing; remove it, or name the files") from None
    if not stat.S_ISREG(mode):
        raise SourceError(
            f"source: {path} is {kind_in_words(mode)}, not a file, and can be read only once if at all; write it to a file "
            f"first, or read it as a stream (stream(source='-'), akrunner stream -i -: on stdin)"
        )


def check_apart(files: Files, output: PathLike) -> None:
    """Check that the output does not overwrite or extend the input.

    Raises:
        SinkError: the output is one of these files, or would lie in a directory, or match a pattern, that was given as input.
    """
    name = os.fspath(output)
    try:
        fs, path = fsspec.core.url_to_fs(os.path.expanduser(name))
    except (ValueError, ImportError, TypeError, OSError):
        return  # the output's own check reports it
    if type(fs) is not type(files.filesystem):
        return
    real: Callable[[str], str] = os.path.realpath if files.is_local else posixpath.normpath
    target = real(path)
    shown = redacted(name)
    for one in files.paths:
        source = real(one)
        same = files.is_local and os.path.exists(path) and os.path.samefile(one, path)
        if same or is_within(source, target):
            raise SinkError(
                f"output: {shown} is, or holds, the input {redacted(one)}, which would be read and replaced at the same time; "
                "write to another place (--output)"
            )
    for directory in files.directories:
        if is_within(target, real(directory)):
            raise SinkError(
                f"output: {shown} lies in the input directory {redacted(directory)}: the next run would read it, too"
            )
    for pattern in files.patterns:
        if fnmatch.fnmatch(target, posixpath.join(real(posixpath.dirname(pattern)), posixpath.basename(pattern))):
            raise SinkError(f"output: {shown} matches the input {redacted(pattern)}: the next run would read it, too")


def local_place(output: str) -> str | None:
    """Return the path at which an output lies on this machine, also if a URL (`file://`) names it; None: it does not."""
    try:
        fs, path = fsspec.core.url_to_fs(os.path.expanduser(output))
    except (ValueError, ImportError, TypeError, OSError):
        return None  # the output's own check reports it
    return str(path) if is_local(fs) else None


def filesystem_of(name: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """Return the file system of a path or URL, and the path there. Raises: SourceError: no file system opens it."""
    check_url("source", name, SourceError)
    with ours(SourceError, f"source: cannot open {name}"):
        fs, path = fsspec.core.url_to_fs(os.path.expanduser(name), **_of_web(name))
    return fs, path


def _of_web(name: str) -> dict[str, Any]:
    """Return how long fsspec waits for a web server: until nothing has come for a while.

    aiohttp gives up each answer after five minutes, however well it comes, and waits as long for one of which nothing comes.
    """
    used = [one for one in ("http", "https") if f"{one}://" in name]
    if not used:
        return {}
    try:
        from aiohttp import ClientTimeout
    except ImportError:
        # fsspec says what is missing
        return {}
    waits = {"timeout": ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE)}
    # what the user has configured stays
    return {one: {"client_kwargs": {**waits, **fsspec.config.conf.get(one, {}).get("client_kwargs", {})}} for one in used}


def _is_hidden(path: str, base: str) -> bool:
    """Whether a path is not data, by the convention of data tools (`_SUCCESS`, `.crc` and the like), or is still being
    written."""
    inside = posixpath.relpath(path, base)
    return inside.endswith(ENDINGS) or any(part.startswith(HIDDEN) for part in inside.split("/"))


def _is_hidden_name(path: str, pattern: str) -> bool:
    """Whether a wildcard matched a hidden file that the pattern does not name."""
    return posixpath.basename(path).startswith(HIDDEN) and not posixpath.basename(pattern).startswith(HIDDEN)


def is_local(fs: fsspec.AbstractFileSystem) -> bool:
    """Whether the file system's paths are paths of this machine."""
    return "file" in protocols(fs)


def protocols(fs: fsspec.AbstractFileSystem) -> Sequence[str]:
    """Return the schemes of a file system's URLs; one file system may have several."""
    return (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
