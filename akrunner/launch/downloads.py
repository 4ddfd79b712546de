"""Downloads the file behind a URL into the user's cache, bounded in size and time.

http and https are read by the standard library, all other URLs by fsspec.
"""

from __future__ import annotations

import base64
import contextlib
import contextvars
import hashlib
import http.client
import io
import os
import posixpath
import re
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import zlib
from collections.abc import Generator, Iterator
from typing import Any, Protocol

from akrunner import leftovers
from akrunner.errors import AkrunnerError
from akrunner.foreign import in_words, redacted
from akrunner.io.limits import check_time, waited
from akrunner.launch import cache, limits
from akrunner.launch.timed import timed
from akrunner.launch.trees import CHUNK, Blame, component

_TRIES = 3
#: seconds without a byte after which a download fails
SILENCE = 30.0
#: a sender that sends fewer bytes than this in SLOWEST_SECONDS counts as dead
SLOWEST = 16 << 10
SLOWEST_SECONDS = 60.0
_GZIP = b"\x1f\x8b"


class Bound(Protocol):
    """How much a download may bring. Attributes: most: bytes in all."""

    most: int

    def take(self, size: int) -> None: ...


def download(url: str, digest: str, blame: Blame, most: int = 0, named: bool = False, usual: int = 0) -> str:
    """Download a URL, again at each call, unless the cache has a file with the checksum that is asked for.

    Args:
        digest: the sha256 that the file must have; "": any.
        most: the bytes it may have; 0: `usual`, and if that is 0 too, the limit for all downloads.
        named: whether the user has given the file a name of their own, so that the URL need not have one.
        usual: the bytes it may have if neither the user nor the environment sets a limit.
    Returns:
        The path of the file in the cache; its name is the one in the URL.
    Raises:
        `blame.kind`: the file is missing, too large or too slow, or there is no room for it. It is tried three times, each with
            a timeout.
        JobTimeoutError: the job that wants the file has no time left (`akrunner.io.limits`).
    """
    name = _name(url, blame, named)
    what = f"the download of {redacted(url)} ({blame.parameter})"
    with blame.ours(f"cannot keep downloads in {cache.shown()}", cache.base()):
        # the directory is made only when the file is complete: a download that is killed before leaves no directory
        partial = cache.directory("downloads", f"{uuid.uuid4().hex}.partial")
        folder = os.path.join(os.path.dirname(partial), cache.key(url, digest))
    target = os.path.join(folder, name)
    if digest and os.path.exists(target) and sha256(target, blame) == digest:
        return target
    leftovers.register(partial)
    try:
        for number in range(_TRIES):
            try:
                _in_time(url, partial, blame, limits.downloading(redacted(url), blame, most, usual), what)
                break
            except AkrunnerError:
                raise
            except Exception as e:
                if isinstance(e, urllib.error.HTTPError):
                    e.close()
                final = is_final(e)
                # a try that has ended with the job's time failed only because of that
                left = None if final else check_time(what)
                if final or number == _TRIES - 1:
                    tries = "" if final else f" ({_TRIES} tries)"
                    raise blame.error(f"cannot download {url}: {in_words(e)}{tries}") from None
                pause = 0.5 * 2**number
                time.sleep(pause if left is None else min(pause, left))
        with blame.ours(f"cannot keep {url} in {cache.shown()}"):
            os.replace(partial, cache.directory("downloads", os.path.basename(folder), name))
    finally:
        with contextlib.suppress(OSError):
            os.remove(partial)
        leftovers.forget(partial)
    return target


def sha256(path: str, blame: Blame) -> str:
    digest = hashlib.sha256()
    with blame.ours(f"cannot read {path}"), open(path, "rb") as f:
        for block in iter(lambda: f.read(CHUNK), b""):
            digest.update(block)
    return digest.hexdigest()


def _name(url: str, blame: Blame, named: bool) -> str:
    """Return the file's name in the cache: the last part of the URL's path, as one path component."""
    path = urllib.parse.urlparse(url).path
    name = posixpath.basename(urllib.parse.unquote(path) if is_web(url) else path)
    try:
        return component(name)
    except ValueError as e:
        if named:
            return "download"
        raise blame.error(f"{url} names no file: {name!r} {e}; give it a name, {url}#name") from None


