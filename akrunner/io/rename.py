"""Renames that replace nothing, and renames that swap two names: Linux has both, Python's `os` has neither."""

from __future__ import annotations

import ctypes
import errno
import os
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
