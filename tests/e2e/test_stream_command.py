"""`akrunner run --mode stream` as a person uses it: lines in, lines out, while both go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from tests.conftest import Script

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


def command(script: str, *more: str) -> List[str]:
    return [sys.executable, "-m", "akrunner", "run", script, "--mode", "stream", *SCHEMAS, *more]


def line(i: int) -> str:
    return json.dumps({"id": i, "x": i / 4}) + "\n"


@pytest.mark.tensorflow
def test_a_growing_file_until_ctrl_c(leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line(1))
    pipe = subprocess.PIPE
    with subprocess.Popen(command(script(DOUBLE), "-i", str(path), "--follow"), stdout=pipe, stderr=pipe, text=True) as job:
        assert job.stdout is not None
        for i in range(1, 4):
            assert json.loads(job.stdout.readline()) == {"id": i, "p": i / 2}
            with open(path, "a") as f:
                f.write(line(i + 1))
        job.send_signal(signal.SIGINT)
        _, err = job.communicate(timeout=20)
    assert job.returncode == 130 and "every task was stopped" in err and "Traceback" not in err


@pytest.mark.tensorflow
def test_stdin_to_a_file(leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    text = "".join(map(line, range(100)))
    done = subprocess.run(command(script(DOUBLE), "-i", "-", "-o", str(out)), input=text, capture_output=True, text=True)
    assert done.returncode == 0 and "100 rows in, 100 rows out" in done.stderr and done.stdout == ""
    assert out.read_text().splitlines()[:2] == ['"id","p"', "0,0"] and len(out.read_text().splitlines()) == 101


def test_a_reader_that_has_seen_enough(leaves_nothing: Path, script: Script) -> None:
    with subprocess.Popen(
        command(script(FOREVER), "-i", "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as job:
        assert job.stdout is not None and job.stderr is not None
        assert json.loads(job.stdout.readline()) == {"id": 0, "p": 0.5}
        job.stdout.close()
        assert job.wait(20) == 0 and b"Traceback" not in job.stderr.read()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["-i", "a.csv", "-i", "b.csv"], "reads one --input"),
        (["-i", "-", "-o", "out.parquet"], "written to .jsonl or .csv"),
        (["-i", "nowhere.jsonl", "--follow"], "No such file"),
        (["-i", "-", "--input-format", "parquet"], "lines are read as jsonl or csv"),
        (["-i", "-", "--model-out", "m"], "needs --mode train"),
    ],
)
def test_usage(leaves_nothing: Path, script: Script, more: List[str], words: str) -> None:
    done = subprocess.run(command(script(FOREVER), *more), input="", capture_output=True, text=True)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not os.path.exists("out.parquet")
