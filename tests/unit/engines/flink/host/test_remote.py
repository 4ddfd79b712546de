"""A task's process beside its agent: how it is started, what is known of it from its agent's words, and how it ends."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akrunner.engines.feeder import Given
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.connections import exactly
from akrunner.engines.flink.host import remote as remote_module
from akrunner.engines.flink.host.remote import RemoteProcess
from akrunner.engines.flink.host.subtask import BadWord, RemoteSubtask
from akrunner.errors import DataError
from akrunner.wire import frames

STARTED = pb.Said(started=pb.Started(pid=77))


class Agent:
    """The agent's ends of the connections of a task that has started."""

    def __init__(self, tmp_path: Path, *said: pb.Said) -> None:
        self.place = RemoteSubtask(3)
        self.place.address = "10.0.0.2:7"
        self.ours: dict[int, socket.socket] = {}
        theirs: dict[int, socket.socket] = {}
        for kind in (pb.Opening.IN, pb.Opening.OUT):
            theirs[kind], self.ours[kind] = socket.socketpair()
            self.ours[kind].settimeout(10)
            self.place.channel(kind).put(theirs[kind])
        self.package = tmp_path / "package.tar"
        self.package.write_bytes(b"the files")
        for word in said or (STARTED,):
            self.place._heed(word)
        self._fds: list[int] = []

    def process(self, order: pb.Order | None = None) -> RemoteProcess:
        made = RemoteProcess(self.place, str(self.package), order or pb.Order(streaming=True), 10.0)
        self._fds.append(made.log_fd)
        return made

    def told(self) -> list[pb.Told]:
        """What is on its way to the agent."""
        self.place._out.put(None)
        return list(self.place.told())

    def close(self) -> None:
        self.place.lost()
        self.place.close()
        for connection in self.ours.values():
            connection.close()
        for fd in self._fds:
            os.close(fd)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.close()


def ended(connection: socket.socket) -> bool:
    return connection.recv(1) == b""


def test_a_process_is_started_with_its_order_and_its_files(agent: Agent) -> None:
    process = agent.process()
    assert process.pid == 77 and process.exit is None and agent.place.process is process
    (word,) = agent.told()
    assert word.order.streaming
    assert exactly(agent.ours[pb.Opening.IN], 17) == (9).to_bytes(8, "little") + b"the files"


def test_rows_go_both_ways(agent: Agent) -> None:
    process = agent.process()
    exactly(agent.ours[pb.Opening.IN], 17)
    writer, reader = process.writer(), process.reader(frames.FROM_WORKER, None)
    writer.write(frames.DATA, b"rows", 1)
    assert exactly(agent.ours[pb.Opening.IN], frames.HEADER.size + 4)[frames.HEADER.size :] == b"rows"
    agent.ours[pb.Opening.OUT].sendall(frames.HEADER.pack(frames.CLOSED, 0, 0, 0, 2) + b"{}")
    frame = reader.read()
    assert frame is not None and (frame.kind, frame.payload) == (frames.CLOSED, b"{}")
    process.over()
    assert writer.fd >= 0 and reader.fd >= 0, "who has taken a connection closes it"
    writer.close()
    reader.close()


@pytest.mark.parametrize(
    ("order", "with_rows", "may"),
    [
        (pb.Order(), False, False),
        (pb.Order(), True, False),
        (pb.Order(output=pb.Output()), False, False),
        (pb.Order(output=pb.Output()), True, True),
        (pb.Order(output=pb.Output(part="/out/a")), False, True),
    ],
)
def test_only_an_agent_that_passes_rows_on_may_say_so(order: pb.Order, with_rows: bool, may: bool, agent: Agent) -> None:
    agent.place.with_rows = with_rows
    reader = agent.process(order).reader(frames.FROM_WORKER, None)
    body = b'{"rows": 9, "bytes": 9}'
    agent.ours[pb.Opening.OUT].sendall(frames.HEADER.pack(frames.PASSED, 0, 0, 0, len(body)) + body)
    if may:
        frame = reader.read()
        assert frame is not None and frame.payload == body
    else:
        with pytest.raises(frames.WireError, match="a passed frame does not go this way"):
            reader.read()
    reader.close()


def test_an_agent_that_cannot_start_it_is_quoted(tmp_path: Path) -> None:
    agent = Agent(tmp_path, pb.Said(failed=pb.Failed(words="cannot start /py on m: No such file")))
    with pytest.raises(OSError, match=r"^cannot start /py on m: No such file$"):
        agent.process()
    assert ended_after(agent.ours[pb.Opening.IN], 17) and agent.place.process is None
    agent.close()


def test_an_agent_without_room_is_quoted_although_it_hangs_up_first(tmp_path: Path) -> None:
    agent = Agent(
        tmp_path, pb.Said(failed=pb.Failed(words="/tmp/x on m has no room for the 8,388,608 bytes of the job's files"))
    )
    with open(agent.package, "wb") as package:
        package.truncate(8 << 20)
    agent.ours.pop(pb.Opening.IN).close()
    with pytest.raises(OSError, match=r"^/tmp/x on m has no room for the 8,388,608 bytes of the job's files$"):
        agent.process()
    agent.close()


def test_one_that_hangs_up_without_a_word_is_the_systems_own_error(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "_WHY_SECONDS", 0.0)
    agent.place.heard(0.0)
    agent.ours.pop(pb.Opening.IN).close()
    with pytest.raises(BrokenPipeError):
        agent.process()
    assert agent.place.broken is None


def ended_after(connection: socket.socket, size: int) -> bool:
    exactly(connection, size)
    return ended(connection)


