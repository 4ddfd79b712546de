"""Agents that say what they should not, and what fails at either end: a control server and an agent in one process, over real connections."""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import socket
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink import threads
from akrunner.engines.flink.connections import opened
from akrunner.engines.flink.host import control_server
from akrunner.engines.flink.host.acceptor import Acceptor
from akrunner.engines.flink.host.client import Client, Submission
from akrunner.engines.flink.host.control_server import ControlServer
from akrunner.engines.flink.host.issue import issued
from akrunner.engines.flink.host.remote import RemoteProcess
from akrunner.engines.flink.host.subtask import BadWord, RemoteSubtask
from akrunner.engines.flink.host.subtasks import Subtasks
from akrunner.engines.flink.keys import Door
from akrunner.engines.flink.schemas import schema_bytes
from akrunner.engines.flink.taskmanager import agent
from akrunner.engines.flink.taskmanager.feed import Feed
from akrunner.engines.flink.taskmanager.line import Line
from akrunner.errors import JobCancelledError, JobError, StartError
from akrunner.wire import frames

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

    def hurry(self, job: Submission) -> None:
        pass

    def close(self) -> None:
        pass


@contextlib.contextmanager
def subtasks_of_one(tls: bool = True) -> Iterator[tuple[Subtasks, Nobody]]:
    nobody = Nobody()
    made = Subtasks(nobody, "127.0.0.1", 1, {}, issued(tls))
    try:
        yield made, nobody
    finally:
        made.close()


def door_of(nobody: Nobody) -> Door:
    return Door.of(nobody.order["door"])


@pytest.mark.parametrize("tls", [True, False])
@pytest.mark.parametrize(
    "word",
    [
        pb.Said(), pb.Said(register=pb.Register()), pb.Said(exit=pb.Exit(code=1, time_ns=-1, peak_rss=1)), pb.Said(broken="it says"),
        pb.Said(log=pb.Log(data=b"x" * (5 << 20))),
    ],
)  # fmt: skip
def test_an_agent_that_breaks_the_protocol_fails_the_job(word: Any, tls: bool, tmp_path: Path) -> None:
    package = tmp_path / "package.tar"
    package.write_bytes(b"")
    with subtasks_of_one(tls) as (made, nobody), Line(door_of(nobody), agent="p") as line:
        (place,) = made.come(10)
        with opened(door_of(nobody), "p", pb.Opening.IN), opened(door_of(nobody), "p", pb.Opening.OUT):
            line.say(started=pb.Started(pid=1))
            process = RemoteProcess(place, str(package), pb.Order(), 10)
            line._out.put(word)
            assert process.wait(60) is not None
            closed(process)
            if word.WhichOneof("word") == "exit":
                assert process.exit.code == 1 and process.exit.signal is None  # type: ignore[union-attr]
            elif word.WhichOneof("word") == "log":
                # gRPC's own bound: the stream is cut
                assert place.gone.wait(60)
            else:
                assert ("it says" if word.broken else "the agent of subtask 0 broke the protocol") in until_it_is_told(made)


def test_answers_nobody_has_asked_for_are_bounded() -> None:
    place = RemoteSubtask(4)
    place.listen(iter([pb.Said(started=pb.Started(pid=1))] * 20))
    assert place.broken is not None and "the agent of subtask 4 broke the protocol: it says started without end" in place.broken
    assert place.gone.is_set()


def test_what_a_task_says_that_makes_no_sense_is_the_agents() -> None:
    class Picky:
        def take(self, word: Any) -> None:
            raise BadWord("no such row")

        def over(self) -> None:
            self.ended = True

    place, task = RemoteSubtask(1), Picky()
    place.heeds(task)
    place.listen(iter([pb.Said(given=pb.Given(rows=-1))]))
    assert task.ended and place.broken == "the agent of subtask 1 broke the protocol: no such row"


