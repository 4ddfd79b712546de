"""Connections to a host's port of rows: how an agent opens one, the settings that both ends make, and frames over it.

Standard library and protobuf only: an agent's Python has nothing else.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
from collections.abc import Mapping
from typing import Any

from akrunner.engines.flink.keys import HOST, Door, nonce
from akrunner.wire import frames

#: a machine that does not answer for so many seconds counts as gone
SILENCE_SECONDS = 20
#: seconds that the other end may take to accept a connection and answer
CONNECT_SECONDS = 30.0
_PROBE_SECONDS = 5
_CHUNK = 1 << 20
#: a part of a frame that is shorter than this is sent in one TLS record with the parts behind it
_SMALL = 1 << 14
LENGTH = struct.Struct("<H")
#: the most bytes of an `Opening`
OPENING_LIMIT = 1024
#: not the words of the service (`control.AGENT_END`, `HOST_END`): a proof that was shown there is none here
AGENT_ROWS, HOST_ROWS = "agent's rows", "host's rows"
#: bytes of the package's length, which the host sends before the package on the connection that brings a task its rows
PACKAGE_LENGTH_BYTES = 8


def tune(connection: socket.socket) -> None:
    """Make a connection send at once, and notice within `SILENCE_SECONDS` that the other machine, or the way to it, is gone."""
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
    """Shut the connection down, as `socket.shutdown` does. Does nothing if the connection is gone already."""
    try:
        # not the method of a TLS connection: it removes the object that another thread may be reading with
        socket.socket.shutdown(connection, how)
    except OSError:
        pass


def _connected(door: Door, seconds: float) -> socket.socket:
    """Return a connection to a host's port of rows, after the host has shown its certificate, if there are certificates."""
    made = socket.create_connection((door.host, door.rows), timeout=seconds)
    if not door.keys.tls:
        return made
    try:
        # wrap_socket owns the connection from then on, and closes it if it fails
        return door.context.wrap_socket(made, server_hostname=HOST)
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
        # which of both it is, Python 3.11.2 and 3.11.4 do not agree about
        raise ConnectionError(f"{door.host}:{door.rows} has ended the connection before it showed what it is") from None


def greet(door: Door, seconds: float) -> None:
    """Check that the host is there: that it shows its certificate, if there are certificates, and that it knows the token.

    Args:
        seconds: how long it may take to answer.
    Raises:
        OSError: nothing answers there, or something other than the host does.
    """
    from akrunner.engines.flink import control_pb2 as pb

    # of no agent: the host proves itself, and closes the connection
    opened(door, "", pb.Opening.NONE, seconds).close()


def opened(door: Door, agent: str, kind: Any, seconds: float = CONNECT_SECONDS) -> socket.socket:
    """Return a new connection of a subtask, after the host has proved itself as for `greet`.

    Args:
        agent: the name of the agent's subtask.
        kind: the kind of `Opening`.
        seconds: as for `greet`.
    Raises:
        OSError: the connection cannot be made, or the host cannot prove itself.
    """
    from akrunner.engines.flink import control_pb2 as pb

    made = _connected(door, seconds)
    try:
        said = nonce()
        proof = door.keys.proof(AGENT_ROWS, agent, str(kind), said)
        opening = pb.Opening(agent=agent, kind=kind, nonce=said, proof=proof).SerializeToString()
        made.sendall(LENGTH.pack(len(opening)) + opening)
        (size,) = LENGTH.unpack(exactly(made, LENGTH.size))
        try:
            answer = pb.Opened.FromString(exactly(made, min(size, OPENING_LIMIT)))
        except Exception:
            raise ConnectionError("what answers is no host of akrunner's") from None
        if not door.keys.proves(answer.proof, HOST_ROWS, said):
            raise ConnectionError("who answers does not know the job's token")
        made.settimeout(None)
        tune(made)
    except BaseException:
        made.close()
        raise
    return made


def exactly(connection: socket.socket, size: int) -> bytes:
    """Return exactly `size` bytes.

    Raises:
        ConnectionError: the connection ended before that.
    """
    data = bytearray()
    while len(data) < size:
        got = connection.recv(size - len(data))
        if not got:
            raise ConnectionError("the connection has ended")
        data += got
    return bytes(data)


class SocketWriter(frames.FrameWriter):
    """Writes frames to a connection that it owns, and that nothing else uses: two threads must not use a TLS connection
    at the same time."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection.fileno())
        self._connection = connection
        self._in_records = isinstance(connection, ssl.SSLSocket)

    def _put(self, pending: list[memoryview]) -> int:
        try:
            if not self._in_records:
                return self._connection.sendmsg(pending[:64])
            if len(pending) == 1 or len(pending[0]) >= _SMALL:
                return self._connection.send(pending[0])
            together = bytearray()
            for part in pending:
                if len(together) >= _SMALL:
                    break
                together += part[: _SMALL - len(together)]
            self._connection.sendall(together)
            return len(together)
        except ssl.SSLError as e:
            raise BrokenPipeError(f"the connection has ended: {e.reason}") from None

    def _end(self, fd: int) -> None:
        self._connection.close()


class SocketReader(frames.FrameReader):
    """Reads frames from a connection that it owns, and that nothing else uses."""

    def __init__(
        self, connection: socket.socket, kinds: Mapping[int, int] = frames.EITHER_WAY, most: frames.Most | None = None
    ) -> None:
        super().__init__(connection.fileno(), kinds, most)
        self._connection = connection

    def _get(self, view: memoryview) -> int:
        try:
            return self._connection.recv_into(view)
        except ssl.SSLError as e:
            raise ConnectionResetError(f"the connection has ended: {e.reason}") from None

    def _end(self, fd: int) -> None:
        self._connection.close()


def pump_out(source: int, connection: socket.socket) -> None:
    """Copy bytes from a descriptor to a connection, until either ends."""
    try:
        while data := os.read(source, _CHUNK):
            connection.sendall(data)
    except OSError:
        return


def pump_in(connection: socket.socket, target: int) -> None:
    """Copy bytes from a connection to a descriptor, until either ends."""
    buffer = memoryview(bytearray(_CHUNK))
    try:
        while got := come(connection, buffer):
            view: Any = buffer[:got]
            while len(view):
                view = view[os.write(target, view) :]
    except OSError:
        return


def come(connection: socket.socket, buffer: memoryview) -> int:
    """Read all bytes that have come, and that fit, into the buffer; wait for the first of them. TLS gives 16 kB at a time, and each
    piece that is passed on wakes a process.

    Returns:
        The number of bytes; 0 at the end.
    """
    at = connection.recv_into(buffer)
    if not at or not isinstance(connection, ssl.SSLSocket):
        return at
    connection.setblocking(False)
    try:
        while at < len(buffer) and (got := connection.recv_into(buffer[at:])):
            at += got
    except (ssl.SSLWantReadError, BlockingIOError):
        pass
    finally:
        connection.setblocking(True)
    return at
