"""Ports for TensorFlow's own servers, held so that no other job takes them between their choice and their use."""

from __future__ import annotations

import socket
import sys

from akrunner.errors import ConfigError


class PortHold:
    """Ports of this machine, bound but not listening.

    On Linux TensorFlow can still bind a port that is held this way (both sides set SO_REUSEADDR and only one listens), so the
    ports are held until `close`; elsewhere `give_way` releases them before the tasks serve.

    Args:
        count: how many ports.
        host: the address to bind.
        advertised: the name by which the other tasks know the address; None: the address itself.
    Raises:
        ConfigError: `host` is no address of this machine.
    """

    def __init__(self, count: int, host: str = "127.0.0.1", advertised: str | None = None) -> None:
        self._sockets: list[socket.socket] = []
        self.host = (advertised or host).strip("[]")
        try:
            for _ in range(count):
                self._sockets.append(_bound(host))
        except OSError as e:
            self.close()
            raise ConfigError(f"bind_host={host!r}: cannot bind a port there: {e.strerror or e}") from None
        self.ports = [held.getsockname()[1] for held in self._sockets]

    @property
    def addresses(self) -> list[str]:
        """The addresses with their ports: ["127.0.0.1:40001", ...]."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return [f"{host}:{port}" for port in self.ports]

    def give_way(self) -> None:
        """Release all ports on a system where no task could bind them otherwise: from now on tasks may bind them."""
        if sys.platform != "linux":
            self.close()

    def close(self) -> None:
        """Release all ports; a second call does no harm."""
        for held in self._sockets:
            held.close()
        self._sockets.clear()


def _bound(host: str) -> socket.socket:
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((host, 0))
    except OSError:
        held.close()
        raise
    return held
