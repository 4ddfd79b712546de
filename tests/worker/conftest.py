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
#: name -> (Python, TensorFlow) as scripts/matrix prepares it
MATRIX = {"tf1.15": ("3.7", "1.15."), "tf2.3": ("3.8", "2.3."), "newest": ("", "2.")}
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
    """The interpreter of this name with its TensorFlow: of the matrix, or one that happens to have it; None: neither."""
    python, version = MATRIX[name]
    found = [str(ROOT / ".envs" / name / "bin" / "python"), bare(python) if python else None]
    for path in found:
        try:
            interpreter = probe(path) if path and os.path.exists(path) else None
        except PythonEnvError:
            continue
        if interpreter is not None and interpreter.tensorflow and interpreter.tensorflow.startswith(version):
            return interpreter
    return None


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
