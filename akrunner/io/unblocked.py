"""Writes as much to a pipe, a terminal or a device as does not block. It imports the standard library only."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat


class Unblocked:
    """An open descriptor, which belongs to this object.

    The flag O_NONBLOCK belongs to what all processes share that have inherited a pipe or a terminal, and the others would not
    expect it. So the flag is set on an opening of our own; where there can be none (a socket, a device, a pipe of another user),
    only so much is written at once as fits whenever the descriptor is ready. Only of a terminal it is not known how much that is:
    if one cannot be opened again and nobody reads it, a write may block until a signal comes.

    Raises:
        OSError: the descriptor is not open, or only open for reading. It is closed then.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            # a pipe that is opened again could be written, to nobody
            os.close(fd)
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        regular = stat.S_ISREG(os.fstat(fd).st_mode)
        if not regular and os.get_blocking(fd):
            self._fd = _opened_again(fd)
        self._most = select.PIPE_BUF if not regular and os.get_blocking(self._fd) else None

    def write(self, data: bytes | memoryview) -> int:
        """Write what does not block. Returns: how many bytes that were; 0: there is no room. Raises: OSError: nobody can read."""
        if self._most is not None and not self.ready(0):
            return 0
        try:
            return os.write(self._fd, memoryview(data).cast("B")[: self._most])
        except BlockingIOError:
            return 0

    def ready(self, seconds: float) -> bool:
        """Wait until there is room, or an error to tell, for `seconds` at most. Returns: whether there is. A terminal may say so
        and still have no room for the next character."""
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return bool(poll.poll(seconds * 1000))

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        os.close(self._fd)


def _opened_again(fd: int) -> int:
    """Open a pipe or a terminal once more, with O_NONBLOCK, and close the first opening. Return the new descriptor, or the old
    one if it cannot be opened again."""
    there = os.fstat(fd)
    try:
        path = f"/proc/self/fd/{fd}" if stat.S_ISFIFO(there.st_mode) else os.ttyname(fd)
        again = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return fd
    if not os.path.samestat(there, os.fstat(again)):
        os.close(again)
        return fd
    os.close(fd)
    return again
