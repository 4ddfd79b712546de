"""The process that keeps warm workers for others: one of a user listens, and what it answers. (Its pool and its workers are stand-ins.)"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.launch.process import Exit
from akrunner.spares import daemon, talk
from akrunner.spares.daemon import AlreadyKept, Daemon, Listening
from akrunner.spares.wanted import Wanted
from akrunner.wire.ending import started

MINE = Wanted("/python", {"A": "1"}, "", (1, 2), {}, {})
ENDED = Exit(3, None, 100, 0.5, 7)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the socket is."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(talk, "version", lambda: "v1")
    return tmp_path / "state" / "akrunner" / "warm"


class Process:
    """A worker. Attributes: killed: how often; waits: what waiting for it gives, one after the other."""

    def __init__(self, *waits: Exit | None) -> None:
        self.pid, self.killed, self.exit = 2**22, 0, None
        self.waits = list(waits)

    def kill(self) -> None:
        self.killed += 1

    def wait(self, seconds: float | None) -> Exit | None:
        self.exit = self.waits.pop(0)  # type: ignore[assignment]
        return self.exit


class Spare:
    """Attributes: theirs: ends of its pipes that this process keeps."""

    def __init__(self) -> None:
        self.process, self.mark, self.began, self.late = Process(), "m", 5.0, ["TMPDIR"]
        pipes = [os.pipe() for _ in range(3)]
        self._handed, self.theirs = [read for read, _ in pipes], [write for _, write in pipes]

    def hand_over(self) -> list[int]:
        return self._handed


class Pool:
    """Attributes: done: what was asked of it."""

    def __init__(self, spare: Spare | None = None, why: str = "") -> None:
        self.done: list[Any] = []
        self._spare, self._why = spare, why

    def note(self, wanted: Wanted) -> str:
        self.done.append(("note", wanted))
        return "of another kind"

    def take(self, wanted: Wanted, names: list[str], noted: str) -> tuple[Spare | None, str]:
        assert noted == "of another kind"
        self.done.append(("take", wanted, names))
        return self._spare, self._why

    def hurry(self) -> None:
        self.done.append("hurry")

    def close(self) -> None:
        self.done.append("close")

    def status(self) -> dict[str, Any]:
        return {"workers": 2}


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    job, kept = socket.socketpair()
    with job, kept:
        yield job, kept


def made(pool: Pool, done: list[str] | None = None) -> Daemon:
    listening: Any = SimpleNamespace(hide=lambda: pool.done.append("hide"))
    return Daemon(listening, pool, {"workers": 2})  # type: ignore[arg-type]


def test_one_of_a_user_listens(place: Path) -> None:
    one = Listening()
    assert (place / talk.name()).stat().st_mode & 0o777 == 0o700
    assert talk.keeper() == (os.getpid(), started(os.getpid()))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as job, talk.place() as path:
        job.connect(path)
        one.socket.accept()[0].close()
    one.close()
    assert [path.name for path in place.iterdir()] == [f"{talk.name()}.lock"]
    Listening().close()


def held(folder: Path) -> int:
    """How many descriptors of this process, whose other threads open some of their own, lead to a directory or into it."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{number}").startswith(str(folder))
    return found


def test_another_one_is_told_so_when_its_patience_ends(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Listening()
    clock = iter([0.0, 1.0, 3.0])
    slept: list[float] = []
    monkeypatch.setattr(daemon, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=slept.append))
    before, sockets = held(place), []

    class Noted(socket.socket):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            # other threads of this process make sockets of their own meanwhile
            if self.family == socket.AF_UNIX:
                sockets.append(self)

    monkeypatch.setattr(socket, "socket", Noted)
    with socket.create_server(("127.0.0.1", 0)) as others, socket.create_connection(others.getsockname()):
        others.accept()[0].close()
    with pytest.raises(AlreadyKept):
        Listening()
    assert len(slept) == 1 and held(place) == before and [one.fileno() for one in sockets] == [-1]
    assert (place / talk.name()).exists(), "the other still listens"
    one.close()


def test_one_that_lets_go_meanwhile_is_followed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Listening()
    monkeypatch.setattr(daemon, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda seconds: one.close()))
    other = Listening()
    assert (place / talk.name()).exists()
    other.close()


def test_a_socket_of_one_that_was_killed_is_in_nobodys_way(place: Path) -> None:
    place.mkdir(parents=True)
    (place / talk.name()).touch()
    Listening().close()


