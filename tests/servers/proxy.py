"""A TLS proxy with a path prefix and basic authentication, as stands before a Flink cluster's REST service."""

from __future__ import annotations

import base64
import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

_HEAD = 1 << 16


class Proxy:
    """Attributes: port; certificate: PEM file to trust; refused: requests it has turned away."""

    def __init__(self, target: str, prefix: str, credentials: str, folder: Path) -> None:
        """Args: target: "host:port" behind it; prefix: "/flink"; credentials: "user:password"."""
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._prefix = prefix.encode()
        self._wanted = b"Basic " + base64.b64encode(credentials.encode())
        self.refused: list[bytes] = []
        self.certificate = str(folder / "certificate.pem")
        key = str(folder / "key.pem")
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        extensions = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:TRUE"]
        subprocess.run([*made, *extensions, "-keyout", key, "-out", self.certificate], check=True, capture_output=True)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._serving.join(60)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, plain: socket.socket) -> None:
        """One request of a connection: the head is looked at, the rest goes through."""
        with contextlib.suppress(OSError), plain:
            with self._context.wrap_socket(plain, server_side=True) as client:
                head = bytearray()
                while b"\r\n\r\n" not in head and len(head) < _HEAD:
                    head += client.recv(_HEAD) or b"\r\n\r\n"
                method, path, rest = bytes(head).split(b" ", 2)
                if self._wanted not in rest:
                    self.refused.append(bytes(path))
                    client.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                elif not path.startswith(self._prefix + b"/"):
                    self.refused.append(bytes(path))
                    client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                else:
                    self._forward(client, method + b" " + path[len(self._prefix) :] + b" " + rest)

    def _forward(self, client: ssl.SSLSocket, head: bytes) -> None:
        line, _, fields = head.partition(b"\r\n")
        with socket.create_connection(self._target) as server:
            # one request for each connection: the next one's path has to be looked at, too
            server.sendall(line + b"\r\nConnection: close\r\n" + fields)
            back = threading.Thread(target=_copied, args=(server, client), daemon=True)
            back.start()
            with contextlib.suppress(OSError):
                client.settimeout(0.1)
                while back.is_alive():
                    with contextlib.suppress(TimeoutError):
                        if not (data := client.recv(_HEAD)):
                            break
                        server.sendall(data)
            back.join(30)


def _copied(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_HEAD):
            target.sendall(data)


@contextlib.contextmanager
def before(target: str, prefix: str, credentials: str, folder: Path) -> Iterator[Proxy]:
    """A proxy before `target`; see `Proxy`. Needs openssl."""
    assert shutil.which("openssl")
    proxy = Proxy(target, prefix, credentials, folder)
    try:
        yield proxy
    finally:
        proxy.close()
