"""An agent's end of its stream: what it says and hears, who is refused and why, and its end. (Real hosts and strangers are in
test_strangers.py.)"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.control import AGENT_END, HOST_END, NONCE, PROOF, VERSION
from akrunner.engines.flink.keys import HOST, Door, Keys
from akrunner.engines.flink.taskmanager import line as line_module
from akrunner.engines.flink.taskmanager.line import HostGone, JobFailed, Line

KEYS = Keys("token")


class Refused(grpc.RpcError):  # type: ignore[misc]
    """What a call raises that was refused."""


class Call:
    """A call. Args: first: the host's first message; an error is raised."""

    def __init__(self, first: Any, shown: dict[str, str], code: Any = None, details: str = "") -> None:
        self._words = [first]
        self._shown = shown
        self._code, self._details = code, details
        self.cancelled = False

    def initial_metadata(self) -> tuple[tuple[str, str], ...]:
        return tuple(self._shown.items())

    def __iter__(self) -> Call:
        return self

    def __next__(self) -> Any:
        if not self._words:
            raise StopIteration
        word = self._words.pop(0)
        if isinstance(word, Exception):
            raise word
        return word

    def code(self) -> Any:
        return self._code

    def details(self) -> str:
        return self._details

    def cancel(self) -> None:
        self.cancelled = True


class Host:
    """In place of gRPC and of the host at its other end. Attributes: answers: what each call gets, the last of them for ever."""

    StatusCode, RpcError = grpc.StatusCode, grpc.RpcError

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = [{}]
        self.calls: list[Call] = []
        self.registered: list[pb.Register] = []
        self.channels: list[Any] = []
        self.closed = 0

    def insecure_channel(self, where: str, options: Any) -> Any:
        self.channels.append((where, dict(options), None))
        return SimpleNamespace(stream_stream=self._method, close=self._close)

    def secure_channel(self, where: str, shown: Any, options: Any) -> Any:
        self.channels.append((where, dict(options), shown))
        return SimpleNamespace(stream_stream=self._method, close=self._close)

    def ssl_channel_credentials(self, *given: bytes) -> Any:
        return given

    def _close(self) -> None:
        self.closed += 1

    def _method(self, *given: Any, **named: Any) -> Any:
        def call(words: Iterator[pb.Said], metadata: Any) -> Call:
            answer = {
                "version": VERSION,
                "end": HOST_END,
                **(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]),
            }
            said = dict(metadata)
            assert KEYS.proves(said[PROOF], AGENT_END, said[NONCE])
            self.registered.append(next(words).register)
            first = answer.get("first", pb.Told(welcome=pb.Welcome(version=answer["version"])))
            shown = {PROOF: KEYS.proof(answer["end"], said[NONCE])} if answer["end"] else {}
            self.calls.append(Call(first, shown, answer.get("code"), answer.get("details", "")))
            return self.calls[-1]

        return call


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setattr(line_module, "library", lambda: made)
    monkeypatch.setattr(Line, "_asked", lambda self: "10.0.0.2")
    return made


