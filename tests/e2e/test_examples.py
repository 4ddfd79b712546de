"""The examples and the README, run as they stand."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]


def accuracy(text: str) -> float:
    found = re.search(r"accuracy: ([\d.]+)", text)
    assert found, text
    return float(found.group(1))


def python(*arguments: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_iris(leaves_nothing: Path, tmp_path: Path) -> None:
    out = python(str(ROOT / "examples" / "iris" / "run.py"), cwd=tmp_path)
    assert accuracy(out) >= 0.9 and "rows of each worker: [75, 75]" in out


def test_digits(leaves_nothing: Path, tmp_path: Path) -> None:
    assert accuracy(python(str(ROOT / "examples" / "digits" / "run.py"), cwd=tmp_path)) >= 0.9


def test_readme(leaves_nothing: Path, tmp_path: Path) -> None:
    """The thirty-second example: both ways to start it."""
    text = (ROOT / "README.md").read_text()
    script, program = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:2]
    command = re.findall(r"^akrunner run .*$", text, re.MULTILINE)[0]
    shutil.copy(ROOT / "examples" / "iris" / "iris.csv", tmp_path)
    (tmp_path / "train.py").write_text(script)
    assert "petal" not in python("-c", program, cwd=tmp_path)
    python("-m", *shlex.split(command), cwd=tmp_path)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.num_rows == 150 and table.schema.names == ["id", "p"]
    assert sorted(table["id"].to_pylist()) == list(range(1, 151))
