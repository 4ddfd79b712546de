"""What akrunner keeps from one job to the next: `$XDG_CACHE_HOME/akrunner`, by default `~/.cache/akrunner`.

::

    envs/NAME/            environments made by `akrunner env create`
    unpacked/HASH/        environments that came as archives
    downloads/HASH/       user files from URLs
    overlays/HASH/        requirements installed for jobs
    probes.json           what interpreters said of themselves

All of it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from typing import Callable


def directory(*parts: str) -> str:
    """A path in the cache; its parent exists."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(base, "akrunner", *parts)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    return path


def key(*parts: str) -> str:
    """A directory's name for what these describe."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def made_once(path: str, make: Callable[[str], None]) -> str:
    """The directory `path`, filled by `make(path)` unless that was done before. Of two at a time the second waits; what failed half way
    is gone, and what was killed half way is made anew.

    Raises: whatever `make` raises.
    """
    done = path + ".complete"
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(path) and os.path.exists(done):
            return path
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path, mode=0o700)
        try:
            make(path)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        open(done, "w").close()
    return path


def forget(path: str) -> bool:
    """Remove what `made_once` made. Returns: whether there was any."""
    there = os.path.isdir(path)
    shutil.rmtree(path, ignore_errors=True)
    for name in (path + ".complete", path + ".lock"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(name)
    return there
