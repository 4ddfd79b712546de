"""The hub among strangers, and agents that say what they should not: a hub and an agent in one process, over real connections."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import queue
import socket
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

import pyarrow as pa
import pytest

from akrunner.engines.flink import agent, hub, threads
from akrunner.engines.flink.client import Client, Submission
from akrunner.engines.flink.connections import BadLine, Lines
from akrunner.engines.flink.feed import Feed, schema_text
from akrunner.engines.flink.hub import Hub, Place, RemoteProcess
from akrunner.engines.flink.subtasks import Subtasks
from akrunner.errors import JobCancelledError, JobError, StartError

PASSES = """
import os, sys
reads, writes = int(sys.argv[2]), int(sys.argv[3])
print("at work", flush=True)
while data := os.read(reads, 1 << 16):
    os.write(writes, data)
"""


class Nobody:
    """In place of what submits."""

    def submit(self, order: Any) -> Submission:
        self.order = order
        return Submission()

    def cancel(self, job: Submission) -> None:
        job.ended.set()

    def close(self) -> None:
        pass


@contextlib.contextmanager
def listening() -> Iterator[Hub]:
    made = Hub("127.0.0.1")
    try:
        yield made
    finally:
        made.close()
        assert not made._greeting.is_alive()


def connected(made: Hub) -> socket.socket:
    return socket.create_connection(("127.0.0.1", made.port), timeout=10)


def hello(made: Hub, place: str = "p", channel: str = "control", **who: Any) -> socket.socket:
    connection = connected(made)
    said = {"token": made.token, "place": place, "channel": channel, "who": {"fed": False, **who}}
    connection.sendall(json.dumps(said).encode() + b"\n")
    return connection


def ended(connection: socket.socket) -> bool:
    with contextlib.suppress(ConnectionError):
        return connection.recv(1) == b""
    return True


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b"\xff\n", b"[" * 4000 + b"\n", b"x" * 9000, b'{"token": 1}\n', b"\n",
     b'{"token": "guessed", "place": "x", "channel": "control", "who": {"fed": false}}\n'],
)  # fmt: skip
def test_nobody_comes_in_without_the_token(said: bytes) -> None:
    with listening() as made, connected(made) as stranger:
        stranger.sendall(said)
        assert ended(stranger) and made.arrived.empty() and made.broken is None


@pytest.mark.parametrize(
    "change",
    [{"channel": "other"}, {"who": None}, {"who": {}}, {"who": {"fed": False, "attempt": "x"}}, {"who": []}, {"place": "nobody", "channel": "data"}],
)  # fmt: skip
def test_a_hello_is_checked_also_with_the_token(change: Dict[str, Any]) -> None:
    with listening() as made, connected(made) as one:
        said = {"token": made.token, "place": "p", "channel": "control", "who": {"fed": False}, **change}
        one.sendall(json.dumps(said).encode() + b"\n")
        assert ended(one) and made.arrived.empty() and made.broken is None


def test_five_hundred_strangers_hold_up_nobody() -> None:
    before = threading.active_count()
    with listening() as made, contextlib.ExitStack() as open_ones:
        for number in range(500):
            stranger = open_ones.enter_context(connected(made))
            with contextlib.suppress(OSError):
                stranger.sendall(b"" if number % 2 else b'{"tok')
        with hello(made, attempt=3) as one:
            place = made.arrived.get(timeout=60)
            assert place.attempt == 3
            assert threading.active_count() == before + 1
            assert len(made._strangers) <= hub._STRANGERS
            place.say(leave=True)
            assert b"leave" in one.recv(100)


def test_who_says_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_HELLO_SECONDS", 0.2)
    with listening() as made, connected(made) as silent, connected(made) as slow:
        slow.sendall(b'{"token"')
        assert ended(silent) and ended(slow) and made._strangers == {}


def test_what_follows_a_hello_is_not_read_with_it() -> None:
    with listening() as made, hello(made):
        place = made.arrived.get(timeout=60)
        with connected(made) as log:
            said = {"token": made.token, "place": "p", "channel": "log"}
            log.sendall(json.dumps(said).encode()[:10])
            log.sendall(json.dumps(said).encode()[10:] + b"\nthe first line")
            with place.opened("log", 10) as got:
                assert got.recv(100) == b"the first line"


def test_a_line_is_bounded() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lines = Lines(ours, 100)
        theirs.sendall(b'{"a": 1}\n{"b": 2}\n' + b"[" * 50 + b"\n7\n" + b"x" * 200)
        assert lines.hear(5) == {"a": 1} and lines.waiting and lines.hear(5) == {"b": 2}
        with pytest.raises(BadLine, match="no JSON"):
            lines.hear(5)
        with pytest.raises(BadLine, match="no JSON object"):
            lines.hear(5)
        with pytest.raises(BadLine, match="more than 100 bytes"):
            lines.hear(5)
        with pytest.raises(TimeoutError):
            Lines(theirs, 100).hear(0.05)


@contextlib.contextmanager
def subtasks_of_one() -> Iterator["tuple[Subtasks, Nobody]"]:
    nobody = Nobody()
    made = Subtasks(nobody, "127.0.0.1", 1, {})
    try:
        yield made, nobody
    finally:
        made.close()


@pytest.mark.parametrize(
    "word",
    [b"nonsense\n", b'{"rss": "much"}\n', b'{"exit": {}}\n', b'{"exit": 7}\n', b"x" * (5 << 20), b'{"broken": "it says"}\n'],
)
def test_an_agent_that_breaks_the_protocol_fails_the_job(word: bytes, tmp_path: Path) -> None:
    package = tmp_path / "package.tar"
    package.write_bytes(b"")
    with subtasks_of_one() as (made, _), hello(made._hub) as control:
        (place,) = made.come(10)
        with hello(made._hub, channel="data"), hello(made._hub, channel="log"):
            control.sendall(b'{"started": 1}\n')
            process = RemoteProcess(place, str(package), {}, 10)
            with contextlib.suppress(OSError):
                control.sendall(word)
            assert process.wait(60) is not None
            with pytest.raises(JobError, match="the agent of subtask 0 broke the protocol|it says"):
                made.check()
            for descriptor in (process.log_fd, process.output_fd, process.input_fd):
                os.close(descriptor)


def test_the_hubs_own_thread_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Hub) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr(Hub, "_accept", fails)
    with subtasks_of_one() as (made, _), hello(made._hub):
        with pytest.raises(JobError, match="akrunner's own thread 'hub' failed:\n(.|\n)*AttributeError: no such thing"):
            made.come(30)
        with pytest.raises(JobError, match="akrunner's own thread 'hub' failed"):
            made.wait_for_first()


def test_a_job_cancelled_by_somebody_else_is_cancelled() -> None:
    with subtasks_of_one() as (made, _):
        made.submitted.id, made.submitted.state = "abc", "CANCELLING"
        with pytest.raises(JobCancelledError, match="the Flink job abc was cancelled"):
            made.come(30)


def test_places_whose_job_was_cancelled_are_not_kept_for_another() -> None:
    with subtasks_of_one() as (made, _), hello(made._hub):
        made.come(10)
        made.submitted.state = "RUNNING"
        assert made.can_be_used()
        made.submitted.state = "CANCELLING"
        assert not made.can_be_used()
        made.submitted.ended.set()


class Beside:
    """An agent in a thread of this process, and the task's process it starts. Attributes: ended: what the agent raised."""

    def __init__(self, made: Subtasks, nobody: Nobody, folder: Path, given: Any = None) -> None:
        self._made = made
        self._folder = folder
        self.ended: "queue.Queue[Any]" = queue.Queue()
        address = nobody.order["address"]
        self._thread = threading.Thread(
            target=self._run, args=((address[0], address[1]), nobody.order["token"], given), name="beside", daemon=True
        )
        self._thread.start()

    def _run(self, address: Any, token: str, given: Any) -> None:
        try:
            self.ended.put(agent.work(address, token, given))
        except BaseException as e:
            self.ended.put(e)

    def start(self, **order: Any) -> RemoteProcess:
        """A task that gives back what it is sent."""
        (place,) = self._made.come(20)
        place.ask(sys.executable, "127.0.0.1", None)
        place.settle()
        bundle = self._folder / "bundle.zip"
        bundle.write_text(PASSES)
        work = self._folder / "files"
        work.mkdir()
        package = self._folder / "package.tar"
        with tarfile.open(package, "w") as archive:
            archive.add(bundle, "bundle.zip")
            archive.add(work, "work")
        told = {"output": None, "files": None, "threads": 1, "env": {}, "directories": ["tmp"], **order}
        return RemoteProcess(place, str(package), told, 20)

    def join(self) -> Any:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.ended.get_nowait()


