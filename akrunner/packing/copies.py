"""Broken files, copied where somebody can look at them, and a table that says of each why it was left out.

::

    DIR/bad_rows.csv    path, why, copy (below DIR; empty: there is none), no_copy (why not)
    DIR/cat/7.jpg       as it is below the input; of a URL: DIR/HOST/its path
"""

from __future__ import annotations

import csv
import errno
import hashlib
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple
from urllib.parse import unquote_to_bytes, urlsplit

from akrunner.errors import WriteError
from akrunner.foreign import underway
from akrunner.packing.pool import is_url, why_not
from akrunner.packing.remote import Unfetched

LIST = "bad_rows.csv"
_HEAD = ("path", "why", "copy", "no_copy")
_PIECE = 1 << 20
#: bytes a name in a directory may have, with room for what makes it another
_LONGEST = 200
#: of a name, not of the disk
_NAMES = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)

#: path, why it was left out, its copy below the directory, why there is none
Kept = Tuple[str, str, str, str]


def keep(base: Optional[str], name: bytes, data: Optional[Any], why: str, folder: str) -> Tuple[str, str]:
    """Copy a broken file. Args: base: the directory names are below; data: what came of it, None: nothing that is known. Returns: (where it is below `folder`, why it is
    not). Raises: WriteError: the disk is full.
    """
    if not name:
        return "", "it has no path"
    if isinstance(why, Unfetched):
        return "", "it could not be fetched"
    if is_url(name) and data is None:
        return "", "nothing of it is here"
    place = _place(name)
    target = os.path.join(os.fsencode(folder), place)
    with underway(WriteError, f"bad_rows (--bad-rows): cannot copy to {folder}", at=folder):
        try:
            source = os.path.join(os.fsencode(base or "."), name)
            if is_url(name):
                _write(target, data)
            elif not os.path.exists(source):
                return "", str(why)
            elif no := _copy(source, target):
                return "", no
        except OSError as e:
            if e.errno not in _NAMES:
                raise
            return "", why_not(e)
    return os.fsdecode(place).encode("utf-8", "backslashreplace").decode(), ""


def _place(name: bytes) -> bytes:
    """Where the copy of a file lies below the directory of all."""
    query = b""
    if is_url(name):
        parts_of = urlsplit(name.decode("utf-8", "surrogateescape"))
        query = (parts_of.query or "").encode("utf-8", "surrogateescape")
        name = os.fsencode(parts_of.hostname or "") + b"/" + unquote_to_bytes(parts_of.path)
    parts = [part.replace(b"\0", b"") for part in name.split(b"/")]
    parts = [part for part in parts if part not in (b"", b".", b"..")] or [b"file"]
    if query:
        # what the query says is no name, and may be a secret
        parts[-1] = _other(parts[-1], query)
    parts = [part if len(part) <= _LONGEST else _other(part, part) for part in parts]
    if parts[0] == LIST.encode():
        parts[0] = b"_" + parts[0]
    return b"/".join(parts)


def _other(name: bytes, by: bytes) -> bytes:
    stem, ending = os.path.splitext(name)
    mark = hashlib.blake2b(by, digest_size=4).hexdigest().encode()
    return stem[: _LONGEST - 40] + b"-" + mark + ending[:20]


def _copy(source: bytes, target: bytes) -> str:
    """Returns: why it cannot be read, "": it is copied. Raises: OSError: it cannot be written."""
    try:
        fd = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as e:
        return why_not(e)
    with open(fd, "rb", buffering=0) as stream:
        try:
            piece = stream.read(_PIECE)
        except OSError as e:
            return why_not(e)
        if not piece and os.fstat(fd).st_size == 0 and not os.path.isfile(source):
            return "it is no file"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as out:
            while piece:
                out.write(piece)
                piece = stream.read(_PIECE)
    return ""


def _write(target: bytes, data: Any) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as out:
        out.write(data)


def write_list(folder: str, kept: Sequence[Kept]) -> List[str]:
    """Write the table, with the rows of earlier runs. Returns: what is to be said, in words. Raises: WriteError."""
    if not kept:
        return []
    path = os.path.join(folder, LIST)
    with underway(WriteError, f"bad_rows (--bad-rows): cannot write {path}", at=folder):
        rows: Dict[str, Sequence[str]] = {row[0]: row for row in _read(path)}
        rows.update((row[0], row) for row in kept)
        os.makedirs(folder, exist_ok=True)
        with open(path + ".partial", "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(_HEAD)
            writer.writerows(rows.values())
        os.replace(path + ".partial", path)
    lost = [row for row in kept if not row[2]]
    said = f"{path} says why each was left out"
    if lost:
        few = ", ".join(f"{row[0]}: {row[3]}" for row in lost[:3]) + (", ..." if len(lost) > 3 else "")
        were = "was" if len(lost) == 1 else "were"
        said += f"; {len(lost):,} of {len(kept):,} {were} not copied there ({few})"
    return [said]


def _read(path: str) -> List[List[str]]:
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            head, *rows = list(csv.reader(stream)) or [[]]
    except (FileNotFoundError, ValueError, csv.Error):
        return []
    return [row for row in rows if len(row) == len(_HEAD)] if tuple(head) == _HEAD else []
