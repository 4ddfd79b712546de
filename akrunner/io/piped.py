"""Bytes for a pipe, a FIFO, a terminal or a device, whose reader may stop reading.

::

    Piped(fd, "stdout").write(...)     waits for the reader within the job's limits (`akrunner.io.limits`), and until a signal comes
    .flush()                           waits in the same way until everything is written
    .drop()                            waits for nothing: what is not written yet is lost
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
import time
from typing import Any

from akrunner.errors import SinkError
from akrunner.io.limits import until_writable, waits_on
from akrunner.io.unblocked import Unblocked

#: prefixes of paths that name an open file descriptor
DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
#: the number of a descriptor has fewer digits
_DIGITS = 10
#: how many bytes are gathered before they are written; as many as a pipe usually holds
_BUFFER = 1 << 16
#: how many seconds pass before a FIFO is opened again that nobody reads yet, or a write is tried again
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
        self._bytes = _Descriptor(Unblocked(fd), name)
        super().__init__(self._bytes, _BUFFER)

    def drop(self) -> None:
        """Close the descriptor at once. What is not written yet is lost. Only the thread that writes may call it: a write that
        waits in another thread goes on waiting."""
        self._bytes.dropped = True
        self.close()


class _Descriptor(io.RawIOBase):
    """Writes to a descriptor as soon as that does not block (`akrunner.io.unblocked`)."""

    def __init__(self, unblocked: Unblocked, name: str) -> None:
        super().__init__()
        self._unblocked, self._what = unblocked, f"whoever reads {name}"
        self.dropped = False

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._unblocked.isatty()

    def fileno(self) -> int:
        return self._unblocked.fileno()

    def write(self, data: Any) -> int:
        """Write a part of the bytes, and return how many; all of them count as written if they are dropped."""
        view = memoryview(data).cast("B")
        begun = time.monotonic()
        while not self.dropped and len(view):
            if written := self._unblocked.write(view):
                return written
            waits_on(self._what, begun)
            until_writable(self.fileno(), self._what)
            if written := self._unblocked.write(view):
                return written
            # a terminal may be ready and still have no room for the next character
            time.sleep(_TICK)
        return len(view)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._unblocked.close()


def check_writable(path: str) -> None:
    """Check that a path that names a descriptor (`is_special`) names one that is open, and not only for reading, as `<(...)` of a
    shell is. Raises: SinkError: it does not."""
    if path not in _STANDARD and not path.startswith(DESCRIPTORS):
        return
    try:
        number = _number(path)
    except OSError as e:
        raise SinkError(f"output: {path}: {e.strerror}") from None
    try:
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
    except OSError:
        raise SinkError(f"output: {path} is not open") from None
    if flags & os.O_ACCMODE == os.O_RDONLY:
        raise SinkError(f"output: {path} is only open for reading; a shell's >(...) can be written, its <(...) cannot")


def _number(path: str) -> int:
    """Return the number of the descriptor that a path names. Raises: FileNotFoundError: the path names none."""
    name = path.removeprefix(next((one for one in DESCRIPTORS if path.startswith(one)), ""))
    if path not in _STANDARD and not (name.isascii() and name.isdigit() and len(name) < _DIGITS):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return _STANDARD[path] if path in _STANDARD else int(name)


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
        return Piped(os.dup(_number(path)), name)
    begun = time.monotonic()
    while True:
        try:
            return Piped(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), name)
        except OSError as e:
            if e.errno != errno.ENXIO or not wait or not stat.S_ISFIFO(os.stat(path).st_mode):
                raise
        waits_on(f"somebody to read {name}", begun)
        time.sleep(_TICK)
