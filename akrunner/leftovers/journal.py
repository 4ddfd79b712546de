"""What a process holds, written down: for the next start of akrunner, if neither the process nor its guard can remove it.

::

    $XDG_STATE_HOME/akrunner/leftovers/PID-RANDOM      first line: which process, since when, on which machine since which boot;
                                                       then the lines the guard gets, too (`akrunner.wire.ending`)
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import socket
import time
import uuid
from typing import Any, Dict, List, Optional, Set, Tuple

from akrunner.leftovers.private import private_file, state_dir
from akrunner.wire.ending import Held, started

_FOLDER = "leftovers"
#: seconds a start may take for what others left; what is not done then is the next one's
_BUDGET = 3.0
#: journals of before the machine was started anew are of no use for ever
_OLD = 30 * 86400.0


class Journal:
    """This process's own. Attributes: path: "" where none could be written; it works without."""

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
            # nobody takes it for a dead one's while it is held, even where processes cannot be told apart by their start
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.drop()
            return
        self.path = path
        self.write(json.dumps({"pid": os.getpid(), "start": started(os.getpid()), **_here()}).encode() + b"\n")

    def write(self, line: bytes) -> None:
        """Add one line. A disk that is full leaves the guard and the workers."""
        try:
            if self._fd >= 0:
                os.write(self._fd, line)
        except OSError:
            pass

    def close(self) -> None:
        """Nothing is held any more: it goes."""
        if self.path:
            try:
                os.unlink(self.path)
            except OSError:
                pass
        self.drop()

    def drop(self) -> None:
        """Let go of the file, which stays."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def clear_dead() -> None:
    """End and remove what processes of this machine held that are gone. Never what a living one holds, nor what is not written down."""
    folder = state_dir(_FOLDER)
    if folder is None:
        return
    deadline = time.monotonic() + _BUDGET
    dead: List[str] = []
    owned: Set[str] = set()
    for name in sorted(_names(folder)):
        path = os.path.join(folder, name)
        found = _read(path)
        if found is None:
            continue
        host, held = found
        if _is_dead(host, path):
            dead.append(path)
        else:
            owned.update(held.paths)
    for path in dead:
        if time.monotonic() > deadline:
            return
        _clear(path, owned)


def _clear(path: str, owned: Set[str]) -> None:
    """One dead process's. Two that start at once do not do it both."""
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
        pass  # another one is at it, or nothing can be removed there
    finally:
        os.close(fd)


def _may_go(path: str, owned: Set[str]) -> bool:
    """Whether it is where it was when it was written down, this user's, and no part of what a living process holds."""
    folder = os.path.dirname(path)
    if not os.path.isabs(path) or os.path.realpath(folder) != folder or os.path.ismount(path):
        return False
    if any(path == other or path.startswith(other + os.sep) or other.startswith(path + os.sep) for other in owned):
        return False
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return False


def _read(path: str) -> Optional[Tuple[Dict[str, Any], Held]]:
    """(whose it is, what it holds), None of what is no journal of this user's. A last line that is cut short is left out."""
    held = Held()
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as f:
            if os.fstat(f.fileno()).st_uid != os.geteuid():
                return None
            first, *rest = f.read().split(b"\n")
        host = json.loads(first)
        for line in rest[:-1]:
            held.take(json.loads(line))
        return {"pid": int(host["pid"]), **{name: host[name] for name in ("start", *_here())}}, held
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def _names(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_dead(host: Dict[str, Any], path: str) -> bool:
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
def _here() -> Dict[str, str]:
    """What processes have in common whose ids mean the same."""
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