def _in_time(url: str, partial: str, blame: Blame, budget: limits.Budget, what: str) -> None:
    """Try once as `_one_try` does, within the time of the job. Args: what: whom the job waits for, in errors.

    Raises:
        JobTimeoutError: its time is over.
    """
    left = check_time(what)
    over = threading.Event()
    if left is None:
        _one_try(url, partial, blame, budget, over)
        return
    # in a thread, as nothing ends a look-up of a host's name, or a server that sends byte by byte
    context = contextvars.copy_context()
    try:
        waited(lambda: context.run(_one_try, url, partial, blame, budget, over, left), None, what)
    finally:
        # Ctrl-C leaves the thread behind, too
        over.set()


def _one_try(
    url: str, partial: str, blame: Blame, budget: limits.Budget, over: threading.Event, left: float = SLOWEST_SECONDS
) -> None:
    """Args:
        over: set when the caller no longer wants the file.
        left: the seconds that the job has left.
    Raises: AkrunnerError: there is no room for the file, or it is too large; another exception: the download failed.
    """
    no_room = f"cannot keep {url} in {cache.shown()}"
    if is_web(url):
        pieces = from_web(url, budget, silence=min(SILENCE, left))
    else:
        pieces = timed(from_anywhere(url), min(SLOWEST_SECONDS, left), SLOWEST, over)
    with blame.ours(no_room, partial):
        out = open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb", buffering=0)
    with contextlib.closing(pieces), out:
        for piece in pieces:
            if over.is_set():
                return
            budget.take(len(piece))
            with blame.ours(no_room, partial):
                rest = memoryview(piece)
                while rest:
                    rest = rest[out.write(rest) :]


def from_anywhere(url: str) -> Generator[bytes, None, None]:
    """Yield the bytes that fsspec finds behind a URL, piece by piece."""
    # a TaskManager's Python has fsspec only if something else needs it
    import fsspec

    filesystem, path = fsspec.url_to_fs(url)
    # blocks small enough to arrive in time on a slow line, too; some libraries ask for 50 MB at once
    with filesystem.open(path, "rb", block_size=CHUNK) as source:
        while piece := source.read(CHUNK):
            yield piece


def from_web(url: str, budget: Bound, unzipped: bool = False, silence: float | None = None) -> Generator[bytes, None, None]:
    """Yield the bytes behind an http or https URL, piece by piece. The caller counts them; `budget` is only charged here if the
    server announces more bytes than it allows.

    Args:
        unzipped: whether bytes that the server has compressed for the transfer are decompressed. (If it is false, a file named
            .gz stays as it is.)
        silence: seconds without a byte after which it fails; None: `SILENCE`.
    Raises:
        OSError: the bytes do not come, or hardly do.
        ValueError: they can never come.
    """
    request = urllib.request.Request(_without_user(url))
    user = urllib.parse.urlparse(url)
    if user.username is not None:
        pair = f"{urllib.parse.unquote(user.username)}:{urllib.parse.unquote(user.password or '')}"
        # the password must not go to a host that the request is redirected to
        request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(pair.encode()).decode())
    with urllib.request.build_opener(_Http, _Https, _Redirects).open(
        request, timeout=SILENCE if silence is None else silence
    ) as source:
        if source.status == http.HTTPStatus.PARTIAL_CONTENT and not _is_whole(given := source.headers.get("Content-Range", "")):
            raise OSError(
                f"its server sends a part of it, which nobody has asked for (206, {given[:100] or 'without a range'})"
            )
        announced = source.headers.get("Content-Length", "")
        expected = int(announced) if announced.isdecimal() else None
        if expected is not None and expected > budget.most:
            budget.take(expected)
        way = source.headers.get("Content-Encoding", "identity").strip().lower()
        if not unzipped or way in ("", "identity"):
            yield from _read(source, expected)
        elif way in ("gzip", "x-gzip"):
            yield from _inflated(_read(source, expected))
        else:
            raise ValueError(f"its server sends it compressed as {way}, which nobody has asked for")


def _is_whole(given: str) -> bool:
    """Whether the range of an answer is all that there is: "bytes 0-99/100"."""
    found = re.fullmatch(r"bytes 0-(\d+)/(\d+)", given.strip())
    return found is not None and int(found[1]) + 1 == int(found[2])


def _read(source: Any, expected: int | None) -> Generator[bytes, None, None]:
    """Yield all bytes of a response. Raises: OSError: fewer or more bytes came than were announced."""
    came = 0
    while piece := source.read(CHUNK):
        came += len(piece)
        yield piece
    if expected is not None and came != expected:
        raise OSError(f"it broke off after {came} of {expected} bytes")


