"""Makes directories and files that only the user may read, whatever the umask is and whatever modes they had before."""

from __future__ import annotations

import errno
import os
import tempfile
from typing import IO, Any


def private_dir(path: str) -> None:
    """Make a directory and those above it; the directory itself gets mode 0700, also if it exists already.

    Raises:
        OSError: it cannot be made.
        PermissionError: it exists and belongs to another user.
    """
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.stat(path)
    if found.st_uid != os.geteuid():
        raise PermissionError(1, "it is another user's", path)
    if found.st_mode & 0o777 != 0o700:
        os.chmod(path, 0o700)


def private_file(path: str, mode: str = "w", **options: Any) -> IO[Any]:
    """Open a file as `open` does, and give it mode 0600."""
    return open(path, mode, opener=_opener, **options)


def _opener(path: str, flags: int) -> int:
    fd = os.open(path, flags, 0o600)
    os.fchmod(fd, 0o600)
    return fd


def base_dir(variable: str, *default: str) -> str:
    """Return one of the user's base directories, as the XDG Base Directory Specification says: a relative path counts as none.

    Args:
        variable: the environment variable that names it: XDG_STATE_HOME.
        default: the parts of its path in the home directory if the variable names none.
    """
    named = os.environ.get(variable) or ""
    return named if os.path.isabs(named) else os.path.join(os.path.expanduser("~"), *default)


def state_base() -> str:
    """Return the directory in which akrunner's state is kept; it need not exist."""
    return os.path.join(base_dir("XDG_STATE_HOME", ".local", "state"), "akrunner")


def state_dir(name: str, make: bool = True) -> str | None:
    """Return `$XDG_STATE_HOME/akrunner/NAME`; None if there is no home directory, or the directory cannot be written.

    Args:
        make: whether to make the directory if it does not exist; if false, None is returned then, and a directory that can only be
            read is enough.
    """
    ours = state_base()
    if not os.path.isabs(ours):
        return None
    path = os.path.join(ours, name)
    if not make and not os.path.isdir(path):
        return None
    for one in (ours, path):
        try:
            private_dir(one)
        except OSError:
            # on a disk that cannot be written the modes stay as they are
            if make or not _is_own(one):
                return None
    return path if os.access(path, os.W_OK if make else os.R_OK | os.X_OK) else None


def _is_own(path: str) -> bool:
    try:
        return os.stat(path).st_uid == os.geteuid()
    except OSError:
        return False


def temp_directory() -> str:
    """Return what `tempfile.gettempdir` returns, without its test: that writes a file with a random name, which stays if the
    process is killed at that moment.

    Raises:
        FileNotFoundError: there is no temp directory that can be written.
    """
    # the program, or `tempfile` itself, has chosen a directory already
    if tempfile.tempdir is not None:
        return os.path.abspath(os.fsdecode(tempfile.tempdir))
    named = [os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)]
    for folder in map(os.path.abspath, (*named, "/tmp", "/var/tmp", "/usr/tmp", os.curdir)):
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
