"""Flink's engine without Flink: its agents in processes of their own, and a REST service that says what the test wants. No Java."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

import akrunner
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import watch
from akrunner.engines.flink.host.client import Submission
from tests.conftest import Script
from tests.unit.engines.flink.test_rest import answering, saying

pytestmark = pytest.mark.slow

AGENT = """
import json, sys
from akrunner.engines.flink.taskmanager import agent
from akrunner.engines.flink.keys import Door
try:
    agent.work(Door.of(json.loads(sys.stdin.readline())), job="abc")
except (agent.HostGone, agent.JobFailed, OSError) as e:
    print("the agent has ended:", type(e).__name__, e, file=sys.stderr)
"""
WAITS = """
    import os, time

    def main(task_config):
        open(os.path.join(task_config.user_params["notes"], task_config.task_type), "w").close()
        time.sleep(100)
    """
DOUBLES = """
    def main(task_config):
        for batch in task_config.batches(2):
            task_config.output_writer.write_batch({"a": batch["a"] * 2})
    """


class Machines:
    """In place of what submits: an agent in a process of its own for each subtask. Attributes: state: Flink's word; submitted: how often."""

    def __init__(self) -> None:
        self.state = "RUNNING"
        self.submitted = 0
        self.agents: list[subprocess.Popen[bytes]] = []

    def submit(self, order: Mapping[str, Any]) -> Submission:
        self.submitted += 1
        job = self.job = Submission()
        job.id = "abc"
        for _ in range(order["subtasks"]):
            agent = subprocess.Popen([sys.executable, "-c", AGENT], stdin=subprocess.PIPE)
            self.agents.append(agent)
            assert agent.stdin is not None
            with agent.stdin as told:
                told.write(json.dumps(order["door"]).encode() + b"\n")
        self._ending = threading.Thread(target=self._until_ended, args=(job,))
        self._ending.start()
        return job

    def _until_ended(self, job: Submission) -> None:
        for one in self.agents:
            one.wait()
        job.ended.set()

    def cancel(self, job: Submission) -> None:
        job.ended.set()

    def hurry(self, job: Submission) -> None:
        pass

    def kill(self) -> None:
        for one in self.agents:
            one.kill()

    def close(self) -> None:
        self._ending.join(60)

    def answer(self, connection: socket.socket) -> None:
        saying(f'{{"slots-available": 9, "flink-version": "2.3.0", "status": "{self.state}"}}'.encode())(connection)


