"""Ends the processes and removes the files that a dead host left behind.

The host's guard process does it, or its worker processes, or the next start of akrunner.

::

    host --- pipe --->  guard (`guard` below, run as `python -c`)
      x (dead) .......  end of file: kill processes, remove paths

The host sends a JSON line each time: ["+", "path", PATH] for what it holds, ["-", "path", PATH] for what it holds no longer,
the same with "group" PID START and "mark" MARK; ["awake", SECONDS]: kill a host that is stopped for so long; ["!"]: leave.

The host writes what it holds, and what it holds no longer, into its journal (`akrunner.leftovers.journal`) before it tells
the guard. So when the host dies the guard follows the journal and removes it last; only if there is no journal does it follow
what it was told.

Imports nothing of akrunner: the guard is this file and nothing else. Runs on Python 3.7 with the standard library only.

Each job has a guard, and nearly every guard is told to leave. So the guard imports, until its host dies, only what Python has
at hand: `json`, `shutil`, `signal`, `typing` and `ctypes` would take three times as long as Python's own start.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Tuple

#: environment variable of every process of a job; it finds the processes that have left the process group
MARK = "AKRUNNER_JOB"
#: environment variable of a worker process: JSON of its host's pid and start, and of the path to remove when the host is dead
#: ("" for none)
HOST = "AKRUNNER_HOST"
_TRIES = 40
_PAUSE = 0.025
#: SIGKILL, everywhere; SIGCONT and PR_SET_PDEATHSIG, on Linux
_SIGKILL, _SIGCONT, _SET_PDEATHSIG = 9, 18, 1
#: lines of its host after which the guard works out what is still held
_MANY = 1000


class Held:
    """What must go when the host dies.

    Attributes:
        paths: files and directories to remove.
        groups: process group to kill -> when its leader started (see `started`).
        marks: values of `MARK` whose processes to kill.
    """

    def __init__(self) -> None:
        self.paths: Dict[str, bool] = {}
        self.groups: Dict[int, str] = {}
        self.marks: Dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self.paths or self.groups or self.marks)

    def take(self, line: List[Any]) -> None:
        """Apply one line of the host, which says what it holds from now on ("+") or no longer ("-")."""
        sign, kind, value = line[:3]
        kinds: Dict[str, Any] = {"path": self.paths, "group": self.groups, "mark": self.marks}
        held = kinds[kind]
        if sign == "+":
            held[value] = line[3] if kind == "group" else True
        else:
            held.pop(value, None)

    def lines(self) -> List[List[Any]]:
        """Return the lines that, taken by an empty `Held`, make it hold the same."""
        return (
            [["+", "mark", mark] for mark in self.marks]
            + [["+", "group", group, start] for group, start in self.groups.items()]
            + [["+", "path", path] for path in self.paths]
        )

    def clear(self) -> bool:
        """End the processes, then remove the paths. Returns: whether every path is gone."""
        end(self.groups.items(), self.marks)
        gone = [remove(path) for path in self.paths]
        # a process may have started others while it was being killed
        end((), self.marks)
        return all(gone)


def checked(line: Any) -> List[Any]:
    """Return a line, checked to be one that a host writes. Raises: ValueError, TypeError, IndexError: it is not."""
    sign, kind, value = line[:3]
    if kind == "group":
        good = type(value) is int and value > 1 and (sign != "+" or isinstance(line[3], str))
    else:
        good = isinstance(value, str) and (kind == "path" or (kind == "mark" and value != "" and value.isascii()))
    if sign not in ("+", "-") or not good:
        raise ValueError("not a host's")
    return list(line)


def started(pid: int) -> str:
    """Return when a process started, as the kernel writes it (clock ticks since boot).

    "" if there is no such process, if it is a zombie, or if the system does not say.
    """
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            fields = f.read().rsplit(b")", 1)[1].split()
    except (OSError, IndexError):
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


def end(groups: Iterable[Tuple[int, str]], marks: Iterable[str]) -> None:
    """Send SIGKILL to process groups, and to every process that carries a mark.

    A group is left alone if another process has its leader's pid by now.

    Args:
        groups: (process group, when its leader started) of each.
        marks: values of `MARK`.
    """
    for group, start in groups:
        now = started(group)
        if group > 1 and (not now or not start or now == start):
            _kill(os.killpg, group)
    for mark in marks:
        for _ in range(_TRIES):
            left = carrying(mark)
            if not left:
                break
            for pid in left:
                _kill(os.kill, pid)
            time.sleep(_PAUSE / 10)


def carrying(mark: str) -> List[int]:
    """Return the pids of other processes with the mark in their environment, without zombies; none if there is no /proc."""
    wanted = ("%s=%s" % (MARK, mark)).encode("ascii")
    found = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as f:
                carries = wanted in f.read().split(b"\0")
        except OSError:
            continue
        if carries and started(int(name)):
            found.append(int(name))
    return found


def remove(path: str) -> bool:
    """Remove a file or a directory, whatever modes a script gave to its contents. A link is removed, never its target.

    Returns: whether the path is gone.
    """
    # with a slash at its end, a link would be followed
    path = path.rstrip(os.sep) or path
    for attempt in range(_TRIES):
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return True
        except (OSError, ValueError):
            # a path that no file can have
            return False
        if stat.S_ISDIR(mode):
            if attempt:
                _open_up(path)
            from shutil import rmtree

            rmtree(path, ignore_errors=True)
        else:
            try:
                os.unlink(path)
            except OSError:
                pass
        if not os.path.lexists(path):
            return True
        # a process that is being killed may still write into the directory
        time.sleep(_PAUSE)
    return False


def _open_up(path: str) -> None:
    """Give every directory in a tree mode 0700, each before its contents are listed: only root can list one of mode 0."""
    _usable(path)
    for folder, below, _ in os.walk(path):
        for name in below:
            _usable(os.path.join(folder, name))


def _usable(folder: str) -> None:
    try:
        if not os.path.islink(folder):
            os.chmod(folder, 0o700)
    except OSError:
        pass


def _kill(how: Any, number: int) -> None:
    try:
        how(number, _SIGKILL)
    except OSError:
        pass


def wake_when_parent_dies() -> None:
    """Have the kernel continue this process, if it is stopped, when its parent dies. Does nothing except on Linux."""
    this: Any = None
    try:
        # what `ctypes` is made of
        from _ctypes import call_function, dlopen, dlsym

        call_function(dlsym(dlopen(this, 0), "prctl"), (_SET_PDEATHSIG, _SIGCONT, 0, 0, 0))
    except (ImportError, OSError):
        pass


def _is_stopped(pid: int) -> bool:
    """Whether a process is stopped, by SIGSTOP or a similar signal."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            return f.read().rsplit(b")", 1)[1].split()[0] == b"T"
    except (OSError, IndexError):
        return False


