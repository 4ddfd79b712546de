"""The saves of one task: who may write them, how one is completed, which of them belong to those of the other tasks.

::

    write      00000003.part/ is filled -> flushed -> renamed to 00000003/     so that a save is whole, or not there
    newest     the newest saves that all tasks have made in the same attempt
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import time
from typing import Any, Callable, Dict, List, Sequence

from akrunner.wire import saves

_PART = ".part"
#: seconds in which the process of a job that was ended has to be gone
_ENDING = 10.0


class TaskSaves(object):
    """The saves of one task.

    Attributes:
        root: the directory of the saves of all tasks.
        folder: the directory of this task's saves.
        newest: the number of the newest save; 0 for none.
    """

    def __init__(self, checkpoint_dir: str, tasks: Sequence[str], task: str, run_id: str, attempt: int, replayed: bool) -> None:
        """Note the arguments; nothing is read or written yet.

        Args:
            checkpoint_dir: the job's directory for checkpoints.
            tasks: the names of the tasks that get rows.
            task: the name of this one.
            run_id: what tells this job from every other one.
            attempt: how often the job has been started again.
            replayed: whether a job's task is replayed, so that nothing may be changed in its directory.
        """
        self.root = os.path.join(checkpoint_dir, saves.FOLDER)
        self.folder = saves.folder_of(checkpoint_dir, task)
        self.newest = 0
        self._checkpoint_dir = checkpoint_dir
        self._tasks = list(tasks)
        self._stamp = (run_id, attempt)
        self._replayed = replayed
        #: the number of the save with which this attempt began; 0 for none
        self._begun_with = 0

    # -- what is there

    def numbers(self) -> List[int]:
        """Return the numbers of this task's complete saves, in order."""
        return saves.numbers(self.folder)

    def path(self, number: int) -> str:
        """Return the directory of a save of this task."""
        return os.path.join(self.folder, saves.name_of(number))

    def said(self, number: int) -> Dict[str, Any]:
        """Return the position of a save. Raises: ValueError: it is damaged."""
        return saves.read(self.folder, number)

    def of_this_job(self, number: int) -> bool:
        """Whether a save was made by this job, in any attempt."""
        return bool(saves.stamp(self.said(number))[0] == self._stamp[0])

    def lacking(self) -> List[str]:
        """Return the names of the tasks that have no saves."""
        return [task for task in self._tasks if not saves.numbers(saves.folder_of(self._checkpoint_dir, task))]

    def common(self) -> int:
        """Return the number of the newest save from which all tasks can go on, 0 for none: they compute together.

        A task may begin later than another one, which has saved again by then: that save is not of the attempt before. A replay
        does what the attempt would do next.
        """
        return saves.newest(self._checkpoint_dir, self._tasks, None if self._replayed else lambda stamp: stamp != self._stamp)

    # -- what is changed

    def begin(self, number: int) -> None:
        """Go on with a save, and remove what was saved after it, by some tasks only, before they were ended.

        Args:
            number: the save's; 0: with none.
        """
        self.newest = self._begun_with = number
        self._remove([one for one in self.numbers() if one > number])
        if not self._replayed and os.path.isdir(self.folder):
            for name in os.listdir(self.folder):
                # what is left of saves that were cut off
                if name.endswith(_PART):
                    shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)

    def write(self, fill: Callable[[str], None]) -> None:
        """Make the next save.

        Args:
            fill: writes all of it to the directory that it is given.
        Raises:
            OSError: the directory cannot be written.
            RuntimeError: another job, or another `checkpoint()`, has made it.
        """
        path = self.path(self.newest + 1)
        # of an attempt that was ended while it saved
        shutil.rmtree(path + _PART, ignore_errors=True)
        os.makedirs(path + _PART)
        fill(path + _PART)
        _flush(path + _PART)
        self._complete(path)
        _flush_folder(self.folder)
        self.newest += 1

    def _complete(self, path: str) -> None:
        try:
            os.rename(path + _PART, path)
            return
        except OSError as e:
            if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if not self._is_older(self.newest + 1):
            raise RuntimeError(
                "checkpoint(): %s is there already: another job, or another checkpoint() of this script, saves in the same "
                "directory: each needs a checkpoint_dir of its own" % path
            )
        # a task of an attempt before was not gone yet when this one began, and has saved once more
        old = path + ".old" + _PART
        os.rename(path, old)
        os.rename(path + _PART, path)
        shutil.rmtree(old, ignore_errors=True)

    def _is_older(self, number: int) -> bool:
        """Whether a save was made in an earlier attempt of this job."""
        run_id, attempt = saves.stamp(self.said(number))
        return run_id == self._stamp[0] and isinstance(attempt, int) and attempt < self._stamp[1]

    def prune(self, keep: int) -> None:
        """Remove saves that are older than the newest `keep`, except those that this task needs to go on with another one."""
        try:
            now = saves.newest(self._checkpoint_dir, self._tasks, lambda stamp: stamp == self._stamp)
        except ValueError:
            # a save of another task is damaged, which is told when it is read
            return
        # no task goes back behind the save with which this attempt began
        needed = now or self._begun_with
        mine = self.numbers()
        if needed:
            oldest = min([needed] + mine[-keep:])
            self._remove([number for number in mine if number < oldest])

    def _remove(self, numbers: Sequence[int]) -> None:
        for number in [] if self._replayed else numbers:
            path = self.path(number)
            # a job that is ended while it removes a save leaves none that looks complete
            shutil.rmtree(path + _PART, ignore_errors=True)
            os.rename(path, path + _PART)
            shutil.rmtree(path + _PART, ignore_errors=True)


def hold(folder: str) -> None:
    """Let no other process save in a task's directory as long as this process lives, whatever ends it.

    Raises:
        ValueError: another process saves there.
        OSError: the file that is locked cannot be made.
    """
    # a file in the place of the directory is told first
    saves.numbers(folder)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    # it stays open: the lock would go with the first descriptor of that file that this process closes
    lock = os.open(folder + ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    until = time.monotonic() + _ENDING
    while not _locked(lock):
        if time.monotonic() > until:
            owner = os.pread(lock, 256, 0).decode("utf-8", "replace").strip()
            raise ValueError(
                "checkpoint_dir: another job saves in %s now (process %s): each job needs a checkpoint_dir of its own"
                % (folder, owner or "unknown")
            )
        # the process of a job that was killed may still be ending
        time.sleep(0.1)
    os.ftruncate(lock, 0)
    os.pwrite(lock, ("%d on %s\n" % (os.getpid(), socket.gethostname())).encode("utf-8"), 0)


def _locked(lock: int) -> bool:
    """Lock a file. Returns: whether this process has the lock, or the file system has none."""
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        return e.errno not in (errno.EACCES, errno.EAGAIN)
    return True


def _flush(folder: str) -> None:
    """Have the system write a folder and all files in it to the disk."""
    for where, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(where, name), "rb") as f:
                os.fsync(f.fileno())
        _flush_folder(where)


def _flush_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
