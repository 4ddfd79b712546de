"""Connections of rows: frames and bytes over them, plain and in TLS, what an ended one says, and what is answered to an opening."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import pytest

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.connections import (
    AGENT_ROWS,
    HOST_ROWS,
    LENGTH,
    OPENING_LIMIT,
    SILENCE_SECONDS,
    SocketReader,
    SocketWriter,
    exactly,
    greet,
    opened,
    pump_in,
    pump_out,
    shut,
    tune,
)
from akrunner.engines.flink.host.issue import JobKeys, issued
from akrunner.engines.flink.keys import HOST, Door, Keys
from akrunner.wire import frames

KEYS = Keys("geheim")


@pytest.fixture(scope="module")
def made() -> JobKeys:
    return issued()


def in_thread(target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


@pytest.fixture(params=["plain", "TLS"])
def ends(request: pytest.FixtureRequest, made: JobKeys) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection."""
    one, other = socket.socketpair()
    if request.param == "TLS":
        found: list[socket.socket] = []
        server = made.host.context(server=True)
        thread = in_thread(lambda: found.append(server.wrap_socket(one, server_side=True)))
        other = made.agents.context(server=False).wrap_socket(other, server_hostname=HOST)
        thread.join(30)
        (one,) = found
    for end in (one, other):
        end.settimeout(30)
    yield one, other
    one.close()
    other.close()


def test_frames_arrive_as_they_were_written(ends: tuple[socket.socket, socket.socket]) -> None:
    writer, reader = SocketWriter(ends[0]), SocketReader(ends[1])
    small = [b"ab", b"", b"c" * 20_000, b"d" * 100, b"e" * 40_000]
    sent = [
        (frames.CONTEXT, b"{}", 0),
        (frames.DATA, [memoryview(part) for part in small], 7),
        # more parts than are sent at once
        (frames.DATA, [bytes([number % 256]) for number in range(2000)], 200),
        (frames.DATA, b"x" * (3 << 20), 1),
    ]

    def write() -> None:
        for kind, payload, count in sent:
            writer.write(kind, payload, count)
        writer.close()

    thread = in_thread(write)
    for kind, payload, count in sent:
        frame = reader.read()
        assert frame is not None and (frame.kind, frame.count) == (kind, count)
        assert frame.payload == (b"".join(payload) if isinstance(payload, list) else payload)
    assert reader.read() is None, "an end between frames is a good one"
    thread.join(30)
    assert writer.bytes == reader.bytes > 3 << 20
    reader.close()


