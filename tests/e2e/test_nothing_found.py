"""The suite where nothing optional is to be found: no other Python, no TensorFlow but its own, no Flink. It passes, and says what it left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_what_is_not_there_is_not_run_and_said(tmp_path: Path) -> None:
    only = tmp_path / "bin"
    only.mkdir()
    (only / "python3").symlink_to(sys.executable)
    environ = {
        "HOME": str(tmp_path / "home"),
        "PATH": str(only),
        "AKRUNNER_TEST_ENVS": str(tmp_path / "envs"),
        "TMPDIR": str(tmp_path),
    }
    tests = [
        "tests/worker/test_python37.py",
        "tests/worker/test_barriers.py",
        "tests/e2e/test_alink.py",
        "tests/e2e/test_disk_full.py",
    ]
    tests += ["tests/e2e/test_flink_network.py", "tests/e2e/test_flink_tables.py", "tests/e2e/test_flink_detached.py"]
    chosen = "python37 or matrix or environment or disk or network or tables or detached"
    plugins = ["--disable-plugin-autoload", "-p", "pytest_timeout", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, *tests, "-k", chosen]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    left_out = [line for line in done.stdout.splitlines() if line.startswith("NOT RUN")]
    for what, how in (
        ("Python 3.7", "pyenv install 3.7"),
        ("TensorFlow tf1.15", "scripts/test --matrix"),
        ("TensorFlow tf2.3", "pyenv install 3.8"),
        ("TensorFlow newest", "scripts/test --matrix"),
        ("Flink", "scripts/flink"),
        ("a full disk", "root"),
    ):
        assert any(f" ON {what}: " in line and how in line for line in left_out), (what, left_out)
