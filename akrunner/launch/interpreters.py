"""Which interpreter the tasks run under, and what is in it. TensorFlow is looked for, never imported, here."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Optional, Tuple

from akrunner.errors import PythonEnvError

_PROBE = """
import importlib.util, json, sys
def version(*names):
    try:
        from importlib.metadata import version as of
    except ImportError:
        from pkg_resources import get_distribution
        of = lambda name: get_distribution(name).version
    for name in names:
        try:
            return of(name)
        except Exception:
            pass
    return ""
def found(name):
    return importlib.util.find_spec(name) is not None
print(json.dumps({"python": list(sys.version_info[:3]), "executable": sys.executable,
    "tensorflow": (version("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly") or "unknown") if found("tensorflow") else "",
    "tf_keras": version("tf-keras") if found("tf_keras") else ""}))
"""
_PROBE_SECONDS = 60
_OLDEST = (3, 7)


@dataclass(frozen=True)
class Interpreter:
    """A Python that can run tasks.

    Attributes:
        path: the executable.
        python: its version, (3, 11, 7).
        tensorflow: TensorFlow's version, "unknown" when it does not say, empty when there is none.
        tf_keras: tf-keras's version, empty when there is none.
    """

    path: str
    python: Tuple[int, ...]
    tensorflow: str
    tf_keras: str


def resolve(python_env: Optional[str], keras: Optional[str] = None) -> Interpreter:
    """The interpreter a job asks for.

    Args:
        python_env: path of an interpreter, or of a venv or conda directory; None: this one.
        keras: "legacy" when tf-keras must be there.
    Raises: PythonEnvError: it is missing, does not run, is too old, or has no TensorFlow.
    """
    found = _this() if python_env is None else probe(_executable(python_env))
    if found.python < _OLDEST:
        raise PythonEnvError(f"python_env: {found.path} is Python {_dotted(found.python)}; 3.7 is the oldest supported")
    if not found.tensorflow:
        raise PythonEnvError(
            f"python_env: {found.path} (Python {_dotted(found.python)}) has no TensorFlow. Install it there "
            f"(`{found.path} -m pip install tensorflow`), or name an interpreter that has it with python_env= "
            "(--python-env)"
        )
    if keras == "legacy" and not found.tf_keras and _needs_tf_keras(found.tensorflow):
        minor = ".".join(found.tensorflow.split(".")[:2])
        raise PythonEnvError(
            f"keras='legacy' needs tf-keras of TensorFlow's own minor version in {found.path}: "
            f"`{found.path} -m pip install 'tf-keras=={minor}.*'`"
        )
    return found


def probe(path: str) -> Interpreter:
    """Ask an interpreter what it is; asked once per executable file as it is.

    Raises: PythonEnvError: it does not run.
    """
    try:
        stat = os.stat(path)
    except OSError as e:
        raise PythonEnvError(f"python_env: {path}: {e.strerror}") from None
    return _probe(path, stat.st_mtime_ns, stat.st_ino)


@functools.lru_cache(maxsize=64)
def _probe(path: str, mtime_ns: int, inode: int) -> Interpreter:
    try:
        done = subprocess.run(
            [path, "-c", _PROBE], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PROBE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise PythonEnvError(f"python_env: {path} does not run: {e}") from None
    try:
        told = json.loads(done.stdout.strip().splitlines()[-1])
        return Interpreter(path, tuple(told["python"]), told["tensorflow"], told["tf_keras"])
    except (ValueError, LookupError, TypeError):
        said = (done.stderr or done.stdout).strip()[-600:]
        raise PythonEnvError(
            f"python_env: {path} is not a Python that runs (exit code {done.returncode}): {said or 'it said nothing'}"
        ) from None


@functools.lru_cache(maxsize=1)
def _this() -> Interpreter:
    """This interpreter, without a process."""
    version = ""
    if importlib.util.find_spec("tensorflow") is not None:
        version = _version("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly") or "unknown"
    keras = _version("tf-keras") if importlib.util.find_spec("tf_keras") is not None else ""
    return Interpreter(sys.executable, tuple(sys.version_info[:3]), version, keras)


def _version(*names: str) -> str:
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def _executable(python_env: str) -> str:
    path = os.path.expanduser(os.fspath(python_env))
    if os.path.isdir(path):
        for name in ("python", "python3"):
            inside = os.path.join(path, "bin", name)
            if os.path.exists(inside):
                return os.path.abspath(inside)
        raise PythonEnvError(f"python_env: {path} is a directory without bin/python; name a venv, or an interpreter")
    if os.sep not in path:
        on_path = shutil.which(path)
        if on_path is None:
            raise PythonEnvError(f"python_env: there is no interpreter called {path!r} on PATH; give its full path")
        return on_path
    if not os.path.exists(path):
        raise PythonEnvError(f"python_env: there is no {path}")
    return os.path.abspath(path)


def _needs_tf_keras(tensorflow: str) -> bool:
    """From TensorFlow 2.16 on, `tf.keras` is Keras 3 unless tf-keras takes its place."""
    numbers = tensorflow.split(".")[:2]
    return not all(n.isdigit() for n in numbers) or tuple(map(int, numbers)) >= (2, 16)


def _dotted(version: Tuple[int, ...]) -> str:
    return ".".join(map(str, version))
