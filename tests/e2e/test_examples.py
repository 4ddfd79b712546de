"""The examples, run as they stand. (Blocks of README.md and docs/ are run by tests/docs.)"""

from __future__ import annotations

import json
import re
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests import hosts

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]


def accuracy(text: str) -> float:
    found = re.search(r"accuracy: ([\d.]+)", text)
    assert found, text
    return float(found.group(1))


def python(*arguments: str, cwd: Path) -> str:
    done = hosts.run([sys.executable, *arguments], cwd=cwd, stdin=hosts.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.warm(keras="legacy")
def test_iris(leaves_nothing: Path, tmp_path: Path) -> None:
    out = python(str(ROOT / "examples" / "iris" / "run.py"), cwd=tmp_path)
    assert accuracy(out) >= 0.9 and "rows of each worker: [75, 75]" in out


def test_digits(leaves_nothing: Path, tmp_path: Path) -> None:
    out = python(str(ROOT / "examples" / "digits" / "run.py"), cwd=tmp_path)
    # a row's split is decided by a hash of its number
    assert accuracy(out) >= 0.9 and "over 341 rows it has not seen" in out


def test_packed_pictures(leaves_nothing: Path, tmp_path: Path) -> None:
    out = python(str(ROOT / "examples" / "pack" / "run.py"), cwd=tmp_path)
    # a picture's split is decided by its name, so that the shares are not exact, and the same each time
    assert "packed {'train': 94, 'test': 26}" in out and float(re.findall(r"'accuracy': ([\d.]+)", out)[0]) >= 0.7


def test_online_learning(leaves_nothing: Path, tmp_path: Path) -> None:
    out = python(str(ROOT / "examples" / "online" / "run.py"), cwd=tmp_path)
    first, last = map(float, re.findall(r"(?:first 200 rows: off by|last 200:) ([\d.]+)", out))
    changed = float(re.findall(r"row  12000: off by ([\d.]+)", out)[0])
    assert first > 0.5 and last < 0.05 < changed, out


def test_train_then_predict_then_serve(leaves_nothing: Path, tmp_path: Path) -> None:
    """The digits: a model trained, run over rows it had not seen, and asked over HTTP."""
    digits = ROOT / "examples" / "digits"
    model = str(tmp_path / "digits.zip")
    out = python(str(digits / "train_predict.py"), model, cwd=tmp_path)
    assert accuracy(out) >= 0.9 and "360 rows the model had not seen" in out
    rows = pq.read_table(digits / "digits.parquet").slice(0, 20).to_pylist()
    with hosts.Popen([sys.executable, str(digits / "serve.py"), model], stdout=hosts.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            told = server.stdout.readline()
            url = told.split()[-1]
            assert told.startswith("takes image on http://127.0.0.1:"), told
            answers = [post(url, {"image": row["image"]}) for row in rows]
            assert sum(answer["digit"] == row["label"] for answer, row in zip(answers, rows, strict=True)) >= 18
            assert "column 'image'" in post(url, {"image": [1, 2]})["error"]
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(60)
    assert server.returncode == 0


def post(url: str, body: Any) -> Any:
    try:
        with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as e:
        with e:
            return json.load(e)
