"""Flink's own troubles, on a real cluster of two TaskManagers: the user is told, and no process of a job survives anywhere."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
import s3fs

import akrunner
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import cluster
from akrunner.engines.flink.host.client import PACKAGE
from akrunner.engines.flink.host.files import SharedFiles
from akrunner.engines.flink.host.remote import RemoteProcess
from tests import hosts
from tests.breaking import Clusters, There
from tests.conftest import FLINK, FORKED, Script, agent_of, need_flink, nothing_is_left, taskmanager_of
from tests.servers.s3 import S3, Flaky

pytestmark = pytest.mark.flink

WAITS = """
    import os, time

    def main(task_config):
        notes = task_config.user_params["notes"]
        open(os.path.join(notes, task_config.task_type + str(os.getpid())), "w").close()
        while not os.path.exists(notes + "/over"):
            time.sleep(0.05)
    """


@pytest.fixture
def there(clusters: Clusters) -> There:
    """A cluster of which every process runs."""
    return clusters.whole().submits()


@pytest.fixture
def with_jobmanager(clusters: Clusters) -> Iterator[There]:
    """A cluster that may have lost a TaskManager. It ends with the test."""
    yield clusters.with_jobmanager().submits()
    clusters.close()


class Running:
    """A job of two tasks that wait."""

    def __init__(self, notes: Path, job: Future[akrunner.Result]) -> None:
        self._job = job
        self._notes = notes

    def pids(self) -> list[int]:
        """Of its tasks, once both are in main."""
        return noted(self._notes, lambda: not self._job.done(), self._job)

    def error(self) -> str:
        """What it said when it failed."""
        error = self._job.exception(60)
        return f"{type(error).__name__}: {error}"


def noted(notes: Path, goes_on: Callable[[], bool], said: object) -> list[int]:
    deadline = time.monotonic() + 60
    while len(list(notes.iterdir())) < 2:
        assert time.monotonic() < deadline and goes_on(), said
        time.sleep(0.1)
    return [int("".join(filter(str.isdigit, note.name))) for note in notes.iterdir()]


@pytest.fixture
def running(
    there: There, leaves_nothing: Path, script: Script, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Running]:
    with waiting(there.engine, script(WAITS), tmp_path / "notes", getattr(request, "param", 0)) as started:
        yield started


@contextlib.contextmanager
def waiting(engine: FlinkEngine, path: str, notes: Path, restarts: int = 0) -> Iterator[Running]:
    notes.mkdir()
    options = dict(num_workers=2, user_params={"notes": str(notes)}, max_restarts=restarts, engine=engine)
    with ThreadPoolExecutor(1) as pool:
        try:
            yield Running(notes, pool.submit(akrunner.run, path, {"a": [1, 2]}, **options))
        finally:
            # of a test that has failed: the job is waited for
            (notes / "over").touch()


def test_too_few_slots(there: There, leaves_nothing: Path, script: Script) -> None:
    with pytest.raises(akrunner.ConfigError, match="the job needs 5 task slots, 4 free"):
        akrunner.run(script(WAITS), {"a": [1]}, num_workers=5, engine=there.engine)


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
    done = hosts.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert sorted((tmp_path / "out.csv").read_text().split()) == ['"a"', "2", "4", "6"]


def test_a_python_worker_is_killed(there: There, running: Running) -> None:
    pids = running.pids()
    packages = Path(there.cluster.folder, "tmp").glob("python-dist-*/python-files/*/*")
    assert {package.name for package in packages} == {PACKAGE}, (
        "Flink does not take it apart, into a thousand files for each subtask"
    )
    agent_of(pids[0]).kill()
    said = running.error()
    assert "TaskDiedError" in said and "or its Python worker, has gone" in said
    there.nothing_is_left()


def test_the_submitter_is_killed(there: There, script: Script, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    program = (
        "import sys, akrunner\nfrom akrunner.engines.flink import FlinkEngine\n"
        f"akrunner.run({script(WAITS)!r}, {{'a': [1, 2]}}, num_workers=2, user_params={{'notes': {str(notes)!r}}}, python_env=sys.executable,"
        f" engine=FlinkEngine({there.cluster.address!r}, python={str(FLINK)!r}))"
    )
    host = hosts.Popen([sys.executable, "-c", program], stderr=hosts.PIPE, text=True, start_new_session=True)
    try:
        noted(notes, lambda: host.poll() is None, host)
        (submits,) = [
            one for one in psutil.Process(host.pid).children() if "akrunner.engines.flink.program.submit" in one.cmdline()
        ]
        assert not [file.path for file in submits.memory_maps() if "/apache_beam/" in file.path], "what takes 0.7 s to import"
    finally:
        os.killpg(host.pid, signal.SIGKILL)
        host.communicate(timeout=60)
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
        akrunner.run(script(body), {"a": [1, 2]}, num_workers=2, engine=there.engine)
    there.nothing_is_left()


def test_a_restart_is_a_job_of_its_own_whatever_files_it_leaves(
    there: There, leaves_nothing: Path, script: Script, tmp_path: Path
) -> None:
    # each task of the first attempt ends when both have written: the end of one ends the other
    (tmp_path / "written").mkdir()
    body = """
        import os, time

        def main(task_config):
            os.symlink("/shared/x", "latest")
            os.mkfifo("pipe")
            open("notes", "w").close()
            if task_config.attempt == 0:
                written = task_config.user_params["written"]
                open(os.path.join(written, str(os.getpid())), "w").close()
                while len(os.listdir(written)) < 2:
                    time.sleep(0.01)
                os._exit(7)
            ids = [int(i) for batch in task_config.batches(2) for i in batch["a"]]
            task_config.output_writer.write_batch({"a": ids})
        """
    result = akrunner.run(
        script(body), {"a": [1, 2, 3]}, num_workers=2, max_restarts=1, output_schema="a bigint", data_format="columns",
        engine=there.engine, work_dir=tmp_path / "work", user_params={"written": str(tmp_path / "written")},
    )  # fmt: skip
    assert sorted(result.table["a"].to_pylist()) == [1, 2, 3] and result.stats.attempt == 1
    left_out = [warning for warning in result.stats.warnings if warning.endswith("; work_dir= is without it")]
    assert len(left_out) == 4, "of each task a link that leads out, and a pipe; no attempt says it again"
    for attempt in ("", "attempt-0"):
        for task in ("chief-0", "worker-0"):
            kept = tmp_path / "work" / attempt / "tasks" / task / "work"
            assert (kept / "notes").exists() and not {"latest", "pipe"} & set(os.listdir(kept))
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
        akrunner.JobError, match="akrunner's own thread 'subtask' failed:\nTraceback(.|\n)*AttributeError: no such thing"
    ) as caught:
        akrunner.run(
            script(WAITS), {"a": [1]}, user_params={"notes": str(leaves_nothing.parent)}, max_restarts=2, engine=there.engine
        )
    assert caught.value.fault, "the command ends with 70"
    there.nothing_is_left()


class Slow(Flaky):
    """A store that gives few pieces of objects from when `begun` is set until `goes_on` is. Attributes: waited: set when one is not given."""

    def __init__(self, server: str, pieces: int) -> None:
        self.begun, self.goes_on, self.waited = threading.Event(), threading.Event(), threading.Event()
        self._pieces = pieces
        super().__init__(server, 1, 0)

    def fate(self, method: str, path: str) -> str:
        if method == "GET" and path.endswith(".arrow") and self.begun.is_set() and not self.goes_on.is_set():
            self._pieces -= 1
            if self._pieces < 0:
                self.waited.set()
                self.goes_on.wait(60)
        return ""


def test_a_taskmanager_is_killed_while_it_reads_and_there_are_slots_to_start_again(
    there: There, leaves_nothing: Path, script: Script, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is in an object store. The cluster has one TaskManager then."""
    out = io.BytesIO()
    with pa.ipc.new_file(out, pa.schema([("a", pa.int64())])) as writer:
        writer.write_table(pa.table({"a": range(4000)}), 100)
    url = s3.put("table.arrow", out.getvalue())
    body = """
        def main(task_config):
            for batch in task_config.batches(500):
                task_config.output_writer.write_batch({"a": batch["a"]})
        """
    killed = []

    def kill(store: Slow) -> None:
        # the tasks have some of their rows, and wait for more
        if store.waited.wait(60):
            task = next(pid for pid in psutil.pids() if str(there.cluster.folder) in bundle_of(pid))
            killed.append(taskmanager_of(task))
            killed[0].kill()
        store.goes_on.set()

    with Slow(s3.url, 20) as store:
        order = SharedFiles.order

        def begun(shared: SharedFiles, share: int) -> Any:
            # every block is counted, and none is read
            store.begun.set()
            return order(shared, share)

        monkeypatch.setattr(SharedFiles, "order", begun)
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.url)
        s3fs.S3FileSystem.clear_instance_cache()
        killer = threading.Thread(target=kill, args=(store,))
        killer.start()
        result = akrunner.run(
            script(body), url, num_workers=2, max_restarts=1, output_schema="a bigint", data_format="columns",
            timeout=100, engine=there.engine,
        )  # fmt: skip
        killer.join()
    assert killed
    assert sorted(result.table["a"].to_pylist()) == list(range(4000)) and result.stats.attempt == 1
    assert sorted(result.stats.shares) == [2000, 2000]
    assert "the TaskManager on" in result.stats.warnings[0]