def closed(process: RemoteProcess) -> None:
    for descriptor in (process.log_fd, process.output_fd, process.input_fd):
        os.close(descriptor)


def until_it_is_told(made: Subtasks) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            made.check()
        except JobError as e:
            return str(e)
        time.sleep(0.02)
    raise AssertionError("nobody said anything")


def fails(*given: Any, **named: Any) -> None:
    raise AttributeError("no such thing")


def fails_in(thread: str, target: Any) -> Any:
    def chosen(*given: Any) -> None:
        if threading.current_thread().name == f"akrunner-{thread}":
            fails()
        target(*given)

    return chosen


#: thread of the agent's -> what fails in it
KINDS = {
    "out": "_pump", "log": "_pump", "in": "_pump", "close-out": "_close_out", "close-in": "_close_in",
}  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, "agent"])
def test_no_thread_beside_a_task_dies_without_a_word(
    kind: str, monkeypatch: pytest.MonkeyPatch, leaves_nothing: Path, tmp_path: Path
) -> None:
    with subtasks_of_one() as (made, nobody):
        beside = Beside(made, nobody, tmp_path)
        if kind == "agent":
            monkeypatch.setattr(agent.ChildProcess, "sample", fails)
        else:
            monkeypatch.setattr(agent, KINDS[kind], fails_in(kind, getattr(agent, KINDS[kind])))
        process = beside.start()
        if kind.startswith("close"):
            process.kill()
        told = until_it_is_told(made)
        closed(process)
        # it ends by itself: the task's process and directory go
        assert isinstance(beside.join(), (agent.SubmitterGone, AttributeError))
    assert (
        f"akrunner's own thread {kind!r} beside the task" in told
        and "Traceback" in told
        and "AttributeError: no such thing" in told
    )


