"""Jobs that go on when their submitter has gone: submitted, asked about and ended from the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow.csv
import pytest

import akrunner
from akrunner import detached, runs
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import cluster
from tests import hosts
from tests.conftest import ENDS, FLINK, PROGRAM, Script, need_flink, nothing_is_left

DOUBLES = """
    import time

    def main(task_config):
        print("at work in", task_config.task_type, flush=True)
        if task_config.user_params.get("fails"):
            raise ValueError("no petals")
        time.sleep(task_config.user_params.get("seconds", 0))
        for rows in task_config.batches(10):
            task_config.output_writer.write_batch({"i": rows["i"] * 2})
    """
SAVES = """
    def main(task_config):
        import tensorflow as tf

        class Doubles(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="i")])
            def __call__(self, i):
                return {"twice": i * 2}

        model = Doubles()
        tf.saved_model.save(model, task_config.saved_model_dir, signatures=model.__call__)
    """


@pytest.fixture(scope="module")
def engine(flink_cluster: cluster.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkEngine]:
    """One that keeps its process with Java."""
    need_flink(program=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TMPDIR", str(tmp_path_factory.mktemp("flink-client")))
        patched.setattr(tempfile, "tempdir", None)
        engine = FlinkEngine(flink_cluster.address, python=str(FLINK), python_executable=str(PROGRAM))
        engine.__enter__()
        engine._live_client()
    yield engine
    engine.__exit__()


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "in.csv"
    path.write_text("i\n" + "".join(f"{i}\n" for i in range(30)))
    return str(path)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return hosts.run([sys.executable, "-m", "akrunner", *words], capture_output=True, text=True, timeout=120)


def submitted(path: str, table: str, output: Path, engine: FlinkEngine, *words: str) -> str:
    """By the command line, which has gone then. Returns: the job's id."""
    flink = [
        "--engine",
        "flink",
        "--flink-master",
        engine.master,
        "--flink-python",
        str(FLINK),
        "--flink-worker-python",
        str(PROGRAM),
    ]
    schema = [
        "--output",
        str(output),
        "--output-schema",
        "i bigint",
        "--python-env",
        sys.executable,
        "--data-format",
        "columns",
    ]
    done = command("run", path, "--input", table, "--num-workers", "2", "--detach", *flink, *schema, *words)
    assert done.returncode == 0, done.stderr
    assert f"akrunner logs {done.stdout[:8]} --flink-master {engine.master}" in done.stderr
    return done.stdout.strip()


def submitted_here(path: str, table: str, output: Path, engine: FlinkEngine, **params: object) -> str:
    """By this process. Returns: the job's id."""
    options = dict(output=output, output_schema="i bigint", python_env=sys.executable, data_format="columns", num_workers=2)
    return detached.submit(path, table, engine=engine, user_params=params, **options).id


def ended(master: str, job: str) -> detached.Status:
    deadline = time.monotonic() + 60
    while not (status := detached.status(master, job)).ended:
        assert time.monotonic() < deadline, status
        time.sleep(0.1)
    return status


def nobody_hosts(running: cluster.Cluster) -> None:
    """No host's process is left there."""
    deadline = time.monotonic() + ENDS
    while left := hosts_on(running):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def hosts_on(running: cluster.Cluster) -> list[psutil.Process]:
    """Those on this cluster; others may have theirs."""
    found = []
    for process in psutil.process_iter():
        try:
            if "akrunner.detached.host" in process.cmdline() and process.environ().get("TMPDIR", "").startswith(running.folder):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def until_running(master: str, job: str) -> None:
    deadline = time.monotonic() + 60
    while not any("at work" in line for line in detached.logs(master, job)):
        assert time.monotonic() < deadline, detached.status(master, job)
        time.sleep(0.2)