def bundle_of(pid: int) -> str:
    """The path of the bundle that a task's process runs; "" if it is none."""
    try:
        return next((word for word in psutil.Process(pid).cmdline() if word.endswith("bundle.zip")), "")
    except psutil.Error:
        return ""


def test_the_jobmanager_is_killed(with_jobmanager: There, leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    """The end of that cluster."""
    there = with_jobmanager
    with waiting(there.engine, script(WAITS), tmp_path / "notes", restarts=2) as running:
        running.pids()
        psutil.Process(next(iter(there.cluster.processes))).kill()
        said = running.error()
    assert "JobManagerLostError" in said and f"the JobManager at {there.cluster.address} is gone" in said
    there.nothing_is_left()


def test_start_and_stop_from_the_command_line(script: Script, tmp_path: Path) -> None:
    """Meanwhile, the only TaskManager is killed under a job."""
    need_flink()
    # both Python workers of its TaskManager are forked
    forked = os.pathsep.join([str(FORKED), *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": forked}
    command = [sys.executable, "-m", "akrunner", "flink"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    start = [*command, "start", "--taskmanagers", "1", "--slots", "2", "--port", port, "--python", str(FLINK)]
    done = hosts.run(start, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    try:
        assert f"http://127.0.0.1:{port}   1 TaskManagers, 2 slots" in done.stdout
        again = hosts.run(start, env=environ, capture_output=True, text=True, timeout=60)
        assert again.returncode == 2 and "is running" in again.stderr
        the_last_taskmanager_is_killed(f"127.0.0.1:{port}", script(WAITS), tmp_path / "notes")
        started = cluster.running(str(tmp_path / "akrunner" / "flink"))
        assert started is not None
        nothing_is_left(started)
    finally:
        stopped = hosts.run([*command, "stop"], env=environ, capture_output=True, text=True, timeout=60)
    assert stopped.stdout == "stopped\n"
    assert (
        hosts.run([*command, "stop"], env=environ, capture_output=True, text=True, timeout=60).stdout
        == "no cluster is running\n"
    )


def the_last_taskmanager_is_killed(master: str, path: str, notes: Path) -> None:
    with waiting(FlinkEngine(master, python=str(FLINK)), path, notes) as running:
        taskmanager_of(running.pids()[0]).kill()
        said = running.error()
    assert "TaskDiedError" in said and "the TaskManager on" in said