def _inflated(pieces: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Decompress bytes that were compressed by gzip, at most a chunk at a time however many bytes come out; pass other bytes on
    as they are.

    Raises:
        OSError: the compressed bytes are damaged.
    """
    unzip: Any = None
    # the first byte of `_GZIP`, if a piece ends with it where compressed bytes may begin
    held = b""
    for piece in pieces:
        rest, held = held + piece, b""
        if unzip is None and rest == _GZIP[:1]:
            held = rest
            continue
        if unzip is None and not rest.startswith(_GZIP):
            yield rest
            yield from pieces
            return
        while rest:
            if unzip is not None and unzip.eof and rest == _GZIP[:1]:
                held = rest
                break
            if unzip is None or (unzip.eof and rest.startswith(_GZIP)):
                unzip = zlib.decompressobj(16 + zlib.MAX_WBITS)
            if unzip.eof:
                # ignore what stands behind the compressed bytes
                break
            try:
                yield unzip.decompress(rest, CHUNK)
            except zlib.error as e:
                raise OSError(f"it was damaged on its way: {e}") from None
            rest = unzip.unused_data if unzip.eof else unzip.unconsumed_tail
    if unzip is not None:
        yield unzip.flush()
        if not unzip.eof:
            raise OSError("it broke off before its compressed bytes had ended")
    elif held:
        yield held


def is_web(url: str) -> bool:
    """Whether a URL is http or https."""
    return url.lower().startswith(("http://", "https://"))


def no_host(url: str) -> str:
    """Say why an http or https URL can never lead to a host; "": it can."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as e:
        return str(e)
    if not host:
        return "it names no host"
    return "there is no port 0" if port == 0 else ""


def _without_user(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    path = urllib.parse.quote(parts.path, safe="/%:@!$&'()*+,;=~-._")
    query = urllib.parse.quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, query, ""))


def is_final(error: Exception) -> bool:
    """Whether the next try would fail with the same error."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code < 500
    return isinstance(
        error, (ValueError, ImportError, FileNotFoundError, PermissionError, http.client.InvalidURL)
    ) or not isinstance(error, (OSError, http.client.HTTPException))


# -- http


class _Paced(io.RawIOBase):
    """The raw stream of a server's response, headers included; it fails if the server sends less than SLOWEST bytes in
    SLOWEST_SECONDS.
    """

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__()
        self._raw = raw
        self._since = time.monotonic()
        self._came = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        size: int | None = self._raw.readinto(buffer)
        self._came += size or 0
        now = time.monotonic()
        if now - self._since > SLOWEST_SECONDS:
            if self._came < SLOWEST:
                raise OSError(f"it sends less than {limits.shown(SLOWEST)} in {SLOWEST_SECONDS:g} s")
            self._since, self._came = now, 0
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *given: Any, **more: Any) -> None:
        super().__init__(sock, *given, **more)
        self.fp = io.BufferedReader(_Paced(self.fp.detach()))


def _connected(address: tuple[str, int], timeout: float, *_: Any) -> socket.socket:
    """Connect as `socket.create_connection` does; but the timeout is for all addresses of a host together, and not for each of
    them.
    """
    until = time.monotonic() + timeout
    found = socket.getaddrinfo(*address, 0, socket.SOCK_STREAM)
    error = OSError(f"{address[0]} has no address")
    for left, (family, kind, number, _name, place) in zip(range(len(found), 0, -1), found):
        try:
            # a socket of an address family that this machine lacks cannot be made
            connection = socket.socket(family, kind, number)
        except OSError as e:
            error = e
            continue
        try:
            connection.settimeout(max(0.001, until - time.monotonic()) / left)
            connection.connect(place)
            connection.settimeout(timeout)
            return connection
        except OSError as e:
            connection.close()
            error = e
        except BaseException:
            connection.close()
            raise
    raise error


class _Connection(http.client.HTTPConnection):
    response_class = _Response

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._create_connection = _connected


class _SecureConnection(http.client.HTTPSConnection):
    response_class = _Response

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._create_connection = _connected


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, request)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, request)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https only, and never from https to http."""

    def redirect_request(self, request: urllib.request.Request, *given: Any) -> urllib.request.Request | None:
        # otherwise the whole body of the redirect would be read, however large
        given[0].close()
        target = str(given[-1])
        allowed = ("https://",) if request.full_url.lower().startswith("https://") else ("https://", "http://")
        if not target.lower().startswith(allowed):
            raise ValueError(f"it leads on to {target}, which is not {' or '.join(allowed)}")
        if why := no_host(target):
            raise ValueError(f"it leads on to {target}, which is no URL: {why}")
        return super().redirect_request(request, *given)
