"""Turns a path or a URL into a local file, with what stands behind its `#`: another name, a checksum, the size it may have.

::

    model.zip                                 as it is
    https://host/data.zip#models              called `models` in the work dir (an archive is unpacked there)
    s3://bucket/a.csv#sha256=0f3c...          refused unless it has this checksum
    data.zip#max=20GB                         may have so many bytes, unpacked too (`akrunner.launch.limits`)
    https://host/a.csv#b.csv&sha256=0f3c...   several of these
"""

from __future__ import annotations

import os
import re
import urllib.parse
import urllib.request
from dataclasses import dataclass

from akrunner.checks import check_url, nearest_file
from akrunner.errors import AkrunnerError, ConfigError, UserFilesError
from akrunner.launch import limits
from akrunner.launch.downloads import download, sha256
from akrunner.launch.trees import Blame, check_kind, checked

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


@dataclass(frozen=True)
class Fetched:
    """A local file or directory, fetched from a path or URL.

    Attributes:
        path: the local file or directory.
        name: the name that the user wants it to have; "": its own.
        given: the path or URL as the user wrote it.
        most: the bytes that the user allows it to have; 0: the limit for all.
    """

    path: str
    name: str
    given: str
    most: int = 0


def is_url(text: str) -> bool:
    return bool(_URL.match(text))


def fetch(given: str | os.PathLike[str], parameter: str, kind: type[AkrunnerError] = UserFilesError, usual: int = 0) -> Fetched:
    """Return the local file or directory that a path or URL names; a URL is downloaded.

    Args:
        usual: the bytes it may have if neither the path or URL nor the environment sets a limit; 0: the limit for all
            downloads.
    Raises:
        `kind`: it does not exist, is neither a file nor a directory, cannot be downloaded (`akrunner.launch.downloads`), or
            does not have the checksum it should have.
    """
    blame = Blame(parameter, kind, "the work dir")
    text = os.fspath(given) if isinstance(given, (str, os.PathLike)) else given
    if not isinstance(text, str) or not text or "\0" in text:
        raise blame.error(f"{given!r} is not a path or a URL")
    blame = Blame(parameter, kind, "the work dir", text)
    local = os.path.abspath(os.path.expanduser(text))
    if not is_url(text) and os.path.exists(local):
        return Fetched(_looked_at(local, blame), "", text)
    check_url(parameter, text, kind)
    place, name, digest, most = _split(text, blame)
    if is_url(place):
        with blame.ours(f"{place} is not a URL that can be read"):
            urllib.parse.urlsplit(place)
    if place.startswith("file://"):
        path = urllib.request.url2pathname(urllib.parse.urlparse(place).path)
    elif is_url(place):
        path = download(place, digest, blame, most, bool(name), usual)
    else:
        path = os.path.abspath(os.path.expanduser(place))
    if not os.path.exists(path):
        raise blame.error(f"there is no {place}{nearest_file(path if is_url(place) else place)}")
    _looked_at(path, blame)
    if digest and (os.path.isdir(path) or sha256(path, blame) != digest):
        has = "is a directory" if os.path.isdir(path) else f"has sha256 {sha256(path, blame)}"
        raise blame.error(f"{place} {has}, not the {digest} it should have")
    return Fetched(path, name, text, most)


def limit_of(text: str, blame: Blame) -> int:
    """Return the bytes that a path or URL says it may have (`#max=`); 0 if it does not say."""
    return _split(text, blame)[3]


def _looked_at(path: str, blame: Blame) -> str:
    if not os.path.isdir(path):
        with blame.ours(f"cannot read {path}"):
            mode = os.stat(path).st_mode
        check_kind(path, mode, blame)
    return path


def _split(text: str, blame: Blame) -> tuple[str, str, str, int]:
    """Split a path or URL at its `#`. Returns: (path or URL, name, sha256, bytes it may have)."""
    place, _, behind = text.partition("#")
    name, digest, most = "", "", 0
    for part in filter(None, behind.split("&")):
        if part.startswith("sha256="):
            digest = part[7:].lower()
            if not re.fullmatch(r"[0-9a-f]{64}", digest):
                raise blame.error(f"{text}: a sha256 has 64 hexadecimal digits")
        elif part.startswith("max="):
            try:
                most = limits.parsed(part[4:], "max")
            except ConfigError as e:
                raise blame.error(f"{text}: {e}") from None
        elif name:
            raise blame.error(f"{text}: two names, {name!r} and {part!r}")
        else:
            try:
                name = checked(part, blame.place)
            except ValueError as e:
                raise blame.error(f"{text}: the name {part!r} {e}") from None
    return place, name, digest, most
