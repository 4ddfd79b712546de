"""Which lines of the TaskManagers' logs are told, whatever becomes of an answer, of a log or of a cluster."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from akrunner import detached
from akrunner.detached import jobs, lines
from akrunner.engines.flink.rest import Rest
from akrunner.errors import JobManagerLostError
from tests.unit.detached.test_jobs import known
from tests.unit.engines.flink.test_rest import answering, saying

Answer = Callable[[socket.socket], None]
UNAVAILABLE = saying(b"", "503 Service Unavailable")
OVERVIEW = saying(b'{"slots-available": 3}')


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_FOLLOW_SECONDS", 0.0)
    monkeypatch.setattr(lines, "_BEHIND_SECONDS", 0.0)
    monkeypatch.setattr(Rest, "log_seconds", lambda self: 0.0)


def broken(body: bytes, missing: int = 10) -> Answer:
    """An answer that ends before its end."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body) + missing}\r\n\r\n".encode()
    return lambda connection: connection.sendall(head + body)


def silent(connection: socket.socket) -> None:
    """Nothing is said until who asks has gone."""
    while connection.recv(1 << 16):
        pass


@contextlib.contextmanager
def cluster(logs: list[Answer], states: list[str | Answer], overview: Answer = OVERVIEW) -> Iterator[str]:
    """A cluster with one TaskManager, t, and one job, abc.

    Args:
        logs: the answers to requests of the log, in order.
        states: the job's state, or answers, to requests of the jobs, in order; the last one is for all further ones.
        overview: the answer to what the cluster has.
    Yields: its address.
    """
    heard: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        asked = heard[-1].split()[1]
        if asked.endswith(b"/log"):
            logs.pop(0)(connection)
        elif asked == b"/overview":
            overview(connection)
        elif asked.startswith(b"/jobs"):
            state = states.pop(0) if len(states) > 1 else states[0]
            (saying(known(state)) if isinstance(state, str) else state)(connection)
        else:
            saying(b'{"taskmanagers": [{"id": "t"}]}')(connection)

    with answering(answer, heard) as master:
        yield master


def log(*numbers: int, end: str = "\n") -> bytes:
    """A log with these lines of the job's, and one of another's before them."""
    return ("12:00 begins\n" + "\n".join(f"12:01 akrunner[12] line {number}" for number in numbers) + end).encode()


def told(logs: list[Answer], states: list[str | Answer]) -> list[str]:
    """Returns: what is told of the job to who follows it."""
    with cluster(logs, states) as master:
        said = list(detached.logs(master, "abc", True))
    assert not logs
    return said


def test_a_taskmanager_that_has_no_answer_for_now_is_asked_again() -> None:
    logs = [
        saying(b"x akrunner[12] one\n"), saying(b"", "500 Internal Server Error"),
        saying(b"x akrunner[12] one\nx akrunner[12] two\n"), saying(b"", "500 Internal Server Error"),
    ]  # fmt: skip
    states = [known("RUNNING"), known("RUNNING"), known("RUNNING"), known("FINISHED")]

    heard: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        asked = heard[-1].split()[1]
        if asked.endswith(b"/log"):
            logs.pop(0)(connection)
        else:
            saying(states.pop(0) if b"jobs" in asked else b'{"taskmanagers": [{"id": "t"}]}')(connection)

    with answering(answer, heard) as master:
        said = list(detached.logs(master, "abc", True))
    assert said[:2] == ["one", "two"] and len(said) == 3
    assert said[2].startswith("akrunner: the log of TaskManager t cannot be read to its end: ") and "500 Internal" in said[2]


def test_lines_are_told_once_also_behind_an_answer_that_was_cut_off() -> None:
    assert told(
        [saying(log(1, 2)), broken(log(1)), broken(log(1, 2, 3, end="")), broken(b"12:00 beg"), saying(log(1, 2, 3, 4))],
        [*["RUNNING"] * 4, "FINISHED"],
    ) == ["line 1", "line 2", "line 3", "line 4"]


def test_a_line_is_told_when_it_has_its_end() -> None:
    assert told(
        [
            saying(b"12:00 beg"),
            saying(log(1, end="")),
            saying(log(1, 2, end="")),
            saying(log(1, 23)),
            saying(log(1, 23, 4, end="")),
        ],
        [*["RUNNING"] * 4, "FINISHED"],
    ) == ["line 1", "line 23", "line 4"]


def test_of_a_log_that_was_cut_off_at_last_it_is_said() -> None:
    (said, words) = told([broken(log(1, 2, end=""))], ["FINISHED"])
    assert said == "line 1"
    assert (
        words.startswith("akrunner: the log of TaskManager t cannot be read to its end: ") and "10 bytes are missing" in words
    )