def test_it_goes_on_without_its_submitter(
    flink_cluster: cluster.Cluster, leaves_nothing: Path, engine: FlinkEngine, script: Script, table: str, tmp_path: Path
) -> None:
    output = tmp_path / "out.csv"
    job = submitted(script(DOUBLES), table, output, engine, "--param", "seconds=2")
    assert not output.exists()
    waited = command("status", job[:8], "--wait", "--json", "--flink-master", engine.master)
    assert waited.returncode == 0 and json.loads(waited.stdout)["state"] == "FINISHED"
    assert sorted(pyarrow.csv.read_csv(output)["i"].to_pylist()) == [2 * i for i in range(30)]
    said = command("logs", job, "--flink-master", engine.master).stdout
    assert "[chief:0] at work in chief" in said and "[worker:0] at work in worker" in said
    assert "30 rows in, 30 rows out" in said and str(output) in said
    assert job in command("status", "--flink-master", engine.master).stdout
    # and by its run, which knows the cluster
    (kept,) = runs.listed()
    assert kept.detached is not None and (kept.state, kept.engine, kept.detached["job"]) == ("succeeded", "flink", job)
    assert command("logs", "last").stdout == said and job in command("status", "last").stdout
    nothing_is_left(flink_cluster)
    nobody_hosts(flink_cluster)


def test_a_script_that_fails_is_shown_as_if_it_had_run_here(
    flink_cluster: cluster.Cluster, leaves_nothing: Path, engine: FlinkEngine, script: Script, table: str, tmp_path: Path
) -> None:
    path = script(DOUBLES)
    job = submitted_here(path, table, tmp_path / "out.csv", engine, fails=True)
    shown = command("status", job, "--wait", "--flink-master", engine.master)
    assert shown.returncode == 1 and "FAILED" in shown.stdout
    assert "ScriptFailedError: [" in shown.stderr and "ValueError: no petals" in shown.stderr
    assert f'File "{path}", line 7, in main' in shown.stderr
    followed = command("logs", job, "--follow", "--flink-master", engine.master)
    assert (followed.returncode, followed.stderr) == (1, shown.stderr) and "at work" in followed.stdout
    assert [name for name in os.listdir(tmp_path) if "out" in name] == []
    kept = runs.get("last")
    assert (kept.state, kept.error) == ("failed", "ScriptFailedError") and "ValueError: no petals" in kept.message
    nothing_is_left(flink_cluster)


def test_it_is_cancelled(
    flink_cluster: cluster.Cluster, leaves_nothing: Path, engine: FlinkEngine, script: Script, table: str, tmp_path: Path
) -> None:
    output = tmp_path / "out.csv"
    job = submitted_here(script(DOUBLES), table, output, engine, seconds=100)
    until_running(engine.master, job)
    done = command("cancel", job, "--flink-master", engine.master)
    assert done.returncode == 0 and done.stdout == f"{job} CANCELED\n"
    nothing_is_left(flink_cluster)
    nobody_hosts(flink_cluster)
    assert not output.exists()
    told = command("status", job, "--wait", "--flink-master", engine.master)
    assert told.returncode == 143 and told.stderr == "akrunner: the job is CANCELED\n"
    # once more: it has ended already
    assert command("cancel", job, "--flink-master", engine.master).returncode == 0


def test_the_host_is_killed(
    flink_cluster: cluster.Cluster, leaves_nothing: Path, engine: FlinkEngine, script: Script, table: str, tmp_path: Path
) -> None:
    job = submitted_here(script(DOUBLES), table, tmp_path / "out.csv", engine, seconds=100)
    until_running(engine.master, job)
    (host,) = hosts_on(flink_cluster)
    os.kill(host.pid, signal.SIGKILL)
    status = ended(engine.master, job)
    assert status.error is not None and "the job's host ended with exit code -9" in status.error
    nothing_is_left(flink_cluster)
    nobody_hosts(flink_cluster)


