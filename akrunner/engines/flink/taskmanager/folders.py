"""A task's directory on a TaskManager's machine, which goes even if everybody who would have removed it is killed.

::

    akrunner-task-MARK/         the task's; removed by the agent, else by its guard, else by the next task of ours on the machine
    akrunner-task-MARK/.lock    held by the agent for as long as it lives: who gets the lock knows that it does not

Standard library only, as `akrunner.engines.flink.taskmanager.agent`.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import stat
import time
from collections.abc import Callable
from types import TracebackType

from akrunner import leftovers
from akrunner.launch.process import sweep

_PREFIX = "akrunner-task-"
_LOCK = ".lock"
#: without a lock it is being made, or was when its maker was killed
_MAKING_SECONDS = 600.0


class TaskFolder:
    """Context manager: the directory's path. Args: mark: of the task's processes; remove: has a path removed if this process dies."""

    def __init__(self, mark: str, remove: Callable[[str], None]) -> None:
        self._path = os.path.join(os.path.realpath(leftovers.temp_directory()), _PREFIX + mark)
        self._remove = remove

    def __enter__(self) -> str:
        remove_left()
        self._remove(self._path)
        while True:
            try:
                # it may be there, and go in that moment: FileExistsError
                os.makedirs(self._path, 0o700, exist_ok=True)
                self._lock = _locked(os.path.join(self._path, _LOCK))
                break
            except (BlockingIOError, FileExistsError, FileNotFoundError):
                continue  # another task looked at it before it was held
        return self._path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        leftovers.remove(self._path)
        os.close(self._lock)


def remove_left() -> None:
    """End and remove what tasks have left whose agent and guard were killed together."""
    for folder in glob.glob(os.path.join(glob.escape(os.path.realpath(leftovers.temp_directory())), _PREFIX + "*")):
        # it may be going, or be held
        with contextlib.suppress(OSError):
            path = os.path.join(folder, _LOCK)
            found = os.lstat(folder)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                # another user's, or a link that would have us write elsewhere
                continue
            if not os.path.exists(path) and time.time() - found.st_mtime < _MAKING_SECONDS:
                continue
            lock = _locked(path)
            try:
                sweep([os.path.basename(folder)[len(_PREFIX) :]], 0.0)
                leftovers.remove(folder)
            finally:
                os.close(lock)


def _locked(path: str) -> int:
    """A descriptor that holds the file's lock. Raises: BlockingIOError: somebody else holds it; FileNotFoundError: it has gone."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.fstat(lock).st_nlink:
            raise FileNotFoundError(path)
    except BaseException:
        os.close(lock)
        raise
    return lock
