"""Bytes for a pipe, a FIFO, a terminal or a device, whose reader may stop reading.

::

    Piped(fd, "stdout").write(...)     waits for the reader within the job's limits (`akrunner.io.limits`), and until a signal comes
    .flush()                           waits in the same way until everything is written
    .drop()                            waits for nothing: what is not written yet is lost
"""

from __future__ import annotations

import errno
import io
import os
import posixpath
import select
import stat
import time
from typing import Any

from akrunner.io.limits import until_writable, waits_on

#: prefixes of paths that name an open file descriptor
DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
#: how many bytes are gathered before they are written; as many as a pipe usually holds
_BUFFER = 1 << 16
#: how many seconds pass before a FIFO is opened again that nobody reads yet
_TICK = 0.05


def is_special(path: str) -> bool:
    """Whether a path names a pipe, a device or an open descriptor: what is written there cannot be taken back."""
    if path in _STANDARD or path.startswith(DESCRIPTORS):
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


class Piped(io.BufferedWriter):
    """Writes to a descriptor, and closes it at its end. A large write stays one write where the descriptor allows that.

    All methods but `drop` wait for the reader, and raise JobTimeoutError or JobStalledError if it takes nothing within the job's
    limits, and BrokenPipeError if it is gone.

    Args:
        fd: the descriptor, which now belongs to this object.
        name: what the descriptor is, in errors.
    """

    def __init__(self, fd: int, name: str) -> None:
        self._bytes = _Descriptor(fd, name)
        super().__init__(self._bytes, _BUFFER)

    def drop(self) -> None:
        """Close the descriptor at once. What is not written yet is lost."""
        self._bytes.dropped = True
        self.close()


class _Descriptor(io.RawIOBase):
    """Writes to a descriptor as soon as that does not block.

    The flag O_NONBLOCK belongs to what all processes share that have inherited a pipe or a terminal, and the others would not
    expect it. So the flag is set on an opening of our own; where there can be none (a socket, a device, a pipe of another user),
    only so much is written at once as fits whenever the descriptor is ready. Only of a terminal it is not known how much that is:
    if one cannot be opened again and nobody reads it, a signal ends the write, and no limit does.
    """

    def __init__(self, fd: int, name: str) -> None:
        super().__init__()
        self._fd, self._what = fd, f"whoever reads {name}"
        self.dropped = False
        regular = stat.S_ISREG(os.fstat(fd).st_mode)
        if not regular and os.get_blocking(fd):
            self._fd = _opened_again(fd)
        self._most = select.PIPE_BUF if not regular and os.get_blocking(self._fd) else None

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def fileno(self) -> int:
        return self._fd

    def write(self, data: Any) -> int:
        """Write a part of the bytes, and return how many; all of them count as written if they are dropped."""
        view = memoryview(data).cast("B")
        begun = time.monotonic()
        while not self.dropped:
            if self._most is not None:
                until_writable(self._fd, self._what)
            try:
                return os.write(self._fd, view[: self._most])
            except BlockingIOError:
                # a terminal may be ready and still have no room for the next character
                waits_on(self._what, begun)
                until_writable(self._fd, self._what)
        return len(view)

    def close(self) -> None:
        if not self.closed:
            super().close()
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


def opened(path: str, name: str, wait: bool = False) -> Piped:
    """Open what `is_special` says is no file.

    Args:
        name: its name in errors.
        wait: whether to wait, within the job's limits, for somebody to read a FIFO; else it is an error that nobody does.
    Raises:
        OSError: it cannot be opened.
        JobTimeoutError: the job's time is over, and nobody reads.
        JobStalledError: nobody reads.
    """
    if path in _STANDARD or path.startswith(DESCRIPTORS):
        number = _STANDARD.get(path)
        return Piped(os.dup(int(posixpath.basename(path)) if number is None else number), name)
    begun = time.monotonic()
    while True:
        try:
            return Piped(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), name)
        except OSError as e:
            if e.errno != errno.ENXIO or not wait or not stat.S_ISFIFO(os.stat(path).st_mode):
                raise
        waits_on(f"somebody to read {name}", begun)
        time.sleep(_TICK)
