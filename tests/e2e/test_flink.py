"""Flink's own troubles, on a real cluster of two TaskManagers: the user is told, and no process of a job survives anywhere."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Iterator, List

import psutil
import pytest

import akrunner
from akrunner.engines.flink import FlinkEngine, cluster
from akrunner.engines.flink.hub import RemoteProcess
from tests.conftest import FLINK, Script, need_flink, nothing_is_left, start_cluster

pytestmark = pytest.mark.flink

WAITS = """
    import os, time

    def main(task_config):
        open(os.path.join(task_config.user_params["notes"], task_config.task_type + str(os.getpid())), "w").close()
        time.sleep(120)
    """


class There:
    """A running cluster."""

    def __init__(self, running: cluster.Cluster) -> None:
        self.cluster = running

    def engine(self) -> FlinkEngine:
        return FlinkEngine(self.cluster.address, python=str(FLINK))

    def nothing_is_left(self) -> None:
        nothing_is_left(self.cluster)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    need_flink()
    started = start_cluster(tmp_path_factory.mktemp("faults"), taskmanagers=2, slots=2)
    yield There(started)
    started.stop()
    assert not [pid for pid in started.processes if psutil.pid_exists(pid)]


class Running:
    """A job of two tasks that wait, in a process of its own."""

    def __init__(self, host: "subprocess.Popen[str]", notes: Path) -> None:
        self.host = host
        self._notes = notes

    def pids(self) -> List[int]:
        """Of its tasks, once both are in main."""
        deadline = time.monotonic() + 60
        while len(list(self._notes.iterdir())) < 2:
            assert time.monotonic() < deadline and self.host.poll() is None, self.host.stderr and self.host.stderr.read()
            time.sleep(0.1)
        return [int("".join(filter(str.isdigit, note.name))) for note in self._notes.iterdir()]

    def error(self) -> str:
        """What it said when it failed."""
        _, said = self.host.communicate(timeout=60)
        assert self.host.returncode == 1
        return said


@pytest.fixture
def running(there: There, script: Script, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Running]:
    with waiting(there.cluster.address, script(WAITS), tmp_path / "notes", getattr(request, "param", 0)) as started:
        yield started


@contextlib.contextmanager
def waiting(master: str, path: str, notes: Path, restarts: int = 0) -> Iterator[Running]:
    notes.mkdir()
    program = (
        "import sys, akrunner\nfrom akrunner.engines.flink import FlinkEngine\n"
        f"akrunner.run({path!r}, {{'a': [1, 2]}}, num_workers=2, user_params={{'notes': {str(notes)!r}}}, python_env=sys.executable,"
        f" max_restarts={restarts}, engine=FlinkEngine({master!r}, python={str(FLINK)!r}))"
    )
    host = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield Running(host, notes)
    finally:
        if host.poll() is None:
            os.killpg(host.pid, signal.SIGKILL)
        host.communicate(timeout=60)


def python_worker_of(pid: int) -> psutil.Process:
    """The process of Flink's Python that a task was started by."""
    return psutil.Process(pid).parent()


def test_too_few_slots(there: There, leaves_nothing: Path, script: Script) -> None:
    with pytest.raises(akrunner.ConfigError, match="the job needs 5 task slots, 4 free"):
        akrunner.run(script(WAITS), {"a": [1]}, num_workers=5, engine=there.engine())


def test_what_flink_cannot_do_is_said_before_anything_starts(leaves_nothing: Path, script: Script) -> None:
    need_flink()
    path = script("def main(c):\n    pass\n")
    with pytest.raises(akrunner.ConfigError, match="no Flink cluster answers at http://127.0.0.1:1/overview"):
        akrunner.run(path, {"a": [1]}, engine=FlinkEngine("127.0.0.1:1", python=str(FLINK)))
    with pytest.raises(akrunner.ConfigError, match="master='nowhere'"):
        FlinkEngine("nowhere")
    with pytest.raises(akrunner.ConfigError, match="has no PyFlink"):
        akrunner.run(path, {"a": [1]}, engine=FlinkEngine(python=sys.executable))


