"""A subtask as its host sees it: what is told and answered, what a broken agent does to it, and the connections it opens."""

from __future__ import annotations

import queue
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.host import subtask
from akrunner.engines.flink.host.subtask import RemoteSubtask
from akrunner.errors import ConfigError, PythonEnvError, StartError

SETTLED = pb.Settled(address="10.0.0.2:7", folder="/tmp/f", machine="m", cores=4, reads_files=True, writes_output=True)


class Clock:
    """In place of `time`: whoever asks for the time waits five seconds by that."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        self.now += 5.0
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(subtask, "time", made)
    monkeypatch.setattr(subtask, "_TICK", 0.001)
    return made


class Noted:
    """A task that notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def take(self, word: Any) -> None:
        self.heard.append(word.WhichOneof("word"))

    def over(self) -> None:
        self.heard.append("nothing more")


def told(place: RemoteSubtask) -> list[pb.Told]:
    """What is on its way to the agent, after the place is closed."""
    place.close()
    return list(place.told())


def test_a_task_is_announced_and_its_place_is_known_from_the_answer() -> None:
    place = RemoteSubtask(2)
    assert place.idle.is_set()
    place.ask("/py", "0.0.0.0", None, [("/data/a", 10), ("/data/b", 0)], "/out", pb.Store(scheme="s3"))
    assert not place.idle.is_set()
    place.listen(iter([pb.Said(settled=SETTLED)]))
    place.settle()
    assert (place.address, place.folder, place.machine, place.cores) == ("10.0.0.2:7", "/tmp/f", "m", 4)
    assert place.reads_files and place.writes_output
    word = next(place.told())
    assert (word.ask.python, word.ask.bind_host, word.ask.advertised_host) == ("/py", "0.0.0.0", "")
    assert [(file.path, file.bytes) for file in word.ask.files] == [("/data/a", 10), ("/data/b", 0)]
    assert word.ask.HasField("output") and word.ask.output == "/out" and word.ask.store.scheme == "s3"


def test_a_task_that_writes_nothing_itself_asks_for_no_directory() -> None:
    place = RemoteSubtask()
    place.ask("/py", "127.0.0.1", "node-1")
    (word,) = told(place)
    assert not word.ask.HasField("output") and word.ask.advertised_host == "node-1"


def test_a_machine_that_knows_no_cores_has_one() -> None:
    place = RemoteSubtask()
    place.listen(iter([pb.Said(settled=pb.Settled(address="h:1", unread="/a is not there"))]))
    place.settle()
    assert place.cores == 1 and not place.reads_files and not place.writes_output and place.unread == "/a is not there"


@pytest.mark.parametrize(
    ("reason", "error"), [(pb.INTERPRETER, PythonEnvError), (pb.ADDRESS, ConfigError), (pb.SYSTEM, ConfigError)]
)
def test_why_a_task_cannot_run_there_is_said_in_the_machines_words(reason: int, error: type[Exception]) -> None:
    place = RemoteSubtask()
    place.listen(iter([pb.Said(failed=pb.Failed(reason=reason, words="no such interpreter (on m)"))]))
    with pytest.raises(error, match=r"^no such interpreter \(on m\)$") as caught:
        place.settle()
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("python", "seconds"), [("/opt/python", 30), ("/envs/a.tar.gz", 900), ("https://host/a.zip#bin/python", 900)]
)
def test_a_packed_environment_has_time_to_be_unpacked(python: str, seconds: int, clock: Clock) -> None:
    place = RemoteSubtask(3)
    place.ask(python, "127.0.0.1", None)
    began = clock.now
    with pytest.raises(StartError, match=f"the agent of subtask 3 said nothing for {seconds} s"):
        place.settle()
    assert seconds <= clock.now - began <= seconds + 15
    assert place.gone.is_set(), "it is not asked again"


def test_an_answer_of_an_earlier_task_is_none_of_the_next() -> None:
    place = RemoteSubtask()
    place.ask("/py", "127.0.0.1", None)
    for word in (pb.Said(failed=pb.Failed(words="no room")), pb.Said(over=pb.Nothing())):
        place._heed(word)
    place.ask("/py", "127.0.0.1", None)
    place._heed(pb.Said(settled=SETTLED))
    place.settle()
    assert place.machine == "m"


def test_who_is_only_asked_may_be_silent(clock: Clock) -> None:
    place = RemoteSubtask(3)
    assert place.heard(1.0) is None and place.broken is None and not place.silent
    assert place.answer(1.0) is None and place.broken == "the agent of subtask 3 said nothing for 1 s"
    assert place.silent and not place.fault


def test_every_message_has_its_reader() -> None:
    place, task = RemoteSubtask(), Noted()
    place.heeds(task)
    words = [
        pb.Said(sample=pb.Sample()),
        pb.Said(log=pb.Log()),
        pb.Said(exit=pb.Exit()),
        pb.Said(over=pb.Nothing()),
        pb.Said(log=pb.Log()),
    ]
    place.listen(iter(words))
    assert task.heard == ["sample", "log", "exit", "nothing more"], "none after the task is over"
    assert place.broken is None