FED = {"in": "_forward", "rows": "_feed", "out": "pass_on"}


@pytest.mark.parametrize("kind", FED)
def test_no_thread_between_flink_and_a_task_does_either(
    kind: str, monkeypatch: pytest.MonkeyPatch, leaves_nothing: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(Feed, FED[kind], fails_in(kind, getattr(Feed, FED[kind])))
    schema = schema_text(pa.schema([("a", pa.int64())]))
    order = {"mode": "stream", "data_format": "columns", "chunk_rows": 10, "chunk_bytes": 1000, "pairs": None}
    with subtasks_of_one() as (made, nobody):
        given = Feed()
        beside = Beside(made, nobody, tmp_path, given)
        given._started.set()
        process = beside.start(output={"schema": schema, "rows": schema}, **order)
        told = until_it_is_told(made)
        closed(process)
        assert isinstance(beside.join(), agent.SubmitterGone)
    assert f"akrunner's own thread '{kind}'" in told and "AttributeError: no such thing" in told


def test_a_task_comes_and_goes(leaves_nothing: Path, tmp_path: Path) -> None:
    with subtasks_of_one() as (made, nobody):
        beside = Beside(made, nobody, tmp_path)
        process = beside.start()
        os.write(process.input_fd, b"there and back")
        assert os.read(process.output_fd, 100) == b"there and back"
        said = b""
        while b"at work\n" not in said:
            said += (got := os.read(process.log_fd, 100))
            assert got, said
        made.check()
        process.kill()
        ended_how = process.wait(60)
        assert ended_how is not None and ended_how.signal == 9
        made.clear()
        closed(process)
        assert made.places[0].idle.is_set() and not made.places[0].gone.is_set()
        made.leave()
        assert beside.join() is None
        made.submitted.ended.set()


def test_a_package_that_does_not_fit_or_is_none_is_refused(leaves_nothing: Path, tmp_path: Path) -> None:
    for sent, words in (
        (1 << 62, "has no room for the 4,611,686,018,427,387,904 bytes"),
        (10, "is not an archive that can be read"),
    ):
        with subtasks_of_one() as (made, nobody):
            beside = Beside(made, nobody, tmp_path)
            (place,) = made.come(20)
            place.ask(sys.executable, "127.0.0.1", None)
            place.settle()
            place.say(output=None, files=None, threads=1, env={}, directories=[])
            with place.opened("data", 20) as data:
                data.sendall(sent.to_bytes(8, "little") + b"0123456789")
                said = place.hear(20)
                assert said is not None and words in said["failed"]
            made.leave("enough")
            place.abandon()
            assert isinstance(beside.join(), (agent.JobFailed, agent.SubmitterGone))


def test_what_listens_to_the_submitting_process_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client.__new__(Client)
    client._jobs = {0: Submission()}
    reading, writing = os.pipe()
    os.write(
        writing,
        b'{"of": 0, "job": "abc"}\nwhat a library prints\n{"of": 0, "state": "RUNNING"}\n{"of": 0, "state": {"a": 1}}\n',
    )
    os.write(writing, b'{"of": [1]}\n' + b"[" * 5000 + b"\n")
    os.close(writing)
    monkeypatch.setattr(Client, "_last_words", fails)
    with open(reading, "rb") as said:
        threads.started("flink", client._died, client._listen, said).join(60)
    job = client._jobs[0]
    assert job.id == "abc" and job.ended.is_set()
    assert job.failed is not None and "akrunner's own thread 'flink' failed" in job.failed and "AttributeError" in job.failed


def test_a_place_that_never_says_where_it_is() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        place = Place(ours)
        where = '"address": "a:1", "folder": "/f", "machine": "m", "sees": true, "writes": true'
        for said in ('{"address": 1}', f'{{{where}, "cores": "many"}}', f'{{{where}, "cores": Infinity}}'):
            theirs.sendall(said.encode() + b"\n")
            with pytest.raises(StartError, match="a subtask broke the protocol"):
                place.settle()
        theirs.sendall(b"rubbish\n")
        with pytest.raises(StartError, match="the agent of subtask 0 broke the protocol: no JSON"):
            place.settle()
        place.close()


class _Cut:
    """A connection of a network that was cut: what the system says of it, sooner or later."""

    def __init__(self, error: OSError) -> None:
        self._error = error

    def settimeout(self, seconds: object) -> None: ...

    def recv(self, size: int) -> bytes:
        raise self._error


@pytest.mark.parametrize(
    ("error", "broken"),
    [
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), None),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), None),
        (TimeoutError("timed out"), "the agent of subtask 3 said nothing for 5 s"),
    ],
)
def test_a_network_that_was_cut_is_no_fault_of_ours(error: OSError, broken: Optional[str]) -> None:
    place = Place(_Cut(error), 3)  # type: ignore[arg-type]
    assert place.hear(5.0) is None and place.broken == broken
    if broken is None:
        assert place.hear(None) is None and place.broken is None
