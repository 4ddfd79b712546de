"""What is behind URLs: bounded in size and time, tried again, and given up within a moment once nobody wants it.

::

    url --http, https: as downloads; else fsspec--> pieces -> bytes | why it is no good | Unfetched: why it did not come
"""

from __future__ import annotations

import contextlib
import http.client
import io
import re
import threading
import urllib.error
from collections.abc import Generator

import fsspec

from akrunner.foreign import in_words, redacted
from akrunner.launch import downloads
from akrunner.launch.timed import timed

_TRIES = 3
#: seconds before the second try; before the third twice as many
_PAUSE = 0.5
#: a file of more bytes needs room among all that are held at a time, so that many of them do not fill the memory
_LARGE, _ROOM = 1 << 20, 256 << 20
#: room that is asked for at first
_FIRST = 8 << 20
#: of a store, files up to this size come by one request
_BY_ONE_REQUEST = 8 << 20
_TICK = 0.2
#: protocols may follow each other (simplecache::s3://)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.:_-]*://")
#: schemes of stores, and what S3 calls buckets
_S3 = ("s3", "s3a")
_BUCKETS = (*_S3, "gs", "gcs", "oss", "az", "abfs", "abfss")
_BUCKET = re.compile(r"[A-Za-z0-9._-]{1,255}")
#: names of files that are compressed by themselves
_ZIPPED = re.compile(r"\.(gz|tgz)([?#]|\Z)", re.IGNORECASE)
#: what servers answer that will not do better a moment later, and what of it is so for good
_NO_HTTP, _SAID = (http.client.BadStatusLine, http.client.LineTooLong), 60
_TRIED_AGAIN, _FOR_GOOD = (408, 425, 429), (404, 410)


def odd_url(url: str) -> str:
    """Why nothing is ever behind a URL, half a sentence; "": something may be."""
    if not _URL.match(url):
        # a blank before it, say
        return "it is no URL"
    why = downloads.no_host(url) if downloads.is_web(url) else ""
    return redacted(f"it is no URL: {why}") if why else _no_object(url)


def _no_object(url: str) -> str:
    """As `odd_url`, of a store's: it needs a bucket, and the name of an object there."""
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in _BUCKETS or "::" in url:
        return ""
    bucket, _, name = rest.partition("/")
    if not bucket or not name.strip("/"):
        return f"it names no {'file' if bucket else 'bucket'}: {scheme}://BUCKET/PATH/TO/FILE"
    # ARNs of access points have more in them
    if scheme.lower() in _S3 and not _BUCKET.fullmatch(bucket) and not bucket.startswith("arn:"):
        return redacted(f"it is no URL: no bucket is called {bucket[:_SAID]!r}")
    return ""


class Unfetched(str):
    """Why a file did not come, half a sentence: nothing is wrong with it that is known, and the next run tries it again."""


class _TooLarge(Exception):
    pass


class _NoRoom(Exception):
    """Too much is held. Attributes: wanted: bytes it needs."""

    def __init__(self, wanted: int) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class Room:
    """How many bytes of large files are held, from their download until they are taken. What is waited for next always has room, so nothing waits for ever.

    Args: limit: bytes for all others together.
    """

    def __init__(self, limit: int = _ROOM) -> None:
        self._limit = limit
        self._held: dict[int, int] = {}
        self._next = -1
        self._changed = threading.Condition()

    def want(self, ticket: int) -> None:
        """This file is waited for."""
        with self._changed:
            self._next = ticket
            self._changed.notify_all()

    def has(self, ticket: int, size: int) -> bool:
        """Take room for a file, whatever it had before. Returns: False: there is not so much, and it has what it had."""
        with self._changed:
            others = sum(self._held.values()) - self._held.get(ticket, 0)
            if ticket != self._next and others and others + size > self._limit:
                return False
            self._held[ticket] = size
            return True

    def came(self, ticket: int, size: int) -> None:
        """A file is there as a whole: it keeps no more than it needs."""
        with self._changed:
            if ticket in self._held:
                self._held[ticket] = size
                self._changed.notify_all()

    def give(self, ticket: int) -> None:
        """It needs none any longer."""
        with self._changed:
            if self._held.pop(ticket, None) is not None:
                self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """For a change, and no longer."""
        with self._changed:
            self._changed.wait(seconds)


