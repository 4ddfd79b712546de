"""Renames that replace nothing, and renames that swap two names: Linux has both, Python's `os` has neither. And directories that
go again with the job that made them."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Sequence
from typing import IO

_NOREPLACE, _EXCHANGE = 1, 2
_AT_FDCWD = -100
#: the errors of a kernel or file system that cannot do it
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)


def move_new(source: str, target: str) -> None:
    """Rename `source` to `target`, atomically, if there is no `target` yet.

    Raises:
        FileExistsError: there is one.
    """
    if _renameat2(source, target, _NOREPLACE):
        return
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    os.rename(source, target)


def swap(one: str, other: str) -> bool:
    """Exchange the files or directories of two names, atomically. Return False, and do nothing, if the file system cannot do
    that."""
    return _renameat2(one, other, _EXCHANGE)


def sync(stream: IO[bytes]) -> None:
    """Write the stream to the disk, not only to the system's memory: some disks report only then that they are full."""
    stream.flush()
    os.fsync(stream.fileno())


def _renameat2(source: str, target: str, flags: int) -> bool:
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(flags)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), target)


def missing(directory: str) -> list[str]:
    """Return the directories of this machine that must be made for one to be there, the innermost first."""
    found: list[str] = []
    path = os.path.abspath(directory)
    while not os.path.lexists(path):
        found.append(path)
        path = os.path.dirname(path)
    return found


def drop_empty(directories: Sequence[str]) -> None:
    """Remove directories that a failed job has made, and into which nobody has put anything. Args: as `missing` returns them."""
    for one in directories:
        with contextlib.suppress(OSError):
            os.rmdir(one)
