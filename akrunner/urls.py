"""A check of URLs: a URL whose user, password and host cannot be told apart is refused before any library sees it.

::

    http://u:pass/word@h/x     refused: a library takes `u` for the host and `pass` for its port, and shows both in its error
    http://u:pass%2Fword@h/x   the right way to write it
"""

from __future__ import annotations

import re
import urllib.parse

from akrunner.redact import redacted

_URL = re.compile(r"(?:^|::)([A-Za-z][A-Za-z0-9+.-]+):([/\\]+)")
_AUTHORITY = re.compile(r"[^/?#\\]*")
#: what may follow a host's colon: a port, and further hosts with ports
_PORTS = re.compile(r"\d*(?:,[^,:]*:\d+)*")
_BLANK = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]")
#: schemes that are followed by a path, or by another URL's path
_PLACES = frozenset(
    "file local memory data dir zip tar libarchive reference cached simplecache filecache blockcache github".split()
)
#: schemes that are followed by user:password@host:port
_HOSTED = frozenset("http https ftp ftps sftp ssh hdfs webhdfs smb git git+http git+https git+ssh".split())
_ENCODED = "write / ? # @ : \\ and blanks of a user's name and password as %2F %3F %23 %40 %3A %5C %20"


def unclear(text: str) -> str:
    """Return why a URL's parts cannot be told apart, in words that show no password; "" if they can, or if it is no URL."""
    for found in _URL.finditer(text):
        why = _unclear(found[1].lower(), found[2], text[found.end() :])
        if why:
            return f"{_shown(text, found.end())}: {why}"
    return ""


def _unclear(scheme: str, slashes: str, rest: str) -> str:
    if "\\" in slashes:
        return f"a URL has slashes, not backslashes: {scheme}://"
    if scheme in _PLACES or not slashes.startswith("//"):
        return ""
    if re.search(r"[\t\r\n]", rest):
        return f"a URL has no line ends and tabs; {_ENCODED}"
    authority = _AUTHORITY.findall(rest)[0] if slashes == "//" else ""
    if _BLANK.search(authority):
        return f"a URL has no blanks before its path; {_ENCODED}"
    host = authority.rpartition("@")[2]
    if scheme in _HOSTED:
        if not host and scheme.startswith(("http", "ftp", "sftp", "ssh")):
            return f"it names no host; {_ENCODED}"
        try:
            # `urlsplit` also refuses wrong brackets, and characters that normalization would turn into others
            _ = urllib.parse.urlsplit(f"{scheme}://{authority}").port
            return ""
        except ValueError:
            return f"its port is no number, or its host's name none; {_ENCODED}"
    user, colon, ports = authority.partition(":")
    if colon and "@" in rest and "@" not in authority and user != "arn" and not _PORTS.fullmatch(ports):
        return f"its user and its host cannot be told apart; {_ENCODED}"
    return ""


def _shown(text: str, at: int) -> str:
    """Return a URL without anything that may be its password. Args: at: where its scheme and slashes end."""
    rest = text[at:]
    if "@" in rest:
        rest = "***" + rest[rest.rindex("@") :]
    elif ":" in rest:
        rest = rest[: rest.index(":")] + ":***"
    return "".join(c if c.isprintable() else " " for c in redacted(text[:at]) + redacted(rest))
