"""What both ends do to a connection of theirs. Standard library only: an agent's Python has nothing else."""

from __future__ import annotations

import socket

#: a machine that does not answer for so long has gone
SILENCE_SECONDS = 20
_PROBE_SECONDS = 5


def tune(connection: socket.socket) -> None:
    """Send at once, and notice within `SILENCE_SECONDS` that the other machine, or the way to it, has gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_SECONDS),
        ("TCP_KEEPALIVE", _PROBE_SECONDS),  # macOS's word for it
        ("TCP_KEEPINTVL", _PROBE_SECONDS),
        ("TCP_KEEPCNT", SILENCE_SECONDS // _PROBE_SECONDS - 1),
        # probes are not sent while data is unacknowledged
        ("TCP_USER_TIMEOUT", SILENCE_SECONDS * 1000),
    ):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def shut(connection: socket.socket, how: int) -> None:
    """`shutdown`; nothing when it has gone already."""
    try:
        connection.shutdown(how)
    except OSError:
        pass
