"""Strangers at the ports of a Flink job's host, and in the place of a host that has gone: over real connections, nothing is taken from either."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from akrunner.engines.flink import control, keys
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.connections import AGENT_ROWS, LENGTH, exactly, opened
from akrunner.engines.flink.host import acceptor, issue
from akrunner.engines.flink.host.control_server import ControlServer
from akrunner.engines.flink.host.issue import JobKeys, issued
from akrunner.engines.flink.keys import HOST, Door, Keys
from akrunner.engines.flink.taskmanager import line
from akrunner.engines.flink.taskmanager.line import HostGone, JobFailed, Line
from akrunner.errors import ConfigError

MANY = 500


@contextlib.contextmanager
def listening(made: JobKeys, port: int | None = None) -> Iterator[tuple[ControlServer, Door]]:
    server = ControlServer("127.0.0.1", made.host, port)
    try:
        yield server, server.door("127.0.0.1", made.agents)
    finally:
        server.close()
        assert not server.acceptor.thread.is_alive()


def nobody_came(server: ControlServer) -> None:
    assert server.arrived.empty() and not server._remotes and server.broken is None


def a_real_one_comes(server: ControlServer, door: Door) -> None:
    """An agent gets in, and its rows as well."""
    with Line(door, agent="real", subtask=7) as agent:
        place = server.arrived.get(timeout=60)
        assert place.subtask == 7
        with opened(door, "real", pb.Opening.IN) as ours, place.opened(pb.Opening.IN, 30) as theirs:
            theirs.sendall(b"rows")
            assert exactly(ours, 4) == b"rows"
        place.tell(leave=pb.Leave())
        assert agent.hear().WhichOneof("word") == "leave"


def ended(connection: socket.socket) -> bool:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while connection.recv(1000):
            pass
    return True


def of_others(mine: JobKeys, what: str) -> Keys:
    """Keys with which nobody comes in."""
    other = issued()
    if what == "another job's":
        return other.agents
    if what == "the other's certificate, the right authority":
        return Keys(mine.agents.token, mine.agents.authority, other.agents.certificate, other.agents.key)
    if what == "the host's own":
        return mine.host
    return Keys("guessed", mine.agents.authority, mine.agents.certificate, mine.agents.key)


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", ["another job's", "the other's certificate, the right authority", "the host's own", "a wrong token"]
)
def test_nobody_comes_in_with_other_keys(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "CONNECT_SECONDS", 1.0)
    mine = issued()
    with listening(mine) as (server, door):
        wrong = Door(door.host, door.port, door.rows, of_others(mine, what))
        with pytest.raises(JobFailed):
            Line(wrong, agent="p")
        with pytest.raises(OSError):
            opened(wrong, "p", pb.Opening.IN)
        nobody_came(server)
        a_real_one_comes(server, door)


def test_nobody_comes_in_without_a_certificate() -> None:
    with listening(issued()) as (server, door):
        shown = grpc.ssl_channel_credentials(door.keys.authority.encode())
        for channel in (
            grpc.insecure_channel(door.shown),
            grpc.secure_channel(door.shown, shown, [("grpc.ssl_target_name_override", HOST)]),
        ):
            said = keys.nonce()
            metadata = ((control.NONCE, said), (control.PROOF, door.keys.proof(control.AGENT_END, said)))
            with channel, pytest.raises(grpc.RpcError) as caught:
                next(channel.stream_stream(control.METHOD)(iter([b""]), metadata=metadata, timeout=20))
            assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=door.keys.authority)
        with socket.create_connection((door.host, door.rows), 20) as plain:
            with context.wrap_socket(plain, server_hostname=HOST) as connection:
                with contextlib.suppress(OSError):
                    connection.sendall(opening_of(door, "p"))
                assert ended(connection)
        nobody_came(server)


def opening_of(door: Door, place: str, kind: int = pb.Opening.IN) -> bytes:
    said = keys.nonce()
    proof = door.keys.proof(AGENT_ROWS, place, str(kind), said)
    made: bytes = pb.Opening(agent=place, kind=kind, nonce=said, proof=proof).SerializeToString()
    return LENGTH.pack(len(made)) + made


@pytest.mark.parametrize("tls", [True, False])
@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 9000, b"\4\0abcd", b"\0\0", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 9]
)
def test_rubbish_is_sent_away(said: bytes, tls: bool) -> None:
    with listening(issued(tls)) as (server, door):
        for port in (door.port, door.rows):
            with socket.create_connection((door.host, port), 30) as stranger:
                with contextlib.suppress(OSError):
                    stranger.sendall(said)
                    stranger.shutdown(socket.SHUT_WR)
                assert ended(stranger)
        nobody_came(server)
        a_real_one_comes(server, door)


@pytest.mark.slow
@pytest.mark.parametrize("tls", [True, False])
def test_hundreds_that_say_nothing_hold_up_nobody(tls: bool) -> None:
    with listening(issued(tls)) as (server, door), contextlib.ExitStack() as held:
        before = threading.active_count(), len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
        for number in range(MANY):
            for port in (door.port, door.rows):
                stranger = held.enter_context(socket.create_connection((door.host, port), 30))
                with contextlib.suppress(OSError):
                    stranger.sendall(b"" if number % 2 else b"\x16\x03" if tls else b"PRI * HT")
        # gRPC's threads are counted as soon as one has run Python
        assert threading.active_count() - before[0] < 10 < MANY and len(server.acceptor.strangers) <= acceptor.STRANGERS
        began = time.monotonic()
        a_real_one_comes(server, door)
        assert time.monotonic() - began < 30
        if before[1]:
            # gRPC's own, of which there are a few, however many connections
            assert len(os.listdir("/proc/self/task")) - before[1] < 40


def test_who_says_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "HELLO_SECONDS", 0.3)
    monkeypatch.setattr("akrunner.engines.flink.host.control_server.HELLO_SECONDS", 0.3)
    for tls in (True, False):
        with listening(issued(tls)) as (server, door):
            for port in (door.port, door.rows):
                with socket.create_connection((door.host, port), 30) as silent:
                    assert ended(silent)
            assert server.acceptor.strangers == {}


@pytest.mark.parametrize("tls", [True, False])
def test_one_who_comes_twice_is_refused(tls: bool) -> None:
    with listening(issued(tls)) as (server, door):
        with Line(door, agent="p"):
            server.arrived.get(timeout=30)
            with pytest.raises(JobFailed, match="an agent of this name has come already"):
                Line(door, agent="p")
            # rows of a place that nobody knows, and of a kind there is not
            for name, kind in (("q", pb.Opening.IN), ("p", 9)):
                with opened(door, name, kind) as connection:
                    assert ended(connection)
            assert server.arrived.empty()


@pytest.mark.parametrize("tls", [True, False])
def test_another_version_is_told(tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(issued(tls)) as (server, door):
        monkeypatch.setattr(line, "VERSION", 99)
        with pytest.raises(
            JobFailed, match=f"the agent speaks version 99 of akrunner's protocol on Flink, its host version {control.VERSION}"
        ) as caught:
            Line(door, agent="p")
        assert caught.value.final
        nobody_came(server)


# -- a port that was taken over


@pytest.mark.parametrize("tls", [True, False])
def test_who_has_taken_over_the_port_gets_nothing(tls: bool) -> None:
    """Another of akrunner's hosts, even: what an agent runs comes from its own alone."""
    port = two_free_ports()
    with listening(issued(tls), port) as (_, door):
        pass
    with listening(issued(tls), port) as (taken, _), pytest.raises(JobFailed, match="who answers at 127.0.0.1:") as caught:
        Line(door, agent="p")
    assert caught.value.final and "PRIVATE KEY" not in str(caught.value) and door.keys.token not in str(caught.value)
    nobody_came(taken)


