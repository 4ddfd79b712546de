"""Copies of broken files in a directory where the user can look at them, with a table that says why each was left out.

::

    DIR/bad_rows.csv    path, why, copy (path below DIR; empty: there is no copy), no_copy (why there is none)
    DIR/cat/7.jpg       a copy, at the path that the file has below the input; for a URL: DIR/HOST/path of the URL
"""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
import filecmp
import hashlib
import os
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from akrunner import leftovers
from akrunner.checks import kind_in_words
from akrunner.errors import WriteError
from akrunner.folders.gathered import MOST_BYTES
from akrunner.folders.pool import is_url, why_not
from akrunner.folders.remote import Unfetched, too_large
from akrunner.folders.words import quoted
from akrunner.foreign import underway

LIST = "bad_rows.csv"
_HEAD = ("path", "why", "copy", "no_copy")
_PIECE = 1 << 20
#: most bytes of a file's name, with room for a mark that makes it unique
_LONGEST = 200
#: errors that are due to a file's name, not to the disk
_NAMES = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP)
#: errors of file systems that have no hard links
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
#: errors of file systems that lock nothing; NFS locks only files that are open for writing, and no directory
_NO_LOCKS = (errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL, errno.EBADF)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

#: a row of the table: (path, why it was left out, path of its copy below the directory, why there is no copy)
Kept = tuple[str, str, str, str]


def keep(base: str | None, name: bytes, data: Any | None, why: str, folder: str, most: int = MOST_BYTES) -> tuple[str, str]:
    """Copy a broken file to the directory for broken files, without replacing any file there.

    Args:
        base: the directory that names are relative to.
        name: path or URL of the file.
        data: the bytes of a URL that came; None: nothing came. A path is read again.
        why: why the file was left out.
        folder: the directory for broken files.
        most: most bytes of a file that is copied.
    Returns:
        (path of the copy below `folder`, ""), or ("", why there is none).
    Raises:
        WriteError: the copy cannot be written, for example because the disk is full.
    """
    if not name:
        return "", "it has no path"
    if isinstance(why, Unfetched):
        return "", "it could not be fetched"
    if is_url(name) and data is None:
        return "", "nothing of it is here"
    with underway(WriteError, f"bad_rows (--bad-rows): cannot copy to {folder}", at=folder):
        try:
            if is_url(name):
                place = _put(folder, name, lambda: iter((data,)))
            else:
                place, no = _copied(os.path.join(os.fsencode(base or "."), name), name, str(why), folder, most)
                if no:
                    return "", no
        except OSError as e:
            if e.errno not in _NAMES:
                raise
            taken = e.errno in (errno.ENOTDIR, errno.ELOOP)
            return "", "a link or a file lies where its directory would be" if taken else why_not(e)
    return place.decode("utf-8", "backslashreplace"), ""


def _copied(source: bytes, name: bytes, why: str, folder: str, most: int) -> tuple[bytes, str]:
    """Copy a file of this machine. Returns: (path of the copy, why there is none). Raises: OSError: it cannot be written."""
    try:
        # looked at before it is opened, because opening a device may do something
        about = os.stat(source)
        if stat.S_ISREG(about.st_mode):
            fd = os.open(source, _READ)
    except FileNotFoundError:
        return b"", why
    except (OSError, ValueError) as e:
        return b"", why_not(e)
    if not stat.S_ISREG(about.st_mode):
        return b"", f"it is {kind_in_words(about.st_mode)}, not a file"
    with open(fd, "rb", buffering=0) as stream:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return b"", f"it is {kind_in_words(found.st_mode)}, not a file"
        if found.st_size > most:
            return b"", too_large(found.st_size, most)
        try:
            return _put(folder, name, lambda: _pieces(stream, found.st_size)), ""
        except _Unread as e:
            return b"", str(e)


class _Unread(Exception):
    """A file cannot be read to its end while it is copied; the message says why."""


def _pieces(stream: Any, size: int) -> Iterator[bytes]:
    """Read a file in pieces, and no more than `size` bytes, as a file of the system's own may have no end. Raises: _Unread."""
    try:
        stream.seek(0)
        while size > 0 and (piece := stream.read(min(size, _PIECE))):
            size -= len(piece)
            yield piece
    except OSError as e:
        raise _Unread(why_not(e)) from e


