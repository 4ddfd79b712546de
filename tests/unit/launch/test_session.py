"""The host's side of one worker: what it sends, which frames it takes in which order, and what becomes of a broken conversation."""

from __future__ import annotations

import os
import queue
import time
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from akrunner.errors import ProtocolError
from akrunner.launch import events as said
from akrunner.launch import session
from akrunner.launch.pipes import Pipes
from akrunner.launch.session import TaskSession
from akrunner.spec import TaskSpec
from akrunner.wire import PROTOCOL_VERSION, frames, tables

CONTEXT: dict[str, Any] = {"script": {"real": "/x/train.py", "module": ""}}
HELLO = {"version": PROTOCOL_VERSION, "pid": 7, "python": "3.8.1", "executable": "/venv/bin/python"}


class Log:
    """Stands for the reader of a task's log."""

    error: BaseException | None = None

    def join(self, seconds: float) -> None: ...


class Worker:
    """Stands for a worker process: its ends of the pipes, in this process. Args: agent: whether an agent reads before the host what
    it writes."""

    def __init__(self, agent: bool) -> None:
        self.pipes, self.abandoned, self.ended, self._agent = Pipes(), False, None, agent
        self.reads = frames.FrameReader(self.pipes.far[0], frames.TO_WORKER)
        self.writes = frames.FrameWriter(self.pipes.far[1])

    def writer(self) -> frames.FrameWriter:
        return frames.FrameWriter(self.pipes.near[0])

    def reader(self, kinds: Mapping[int, int], most: frames.Most | None) -> frames.FrameReader:
        return frames.FrameReader(self.pipes.near[1], frames.FROM_AGENT if self._agent else kinds, most)

    def abandon(self) -> None:
        self.abandoned = True

    def says(self, kind: int, body: dict[str, Any] | None = None, count: int = 0) -> None:
        self.writes.write_json(kind, {} if body is None else body, count)

    def hears(self) -> frames.Frame:
        frame = self.reads.read()
        assert frame is not None
        return frame


class Talk:
    """One session and its worker."""

    def __init__(
        self, context: Mapping[str, Any], asked: Callable[[frames.FrameWriter], Any] | None, room: int, agent: bool
    ) -> None:
        self.worker = Worker(agent)
        self.events: queue.Queue[said.Event] = queue.Queue(room)
        process: Any = self.worker
        log: Any = Log()
        self.session = TaskSession(TaskSpec("worker", 1), process, log, context, self.events, asked)

    def event(self) -> said.Event:
        return self.events.get(timeout=5)

    def greeted(self) -> None:
        self.worker.says(frames.HELLO, HELLO)
        assert self.session.wait_until_greeted(5) and self.worker.hears().json() == CONTEXT

    def broken(self, words: str) -> None:
        """The conversation has ended so."""
        event = self.event()
        assert isinstance(event, said.Broken) and str(event.error) == words and isinstance(self.event(), said.Ended)


Made = Callable[..., Talk]


@pytest.fixture
def made() -> Iterator[Made]:
    talks: list[Talk] = []

    def make(
        context: Mapping[str, Any] = CONTEXT,
        asked: Callable[[frames.FrameWriter], Any] | None = None,
        room: int = session.EVENTS,
        agent: bool = False,
    ) -> Talk:
        talks.append(Talk(context, asked, room, agent))
        return talks[-1]

    yield make
    for talk in talks:
        talk.worker.reads.close(), talk.worker.writes.close()
        talk.session.close(time.monotonic() + 5)
        assert not talk.session._thread.is_alive()
        for fd in (talk.worker.pipes.near[2], talk.worker.pipes.far[2]):
            os.close(fd)


@pytest.fixture
def talk(made: Made) -> Talk:
    one = made()
    one.greeted()
    return one


def body_of(kind: int) -> dict[str, Any]:
    """What such a frame holds at the least."""
    bodies: dict[int, dict[str, Any]] = {frames.CLOSED: {"ok": True}, frames.LEFT: {"notes": []}}
    return bodies.get(kind, {})