def guard(host: int, journal: str) -> None:
    """Run the guard process: read the host's lines on stdin until the host dies, then clean up; or leave when it says "!".

    A child that the host has forked may hold the pipe open, so the guard also watches the host itself. The host starts the
    guard with SIGTERM and the like blocked.

    Args:
        host: the host's pid.
        journal: path of the journal that the host writes; "" for none.
    """
    wake_when_parent_dies()
    os.set_blocking(0, False)
    watched = [0]
    try:
        watched.append(os.pidfd_open(host))
    except (AttributeError, OSError):
        pass
    held, said, rest = Held(), [], b""
    awake, seen = 0.0, time.monotonic()
    while True:
        there = os.getppid() == host
        if there:
            select.select(watched, [], [], 1.0 if len(watched) > 1 else 0.1)
        if not awake or not _is_stopped(host):
            seen = time.monotonic()
        elif there and time.monotonic() - seen > awake:
            _kill(os.kill, host)
        try:
            data = os.read(0, 65536)
        except BlockingIOError:
            if there:
                continue
            data = b""
        lines = (rest + data).split(b"\n")
        rest = lines.pop()
        if b'["!"]' in lines:
            return
        said += lines
        if len(said) > _MANY or any(line.startswith(b'["awake"') for line in lines) or not data:
            awake, said = _taken(held, said, awake), []
        if not data:
            break
    written = _written(journal)
    if (held if written is None else written).clear() and written is not None:
        remove(journal)


def _taken(held: Held, said: List[bytes], awake: float) -> float:
    """Apply lines of the host. Returns: the seconds that the last "awake" among them says; those given if none does."""
    import json

    for line in map(json.loads, said):
        if line[0] == "awake":
            awake = line[1]
        else:
            held.take(line)
    return awake


def _written(journal: str) -> Optional[Held]:
    """Return what a journal says is held, without this process itself; None if it does not exist or cannot be read.

    A last line without a line end was being written when the host died: what it names had not been made by then.
    """
    import json

    held = Held()
    try:
        with open(journal, "rb") as f:
            lines = f.read().split(b"\n")
        # the first line names the journal's host
        for line in lines[1:-1]:
            held.take(checked(json.loads(line)))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    held.groups.pop(os.getpid(), None)
    return held


if __name__ == "__main__":
    guard(int(sys.argv[1]), sys.argv[2])
