"""The pipes between a host and one worker process."""

from __future__ import annotations

import contextlib
import fcntl
import os

#: the capacity of a pipe that carries rows
_BYTES = 1 << 20


class Pipes:
    """The three pipes of a worker process.

    Attributes:
        near: this process's ends: the one it writes to, the one it reads from, and the one it reads the log from.
        far: the worker's ends of the same pipes.
    """

    def __init__(self) -> None:
        """Raises: OSError: there are no descriptors left; no pipe stays open."""
        opened: list[int] = []
        try:
            child_read, input_fd = _pipe(opened)
            output_fd, child_write = _pipe(opened)
            log_fd, child_log = _pipe(opened)
        except BaseException:
            for fd in opened:
                os.close(fd)
            raise
        for fd in (input_fd, output_fd):
            _enlarge(fd)
        self.near, self.far = (input_fd, output_fd, log_fd), (child_read, child_write, child_log)

    def handed(self) -> None:
        """Close the worker's ends here, after the worker has got them."""
        for fd in self.far:
            os.close(fd)

    def close(self) -> None:
        """Close all ends, if no worker has got them."""
        for fd in (*self.near, *self.far):
            os.close(fd)


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    opened.extend(ends)
    return ends


def _enlarge(fd: int) -> None:
    """Enlarge a pipe, so that the two processes switch less often. This works on Linux only, and only if the limit allows
    it.
    """
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, getattr(fcntl, "F_SETPIPE_SZ", 1031), _BYTES)