def test_an_older_copy_of_a_log_tells_nothing_twice() -> None:
    # another of the cluster's JobManagers, or a proxy that says of no answer how long it is
    logs = [log(1, 2, 3), log(1), log(1, 2, 3), log(1, 2, 3, 4)]
    assert told([saying(one) for one in logs], ["RUNNING", "RUNNING", "RUNNING", "FINISHED"]) == [
        f"line {n}" for n in (1, 2, 3, 4)
    ]


def test_the_last_lines_are_told_also_if_flink_has_a_copy_of_the_log_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(lines, "_FOLLOW_SECONDS", 0.0)
    heard: list[bytes] = []
    copied: list[float] = []

    def answer(connection: socket.socket) -> None:
        asked = heard[-1].split()[1]
        if asked.endswith(b"/log"):
            # a copy is given for 0.3 s; the job has printed its last line since the first was made
            if not copied or time.monotonic() > copied[-1] + 0.3:
                copied.append(time.monotonic())
            saying(log(1) if len(copied) == 1 else log(1, 2))(connection)
        elif asked == b"/config":
            saying(b'{"refresh-interval": 300}')(connection)
        elif asked.startswith(b"/jobs"):
            saying(known("FINISHED" if copied else "RUNNING"))(connection)
        else:
            saying(b'{"taskmanagers": [{"id": "t"}]}')(connection)

    with answering(answer, heard) as master:
        assert list(detached.logs(master, "abc", True)) == ["line 1", "line 2"]


def test_a_log_that_is_begun_anew_may_have_the_same_first_line() -> None:
    assert told([saying(log(1, 2, 3)), saying(log(4, 5)), saying(log(4, 5, 6))], ["RUNNING", "RUNNING", "FINISHED"]) == [
        "line 1", "line 2", "line 3", "line 4", "line 5", "line 6",
    ]  # fmt: skip


def test_a_log_without_a_whole_line_yet_is_none_that_was_begun_anew() -> None:
    seen = lines._Told("m ")
    whole = ["x", "m 1", "x", "m 2", "m 3"]
    assert list(seen.further(whole[:4])) == ["1", "2"]
    assert list(seen.further([])) == [] and list(seen.further(whole)) == ["3"]
    assert list(seen.further(whole)) == []
    assert list(seen.further(["y", "m 4", "m 5", "m 6", "m 7"])) == ["4", "5", "6", "7"]


def test_a_log_that_is_begun_anew_is_read_from_its_beginning() -> None:
    logs = [b"x akrunner[12] one\nx akrunner[12] two\n", b"y\n", b"y\nx akrunner[12] three\n"]
    states = [known("RUNNING"), known("RUNNING"), known("FINISHED")]
    heard: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        asked = heard[-1].split()[1]
        found = b'{"taskmanagers": [{"id": "t"}]}' if b"jobs" not in asked else b""
        saying(logs.pop(0) if asked.endswith(b"/log") else found or states.pop(0))(connection)

    with answering(answer, heard) as master:
        assert list(detached.logs(master, "abc", True)) == ["one", "two", "three"]


def test_a_slow_log_of_a_cluster_that_answers_is_not_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_GONE_SECONDS", 0.0)
    monkeypatch.setattr(lines, "Rest", lambda master: Rest(master, 0.5))
    said = told([saying(log(1)), silent, saying(log(1, 2)), silent], [*["RUNNING"] * 3, "FINISHED"])
    assert said == ["line 1", "line 2", "akrunner: the log of TaskManager t cannot be read to its end: no answer within 0.5 s"]


def test_a_moment_without_an_answer_about_the_job_is_waited_through() -> None:
    unauthorized = saying(b"", "401 Unauthorized")
    states: list[str | Answer] = ["RUNNING", UNAVAILABLE, unauthorized, lambda connection: None, "FINISHED"]
    assert told([saying(log(*range(1, number))) for number in range(2, 7)], states) == [f"line {n}" for n in range(1, 6)]


@pytest.mark.slow
def test_a_jobmanager_that_is_gone_or_refuses_ends_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_GONE_SECONDS", 0.1)
    with cluster([saying(log(1))] * 10_000, ["RUNNING", UNAVAILABLE]) as master:
        rows = detached.logs(master, "abc", True)
        assert next(rows) == "line 1"
        with pytest.raises(JobManagerLostError, match=f"the JobManager at {master} no longer tells of the job: .* answers 503"):
            list(rows)
    # another one, which has the machines of the first
    unknown = saying(b'{"jobs": []}')
    with cluster([saying(log(1))] * 10_000, ["RUNNING", unknown]) as master:
        with pytest.raises(JobManagerLostError, match="is gone: one that does not know the job answers in its place"):
            list(detached.logs(master, "abc", True))
    monkeypatch.setattr(jobs, "_GONE_SECONDS", 0.0)
    seen = detached.Status("abc", "akrunner a.py [12]", "RUNNING", 1.0, 2, 2)
    with answering(lambda connection: None) as master:
        with pytest.raises(JobManagerLostError, match=f"the JobManager at {master} is gone: no Flink cluster answers"):
            list(detached.logs(master, seen, True))