def test_a_local_cluster_from_the_command_line(leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    need_flink()
    body = """
        def main(task_config):
            for batch in task_config.batches(2):
                task_config.output_writer.write_batch({"a": batch["a"] * 2})
        """
    table = tmp_path / "t.csv"
    table.write_text("a\n1\n2\n3\n")
    command = [
        sys.executable, "-m", "akrunner", "run", script(body), "-i", str(table), "--output-schema", "a bigint", "--num-workers", "2",
        "--output", str(tmp_path / "out.csv"), "--engine", "flink", "--flink-python", str(FLINK), "--data-format", "columns",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert sorted((tmp_path / "out.csv").read_text().split()) == ['"a"', "2", "4", "6"]


def test_a_python_worker_is_killed(there: There, running: Running) -> None:
    pids = running.pids()
    python_worker_of(pids[0]).kill()
    said = running.error()
    assert "TaskDiedError" in said and "or its Python worker, has gone" in said
    there.nothing_is_left()


def test_the_submitter_is_killed(there: There, running: Running) -> None:
    running.pids()
    os.killpg(running.host.pid, signal.SIGKILL)
    there.nothing_is_left()
    deadline = time.monotonic() + 60
    while there.cluster.overview()["jobs-running"] and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not there.cluster.overview()["jobs-running"]


def test_a_script_that_dies_is_told_first(there: There, leaves_nothing: Path, script: Script) -> None:
    body = """
        import os, time

        def main(task_config):
            if task_config.task_type == "worker":
                raise ValueError("bad luck")
            time.sleep(100)
        """
    with pytest.raises(akrunner.ScriptFailedError, match=r"\[worker:0\] raised ValueError in main\(\): bad luck"):
        akrunner.run(script(body), {"a": [1, 2]}, num_workers=2, engine=there.engine())
    there.nothing_is_left()


def test_a_restart_is_a_job_of_its_own(there: There, leaves_nothing: Path, script: Script) -> None:
    body = """
        import os

        def main(task_config):
            if task_config.attempt == 0:
                os._exit(7)
            ids = [int(i) for batch in task_config.batches(2) for i in batch["a"]]
            task_config.output_writer.write_batch({"a": ids})
        """
    result = akrunner.run(
        script(body), {"a": [1, 2, 3]}, num_workers=2, max_restarts=1, output_schema="a bigint", data_format="columns",
        engine=there.engine(),
    )  # fmt: skip
    assert sorted(result.table["a"].to_pylist()) == [1, 2, 3] and result.stats.attempt == 1
    there.nothing_is_left()


@pytest.mark.parametrize("running", [2], indirect=True)
def test_the_flink_job_is_cancelled_and_not_started_again(there: There, running: Running) -> None:
    running.pids()
    with urllib.request.urlopen(f"http://{there.cluster.address}/jobs", timeout=60) as answer:
        (job,) = [one["id"] for one in json.load(answer)["jobs"] if one["status"] == "RUNNING"]
    request = urllib.request.Request(f"http://{there.cluster.address}/jobs/{job}?mode=cancel", method="PATCH")
    urllib.request.urlopen(request, timeout=60).close()
    said = running.error()
    assert "JobCancelledError" in said and f"the Flink job {job} was cancelled" in said
    assert there.cluster.overview()["jobs-running"] == 0
    there.nothing_is_left()


def test_a_thread_of_ours_that_fails_fails_the_job(
    there: There, leaves_nothing: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: RemoteProcess, word: object) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr(RemoteProcess, "_take", fails)
    with pytest.raises(
        akrunner.JobError, match="akrunner's own thread 'place' failed:\nTraceback(.|\n)*AttributeError: no such thing"
    ):
        akrunner.run(
            script(WAITS), {"a": [1]}, user_params={"notes": str(leaves_nothing.parent)}, max_restarts=2, engine=there.engine()
        )
    there.nothing_is_left()


def taskmanager_of(pid: int) -> psutil.Process:
    process = python_worker_of(pid)
    while "java" not in process.name():
        process = process.parent()
    return process


def test_a_taskmanager_is_killed_and_there_are_slots_to_start_again(there: There, leaves_nothing: Path, script: Script) -> None:
    """From here on the cluster has one TaskManager."""
    notes = leaves_nothing.parent / "notes"
    notes.mkdir()
    body = """
        import os, time

        def main(task_config):
            if task_config.attempt == 0:
                open(os.path.join(task_config.user_params["notes"], str(os.getpid())), "w").close()
                time.sleep(90)
            ids = [int(i) for batch in task_config.batches(2) for i in batch["a"]]
            task_config.output_writer.write_batch({"a": ids})
        """

    killed = []

    def kill() -> None:
        deadline = time.monotonic() + 60
        while len(os.listdir(notes)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        killed.append(taskmanager_of(int(os.listdir(notes)[0])))
        killed[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    result = akrunner.run(
        script(body), {"a": [1, 2, 3]}, num_workers=2, max_restarts=1, output_schema="a bigint", data_format="columns",
        user_params={"notes": str(notes)}, timeout=100, engine=there.engine(),
    )  # fmt: skip
    killer.join()
    shutil.rmtree(notes)
    assert killed
    assert sorted(result.table["a"].to_pylist()) == [1, 2, 3] and result.stats.attempt == 1
    assert "the TaskManager on" in result.stats.warnings[0]


def test_the_last_taskmanager_is_killed(there: There, running: Running) -> None:
    taskmanager_of(running.pids()[0]).kill()
    said = running.error()
    assert "TaskDiedError" in said and "the TaskManager on" in said
    there.nothing_is_left()


def test_the_jobmanager_is_killed(script: Script, tmp_path: Path) -> None:
    need_flink()
    started = start_cluster(tmp_path / "cluster", taskmanagers=1, slots=2)
    try:
        with waiting(started.address, script(WAITS), tmp_path / "notes", restarts=2) as running:
            running.pids()
            psutil.Process(next(iter(started.processes))).kill()
            said = running.error()
        assert "JobManagerLostError" in said and f"the JobManager at {started.address} is gone" in said
        nothing_is_left(started)
    finally:
        started.stop()
    assert not [pid for pid in started.processes if psutil.pid_exists(pid)]


def test_start_and_stop_from_the_command_line(tmp_path: Path) -> None:
    need_flink()
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "akrunner", "flink"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    start = [*command, "start", "--taskmanagers", "1", "--slots", "1", "--port", port, "--python", str(FLINK)]
    done = subprocess.run(start, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert f"http://127.0.0.1:{port}   1 TaskManagers, 1 slots" in done.stdout
    again = subprocess.run(start, env=environ, capture_output=True, text=True, timeout=60)
    assert again.returncode == 2 and "is running" in again.stderr
    stopped = subprocess.run([*command, "stop"], env=environ, capture_output=True, text=True, timeout=60)
    assert stopped.stdout == "stopped\n"
    assert (
        subprocess.run([*command, "stop"], env=environ, capture_output=True, text=True, timeout=60).stdout
        == "no cluster is running\n"
    )
