"""A connection to PostgreSQL that can always be ended, also when the server, or the network, says nothing any more.

::

    a call of the driver       in a thread of its own: Ctrl-C, and the job's `timeout`, end the wait for it
    interrupt()                asks the server to stop, over a connection of its own, as libpq does
      a second later           shuts the socket: no server, and no network, is needed for that

libpq waits for a server without an end. Its own request to cancel waits in the same way, because it goes to the same server.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from akrunner.io import limits

_Given = TypeVar("_Given")

#: seconds that the server has to end what it was asked to end
_GRACE = 1.0
#: held while a connection is made, whose socket is the one that was not there before; another one, which may hang, is waited for only so
#: many seconds
_MAKING, _TURN = threading.Lock(), 5.0


class Connection:
    """A connection, as ADBC's.

    Args:
        connect: opens it.
        shown: the server's URL in errors.
        ports: those of the server, by which its socket is told from others that are opened meanwhile; None: any.
    Raises:
        Exception: whatever `connect` raises.
    """

    def __init__(self, connect: Callable[[], Any], shown: str, ports: Collection[int] | None = None) -> None:
        self._shown = shown
        self._sockets: set[tuple[int, int]] = set()
        self._closed = threading.Event()
        self._ending = threading.Lock()
        #: the thread that asks the server to stop
        self._cancelling: threading.Thread | None = None
        #: how many calls of the driver have not ended
        self._calls = 0
        self._counting = threading.Lock()
        try:
            self._connection = limits.waited(lambda: self._made(connect, ports), None, shown)
        except BaseException:
            self._closed.set()
            raise

    def _made(self, connect: Callable[[], Any], ports: Collection[int] | None) -> Any:
        has_turn = _MAKING.acquire(timeout=_TURN)
        try:
            before = _open_sockets()
            made = connect()
            found = {one for one in _open_sockets() - before if ports is None or _leads_to(one[0], ports)}
        finally:
            if has_turn:
                _MAKING.release()
        # of several, some belong to others, and nobody may shut those
        self._sockets = found if len(found) == 1 else set()
        if self._closed.is_set():
            # nobody waits for it any more
            made.close()
        return made

    def cursor(self) -> Cursor:
        return Cursor(self._connection.cursor(), self)

    def commit(self) -> None:
        self.wait(self._connection.commit)

    def rollback(self) -> None:
        self.wait(self._connection.rollback)

    def close(self) -> None:
        """Close the connection, and thereby roll back what was not committed. While a call of the driver has not ended, only the socket is
        shut: libpq still uses the rest."""
        if self._cancelling is not None:
            self._cancelling.join(2 * _GRACE)
        if self._is_used():
            self._closed.set()
            self._shut()
            _begun(self._close_later)
            return
        try:
            self.wait(self._connection.close)
        finally:
            self._closed.set()

    def _is_used(self) -> bool:
        return self._calls > 0 or (self._cancelling is not None and self._cancelling.is_alive())

    def _close_later(self) -> None:
        while self._is_used():
            time.sleep(_GRACE)
        self._connection.close()

    def wait(self, call: Callable[[], _Given], cancel: Callable[[], Any] | None = None, quiet: float | None = None) -> _Given:
        """Return what a call of the driver returns.

        Args:
            cancel: asks the server to end the call.
            quiet: how many seconds it may take; None: as many as the job has.
        Raises:
            BaseException: whatever `call` raises; a signal that comes meanwhile.
            JobTimeoutError, JobStalledError: it took too long.
        """

        def called() -> _Given:
            self._count(1)
            try:
                return call()
            finally:
                self._count(-1)

        return limits.waited(called, lambda: self.interrupt(cancel), self._shown, quiet)

    def _count(self, calls: int) -> None:
        with self._counting:
            self._calls += calls

    def interrupt(self, cancel: Callable[[], Any] | None = None) -> None:
        """End what the connection does, and the connection itself if that takes longer than a second. Returns at once.

        Args:
            cancel: asks the server to end it.
        """
        if not self._ending.acquire(blocking=False):
            return
        if cancel is not None:
            # a thread of its own, which may wait for ever
            self._cancelling = _begun(cancel)
        _begun(self._cut)

    def _cut(self) -> None:
        if not self._closed.wait(_GRACE):
            self._shut()

    def _shut(self) -> None:
        for number, inode in self._sockets:
            _shut(number, inode)


class Cursor:
    """A cursor, as ADBC's, whose calls can be interrupted.

    Args:
        cursor: ADBC's.
        connection: its connection.
    """

    def __init__(self, cursor: Any, connection: Connection) -> None:
        self._cursor, self._connection = cursor, connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, *given: Any, **named: Any) -> Any:
        return self._wait(lambda: self._cursor.execute(*given, **named))

    def adbc_execute_schema(self, *given: Any) -> Any:
        return self._wait(lambda: self._cursor.adbc_execute_schema(*given))

    def adbc_ingest(self, *given: Any, **named: Any) -> Any:
        return self._wait(lambda: self._cursor.adbc_ingest(*given, **named), limits.quiet())

    def fetchone(self) -> Any:
        return self._wait(self._cursor.fetchone)

    def fetchall(self) -> Any:
        return self._wait(self._cursor.fetchall)

    def close(self) -> None:
        self._wait(self._cursor.close)

    def adbc_cancel(self) -> None:
        """End what the cursor does, as `Connection.interrupt`."""
        self._connection.interrupt(self._cursor.adbc_cancel)

    def _wait(self, call: Callable[[], _Given], quiet: float | None = None) -> _Given:
        return self._connection.wait(call, self._cursor.adbc_cancel, quiet)


def _begun(work: Callable[[], Any]) -> threading.Thread:
    """Begin work whose errors nobody needs, in a thread of its own."""

    def run() -> None:
        with contextlib.suppress(Exception):
            work()

    thread = threading.Thread(target=run, name="akrunner-postgres-end", daemon=True)
    thread.start()
    return thread


def _open_sockets() -> set[tuple[int, int]]:
    """Return (descriptor, inode) of all sockets of this process."""
    found = set()
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            state = os.fstat(int(name))
            if stat.S_ISSOCK(state.st_mode):
                found.add((int(name), state.st_ino))
    return found


def _leads_to(number: int, ports: Collection[int]) -> bool:
    """Whether a socket leads to PostgreSQL: to one of these ports, or to its socket in a directory."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as one:
        peer = one.getpeername()
        return ".s.PGSQL." in str(peer) if one.family == socket.AF_UNIX else peer[1] in ports
    return False


def _shut(number: int, inode: int) -> None:
    """Shut a socket, unless its descriptor belongs to something else meanwhile."""
    with contextlib.suppress(OSError):
        copy = os.dup(number)
        if os.fstat(copy).st_ino != inode:
            os.close(copy)
            return
        with socket.socket(fileno=copy) as one:
            one.shutdown(socket.SHUT_RDWR)
