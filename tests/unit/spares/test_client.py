"""A job asks whoever keeps warm workers for one: it gets one, or hears why not, and never waits for one that is gone or stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from akrunner.launch.process import Exit
from akrunner.spares import client, talk
from akrunner.spares.client import Handed, HandedProcess
from akrunner.spares.daemon import Listening
from akrunner.spares.wanted import Wanted
from akrunner.wire import frames

MINE = Wanted("/python", {"A": "1"}, "", (1,), {}, {})
#: no process has such a number
GONE = 2**22


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(talk, "version", lambda: "v1")
    return tmp_path / "state" / "akrunner" / "warm"


Answers = Callable[[Callable[[socket.socket, dict[str, Any]], None]], None]


@pytest.fixture
def answers() -> Iterator[Answers]:
    """Listen, and answer one connection's message."""
    listening = Listening()
    threads: list[threading.Thread] = []

    def with_(answer: Callable[[socket.socket, dict[str, Any]], None]) -> None:
        def attend() -> None:
            connection, _ = listening.socket.accept()
            with connection, contextlib.suppress(talk.TalkError):
                answer(connection, talk.hear(connection, 5)[0])

        threads.append(threading.Thread(target=attend, daemon=True))
        threads[-1].start()

    yield with_
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    listening.close()


def test_where_nobody_keeps_any_nothing_is_said(state: Path) -> None:
    assert not client.is_there() and client.take(MINE, []) == (None, "") and client.ask("status") is None
    assert client.stopped() is None and client.end() is None and not state.exists()
    client.wake()
    client.wait_for_end()


def test_the_socket_of_one_that_was_killed_is_cleared_away(state: Path) -> None:
    killed = Listening()
    killed.socket.close()
    os.close(killed._lock)
    assert client.is_there() and client.take(MINE, []) == (None, "") and not client.is_there()


def test_its_status_comes_with_its_number(answers: Answers) -> None:
    questions: list[dict[str, Any]] = []
    answers(lambda connection, asked: questions.append(asked) or talk.say(connection, {"workers": 2}))  # type: ignore[func-returns-value]
    assert client.ask("status", hurry=True) == {"workers": 2, "pid": os.getpid()}
    assert questions == [{"do": "status", "version": "v1", "hurry": True}]


def test_a_job_hears_why_there_is_none_for_it(answers: Answers) -> None:
    questions: list[dict[str, Any]] = []

    def answer(connection: socket.socket, asked: dict[str, Any]) -> None:
        questions.append(asked)
        talk.say(connection, {"heard": True})
        talk.say(connection, {"why": "its limits are others"})

    answers(answer)
    assert client.take(MINE, ["train.py"]) == (None, "its limits are others")
    assert questions[0]["names"] == ["train.py"] and Wanted.of(questions[0]["wanted"]) == MINE


@pytest.mark.parametrize(
    "said, why",
    [
        ([], "the other end has gone"),
        ([{"heard": True}], "the other end has gone"),
        ([{"heard": True}, {"pid": 0}], "not understood"),
    ],
)
def test_one_that_does_not_answer_is_named(said: list[dict[str, Any]], why: str, answers: Answers) -> None:
    def answer(connection: socket.socket, asked: dict[str, Any]) -> None:
        for one in said:
            talk.say(connection, one)

    answers(answer)
    assert client.take(MINE, []) == (
        None,
        f"the process that keeps the warm workers (akrunner warm status) does not answer: {why}",
    )


def test_a_worker_that_is_handed_over_is_the_jobs(answers: Answers) -> None:
    pipes = [os.pipe() for _ in range(3)]

    def answer(connection: socket.socket, asked: dict[str, Any]) -> None:
        talk.say(connection, {"heard": True})
        told = {"pid": GONE, "mark": "m", "began": 5, "late": ["TMPDIR"]}
        talk.say(connection, told, [pipes[0][1], pipes[1][0], pipes[2][0]])
        talk.say(connection, {"exit": dataclasses.asdict(Exit(3, None, 0, 0.5, 7))})
        assert connection.recv(1) == b"", "the job closes it when it knows"

    answers(answer)
    found, why = client.take(MINE, [])
    assert found is not None and why == "" and (found.mark, found.began, found.late) == ("m", 5.0, ["TMPDIR"])
    process = found.order({"TMPDIR": "/t", "AKRUNNER_X": "x", "A": "1"}, "/cwd", "/b.zip")
    assert process is found.process and process.pid == GONE
    frame = frames.FrameReader(pipes[0][0], frames.TO_SPARE).read()
    assert frame is not None and frame.kind == frames.ORDER
    ended = process.wait(10)
    assert ended is not None and ended.code == 3
    for fd in (*(fd for pair in pipes for fd in pair), process.input_fd, process.output_fd, process.log_fd):
        os.close(fd)