@pytest.fixture
def machines(leaves_nothing: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    made = Machines()
    monkeypatch.setattr(FlinkEngine, "_live_client", lambda engine: made)
    yield made
    made.kill()
    made.close()


def engine_of(master: str) -> FlinkEngine:
    engine = FlinkEngine(master, python=sys.executable)
    engine._version = "2.3.1"
    return engine


def when_running(notes: Path, act: Callable[[], None]) -> threading.Thread:
    def wait() -> None:
        deadline = time.monotonic() + 60
        while len(os.listdir(notes)) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def guard_of(agent: subprocess.Popen[bytes], but: int = 0) -> int:
    """Its guard process, not the one that it had before."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for child in psutil.Process(agent.pid).children():
            if child.pid != but and "-I" in child.cmdline() and child.status() != psutil.STATUS_ZOMBIE:
                return int(child.pid)
        time.sleep(0.02)
    raise AssertionError("it has none")


def soon_empty(directory: Path) -> None:
    deadline = time.monotonic() + 60
    while os.listdir(directory) and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.parametrize("before", ["nothing", "its guard"])
def test_an_agent_and_its_guard_that_are_killed_leave_nothing(
    before: str, machines: Machines, leaves_nothing: Path, script: Script, tmp_path: Path
) -> None:
    def kill() -> None:
        for agent in machines.agents:
            guard = guard_of(agent)
            if before == "its guard":
                # another one takes its place, and does all of it
                os.kill(guard, signal.SIGKILL)
                guard_of(agent, guard)
            else:
                os.kill(guard, signal.SIGSTOP)
            agent.kill()
            if before == "nothing":
                os.kill(guard, signal.SIGKILL)

    (tmp_path / "notes").mkdir()
    acting = when_running(tmp_path / "notes", kill)
    with answering(machines.answer) as master:
        with pytest.raises(akrunner.JobError):
            akrunner.run(
                script(WAITS), {"a": [1, 2]}, num_workers=2, user_params={"notes": str(tmp_path / "notes")}, engine=engine_of(master)
            )  # fmt: skip
    acting.join()
    soon_empty(leaves_nothing)


def test_rows_go_there_and_back(machines: Machines, script: Script) -> None:
    with answering(machines.answer) as master:
        result = akrunner.run(
            script(DOUBLES), {"a": [1, 2, 3]}, num_workers=2, output_schema="a bigint", data_format="columns", engine=engine_of(master)
        )  # fmt: skip
    assert sorted(result.table["a"].to_pylist()) == [2, 4, 6] and machines.submitted == 1


def test_a_cancelled_job_is_not_started_again(machines: Machines, script: Script, tmp_path: Path) -> None:
    def cancel() -> None:
        machines.state = "CANCELLING"
        machines.kill()

    (tmp_path / "notes").mkdir()
    acting = when_running(tmp_path / "notes", cancel)
    with answering(machines.answer) as master:
        with pytest.raises(akrunner.JobCancelledError, match="the Flink job abc was cancelled"):
            akrunner.run(
                script(WAITS), {"a": [1, 2]}, num_workers=2, user_params={"notes": str(tmp_path / "notes")}, max_restarts=2,
                engine=engine_of(master),
            )  # fmt: skip
    acting.join()
    assert machines.submitted == 1


def test_the_flink_job_ends_where_what_submits_is_dead_and_an_agent_is_stuck(
    machines: Machines, script: Script, tmp_path: Path
) -> None:
    def stop() -> None:
        machines.agents[0].send_signal(signal.SIGSTOP)
        machines.job.failed = "the process that submits it ended"
        machines.job.ended.set()

    (tmp_path / "notes").mkdir()
    acting = when_running(tmp_path / "notes", stop)
    heard: list[bytes] = []
    with answering(machines.answer, heard) as master:
        with pytest.raises(akrunner.JobError, match="the process that submits it ended"):
            akrunner.run(
                script(WAITS), {"a": [1, 2]}, num_workers=2, user_params={"notes": str(tmp_path / "notes")}, engine=engine_of(master)
            )  # fmt: skip
    acting.join()
    assert any(request.startswith(b"PATCH /jobs/abc?mode=cancel ") for request in heard)
    machines.agents[0].kill()
    soon_empty(Path(tempfile.gettempdir()))


@pytest.mark.parametrize("how", ["refuses", "stalls", "answers nonsense", "takes its tasks along"])
def test_a_jobmanager_that_goes_is_said_by_its_name(
    how: str, machines: Machines, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_EVERY_SECONDS", 0.1)
    monkeypatch.setattr(watch, "_ASK_SECONDS", 0.5)
    monkeypatch.setattr(watch, "_GONE_SECONDS", 1.0)
    gone = threading.Event()

    def answer(connection: socket.socket) -> None:
        if not gone.is_set():
            machines.answer(connection)
        elif how == "stalls":
            time.sleep(0.6)
        elif how == "answers nonsense":
            connection.sendall(b"220 mail.example ESMTP\r\n")

    def go() -> None:
        gone.set()
        if how == "takes its tasks along":
            machines.kill()

    (tmp_path / "notes").mkdir()
    acting = when_running(tmp_path / "notes", go)
    with answering(answer) as master:
        with pytest.raises(akrunner.JobManagerLostError, match=f"the JobManager at {master} is gone"):
            akrunner.run(
                script(WAITS), {"a": [1, 2]}, num_workers=2, user_params={"notes": str(tmp_path / "notes")}, max_restarts=2,
                engine=engine_of(master),
            )  # fmt: skip
    acting.join()
    assert machines.submitted == 1