def test_one_that_hides_is_found_no_more_and_keeps_its_lock(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Listening()
    one.hide()
    one.hide()
    assert not (place / talk.name()).exists()
    monkeypatch.setattr(daemon, "_LETS_GO", -1.0)
    with pytest.raises(AlreadyKept):
        Listening()
    one.close()


def test_without_a_place_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    with pytest.raises(FileNotFoundError, match="XDG_STATE_HOME must name one that can be written"):
        Listening()


def test_its_status_is_the_pools_and_its_own(pair: Any) -> None:
    job, kept = pair
    pool = Pool()
    talk.say(job, {"do": "status"})
    assert made(pool)._answered(kept) is None
    told, _ = talk.hear(job, 1)
    assert told.pop("since") > 0
    assert told == {"workers": 2, "jobs": 0, "version": "v1", "options": {"workers": 2}} and pool.done == []
    talk.say(job, {"do": "status", "hurry": True})
    made(pool)._answered(kept)
    assert pool.done == ["hurry"]


def test_it_stops_when_it_is_told_and_is_found_no_more_before_it_answers(pair: Any) -> None:
    job, kept = pair
    pool = Pool()
    talk.say(job, {"do": "stop"})
    stops = made(pool)
    stops._answered(kept)
    assert pool.done == ["hide", "close"] and stops._stopping.is_set() and talk.hear(job, 1)[0]["workers"] == 2


def test_what_nobody_understands_is_not_answered(pair: Any) -> None:
    job, kept = pair
    pool = Pool()
    talk.say(job, {"do": "dance"})
    assert made(pool)._answered(kept) is None
    for wanted in (None, {}, {**dataclasses.asdict(MINE), "env": {"A": 1}}):
        talk.say(job, {"do": "take", "version": "v1", "wanted": wanted, "names": []})
        with pytest.raises(talk.TalkError, match="not understood"):
            made(pool)._answered(kept)
        assert talk.hear(job, 1)[0] == {"heard": True}
    assert pool.done == []
    job.close()
    with pytest.raises(talk.TalkError):
        made(pool)._answered(kept)


def ask(job: socket.socket, version: str = "v1") -> None:
    talk.say(job, {"do": "take", "version": version, "wanted": dataclasses.asdict(MINE), "names": ["train.py"]})


@pytest.mark.parametrize(
    "version, why, said",
    [
        ("v1", "its limits are others", "its limits are others"),
        ("v1", "", "none was ready"),
        ("v2", "", "they are another version's of akrunner"),
    ],
)
def test_a_job_that_gets_none_is_told_why(version: str, why: str, said: str, pair: Any) -> None:
    job, kept = pair
    pool = Pool(None, why)
    ask(job, version)
    assert made(pool)._answered(kept) is None
    assert talk.hear(job, 1)[0] == {"heard": True} and talk.hear(job, 1)[0]["why"].startswith(said)
    assert pool.done == ([("note", MINE), ("take", MINE, ["train.py"])] if version == "v1" else [])


def test_a_worker_goes_to_the_job_with_its_pipes(pair: Any) -> None:
    job, kept = pair
    spare = Spare()
    hands = made(Pool(spare))
    ask(job)
    assert hands._answered(kept) is spare and hands.status()["jobs"] == 1
    assert talk.hear(job, 1)[0] == {"heard": True}
    told, pipes = talk.hear(job, 1, taking=True)
    assert told == {"pid": 2**22, "mark": "m", "began": 5.0, "late": ["TMPDIR"]} and len(pipes) == 3
    os.write(spare.theirs[0], b"x")
    assert os.read(pipes[0], 9) == b"x"
    for fd in pipes:
        os.close(fd)
    with pytest.raises(BrokenPipeError):
        os.write(spare.theirs[0], b"this process has closed its own")
    for fd in spare.theirs:
        os.close(fd)


def test_a_worker_for_a_job_that_has_gone_is_ended(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job, kept = pair
    spare = Spare()
    hands = made(Pool(spare))
    ask(job)
    real = talk.say

    def say(connection: socket.socket, body: dict[str, Any], descriptors: Any = ()) -> None:
        if descriptors:
            raise talk.TalkError("gone")
        real(connection, body)

    monkeypatch.setattr(talk, "say", say)
    with pytest.raises(talk.TalkError):
        hands._answered(kept)
    assert spare.process.killed == 1 and hands.status()["jobs"] == 0
    for fd in spare.theirs:
        with pytest.raises(BrokenPipeError):
            os.write(fd, b"x")
        os.close(fd)


def test_how_a_worker_has_ended_is_told(pair: Any) -> None:
    job, kept = pair
    tells = made(Pool())
    tells._jobs.append(2**22)
    tells._relay(kept, Process(None, None, ENDED))  # type: ignore[arg-type]
    assert Exit(**talk.hear(job, 1)[0]["exit"]) == ENDED and tells._jobs == []


def test_a_worker_whose_job_has_gone_is_ended(pair: Any) -> None:
    job, kept = pair
    job.close()
    tells, process = made(Pool()), Process(None, ENDED, ENDED)
    tells._jobs.append(2**22)
    with pytest.raises(talk.TalkError):
        tells._relay(kept, process)  # type: ignore[arg-type]
    assert process.killed == 1 and tells._jobs == []


def test_who_says_nothing_makes_room(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job, kept = pair
    now = [100.0]
    monkeypatch.setattr(daemon, "time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: 0.0))
    full = made(Pool())
    other, theirs = socket.socketpair()
    with other, theirs:
        full._silent = {kept: 98.0, theirs: 99.5}

        class Room:
            turns = 0

            def acquire(self, timeout: float) -> bool:
                Room.turns += 1
                now[0] += 0.1
                return Room.turns > 1

        full._room = Room()  # type: ignore[assignment]
        assert full._has_room() and job.recv(1) == b""
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.recv(1)
        Room.turns = -1000
        assert not full._has_room() and other.recv(1) == b"", "nobody's room is waited for for ever"
