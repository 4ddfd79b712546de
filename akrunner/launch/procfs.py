"""Reads from /proc what psutil would say, for a Python without psutil, beside a Flink subtask. Linux only."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def usage(pid: int) -> tuple[int, float]:
    """Return (memory in bytes, CPU seconds including those of ended children) of a process; zeros if it does not exist."""
    fields = _stat(pid)
    if fields is None:
        return 0, 0.0
    return int(fields[21]) * _PAGE, sum(int(ticks) for ticks in fields[11:15]) / _TICKS


def group_cpu(group: int) -> float:
    """Return the CPU seconds of all processes of a process group."""
    used = 0.0
    for pid in pids():
        try:
            # a tenth of what it takes to read what each process of the machine does
            if os.getpgid(pid) != group:
                continue
        except OSError:
            continue  # it has ended
        fields = _stat(pid)
        if fields is not None and int(fields[2]) == group:
            used += (int(fields[11]) + int(fields[12])) / _TICKS
    return used


def marked(name: str, values: Collection[str]) -> list[int]:
    """Return the ids of the processes whose environment has this variable with one of these values, without zombies and this process."""
    wanted = [f"{name}={value}".encode() for value in values]
    found = []
    for pid in pids():
        try:
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as f:
                environ = f.read()
        except OSError:
            continue
        if not any(one in environ for one in wanted) or set(wanted).isdisjoint(environ.split(b"\0")):
            continue
        fields = _stat(pid)
        if pid != os.getpid() and fields is not None and fields[0] != "Z":
            found.append(pid)
    return found


def shows_environments() -> bool:
    """Whether there is a /proc in which `marked` finds processes."""
    return os.path.exists("/proc/self/environ")


def pids() -> Iterator[int]:
    """Yield the ids of all processes; none if there is no /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return iter(())
    return (int(name) for name in names if name.isdigit())


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat after the name, the state first; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
