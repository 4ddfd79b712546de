"""What answers at a REST address may be anything: words within bounds, in time, without secrets."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from akrunner.engines.flink import rest as rest_module
from akrunner.engines.flink.host import watch as watch_module
from akrunner.engines.flink.host.engine import FlinkEngine
from akrunner.engines.flink.host.watch import Watch
from akrunner.engines.flink.rest import CREDENTIALS, HEADERS, Address, Rest
from akrunner.errors import ClusterError, ConfigError, JobManagerLostError
from tests.conftest import FLINK, wait_for

OVERVIEW = b'{"slots-available": 3, "flink-version": "2.3.0"}'


@contextlib.contextmanager
def answering(answer: Callable[[socket.socket], None], heard: list[bytes] | None = None) -> Iterator[str]:
    """A server that does as `answer` says, once it has heard a request. Yields: its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        request = b""
                        try:
                            request = connection.recv(1 << 16)
                        finally:
                            # a client whose time is over may have hung up before it was heard
                            if heard is not None:
                                heard.append(request)
                        answer(connection)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield "{}:{}".format(*listener.getsockname())
        listener.shutdown(socket.SHUT_RDWR)
        serving.join(60)


def saying(body: bytes, status: str = "200 OK", headers: str = "") -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)

    return answer


def dripping(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for _ in range(100):
        connection.sendall(b"X")
        time.sleep(0.05)


def half_of_it(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")


def ever_more(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"[" * (1 << 20))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (saying(b"<html>"), "is not Flink"),
        (saying(b"[]"), "is not Flink"),
        (saying(b'{"slots-available": "many"}'), "is not Flink"),
        (saying(b'{"a": ' + b"[" * 200_000), "is not Flink"),
        (saying(b"\xff\xfe"), "is not Flink"),
        (lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"), "no Flink cluster answers"),
        (lambda connection: None, "no Flink cluster answers"),
        (half_of_it, "is not Flink"),
        (saying(b"", "500 Oh\x07dear"), "answers 500 Ohdear$"),
        (saying(b"", "401 Unauthorized"), f"it wants other credentials: {CREDENTIALS}=user:password"),
        (saying(b"", "302 Found", "Location: https://u:geheim@other/\r\n"), r"leads to 'https://u:\*\*\*@other/'; give that"),
        (dripping, "no answer within 0.3 s"),
        (lambda connection: time.sleep(0.6), "no answer within 0.3 s"),
    ],
)
def test_what_is_no_flink_is_said_in_time(answer: Callable[[socket.socket], None], words: str) -> None:
    with answering(answer) as master:
        with pytest.raises(ClusterError, match=words) as raised:
            Rest(master, 0.3).free_slots()
    assert f"master='{master}' (--flink-master)" in str(raised.value) and "geheim" not in str(raised.value)


@contextlib.contextmanager
def keeping(requests: int, last: str = "") -> Iterator[tuple[str, list[int]]]:
    """A server that answers so many requests over each connection, and then closes it. Args: last: a header of the last answer. Yields: its
    address, and the number of requests over each connection."""
    asked: list[int] = []

    def answer(connection: socket.socket) -> None:
        asked.append(0)
        while asked[-1] < requests:
            asked[-1] += 1
            saying(OVERVIEW, headers=last if asked[-1] == requests else "")(connection)
            if asked[-1] < requests and not connection.recv(1 << 16):
                break

    with answering(answer) as master:
        yield master, asked


def test_a_connection_is_kept_if_that_is_wanted() -> None:
    with keeping(100) as (master, asked):
        rest = Rest(master, keep=True)
        assert [rest.free_slots() for _ in range(5)] == [3] * 5 and asked == [5]
        rest.close()
        assert rest.free_slots() == 3, "each question has one of its own then"
        assert Rest(master).free_slots() == 3 and asked == [5, 1, 1]


@pytest.mark.parametrize("last", ["", "Connection: close\r\n"])
def test_another_connection_takes_the_place_of_one_that_was_closed(last: str) -> None:
    with keeping(2, last) as (master, asked), contextlib.closing(Rest(master, keep=True)) as rest:
        for _ in range(3):
            assert rest.free_slots() == 3
            assert rest.free_slots() == 3
            if rest._kept and rest._kept[0].sock is not None:
                # the server closes it now
                assert select.select([rest._kept[0].sock], [], [], 60)[0]
        assert asked == [2, 2, 2]


@pytest.mark.parametrize("answer", [dripping, half_of_it, saying(b"", "500 no"), lambda connection: connection.sendall(b"SSH")])
def test_a_connection_with_half_an_answer_is_not_used_again(answer: Callable[[socket.socket], None]) -> None:
    heard: list[bytes] = []

    def wait_until_heard(number: int) -> None:
        wait_for(lambda: len(heard) == number)

    with answering(answer, heard) as master, contextlib.closing(Rest(master, 0.3, keep=True)) as rest:
        for number in (1, 2):
            with pytest.raises(ClusterError):
                rest.overview()
            assert rest._kept == []
            # no matter how late the server comes to it
            wait_until_heard(number)
    assert len(heard) == 2


def test_a_cluster_is_asked_at_the_address_that_jobs_are_submitted_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CREDENTIALS, raising=False)
    for master in ("flink:8081", "http://flink:80/a", "https://me:geheim@flink/a/b", "[::1]:8081"):
        address = Address.of(master)
        monkeypatch.setenv(HEADERS, address.header_lines)
        assert Address.from_options(address.flink_options) == address


