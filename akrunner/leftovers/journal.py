"""The journal: a file in which a process writes down what it holds. Its guard reads it when the process has died, and the next
start of akrunner reads it when the guard has died, too.

::

    $XDG_STATE_HOME/akrunner/leftovers/PID-RANDOM      first line: which process, since when, on which machine since which boot;
                                                       then what is held, or no longer held, in the lines that the guard is sent
                                                       (`akrunner.wire.ending`)
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import socket
import stat
import time
import uuid
from collections.abc import Iterable
from typing import IO, Any

from akrunner.leftovers.private import private_file, state_dir
from akrunner.wire.ending import Held, checked, started

_FOLDER = "leftovers"
#: seconds that a start of akrunner may spend on what dead processes left; the next start does the rest
_BUDGET = 3.0
#: of these, seconds for reading the journals of dead processes
_READING = 0.5
#: seconds after which an empty journal counts as one whose process died before it wrote the first line
_UNBEGUN = 600.0
#: seconds after which a journal from before the last boot is removed, because it is of no use any more
_OLD = 30 * 86400.0
#: a longer file, or a longer line, was not written by akrunner
_MOST_BYTES = 64 * 2**20
_MOST_LINE = 65536


class Journal:
    """This process's own journal. Attributes: path: its file; "": it could not be written, and the process works without it."""

    def __init__(self) -> None:
        self.path = ""
        self._fd = -1
        folder = state_dir(_FOLDER)
        if folder is None:
            return
        path = os.path.join(folder, f"{os.getpid()}-{uuid.uuid4().hex[:8]}")
        try:
            with private_file(path, "xb", buffering=0) as f:
                self._fd = os.dup(f.fileno())
            # while the lock is held, no process takes the journal for a dead one's, even where processes cannot be told apart
            # by their start
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.drop()
            return
        self.path = path
        self.write(json.dumps({"pid": os.getpid(), "start": started(os.getpid()), **_here()}).encode() + b"\n")

    def write(self, line: bytes) -> None:
        """Add one line. If the disk is full, the journal is removed, because it would miss what is forgotten later; the guard
        and the workers still clean up.
        """
        try:
            if self._fd < 0 or os.write(self._fd, line) == len(line):
                return
        except OSError:
            pass
        self.close()

    def close(self) -> None:
        """Remove the journal, because its process holds nothing any more."""
        path, self.path = self.path, ""
        if path:
            try:
                os.unlink(path)
            except OSError:
                pass
        self.drop()

    def drop(self) -> None:
        """Close the file, but do not remove it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def clear_dead() -> None:
    """End and remove what dead processes of this machine held, as far as they wrote it down; never what a living process
    holds.
    """
    folder = state_dir(_FOLDER)
    if folder is None:
        return
    began = time.monotonic()
    dead: list[str] = []
    others: list[str] = []
    names = _names(folder)
    living = [name for name in names if _may_live(name)]
    gone = sorted(set(names) - set(living))
    # start at another one each time, in case most of them cannot be removed
    first = time.time_ns() % (len(gone) or 1)
    for count, name in enumerate(living + gone[first:] + gone[:first]):
        if count >= len(living) and time.monotonic() - began > _READING:
            break
        path = os.path.join(folder, name)
        found = _read(path, wholly=False)
        if found is None:
            _drop_unbegun(path)
        else:
            (dead if _is_dead(found[0], path) else others).append(path)
    # find out what other processes hold before anything is removed; that takes long if a process holds much, and is skipped if
    # none has died
    owned = {one for path in others if dead for one in _held_by(path)}
    for path in dead:
        if time.monotonic() - began > _BUDGET:
            return
        _clear(path, owned)


def _may_live(journal: str) -> bool:
    """Whether there is a process with the id that the journal's name begins with."""
    pid = journal.partition("-")[0]
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except OSError:
        pass
    return True


def _drop_unbegun(path: str) -> None:
    """Remove a journal whose process was killed before it wrote its first line: an empty file that is no longer new."""
    try:
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode) and found.st_size == 0 and time.time() - found.st_mtime > _UNBEGUN:
            os.unlink(path)
    except OSError:
        pass


def _clear(path: str, owned: set[str]) -> None:
    """End and remove what one dead process held. If two starts run at once, only one of them does it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = _read(path)
        if found is None:
            return
        held = found[1]
        held.paths = {one: True for one in held.paths if _may_go(one, owned)}
        if held.clear():
            os.unlink(path)
    except OSError:
        pass  # another process does it right now, or nothing can be removed there
    finally:
        os.close(fd)


def _may_go(path: str, owned: set[str]) -> bool:
    """Whether a path still leads where it led when it was written down, is this user's, and does not overlap with what a living
    process holds.
    """
    folder = os.path.dirname(path)
    # `register` writes no path with `.` or `..` in it, as `/home/me/.` has
    if not os.path.isabs(path) or os.path.normpath(path) != path or folder == path:
        return False
    if any(path == other or path.startswith(other + os.sep) or other.startswith(path + os.sep) for other in owned):
        return False
    try:
        return os.path.realpath(folder) == folder and not os.path.ismount(path) and os.lstat(path).st_uid == os.geteuid()
    except (OSError, ValueError):  # ValueError: no file can have such a name
        return False


def _held_by(path: str) -> Iterable[str]:
    found = _read(path)
    return found[1].paths if found is not None else ()


def _read(path: str, wholly: bool = True) -> tuple[dict[str, Any], Held] | None:
    """Return (the process that a journal is of, what it holds); None if the file is no journal of this user's. A last line that
    is cut short is left out.

    Args:
        wholly: whether to read what it holds, too.
    """
    held = Held()
    try:
        # with O_NONBLOCK, a pipe of that name does not block
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as f:
            about = os.fstat(f.fileno())
            if about.st_uid != os.geteuid() or not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_BYTES:
                return None
            host = json.loads(_line(f))
            line = _line(f) if wholly else b""
            while line:
                held.take(checked(json.loads(line)))
                line = _line(f)
        if type(host["pid"]) is not int or not 0 < host["pid"] < 2**31:
            return None
        texts = {name: host[name] for name in ("start", *_here())}
        return ({"pid": host["pid"], **texts}, held) if all(isinstance(text, str) for text in texts.values()) else None
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None


def _line(f: IO[bytes]) -> bytes:
    """Return the next line; b"" at the end, or if the line is cut short.

    Raises:
        ValueError: the line is too long for a journal.
    """
    line = f.readline(_MOST_LINE)
    if len(line) == _MOST_LINE:
        raise ValueError("too long")
    return line if line.endswith(b"\n") else b""


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_dead(host: dict[str, Any], path: str) -> bool:
    if any(host[name] != value for name, value in _here().items() if name != "boot"):
        return False
    if host["boot"] != _here()["boot"]:
        try:
            if time.time() - os.stat(path).st_mtime > _OLD:
                os.unlink(path)
        except OSError:
            pass
        return False
    if host["start"]:
        return bool(started(host["pid"]) != host["start"])
    try:
        os.kill(host["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


@functools.lru_cache(maxsize=1)
def _here() -> dict[str, str]:
    """Return what two processes must have in common for their process ids to mean the same."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return {
        "boot": _text("/proc/sys/kernel/random/boot_id"),
        "machine": f"{socket.gethostname()} {_text('/etc/machine-id')}",
        "namespace": namespace,
    }


def _text(path: str) -> str:
    try:
        with open(path, errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""
