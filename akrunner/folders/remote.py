"""Fetching of files from URLs: bounded in size and time, tried several times, and given up at once when the run ends.

::

    url --http, https: as downloads; else fsspec--> pieces -> bytes | why it cannot be packed | Unfetched: why it did not come
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
#: seconds before the second try; twice as many before the third
_PAUSE = 0.5
#: bytes above which a file needs room, and the bytes of room for all such files at a time, so that they do not fill the memory
_LARGE, _ROOM = 1 << 20, 256 << 20
#: bytes of room that a large file of unknown size asks for at first
_FIRST = 8 << 20
#: files of a store that have up to this many bytes are fetched by one request
_BY_ONE_REQUEST = 8 << 20
_TICK = 0.2
#: a URL; protocols may be chained (simplecache::s3://)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.:_-]*://")
#: schemes of S3, schemes of all stores with buckets, and the form of a bucket's name in S3
_S3 = ("s3", "s3a")
_BUCKETS = (*_S3, "gs", "gcs", "oss", "az", "abfs", "abfss")
_BUCKET = re.compile(r"[A-Za-z0-9._-]{1,255}")
#: matches names of files that are compressed themselves
_ZIPPED = re.compile(r"\.(gz|tgz)([?#]|\Z)", re.IGNORECASE)
#: errors of answers that are not HTTP, and how many characters of one a message shows
_NO_HTTP, _SAID = (http.client.BadStatusLine, http.client.LineTooLong), 60
#: HTTP codes below 500 that are worth another try, and codes that mean that the file will never be there
_TRIED_AGAIN, _FOR_GOOD = (408, 425, 429), (404, 410)
#: status codes that lead to another URL
_REDIRECTS = (301, 302, 303, 307, 308)
#: why a file is too large: its bytes and the most that are allowed, or only the latter if it was not read to its end
_OF_SIZE = "it has {} bytes; the most is {} (max_file_size=, --max-file-size)"
_OF_MORE = "it has more than {} bytes; max_file_size (--max-file-size) allows more"
_TOO_LARGE = re.compile("|".join(re.escape(one).replace(r"\{\}", "([0-9][0-9,]*)") for one in (_OF_SIZE, _OF_MORE)))


def odd_url(url: str) -> str:
    """Return why there can be no file behind a URL, as half a sentence; "": there can."""
    if not _URL.match(url):
        # for example, there is a blank before it
        return "it is no URL"
    why = downloads.no_host(url) if downloads.is_web(url) else ""
    return redacted(f"it is no URL: {why}") if why else _no_object(url)


def _no_object(url: str) -> str:
    """Return why there can be no file behind a store's URL, which needs a bucket and the name of an object; "": there can."""
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in _BUCKETS or "::" in url:
        return ""
    bucket, _, name = rest.partition("/")
    if not bucket or not name.strip("/"):
        return f"it names no {'file' if bucket else 'bucket'}: {scheme}://BUCKET/PATH/TO/FILE"
    # ARNs of access points have other characters, too
    if scheme.lower() in _S3 and not _BUCKET.fullmatch(bucket) and not bucket.startswith("arn:"):
        return f"it is no URL: no bucket is called {redacted(url).partition('://')[2].partition('/')[0][:_SAID]!r}"
    return ""


class Unfetched(str):
    """Why a file could not be fetched, half a sentence. Nothing is known to be wrong with it: the next run tries it again."""


class _TooLarge(Exception):
    pass