class Records:
    """In place of a TLS connection: notes how much goes into each call."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def fileno(self) -> int:
        return -1

    def send(self, data: memoryview) -> int:
        self.sent.append(bytes(data[:100_000]))
        return len(self.sent[-1])

    def sendall(self, data: bytes) -> None:
        self.sent.append(bytes(data))


def test_small_parts_share_a_tls_record() -> None:
    records = Records()
    writer = SocketWriter(records)  # type: ignore[arg-type]
    writer._in_records = True
    writer.write(frames.DATA, [b"a" * 10, b"b" * 20, b"c" * 300_000, b"d"], 3)
    whole = frames.HEADER.pack(frames.DATA, 0, 0, 3, 300_031) + b"a" * 10 + b"b" * 20 + b"c" * 300_000 + b"d"
    assert b"".join(records.sent) == whole
    assert len(records.sent[0]) == 1 << 14, "what a record has room for"
    assert len(records.sent) == 5, "the long part goes as it is, without a copy"


def test_who_owns_a_connection_closes_it_once(ends: tuple[socket.socket, socket.socket]) -> None:
    writer, reader = SocketWriter(ends[0]), SocketReader(ends[1])
    for one in (writer, writer, reader, reader):
        one.close()
    assert ends[0].fileno() == ends[1].fileno() == -1


def test_a_frame_that_is_cut_is_an_error(ends: tuple[socket.socket, socket.socket]) -> None:
    reader = SocketReader(ends[1])
    ends[0].sendall(frames.HEADER.pack(frames.DATA, 0, 0, 1, 10) + b"abc")
    ends[0].close()
    with pytest.raises((frames.WireError, ConnectionResetError), match="ended"):
        reader.read()


def test_a_frame_that_does_not_go_this_way_is_refused() -> None:
    one, other = socket.socketpair()
    writer, reader = SocketWriter(one), SocketReader(other, frames.TO_WORKER)
    writer.write(frames.CLOSED, b"{}")
    with pytest.raises(frames.WireError, match="a closed frame does not go this way"):
        reader.read()
    writer.close()
    reader.close()


def test_writing_to_an_end_that_is_gone_is_a_broken_pipe(ends: tuple[socket.socket, socket.socket]) -> None:
    writer = SocketWriter(ends[0])
    shut(ends[1], socket.SHUT_RDWR)
    ends[1].close()
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        for _ in range(100):
            writer.write(frames.DATA, b"x" * (1 << 20))


class Broken:
    """In place of a TLS connection that was tampered with."""

    def fileno(self) -> int:
        return -1

    def recv_into(self, view: memoryview) -> int:
        error = ssl.SSLError(1, "[SSL] bad")
        error.reason = "DECRYPTION_FAILED"
        raise error

    sendmsg = recv_into


def test_a_broken_tls_connection_is_said_as_a_plain_one() -> None:
    with pytest.raises(ConnectionResetError, match="the connection has ended: DECRYPTION_FAILED"):
        SocketReader(Broken())._get(memoryview(bytearray(3)))  # type: ignore[arg-type]
    with pytest.raises(BrokenPipeError, match="the connection has ended: DECRYPTION_FAILED"):
        SocketWriter(Broken())._put([memoryview(b"abc")])  # type: ignore[arg-type]


def test_exactly_so_many_bytes_are_read(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].sendall(b"abcdefg")
    assert exactly(ends[1], 0) == b"" and exactly(ends[1], 3) == b"abc"
    ends[0].sendall(b"h" * 100_000)
    assert exactly(ends[1], 100_004) == b"defg" + b"h" * 100_000


def test_too_few_are_an_error() -> None:
    one, other = socket.socketpair()
    with other:
        with one:
            one.sendall(b"ab")
        with pytest.raises(ConnectionError, match="the connection has ended"):
            exactly(other, 3)


def test_a_connection_that_is_gone_can_be_shut() -> None:
    one, other = socket.socketpair()
    with other:
        shut(one, socket.SHUT_WR)
        assert other.recv(1) == b"", "the other end sees it"
        one.close()
        shut(one, socket.SHUT_RDWR)


def test_a_tuned_connection_sends_at_once_and_misses_its_other_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        tune(connection)

        def option(level: int, name: str) -> int:
            return connection.getsockopt(level, getattr(socket, name))

        assert option(socket.IPPROTO_TCP, "TCP_NODELAY") and option(socket.SOL_SOCKET, "SO_KEEPALIVE")
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert option(socket.IPPROTO_TCP, "TCP_USER_TIMEOUT") == 1000 * SILENCE_SECONDS
            idle, every, count = (option(socket.IPPROTO_TCP, name) for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT"))
            assert idle + every * count == SILENCE_SECONDS


# -- pumps


def test_bytes_are_pumped_both_ways_until_the_end(ends: tuple[socket.socket, socket.socket]) -> None:
    source, feeding = os.pipe()
    taking, target = os.pipe()
    sent = bytes(range(256)) * 4000

    def out() -> None:
        pump_out(source, ends[0])
        shut(ends[0], socket.SHUT_WR)

    def into() -> None:
        pump_in(ends[1], target)
        os.close(target)

    def feed() -> None:
        with os.fdopen(feeding, "wb") as file:
            file.write(sent)

    threads = [in_thread(one) for one in (out, into, feed)]
    with os.fdopen(taking, "rb") as file:
        assert file.read() == sent
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    os.close(source)


def test_a_pump_ends_where_nobody_reads() -> None:
    source, feeding = os.pipe()
    one, other = socket.socketpair()
    other.close()
    os.write(feeding, b"rows")
    pump_out(source, one)
    one.close()
    taking, target = os.pipe()
    os.close(taking)
    one, other = socket.socketpair()
    one.sendall(b"rows")
    pump_in(other, target)
    for connection in (one, other):
        connection.close()
    for fd in (source, feeding, target):
        os.close(fd)


def test_a_connection_still_waits_after_it_has_given_what_has_come(ends: tuple[socket.socket, socket.socket]) -> None:
    taking, target = os.pipe()
    ends[1].settimeout(None)
    thread = in_thread(lambda: pump_in(ends[1], target))
    for piece in (b"one", b"another"):
        ends[0].sendall(piece)
        found = b""
        while len(found) < len(piece):
            found += os.read(taking, 100)
        assert found == piece
    shut(ends[0], socket.SHUT_WR)
    ends[0].close()
    thread.join(30)
    assert not thread.is_alive()
    for fd in (taking, target):
        os.close(fd)


# -- an opening


@contextlib.contextmanager
def host(answer: Callable[[pb.Opening, socket.socket], None]) -> Iterator[Door]:
    """A host that has read an opening, and answers as it is told."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def attend() -> None:
            connection, _ = server.accept()
            with connection:
                (size,) = LENGTH.unpack(exactly(connection, LENGTH.size))
                assert size <= OPENING_LIMIT
                answer(pb.Opening.FromString(exactly(connection, size)), connection)

        thread = in_thread(attend)
        name, port = server.getsockname()
        yield Door(name, 1, port, KEYS)
        thread.join(30)
        assert not thread.is_alive()


