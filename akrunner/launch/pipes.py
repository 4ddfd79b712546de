"""The pipes between a host and one worker process."""

from __future__ import annotations

import contextlib
import fcntl
import os

#: that fit in one which carries rows
_BYTES = 1 << 20


class Pipes:
    """The three pipes of a worker process.

    Attributes: near: this process's ends: written to it, read from it, read from its log; far: the worker's ends of the same.
    """

    def __init__(self) -> None:
        """Raises: OSError: there are no descriptors left; nothing is left open."""
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
        """The worker has its ends: close them here."""
        for fd in self.far:
            os.close(fd)

    def close(self) -> None:
        """Nobody has got its ends: close all."""
        for fd in (*self.near, *self.far):
            os.close(fd)


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    opened.extend(ends)
    return ends


def _enlarge(fd: int) -> None:
    """A larger pipe means fewer switches between the two processes; Linux only, and only if the limit allows."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, getattr(fcntl, "F_SETPIPE_SZ", 1031), _BYTES)