def test_a_task_hears_once_that_nothing_more_comes() -> None:
    place, task = RemoteSubtask(), Noted()
    place.heeds(task)
    place.lost()
    place.lost()
    assert task.heard == ["nothing more"]


def test_a_place_is_idle_again_when_its_task_is_over() -> None:
    place = RemoteSubtask()
    place.ask("/py", "127.0.0.1", None)
    one, other = socket.socketpair()
    other.settimeout(10)
    place.channel(pb.Opening.IN).put(one)
    place._heed(pb.Said(over=pb.Nothing()))
    assert place.idle.is_set() and not place.gone.is_set()
    with other:
        assert other.recv(1) == b"", "what nobody has taken is closed"


@pytest.mark.parametrize("busy", [True, False])
def test_only_a_task_that_runs_is_ended(busy: bool) -> None:
    place = RemoteSubtask()
    if busy:
        place.idle.clear()
    place.end()
    assert [word.WhichOneof("word") for word in told(place)] == ["end"] * busy


def test_an_agent_that_is_gone_is_told_nothing() -> None:
    place = RemoteSubtask()
    hung_up: list[bool] = []
    place.hang_up = lambda: hung_up.append(True)
    place.tell(signal=2)
    place.lost()
    place.tell(signal=9)
    assert [word.signal for word in place.told()] == [2] and hung_up == [True]
    assert place.gone.is_set() and place.idle.is_set()


@pytest.mark.parametrize(
    ("word", "words"),
    [
        (pb.Said(), "the agent of subtask 5 broke the protocol: it said what this version does not know"),
        (pb.Said(register=pb.Register()), "the agent of subtask 5 broke the protocol: it said register"),
        (pb.Said(broken="its traceback"), "its traceback"),
    ],
)
def test_a_broken_agent_is_heard_no_more(word: pb.Said, words: str) -> None:
    place, task = RemoteSubtask(5), Noted()
    place.heeds(task)
    place.listen(iter([word, pb.Said(sample=pb.Sample())]))
    assert place.broken == words and place.gone.is_set() and not place.silent
    assert place.fault is (word.WhichOneof("word") == "broken"), "only such a word has a traceback of akrunner's"
    assert task.heard == ["nothing more"]


def test_sixteen_answers_may_wait() -> None:
    place = RemoteSubtask(4)
    place.listen(iter([pb.Said(started=pb.Started(pid=pid)) for pid in range(16)]))
    assert place.broken is None
    assert [place.answer().started.pid for _ in range(16)] == list(range(16))
    assert place.answer(0.0) is None and place.broken is None, "it is gone"


def test_a_thread_of_this_end_that_has_died_is_the_reason() -> None:
    place = RemoteSubtask()
    place.died("place", ValueError("no such row"))
    place.died("place", ValueError("another"))
    assert place.broken == "akrunner's own thread 'place' failed:\nValueError: no such row" and place.gone.is_set()
    assert place.fault
    with pytest.raises(StartError, match="no such row"):
        place.settle()


def test_a_stream_that_was_cut_is_no_fault() -> None:
    def cut() -> Iterator[pb.Said]:
        yield pb.Said(settled=SETTLED)
        raise RuntimeError("a stream's own error")

    place = RemoteSubtask()
    place.listen(cut())
    assert place.gone.is_set() and place.broken is None and place.answer().settled.machine == "m"


# -- connections


def test_a_connection_is_found_by_its_kind() -> None:
    place = RemoteSubtask()
    one, other = socket.socketpair()
    with one, other:
        place.channel(pb.Opening.OUT).put(one)
        place.channel(pb.Opening.IN).put(other)
        assert place.opened(pb.Opening.IN, 30) is other and place.opened(pb.Opening.OUT, 30) is one
        with pytest.raises(queue.Empty):
            place.channel(pb.Opening.IN).get_nowait()


def test_a_connection_that_does_not_come_is_waited_for_so_long(clock: Clock) -> None:
    place = RemoteSubtask()
    place.address = "10.0.0.2:7"
    began = clock.now
    with pytest.raises(OSError, match="the subtask at 10.0.0.2:7 does not answer"):
        place.opened(pb.Opening.IN, 20)
    assert 20 <= clock.now - began <= 35 and not place.gone.is_set()


@pytest.mark.parametrize(
    ("why", "words"),
    [("gone", "the subtask at 10.0.0.2:7 has gone"), ("broken", "its traceback"), ("hub", "the server's traceback")],
)
def test_a_connection_that_cannot_come_is_not_waited_for(why: str, words: str, clock: Clock) -> None:
    place = RemoteSubtask()
    place.address = "10.0.0.2:7"
    if why == "gone":
        place.lost()
    elif why == "broken":
        place.broken = "its traceback"
    else:
        place.control_broken = lambda: "the server's traceback"
    with pytest.raises(OSError, match=words):
        place.opened(pb.Opening.IN, 500)


def test_abandoning_hangs_up_at_once_and_closing_says_all_first() -> None:
    done: list[str] = []
    place = RemoteSubtask()
    place.hang_up = lambda: done.append("hung up")
    place.tell(leave=pb.Leave(error="enough"))
    assert [word.leave.error for word in told(place)] == ["enough"] and done == []
    place.abandon()
    assert done == ["hung up"]
