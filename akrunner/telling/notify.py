"""`notify=`: the end of a job goes as a JSON object to a URL, or as a dict to a function.

The URL may have a secret in any of its parts (a token in the path, a password), so that no text shows more of it than its host.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from akrunner.checks import of_type
from akrunner.errors import ConfigError
from akrunner.foreign import in_words
from akrunner.io.sql import heard
from akrunner.outcomes import plain
from akrunner.prepare.arguments import NotifyLike

#: how often a URL is tried, how many seconds each try may take, and the seconds before the second, which double
_TRIES = 3
_SECONDS = 10.0
_PAUSE = 1.0
#: the same of a job that was interrupted: somebody waits for its end
_HASTY_SECONDS = 5.0
#: answers after which another try may succeed, beside those that say that the server has failed
_AGAIN = (408, 425, 429)
_KNOB = "notify=, --notify"
#: how many bytes of an answer are read, so that the server has got rid of it
_ANSWER = 1 << 16


class Notify:
    """Tells one place of the end of a job.

    Args: to: the place. Raises: ConfigError: it is no such place.
    """

    def __init__(self, to: NotifyLike) -> None:
        check_notify(to)
        self._to = to

    def tell(self, body: Mapping[str, Any], hasty: bool = False) -> str | None:
        """Tell the end of a job. Blocks for at most 33 seconds, and for 5 if it is hasty; a function blocks as long as it likes.

        Args:
            body: what is told.
            hasty: try only once.
        Returns: why it could not be told, a warning; None: it was.
        """
        told = plain(body)
        if isinstance(self._to, str):
            return self._post(self._to, json.dumps(told, allow_nan=False).encode(), hasty)
        try:
            self._to(told)
        except Exception as e:
            return f"notify: the function raised {type(e).__name__}: {in_words(e)} ({_KNOB})"
        return None

    def _post(self, url: str, data: bytes, hasty: bool) -> str | None:
        tries, seconds = (1, _HASTY_SECONDS) if hasty else (_TRIES, _SECONDS)
        why = ""
        for number in range(tries):
            if number:
                _sleep(_PAUSE * 2 ** (number - 1))
            try:
                # names are looked up without a limit of their own
                heard(lambda: _posted(url, data, seconds), None, seconds)
                return None
            except TimeoutError:
                why = f"it has not answered within {seconds:g} s"
            except urllib.error.HTTPError as e:
                e.close()
                why = f"it answered {e.code} {e.reason}".rstrip()
                if e.code < 500 and e.code not in _AGAIN:
                    break
            except Exception as e:
                # a name that no resolver takes, or no thread to be had: the job is over, and its end stays what it is
                why = _reason(e)
        return f"notify: {shown(url)} was not told of the end of the job: {why} ({_KNOB})"


def check_notify(value: Any) -> None:
    """Check a place that is to be told. Raises: ConfigError: it is no URL of HTTP, and no function."""
    if value is None or callable(value):
        return
    if not isinstance(value, str):
        raise ConfigError(f"notify: give a URL, http:// or https://, or a function that takes a dict, not {of_type(value)}")
    try:
        parts = urllib.parse.urlsplit(value)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        # as a resolver gets it: no part of it may be empty, or longer than 63 characters
        (parts.hostname or "").encode("idna")
    except ValueError:
        whole = False
    if not whole or not value.isascii() or any(not char.isprintable() or char == " " for char in value):
        raise ConfigError(
            "notify: that is no URL of a web server: give http://HOST/PATH or https://HOST/PATH (with %20 for a blank)"
        )


def shown(url: str) -> str:
    """Return what a message may show of a URL."""
    parts = urllib.parse.urlsplit(url)
    port = f":{parts.port}" if parts.port is not None else ""
    return f"{parts.scheme}://{parts.hostname}{port}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A POST that is sent elsewhere would become a GET, or tell a stranger."""

    def redirect_request(self, *asked: Any) -> None:
        """Return no request, so that the answer is an error."""


def _posted(url: str, data: bytes, seconds: float) -> None:
    """POST a JSON object. Raises: OSError, HTTPException: it was not taken."""
    parts = urllib.parse.urlsplit(url)
    headers = {"Content-Type": "application/json", "User-Agent": "akrunner"}
    user, at, host = parts.netloc.rpartition("@")
    if at:
        headers["Authorization"] = "Basic " + base64.b64encode(urllib.parse.unquote(user).encode()).decode()
    plain_url = urllib.parse.urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
    request = urllib.request.Request(plain_url, data, headers, method="POST")
    with urllib.request.build_opener(_NoRedirects).open(request, timeout=seconds) as answer:
        answer.read(_ANSWER)


def _reason(error: Exception) -> str:
    """Return why a server was not reached, in words."""
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    return in_words(inner) if isinstance(inner, Exception) else str(inner)


def _sleep(seconds: float) -> None:
    """Wait for short times only: where polars was imported, Ctrl-C does not end a longer one."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))