def test_the_control_servers_own_thread_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Acceptor) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr(Acceptor, "_accept", fails)
    with subtasks_of_one() as (made, nobody):
        door = door_of(nobody)
        # somebody comes: nobody accepts any more
        socket.create_connection((door.host, door.rows)).close()
        with pytest.raises(JobError, match="akrunner's own thread 'control' failed:\n(.|\n)*AttributeError: no such thing"):
            made.come(30)
        with pytest.raises(JobError, match="akrunner's own thread 'control' failed"):
            made.wait_for_first()


def test_a_job_cancelled_by_somebody_else_is_cancelled() -> None:
    with subtasks_of_one() as (made, _):
        made.submitted.id, made.submitted.state = "abc", "CANCELLING"
        with pytest.raises(JobCancelledError, match="the Flink job abc was cancelled"):
            made.come(30)


def test_subtasks_whose_job_was_cancelled_are_not_kept_for_another() -> None:
    with subtasks_of_one() as (made, nobody), Line(door_of(nobody), agent="p"):
        made.come(10)
        made.submitted.state = "RUNNING"
        assert made.can_be_used()
        made.submitted.state = "CANCELLING"
        assert not made.can_be_used()
        made.submitted.ended.set()


def test_who_is_missing_is_named() -> None:
    nobody = Nobody()
    for fed, words in ((0, "missing: 0, 2, 3;"), (2, "missing: 0, 1, 0 of those without rows;")):
        made = Subtasks(nobody, "127.0.0.1", 4, {}, issued(), with_rows=fed)
        try:
            with Line(door_of(nobody), agent="p", subtask=1):
                with pytest.raises(
                    StartError, match=f"1 of 4 subtasks came within 0.5 s (.*){words} the Flink job is being submitted"
                ):
                    made.come(0.5)
        finally:
            made.close()


def test_one_of_an_attempt_of_before_is_sent_away() -> None:
    nobody = Nobody()
    made = Subtasks(nobody, "127.0.0.1", 2, {}, issued())
    try:
        with Line(door_of(nobody), agent="old", attempt=0) as old, Line(door_of(nobody), agent="new", attempt=1):
            with pytest.raises(StartError, match="1 of 2"):
                made.come(1.0)
            assert [place.attempt for place in made.remotes] == [1]
            with pytest.raises(agent.HostGone):
                old.hear()
    finally:
        made.close()


class Beside:
    """An agent in a thread of this process, and the task's process it starts. Attributes: ended: what the agent raised."""

    def __init__(self, made: Subtasks, nobody: Nobody, folder: Path, given: Any = None) -> None:
        self._made = made
        self._folder = folder
        self.ended: queue.Queue[Any] = queue.Queue()
        self._thread = threading.Thread(target=self._run, args=(door_of(nobody), given), name="beside", daemon=True)
        self._thread.start()

    def _run(self, door: Door, given: Any) -> None:
        try:
            self.ended.put(agent.work(door, given))
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
        return RemoteProcess(place, str(package), pb.Order(threads=1, directories=["tmp"], **order), 20)

    def join(self) -> Any:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.ended.get_nowait()


def closed(process: RemoteProcess) -> None:
    process._in.close()
    process._out.close()
    os.close(process.log_fd)


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
    "out": "pump_out", "log": "_read", "in": "pump_in", "close-out": "_close_out", "close-in": "_close_in",
}  # fmt: skip


@pytest.mark.slow
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
        # told of it before it has everything, it has no process
        process = None
        with contextlib.suppress(OSError):
            process = beside.start()
        if kind.startswith("close") and process is not None:
            process.kill()
        told = until_it_is_told(made)
        if process is not None:
            closed(process)
        # it ends by itself: the task's process and directory go
        assert isinstance(beside.join(), (agent.HostGone, AttributeError, OSError))
    assert (
        f"akrunner's own thread {kind!r} beside the task" in told
        and "Traceback" in told
        and "AttributeError: no such thing" in told
    )


