"""What is asked about a detached job whose cluster goes away meanwhile."""

from __future__ import annotations

import datetime
import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner import detached
from akrunner.detached import jobs
from akrunner.engines.flink.host.engine import FlinkEngine
from akrunner.errors import ClusterError, ConfigError, JobManagerLostError
from tests.unit.engines.flink.host.test_rest import answering, saying

JOB = {"jid": "abc", "name": "akrunner a.py [12]", "start-time": 1, "duration": 1, "tasks": {"total": 2, "running": 2}}


def known(state: str, **other: Any) -> bytes:
    return json.dumps({"jobs": [{**JOB, "state": state, **other}]}).encode()


def test_a_cluster_that_goes_while_it_is_waited_for_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_GONE_SECONDS", 0.1)
    answers = [known("RUNNING"), known("RUNNING")]

    def answer(connection: socket.socket) -> None:
        if answers:
            saying(answers.pop())(connection)

    with answering(answer) as master:
        with pytest.raises(JobManagerLostError, match=f"the JobManager at {master} is gone: no Flink cluster answers"):
            detached.wait(master, "ab", 0.02)
        assert not answers
        # it never was there: an argument is wrong
        with pytest.raises(ClusterError):
            detached.wait(master, "ab", 0.02)


def test_a_job_that_another_cluster_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_GONE_SECONDS", 0.1)
    first = [known("RUNNING")]
    with answering(lambda connection: saying(first.pop() if first else b'{"jobs": []}')(connection)) as master:
        with pytest.raises(JobManagerLostError, match="one that does not know the job answers in its place"):
            detached.wait(master, "abc", 0.02)
        with pytest.raises(ConfigError, match="no id begins so"):
            detached.wait(master, "abc", 0.02)


def test_a_moment_without_an_answer_is_waited_through() -> None:
    answers = [saying(known("FINISHED")), lambda connection: None, saying(known("RUNNING"))]
    with answering(lambda connection: answers.pop()(connection)) as master:
        assert detached.wait(master, "abc", 0.02).state == "FINISHED"


def test_a_job_that_was_seen_is_not_called_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_GONE_SECONDS", 0.0)
    seen = detached.Status("abc", "akrunner a.py [12]", "RUNNING", 1.0, 2, 2)
    with answering(lambda connection: None) as master:
        with pytest.raises(JobManagerLostError, match=f"the JobManager at {master} is gone"):
            detached.wait(master, seen, 0.02)
        with pytest.raises(JobManagerLostError, match=f"the JobManager at {master} is gone"):
            list(detached.logs(master, seen, True))


def test_a_taskmanager_that_has_no_answer_for_now_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_FOLLOW_SECONDS", 0.0)
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
    assert said[2].startswith("akrunner: the log of TaskManager t cannot be read: ") and "500 Internal" in said[2]


def test_lines_are_told_once_also_behind_an_answer_that_was_cut_off() -> None:
    told = jobs._Told("m ")
    whole = ["x", "m 1", "x", "m 2", "m 3"]
    assert list(told.further(whole[:4])) == ["1", "2"] and list(told.further(whole[:2])) == []
    assert list(told.further(whole)) == ["3"] and list(told.further([])) == [] and list(told.further(whole)) == []
    assert list(told.further(["y", "m 4", "m 5", "m 6", "m 7"])) == ["4", "5", "6", "7"]


def test_a_log_that_is_begun_anew_is_read_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_FOLLOW_SECONDS", 0.0)
    logs = [b"x akrunner[12] one\nx akrunner[12] two\n", b"y\n", b"y\nx akrunner[12] three\n"]
    states = [known("RUNNING"), known("RUNNING"), known("FINISHED")]
    heard: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        asked = heard[-1].split()[1]
        found = b'{"taskmanagers": [{"id": "t"}]}' if b"jobs" not in asked else b""
        saying(logs.pop(0) if asked.endswith(b"/log") else found or states.pop(0))(connection)

    with answering(answer, heard) as master:
        assert list(detached.logs(master, "abc", True)) == ["one", "two", "three"]


def test_defaults_go_along_as_numbers_and_texts(tmp_path: Path) -> None:
    job: Any = SimpleNamespace(python="python3")
    given = {"age": 0, "day": "2026-11-23"}
    assert jobs._arguments(job, {"defaults": given}, str(tmp_path))["defaults"] == given
    with pytest.raises(ConfigError, match="defaults: of a detached job they are numbers and texts"):
        jobs._arguments(job, {"defaults": {"day": datetime.date(2026, 11, 23)}}, str(tmp_path))


def test_a_directory_for_bad_rows_is_refused() -> None:
    engine = FlinkEngine(master="localhost:1")
    with pytest.raises(ConfigError, match="bad_rows .*a directory of this machine; give skip or fail"):
        jobs.submit("s.py", "s3://bucket/t.csv", engine=engine, bad_rows="bad/")
