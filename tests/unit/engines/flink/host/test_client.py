"""What is sent to the cluster with each job, and what becomes of jobs whose submitter has died."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipimport import zipimporter

import pytest

from akrunner.engines.flink.host.client import Client, Submission, brings_python, java_options, write_package
from akrunner.engines.flink.host.java import NO_FLIGHT_RECORDER
from akrunner.engines.flink.rest import Address
from tests.unit.engines.flink.test_rest import answering, saying


@pytest.fixture(params=[True, False], ids=["whole", "for agents"])
def package(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = str(tmp_path / "akrunner.pyz")
    write_package(path, whole=request.param)
    return path


@pytest.mark.slow
def test_python_reads_bytecode_there(package: str) -> None:
    room = zipimporter(f"{package}/akrunner/engines/flink/taskmanager")
    assert room.get_filename("agent").endswith("agent.pyc")
    assert "def work(" in (room.get_source("agent") or ""), "traces show lines"
    assert room.get_code("agent").co_names


@pytest.mark.slow
def test_python_of_another_version_reads_text(package: str, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(package) as ours, zipfile.ZipFile(other, "w") as theirs:
        for name in ours.namelist():
            data = ours.read(name)
            theirs.writestr(name, b"\0\0\r\n" + data[4:] if name.endswith(".pyc") else data)
    room = zipimporter(f"{other}/akrunner/engines/flink/taskmanager")
    assert room.get_filename("agent").endswith("agent.py")
    assert room.get_code("agent").co_names


@pytest.mark.parametrize(
    ("body", "brings"),
    [
        (b'{"classpath": ["/opt/flink/lib/flink-dist-2.3.0.jar", "/opt/flink/lib/flink-python-2.3.0.jar"]}', False),
        (b'{"classpath": ["/opt/flink/lib/flink-dist-2.3.0.jar", "/flink-python-2.3.0.jar/other.jar"]}', True),
        (b'{"classpath": 3}', True),
        (b"<html>", True),
    ],
)
def test_a_job_brings_flinks_python_where_it_is_not_known_to_be_there(body: bytes, brings: bool) -> None:
    with answering(saying(body)) as master:
        assert brings_python(Address.of(master)) is brings


def test_a_cluster_within_the_process_has_it() -> None:
    assert not brings_python(None)


@pytest.mark.parametrize("fault", [False, True])
def test_a_job_that_is_submitted_too_late_fails_at_once(fault: bool, tmp_path: Path) -> None:
    client: Any = object.__new__(Client)
    client._jobs, client._numbers, client._over = {}, itertools.count(), None
    client._log = open(tmp_path / "flink.txt", "w+")
    client._log.write("Traceback (most recent call last)\nValueError: no Java")
    client._log.flush()
    if fault:
        client._died("flink", ValueError("a line"))
    else:
        client._listen(io.BytesIO())
    client._log.close()
    job = client.submit({"subtasks": 1})
    assert job.known.is_set() and job.ended.is_set() and job.fault is fault and job.id == ""
    assert ("own thread 'flink' failed" if fault else "the process that submits it ended: Traceback") in job.failed


@pytest.mark.parametrize("state", ["FINISHED", "FAILED", "CANCELED"])
def test_flinks_words_for_an_end_are_those_of_its_rest_service(state: str) -> None:
    client: Any = object.__new__(Client)
    job = Submission()
    client._jobs = {0: job}
    client._all_failed = lambda why: None
    client._last_words = lambda: ""
    client._listen(io.BytesIO(json.dumps({"of": 0, "state": "RUNNING"}).encode() + b"\n"))
    assert not job.ended.is_set()
    client._listen(io.BytesIO(json.dumps({"of": 0, "state": state}).encode() + b"\n"))
    assert job.ended.is_set()


def test_only_of_a_job_that_has_not_ended_more_is_asked() -> None:
    client: Any = object.__new__(Client)
    runs, ended = Submission(), Submission()
    ended.ended.set()
    client._jobs = {4: runs, 5: ended}
    said: list[Any] = []
    client._write = said.append
    for job in (runs, ended):
        client.hurry(job)
        client.cancel(job)
    assert said == [{"hurry": 4}, {"cancel": 4}]


def waiting() -> Any:
    """One whose process runs. What it is told is in `told`, and it answers what `answer` has."""
    client: Any = object.__new__(Client)
    client._jobs, client._numbers, client._over, client._began = {}, itertools.count(), None, 100.0
    client._process = SimpleNamespace(poll=lambda: None)
    client._all_failed, client._last_words = lambda why: None, lambda: ""
    client.told, client.answer = [], {}

    def write(word: Any) -> None:
        client.told.append(word)
        client._listen(io.BytesIO(json.dumps({"of": word.get("look"), **client.answer}).encode() + b"\n"))

    client._write = write
    return client


def test_it_is_idle_if_nothing_needs_it_any_more() -> None:
    client, runs, away = waiting(), Submission(), Submission(detached=True)
    assert client.idle
    client._jobs = {0: runs}
    assert not client.idle
    runs.ended.set()
    client._jobs[1] = away
    assert not client.idle, "Flink has not taken it yet"
    away.id = "j1"
    assert client.idle
    client._over = ("a thread has failed", True)
    assert not client.idle
    client._over, client._process.poll = None, lambda: 1
    assert not client.idle


def test_it_is_well_if_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("akrunner.engines.flink.host.client._WELL_SECONDS", 0.01)
    client = waiting()
    client.package = str(tmp_path / "akrunner.pyz")
    Path(client.package).write_bytes(b"")
    client._jobs[7] = Submission()
    assert not client.is_well(), "it has not answered"
    client.answer = {"failed": "/a has changed"}
    assert not client.is_well()
    client.answer = {"state": "FINISHED"}
    assert client.is_well() and client._jobs == {}
    assert client.told[-1] == {"look": 2, "since": 100.0}
    os.remove(client.package)
    assert not client.is_well(), "what jobs are given has gone"
    Path(client.package).write_bytes(b"")
    client._over = ("the process that submits it ended", False)
    assert not client.is_well()


@pytest.mark.slow
def test_errors_have_their_codes_there(package: str) -> None:
    asked = "from akrunner.codes import code_of; print(code_of(['SourceError'], 'source: there is no file x'))"
    done = subprocess.run([sys.executable, "-c", asked], env={"PYTHONPATH": package}, capture_output=True, text=True, cwd="/")
    assert done.stdout == "AK301\n", done.stderr


def test_users_options_for_java_come_behind_akrunners() -> None:
    ours = f"-Djava.io.tmpdir=/t -XX:TieredStopAtLevel=1 {NO_FLIGHT_RECORDER}"
    assert java_options("/t", {}).split() == ours.split()
    assert java_options("/t", {"JAVA_TOOL_OPTIONS": "-Xmx1g -Da=b"}) == f"{ours} -Xmx1g -Da=b"
