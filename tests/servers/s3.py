"""A real S3 server (moto's, a process of its own), and a proxy before it that lets some requests fail.

::

    akrunner -> s3fs -> [Flaky: every n-th request fails] -> moto
"""

from __future__ import annotations

import http.client
import random
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

# it ends with whoever holds its stdin, however that ends
_SERVER = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from moto.server import main
main(["-H", "127.0.0.1", "-p", "0"])
"""
#: what becomes of a request that fails: an answer, no answer, or none although it was done
HOWS = ("500 InternalError", "503 SlowDown", "drop", "late")
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "akrunner", "AWS_SECRET_ACCESS_KEY": "akrunner-secret", "AWS_DEFAULT_REGION": "us-east-1"}


@dataclass
class S3:
    """Attributes: url: of the server; bucket: empty, the test's own."""

    url: str
    bucket: str

    def fs(self) -> Any:
        """A client of its own: no listing of it is remembered."""
        import s3fs

        return s3fs.S3FileSystem(
            endpoint_url=self.url,
            key=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
            secret=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
            use_listings_cache=False,
        )

    def put(self, name: str, data: bytes) -> str:
        """Store an object; returns its URL."""
        self.fs().pipe_file(f"{self.bucket}/{name}", data)
        return f"s3://{self.bucket}/{name}"

    def keys(self) -> list[str]:
        """What is in the bucket."""
        return sorted(path.partition("/")[2] for path in self.fs().find(self.bucket))

    def uploads(self) -> list[str]:
        """Keys of uploads that were begun and neither completed nor ended."""
        return [upload["Key"] for upload in self.fs().list_multipart_uploads(self.bucket)]

    def get(self, name: str) -> bytes:
        return bytes(self.fs().cat_file(f"{self.bucket}/{name}"))


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """URL of the server."""
    command = [sys.executable, "-W", "ignore", "-c", _SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None and server.stdin is not None
        found: Any | None = None
        for line in server.stderr:
            found = re.search(r"Running on (http://127\.0\.0\.1:\d+)", line)
            if found:
                break
        assert found, "moto did not start"
        drain = threading.Thread(target=server.stderr.read, daemon=True)
        drain.start()
        yield found.group(1)
        server.stdin.close()
        server.wait(60)
        drain.join(60)


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """The server, with the environment that leads s3fs to it."""
    import s3fs

    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_server}.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    found = S3(s3_server, f"b-{uuid.uuid4().hex[:12]}")
    found.fs().mkdir(found.bucket)
    yield found
    s3fs.S3FileSystem.clear_instance_cache()


class Flaky:
    """Answers every `nth` request itself, with an error or by hanging up; sometimes only after the server has done it.

    Attributes: url; failed: (method, path, how) of each.
    """

    def __init__(self, server: str, nth: int, seed: int, hows: tuple[str, ...] = HOWS) -> None:
        self.failed: list[tuple[str, str, str]] = []
        self._lock = threading.Lock()
        self._count = 0
        self._nth, self._hows, self._random = nth, hows, random.Random(seed)
        flaky, host = self, urlsplit(server).netloc

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                how = flaky.fate(self.command, self.path)
                status, _, code = how.partition(" ")
                if status.isdigit():
                    self.answer(
                        int(status), {"Content-Type": "application/xml"}, f"<Error><Code>{code}</Code></Error>".encode()
                    )
                    return
                if how == "drop":
                    self.close_connection = True
                    return
                connection = http.client.HTTPConnection(host, timeout=30)
                try:
                    connection.request(self.command, self.path, body, dict(self.headers.items()))
                    answered = connection.getresponse()
                    data = answered.read()
                finally:
                    connection.close()
                if how == "late":
                    self.close_connection = True
                    return
                self.answer(answered.status, dict(answered.getheaders()), data)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on

            def answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                        self.send_header(name, value)
                length = headers.get("Content-Length", str(len(data))) if self.command == "HEAD" else str(len(data))
                self.send_header("Content-Length", length)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def fate(self, method: str, path: str) -> str:
        """What becomes of a request: "" if it goes through."""
        with self._lock:
            self._count += 1
            if self._count % self._nth:
                return ""
            how = self._random.choice(self._hows)
            self.failed.append((method, path, how))
            return how

    def __enter__(self) -> Flaky:
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)
