"""Finds the interpreter that the tasks run under, and what is installed in it. TensorFlow is looked for here, but never
imported.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akrunner.checks import nearest_file
from akrunner.errors import PythonEnvError
from akrunner.launch import cache, environments
from akrunner.launch.asking import ask
from akrunner.wire.near import nearest

_PROBE = """
import importlib.util, json, sys, sysconfig
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
def pyflink():
    told = version("apache-flink") if found("pyflink") else ""
    if found("pyflink") and not told:
        try:
            from pyflink.version import __version__ as told
        except Exception:
            pass
    return told
print(json.dumps({"python": list(sys.version_info[:3]), "executable": sys.executable,
    "numpy": version("numpy"), "protobuf": version("protobuf"), "site": sysconfig.get_path("purelib"),
    "tensorflow": (version("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly") or "unknown") if found("tensorflow") else "",
    "tf_keras": version("tf-keras") if found("tf_keras") else "", "pyflink": pyflink()}))
"""
_PROBE_SECONDS = 60.0
_PROBES = "probes.json"
#: the least version of Python that tasks run under
OLDEST = (3, 7)


@dataclass(frozen=True)
class Interpreter:
    """A Python that can run tasks.

    Attributes:
        path: the executable.
        python: its version, (3, 11, 7).
        tensorflow: TensorFlow's version; "unknown" if TensorFlow is there and its version is not; "" if it is not there.
        tf_keras, numpy, protobuf: their versions; "" if they are not there.
    """

    path: str
    python: tuple[int, ...]
    tensorflow: str
    tf_keras: str
    numpy: str = ""
    protobuf: str = ""


def resolve(python_env: str | None, keras: str | None = None) -> Interpreter:
    """Return the interpreter that a job asks for.

    Args:
        python_env: the path of an interpreter, or of a venv or conda directory; a packed environment, local or a URL; a name:
            tf1.15, tf2.3, tf2; None: the interpreter of this process.
        keras: "legacy" if tf-keras must be there.
    Raises:
        PythonEnvError: it is missing, does not run, is too old, or has no TensorFlow.
    """
    found = asked_for(python_env)
    if found.python < OLDEST:
        raise PythonEnvError(f"python_env: {found.path} is Python {_dotted(found.python)}; 3.7 is the oldest supported")
    if not found.tensorflow:
        raise PythonEnvError(
            f"python_env: {found.path} (Python {_dotted(found.python)}) has no TensorFlow. Install it there "
            f"(`{installing(found.path, 'tensorflow')}`), or name an interpreter that has it with python_env= "
            "(--python-env); `akrunner env create tf2` makes one, which is then called tf2"
        )
    if keras == "legacy" and not found.tf_keras and _needs_tf_keras(found.tensorflow):
        minor = ".".join(found.tensorflow.split(".")[:2])
        raise PythonEnvError(
            f"keras='legacy' needs tf-keras of TensorFlow's own minor version in {found.path}: "
            f"`{installing(found.path, f'tf-keras=={minor}.*')}`"
        )
    return found


def installing(path: str, package: str) -> str:
    """Return the command that installs a package into an interpreter's environment: with the tool that has made the
    environment, if that has left a mark there, and with pip otherwise.

    Args:
        path: the interpreter.
        package: as pip takes it.
    """
    package = shlex.quote(package)
    # the interpreter's own path, not where a link of a venv leads
    home = Path(path).parent.parent
    if (home / "uv-receipt.toml").exists():
        # a tool that uv installed has only the packages that its last `install` has named
        return (
            "uv tool install 'akrunner[tf]'" if package == "tensorflow" else f"uv tool install 'akrunner[tf]' --with {package}"
        )
    if (home / "pipx_metadata.json").exists():
        return f"pipx inject {home.name} {package}"
    if _has_line(home / "pyvenv.cfg", "uv = ") and not any(home.glob("lib/python*/site-packages/pip")):
        return f"uv pip install --python {path} {package}"
    return f"{path} -m pip install {package}"


def completing(path: str) -> str:
    """Return the command that installs the packages that akrunner lacks in an interpreter's environment, in versions that fit.

    Args:
        path: the interpreter that runs akrunner.
    """
    home = Path(path).parent.parent
    if (home / "uv-receipt.toml").exists():
        return "uv tool upgrade --reinstall akrunner"
    if (home / "pipx_metadata.json").exists():
        return f"pipx reinstall {home.name}"
    return installing(path, "akrunner")


def _has_line(path: Path, begins: str) -> bool:
    try:
        return any(line.startswith(begins) for line in path.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):
        return False


def asked_for(python_env: str | None, seconds: float = _PROBE_SECONDS, remember: bool = True) -> Interpreter:
    """Return the interpreter that a job asks for, whatever is installed in it.

    Args:
        python_env: as `resolve`.
        seconds, remember: as `probe`.
    Raises:
        PythonEnvError: it is missing or does not run.
    """
    if python_env is None:
        return _this()
    if python_env in environments.RECIPES:
        return named(environments.RECIPES[python_env], seconds, remember)
    if environments.is_packed(python_env):
        return probe(environments.python_in(environments.unpacked(python_env)), seconds, remember)
    return probe(_executable(python_env), seconds, remember)


def named(recipe: environments.Recipe, seconds: float = _PROBE_SECONDS, remember: bool = True) -> Interpreter:
    """Return the interpreter that a name stands for.

    Args:
        seconds, remember: as `probe`.
    Raises:
        PythonEnvError: there is none; the error gives the command that creates one.
    """
    for path in environments.candidates(recipe):
        try:
            interpreter = probe(path, seconds, remember)
        except PythonEnvError:
            continue
        if interpreter.tensorflow.startswith(recipe.tensorflow):
            return interpreter
    variable = f", or name one with {recipe.variable}=DIRECTORY in the environment" if recipe.variable else ""
    raise PythonEnvError(
        f"python_env={recipe.name!r}: no interpreter with TensorFlow {recipe.tensorflow}* was found; create one with "
        f"`akrunner env create {recipe.name}`{variable}"
    )


def probe(path: str, seconds: float = _PROBE_SECONDS, remember: bool = True) -> Interpreter:
    """Ask an interpreter what it is; each executable is asked once, unless its file changes.

    Args:
        seconds: the time it may take to answer.
        remember: whether to keep the answer in the cache; False: nothing is written anywhere.
    Raises:
        PythonEnvError: it does not run.
    """
    try:
        identity = _identity(path)
    except OSError as e:
        raise PythonEnvError(f"python_env: {path}: {e.strerror}") from None
    try:
        return _interpreter(path, _now(path, *identity, seconds, remember))
    except OSError as e:
        raise PythonEnvError(f"python_env: {path} does not run: {e}") from None
    except ValueError as e:
        code, said = e.args
        raise PythonEnvError(f"python_env: {path} is not a Python that runs (exit code {code}): {said}") from None


def pyflink_of(path: str) -> str:
    """Return the version of an interpreter's PyFlink, such as "2.3.0"; "" if it has none. One that has it is asked once, as by `probe`.

    Raises:
        OSError: it does not run.
        ValueError: it is not a Python that runs.
    """
    asked = path, *_identity(path), _PROBE_SECONDS, True
    # it may have been installed since
    return str(_now(*asked)["pyflink"] or _answer(*asked)["pyflink"])


def _identity(path: str) -> tuple[int, int]:
    """Return when an executable was changed, and its inode. Raises: OSError: it is not there."""
    stat = os.stat(path)
    return stat.st_mtime_ns, stat.st_ino


def _now(path: str, mtime_ns: int, inode: int, seconds: float, remember: bool) -> Mapping[str, Any]:
    """Return what an interpreter says, as `_told`; it is asked again if its directory of packages has changed since it was."""
    told = _told(path, mtime_ns, inode, seconds, remember)
    if told["changed"] != _changed_at(told["site"]):
        _told.cache_clear()
        told = _told(path, mtime_ns, inode, seconds, remember)
    return told


def _changed_at(site: str) -> int:
    """Return when a directory of packages was changed; 0 if it is not there."""
    try:
        return os.stat(site).st_mtime_ns
    except OSError:
        return 0


@functools.lru_cache(maxsize=64)
def _told(path: str, mtime_ns: int, inode: int, seconds: float, remember: bool) -> Mapping[str, Any]:
    """Return what an interpreter says, now or earlier, and `changed`: when its directory of packages was. Raises: as `_answer`."""
    return _remembered(path, mtime_ns, inode) or _answer(path, mtime_ns, inode, seconds, remember)


def _answer(path: str, mtime_ns: int, inode: int, seconds: float, remember: bool) -> Mapping[str, Any]:
    """Ask an interpreter. Returns: what it says.

    Raises:
        OSError: it does not run.
        ValueError: it is not a Python that runs; the error has its exit code, and what it said.
    """
    done = ask([path, "-c", _PROBE], seconds, noted=remember)
    try:
        told: dict[str, Any] = json.loads(done.out.strip().splitlines()[-1])
        _interpreter(path, told)
        told["changed"] = _changed_at(told["site"])
    except (ValueError, LookupError, TypeError):
        said = (done.err or done.out).strip()[-600:]
        raise ValueError(done.code, said or "it said nothing") from None
    if remember:
        _remember(path, mtime_ns, inode, told)
    return told


def _interpreter(path: str, told: Mapping[str, Any]) -> Interpreter:
    versions = (str(told[name]) for name in ("tensorflow", "tf_keras", "numpy", "protobuf"))
    return Interpreter(path, tuple(told["python"]), *versions)


def _remembered(path: str, mtime_ns: int, inode: int) -> Mapping[str, Any] | None:
    """Return what the interpreter answered before, if neither its file nor its directory of packages has changed since."""
    try:
        with open(os.path.join(cache.base(), _PROBES)) as f:
            told: Mapping[str, Any] = json.load(f)[path]
        # an earlier akrunner asked for less
        if told["identity"] == [mtime_ns, inode] and told["changed"] == _changed_at(told["site"]) and "pyflink" in told:
            _interpreter(path, told)
            return told
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass
    return None


def _remember(path: str, mtime_ns: int, inode: int, told: dict[str, Any]) -> None:
    try:
        name = cache.directory(_PROBES)
        told["identity"] = [mtime_ns, inode]
        try:
            with open(name) as f:
                probes = json.load(f)
        except (OSError, ValueError, RecursionError):
            probes = {}
        probes = {**(probes if isinstance(probes, dict) else {}), path: told}
        partial = f"{name}.{os.getpid()}.partial"
        with open(partial, "w") as f:
            json.dump(probes, f, indent=1)
        os.replace(partial, name)
    except OSError:
        pass  # the interpreter is asked again next time


@functools.lru_cache(maxsize=1)
def _this() -> Interpreter:
    """Return the interpreter of this process; no other process is started."""
    version = ""
    if importlib.util.find_spec("tensorflow") is not None:
        version = _version("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly") or "unknown"
    keras = _version("tf-keras") if importlib.util.find_spec("tf_keras") is not None else ""
    return Interpreter(sys.executable, tuple(sys.version_info[:3]), version, keras, _version("numpy"), _version("protobuf"))


def _version(*names: str) -> str:
    for name in names:
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        # `found.version` parses the whole file, with the text that a package's page shows: a hundred times as long
        head = (found.read_text("METADATA") or "").partition("\n\n")[0]
        told = re.search(r"(?mi)^Version:[ \t]*(\S+)", head)
        return told[1] if told else found.version
    return ""


def _executable(python_env: str) -> str:
    path = os.path.expanduser(os.fspath(python_env))
    if os.path.isdir(path):
        return environments.python_in(path)
    if os.sep not in path:
        on_path = shutil.which(path)
        if on_path is None:
            known = ", ".join(environments.RECIPES)
            near = nearest(path, [*environments.RECIPES])
            raise PythonEnvError(
                f"python_env: there is no interpreter called {path!r} on PATH{f'{near} Give' if near else '; give'} its full "
                f"path, or a name: {known} (`akrunner env list` shows which are there)"
            )
        return on_path
    if not os.path.exists(path):
        raise PythonEnvError(f"python_env: there is no {path}{nearest_file(path)}")
    return os.path.abspath(path)


def _needs_tf_keras(tensorflow: str) -> bool:
    """Whether `tf.keras` is Keras 3 unless tf-keras takes its place, as from TensorFlow 2.16 on."""
    numbers = tensorflow.split(".")[:2]
    return not all(n.isdigit() for n in numbers) or tuple(map(int, numbers)) >= (2, 16)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
