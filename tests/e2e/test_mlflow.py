"""Jobs as runs of MLflow, with its real server and client: what its server then answers, and that a server that goes away fails no job."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import ENDS, ENVS, not_run, wait_for

pytestmark = pytest.mark.slow

PYTHON = ENVS / "mlflow" / "bin" / "python"
TRAIN = """
import os, time

def main(task_config):
    for step in (10, 20, None):
        task_config.report({"loss": (step or 30) / 100, "top:5": float("nan")}, step=step)
    print("it learns")
    if "fail" in task_config.user_params:
        raise ValueError("diverged")
    if "wait" in task_config.user_params:
        print("it waits", flush=True)
        time.sleep(1000)
    if task_config.task_type == "chief" and hasattr(task_config, "saved_model_dir"):
        os.makedirs(os.path.join(task_config.saved_model_dir, "variables"))
        for name in ("saved_model.pb", "variables/variables.index"):
            with open(os.path.join(task_config.saved_model_dir, name), "w") as f:
                f.write("\\x08\\x01")  # its version, and nothing else
"""


class Server:
    """MLflow's server, with SQLite behind it. Attributes: url: its address; process: its first process."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        words = [
            "--backend-store-uri",
            f"sqlite:///{folder}/mlflow.db",
            "--artifacts-destination",
            str(folder / "artifacts"),
            "--port",
            str(port),
        ]
        self._log = open(folder / "server.log", "wb")
        self.process = subprocess.Popen(
            [PYTHON, "-m", "mlflow", "server", *words, "--host", "127.0.0.1", "--workers", "1"],
            env=environment(folder), cwd=folder, stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip

    def is_there(self) -> bool:
        assert self.process.poll() is None, Path(self._log.name).read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def asked(self, path: str, **body: Any) -> Any:
        """What the server answers to a request of its REST API."""
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{self.url}/api/2.0/mlflow/{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=ENDS) as answer:
            return json.load(answer)

    def newest(self, experiment: str) -> Any:
        """The newest run of an experiment; None if there is none yet."""
        try:
            found = self.asked(f"experiments/get-by-name?experiment_name={experiment}")["experiment"]["experiment_id"]
        except urllib.error.HTTPError as e:
            e.close()
            return None
        return next(iter(self.asked("runs/search", experiment_ids=[found], max_results=1).get("runs", [])), None)

    def artifacts(self, run: str, path: str = "") -> set[str]:
        """The paths of a run's files."""
        files = self.asked(f"artifacts/list?run_id={run}&path={path}").get("files", [])
        return {inner for one in files for inner in (self.artifacts(run, one["path"]) if one.get("is_dir") else [one["path"]])}

    def stop(self) -> None:
        """End it, and all that it has started."""
        mine = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(ENDS)
            _, left = psutil.wait_procs(mine, ENDS)
            assert not left
        finally:
            self._log.close()


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Variables of a process, without those of the person who tests."""
    mine = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MLFLOW_", "AKRUNNER_")) and name != "PYTHONWARNINGS"
    }
    return {
        **mine,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "HOME": str(folder),
        # akrunner is not installed there
        "PYTHONPATH": str(ENVS.parent),
        "NO_PROXY": "*",
        "XDG_STATE_HOME": str(folder / "state"),
        **more,
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not (ENVS / "mlflow" / "stamp").exists():
        not_run("MLflow", "`scripts/mlflow` prepares it, with Python 3.11 to 3.12 and a network")
    folder = tmp_path_factory.mktemp("mlflow")
    made = Server(folder)
    try:
        deadline = time.monotonic() + 5 * ENDS
        while not made.is_there():
            assert time.monotonic() < deadline, "it has not answered"
            time.sleep(0.1)
        yield made
    finally:
        made.stop()


@pytest.fixture
def start(tmp_path: Path) -> Any:
    """Start a job; returns its process."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "t.csv").write_text("a\n" + "1\n" * 8)

    def started(verb: str, *words: str, **more: str) -> subprocess.Popen[str]:
        command = [PYTHON, "-m", "akrunner", verb, "train.py", "-i", "t.csv", "--python-env", sys.executable, *words]
        return subprocess.Popen(
            command,
            env=environment(tmp_path, **more),
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    return started


@pytest.mark.tensorflow
def test_a_job_is_a_run(server: Server, start: Any, leaves_nothing: Path) -> None:
    words = (
        "-p",
        "lr=0.1",
        "-p",
        "token=hidden",
        "--num-workers",
        "2",
        "--mlflow",
        server.url,
        "--mlflow-experiment",
        "iris",
        "--model-out",
        "m",
    )
    said, _ = start("train", *words).communicate(timeout=2 * ENDS)
    assert "warning" not in said and "Traceback" not in said, said
    run = server.newest("iris")
    info, data = run["info"], run["data"]
    assert (info["status"], info["run_name"]) == ("FINISHED", "train r1") and info["end_time"]
    params = {one["key"]: one["value"] for one in data["params"]}
    assert params["lr"] == "0.1" and params["akrunner.num_workers"] == "2" and "hidden" not in str(run)
    tags = {one["key"]: one["value"] for one in data["tags"]}
    assert (tags["akrunner.run"], tags["akrunner.verb"], tags["akrunner.exit_code"]) == ("r1", "train", "0")
    assert tags["akrunner.version.akrunner"] and tags["mlflow.source.name"] == "train.py"
    metrics = {one["key"]: one["value"] for one in data["metrics"]}
    assert metrics["akrunner/rows_in"] == 8 and {"loss", "worker-0/loss", "top_5"} <= set(metrics)
    for name in ("loss", "worker-0/loss"):
        course = server.asked(f"metrics/get-history?run_id={info['run_id']}&metric_key={name}")["metrics"]
        assert [(one["step"], one["value"]) for one in course] == [(10, 0.1), (20, 0.2), (21, 0.3)]
    assert server.artifacts(info["run_id"]) == {
        "model/saved_model.pb", "model/variables/variables.index", "logs/chief-0/000-0.txt", "logs/worker-0/000-0.txt",
    }  # fmt: skip


def test_how_a_job_ends_that_has_not_succeeded(server: Server, start: Any, leaves_nothing: Path) -> None:
    told = {"MLFLOW_TRACKING_URI": server.url, "MLFLOW_EXPERIMENT_NAME": "bad"}
    failing = start("run", "-p", "fail=1", "--mlflow", **told)
    said, _ = failing.communicate(timeout=2 * ENDS)
    assert failing.returncode == 1 and "mlflow:" not in said, said
    run = server.newest("bad")
    assert run["info"]["status"] == "FAILED" and "failure.txt" in server.artifacts(run["info"]["run_id"])
    waiting = start("run", "-p", "wait=1", "--logs", "--mlflow", **{**told, "MLFLOW_EXPERIMENT_NAME": "stopped"})
    try:
        assert any("it waits" in line for line in waiting.stdout)
        # what was reported is there while the job runs
        wait_for(lambda: (server.newest("stopped") or {"data": {}})["data"].get("metrics"))
        assert server.newest("stopped")["info"]["status"] == "RUNNING"
        waiting.send_signal(signal.SIGINT)
        said, _ = waiting.communicate(timeout=2 * ENDS)
    finally:
        waiting.kill()
        waiting.communicate()
    assert waiting.returncode == 130 and server.newest("stopped")["info"]["status"] == "KILLED", said


def test_a_server_that_is_not_there_fails_no_job(start: Any, leaves_nothing: Path) -> None:
    if not (ENVS / "mlflow" / "stamp").exists():
        not_run("MLflow", "`scripts/mlflow` prepares it, with Python 3.11 to 3.12 and a network")
    began = time.monotonic()
    job = start("run", "--mlflow", "http://127.0.0.1:9")
    said, _ = job.communicate(timeout=2 * ENDS)
    assert job.returncode == 0, said
    assert "warning: mlflow: no" in said and time.monotonic() - began < ENDS, said
