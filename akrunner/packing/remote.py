"""What is behind URLs: bounded in size and time, tried again, and given up within a moment once nobody wants it.

::

    url --http, https: as downloads; else fsspec--> pieces -> bytes | why it is no good | Unfetched: why it did not come
"""

from __future__ import annotations

import contextlib
import io
import threading
import urllib.error
from typing import Generator, Optional, Tuple

import fsspec

from akrunner.foreign import in_words, redacted
from akrunner.launch import downloads
from akrunner.launch.timed import timed

_TRIES = 3
#: seconds before the second try; before the third twice as many
_PAUSE = 0.5
#: a file of more bytes waits until others of its size have come, so that many of them do not fill the memory
_LARGE, _LARGE_AT_ONCE = 8 << 20, 2
_TICK = 0.2
#: what servers answer that will not do better a moment later, and what of it is so for good
_TRIED_AGAIN, _FOR_GOOD = (408, 425, 429), (404, 410)


class Unfetched(str):
    """Why a file did not come, half a sentence: nothing is wrong with it that is known, and the next run tries it again."""


class _TooLarge(Exception):
    pass


class Fetcher:
    """Brings files. Args: most: bytes one may have."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._over = threading.Event()
        self._large = threading.BoundedSemaphore(_LARGE_AT_ONCE)

    def stop(self) -> None:
        """Whoever waits for a file waits no longer."""
        self._over.set()

    def get(self, url: str, size: int = -1) -> Tuple[Optional[bytes], str]:
        """Args: size: it was listed with, -1: unknown. Returns: (the bytes, ""), or (None, why not)."""
        for attempt in range(_TRIES):
            try:
                data = self._once(url, size)
                return (data, "") if data else (None, "it is empty")
            except _TooLarge as e:
                return None, str(e)
            except Exception as e:
                why, final, worth = _why(e), _final(e), _is_worth_a_try(e)
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

    def _once(self, url: str, size: int) -> bytes:
        if size > self.most:
            raise _TooLarge(too_large(size, self.most))
        web = downloads.is_web(url)
        pieces = downloads.from_web(url, self) if web else _whole(url) if 0 <= size <= _LARGE else downloads.from_anywhere(url)
        whole = io.BytesIO()
        with contextlib.ExitStack() as held:
            stream = timed(pieces, downloads.SLOWEST_SECONDS, downloads.SLOWEST, self._over)
            held.enter_context(contextlib.closing(stream))
            large = False
            for piece in stream:
                came = whole.tell() + len(piece)
                if came > self.most:
                    raise _TooLarge(f"it has more than {self.most:,} bytes; max_file_size (--max-file-size) allows more")
                if came > _LARGE and not large:
                    large = self._wait_for_room(held)
                whole.write(piece)
        return whole.getvalue()

    def _wait_for_room(self, held: contextlib.ExitStack) -> bool:
        while not self._large.acquire(timeout=_TICK):
            if self._over.is_set():
                raise OSError("it was stopped")
        held.callback(self._large.release)
        return True


def _whole(url: str) -> Generator[bytes, None, None]:
    """A small file of a store, by one request."""
    fs, path = fsspec.core.url_to_fs(url)
    yield fs.cat_file(path)


def _code(error: Exception) -> int:
    return error.code if isinstance(error, urllib.error.HTTPError) else 0


def _final(error: Exception) -> bool:
    """Whether it is known not to be there, this time and the next."""
    code = _code(error)
    return code in _FOR_GOOD or _leads_away(error) if code else isinstance(error, (ValueError, FileNotFoundError))


def _leads_away(error: Exception) -> bool:
    """Whether urllib does not follow where a server points: to a file of this machine, say."""
    return isinstance(error, urllib.error.HTTPError) and "is not allowed" in str(error.msg)


def _is_worth_a_try(error: Exception) -> bool:
    code = _code(error)
    return code >= 500 or code in _TRIED_AGAIN if code else not downloads.is_final(error)


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError) and 300 <= error.code < 400:
        if _leads_away(error):
            return redacted(f"it leads on to {str(error.headers.get('Location'))[:200]}, which is neither http nor https")
        return "it is redirected without an end"
    return redacted(in_words(error))


def too_large(size: int, most: int) -> str:
    """Half a sentence."""
    return f"it has {size:,} bytes; the most is {most:,} (max_file_size=, --max-file-size)"