def test_an_endless_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_module, "_ANSWER_BYTES", 3 << 20)
    with answering(ever_more) as master, pytest.raises(ClusterError, match="answers with more than 3 MiB"):
        Rest(master).overview()


@pytest.mark.parametrize(
    ("call", "body"),
    [
        (lambda rest: rest.jobs(), {"jobs": [{"jid": 1}]}),
        (lambda rest: rest.jobs(), {"jobs": {}}),
        (lambda rest: rest.state("a"), {"status": ["RUNNING"]}),
        (lambda rest: rest.traces("a"), {"exceptionHistory": {"entries": [{}]}}),
        (lambda rest: rest.traces("a"), {"exceptionHistory": []}),
        (lambda rest: rest.taskmanagers(), {"taskmanagers": [1]}),
    ],
)
def test_the_shape_of_an_answer_is_checked(call: Callable[[Rest], object], body: object) -> None:
    with answering(saying(json.dumps(body).encode())) as master, pytest.raises(ClusterError, match="is not Flink"):
        call(Rest(master))


LINES = b"one\n\xff two\nthr"


def chunked(body: bytes, end: bytes = b"0\r\n\r\n") -> Callable[[socket.socket], None]:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return lambda connection: connection.sendall(head + b"%x\r\n%b\r\n" % (len(body), body) + end)


def endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + LINES)
    while connection.recv(1 << 16):
        pass


@pytest.mark.parametrize("answer", [saying(LINES), chunked(LINES)])
def test_a_log_is_its_lines_and_the_last_one_if_it_is_wanted(answer: Callable[[socket.socket], None]) -> None:
    with answering(answer) as master:
        assert list(Rest(master).log("t")) == ["one", "\ufffd two", "thr"]
        assert list(Rest(master).log("t", unfinished=False)) == ["one", "\ufffd two"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + LINES),
            "87 bytes are missing",
        ),
        (chunked(LINES, b""), "IncompleteRead"),
        (endless, "no more of it within 0.3 s"),
    ],
)
@pytest.mark.parametrize("unfinished", [True, False])
def test_a_log_that_breaks_off_is_an_error_and_its_last_line_no_line(
    answer: Callable[[socket.socket], None], words: str, unfinished: bool
) -> None:
    said = []
    with answering(answer) as master:
        with pytest.raises(
            ClusterError, match=f"the answer of http://{master}/taskmanagers/t/log breaks off: .*{words}"
        ) as raised:
            for line in Rest(master, 0.3).log("t", unfinished):
                said.append(line)
    assert said == (["one", "\ufffd two"] if "Incomplete" not in words else []) and raised.value.answered


def test_a_very_long_line_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_module, "_LINE_BYTES", 4)
    with answering(saying(b"123456789\nabcdef")) as master:
        assert list(Rest(master).log("t", unfinished=False)) == ["1234", "5678", "9", "abcd"]
        assert list(Rest(master).log("t")) == ["1234", "5678", "9", "abcd", "ef"]


def test_what_flink_does_not_know() -> None:
    body = b'{"errors": ["<Exception on server side:\\norg.apache.flink.runtime.messages.FlinkJobNotFoundException: ..."]}'
    for answer in (saying(body, "500 Internal Server Error"), saying(b"", "404 Not Found")):
        with (
            answering(answer) as master,
            pytest.raises(ClusterError, match="there is no http://.*/jobs/a%2Fb/status") as raised,
        ):
            Rest(master).state("a/b")
        assert raised.value.missing


@pytest.mark.parametrize(
    ("master", "shown", "url"),
    [
        ("cluster:8081", "cluster:8081", "http://cluster:8081/overview"),
        ("[::1]:8081", "[::1]:8081", "http://[::1]:8081/overview"),
        ("http://cluster:8081/", "cluster:8081", "http://cluster:8081/overview"),
        ("http://cluster", "cluster:80", "http://cluster:80/overview"),
        ("https://host/flink/", "https://host:443/flink", "https://host:443/flink/overview"),
        ("https://me:geheim@host:8443/a/b", "https://host:8443/a/b", "https://host:8443/a/b/overview"),
    ],
)
def test_addresses(master: str, shown: str, url: str) -> None:
    address = Address.of(master)
    assert (address.shown, address.url("/overview")) == (shown, url)
    # what is shown leads there, too
    assert Address.of(address.shown).url("/overview") == url
    assert "geheim" not in repr(address) + repr(FlinkEngine(master).master)


