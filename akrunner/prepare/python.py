"""Which interpreter a job's tasks have, and whether requirements can be installed for it."""

from __future__ import annotations

import os
import re

from akrunner.checks import check_path, nearest_file
from akrunner.errors import ConfigError, PythonEnvError, UserFilesError
from akrunner.launch import environments, fetch, interpreters
from akrunner.prepare.arguments import PathLike
from akrunner.spec import Capabilities


def interpreter_for(python_env: PathLike | None, engine: Capabilities, keras: str | None = None) -> interpreters.Interpreter:
    """The tasks' interpreter. On a cluster's machines, one that is only there is looked at there, and a packed environment is
    unpacked there: nothing is known of these but the path. Raises: PythonEnvError."""
    named = optional_path("python_env", python_env)
    if named is not None and not engine.here:
        if os.path.isabs(named) and not os.path.exists(named):
            return interpreters.Interpreter(named, (), "", "")
        if environments.is_packed(named) and engine.unpacks:
            path = named if fetch.is_url(named) else os.path.abspath(os.path.expanduser(named))
            return interpreters.Interpreter(path, (), "", "")
    return interpreters.resolve(named, keras)


def environment_of(name: str) -> interpreters.Interpreter:
    """The interpreter of a named environment. Raises: PythonEnvError: there is none; it gives the command to create one."""
    return interpreters.named(environments.recipe_of(name))


def instead_of(name: str, other: str) -> interpreters.Interpreter | None:
    """Which interpreter may be taken if there is no environment of a name, None: there is one.

    Args: name, other: named environments. Raises: PythonEnvError: the environment variable of the first names something else, which is not
        to be passed over; or there is neither.
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


#: a package as pip takes it, with its version if it has one; several of them
_PACKAGE = r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[\w,. -]*\])?(\s*[~=!<>]=?=?\s*[\w.*+!-]+(\s*,\s*[~=!<>]=?=?\s*[\w.*+!-]+)*)?"
_PACKAGES = re.compile(rf"{_PACKAGE}([\s,]+{_PACKAGE})*")
#: endings of files that list packages
_LISTS = (".txt", ".in", ".pip", ".toml", ".cfg", ".lock", ".yml", ".yaml")


def check_requirements(requirements: str, python: str) -> None:
    """Raises: ConfigError: they cannot be installed for this interpreter; UserFilesError: they are not there."""
    if environments.is_packed(python) or not os.path.exists(python):
        raise ConfigError(
            f"requirements= are installed for an interpreter of this machine, and {python} is on the cluster's: pack them with it"
        )
    if not fetch.is_url(requirements) and not os.path.isfile(os.path.expanduser(requirements)):
        raise UserFilesError(
            f"requirements: there is no {requirements}{nearest_file(requirements) or _meant_package(requirements)}"
        )
    if not fetch.is_url(requirements):
        environments.check_listed(os.path.expanduser(requirements))


def _meant_package(requirements: str) -> str:
    """What is said where packages stand in place of a file of them. Args: requirements: a file that is not there; one of a job file has its directory."""
    words = os.path.basename(requirements)
    if not _PACKAGES.fullmatch(words) or words.lower().endswith(_LISTS):
        return ""
    return f": it takes a requirements.txt; write `{words}` into one and name it"


def optional_path(name: str, path: PathLike | None) -> str | None:
    """The path as text, None: there is none. Raises: ConfigError."""
    return check_path(name, path) if path is not None else None