FED = {"in": "_forward", "rows": "_feed", "out": "pass_on"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FED)
def test_no_thread_between_flink_and_a_task_does_either(
    kind: str, monkeypatch: pytest.MonkeyPatch, leaves_nothing: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(Feed, FED[kind], fails_in(kind, getattr(Feed, FED[kind])))
    schema = schema_bytes(pa.schema([("a", pa.int64())]))
    order = {"streaming": True, "data_format": "columns", "chunk_rows": 10, "chunk_bytes": 1000}
    with subtasks_of_one() as (made, nobody):
        given = Feed()
        beside = Beside(made, nobody, tmp_path, given)
        given._started.set()
        process = None
        with contextlib.suppress(OSError):
            process = beside.start(output=pb.Output(schema=schema, rows=schema), **order)
        told = until_it_is_told(made)
        if process is not None:
            closed(process)
        assert isinstance(beside.join(), agent.HostGone)
    assert f"akrunner's own thread '{kind}'" in told and "AttributeError: no such thing" in told


@pytest.mark.slow
@pytest.mark.parametrize("tls", [True, False])
def test_a_task_comes_and_goes(tls: bool, leaves_nothing: Path, tmp_path: Path) -> None:
    with subtasks_of_one(tls) as (made, nobody):
        beside = Beside(made, nobody, tmp_path)
        process = beside.start()
        writer, reader = process.writer(), process.reader(frames.EITHER_WAY, None)
        long = [memoryview(bytes([number]) * size) for number, size in enumerate((10, 100_000, 3, 5_000_000))]
        for payload in (b"there and back", long):
            writer.write(frames.DATA, payload, 1)
            frame = reader.read()
            assert frame is not None and frame.payload == b"".join(payload if payload is long else [payload])
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
        assert made.remotes[0].idle.is_set() and not made.remotes[0].gone.is_set()
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
            place.tell(order=pb.Order(threads=1))
            with place.opened(pb.Opening.IN, 20) as data:
                data.sendall(sent.to_bytes(8, "little") + b"0123456789")
                said = place.answer(20)
                assert said is not None and words in said.failed.words
            made.leave("enough")
            place.abandon()
            assert isinstance(beside.join(), (agent.JobFailed, agent.HostGone))


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


def test_a_place_that_never_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    place = RemoteSubtask(3)
    monkeypatch.setattr(place, "_patience", 0.2)
    with pytest.raises(StartError, match="the agent of subtask 3 said nothing for 0.2 s"):
        place.settle()
    lost = RemoteSubtask()
    lost.lost()
    with pytest.raises(StartError, match="a subtask has gone before its task was there"):
        lost.settle()


def test_a_network_that_was_cut_is_no_fault_of_ours() -> None:
    def cut() -> Iterator[Any]:
        yield pb.Said(sample=pb.Sample())
        raise grpc.RpcError("keepalive watchdog timeout")

    place = RemoteSubtask(3)
    place.listen(cut())
    assert place.gone.is_set() and place.broken is None


def test_a_control_server_names_its_port_and_gives_it_back() -> None:
    keys, port = issued(), two_free_ports()
    for _ in range(2):
        server = ControlServer("127.0.0.1", keys.host, port)
        assert server.door("127.0.0.1", keys.agents).port == port
        server.close()
        assert server.arrived.empty() and not server.acceptor.thread.is_alive()


def two_free_ports() -> int:
    """A port that is free, as is the next one; no program gets it that asks for any port."""
    for port in range(20_000 + 2 * (os.getpid() % 2_000), 30_000, 2):
        with contextlib.suppress(OSError), socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 1))
            return port
    raise AssertionError("no two ports are free")


def test_strangers_leave_files_to_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, agents, most in (
        (256, 18, 16), (1024, 18, 366), (1024, 216, 168), (1024, 416, 16), (1 << 20, 216, 1024), (resource.RLIM_INFINITY, 18, 1024),
    ):  # fmt: skip
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert control_server._strangers(agents) == most
        if 16 < most < 1024:
            assert agents + most + control_server.STRANGERS == limit // 2, "also before the first agent has come"
