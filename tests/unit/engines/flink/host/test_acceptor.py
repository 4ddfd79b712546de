"""Who greets the connections to the port of rows: what it waits for, whom it lets in, and for whom it makes room. (Strangers of all kinds
are in test_strangers.py.)"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.connections import AGENT_ROWS, HOST_ROWS, LENGTH, OPENING_LIMIT, exactly
from akrunner.engines.flink.host import acceptor as acceptor_module
from akrunner.engines.flink.host.acceptor import Acceptor, _Stranger
from akrunner.engines.flink.keys import Keys
from tests.conftest import wait_for

KEYS = Keys("token")


class Door:
    """A acceptor, whom it has let in, and of what it has died."""

    def __init__(self) -> None:
        self.let_in: list[tuple[str, int, bytes]] = []
        self.died: list[tuple[str, BaseException]] = []
        self.waits = True
        self.acceptor = Acceptor("127.0.0.1", 0, KEYS, self._let, lambda name, error: self.died.append((name, error)))

    def _let(self, name: str, kind: int, connection: socket.socket) -> None:
        if not self.waits:
            raise ValueError("nobody waits for it")
        with connection:
            connection.settimeout(10)
            self.let_in.append((name, kind, exactly(connection, 4)))

    def come(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.acceptor.port), 10)


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door()
    yield made
    made.acceptor.close()
    assert not made.acceptor.thread.is_alive() and made.died == []


def opening(keys: Keys = KEYS, kind: int = pb.Opening.IN, said: str = "n") -> bytes:
    proof = keys.proof(AGENT_ROWS, "p", str(kind), said)
    data: bytes = pb.Opening(agent="p", kind=kind, nonce=said, proof=proof).SerializeToString()
    return LENGTH.pack(len(data)) + data


def answered(connection: socket.socket) -> bytes:
    """The proof in the answer; b"" if there is none."""
    with contextlib.suppress(ConnectionError):
        (size,) = LENGTH.unpack(exactly(connection, LENGTH.size))
        return bytes(pb.Opened.FromString(exactly(connection, size)).proof, "ascii")
    return b""


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_an_opening_may_come_in_pieces_and_what_follows_is_its_owners(door: Door, step: int) -> None:
    data = opening() + b"rows"
    with door.come() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), step):
            connection.sendall(data[at : at + step])
        assert KEYS.proves(answered(connection).decode(), HOST_ROWS, "n")
        assert connection.recv(1) == b""
    assert door.let_in == [("p", pb.Opening.IN, b"rows")] and door.acceptor.strangers == {}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(opening(Keys("guessed")), id="another token"),
        pytest.param(opening()[:-1] + b"x", id="another proof"),
        pytest.param(opening(kind=pb.Opening.OUT).replace(b"\x10\x02", b"\x10\x01"), id="another kind"),
        pytest.param(LENGTH.pack(OPENING_LIMIT + 1), id="too long"),
    ],
)
def test_who_proves_nothing_gets_no_answer(door: Door, data: bytes) -> None:
    with door.come() as connection:
        connection.sendall(data)
        assert answered(connection) == b""
    assert door.let_in == []


def test_who_is_not_waited_for_is_sent_away_after_the_answer(door: Door) -> None:
    door.waits = False
    with door.come() as connection:
        connection.sendall(opening())
        assert answered(connection) != b"" and connection.recv(1) == b""
    assert door.acceptor.strangers == {}


def test_the_oldest_stranger_makes_room(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor_module, "STRANGERS", 2)
    with contextlib.ExitStack() as held:
        strangers = [held.enter_context(door.come()) for _ in range(3)]
        assert strangers[0].recv(1) == b""
        strangers[2].sendall(opening() + b"rows")
        assert answered(strangers[2]) != b""
        assert len(door.acceptor.strangers) <= 2


def test_ports_that_are_taken_are_the_callers_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(OSError) as caught:
        Acceptor("127.0.0.1", server.getsockname()[1], KEYS, lambda *given: None, lambda *given: None)
    assert caught.value.errno == errno.EADDRINUSE


def test_closing_hangs_up_on_strangers_too() -> None:
    made = Door()
    with made.come() as connection:
        connection.sendall(b"\0")
        wait_for(lambda: made.acceptor.strangers)
        made.acceptor.close()
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""


class Listener:
    """In place of a socket on a machine that has no room for another connection."""

    def __init__(self, number: int) -> None:
        self._number = number

    def accept(self) -> Any:
        raise OSError(self._number, "no")


@pytest.mark.parametrize(
    ("number", "strangers", "left", "waits"),
    [
        (errno.EMFILE, 2, 1, False), (errno.ENFILE, 1, 0, False), (errno.EMFILE, 0, 0, True), (errno.ENOBUFS, 2, 2, True),
        (errno.ECONNABORTED, 2, 2, False), (errno.EAGAIN, 2, 2, False),
    ],
)  # fmt: skip
def test_a_machine_without_room_loses_a_stranger_rather_than_the_greeter(
    number: int, strangers: int, left: int, waits: bool, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    door.acceptor.close()
    closed: list[int] = []
    slept: list[float] = []
    made = Acceptor.__new__(Acceptor)
    made._listener = Listener(number)  # type: ignore[assignment]
    made._closed = False
    made.strangers = dict.fromkeys(range(strangers), _Stranger(0.0, False))  # type: ignore[assignment]

    class Gone:
        def __init__(self, stranger: int) -> None:
            made.strangers.pop(stranger)  # type: ignore[call-overload]
            self._stranger = stranger

        def close(self) -> None:
            closed.append(self._stranger)

    monkeypatch.setattr(made, "_let_go", Gone)
    monkeypatch.setattr(acceptor_module.time, "sleep", slept.append)
    made._accept()
    assert len(made.strangers) == left and closed == [0] * (strangers - left) and bool(slept) is waits


@pytest.mark.parametrize(
    ("said", "lacking"),
    [
        (b"", 2),
        (b"\x03", 1),
        (b"\x03\0", 3),
        (b"\x03\0ab", 1),
        (b"\x03\0abc", 0),
        (LENGTH.pack(OPENING_LIMIT), OPENING_LIMIT),
        (b"\0\0", 0),
    ],
)
def test_so_much_of_an_opening_is_still_to_come(said: bytes, lacking: int) -> None:
    assert _Stranger(0.0, False, bytearray(said)).lacking() == lacking


def test_no_opening_is_longer_than_the_limit() -> None:
    with pytest.raises(ValueError, match="no opening is so long"):
        _Stranger(0.0, False, bytearray(LENGTH.pack(OPENING_LIMIT + 1))).lacking()
