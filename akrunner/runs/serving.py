"""Serves pages about the runs of this machine, to browsers of this machine that know a token.

::

    GET /?token=...        the token becomes a cookie; what follows needs it
    GET /                  the list of runs; /?failed=1: those that have not succeeded
    GET /runs/r42          the report of a run; while it runs, the page asks for
    GET /runs/r42/now      what is new, as JSON
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from akrunner.errors import AkrunnerError, ConfigError
from akrunner.foreign import in_words
from akrunner.reports import page
from akrunner.reports.listing import listing
from akrunner.runs.fetching import fetched
from akrunner.runs.looking import get, listed

_HOST = "127.0.0.1"
#: runs in the list
_LISTED = 200
#: seconds for which a connection may be silent
_SILENT = 10.0
_RUN = re.compile(r"/runs/(r\d{1,15})(/now)?")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RunServer(ThreadingHTTPServer):
    """Serves the runs, on the loopback interface alone. Call `serve_forever`, and `server_close` at the end.

    Args:
        port: the port; 0: any that is free.
    Attributes:
        token: what a browser has to know.
        url: the address of the list, with the token.
    """

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        """Listen. Raises: ConfigError: the port cannot be had, or the extra is not installed."""
        page.check_extra()
        # made once, before the first browser waits for it
        page.library()
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((_HOST, port), _Handler)
        except (OSError, OverflowError) as e:
            raise ConfigError(f"port={port}: {in_words(e)}; --port 0 takes one that is free") from None

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.server_address[1]}/?token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing if a browser has gone."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: RunServer
    timeout = _SILENT

    def do_GET(self) -> None:
        """Answer a request."""
        if self.headers.get("Host") not in {f"{name}:{self.server.server_address[1]}" for name in (_HOST, "localhost")}:
            # a page of another site, whose name means this machine by now
            self._say(HTTPStatus.FORBIDDEN, "this address is not the one that akrunner runs --serve has printed")
            return
        try:
            parts = urlsplit(self.path)
        except ValueError:
            self._say(HTTPStatus.BAD_REQUEST, "this is no address of a page")
            return
        given = parse_qs(parts.query)
        if "token" in given:
            self._enter(given["token"][0], parts.path)
        elif not self._is_known():
            self._say(HTTPStatus.FORBIDDEN, "open the address that akrunner runs --serve has printed: it has a token")
        else:
            self._answer(parts.path, "failed" in given)

    def _enter(self, token: str, path: str) -> None:
        """Take a token out of the address, which others may see, and into a cookie."""
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._say(
                HTTPStatus.FORBIDDEN, "the token is another one: open the address that akrunner runs --serve has printed last"
            )
            return
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", path if _RUN.fullmatch(path) else "/")
        self.send_header("Set-Cookie", f"{self._cookie()}={token}; HttpOnly; SameSite=Strict; Path=/")
        self._end(b"", "text/plain")

    def _cookie(self) -> str:
        # cookies of one host are sent to all its ports
        return f"akrunner-{self.server.server_address[1]}"

    def _is_known(self) -> bool:
        # by hand: `SimpleCookie` drops all cookies for one that it does not understand, and other programs of this host set theirs
        pairs = (one.strip().partition("=") for one in self.headers.get("Cookie", "").split(";"))
        token = self.server.token.encode()
        return any(name == self._cookie() and hmac.compare_digest(value.encode(), token) for name, _, value in pairs)

    def _answer(self, path: str, failed: bool) -> None:
        of_run = _RUN.fullmatch(path)
        try:
            if path == "/":
                runs = [(run, run.rows) for run in listed(failed, _LISTED)]
                self._send(page.page(listing(runs, failed)), "text/html")
            elif of_run is None:
                self._say(HTTPStatus.NOT_FOUND, "there is no such page; / is the list of runs")
            else:
                run = fetched(get(of_run[1]))
                report = page.told(run, run.path)
                if of_run[2]:
                    self._send(json.dumps({"body": report.body, "plots": report.plots}), "application/json")
                else:
                    self._send(page.page(report, live=True), "text/html")
        except AkrunnerError as e:
            self._say(HTTPStatus.NOT_FOUND, str(e))
        except OSError:
            # the browser has gone
            raise
        except Exception as e:
            words = f"this page cannot be made: {type(e).__name__}: {in_words(e)}"
            print("".join(c if c.isprintable() else " " for c in f"akrunner: {path}: {words}"), file=sys.stderr)
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, words)

    def _send(self, text: str, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self._end(text.encode(), kind)

    def _say(self, status: HTTPStatus, words: str) -> None:
        self.send_response(status)
        self._end(f"{words}\n".encode(), "text/plain")

    def _end(self, body: bytes, kind: str) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: a request may have the token in it."""