class Fetcher:
    """Brings files. Args: most: bytes one may have. Attributes: room: for large ones, which whoever takes a file gives back."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.room = Room()
        self._over = threading.Event()
        #: what a large one of unknown size is thought to need: at once more when one needs more, and by and by less
        self._usual = _FIRST

    def stop(self) -> None:
        """Whoever waits for a file waits no longer."""
        self._over.set()

    def get(self, url: str, size: int = -1, ticket: int | None = None) -> tuple[bytes | None, str]:
        """Args: size: it was listed with, -1: unknown; ticket: its number among all, None: it needs no room. Returns: (the bytes, ""), or (None, why not)."""
        odd = odd_url(url)
        data, why = (None, odd) if odd else self._tried(url, size, ticket)
        if ticket is not None:
            self.room.give(ticket) if data is None else self.room.came(ticket, len(data))
        return data, why

    def _tried(self, url: str, size: int, ticket: int | None) -> tuple[bytes | None, str]:
        for attempt in range(_TRIES):
            try:
                data = self._with_room(url, size, ticket)
                return (data, "") if data else (None, "it is empty")
            except _TooLarge as e:
                return None, str(e)
            except Exception as e:
                why, final, worth = _why(e, url), _final(e), _is_worth_a_try(e)
                if isinstance(e, urllib.error.HTTPError):
                    e.close()
            if final or not worth:
                return None, why if final else Unfetched(why)
            if attempt < _TRIES - 1 and self._over.wait(_PAUSE * 2**attempt):
                break
        return None, Unfetched(f"{why} ({attempt + 1} tries)")

    def take(self, size: int) -> None:
        """Raises: _TooLarge: so many bytes are announced."""
        if size > self.most:
            raise _TooLarge(too_large(size, self.most))

    def _with_room(self, url: str, size: int, ticket: int | None) -> bytes:
        """Without room a download is given up, not held: a server that waits long gives it up, too."""
        while True:
            try:
                return self._once(url, size, ticket)
            except _NoRoom as e:
                assert ticket is not None
                self.room.give(ticket)
                while not self.room.has(ticket, e.wanted):
                    if self._over.is_set():
                        raise OSError("it was stopped") from None
                    self.room.wait(_TICK)

    def _once(self, url: str, size: int, ticket: int | None) -> bytes:
        if size > self.most:
            raise _TooLarge(too_large(size, self.most))
        web = downloads.is_web(url)
        pieces = (
            downloads.from_web(url, self, unzipped=not _ZIPPED.search(url))
            if web
            else _whole(url)
            if 0 <= size <= _BY_ONE_REQUEST
            else downloads.from_anywhere(url)
        )
        whole = io.BytesIO()
        with contextlib.ExitStack() as held:
            stream = timed(pieces, downloads.SLOWEST_SECONDS, downloads.SLOWEST, self._over)
            held.enter_context(contextlib.closing(stream))
            room, came = _LARGE, 0
            for piece in stream:
                came = whole.tell() + len(piece)
                if came > self.most:
                    raise _TooLarge(f"it has more than {self.most:,} bytes; max_file_size (--max-file-size) allows more")
                if came > room and ticket is not None:
                    room = self._more(came, size, ticket)
                whole.write(piece)
        if room > _LARGE and came > size:
            self._usual = max(_FIRST, min(self._usual, (self._usual + came) // 2))
        return whole.getvalue()

    def _more(self, came: int, size: int, ticket: int) -> int:
        """Args: size: it was listed with. Returns: for how many bytes there is room. Raises: _NoRoom."""
        if came <= size:
            wanted = size
        else:
            if came > self._usual:
                self._usual = min(2 * came, self.most)
            wanted = max(came, self._usual)
        if not self.room.has(ticket, wanted):
            raise _NoRoom(wanted)
        return wanted


def _whole(url: str) -> Generator[bytes, None, None]:
    """A small file of a store, by one request."""
    fs, path = fsspec.core.url_to_fs(url)
    yield fs.cat_file(path)


def _code(error: Exception) -> int:
    return error.code if isinstance(error, urllib.error.HTTPError) else 0


def _final(error: Exception) -> bool:
    """Whether it is known not to be there, this time and the next."""
    code = _code(error)
    never = (ValueError, FileNotFoundError, http.client.InvalidURL)
    return code in _FOR_GOOD or _leads_away(error) if code else isinstance(error, never)


def _leads_away(error: Exception) -> bool:
    """Whether urllib does not follow where a server points: to a file of this machine, say."""
    return isinstance(error, urllib.error.HTTPError) and "is not allowed" in str(error.msg)


def _is_worth_a_try(error: Exception) -> bool:
    code = _code(error)
    return code >= 500 or code in _TRIED_AGAIN if code else not downloads.is_final(error)


def _why(error: Exception, url: str) -> str:
    if downloads.is_web(url) and _has_waited(error):
        return f"no answer within {downloads.SILENCE:g} s"
    if isinstance(error, urllib.error.HTTPError) and 300 <= error.code < 400:
        if _leads_away(error):
            return redacted(f"it leads on to {str(error.headers.get('Location'))[:200]}, which is neither http nor https")
        return "it is redirected without an end"
    if isinstance(error, _NO_HTTP) and not isinstance(error, http.client.RemoteDisconnected):
        said = " ".join(str(error).split())[:_SAID]
        return redacted(f"what answers there does not speak HTTP (it says {said!r})")
    return redacted(in_words(error))


def _has_waited(error: Exception) -> bool:
    """Whether we gave up waiting, and not the system, which says so with a number."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, TimeoutError) and reason.errno is None


def too_large(size: int, most: int) -> str:
    """Half a sentence."""
    return f"it has {size:,} bytes; the most is {most:,} (max_file_size=, --max-file-size)"
