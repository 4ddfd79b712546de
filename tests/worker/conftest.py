"""Every real interpreter that is there: prepared by `scripts/test --matrix` in .envs, or found by pyenv and on PATH."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess

import pytest

from akrunner.errors import PythonEnvError
from akrunner.launch.interpreters import Interpreter, probe
from tests.conftest import ENVS, not_run

#: name -> (Python, TensorFlow) as scripts/matrix prepares it
MATRIX: dict[str, tuple[str, str]] = {"tf1.15": ("3.7", "1.15."), "tf2.3": ("3.8", "2.3."), "newest": ("", "2.")}
#: how to get a Python of a version
_PYTHON = "no Python {0} below pyenv's versions or on PATH; `pyenv install {0}`, or put a python{0} on PATH"


def bare(version: str) -> str | None:
    """A Python of this version, whatever is installed in it. A shim on PATH may be there and not run, so each is asked."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates = sorted(glob.glob(f"{pyenv}/versions/{version}*/bin/python"))
    candidates += [path for path in [shutil.which(f"python{version}")] if path]
    candidates += [str(ENVS / name / "bin" / "python") for name, (python, _) in MATRIX.items() if python == version]
    asked = "import sys; print(sys.version_info[:2])"
    for path in filter(os.path.exists, candidates):
        try:
            done = subprocess.run([path, "-c", asked], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout.strip() == str(tuple(map(int, version.split(".")))):
            return path
    return None


def prepared(name: str) -> Interpreter | None:
    """The interpreter of this name with its TensorFlow: of the matrix, or one that happens to have it; None: neither."""
    python, version = MATRIX[name]
    found = [str(ENVS / name / "bin" / "python"), bare(python) if python else None]
    for path in found:
        try:
            interpreter = probe(path) if path and os.path.exists(path) else None
        except PythonEnvError:
            continue
        if interpreter is not None and interpreter.tensorflow and interpreter.tensorflow.startswith(version):
            return interpreter
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name.startswith("test_threads"):
            # each of their jobs wants other threads, which are chosen when TensorFlow is imported
            item.add_marker("cold")


@pytest.fixture
def python37() -> str:
    path = bare("3.7")
    if path is None:
        not_run("Python 3.7", _PYTHON.format("3.7"))
    return path


@pytest.fixture(params=MATRIX)
def matrix_python(request: pytest.FixtureRequest) -> Interpreter:
    found = prepared(request.param)
    if found is None:
        not_run(f"TensorFlow {request.param}", how_to_get(request.param))
    return found


def how_to_get(name: str) -> str:
    """What to do for this name of the matrix to be run."""
    python = MATRIX[name][0]
    first = f"{_PYTHON.format(python)}, and then " if python and bare(python) is None else ""
    return f"{first}`scripts/test --matrix` prepares it"
