"""What a dead host leaves, ended and removed: by its guard process, by its worker processes, or by the next start of akrunner.

::

    host --- pipe --->  guard (`guard` below, run as `python -c`)     a JSON line each: ["+", "path", PATH], ["-", "path", PATH],
      x (gone) .......  end of file: processes killed, paths removed         "group" PID START, "mark" MARK; ["!"]: leave;
                                                                   ["awake", SECONDS]: a host stopped for so long is killed

What it holds, and no longer, the host writes into its journal (`akrunner.leftovers.journal`) before it tells the guard. So a guard whose host has died goes by the
journal, removes it last, and goes by what it was told only where there is no journal.

Imports nothing of akrunner: the guard is this file and nothing else. Python 3.7, standard library only.
"""

import json
import os
import select
import shutil
import signal
import stat
import sys
import time
from typing import Any, Dict, Iterable, List, Optional, Tuple

#: in the environment of every process of a job: finds what left the process group
MARK = "AKRUNNER_JOB"
#: in the environment of a worker process: JSON of its host's pid and start, and of the path to remove when the host is gone, "" for none
HOST = "AKRUNNER_HOST"
_TRIES = 40
_PAUSE = 0.025


class Held:
    """What is to go. Attributes: paths; groups: pid -> when its leader started; marks: values of `MARK`."""

    def __init__(self) -> None:
        self.paths: Dict[str, bool] = {}
        self.groups: Dict[int, str] = {}
        self.marks: Dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self.paths or self.groups or self.marks)

    def take(self, line: List[Any]) -> None:
        """Apply one line of a host's: what is held from now on, or no longer."""
        sign, kind, value = line[:3]
        kinds: Dict[str, Any] = {"path": self.paths, "group": self.groups, "mark": self.marks}
        held = kinds[kind]
        if sign == "+":
            held[value] = line[3] if kind == "group" else True
        else:
            held.pop(value, None)

    def lines(self) -> List[List[Any]]:
        """The lines that say all of it."""
        return (
            [["+", "mark", mark] for mark in self.marks]
            + [["+", "group", group, start] for group, start in self.groups.items()]
            + [["+", "path", path] for path in self.paths]
        )

    def clear(self) -> bool:
        """End the processes, then remove the paths. Returns: whether all of it is gone."""
        end(self.groups.items(), self.marks)
        gone = [remove(path) for path in self.paths]
        # what a process started while it was being killed
        end((), self.marks)
        return all(gone)


def checked(line: Any) -> List[Any]:
    """A line as a host writes it. Raises: ValueError, TypeError, IndexError: it is none."""
    sign, kind, value = line[:3]
    if kind == "group":
        good = type(value) is int and value > 1 and (sign != "+" or isinstance(line[3], str))
    else:
        good = isinstance(value, str) and (kind == "path" or (kind == "mark" and value != "" and value.isascii()))
    if sign not in ("+", "-") or not good:
        raise ValueError("not a host's")
    return list(line)


def started(pid: int) -> str:
    """When a process started, in the kernel's own words; "" when it is not there, or is a zombie, or the system does not say."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            fields = f.read().rsplit(b")", 1)[1].split()
    except (OSError, IndexError):
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


def end(groups: Iterable[Tuple[int, str]], marks: Iterable[str]) -> None:
    """SIGKILL to process groups and to whatever carries a mark. A group whose leader is another process by now is left alone."""
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
    """Other processes with the mark in their environment, zombies left out; none where there is no /proc."""
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
    """Remove a file or a directory, whatever modes a script gave to what is in it; a link itself, never what it leads to.

    Returns: whether it is gone.
    """
    for attempt in range(_TRIES):
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return True
        except OSError:
            return False
        if stat.S_ISDIR(mode):
            if attempt:
                _open_up(path)
            shutil.rmtree(path, ignore_errors=True)
        else:
            try:
                os.unlink(path)
            except OSError:
                pass
        if not os.path.lexists(path):
            return True
        # a process that is being killed may still write into it
        time.sleep(_PAUSE)
    return False


def _open_up(path: str) -> None:
    """Each directory before it is looked into: nobody but root can list one of mode 0."""
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
        how(number, signal.SIGKILL)
    except OSError:
        pass


def wake_when_parent_dies() -> None:
    """Have the kernel continue this process, should it be stopped, when its parent has died; Linux only."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, int(signal.SIGCONT), 0, 0, 0)  # PR_SET_PDEATHSIG
    except (ImportError, OSError, AttributeError):
        pass


def _is_stopped(pid: int) -> bool:
    """Whether SIGSTOP, or the like, holds a process."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            return f.read().rsplit(b")", 1)[1].split()[0] == b"T"
    except (OSError, IndexError):
        return False


def guard(host: int, journal: str) -> None:
    """The guard process: knows what the host says on stdin until the host is gone, or says that it may leave.

    A pipe may be held open by a child the host has forked, so the host itself is watched, too. Polite signals are blocked by the host.
    Args: host: its pid; journal: the file it writes, "" for none.
    """
    wake_when_parent_dies()
    os.set_blocking(0, False)
    watched = [0]
    try:
        watched.append(os.pidfd_open(host))
    except (AttributeError, OSError):
        pass
    held, rest = Held(), b""
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
        for line in map(json.loads, lines):
            if line[0] == "!":
                return
            if line[0] == "awake":
                awake = line[1]
            else:
                held.take(line)
        if not data:
            break
    written = _written(journal)
    if (held if written is None else written).clear() and written is not None:
        remove(journal)


def _written(journal: str) -> Optional[Held]:
    """What a journal says is held, but for this process itself; None of one that is not there or cannot be read.

    A last line without its end was being written when the host died: nothing had been made by then that it speaks of.
    """
    held = Held()
    try:
        with open(journal, "rb") as f:
            lines = f.read().split(b"\n")
        # the first line says whose it is
        for line in lines[1:-1]:
            held.take(checked(json.loads(line)))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    held.groups.pop(os.getpid(), None)
    return held


if __name__ == "__main__":
    guard(int(sys.argv[1]), sys.argv[2])
