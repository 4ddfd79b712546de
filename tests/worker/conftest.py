"""Every real interpreter that is there: prepared by `scripts/test --matrix` in .envs, or found by pyenv and on PATH."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn, Optional

import pytest

from akrunner.errors import PythonEnvError
from akrunner.launch.interpreters import Interpreter, probe

ROOT = Path(__file__).parents[2]
MATRIX = ["tf1.15", "tf2.3", "newest"]
NOT_RUN: "set[str]" = set()


def bare(version: str) -> Optional[str]:
    """A Python of this version, whatever is installed in it. A shim on PATH may be there and not run, so each is asked."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates = sorted(glob.glob(f"{pyenv}/versions/{version}*/bin/python"))
    candidates += [path for path in [shutil.which(f"python{version}")] if path]
    candidates += [path for path in [str(ROOT / ".envs" / "tf1.15" / "bin" / "python")] if version == "3.7"]
    for path in candidates:
        done = subprocess.run([path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip() == str(tuple(map(int, version.split(".")))):
            return path
    return None


def prepared(name: str) -> Optional[Interpreter]:
    """The matrix's environment of this name, None when it was not prepared."""
    path = ROOT / ".envs" / name / "bin" / "python"
    try:
        found = probe(str(path)) if path.exists() else None
    except PythonEnvError:
        return None
    return found if found is not None and found.tensorflow else None


@pytest.fixture
def python37() -> str:
    path = bare("3.7")
    if path is None:
        not_run("Python 3.7", "no such interpreter found by pyenv or on PATH")
    return path


@pytest.fixture(params=MATRIX)
def matrix_python(request: pytest.FixtureRequest) -> Interpreter:
    found = prepared(request.param)
    if found is None:
        not_run(f"TensorFlow {request.param}", "run scripts/test --matrix to prepare it")
    return found


def not_run(what: str, why: str) -> NoReturn:
    NOT_RUN.add(f"{what}: {why}")
    pytest.skip(f"{what}: {why}")


__all__ = ["NOT_RUN"]