def test_the_context_comes_after_hello(made: Made) -> None:
    talk = made()
    assert talk.session.hello == {} and not talk.session.wait_until_greeted(0)
    assert talk.session.script == "/x/train.py"
    talk.greeted()
    assert talk.session.hello == HELLO and talk.session.error is None


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        (frames.OPENED, {}, "the worker process began with opened, not hello"),
        (
            frames.HELLO,
            {**HELLO, "version": 1},
            f"the worker speaks version 1 of the protocol, this host {PROTOCOL_VERSION}",
        ),
        (frames.HELLO, {}, f"the worker speaks version None of the protocol, this host {PROTOCOL_VERSION}"),
    ],
)
def test_a_worker_of_another_kind_is_not_greeted(made: Made, kind: int, body: dict[str, Any], words: str) -> None:
    talk = made()
    talk.worker.says(kind, body)
    talk.broken(words)
    assert not talk.session.wait_until_greeted(0)


def test_a_worker_that_ends_before_it_says_anything(made: Made) -> None:
    talk = made()
    talk.worker.writes.close()
    assert talk.event() == said.Ended(TaskSpec("worker", 1))


def test_a_worker_that_ends_while_it_is_greeted(made: Made) -> None:
    talk = made()
    talk.worker.reads.close()
    talk.worker.says(frames.HELLO, HELLO)
    talk.worker.writes.close()
    assert isinstance(talk.event(), said.Ended) and not talk.session.wait_until_greeted(0)
    assert not talk.worker.abandoned


def test_rows_and_their_end_go_to_the_worker(talk: Talk) -> None:
    talk.session.send_rows([b"ab", b"c"], 2)
    talk.session.send_rows([b"d"], 1, memoryview(b"\1"))
    talk.session.end_of_rows(10, [3, 7], [(1, 2), (3, 4)])
    talk.session.start()
    talk.session.stream_rows([b"e"], 4)
    talk.session.stop()
    heard = [talk.worker.hears() for _ in range(7)]
    assert [(one.kind, one.count) for one in heard] == [
        (frames.DATA, 2), (frames.MARKS, 1), (frames.DATA, 1), (frames.END, 0), (frames.START, 0), (frames.ROWS, 4), (frames.STOP, 0),
    ]  # fmt: skip
    assert bytes(heard[0].payload) == b"abc" and bytes(heard[1].payload) == b"\1"
    assert heard[3].json() == {"rows": 3, "total_rows": 10, "shares": [3, 7], "splits": [[1, 2], [3, 4]]}
    assert talk.session.rows_sent == 7
    talk.session.was_given(100, 2000)
    assert talk.session.rows_sent == 100 and talk.session.writer.bytes == 2000


def test_a_worker_that_has_gone_can_be_stopped_but_gets_no_rows(talk: Talk) -> None:
    talk.worker.reads.close()
    talk.session.stop()
    with pytest.raises(OSError):
        talk.session.send_rows([b"a"], 1)
    assert talk.session.rows_sent == 0


def test_frames_of_a_task_become_events(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.messages, "read", lambda frame: frame.json())
    order = [
        frames.OPENED,
        frames.REPORT,
        frames.REFUSED,
        frames.READY,
        frames.ENTERED,
        frames.SERVING,
    ]
    for kind in order:
        talk.worker.says(kind, {"a": kind})
    talk.worker.writes.write(frames.EXAMPLES, b"rows", 3)
    talk.worker.says(frames.CLOSED, {"ok": True})
    talk.worker.says(frames.LEFT, {"notes": ["a thread runs on"]})
    talk.worker.says(frames.REPORT, {"late": 1})
    for kind in order:
        event = talk.event()
        assert event == session._EVENTS[kind](TaskSpec("worker", 1), {"a": kind})
    output = talk.event()
    assert isinstance(output, said.Output) and (output.frame.count, bytes(output.frame.payload)) == (3, b"rows")
    assert isinstance(talk.event(), said.Closed)
    assert talk.event() == said.Report(TaskSpec("worker", 1), {"late": 1}), "what is left is no event"
    assert talk.session.left == ["a thread runs on"]