def _place(name: bytes) -> bytes:
    """Return the path of a file's copy below the directory for broken files."""
    mark = b""
    if is_url(name):
        parts_of = urlsplit(name.decode("utf-8", "surrogateescape"))
        # the query is no part of the name, and may hold a secret: it only goes into the mark
        mark = (parts_of.query or "").encode("utf-8", "surrogateescape")
        name = os.fsencode(parts_of.hostname or "") + b"/" + unquote_to_bytes(parts_of.path)
    elif name.startswith(b"/") or b".." in name.split(b"/"):
        # parts of such a name are left out below, so that two names could become one: the mark tells them apart
        mark = name
    parts = [part.replace(b"\0", b"") for part in name.split(b"/")]
    parts = [part for part in parts if part not in (b"", b".", b"..")] or [b"file"]
    if mark:
        parts[-1] = _other(parts[-1], mark)
    parts = [part if len(part) <= _LONGEST else _other(part, part) for part in parts]
    if parts[0] == LIST.encode():
        parts[0] = b"_" + parts[0]
    return b"/".join(parts)


def _other(name: bytes, by: bytes) -> bytes:
    stem, ending = os.path.splitext(name)
    mark = hashlib.blake2b(by, digest_size=4).hexdigest().encode()
    return stem[: _LONGEST - 40] + b"-" + mark + ending[:20]


def _put(folder: str, name: bytes, pieces: Callable[[], Iterator[Any]]) -> bytes:
    """Write a copy under a name that is free. If a file of that name has the same bytes, it is the copy.

    Returns: the copy's path below `folder`. Raises: OSError: it cannot be written; _Unread: the file to copy cannot be read.
    """
    place = _place(name)
    os.makedirs(folder, exist_ok=True)
    above, own = os.path.split(place)
    at = _opened(folder, above)
    partial = f".akrunner-{uuid.uuid4().hex[:16]}.partial".encode()
    path = os.path.join(folder, os.fsdecode(above), os.fsdecode(partial))
    digest = hashlib.blake2b(name, digest_size=16)
    try:
        leftovers.register(path)
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=at), "wb") as out:
            for piece in pieces():
                digest.update(piece)
                out.write(piece)
        # a different file that has the name, such as an earlier broken one or one of the user's, stays as it is
        for free in (own, _other(own, name), _other(own, digest.digest())):
            if _named(at, partial, free) or _same(at, partial, free):
                return os.path.join(above, free)
        raise FileExistsError(errno.EEXIST, "what lies there already has its name")
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial, dir_fd=at)
        leftovers.forget(path)
        os.close(at)


def _opened(folder: str, above: bytes) -> int:
    """Open a directory below the directory for broken files, and make it if it does not exist. Returns: its descriptor.

    Links are not followed, because they may lead to the input's files themselves. Raises: OSError.
    """
    at = os.open(os.path.realpath(folder), _FOLDER)
    try:
        for part in above.split(b"/") if above else ():
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=at)
            below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
    except BaseException:
        os.close(at)
        raise
    return at


def _named(at: int, partial: bytes, name: bytes) -> bool:
    """Give a written copy its name. Returns: False if the name is taken. Raises: OSError."""
    try:
        os.link(partial, name, src_dir_fd=at, dst_dir_fd=at)
    except FileExistsError:
        return False
    except OSError as e:
        if e.errno not in _NO_LINKS:
            raise
        try:
            os.lstat(name, dir_fd=at)
            return False
        except FileNotFoundError:
            os.rename(partial, name, src_dir_fd=at, dst_dir_fd=at)
    return True


def _same(at: int, partial: bytes, name: bytes) -> bool:
    """Whether two files have the same bytes; False also if one cannot be read."""
    try:
        if not stat.S_ISREG(os.lstat(name, dir_fd=at).st_mode):
            return False
        with (
            open(os.open(partial, _READ, dir_fd=at), "rb") as one,
            open(os.open(name, _READ | os.O_NOFOLLOW, dir_fd=at), "rb") as other,
        ):
            if os.fstat(one.fileno()).st_size != os.fstat(other.fileno()).st_size:
                return False
            while piece := one.read(_PIECE):
                if other.read(len(piece)) != piece:
                    return False
            return True
    except OSError:
        return False