@pytest.mark.parametrize(
    "master",
    ["nowhere", "host:0", "host:99999", "host:x", "ftp://host/", "https://", "https://host/?a=b", "https://host/#a", "http://a b/", "h:1/a",
     "https://me:geheim@host:port/", "me:geheim@host:port", "http://[::1/", "", "host:8081\r\nX: y", "https://host/\0"],
)  # fmt: skip
def test_no_addresses(master: str) -> None:
    with pytest.raises(ConfigError, match=r"master=.* \(--flink-master\): give 'host:port' or a URL") as raised:
        FlinkEngine(master)
    assert "geheim" not in str(raised.value)


def test_credentials_go_with_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[bytes] = []
    with answering(saying(OVERVIEW), heard) as where:
        Rest(f"http://me:ge%20heim@{where}/flink/").free_slots()
        monkeypatch.setenv(CREDENTIALS, "you:secret")
        Rest(where).free_slots()
        monkeypatch.delenv(CREDENTIALS)
        monkeypatch.setenv(HEADERS, "Authorization: Bearer abc\nX-Team:  one ")
        Rest(where).free_slots()
    assert heard[0].startswith(b"GET /flink/overview HTTP/1.1\r\n") and b"Authorization: Basic bWU6Z2UgaGVpbQ==\r\n" in heard[0]
    assert b"Authorization: Basic eW91OnNlY3JldA==\r\n" in heard[1]
    assert b"Authorization: Bearer abc\r\n" in heard[2] and b"X-Team: one\r\n" in heard[2]
    address = Address.of("https://me:geheim@host/flink")
    assert "geheim" not in str(address.flink_options) and address.flink_options["rest.path"] == "/flink"
    assert address.header_lines.startswith("Authorization:Basic ")


def test_another_version_of_flink_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(saying(OVERVIEW.replace(b"2.3.0", b"1.20.5"))) as master:
        engine = FlinkEngine(master, python=str(FLINK))
        engine._version = "2.3.0"
        with pytest.raises(
            ConfigError, match=f"the cluster at {master} is Flink 1.20.5, .* has PyFlink 2.3.0.*--flink-python.*--flink-master"
        ):
            engine._check_version(Rest(master))
        engine._version = "1.20.1"
        engine._check_version(Rest(master))


@contextlib.contextmanager
def watching(master: str, job: str) -> Iterator[Watch]:
    """A watch that is closed, and whose thread has ended, when the block is left, also by an error."""
    made = Watch(Address.of(master), lambda: job)
    try:
        yield made
    finally:
        made.close()
        made._thread.join(30)
        assert not made._thread.is_alive()


def test_a_jobmanager_that_falls_silent_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.engines.flink.host.watch._GONE_SECONDS", 0.3)
    monkeypatch.setattr("akrunner.engines.flink.host.watch._EVERY_SECONDS", 0.02)
    with contextlib.ExitStack() as stack:
        with answering(saying(b'{"status": "RUNNING"}')) as master:
            watch = stack.enter_context(watching(master, "a"))
            assert watch.asked() and watch.state == "RUNNING"
            watch.check()
        deadline = time.monotonic() + 60
        with pytest.raises(JobManagerLostError, match=f"the JobManager at {master} is gone: .*Connection refused"):
            while time.monotonic() < deadline:
                watch.check()
                time.sleep(0.02)


def test_it_is_missed_within_15_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of the test's own: after 8 s of silence, and no question is older than 5 s then."""
    now = 100.0
    monkeypatch.setattr(watch_module, "time", SimpleNamespace(monotonic=lambda: now))
    # its thread never asks
    monkeypatch.setattr(watch_module, "_EVERY_SECONDS", 1000.0)
    with contextlib.ExitStack() as stack:
        with answering(saying(b'{"status": "RUNNING"}')) as master:
            watch = stack.enter_context(watching(master, "a"))
            assert watch.asked()
        assert not watch.asked()
        now = 108.1
        watch.check()
        assert not watch.asked()
        now = 108.0
        watch.check()
        now = 108.1
        with pytest.raises(JobManagerLostError, match="Connection refused"):
            watch.check()
    monkeypatch.undo()
    assert watch_module._GONE_SECONDS + watch_module._EVERY_SECONDS + watch_module._ASK_SECONDS <= 15


def test_who_never_answered_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.engines.flink.host.watch._GONE_SECONDS", 0.0)
    with watching("127.0.0.1:1", "") as watch:
        assert watch.asked() and watch.asked() and watch.asked()
        watch.check()