class Clock:
    """In place of `time`."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(line_module, "time", made)
    return made


def door(host: str = "10.0.0.1", keys: Keys = KEYS) -> Door:
    return Door(host, 7001, 7002, keys)


def test_an_agent_says_who_it_is_and_which_version_it_speaks(host: Host) -> None:
    with Line(door(), agent="p", with_rows=True, subtask=3, attempt=1, job="abc") as line:
        assert line.address == "10.0.0.2"
    (who,) = host.registered
    assert (who.version, who.agent, who.with_rows, who.subtask, who.attempt, who.job) == (VERSION, "p", True, 3, 1, "abc")
    assert host.calls[0].cancelled and host.closed == 1


@pytest.mark.parametrize(("address", "where"), [("10.0.0.1", "10.0.0.1:7001"), ("fe80::1", "[fe80::1]:7001")])
def test_a_channel_has_the_jobs_certificates(address: str, where: str, host: Host) -> None:
    for keys in (KEYS, Keys("token", "authority", "certificate", "key")):
        with Line(door(address, keys), agent="p"):
            pass
    (plain, options, _), (tls, others, shown) = host.channels
    assert plain == tls == where and shown == (b"authority", b"key", b"certificate")
    assert "grpc.ssl_target_name_override" not in options and others["grpc.ssl_target_name_override"] == HOST
    assert options["grpc.enable_http_proxy"] == 0, "a machine's proxy is for addresses outside"


def test_nobody_at_the_address_is_the_systems_own_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(
        JobFailed, match=f"^what submitted this job does not answer at 127.0.0.1:{port}: Connection refused$"
    ) as caught:
        Line(Door("127.0.0.1", port, 1, KEYS), agent="p")
    assert caught.value.final, "it would not answer a later attempt either"


def test_who_does_not_know_the_token_is_left(host: Host) -> None:
    for end in (AGENT_END, ""):
        host.answers = [{"end": end}]
        with pytest.raises(JobFailed, match="^who answers at 10.0.0.1:7001 does not know the job's token$") as caught:
            Line(door(), agent="p")
        assert caught.value.final and host.calls[-1].cancelled
    assert host.closed == 2


def test_a_host_of_another_version_is_left(host: Host) -> None:
    host.answers = [{"version": VERSION + 1}]
    words = f"^the host speaks version {VERSION + 1} of akrunner's protocol on Flink, its agent {VERSION}$"
    with pytest.raises(JobFailed, match=words) as caught:
        Line(door(), agent="p")
    assert caught.value.final and host.closed == 1


@pytest.mark.parametrize(
    ("code", "details", "words"),
    [
        ("FAILED_PRECONDITION", "another version", "the host at 10.0.0.1:7001 refuses this agent: another version"),
        ("ALREADY_EXISTS", "twice", "the host at 10.0.0.1:7001 refuses this agent: twice"),
        ("PERMISSION_DENIED", "no agent's", "the host at 10.0.0.1:7001 refuses this agent: no agent's"),
        ("UNIMPLEMENTED", "", "who answers at 10.0.0.1:7001 does not know this job's agents"),
        ("UNAVAILABLE", "Ssl: CERTIFICATE_VERIFY_FAILED", "who answers at 10.0.0.1:7001 is not this job's host: Ssl"),
        ("UNAVAILABLE", "Peer name host.akrunner is not in", "who answers at 10.0.0.1:7001 is not this job's host: Peer name"),
    ],
)
def test_one_that_would_be_refused_again_does_not_call_again(
    code: str, details: str, words: str, host: Host, clock: Clock
) -> None:
    host.answers = [{"first": Refused(), "code": getattr(grpc.StatusCode, code), "details": details}]
    with pytest.raises(JobFailed, match=f"^{words}") as caught:
        Line(door(), agent="p")
    assert caught.value.final and len(host.calls) == 1 and clock.now == 100.0 and host.closed == 1


def test_a_host_that_is_busy_is_called_again(host: Host, clock: Clock) -> None:
    busy = {"first": Refused(), "code": grpc.StatusCode.UNAVAILABLE, "details": "connection reset"}
    host.answers = [busy, {**busy, "first": StopIteration()}, {}]
    with Line(door(), agent="p"):
        pass
    assert [who.agent for who in host.registered] == ["p"] * 3 and clock.now > 100.0


def test_but_not_without_end(host: Host, clock: Clock) -> None:
    host.answers = [{"first": Refused(), "code": grpc.StatusCode.UNAVAILABLE, "details": "connection reset"}]
    with pytest.raises(JobFailed, match="^what submitted this job does not answer at 10.0.0.1:7001: connection reset$"):
        Line(door(), agent="p")
    assert 130.0 < clock.now <= 131.0


# -- words


def quiet_line() -> Any:
    """A line whose other end is in this test's hands."""
    line: Any = Line.__new__(Line)
    line._pb = pb
    line._out = queue.Queue(2)
    line._words = queue.Queue()
    line._gone = threading.Event()
    return line


def test_what_was_said_before_the_end_is_heard() -> None:
    line = quiet_line()
    for number in (1, 2):
        line._words.put(pb.Told(signal=number))
    line._gone.set()
    assert [line.hear().signal for _ in range(2)] == [1, 2]
    for listen in (lambda: line.heard(0.0), line.hear):
        with pytest.raises(HostGone, match="^the job's host has gone$"):
            listen()


def test_nothing_heard_within_the_time_is_none() -> None:
    line = quiet_line()
    assert line.heard(0.0) is None
    line._words.put(pb.Told(signal=9))
    assert line.heard(0.0).signal == 9


def test_who_waits_is_woken() -> None:
    line = quiet_line()
    line.wake()
    assert line.heard(None) is None
    line.wake()
    line._words.put(pb.Told(signal=9))
    assert line.hear().signal == 9, "who waits for a message has nothing to look for"


def test_who_says_too_much_waits_until_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "_TICK", 0.001)
    line = quiet_line()
    line.say(started=pb.Started(pid=1))
    line.say(started=pb.Started(pid=2))
    waiting = threading.Thread(target=line.say, kwargs={"started": pb.Started(pid=3)}, daemon=True)
    waiting.start()
    assert [line._out.get(timeout=30).started.pid for _ in range(3)] == [1, 2, 3]
    waiting.join(30)
    assert not waiting.is_alive()


def test_nothing_is_said_to_one_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "_TICK", 0.001)
    line = quiet_line()
    line._gone.set()
    with pytest.raises(HostGone):
        line.say(started=pb.Started(pid=1))
    assert line._out.empty()
    with pytest.raises(ValueError, match="nothing"):
        line.say(nothing=1)


def test_a_stream_that_ends_or_breaks_is_an_end(host: Host) -> None:
    for last in (StopIteration(), Refused()):
        line = quiet_line()
        line._grpc = host
        line._call = Call(pb.Told(signal=1), {})
        line._call._words.append(last)
        line._read()
        assert line.hear().signal == 1 and line._gone.is_set()


def test_a_thread_that_dies_is_an_end_too() -> None:
    line = quiet_line()
    line._died("line", AttributeError("no such thing"))
    with pytest.raises(HostGone):
        line.hear()
