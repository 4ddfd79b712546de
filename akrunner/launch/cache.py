"""The files that akrunner keeps from one job to the next: `$XDG_CACHE_HOME/akrunner`, by default `~/.cache/akrunner`.

::

    envs/NAME/            environments made by `akrunner env create`
    unpacked/HASH/        environments that came as archives
    downloads/HASH/       user files from URLs
    overlays/HASH/        requirements installed for jobs
    functions/HASH/       scripts made of functions that were given in place of a script; removed after a month
    vega/HASH/            the library that draws in pages about runs
    probes.json           the versions that interpreters reported

All of it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator

from akrunner.leftovers.private import base_dir, private_dir

_DONE = ".complete"
_LOCK = ".lock"


def base() -> str:
    """Return the cache's directory; it need not exist."""
    return os.path.join(base_dir("XDG_CACHE_HOME", ".cache"), "akrunner")


def shown() -> str:
    """Return words for errors: the cache's directory, and the variable that sets it."""
    return f"the cache, {base()} (XDG_CACHE_HOME)"


def directory(*parts: str) -> str:
    """Return a path in the cache; its parent directory is made if needed, and is private to the user, whatever the umask is.

    Raises:
        OSError: the parent cannot be made.
        PermissionError: other users may write to the parent, and that cannot be changed.
    """
    path = base()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    _private(path)
    for part in parts[:-1]:
        path = os.path.join(path, part)
        _private(path)
    return os.path.join(path, parts[-1])


def _private(path: str) -> None:
    try:
        private_dir(path)
    except PermissionError:
        # a directory of another user may be used, unless other users could change what is put there
        if not os.path.isdir(path) or os.stat(path).st_mode & 0o022:
            raise


def key(*parts: str) -> str:
    """Return the name of a directory for the contents that these parts describe."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def made_once(path: str, make: Callable[[str], None]) -> str:
    """Return the directory `path`, filled by `make(path)` unless an earlier call has done that.

    If two processes call it at a time, the second waits. If `make` fails, the directory is removed; if the process is killed
    meanwhile, the half-made directory is removed when the next one beside it is made.

    Raises:
        OSError: the cache cannot be written.
        Exception: whatever `make` raises.
    """
    done = path + _DONE
    with _locked(path):
        if os.path.isdir(path) and os.path.exists(done):
            return path
        _remove_half_made(os.path.dirname(path))
        _remove(path)
        os.makedirs(path, mode=0o700)
        try:
            make(path)
            os.close(os.open(done, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
    return path


@contextlib.contextmanager
def _locked(path: str, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a directory of the cache. Raises: BlockingIOError: another process has the lock, and `wait` is false."""
    while True:
        lock = os.open(path + _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # `forget` may have removed the file meanwhile: the next process would then lock another file
            if os.fstat(lock).st_nlink:
                yield
                return
        finally:
            os.close(lock)


def _remove_half_made(folder: str) -> None:
    """Remove the directories in `folder` that a process was making when it was killed."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name.removesuffix(_LOCK))
        if name.endswith(_LOCK) and os.path.isdir(path) and not os.path.exists(path + _DONE):
            with contextlib.suppress(OSError), _locked(path, wait=False):
                if not os.path.exists(path + _DONE):
                    shutil.rmtree(path, ignore_errors=True)


def forget_old(folder: str, days: float) -> None:
    """Remove directories that were made more than `days` days ago, except those that a process makes or removes right now.
    Errors are ignored.
    """
    before = time.time() - days * 86400
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.endswith(_DONE) and entry.stat().st_mtime < before:
                path = entry.path.removesuffix(_DONE)
                with contextlib.suppress(OSError), _locked(path, wait=False):
                    _remove(path)
                    os.remove(path + _LOCK)


def forget(path: str) -> bool:
    """Remove a directory that `made_once` made; if a process makes it right now, wait for that process.

    Returns:
        Whether there was such a directory.
    Raises:
        OSError: the cache cannot be written.
    """
    with _locked(path):
        there = os.path.isdir(path)
        _remove(path)
        os.remove(path + _LOCK)
    return there


def _remove(path: str) -> None:
    """Remove a directory. The file that says that it is complete goes first, so that no process takes a half-removed or
    half-made directory for complete.
    """
    with contextlib.suppress(FileNotFoundError):
        os.remove(path + _DONE)
    shutil.rmtree(path, ignore_errors=True)
