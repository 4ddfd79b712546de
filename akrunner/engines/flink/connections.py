"""What both ends do to a connection of theirs, and the lines they say to each other. Standard library only: an agent's Python has
nothing else."""

from __future__ import annotations

import json
import socket
from typing import Any, Dict, Optional

#: a machine that does not answer for so long has gone
SILENCE_SECONDS = 20
_PROBE_SECONDS = 5
_CHUNK = 1 << 16


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
    """`shutdown`; does nothing when the connection has gone already."""
    try:
        # not the one of a TLS connection: it takes away what another thread is reading with
        socket.socket.shutdown(connection, how)
    except OSError:
        pass


class BadLine(ValueError):
    """What came is no line of the protocol: too long, no JSON, no object."""


class Lines:
    """The lines of JSON objects that come over a connection, one after the other.

    Args: limit: bytes of a line. Attributes: waiting: whether a whole line has come already, so that the connection itself may be silent.
    """

    def __init__(self, connection: socket.socket, limit: int) -> None:
        self._connection = connection
        self._limit = limit
        self._come = bytearray()

    @property
    def waiting(self) -> bool:
        return b"\n" in self._come

    def hear(self, seconds: Optional[float] = None) -> Optional[Dict[str, Any]]:
        """The next line, None when the connection has ended.

        Args: seconds: wait so long for a piece of it, None: for ever.
        Raises: OSError: the connection broke, or was silent for so long; BadLine.
        """
        self._connection.settimeout(seconds)
        searched = 0
        while (end := self._come.find(b"\n", searched)) < 0:
            searched = len(self._come)
            if searched > self._limit:
                raise BadLine(f"a line of more than {self._limit} bytes")
            got = self._connection.recv(_CHUNK)
            if not got:
                return None
            self._come += got
        line = bytes(self._come[:end])
        del self._come[: end + 1]
        return word_of(line)


def word_of(line: bytes) -> Dict[str, Any]:
    """A line as an object. Raises: BadLine."""
    try:
        word = json.loads(line)
    except (ValueError, RecursionError):
        raise BadLine(f"no JSON: {line[:80]!r}") from None
    if not isinstance(word, dict):
        raise BadLine(f"no JSON object: {line[:80]!r}")
    return word
