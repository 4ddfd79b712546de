"""A proxy before a server that says nothing any more after some bytes, and keeps all connections open: a network that has gone silent."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class Silent:
    """Attributes: port; silent: set once nothing passes any more."""

    def __init__(self, port: int, up: int | None, down: int | None) -> None:
        """Args: port: of the server on this machine; up, down: how many bytes pass to it, and from it; None: all."""
        self._server = port
        self._left = {"up": up, "down": down}
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self.silent = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        for one in [self._listener, *self._open]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                self._open += [client, server]
                for source, target, way in ((client, server, "up"), (server, client, "down")):
                    threading.Thread(target=self._copy, args=(source, target, way), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, way: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                with self._lock:
                    left = self._left[way]
                    if left is not None:
                        self._left[way] = left - len(data)
                        if left < len(data):
                            self.silent.set()
                if self.silent.is_set():
                    return
                target.sendall(data)
            # the end passes, too
            target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def silent(port: int, up: int | None = None, down: int | None = None) -> Iterator[Silent]:
    """A proxy before a server; see `Silent`."""
    proxy = Silent(port, up, down)
    try:
        yield proxy
    finally:
        proxy.close()