@pytest.mark.parametrize("tls", [True, False])
def test_who_hangs_up_before_it_shows_itself_is_named(tls: bool) -> None:
    def hang_up(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1 << 16)

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=hang_up, args=(server,))
        thread.start()
        with pytest.raises(ConnectionError, match=f"127.0.0.1:{port} has ended the connection before" if tls else "has ended"):
            opened(Door("127.0.0.1", port, port, issued(tls).agents), "p", pb.Opening.IN)
        thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize("tls", [True, False])
def test_what_an_agent_says_to_a_stranger_has_no_secrets(tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its token, nor its certificate, nor a word of where it is."""
    monkeypatch.setattr(line, "CONNECT_SECONDS", 0.5)
    made, heard = issued(tls), []

    def listen(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                connection.settimeout(0.2)
                with connection, contextlib.suppress(OSError):
                    while data := connection.recv(1 << 16):
                        heard.append(data)

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=listen, args=(server,), daemon=True)
        thread.start()
        door = Door("127.0.0.1", port, port, made.agents)
        with pytest.raises(JobFailed, match=f"does not answer at 127.0.0.1:{port}|is not this job's host"):
            Line(door, agent="the-place-it-is")
        with pytest.raises(OSError):
            opened(door, "the-place-it-is", pb.Opening.IN)
        server.shutdown(socket.SHUT_RDWR)
        thread.join(20)
    said = b"".join(heard)
    assert said and made.agents.token.encode() not in said
    if tls:
        assert b"the-place-it-is" not in said and b"agents.akrunner" not in said


class Imposter(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers in the protocol, without the token."""

    def __init__(self) -> None:
        self.metadata: Any = None

    def service(self, handler_call_details: Any) -> Any:
        self.metadata = handler_call_details.invocation_metadata

        def attend(words: Iterator[Any], context: Any) -> Iterator[Any]:
            context.send_initial_metadata(((control.PROOF, dict(self.metadata)[control.PROOF]),))
            yield pb.Told(welcome=pb.Welcome(version=control.VERSION))
            yield pb.Told(ask=pb.Ask(python="/bin/sh"))

        return grpc.stream_stream_rpc_method_handler(attend, pb.Said.FromString, pb.Told.SerializeToString)


def test_without_tls_the_host_has_to_know_the_token_too() -> None:
    from concurrent.futures import ThreadPoolExecutor

    made, imposter = issued(False), Imposter()
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers((imposter,))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            with pytest.raises(JobFailed, match=f"who answers at 127.0.0.1:{port} does not know the job's token"):
                Line(Door("127.0.0.1", port, port, made.agents), agent="p")
        finally:
            server.stop(None).wait()
    assert made.agents.token not in str(imposter.metadata)


def test_without_tls_so_has_who_sends_rows() -> None:
    made = issued(False)

    def imposter(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            (size,) = LENGTH.unpack(exactly(connection, 2))
            told = pb.Opening.FromString(exactly(connection, size))
            answer = pb.Opened(proof=told.proof).SerializeToString()
            connection.sendall(LENGTH.pack(len(answer)) + answer + (1 << 20).to_bytes(8, "little"))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=imposter, args=(server,), daemon=True)
        thread.start()
        port = server.getsockname()[1]
        with pytest.raises(ConnectionError, match="who answers does not know the job's token"):
            opened(Door("127.0.0.1", port, port, made.agents), "p", pb.Opening.IN)
        thread.join(20)


# -- both ends without each other


def test_a_host_that_goes_is_missed() -> None:
    with listening(issued()) as (server, door):
        agent = Line(door, agent="p")
        place = server.arrived.get(timeout=30)
    with agent, pytest.raises(HostGone):
        agent.hear()
    assert place.gone.wait(30) and place.broken is None
    with pytest.raises(JobFailed, match="what submitted this job does not answer at 127.0.0.1:"):
        Line(door, agent="q")


def test_ports_are_the_ones_that_were_asked_for() -> None:
    port = two_free_ports()
    with listening(issued(), port) as (server, door):
        assert (server.port, server.rows) == (door.port, door.rows) == (port, port + 1)
        with pytest.raises(ConfigError, match=f"cannot listen on port {port} of 127.0.0.1"):
            ControlServer("127.0.0.1", issued().host, port)
        a_real_one_comes(server, door)
    port = two_free_ports()
    with socket.create_server(("127.0.0.1", port + 1)), pytest.raises(ConfigError, match=f"port {port + 1} of"):
        ControlServer("127.0.0.1", issued().host, port)
    with socket.create_server(("127.0.0.1", port)):
        # the port is free again, not held until this process ends
        pass
    with pytest.raises(ConfigError, match=r"host=, port= .* cannot listen on 192.0.2.1"):
        ControlServer("192.0.2.1", issued().host)


def two_free_ports() -> int:
    """The first of them."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as one, contextlib.suppress(OSError):
            port = int(one.getsockname()[1])
            with socket.create_server(("127.0.0.1", port + 1)):
                return port


@pytest.mark.slow
def test_strangers_are_no_news_for_the_terminal() -> None:
    program = (
        "import socket, os\nfrom akrunner.engines.flink.host.issue import check_libraries, issued\n"
        "check_libraries()  # as the engine does before it loads the server\n"
        "from akrunner.engines.flink.host.control_server import ControlServer\n"
        "server = ControlServer('127.0.0.1', issued().host)\n"
        "with socket.create_connection(('127.0.0.1', server.port)) as one:\n    one.sendall(b'GET / HTTP/1.1\\r\\n' * 20)\n"
        "    one.settimeout(20)\n    one.recv(100)\n"
        "server.close()\nassert 'GRPC_VERBOSITY' not in os.environ"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_keys_show_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = issued()
    for one in (made.host, made.agents):
        assert repr(one) == "Keys()" and one.tls
    assert made.agents.token not in repr(Door("h", 1, 2, made.agents)) and "PRIVATE" not in repr(made)
    assert made.host.key != made.agents.key and made.host.token == made.agents.token
    # where there is no memory to be a file, one of this user's alone is, and goes
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delattr(os, "memfd_create", raising=False)
    seen: list[int] = []
    load: Callable[..., None] = ssl.SSLContext.load_cert_chain

    def loaded(self: ssl.SSLContext, path: str) -> None:
        seen.extend(os.stat(one).st_mode & 0o777 for one in (path, os.path.dirname(path)))
        load(self, path)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", loaded)
    made.agents.context(server=False)
    assert seen == [0o600, 0o700] and os.listdir(tmp_path) == []


def test_libraries_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ConfigError, match=r"pip install 'akrunner\[cluster\]'"):
        issue.check_libraries()
    issue.check_libraries(tls=False)


@pytest.mark.slow
def test_who_only_asks_for_a_jobs_state_needs_none_of_them() -> None:
    program = (
        "import sys; sys.modules['cryptography'] = sys.modules['grpc'] = sys.modules['google.protobuf'] = None\n"
        "import akrunner, akrunner.detached.jobs\nfrom akrunner.engines.flink import FlinkEngine\n"
        "open('s.py', 'w').write('def main(c): pass')\n"
        "try: akrunner.run('s.py', {'a': [1]}, engine=FlinkEngine('127.0.0.1:1'))\n"
        "except akrunner.ConfigError as e: assert 'akrunner[cluster]' in str(e), e\n"
        "else: raise SystemExit(3)"
    )
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_an_agents_python_needs_no_cryptography() -> None:
    program = (
        "import sys; sys.modules['cryptography'] = sys.modules['psutil'] = None\n"
        "import akrunner.engines.flink.taskmanager.agent, akrunner.engines.flink.taskmanager.detached_host\n"
        "assert 'grpc' not in sys.modules and 'google.protobuf' not in sys.modules, 'only when they are needed'"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
