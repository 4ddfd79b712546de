"""What a type checker says of a user's program: nothing of what is right, and each line that is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import akrunner

pytestmark = pytest.mark.slow

PROGRAM = """\
from typing import List

import akrunner


def score(task_config: object) -> None: ...


def right() -> None:
    result = akrunner.run("train.py", "iris.csv", output_schema="id bigint, p double", num_workers=2)
    names: List[str] = result.stats.bound.split() if result.stats.bound else []
    print(names, result.to_pandas())
    akrunner.run(score, {"x": [1.0]}, output_schema={"y": float})
    with akrunner.stream("score.py", [{"x": 1}], input_schema="x bigint", output_schema="y double") as job:
        for batch in job:
            print(batch.num_rows)
    model = akrunner.train("train.py", "iris.csv").model
    assert model is not None
    akrunner.predict(model, "iris.csv", output_schema="p double", num_workers=2)
    with akrunner.LocalPredictor("model.zip") as predictor:
        predictor.predict({"x": 1.0})
    try:
        akrunner.pai("PAI -name tensorflow1150 -Dscript=a.py;")
    except akrunner.ScriptFailedError as e:
        print(e.failure)


def wrong() -> None:
    akrunner.run("train.py", "iris.csv", num_worker=2)  # num_worker
    akrunner.run("train.py", "iris.csv", num_workers="2")  # num_workers
    akrunner.run()  # script
    akrunner.train("train.py", "iris.csv").modle  # modle
    akrunner.predict("model.zip", "iris.csv", num_ps=1)  # num_ps
    akrunner.runn("train.py", "iris.csv")  # runn
    akrunner.ScriptFailed  # ScriptFailed
    akrunner.pai(file="a.sh", argument=["x"])  # argument
    akrunner.stream("score.py", "x.jsonl", timeout="5")  # timeout
"""


def test_mypy_knows_every_public_name(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports", "program.py"]
    package = Path(akrunner.__file__).parent
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    told = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300).stdout
    wrong = {number: line.rpartition("# ")[2] for number, line in enumerate(PROGRAM.splitlines(), 1) if "  # " in line}
    errors = {int(number): text for number, text in re.findall(r"program\.py:(\d+): error: (.*)", told)}
    assert sorted(errors) == sorted(wrong), told
    for number, name in wrong.items():
        assert f'"{name}"' in errors[number], told
    # without it a checker takes all of the package for Any
    assert (package / "py.typed").exists()
