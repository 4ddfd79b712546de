"""What akrunner keeps from one job to the next: `$XDG_CACHE_HOME/akrunner`, by default `~/.cache/akrunner`.

::

    envs/NAME/            environments made by `akrunner env create`
    unpacked/HASH/        environments that came as archives
    downloads/HASH/       user files from URLs
    overlays/HASH/        requirements installed for jobs
    functions/HASH/       scripts made of functions that were given in place of one; those that are a month old go
    probes.json           what interpreters said of themselves

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

from akrunner.leftovers.private import private_dir

_DONE = ".complete"
_LOCK = ".lock"


def base() -> str:
    """Where the cache is; it need not be there."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "akrunner")


def shown() -> str:
    """For errors: where it is, and what says so."""
    return f"the cache, {base()} (XDG_CACHE_HOME)"


def directory(*parts: str) -> str:
    """A path in the cache; its parent exists, and is the user's alone, whatever the umask says.

    Raises: OSError: it cannot be made; PermissionError: others may write to it, and that cannot be changed.
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
        # another user's may be used, unless what is put there could be changed by others
        if not os.path.isdir(path) or os.stat(path).st_mode & 0o022:
            raise


def key(*parts: str) -> str:
    """A directory's name for what these describe."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def made_once(path: str, make: Callable[[str], None]) -> str:
    """The directory `path`, filled by `make(path)` unless that was done before. Of two at a time the second waits; what failed half way
    is gone, and what was killed half way goes when the next one beside it is made.

    Raises: whatever `make` raises; OSError: the cache cannot be written.
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
    """Raises: BlockingIOError: another process has it, and `wait` is false."""
    while True:
        lock = os.open(path + _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # `forget` may have removed the file meanwhile: the next process would lock another one
            if os.fstat(lock).st_nlink:
                yield
                return
        finally:
            os.close(lock)


def _remove_half_made(folder: str) -> None:
    """Remove what was being made in a directory of the cache by a process that was killed."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name.removesuffix(_LOCK))
        if name.endswith(_LOCK) and os.path.isdir(path) and not os.path.exists(path + _DONE):
            with contextlib.suppress(OSError), _locked(path, wait=False):
                if not os.path.exists(path + _DONE):
                    shutil.rmtree(path, ignore_errors=True)


def forget_old(folder: str, days: float) -> None:
    """Remove what was made so long ago, but for what somebody makes or removes just now. Nothing is said of what cannot be removed."""
    before = time.time() - days * 86400
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.endswith(_DONE) and entry.stat().st_mtime < before:
                path = entry.path.removesuffix(_DONE)
                with contextlib.suppress(OSError), _locked(path, wait=False):
                    _remove(path)
                    os.remove(path + _LOCK)


def forget(path: str) -> bool:
    """Remove what `made_once` made; waits for whoever makes it now.

    Returns: whether there was any. Raises: OSError: the cache cannot be written.
    """
    with _locked(path):
        there = os.path.isdir(path)
        _remove(path)
        os.remove(path + _LOCK)
    return there


def _remove(path: str) -> None:
    """Remove a directory. The word that it is whole goes first: nobody takes what is half gone, or half made again, for whole."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path + _DONE)
    shutil.rmtree(path, ignore_errors=True)
