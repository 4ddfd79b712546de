"""A task's directory on a TaskManager's machine. It is removed even if every process that would have removed it is killed.

::

    akrunner-task-MARK/         the task's; removed by the agent, else by its guard, else by akrunner's next task on the machine
    akrunner-task-MARK/.lock    locked by the agent while it lives: a process that gets the lock knows that it is dead

Standard library only, as in `akrunner.engines.flink.taskmanager.agent`.
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
#: ends the name of one that is being removed
_GONE = "-gone"
#: seconds for which a directory without a lock may still be being made; if it is older, its maker was killed
_MAKING_SECONDS = 600.0


class TaskFolder:
    """Context manager that makes the directory, and gives its path.

    Args:
        mark: the mark of the task's processes.
        remove: called with the path, so that it is removed if this process dies.
    """

    def __init__(self, mark: str, remove: Callable[[str], None]) -> None:
        self._path = os.path.join(os.path.realpath(leftovers.temp_directory()), _PREFIX + mark)
        self._remove = remove

    def __enter__(self) -> str:
        remove_left()
        self._remove(self._path)
        while True:
            try:
                # the directory may exist, and be removed at that moment: FileExistsError
                os.makedirs(self._path, 0o700, exist_ok=True)
                self._lock = _locked(os.path.join(self._path, _LOCK))
                break
            except (BlockingIOError, FileExistsError, FileNotFoundError):
                continue  # another task looked at it before its lock was held
        return self._path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        leftovers.remove(self._path)
        os.close(self._lock)


def remove_left() -> None:
    """End the processes and remove the directories of tasks whose agent and guard were killed together."""
    for folder in glob.glob(os.path.join(glob.escape(os.path.realpath(leftovers.temp_directory())), _PREFIX + "*")):
        # it may be about to be removed, or be locked
        with contextlib.suppress(OSError):
            path = os.path.join(folder, _LOCK)
            found = os.lstat(folder)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                # it is another user's, or a link that would make this process write elsewhere
                continue
            if not os.path.exists(path) and time.time() - found.st_mtime < _MAKING_SECONDS:
                continue
            lock = _locked(path)
            try:
                sweep([os.path.basename(folder)[len(_PREFIX) :]], 0.0)
                # its maker, if it was about to lock it, makes another one, of which nothing is removed
                gone = folder + _GONE
                os.rename(folder, gone)
                leftovers.remove(gone)
            finally:
                os.close(lock)


def _locked(path: str) -> int:
    """Return a descriptor that holds the file's lock.

    Raises:
        BlockingIOError: another process holds the lock.
        FileNotFoundError: the file is gone.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.fstat(lock).st_nlink:
            raise FileNotFoundError(path)
    except BaseException:
        os.close(lock)
        raise
    return lock