@pytest.mark.tensorflow
def test_a_model_and_its_predictions(
    flink_cluster: cluster.Cluster, leaves_nothing: Path, engine: FlinkEngine, script: Script, table: str, tmp_path: Path
) -> None:
    """The model is of a script in a package, with another module beside it."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    path = script("from .saves import main\n", "pkg/train.py")
    script(SAVES, "pkg/saves.py")
    options = dict(python_env=sys.executable, data_format="columns", user_files=[package])
    job = detached.submit(path, [table], engine=engine, mode="train", model_out=tmp_path / "model", **options)
    assert ended(engine.master, job.id).state == "FINISHED"
    predicted = tmp_path / "predicted.csv"
    options = dict(output=predicted, output_schema="twice bigint", python_env=sys.executable, num_workers=2)
    job = detached.submit(tmp_path / "model", table, engine=engine, mode="predict", **options)
    shutil.rmtree(tmp_path / "model")
    assert ended(engine.master, job.id).state == "FINISHED"
    assert pyarrow.csv.read_csv(predicted).to_pydict() == {"i": list(range(30)), "twice": [2 * i for i in range(30)]}
    assert any("30 rows in, 30 rows out" in line for line in detached.logs(engine.master, job.id, follow=True))
    nothing_is_left(flink_cluster)


def test_a_taskmanagers_python_that_lacks_akrunners_dependencies(flink_cluster: cluster.Cluster, tmp_path: Path) -> None:
    host = [str(FLINK), "-m", "akrunner.detached.host", str(tmp_path)]
    environ = {**os.environ, "PYTHONPATH": os.getcwd()}
    (tmp_path / "order.json").write_text(
        '{"mode": "batch", "script": "a.py", "real": {}, "source": "a.csv", "arguments": {}, "files_there": true, "keeps": false}'
    )
    (tmp_path / "work").mkdir()
    with subprocess.Popen(host, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        failed = json.loads(process.stdout.readline())["failed"]
        assert process.wait(30) == 1
    assert "lacks what it needs: No module named" in failed and "--flink-worker-python" in failed


def test_what_is_wrong_is_said_before_anything_is_submitted(
    flink_cluster: cluster.Cluster, leaves_nothing: Path, engine: FlinkEngine, script: Script, table: str, tmp_path: Path
) -> None:
    path, there = script(DOUBLES), tmp_path / "there.csv"
    there.write_text("")
    good = dict(output=tmp_path / "out.csv", output_schema="i bigint")
    before = len(detached.listed(engine.master))
    for words, source, options in (
        ("a cluster that stays", table, dict(good, engine=FlinkEngine())),
        ("there is no file nowhere.csv", "nowhere.csv", good),
        ("a detached job reads files", {"i": [1]}, good),
        ("nobody is there to take its rows", table, dict(output_schema="i bigint")),
        ("needs model_out=", table, dict(mode="train")),
        ("no option 'num_worker' for run; did you mean 'num_workers'", table, dict(good, num_worker=2)),
        ("output= means nothing for train: it is an option of run, predict", table, dict(good, mode="train")),
        ("nobody is there to take its rows", table, dict(mode="predict")),
        ("is a script, and no SavedModel: akrunner.run", table, dict(mode="predict", output=tmp_path / "out.csv")),
        ("is for a PyFlink program", table, dict(good, mode="stream")),
        ("exists; give overwrite", table, dict(good, output=there)),
        ("the job needs 99 task slots", table, dict(good, num_workers=99)),
        ("no Flink cluster answers", table, dict(good, engine=FlinkEngine("127.0.0.1:1", python=str(FLINK)))),
    ):
        with pytest.raises(akrunner.ConfigError, match=words):
            detached.submit(path, source, **{"engine": engine, **options})  # type: ignore[arg-type]
    assert len(detached.listed(engine.master)) == before
    with pytest.raises(akrunner.ConfigError, match="no id of akrunner's jobs begins so"):
        detached.status(engine.master, "nothing")
    for words in (["status"], ["logs", "0000"], ["status", "--wait", "--flink-master", engine.master]):
        done = command(*words)
        assert done.returncode == 2 and "akrunner: " in done.stderr
    done = command(
        "run", path, "--input", table, "--detach", "--output", str(tmp_path / "x.csv"), "--output-schema", "i bigint"
    )
    assert done.returncode == 2 and "--engine flink --flink-master" in done.stderr
