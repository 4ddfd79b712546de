"""The interpreter of a job's tasks, and whether requirements can be installed for it."""

from __future__ import annotations

import os
import re

from akrunner.checks import check_path, nearest_file
from akrunner.errors import ConfigError, PythonEnvError, UserFilesError
from akrunner.launch import environments, fetch, interpreters
from akrunner.prepare.arguments import PathLike
from akrunner.spec import Capabilities


def interpreter_for(python_env: PathLike | None, engine: Capabilities, keras: str | None = None) -> interpreters.Interpreter:
    """Return the tasks' interpreter.

    If the tasks run on a cluster's machines, an interpreter that is only there is examined there, and a packed environment is
    unpacked there; only the path of such an interpreter is known here.
    Raises: PythonEnvError: there is no such interpreter, or it cannot be used.
    """
    named = optional_path("python_env", python_env)
    if named is not None and not engine.here:
        if os.path.isabs(named) and not os.path.exists(named):
            return interpreters.Interpreter(named, (), "", "")
        if environments.is_packed(named) and engine.unpacks:
            path = named if fetch.is_url(named) else os.path.abspath(os.path.expanduser(named))
            return interpreters.Interpreter(path, (), "", "")
    return interpreters.resolve(named, keras)


def environment_of(name: str) -> interpreters.Interpreter:
    """Return the interpreter of a named environment.

    Raises: PythonEnvError: there is none; the error has the command that creates it.
    """
    return interpreters.named(environments.recipe_of(name))


def instead_of(name: str, other: str) -> interpreters.Interpreter | None:
    """Return the interpreter to use if there is no environment `name`: the one of `other`; None if `name` exists.

    Raises: PythonEnvError: the environment variable for `name` is set to something that is no such environment, which must not
        be ignored; or neither environment exists.
    """
    wanted = environments.RECIPES[name]
    try:
        interpreters.named(wanted)
        return None
    except PythonEnvError as e:
        said = os.environ.get(wanted.variable) if wanted.variable else None
        if said:
            raise PythonEnvError(
                f"{wanted.variable}={said} is no environment with TensorFlow {wanted.tensorflow}*: {e}"
            ) from None
        try:
            return interpreters.named(environments.RECIPES[other])
        except PythonEnvError:
            raise e from None


#: a package as pip takes it, with or without a version; `_PACKAGES`: several of them
_PACKAGE = r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[\w,. -]*\])?(\s*[~=!<>]=?=?\s*[\w.*+!-]+(\s*,\s*[~=!<>]=?=?\s*[\w.*+!-]+)*)?"
_PACKAGES = re.compile(rf"{_PACKAGE}([\s,]+{_PACKAGE})*")
#: endings of files that list packages
_LISTS = (".txt", ".in", ".pip", ".toml", ".cfg", ".lock", ".yml", ".yaml")


def check_requirements(requirements: str, python: str) -> None:
    """Check a requirements file.

    Raises: ConfigError: requirements cannot be installed for this interpreter; UserFilesError: the file does not exist.
    """
    if environments.is_packed(python) or not os.path.exists(python):
        raise ConfigError(
            f"requirements= are installed for an interpreter of this machine, and {python} is on the cluster's: pack them "
            "with it"
        )
    if not fetch.is_url(requirements) and not os.path.isfile(os.path.expanduser(requirements)):
        raise UserFilesError(
            f"requirements: there is no {requirements}{nearest_file(requirements) or _meant_package(requirements)}"
        )
    if not fetch.is_url(requirements):
        environments.check_listed(os.path.expanduser(requirements))


def _meant_package(requirements: str) -> str:
    """Return a hint if names of packages were given in place of a requirements file, else "".

    Args: requirements: the file that does not exist; if it came from a job file, it has that file's directory in front.
    """
    words = os.path.basename(requirements)
    if not _PACKAGES.fullmatch(words) or words.lower().endswith(_LISTS):
        return ""
    return f": it takes a requirements.txt; write `{words}` into one and name it"


def optional_path(name: str, path: PathLike | None) -> str | None:
    """Return the path as text, None for None. Raises: ConfigError: it is no path."""
    return check_path(name, path) if path is not None else None