def test_a_subtask_that_goes_meanwhile_is_said(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.place.answer(0.0)
    agent.place.gone.set()
    with pytest.raises(OSError, match="the subtask at 10.0.0.2:7 has gone"):
        agent.process()
    agent.close()


def test_nothing_stays_open_of_one_that_has_no_files(agent: Agent) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    agent.package.unlink()
    with pytest.raises(FileNotFoundError):
        agent.process()
    if before:
        assert len(os.listdir("/proc/self/fd")) == before - 1, "its pipe, and the connection it had"
    assert ended(agent.ours[pb.Opening.IN])


# -- what is known of it


def test_a_sample_is_what_the_agent_has_measured(agent: Agent) -> None:
    process = agent.process()
    assert (process.sampled_rss, process.sampled_cpu, process.tree_cpu()) == (0, 0.0, 0.0)
    process.take(pb.Said(sample=pb.Sample(rss=1 << 40, cpu=1.5, tree=2.5, memory=1 << 39)))
    process.sample()
    assert (process.sampled_rss, process.sampled_cpu, process.tree_cpu(), process.unread()) == (1 << 40, 1.5, 2.5, 0)
    assert process.sampled_memory == 1 << 39


def test_rows_that_do_not_come_through_the_host_are_counted(agent: Agent) -> None:
    process = agent.process()
    assert process.given == Given()
    process.take(pb.Said(given=pb.Given(rows=3, dropped=1, bytes=50, finished=True)))
    assert process.given == Given(3, 1, 50, True)
    process.take(pb.Said(refused=pb.Refused(reason=pb.VALUE, words="row 4, column 'a': is null")))
    assert process.given.rows == 3 and isinstance(process.given.error, DataError)
    assert "row 4, column 'a': is null" in str(process.given.error)


def test_what_it_prints_is_passed_on_until_its_last_word(agent: Agent) -> None:
    process = agent.process()
    process.take(pb.Said(log=pb.Log(data=b"one\n")))
    process.take(pb.Said(log=pb.Log(data="zwei ü\n".encode(), last=True)))
    process.take(pb.Said(log=pb.Log(data=b"too late")))
    with open(os.dup(process.log_fd), "rb") as log:
        assert log.read() == "one\nzwei ü\n".encode()


def test_a_log_that_nobody_reads_is_no_error(agent: Agent) -> None:
    process = agent.process()
    os.close(process.log_fd)
    agent._fds.clear()
    process.take(pb.Said(log=pb.Log(data=b"one\n")))
    assert agent.place.broken is None


# -- its end


@pytest.mark.parametrize(
    ("told", "code", "signal"), [({"code": 0}, 0, None), ({"code": 3}, 3, None), ({"signal": 9}, None, 9), ({}, None, None)]
)
def test_how_it_ended_is_known_from_its_agent(agent: Agent, told: dict[str, int], code: int | None, signal: int | None) -> None:
    process = agent.process()
    assert process.wait(0.0) is None
    process.take(pb.Said(exit=pb.Exit(**told, peak_rss=5, cpu_seconds=1.5, time_ns=9, memory=7, out_of_memory=True)))
    how = process.wait(None)
    assert how is not None and (how.memory, how.out_of_memory) == (7, True)
    assert how is not None and (how.code, how.signal, how.peak_rss, how.cpu_seconds, how.time_ns, how.lost) == (
        code,
        signal,
        5,
        1.5,
        9,
        "",
    )
    process.over()
    assert process.exit is how
    exactly(agent.ours[pb.Opening.IN], 17)
    assert ended(agent.ours[pb.Opening.IN]) and ended(agent.ours[pb.Opening.OUT])


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (None, "lost: the TaskManager on 10.0.0.2, or its Python worker, has gone"),
        ("no heartbeat", "lost: the TaskManager on 10.0.0.2, or its Python worker, has gone; Flink says: no heartbeat"),
    ],
)
def test_one_whose_machine_is_lost_says_what_flink_says(agent: Agent, why: str | None, words: str) -> None:
    agent.place.why = lambda: why
    process = agent.process()
    process.take(pb.Said(sample=pb.Sample(rss=7, cpu=2.0)))
    agent.place.lost()
    assert process.exit is not None
    assert (process.exit.lost, process.exit.code, process.exit.peak_rss, process.exit.cpu_seconds) == (words, None, 7, 2.0)


def test_one_whose_agent_broke_is_lost_without_flinks_words(agent: Agent) -> None:
    agent.place.why = lambda: "not asked"
    process = agent.process()
    agent.place.broken = "its traceback"
    agent.place.lost()
    assert process.exit is not None and process.exit.lost == "lost: nobody listens to it any more"


def test_a_word_without_sense_is_the_agents_fault(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    process = agent.process()

    def raises(error: Exception) -> Any:
        def take(word: Any) -> None:
            raise error

        return take

    monkeypatch.setattr(process, "_take", raises(OverflowError("too large")))
    with pytest.raises(BadWord, match=r"OverflowError\('too large'\) in sample"):
        process.take(pb.Said(sample=pb.Sample(rss=1)))
    assert agent.place.broken is None
    monkeypatch.setattr(process, "_take", raises(AttributeError("no such thing")))
    process.take(pb.Said(sample=pb.Sample(rss=1)))
    assert agent.place.broken is not None and "akrunner's own thread 'subtask' failed" in agent.place.broken


def test_signals_go_to_the_process_or_to_all_it_has_started(agent: Agent) -> None:
    process = agent.process()
    process.signal(10)
    process.terminate()
    process.kill()
    hung_up: list[bool] = []
    agent.place.hang_up = lambda: hung_up.append(True)
    process.abandon()
    words = agent.told()[1:]
    assert [word.WhichOneof("word") for word in words] == ["signal", "group", "group"]
    assert words[0].signal == 10 and [word.group for word in words[1:]] == [pb.TERMINATE, pb.KILL]
    assert hung_up == [True]
