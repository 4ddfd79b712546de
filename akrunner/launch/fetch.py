"""A path or a URL -> a local file, with what is said behind its `#`: another name, a checksum.

::

    model.zip                                 as it is
    https://host/data.zip#models              called `models` in the work dir (an archive is unpacked there)
    s3://bucket/a.csv#sha256=0f3c...          refused unless its checksum is that
    https://host/a.csv#b.csv&sha256=0f3c...   both
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from dataclasses import dataclass
from typing import BinaryIO

from akrunner.errors import UserFilesError
from akrunner.launch import cache

_TRIES = 3
_TIMEOUT = 30.0
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


@dataclass(frozen=True)
class Fetched:
    """Attributes: path: of the local file or directory; name: what the user wants it called, "" for its own; given: as they
    named it."""

    path: str
    name: str
    given: str


def is_url(text: str) -> bool:
    return bool(_URL.match(text))


def fetch(given: "str | os.PathLike[str]", parameter: str) -> Fetched:
    """Bring it here.

    Raises: UserFilesError: it is not there, cannot be downloaded (each try has a timeout, there are three), or has another
        checksum than it should.
    """
    text = os.fspath(given)
    local = os.path.abspath(os.path.expanduser(text))
    if not is_url(text) and os.path.exists(local):
        return Fetched(local, "", text)
    place, name, digest = _split(text, parameter)
    if place.startswith("file://"):
        path = urllib.request.url2pathname(urllib.parse.urlparse(place).path)
    elif is_url(place):
        path = _downloaded(place, digest, parameter)
    else:
        path = os.path.abspath(os.path.expanduser(place))
    if not os.path.exists(path):
        raise UserFilesError(f"{parameter}: there is no {place}")
    if digest and _sha256(path) != digest:
        raise UserFilesError(f"{parameter}: {place} has sha256 {_sha256(path)}, not the {digest} it should have")
    return Fetched(path, name, text)


def _split(text: str, parameter: str) -> "tuple[str, str, str]":
    """(path or URL, name, sha256)."""
    place, _, behind = text.partition("#")
    name = digest = ""
    for part in filter(None, behind.split("&")):
        if part.startswith("sha256="):
            digest = part[7:].lower()
            if not re.fullmatch(r"[0-9a-f]{64}", digest):
                raise UserFilesError(f"{parameter}: {text}: a sha256 has 64 hexadecimal digits")
        else:
            name = posixpath.normpath(part)
            if name.startswith(("/", "..")):
                raise UserFilesError(f"{parameter}: {text}: the name {part!r} would lie outside the work dir")
    return place, name, digest


def _downloaded(url: str, digest: str, parameter: str) -> str:
    base = posixpath.basename(urllib.parse.urlparse(url).path) or "download"
    target = cache.directory("downloads", cache.key(url, digest), urllib.parse.unquote(base))
    if digest and os.path.exists(target) and _sha256(target) == digest:
        return target
    partial = f"{target}.{uuid.uuid4().hex[:8]}.partial"
    try:
        for attempt in range(_TRIES):
            try:
                with open(partial, "wb") as out:
                    _copy(url, out)
                os.replace(partial, target)
                return target
            except (OSError, ValueError, ImportError) as e:
                final = isinstance(e, (ValueError, ImportError, FileNotFoundError, PermissionError)) or (
                    isinstance(e, urllib.error.HTTPError) and e.code < 500
                )
                if final or attempt == _TRIES - 1:
                    tries = "" if final else f" ({_TRIES} tries)"
                    raise UserFilesError(f"{parameter}: cannot download {url}: {e}{tries}") from None
                time.sleep(0.5 * 2**attempt)
    finally:
        if os.path.exists(partial):
            os.remove(partial)
    return target


def _copy(url: str, out: BinaryIO) -> None:
    if url.startswith(("http://", "https://")):
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as source:
            shutil.copyfileobj(source, out, 1 << 20)
            expected = source.headers.get("Content-Length")
        if expected is not None and out.tell() != int(expected):
            raise OSError(f"it broke off after {out.tell()} of {expected} bytes")
        return
    # a TaskManager's Python has it only where something else needs it
    import fsspec

    with fsspec.open(url, "rb") as source:
        shutil.copyfileobj(source, out, 1 << 20)


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
