"""Checks of the directories that a job writes to: `work_dir`, `checkpoint_dir` and `tensorboard`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from akrunner.checks import check_path, holds_no_files
from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.io.paths import local_path
from akrunner.prepare.arguments import PathLike

#: what to do instead if a URL was given for a directory
_INSTEAD = {
    "checkpoint_dir": "name one that every task reaches (a disk, NFS), or hand the URL to the script as a parameter: what its "
    "TensorFlow opens, it may write",
    "tensorboard": "name one, and copy it afterwards",
    "work_dir": "name one, and copy what is kept afterwards",
}


def check_directories(settings: Mapping[str, Any]) -> None:
    """Check a job's directories. Args: settings: the fields of a `JobSpec`.

    Raises: ConfigError: `work_dir`, `checkpoint_dir` or `tensorboard` cannot be made, or not be written to.
    """
    for name in ("work_dir", "checkpoint_dir", "tensorboard"):
        given = settings.get(name)
        if given is None:
            continue
        if os.path.exists(given) and not os.path.isdir(given):
            raise ConfigError(f"{name}: {given} is a file; name a directory")
        there = given
        while not os.path.exists(there) and there != os.path.dirname(there):
            there = os.path.dirname(there)
        if not os.path.isdir(there):
            raise ConfigError(f"{name}: cannot make {given}: {there} is a file")
        if holds_no_files(given):
            raise ConfigError(f"{name}: {given} is the system's own, and keeps no files; name another directory")
        if not os.access(there, os.W_OK | os.X_OK):
            raise ConfigError(f"{name}: nothing may be written in {there}")
        if name == "work_dir" and there == given and os.listdir(given):
            raise ConfigError(f"work_dir: {given} is not empty; name a new directory")


def made(directory: str | None) -> str | None:
    """Make the directory for checkpoints, if there is one, and return it. Raises: ConfigError: it cannot be made."""
    if directory is not None:
        with ours(ConfigError, f"checkpoint_dir: cannot make {directory}", directory):
            os.makedirs(directory, exist_ok=True)
    return directory


def directory(name: str, given: PathLike | None) -> str | None:
    """Return a directory's absolute path, None for None. Raises: ConfigError: it is no directory of this machine."""
    return local_path(check_path(name, given), name, _INSTEAD[name]) if given is not None else None
