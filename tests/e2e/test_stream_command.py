"""`akrunner stream` as a person uses it: lines in, lines out, while both go on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import hosts
from tests.conftest import Script

pytestmark = pytest.mark.slow

DOUBLE = """
def main(task_config):
    import tensorflow as tf
    spec = task_config.feature_spec
    for row in task_config.dataset_fn().batch(1).map(lambda b: tf.io.parse_example(b, spec)):
        task_config.output_writer.write_batch({"id": row["id"], "p": row["x"] * 2.0})
"""
FOREVER = """
import itertools

def main(task_config):
    for i in itertools.count():
        task_config.output_writer.write_batch({"id": [i], "p": [0.5]})
"""
SCHEMAS = ["--output-schema", "id bigint, p double", "--input-schema", "id bigint, x double"]


def command(script: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "akrunner", "stream", script, *SCHEMAS, *more]


def line(i: int) -> str:
    return json.dumps({"id": i, "x": i / 4}) + "\n"


@pytest.mark.tensorflow
def test_a_growing_file_until_ctrl_c(leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1))
    pipe = subprocess.PIPE
    with hosts.Popen(command(script(DOUBLE), "-i", str(path), "--follow"), stdout=pipe, stderr=pipe, text=True) as job:
        assert job.stdout is not None
        for i in range(1, 4):
            assert json.loads(job.stdout.readline()) == {"id": i, "p": i / 2}
            with open(path, "a") as f:
                f.write(line(i + 1))
        job.send_signal(signal.SIGINT)
        _, err = job.communicate(timeout=60)
    assert job.returncode == 130 and "every task was stopped" in err and "Traceback" not in err


@pytest.mark.tensorflow
def test_stdin_to_a_file(leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    text = "".join(map(line, range(100)))
    done = hosts.run(command(script(DOUBLE), "-i", "-", "-o", str(out)), input=text, capture_output=True, text=True)
    assert done.returncode == 0 and "100 rows in, 100 rows out" in done.stderr and done.stdout == ""
    assert out.read_text().splitlines()[:2] == ['"id","p"', "0,0"] and len(out.read_text().splitlines()) == 101


def test_a_reader_that_has_seen_enough(leaves_nothing: Path, script: Script) -> None:
    with hosts.Popen(
        command(script(FOREVER), "-i", "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as job:
        assert job.stdout is not None and job.stderr is not None
        assert json.loads(job.stdout.readline()) == {"id": 0, "p": 0.5}
        job.stdout.close()
        assert job.wait(60) == 0 and b"Traceback" not in job.stderr.read()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["-i", "a.csv", "-i", "b.csv"], "reads one --input"),
        (["-i", "-", "-o", "out.parquet", "--output-live"], "writes .jsonl or .csv"),
        (["-i", "-", "-o", "out.txt"], "does not say its format"),
        (["-i", "-", "--output-live"], "needs --output"),
        (["-i", "a.jsonl", "--follow", "-o", "out.jsonl"], "add --output-live"),
        (["-i", "-", "-o", "no/such/out.jsonl"], "there is no directory"),
        (["-i", "-", "-o", "no/such/out.jsonl", "--output-live"], "there is no directory"),
        (["-i", "nowhere.jsonl", "--follow"], "No such file"),
        (["-i", "-", "--input-format", "parquet"], "lines are read as jsonl or csv"),
        (["-i", "-", "--model-out", "m"], "It is an option of akrunner train."),
    ],
)
def test_usage(leaves_nothing: Path, script: Script, more: list[str], words: str) -> None:
    done = hosts.run(command(script(FOREVER), *more), input="", capture_output=True, text=True)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not os.path.exists("out.parquet")


@pytest.mark.parametrize(
    "more",
    [
        ["-i", "in.jsonl", "-o", "in.jsonl"],
        ["-i", "in.jsonl", "-o", "./here/in.jsonl", "--output-live"],
        ["-i", "in.jsonl", "-o", "in.jsonl", "--output-live", "--follow"],
        ["-i", "-", "-o", "in.jsonl", "--output-live"],
        ["-i", "*.jsonl", "-o", "more.jsonl"],
    ],
)
def test_an_output_is_no_input(more: list[str], leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(line(1))
    (tmp_path / "here").symlink_to(tmp_path)
    with open(tmp_path / "in.jsonl") as read:
        made = command(script(FOREVER), *more, "--overwrite")
        done = hosts.run(made, stdin=read, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "output:" in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert (tmp_path / "in.jsonl").read_text() == line(1)


LIKE_A_TAIL = """
def main(task_config):
    for row in task_config.batches(1):
        if row["id"][0] == 3:
            raise RuntimeError("three")
        task_config.output_writer.write_batch({"id": row["id"], "p": row["x"]})
"""


def lines_of(path: Path) -> list[int]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


_SENT = {"interrupted": signal.SIGINT, "terminated": signal.SIGTERM, "hung up": signal.SIGHUP, "quit": signal.SIGQUIT}


@pytest.mark.parametrize("how", ["fails", *_SENT, "ends"])
@pytest.mark.parametrize("live", [False, True], ids=["at the end", "live"])
def test_an_output_of_a_stream(how: str, live: bool, leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    """It is there when the stream has ended well; or, written in place, as far as it came."""
    out = tmp_path / "o" / "out.jsonl"
    out.parent.mkdir()
    out.write_text('{"id": 99}\n')
    made = command(script(LIKE_A_TAIL), "-i", "-", "-o", str(out), "--data-format", "columns")
    made += ["--overwrite", "--output-live"] if live else ["--overwrite"]
    with hosts.Popen(made, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        assert job.stdin is not None and job.stderr is not None
        job.stdin.write(line(1) + line(2))
        job.stdin.flush()
        deadline = time.monotonic() + 60
        while live and lines_of(out) != [1, 2] and time.monotonic() < deadline:
            time.sleep(0.02)
        assert lines_of(out) == ([1, 2] if live else [99])
        if how == "fails":
            job.stdin.write(line(3))
        elif how in _SENT:
            while not live and not list(out.parent.glob(".*.partial")) and time.monotonic() < deadline:
                time.sleep(0.02)
            job.send_signal(_SENT[how])
        _, err = job.communicate(timeout=30)
    assert job.returncode == {"fails": 1, "ends": 0}.get(how, 128 + _SENT.get(how, 0)), err
    assert os.listdir(out.parent) == ["out.jsonl"]
    assert lines_of(out) == ([1, 2] if live or how == "ends" else [99])
    if how != "ends":
        said = (
            f"2 rows written so far are in {out}" if live else f"{out} was not written: it comes when the stream has ended well"
        )
        assert said in err
    # a job that failed keeps its logs
    for kept in leaves_nothing.glob("akrunner-*") if how == "fails" else ():
        shutil.rmtree(kept)


def test_a_disk_that_is_full_behind_stdout(leaves_nothing: Path, script: Script) -> None:
    with open("/dev/full", "wb") as full:
        made = command(script(FOREVER), "-i", "-")
        done = subprocess.run(made, input="", stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 4 and "WriteError: output: cannot write stdout: the disk is full" in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
