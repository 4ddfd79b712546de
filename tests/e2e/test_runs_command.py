"""Runs that are kept, of real jobs: how they end, what stays of one that was killed, and what a person types to look at them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner import runs
from akrunner.history import record
from tests import hosts
from tests.conftest import ENDS, Script, wait_for

pytestmark = pytest.mark.slow

REPORTS = """
def main(task_config):
    params = task_config.user_params
    for step in range(3):
        print("step", step, flush=True)
        task_config.report({"loss": params.get("lr", 1.0) / (step + 1)}, step=step)
    if params.get("fails"):
        raise ValueError("no column 'petal'")
    task_config.output_writer.write_batch({"id": [1, 2]})
"""
WAITS = """
import os, time

def main(task_config):
    print("begun", flush=True)
    task_config.report({"loss": 0.5}, step=7)
    while not os.path.exists(task_config.user_params["until"]):
        time.sleep(0.02)
    print("done", flush=True)
    raise ValueError("it had to fail")
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i / 2}\n" for i in range(20)))
    return str(path)


def command(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return hosts.run([sys.executable, "-m", "akrunner", *words], capture_output=True, text=True, timeout=ENDS, **options)


def newest() -> runs.Run | None:
    return next(iter(runs.listed(limit=1)), None)


def test_a_run_is_looked_at_and_run_again(leaves_nothing: Path, script: Script, table: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out.csv")
    done = command("run", script(REPORTS), "-i", "t.csv", "-o", "out.csv", "-p", "lr=0.5", "-p", "token=geheim", cwd=tmp_path)
    assert done.returncode == 0 and "run: r1   (akrunner show r1)" in done.stderr
    found = runs.get("last")
    assert (found.state, found.verb, found.rows, found.engine) == ("succeeded", "run", (20, 2), "local")
    assert found.metrics == {"chief:0": {"step": 2, "loss": pytest.approx(0.5 / 3)}} and len(found.reports) == 3
    assert list(found.logs("chief:0")) == ["step 0", "step 1", "step 2"] and found.progress[-1]["rows_in"] == 20
    assert found.arguments["user_params"] == {"lr": 0.5, "token": "***"} and found.arguments["output"] == "out.csv"
    assert "geheim" not in "".join(path.read_text() for path in Path(found.path).rglob("*") if path.is_file())
    assert "TensorFlow" not in found.warnings and found.versions["tensorflow"]
    # from elsewhere, with something else
    refused = command("rerun", "last", "--overwrite", cwd="/")
    assert refused.returncode == 2 and "give --param for the key token" in refused.stderr and len(runs.listed()) == 1
    again = command("rerun", "last", "--overwrite", "-p", "token=x", "--num-workers", "2", "--json", cwd="/")
    told = json.loads(again.stdout)
    assert again.returncode == 0 and told["run"] == "r2" and told["output"] == out
    assert runs.get("r2").tasks == ["chief:0", "worker:0"] and runs.get("r2").arguments["user_params"]["lr"] == 0.5
    differs = command("runs", "diff")
    assert differs.returncode == 0 and "num_workers" in differs.stdout and "token" not in differs.stdout


def test_a_failure_is_told_by_the_job_and_by_its_run(leaves_nothing: Path, script: Script, table: str) -> None:
    done = command("run", script(REPORTS), "-i", table, "-p", "fails=1")
    assert done.returncode == 1 and done.stderr.rstrip().endswith("run r1: akrunner show r1")
    told = json.loads(command("run", script(REPORTS), "-i", table, "-p", "fails=1", "--json").stdout)
    assert told["run"] == "r2"
    shown = command("show", "last")
    lines = shown.stdout.splitlines()
    assert shown.returncode == 0 and lines[0].startswith("r2  failed  run train.py")
    assert lines[2].startswith("ScriptFailedError: [chief:0] raised ValueError in main(): no column 'petal'") and lines[
        3
    ].startswith("Traceback")
    assert "loss=0.3333 step=2" in shown.stdout
    assert [one["id"] for one in json.loads(command("runs", "--failed", "--json").stdout)["runs"]] == ["r2", "r1"]
    # refused before anything started: no run
    assert command("run", "no.py", "-i", table).returncode == 2 and len(runs.listed()) == 2


def test_logs_are_followed_to_the_end_of_a_job(leaves_nothing: Path, script: Script, table: str, tmp_path: Path) -> None:
    until = tmp_path / "until"
    words = [sys.executable, "-m", "akrunner", "run", script(WAITS), "-i", table, "-q", "-p", f"until={until}"]
    with hosts.Popen(words, stderr=subprocess.DEVNULL) as job:
        wait_for(lambda: (found := newest()) and found.metrics)
        found = runs.get("last")
        assert (found.state, found.metrics) == ("running", {"chief:0": {"step": 7, "loss": 0.5}})
        assert command("logs", "last").stdout == "[chief:0] begun\n"
        assert runs.prune(days=0) == []
        follow = [sys.executable, "-m", "akrunner", "logs", "last", "--follow", "--task", "chief:0"]
        with hosts.Popen(follow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
            assert following.stdout is not None and following.stderr is not None
            assert following.stdout.readline() == "begun\n"
            until.touch()
            assert following.stdout.readline() == "done\n"
            assert following.wait(ENDS) == 1 and "akrunner: r1 failed: [chief:0] raised ValueError" in following.stderr.read()
        assert job.wait(ENDS) == 1


def test_a_host_that_was_killed_leaves_a_lost_run_with_its_logs(
    leaves_nothing: Path, script: Script, table: str, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "akrunner", "run", script(WAITS), "-i", table, "-q", "-p", "until=/never"]
    with hosts.Popen(words, stderr=subprocess.DEVNULL) as job:
        wait_for(lambda: (found := newest()) and found.metrics and list(found.logs()))
        job.send_signal(signal.SIGKILL)
        job.wait(ENDS)
    found = runs.get("last")
    assert found.state == "lost" and found.ended is not None and found.ended <= time.time()
    assert list(found.logs()) == ["[chief:0] begun"] and found.metrics == {"chief:0": {"step": 7, "loss": 0.5}}
    assert command("logs", "last", "-f").returncode == 1
    assert runs.prune(days=0) == ["r1"]
    # what the job has left is removed by its guard
    wait_for(lambda: not os.listdir(leaves_nothing))


def test_a_job_that_is_stopped_says_so(leaves_nothing: Path, script: Script, table: str) -> None:
    words = [sys.executable, "-m", "akrunner", "run", script(WAITS), "-i", table, "-q", "-p", "until=/never"]
    with hosts.Popen(words, stderr=subprocess.PIPE, text=True) as job:
        wait_for(lambda: (found := newest()) and found.metrics)
        job.send_signal(signal.SIGTERM)
        job.wait(ENDS)
    assert runs.get("last").state == record.STOPPED
    assert command("logs", "last", "-f").returncode == 143


def test_runs_of_a_program(leaves_nothing: Path, script: Script, table: str) -> None:
    path = script(REPORTS)
    result = akrunner.run(path, pa.table({"a": [1, 2, 3]}))
    assert result.run is not None and runs.get(result.run).left_out == {"source": "it was a pyarrow.Table of a Python program"}
    with pytest.raises(akrunner.ConfigError, match="r1 cannot be repeated as it was: give source="):
        runs.rerun(result.run)
    again = runs.rerun(result.run, source=table)
    assert again.stats.rows_in == 20 and again.run == "r2"
    with pytest.raises(akrunner.ScriptFailedError) as failed:
        akrunner.run(path, table, user_params={"fails": 1})
    assert vars(failed.value)["run"] == "r3" and runs.get("last").failure is not None
    assert akrunner.run(path, table, keep_run=False).run is None and len(runs.listed()) == 3


def test_a_stream_ends_and_is_kept(leaves_nothing: Path, script: Script) -> None:
    path = script(
        "def main(task_config):\n    for batch in task_config.batches(2):\n        task_config.output_writer.write_batch({'id': batch['a']})\n"
    )
    with akrunner.stream(path, [{"a": 1}, {"a": 2}], output_schema="id bigint") as job:
        assert sum(batch.num_rows for batch in job) == 2
    found = runs.get(str(job.run))
    assert (found.state, found.verb, found.rows) == ("succeeded", "stream", (2, 2))
    with akrunner.stream(path, ({"a": number} for number in range(10**9)), output_schema="id bigint") as job:
        next(job)
    assert runs.get(str(job.run)).state == record.STOPPED


def test_a_home_that_cannot_be_written_is_one_warning(
    leaves_nothing: Path, script: Script, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", table)
    done = command("run", script(REPORTS), "-i", table)
    assert done.returncode == 0 and done.stderr.count("this run is not kept") == 1
    assert command("runs").stderr == "no run is kept yet\n"
    monkeypatch.setenv("AKRUNNER_KEEP_RUN", "0")
    assert "not kept" not in command("run", script(REPORTS), "-i", table).stderr
