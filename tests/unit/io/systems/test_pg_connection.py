"""A connection that can be ended, whatever the driver waits for."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from akrunner.errors import JobTimeoutError
from akrunner.io import limits
from akrunner.io.systems import pg_connection
from akrunner.io.systems.pg_connection import Connection


class Driver:
    """A connection and a cursor in one, which wait for bytes of a socket as libpq does: without an end."""

    def __init__(self, cancels: bool) -> None:
        self.here, self.there = socket.socketpair()
        self._cancels = cancels
        self.closed = threading.Event()
        #: ends the call that would otherwise ask the server for ever
        self.over = threading.Event()

    def connect(self) -> Driver:
        # one more socket of this process
        mine, self.here = self.here, self.here.dup()
        mine.close()
        return self

    def cursor(self) -> Driver:
        return self

    def execute(self, query: str) -> str:
        if not self.here.recv(1):
            raise OSError("the server closed the connection unexpectedly")
        return "answered"

    def adbc_cancel(self) -> None:
        if self._cancels:
            self.there.sendall(b"!")
        else:
            self.over.wait(60)

    def close(self) -> None:
        self.closed.set()

    def end(self) -> None:
        self.over.set()
        self.here.close()
        self.there.close()


@pytest.fixture(params=[True, False], ids=["the server answers", "nobody answers"])
def driver(request: pytest.FixtureRequest) -> Any:
    below = Driver(request.param)
    yield Connection(below.connect, "postgresql://there/db"), below, request.param
    below.end()


def test_a_wait_ends_although_nobody_answers(driver: Any) -> None:
    connection, below, answers = driver
    with limits.limited(0.2, None), pytest.raises(JobTimeoutError, match="waited for postgresql://there/db"):
        connection.cursor().execute("SELECT 1")
    connection.close()
    # what still asks the server to stop uses the connection, which is closed later then
    assert below.closed.is_set() is answers
    below.over.set()
    assert below.closed.wait(60)


def test_a_read_ends_in_another_thread(driver: Any) -> None:
    connection, below, answers = driver
    told: list[Any] = []

    def read() -> None:
        try:
            told.append(below.execute("rows"))
        except OSError as e:
            told.append(e)

    thread = threading.Thread(target=read)
    thread.start()
    connection.cursor().adbc_cancel()
    thread.join(60)
    assert not thread.is_alive()
    assert told == ["answered"] if answers else isinstance(told[0], OSError)


def test_only_the_connection_s_own_socket_is_shut(driver: Any) -> None:
    connection, below, _answers = driver
    others = socket.socketpair()
    try:
        connection._shut()
        others[0].sendall(b"x")
        assert others[1].recv(1) == b"x"
        assert below.here.recv(1) == b""
    finally:
        for one in others:
            one.close()


def test_a_descriptor_that_is_something_else_by_now_is_let_alone(driver: Any) -> None:
    _connection, _below, _answers = driver
    one, other = socket.socketpair()
    try:
        pg_connection._shut(one.fileno(), -1)
        one.sendall(b"x")
        assert other.recv(1) == b"x"
    finally:
        one.close()
        other.close()


def test_a_socket_that_leads_elsewhere_is_not_the_connection_s() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        made: list[Driver] = []
        opened: list[socket.socket] = []

        def connect() -> Driver:
            # another thread of the program's connects to another server meanwhile
            opened.extend(socket.create_connection(one.getsockname()) for one in (server, other))
            made.append(Driver(True))
            return made[0]

        connection = Connection(connect, "postgresql://there/db", {server.getsockname()[1]})
        try:
            assert [number for number, _ in connection._sockets] == [opened[0].fileno()]
        finally:
            connection.close()
            made[0].end()
            for one in opened:
                one.close()


def test_a_connection_that_comes_too_late_is_closed() -> None:
    goes_on = threading.Event()
    made: list[Driver] = []

    def connect() -> Driver:
        assert goes_on.wait(60)
        made.append(Driver(True))
        return made[0]

    began = time.monotonic()
    with limits.limited(0.2, None), pytest.raises(JobTimeoutError):
        Connection(connect, "postgresql://late/db")
    # nothing can end it, so nothing is tried
    assert time.monotonic() - began < 3
    goes_on.set()
    while not made or not made[0].closed.wait(0.1):
        pass
    made[0].end()


def test_a_connection_that_hangs_is_not_waited_for_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pg_connection, "_TURN", 0.2)
    begun, goes_on, late, below = threading.Event(), threading.Event(), Driver(True), Driver(True)

    def hang() -> Driver:
        begun.set()
        assert goes_on.wait(60)
        return late

    with limits.limited(0.2, None), pytest.raises(JobTimeoutError, match="postgresql://dead/db"):
        Connection(hang, "postgresql://dead/db")
    assert begun.wait(60)
    try:
        with limits.limited(30, None):
            other = Connection(below.connect, "postgresql://other/db")
        assert [number for number, _ in other._sockets] == [below.here.fileno()]
    finally:
        goes_on.set()
    assert late.closed.wait(60)
    late.end()
    below.end()


def test_of_two_sockets_to_one_port_none_is_shut() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        opened: list[socket.socket] = []

        def connect() -> Driver:
            # another thread of the program's connects to the same port meanwhile
            opened.extend(socket.create_connection(address) for _ in range(2))
            return below

        below = Driver(True)
        connection = Connection(connect, "postgresql://there/db", {address[1]})
        assert connection._sockets == set()
        for one in opened:
            one.close()
        below.end()