def waited_for(*said: dict[str, Any]) -> Exit:
    """How a worker ended whose keeper says this, and goes."""
    ours, theirs = socket.socketpair()
    for one in said:
        talk.say(theirs, one)
    theirs.close()
    pipes = os.pipe(), os.pipe()
    process = HandedProcess(GONE, [pipes[0][0], pipes[0][1], pipes[1][0]], ours)
    ended = process.wait(10)
    for fd in (*pipes[0], *pipes[1]):
        os.close(fd)
    assert ended is not None and ours.fileno() < 0
    return ended


def test_how_a_worker_has_ended_is_what_its_keeper_says() -> None:
    told = Exit(None, 9, 100, 0.5, 7, memory=64)
    assert waited_for({"exit": dataclasses.asdict(told)}) == told


@pytest.mark.parametrize("said", [(), ({},), ({"exit": {"code": 1}},), ({"exit": None},)])
def test_a_worker_whose_keeper_says_nothing_of_use_is_lost(said: tuple[dict[str, Any], ...]) -> None:
    ended = waited_for(*said)
    assert ended.lost.endswith("the process that had kept it warm (akrunner warm) ended before it")
    assert (ended.code, ended.signal) == (None, None)


def test_an_order_to_one_that_has_ended_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    process: Any = SimpleNamespace(input_fd=write)
    assert Handed("m", 0.0, process, []).order({}, "/cwd", "/b.zip") is process
    os.close(write)


@pytest.mark.parametrize("gives_up", ["time", "stopped"])
def test_one_without_room_is_asked_again_for_a_while(gives_up: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    answers: list[Any] = [talk.CutOffError("full"), talk.CutOffError("full"), {"workers": 2}]

    def answer(question: dict[str, Any]) -> Any:
        found = answers.pop(0) if answers else talk.CutOffError("full")
        if isinstance(found, Exception):
            raise found
        return found

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(client, "_answer", answer)
    assert client.ask("status") == {"workers": 2} and now[0] == pytest.approx(0.2)
    if gives_up == "stopped":
        monkeypatch.setattr(client, "stopped", lambda: 7)
    with pytest.raises(talk.CutOffError, match="it has too many connections"):
        client.ask("status")
    assert now[0] < 1 if gives_up == "stopped" else now[0] > 8


class Keeper:
    """A process that keeps workers, which ends by some signal. Attributes: signals: what it was sent; state: what the system says of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ends_by: int | None = None) -> None:
        self.signals: list[int] = []
        self.state, self.start, self._ends_by, self.now = psutil.STATUS_RUNNING, "1", ends_by, 0.0
        monkeypatch.setattr(talk, "keeper", lambda: (GONE, "1") if self.start == "1" else None)
        monkeypatch.setattr(talk, "clear_dead", lambda: None)
        monkeypatch.setattr(client, "started", lambda pid: self.start)
        monkeypatch.setattr(client, "is_there", lambda: self.start == "1")
        monkeypatch.setattr(client, "os", SimpleNamespace(kill=self._kill))
        monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep))
        process = SimpleNamespace(status=lambda: self.state)
        monkeypatch.setattr(client, "psutil", SimpleNamespace(**{**vars(psutil), "Process": lambda pid: process}))

    def _kill(self, pid: int, number: int) -> None:
        assert pid == GONE
        self.signals.append(number)
        if number == self._ends_by:
            self.start = ""

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    "ends_by, signals",
    [
        (signal.SIGTERM, [signal.SIGCONT, signal.SIGTERM]),
        (signal.SIGKILL, [signal.SIGCONT, signal.SIGTERM, signal.SIGKILL]),
        (signal.SIGCONT, [signal.SIGCONT]),
    ],
)
def test_one_that_does_not_answer_is_ended_politely_first(
    ends_by: int, signals: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Keeper(monkeypatch, ends_by)
    assert client.end() == GONE and keeper.signals == signals
    assert client.end() is None


def test_a_number_that_is_another_processes_now_is_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Keeper(monkeypatch)
    monkeypatch.setattr(client, "started", lambda pid: "2")
    assert client.end() == GONE and keeper.signals == []


def test_one_that_is_stopped_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Keeper(monkeypatch)
    client.wake()
    assert client.stopped() is None and keeper.signals == []
    keeper.state = psutil.STATUS_STOPPED
    assert client.stopped() == GONE
    client.wake()
    assert keeper.signals == [signal.SIGCONT]


def test_an_end_that_does_not_come_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Keeper(monkeypatch)
    client.wait_for_end()
    assert 5 <= keeper.now < 6
    keeper.start = ""
    client.wait_for_end()
    assert keeper.now < 6