def answers(data: bytes) -> Callable[[pb.Opening, socket.socket], None]:
    return lambda opening, connection: connection.sendall(LENGTH.pack(len(data)) + data)


def test_who_opens_proves_itself_and_so_does_who_answers() -> None:
    seen: list[pb.Opening] = []

    def answer(opening: pb.Opening, connection: socket.socket) -> None:
        seen.append(opening)
        data = pb.Opened(proof=KEYS.proof(HOST_ROWS, opening.nonce)).SerializeToString()
        connection.sendall(LENGTH.pack(len(data)) + data + b"rows")

    with host(answer) as door, opened(door, "p", pb.Opening.OUT) as connection:
        assert exactly(connection, 4) == b"rows", "what follows the answer is the caller's"
        assert connection.gettimeout() is None
    (opening,) = seen
    assert (opening.agent, opening.kind) == ("p", pb.Opening.OUT)
    assert KEYS.proves(opening.proof, AGENT_ROWS, "p", str(pb.Opening.OUT), opening.nonce)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pb.Opened(proof="guessed").SerializeToString(), "who answers does not know the job's token"),
        (b"", "who answers does not know the job's token"),
        (b"\xff\xff", "what answers is no host of akrunner's"),
    ],
)
def test_who_answers_something_else_is_left(data: bytes, words: str) -> None:
    with host(answers(data)) as door, pytest.raises(ConnectionError, match=words) as caught:
        opened(door, "p", pb.Opening.IN)
    assert KEYS.token not in str(caught.value)


def test_no_more_is_read_of_an_answer_than_it_may_have() -> None:
    left: list[bytes] = []

    def announces(opening: pb.Opening, connection: socket.socket) -> None:
        connection.sendall(LENGTH.pack(60_000) + b"\xff" * OPENING_LIMIT)
        connection.settimeout(5)
        with contextlib.suppress(TimeoutError):
            left.append(connection.recv(1))

    with host(announces) as door, pytest.raises(ConnectionError, match="what answers is no host of akrunner's"):
        opened(door, "p", pb.Opening.IN)
    assert left == [b""], "it did not wait for more"


def test_who_gives_back_the_agents_own_proof_is_left() -> None:
    def answer(opening: pb.Opening, connection: socket.socket) -> None:
        answers(pb.Opened(proof=opening.proof).SerializeToString())(opening, connection)

    with host(answer) as door, pytest.raises(ConnectionError, match="who answers does not know the job's token"):
        opened(door, "p", pb.Opening.IN)


def test_who_hangs_up_is_an_error() -> None:
    with host(lambda opening, connection: None) as door, pytest.raises(ConnectionError):
        opened(door, "p", pb.Opening.IN)


def test_nobody_there_is_the_systems_own_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        opened(Door("127.0.0.1", 1, port, KEYS), "p", pb.Opening.IN)


def test_a_host_is_greeted_before_anything_is_asked_of_it() -> None:
    def answer(opening: pb.Opening, connection: socket.socket) -> None:
        assert (opening.agent, opening.kind) == ("", pb.Opening.NONE)
        answers(pb.Opened(proof=KEYS.proof(HOST_ROWS, opening.nonce)).SerializeToString())(opening, connection)

    with host(answer) as door:
        greet(door, 10.0)


def test_one_that_only_accepts_is_no_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        name, port = server.getsockname()
        with pytest.raises(TimeoutError):
            greet(Door(name, 1, port, KEYS), 0.05)
