"""A lock that another process has: it is waited for, and after a while it is said whose it is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time

import psutil

from akrunner.foreign import redacted

#: seconds waited before anything is said, and the longest pause between two tries until then
_PATIENCE, _PAUSE = 5.0, 0.05
_LOCKS = "/proc/locks"


def flock(fd: int, how: int, what: str) -> None:
    """Lock an open file, as `fcntl.flock`. Args: what: begins the sentence that says who has it. Raises: OSError."""
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
    """Processes that have a file locked, in words; on Linux.

    None where the device of the lock is not that of the file (btrfs, overlay): another file has the same number there.
    """
    about = os.fstat(fd)
    place = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    found: list[str] = []
    with contextlib.suppress(OSError), open(_LOCKS, encoding="ascii") as stream:
        for line in stream:
            # 1: FLOCK ADVISORY READ 4711 fe:00:131 0 EOF; who waits has an arrow
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
