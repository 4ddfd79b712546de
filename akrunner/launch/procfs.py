"""What psutil tells, as far as Linux tells it itself: for a Python that has no psutil, beside a Flink subtask."""

from __future__ import annotations

import os
from collections.abc import Iterator

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def usage(pid: int) -> tuple[int, float]:
    """(memory in bytes, processor seconds, those of its ended children included) of a process; zeros where it is not there."""
    fields = _stat(pid)
    if fields is None:
        return 0, 0.0
    return int(fields[21]) * _PAGE, sum(int(ticks) for ticks in fields[11:15]) / _TICKS


def group_cpu(group: int) -> float:
    """Processor seconds of all processes of a group."""
    used = 0.0
    for pid in pids():
        fields = _stat(pid)
        if fields is not None and int(fields[2]) == group:
            used += (int(fields[11]) + int(fields[12])) / _TICKS
    return used


def marked(name: str, value: str) -> list[int]:
    """Processes whose environment has a variable, zombies left out."""
    wanted = f"{name}={value}".encode()
    found = []
    for pid in pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                carries = wanted in f.read().split(b"\0")
        except OSError:
            continue
        fields = _stat(pid)
        if carries and pid != os.getpid() and fields is not None and fields[0] != "Z":
            found.append(pid)
    return found


def pids() -> Iterator[int]:
    """All of them; none where there is no /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return iter(())
    return (int(name) for name in names if name.isdigit())


def _stat(pid: int) -> list[str] | None:
    """The fields after the name: state first."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