@pytest.mark.parametrize("early", [False, True])
def test_an_agent_may_say_that_rows_went_elsewhere(early: bool, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.messages, "read", lambda frame: frame.json())
    talk = made(agent=True)
    talk.greeted()
    if early:
        talk.worker.says(frames.PASSED)
        talk.broken("it said passed before entered")
        return
    for kind in (frames.OPENED, frames.READY, frames.ENTERED, frames.PASSED, frames.PASSED):
        talk.worker.says(kind, {"rows": 1})
    assert [talk.event() for _ in range(5)][3:] == [said.Passed(TaskSpec("worker", 1), {"rows": 1})] * 2  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ([frames.READY], "it said ready before opened"),
        ([frames.OPENED, frames.ENTERED], "it said entered before ready"),
        ([frames.OPENED, frames.READY, frames.SERVING], "it said serving before entered"),
        ([frames.OPENED, frames.EXAMPLES], "it said examples before entered"),
        ([frames.OPENED, frames.COLUMNS], "it said columns before entered"),
        ([frames.LEFT], "it said left before closed"),
        ([frames.OPENED, frames.OPENED], "it said opened after opened"),
        ([frames.OPENED, frames.CLOSED], "it was done before it had entered main()"),
        ([frames.OPENED, frames.READY, frames.ENTERED, frames.CLOSED, frames.CLOSED], "it said closed after closed"),
        ([frames.OPENED, frames.READY, frames.ENTERED, frames.CLOSED, frames.LEFT, frames.LEFT], "it said left after closed"),
        ([frames.HELLO], "a worker process does not send hello"),
        ([frames.ANSWERED], "it said answered before entered"),
        ([frames.LOOK_TABLE], "it said look table, and the job has no tables"),
        ([frames.START], "a start frame does not go this way"),
        # or a script could make up how many rows it has written
        ([frames.OPENED, frames.READY, frames.ENTERED, frames.PASSED], "a passed frame does not go this way"),
    ],
)
def test_a_task_that_does_not_keep_to_the_order_is_broken(
    talk: Talk, kinds: list[int], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.messages, "read", lambda frame: frame.json())
    for kind in kinds:
        if kind in (frames.EXAMPLES, frames.COLUMNS, frames.ANSWERED):
            talk.worker.writes.write(kind, b"", 1 if kind != frames.ANSWERED else 0)
        else:
            talk.worker.says(kind, body_of(kind))
    for _ in kinds[:-1]:
        event = talk.event()
        if isinstance(event, said.Closed):
            break
    talk.broken(words)


def test_a_failure_may_come_before_main_was_entered(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.messages, "read", lambda frame: frame.json())
    talk.worker.says(frames.CLOSED, {"ok": False})
    assert isinstance(talk.event(), said.Closed)


def test_bytes_that_are_no_frame_break_the_conversation(talk: Talk) -> None:
    os.write(talk.worker.pipes.far[1], b"x" * frames.HEADER.size)
    talk.broken(f"not a frame: {'78' * frames.HEADER.size}")


def test_a_body_that_makes_no_sense_breaks_the_conversation(talk: Talk) -> None:
    talk.worker.says(frames.CLOSED, {"ok": "maybe"})
    event = talk.event()
    assert isinstance(event, said.Broken) and isinstance(event.error, (frames.WireError, ProtocolError))