class _NoRoom(Exception):
    """There is no room for a file. Attributes: wanted: bytes that the file needs."""

    def __init__(self, wanted: int) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class Room:
    """Counts the bytes of large files that are held in memory, from their download until they are taken.

    The file that is taken next always has room, so no download waits for ever.

    Args: limit: most bytes of all other files together.
    """

    def __init__(self, limit: int = _ROOM) -> None:
        self._limit = limit
        self._held: dict[int, int] = {}
        self._next = -1
        self._changed = threading.Condition()

    def want(self, ticket: int) -> None:
        """Note that the file of a ticket is taken next, so that it always has room."""
        with self._changed:
            self._next = ticket
            self._changed.notify_all()

    def has(self, ticket: int, size: int) -> bool:
        """Take room for a file, in place of what it had.

        Returns: False if there is not enough; the file then keeps what it had.
        """
        with self._changed:
            others = sum(self._held.values()) - self._held.get(ticket, 0)
            if ticket != self._next and others and others + size > self._limit:
                return False
            self._held[ticket] = size
            return True

    def came(self, ticket: int, size: int) -> None:
        """Reduce a file's room to what it needs, as it has come completely. Args: size: its bytes."""
        with self._changed:
            if ticket in self._held:
                self._held[ticket] = size
                self._changed.notify_all()

    def give(self, ticket: int) -> None:
        """Give back a file's room."""
        with self._changed:
            if self._held.pop(ticket, None) is not None:
                self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until a file has given room back, or another is taken next, but at most `seconds`."""
        with self._changed:
            self._changed.wait(seconds)


class Fetcher:
    """Fetches files.

    Args: most: most bytes of a file.
    Attributes: room: room for large files; the code that takes a file gives its room back.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.room = Room()
        self._over = threading.Event()
        #: bytes that a large file of unknown size is expected to need: raised at once when one needs more, lowered step by step
        self._usual = _FIRST

    def stop(self) -> None:
        """End all downloads, and all waiting for them."""
        self._over.set()

    def get(self, url: str, size: int = -1, ticket: int | None = None) -> tuple[bytes | None, str]:
        """Fetch a file.

        Args:
            url: URL of the file.
            size: the size it was listed with; -1: unknown.
            ticket: number of the file, under which it takes room; None: it needs no room.
        Returns:
            (the bytes, ""), or (None, why there are none).
        """
        odd = odd_url(url)
        data, why = (None, odd) if odd else self._tried(url, size, ticket)
        if ticket is not None:
            self.room.give(ticket) if data is None else self.room.came(ticket, len(data))
        return data, why

    def _tried(self, url: str, size: int, ticket: int | None) -> tuple[bytes | None, str]:
        for number in range(_TRIES):
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
            if number < _TRIES - 1 and self._over.wait(_PAUSE * 2**number):
                break
        return None, Unfetched(f"{why} ({number + 1} tries)")

    def take(self, size: int) -> None:
        """Accept the size that a server announces. Raises: _TooLarge: it is more than a file may have."""
        if size > self.most:
            raise _TooLarge(too_large(size, self.most))

    def _with_room(self, url: str, size: int, ticket: int | None) -> bytes:
        """Download a file once there is room for it.

        A download that finds no room is given up and begun again later, not paused: a server that waits long ends it, too.
        """
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
                    raise _TooLarge(_OF_MORE.format(f"{self.most:,}"))
                if came > room and ticket is not None:
                    room = self._more(came, size, ticket)
                whole.write(piece)
        if room > _LARGE and came > size:
            self._usual = max(_FIRST, min(self._usual, (self._usual + came) // 2))
        return whole.getvalue()

    def _more(self, came: int, size: int, ticket: int) -> int:
        """Take more room for a file. Args: came: bytes that have come; size: the size it was listed with.

        Returns: for how many bytes there is room now. Raises: _NoRoom.
        """
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
    """Fetch a small file of a store by one request."""
    fs, path = fsspec.core.url_to_fs(url)
    yield fs.cat_file(path)


def _code(error: Exception) -> int:
    return error.code if isinstance(error, urllib.error.HTTPError) else 0


def _final(error: Exception) -> bool:
    """Whether an error means that the file does not exist, now or at another try."""
    code = _code(error)
    never = (ValueError, FileNotFoundError, http.client.InvalidURL)
    return code in _FOR_GOOD or _leads_away(error) if code else isinstance(error, never)


def _leads_away(error: Exception) -> bool:
    """Whether a server redirects to a URL that urllib refuses, such as a file of this machine."""
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
        if error.code in _REDIRECTS and error.headers.get("Location"):
            return "it is redirected without an end"
    if isinstance(error, _NO_HTTP) and not isinstance(error, http.client.RemoteDisconnected):
        said = " ".join(str(error).split())[:_SAID]
        return redacted(f"what answers there does not speak HTTP (it says {said!r})")
    return redacted(in_words(error))


def _has_waited(error: Exception) -> bool:
    """Whether a timeout of akrunner's ended the wait; one of the system's has an error number."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, TimeoutError) and reason.errno is None


def too_large(size: int, most: int) -> str:
    """Return an error about a file that is too large, as half a sentence."""
    return _OF_SIZE.format(f"{size:,}", f"{most:,}")


def fits(why: str, most: int) -> bool:
    """Whether a file may no longer be too large.

    Args:
        why: why it could not be packed: a file is too large only if these are exactly the words for that.
        most: most bytes of a file now.
    """
    found = _TOO_LARGE.fullmatch(why)
    if found is None:
        return False
    size, _, more = (int((one or "0").replace(",", "")) for one in found.groups())
    return size <= most if size else more < most
