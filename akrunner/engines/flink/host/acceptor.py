"""Accepts connections to a host's port of rows: one thread greets all of them, and takes nothing from a client that has
not proved itself."""

from __future__ import annotations

import dataclasses
import errno
import selectors
import socket
import ssl
import time
from collections.abc import Callable

from google.protobuf.message import DecodeError

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink import threads
from akrunner.engines.flink.connections import AGENT_ROWS, CONNECT_SECONDS, HOST_ROWS, LENGTH, OPENING_LIMIT, shut, tune
from akrunner.engines.flink.keys import Keys

#: seconds that a connection may take to prove whose it is: no less than its other end waits, which a busy machine makes slow
HELLO_SECONDS = CONNECT_SECONDS
#: the most connections that have not proved that yet; the oldest is closed when another comes
STRANGERS = 128
_TICK = 0.1
_UNFIT = (OSError, DecodeError, ValueError)


class Acceptor:
    """Listens, and greets in one thread. Must be closed.

    Args:
        host, port: where to listen; port 0 for any free port.
        keys: the host's keys.
        let_in: called with (agent, kind, connection) for each connection that has proved itself; raises ValueError if
            nothing waits for it.
        died: called with the error of which the thread died.
    Attributes:
        port: the port that it listens on.
        strangers: the connections that are being greeted.
    """

    def __init__(
        self, host: str, port: int, keys: Keys, let_in: Callable[[str, int, socket.socket], None], died: threads.Failed
    ) -> None:
        self.strangers: dict[socket.socket, _Stranger] = {}
        self._keys = keys
        self._let_in = let_in
        self._context = keys.context(server=True) if keys.tls else None
        self._closed = False
        self._listener = socket.create_server((host, port), backlog=256)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self.thread = threads.started("control", died, self._greet)

    def close(self) -> None:
        self._closed = True
        # closing the listener does not wake a thread that waits for connections
        shut(self._listener, socket.SHUT_RDWR)
        self.thread.join(5.0)
        self._listener.close()
        self._selector.close()
        for stranger in list(self.strangers):
            stranger.close()

    def _greet(self) -> None:
        while not self._closed:
            ready = [key.fileobj for key, _ in self._selector.select(_TICK)]
            # first the connections that have sent something: they make room
            for connection in ready:
                if isinstance(connection, socket.socket) and connection is not self._listener:
                    self._hear(connection)
            now = time.monotonic()
            for connection in [one for one, stranger in self.strangers.items() if now > stranger.until]:
                self._let_go(connection).close()
            if self._listener in ready:
                self._accept()

    def _accept(self) -> None:
        if len(self.strangers) >= STRANGERS:
            self._let_go(next(iter(self.strangers))).close()
        try:
            connection, _ = self._listener.accept()
        except OSError as e:
            if self.strangers and e.errno in (errno.EMFILE, errno.ENFILE):
                self._let_go(next(iter(self.strangers))).close()
            elif not self._closed and e.errno not in (errno.ECONNABORTED, errno.EAGAIN):
                time.sleep(_TICK / 10)  # the system has no room now; that may change
            return
        connection.setblocking(False)
        if self._context is not None:
            try:
                connection = self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            except OSError:
                connection.close()
                return
        self.strangers[connection] = _Stranger(time.monotonic() + HELLO_SECONDS, self._context is not None)
        self._selector.register(connection, selectors.EVENT_READ)

    def _let_go(self, connection: socket.socket) -> socket.socket:
        self._selector.unregister(connection)
        del self.strangers[connection]
        return connection

    def _hear(self, connection: socket.socket) -> None:
        """Read some of a connection's handshake or opening, and not a byte beyond: the bytes that follow belong to the
        owner of the connection."""
        stranger = self.strangers[connection]
        try:
            if stranger.shakes_hands and isinstance(connection, ssl.SSLSocket):
                connection.do_handshake()
                stranger.shakes_hands = False
            while lacking := stranger.lacking():
                got = connection.recv(lacking)
                if not got:
                    raise ConnectionError("no opening")
                stranger.said += got
            opening = pb.Opening.FromString(bytes(stranger.said[LENGTH.size :]))
            said = (opening.agent, str(opening.kind), opening.nonce)
            if not self._keys.proves(opening.proof, AGENT_ROWS, *said):
                raise ValueError("it does not know the token")
            self._let_go(connection)
            connection.setblocking(True)
            tune(connection)
            answer = pb.Opened(proof=self._keys.proof(HOST_ROWS, opening.nonce)).SerializeToString()
            connection.sendall(LENGTH.pack(len(answer)) + answer)
            self._let_in(opening.agent, opening.kind, connection)
        except (BlockingIOError, ssl.SSLWantReadError):
            self._selector.modify(connection, selectors.EVENT_READ)
        except ssl.SSLWantWriteError:
            self._selector.modify(connection, selectors.EVENT_WRITE)
        except _UNFIT:
            if connection in self.strangers:
                self._let_go(connection)
            connection.close()


@dataclasses.dataclass
class _Stranger:
    """A connection that has not proved itself.

    Attributes:
        until: when its time is over.
        shakes_hands: whether its TLS handshake is still under way.
        said: the bytes of its opening so far.
    """

    until: float
    shakes_hands: bool
    said: bytearray = dataclasses.field(default_factory=bytearray)

    def lacking(self) -> int | None:
        """Return how many bytes of the opening are still to come.

        Raises:
            ValueError: the opening is longer than it may be.
        """
        if len(self.said) < LENGTH.size:
            return LENGTH.size - len(self.said)
        (size,) = LENGTH.unpack(self.said[: LENGTH.size])
        if size > OPENING_LIMIT:
            raise ValueError("no opening is so long")
        return LENGTH.size + int(size) - len(self.said)