def test_a_broken_connection_is_an_end_and_nobody_waits_for_the_exit(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks() -> frames.Frame:
        raise ConnectionResetError("reset by peer")

    monkeypatch.setattr(session.messages, "read", lambda frame: frame.json())
    monkeypatch.setattr(talk.session._reader, "read", breaks)
    # what is being read already comes yet
    talk.worker.says(frames.REFUSED)
    assert [type(talk.event()) for _ in range(2)] == [said.Refused, said.Ended]
    assert talk.worker.abandoned and talk.session.error is None


def test_an_error_of_the_hosts_own_is_kept(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(frame: frames.Frame) -> dict[str, Any]:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(session.messages, "read", fails)
    talk.worker.says(frames.OPENED)
    talk.session._thread.join(60)
    assert isinstance(talk.session.error, ZeroDivisionError) and talk.events.empty()


def test_an_error_of_the_log_counts(talk: Talk) -> None:
    error = OSError("no room for the log")
    talk.session.log.error = error
    assert talk.session.error is error


class Answers:
    """Stands for what answers questions about tables."""

    def __init__(self, writer: frames.FrameWriter) -> None:
        self.writer, self.taken = writer, queue.Queue[int]()

    def take(self, frame: frames.Frame) -> None:
        self.taken.put(frame.kind)


def test_questions_about_tables_are_taken_while_the_task_runs(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.messages, "read", lambda frame: frame.json())
    talk = made(asked=Answers)
    talk.greeted()
    answers: Any = talk.session.tables
    assert answers.writer is talk.session.writer
    for kind in (frames.OPENED, frames.READY, frames.ENTERED):
        talk.worker.says(kind)
    talk.worker.says(frames.LOOK_TABLE)
    assert answers.taken.get(timeout=5) == frames.LOOK_TABLE
    talk.worker.says(frames.CLOSED, {"ok": True})
    talk.worker.says(frames.LOOK_TABLE)
    talk.worker.says(frames.REPORT)
    assert [type(talk.event()) for _ in range(5)][-1] == said.Report and answers.taken.empty(), (
        "nobody answers a task that has closed"
    )


def test_questions_before_the_task_has_opened_break_the_conversation(made: Made) -> None:
    talk = made(asked=Answers)
    talk.greeted()
    talk.worker.says(frames.LOOK_TABLE)
    talk.broken("it said look table before opened")


def test_a_queue_that_nobody_reads_does_not_hold_the_session_up(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.messages, "read", lambda frame: frame.json())
    talk = made(room=1)
    talk.greeted()
    for _ in range(5):
        talk.worker.says(frames.REPORT)
    talk.session.deafen()
    talk.worker.writes.close()
    talk.session._thread.join(60)
    assert not talk.session._thread.is_alive() and talk.events.qsize() <= 1
    talk.session.post(said.Ended(talk.session.task))
    talk.session.close(time.monotonic() + 2)
    assert talk.session.writer.fd == -1 == talk.session._reader.fd


@pytest.mark.parametrize(
    ("columns", "module", "kind", "count", "most"),
    [
        ([], "", frames.EXAMPLES, 1, frames.MOST_BYTES),
        ([], "", frames.EXAMPLES, 2, 64 << 20),
        ([{"name": "abc"}, {"name": "d"}], "", frames.COLUMNS, 2, (64 << 20) + 2 * 1024 + 6 * 4),
        ([], "predict", frames.COLUMNS, 2, frames.MOST_BYTES),
        ([], "", frames.ADD_ROWS, 1, frames.FROM_WORKER[frames.ADD_ROWS]),
        ([], "", frames.ADD_ROWS, 2, tables.MOST_BYTES + (64 << 20)),
        ([], "", frames.REPORT, 2, frames.FROM_WORKER[frames.REPORT]),
    ],
)
def test_how_many_bytes_a_frame_may_have(columns: list[Any], module: str, kind: int, count: int, most: int) -> None:
    context = {"output_schema": columns, "script": {"real": "/x", "module": module}}
    assert session._most(context)(kind, count) == most


def test_all_processes_have_the_time_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 4.0, 20.0])
    waited: list[float] = []

    class Process:
        def __init__(self, ends: bool) -> None:
            self.ends = ends

        def wait(self, seconds: float) -> object:
            waited.append(seconds)
            return 0 if self.ends else None

    class Session:
        def __init__(self, ends: bool) -> None:
            self.process = Process(ends)

    monkeypatch.setattr(session.time, "monotonic", lambda: next(clock))
    sessions: Any = [Session(True), Session(False), Session(False)]
    assert session.wait_for_exits(sessions, 10) == sessions[1:]
    assert waited == [9.0, 6.0, 0.0]


def test_all_sessions_close_in_the_time_together_also_if_one_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.time, "monotonic", lambda: 5.0)
    closed: list[float] = []

    def fails(until: float) -> None:
        raise ZeroDivisionError

    log = types.SimpleNamespace(ended=lambda: closed.append("log"))
    made: list[Any] = [types.SimpleNamespace(close=close, log=log) for close in (closed.append, fails, closed.append)]
    with pytest.raises(ZeroDivisionError):
        session.close_all(made, 2.0)
    assert closed == ["log", "log", "log", 7.0, 7.0], "all logs are read to their end, whoever is waited for first"
