"""Waits for a lock that another process holds; after a while it prints which process that is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time

import psutil

from akrunner.foreign import redacted

#: seconds to wait before a message is printed; the longest pause between two tries until then, in seconds
_PATIENCE, _PAUSE = 5.0, 0.05
_LOCKS = "/proc/locks"


def flock(fd: int, how: int, what: str) -> None:
    """Lock an open file as `fcntl.flock` does, and print a message if that takes more than five seconds.

    Args:
        what: the beginning of the message that says which process holds the lock.
    Raises:
        OSError: the file cannot be locked.
    """
    until, pause = time.monotonic() + _PATIENCE, 0.001
    while time.monotonic() < until:
        try:
            return fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
            pause = min(_PAUSE, pause * 2)
    holders = " and ".join(_holders(fd)) or "another process"
    print(f"akrunner: {what} waits for {holders}; Ctrl-C gives up", file=sys.stderr, flush=True)
    fcntl.flock(fd, how)


def _holders(fd: int) -> list[str]:
    """Return the processes that hold a lock on a file, in words. Only on Linux.

    Returns [] where the device of the lock is not that of the file (btrfs, overlay): there another file may have the same
    number.
    """
    about = os.fstat(fd)
    place = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    found: list[str] = []
    with contextlib.suppress(OSError), open(_LOCKS, encoding="ascii") as stream:
        for line in stream:
            # 1: FLOCK ADVISORY READ 4711 fe:00:131 0 EOF; a process that waits for the lock has an arrow
            words = line.split()
            if len(words) >= 6 and words[1] == "FLOCK" and words[5] == place:
                found.append(_process(int(words[4])))
    return found


def _process(pid: int) -> str:
    if pid <= 0:
        return "another process (in another container)"
    try:
        process = psutil.Process(pid)
        command = " ".join(redacted(" ".join(process.cmdline())).split())
        state = ", which is stopped" if process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP) else ""
    except psutil.Error:
        return f"process {pid}"
    return f"process {pid} ({command[:60]}{'...' if len(command) > 60 else ''}){state}"
