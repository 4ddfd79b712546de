"""Directories and files nobody but the user may look into, whatever the umask and whatever they were before."""

from __future__ import annotations

import errno
import os
import tempfile
from typing import IO, Any


def private_dir(path: str) -> None:
    """Make a directory and those above it, itself of mode 0700; one that is there becomes so.

    Raises: OSError: it cannot be made; PermissionError: it is there and another user's.
    """
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.stat(path)
    if found.st_uid != os.geteuid():
        raise PermissionError(1, "it is another user's", path)
    if found.st_mode & 0o777 != 0o700:
        os.chmod(path, 0o700)


def private_file(path: str, mode: str = "w", **options: Any) -> IO[Any]:
    """As `open`; the file has mode 0600."""
    return open(path, mode, opener=_opener, **options)


def _opener(path: str, flags: int) -> int:
    fd = os.open(path, flags, 0o600)
    os.fchmod(fd, 0o600)
    return fd


def state_dir(name: str, make: bool = True) -> str | None:
    """`$XDG_STATE_HOME/akrunner/NAME`; None where there is no home, or none that can be written.

    Args: make: make it if it is not there; else it is None then.
    """
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    if not os.path.isabs(base):
        return None
    ours = os.path.join(base, "akrunner")
    path = os.path.join(ours, name)
    if not make and not os.path.isdir(path):
        return None
    try:
        private_dir(ours)
        private_dir(path)
    except OSError:
        return None
    return path if os.access(path, os.W_OK) else None


def temp_directory() -> str:
    """What `tempfile.gettempdir` gives, but that one finds out by a file with a name of chance, which stays if the process is killed in that moment.

    Raises: FileNotFoundError: there is none that can be written.
    """
    # a program, or `tempfile` itself, has chosen already
    if tempfile.tempdir is not None:
        return os.path.abspath(os.fsdecode(tempfile.tempdir))
    named = [os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)]
    for folder in map(os.path.abspath, (*named, "/tmp", "/var/tmp", "/usr/tmp", os.curdir)):
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
