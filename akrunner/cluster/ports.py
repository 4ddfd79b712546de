"""Ports for TensorFlow's own servers, held so that no other job takes them between choice and use."""

from __future__ import annotations

import socket

from akrunner.errors import ConfigError


class PortHold:
    """Ports of this machine, bound but not listening.

    On Linux a port held this way can still be bound by TensorFlow (both sides set SO_REUSEADDR and only one listens), so it
    is kept for the whole job; elsewhere it is let go just before the tasks enter `main`.

    Args:
        count: how many; host: the address to bind; advertised: the name others know it by, None for the same.
    Raises: ConfigError: it is no address of this machine.
    """

    def __init__(self, count: int, host: str = "127.0.0.1", advertised: str | None = None) -> None:
        self._sockets: list[socket.socket] = []
        self.host = advertised or host
        try:
            for _ in range(count):
                self._sockets.append(_bound(host))
        except OSError as e:
            self.close()
            raise ConfigError(f"bind_host={host!r}: cannot bind a port there: {e.strerror or e}") from None
        self.ports = [held.getsockname()[1] for held in self._sockets]

    @property
    def addresses(self) -> list[str]:
        """["127.0.0.1:40001", ...]"""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return [f"{host}:{port}" for port in self.ports]

    def close(self) -> None:
        """Let go of all; twice is fine."""
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