def check_list(folder: str) -> str:
    """Return why the table cannot be written to a directory, as half a sentence; "": it can."""
    path = os.path.join(folder, LIST)
    return "" if not os.path.lexists(path) or _read(path) is not None else f"{path} is not pack's, and stays as it is"


def listed(folder: str) -> dict[str, tuple[str, str]]:
    """Return path -> (why, copy), from the table in a directory; empty if there is no table."""
    return {row[0]: (row[1], row[2]) for row in _read(os.path.join(folder, LIST)) or ()}


def is_kept(base: str | None, name: bytes, why: str, folder: str, row: tuple[str, str] | None) -> bool:
    """Whether the table lists a broken file with the right reason, and its copy has the file's bytes.

    Args: base, name, why, folder: as for `keep`; row: the table's (why, copy) for the file; None: the table does not list it.
    """
    if row is None or row[0] != _plain(why):
        return False
    if not row[1] or is_url(name):
        return True
    try:
        return filecmp.cmp(
            os.path.join(os.fsencode(base or "."), name), os.path.join(os.fsencode(folder), os.fsencode(row[1])), shallow=False
        )
    except (OSError, ValueError):
        return False


def write_list(folder: str, kept: Sequence[Kept]) -> list[str]:
    """Write the table, which keeps the rows of earlier runs. Returns: messages for the user. Raises: WriteError."""
    if not kept:
        return []
    path = os.path.join(folder, LIST)
    partial = os.path.join(folder, f".{LIST}-{uuid.uuid4().hex[:16]}.partial")
    with underway(WriteError, f"bad_rows (--bad-rows): cannot write {path}", at=folder):
        os.makedirs(folder, exist_ok=True)
        with _alone(folder):
            before = _read(path) if os.path.lexists(path) else []
            if before is None:
                raise WriteError(f"bad_rows (--bad-rows): {check_list(folder)}")
            _replace(path, partial, _joined(before, [tuple(map(_plain, row)) for row in kept]))
    lost = [row for row in kept if not row[2]]
    said = f"{quoted(path)} says why each was left out"
    if lost:
        few = ", ".join(f"{quoted(row[0])}: {row[3]}" for row in lost[:3]) + (", ..." if len(lost) > 3 else "")
        were = "was" if len(lost) == 1 else "were"
        said += f"; {len(lost):,} of {len(kept):,} {were} not copied there ({few})"
    return [said]


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Keep other runs from writing the directory's table during the `with` block.

    The directory itself is locked, so that no lock file is left in it.
    """
    at = os.open(folder, _FOLDER)
    try:
        try:
            fcntl.flock(at, fcntl.LOCK_EX)
        except OSError as e:
            # go on without a lock if the file system has none
            if e.errno not in _NO_LOCKS:
                raise
        yield
    finally:
        os.close(at)


def _replace(path: str, partial: str, rows: Sequence[Sequence[str]]) -> None:
    """Write a new table, and replace the old one with it."""
    try:
        leftovers.register(partial)
        with open(partial, "x", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(_HEAD)
            writer.writerows(rows)
        os.replace(partial, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(partial)
        leftovers.forget(partial)


def _joined(before: Sequence[Sequence[str]], now: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return the rows of earlier runs and of this one; for a path that this run has, only this run's rows."""
    again = {row[0] for row in now}
    return [*(row for row in before if row[0] not in again), *now]


def _plain(text: str) -> str:
    """Return a text with NUL written as \\0, because many programs that read a table take NUL for the end of a text."""
    return text.replace("\0", "\\0")


def _read(path: str) -> list[list[str]] | None:
    """Return the rows of a table; None: the file is not such a table, or cannot be read."""
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            head, *rows = list(csv.reader(stream)) or [[]]
    except (OSError, ValueError, csv.Error):
        return None
    return [row for row in rows if len(row) == len(_HEAD)] if tuple(head) == _HEAD else None
