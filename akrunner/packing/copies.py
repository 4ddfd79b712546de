"""Broken files, copied where somebody can look at them, and a table that says of each why it was left out.

::

    DIR/bad_rows.csv    path, why, copy (below DIR; empty: there is none), no_copy (why not)
    DIR/cat/7.jpg       as it is below the input; of a URL: DIR/HOST/its path
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
from akrunner.foreign import underway
from akrunner.packing.pool import is_url, why_not
from akrunner.packing.remote import Unfetched, too_large
from akrunner.packing.settings import MOST_BYTES

LIST = "bad_rows.csv"
_HEAD = ("path", "why", "copy", "no_copy")
_PIECE = 1 << 20
#: bytes a name in a directory may have, with room for what makes it another
_LONGEST = 200
#: of a name, not of the disk
_NAMES = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP)
#: of file systems that give no file two names
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
#: of file systems that lock nothing; NFS locks only what is open for writing, and no directory
_NO_LOCKS = (errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL, errno.EBADF)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

#: path, why it was left out, its copy below the directory, why there is none
Kept = tuple[str, str, str, str]


def keep(base: str | None, name: bytes, data: Any | None, why: str, folder: str, most: int = MOST_BYTES) -> tuple[str, str]:
    """Copy a broken file, over nothing that is there. Args: base: the directory names are below; data: what came of it, None: nothing that is known; most:
    bytes of a file that is copied. Returns: (where it is below `folder`, why it is not). Raises: WriteError: the disk is full.
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
    """Returns: (the place of the copy, why there is none). Raises: OSError: it cannot be written."""
    try:
        # before it is opened, which a device may take for a request
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
    """A file that breaks off while it is copied; its words say why."""


def _pieces(stream: Any, size: int) -> Iterator[bytes]:
    """No more of a file than it said it has: one of the system's own has no end. Raises: _Unread."""
    try:
        stream.seek(0)
        while size > 0 and (piece := stream.read(min(size, _PIECE))):
            size -= len(piece)
            yield piece
    except OSError as e:
        raise _Unread(why_not(e)) from e


def _place(name: bytes) -> bytes:
    """Where the copy of a file lies below the directory of all."""
    mark = b""
    if is_url(name):
        parts_of = urlsplit(name.decode("utf-8", "surrogateescape"))
        # what the query says is no name, and may be a secret
        mark = (parts_of.query or "").encode("utf-8", "surrogateescape")
        name = os.fsencode(parts_of.hostname or "") + b"/" + unquote_to_bytes(parts_of.path)
    elif name.startswith(b"/") or b".." in name.split(b"/"):
        # what is left out of it is what tells it from another
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
    """Write a copy under a name that is free; where its own is taken by the same bytes, that is the copy. Returns: its place. Raises: OSError; _Unread."""
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
        # another file that is there, a broken one of before or somebody's own, stays as it is
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
    """A directory below the directory of all, made if it is not there; links are not followed, which may lead to the files themselves. Raises: OSError."""
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
    """Give a file its name. Returns: False: the name is taken. Raises: OSError."""
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
    """Whether the bytes of two files are the same."""
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
    """Half a sentence: why the table cannot be written there; "": it can."""
    path = os.path.join(folder, LIST)
    return "" if not os.path.lexists(path) or _read(path) is not None else f"{path} is not pack's, and stays as it is"


def listed(folder: str) -> dict[str, tuple[str, str]]:
    """Path -> (why, copy), of the table that is there."""
    return {row[0]: (row[1], row[2]) for row in _read(os.path.join(folder, LIST)) or ()}


def is_kept(base: str | None, name: bytes, why: str, folder: str, row: tuple[str, str] | None) -> bool:
    """Whether the table says of a file what there is to say, and its copy has its bytes. Args: base, name, why, folder: as for `keep`; row: (why, copy), None:
    the table does not list it."""
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
    """Write the table, with the rows of earlier runs. Returns: what is to be said, in words. Raises: WriteError."""
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
    said = f"{path} says why each was left out"
    if lost:
        few = ", ".join(f"{row[0]}: {row[3]}" for row in lost[:3]) + (", ..." if len(lost) > 3 else "")
        were = "was" if len(lost) == 1 else "were"
        said += f"; {len(lost):,} of {len(kept):,} {were} not copied there ({few})"
    return [said]


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """While in the block, no other run writes the table of this directory. The directory itself is locked: nothing is left in it."""
    at = os.open(folder, _FOLDER)
    try:
        try:
            fcntl.flock(at, fcntl.LOCK_EX)
        except OSError as e:
            # a file system without locks
            if e.errno not in _NO_LOCKS:
                raise
        yield
    finally:
        os.close(at)


def _replace(path: str, partial: str, rows: Sequence[Sequence[str]]) -> None:
    """Put a new table in the place of the one that is there."""
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
    """Rows of earlier runs and of this one: a path's are this run's, as many as it has."""
    again = {row[0] for row in now}
    return [*(row for row in before if row[0] not in again), *now]


def _plain(text: str) -> str:
    """What a table can hold: a NUL ends a text for who reads it."""
    return text.replace("\0", "\\0")


def _read(path: str) -> list[list[str]] | None:
    """Its rows, None: it is not ours."""
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            head, *rows = list(csv.reader(stream)) or [[]]
    except (OSError, ValueError, csv.Error):
        return None
    return [row for row in rows if len(row) == len(_HEAD)] if tuple(head) == _HEAD else None
