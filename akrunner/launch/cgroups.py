"""The limits that the control groups above this process set, in both versions of control groups: as a rule, a container's
limits.

::

    version 2   0::/box/job                 /sys/fs/cgroup/box/job/memory.max ...
    version 1   4:memory:/docker/ab         /sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes ...

The functions that take `root` look for the kernel's files below that directory.
"""

from __future__ import annotations

import os

from akrunner.launch.texts import text

#: bytes; a group of version 1 that has no limit reports about this number or more
NO_LIMIT = 1 << 60


def groups(controller: str, root: str = "/") -> list[str]:
    """Return the directories of this process's control group and of the groups above it, the topmost first: those of version 2,
    and those of this controller in version 1.
    """
    found = []
    for line in text(os.path.join(root, "proc/self/cgroup")).splitlines():
        number, _, rest = line.partition(":")
        names, _, own = rest.partition(":")
        if number == "0" and not names:
            base = os.path.join(root, "sys/fs/cgroup")
        elif controller in names.split(","):
            base = os.path.join(root, "sys/fs/cgroup", controller)
        else:
            continue
        parts = [part for part in own.split("/") if part and part != ".."]
        found += [os.path.join(base, *parts[:depth]) for depth in range(len(parts) + 1)]
    return found


def memory_bytes(root: str = "/") -> int:
    """Return the machine's memory in bytes, or the limit of this process's control groups if that is less."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(most for most, _ in memory(root))])


def memory(root: str = "/") -> list[tuple[int, int]]:
    """Return (bytes a group may use, bytes it uses) for each group that has a limit.

    Pages of files that were not used of late do not count: the kernel frees them when a process needs memory.
    """
    found = []
    for folder in groups("memory", root):
        for most, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            limit, now = number(os.path.join(folder, most)), number(os.path.join(folder, used))
            if limit is not None and limit < NO_LIMIT:
                found.append((limit, max(0, (now or 0) - _cached(folder))))
    return found


def _cached(folder: str) -> int:
    """Return how many bytes of files a memory group and the groups below it hold and have not used of late."""
    words = (line.split() for line in text(os.path.join(folder, "memory.stat")).splitlines())
    told = {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()}
    # version 1 has the group's own number, too, beside the total with the groups below it
    return told.get("total_inactive_file", told.get("inactive_file", 0))


def processes(root: str = "/") -> list[tuple[int, int]]:
    """Return (processes and threads a group may have, how many it has) for each group that has a limit."""
    found = []
    for folder in groups("pids", root):
        most, now = number(os.path.join(folder, "pids.max")), number(os.path.join(folder, "pids.current"))
        if most is not None:
            found.append((most, now or 0))
    return found


def cores(root: str = "/") -> float | None:
    """Return how many cores' worth of CPU time this process may use; None: there is no limit."""
    shares = []
    for folder in groups("cpu", root):
        words = text(os.path.join(folder, "cpu.max")).split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
            shares.append(int(words[0]) / int(words[1]))
        most, period = (number(os.path.join(folder, name)) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
        if most and most > 0 and period:
            shares.append(most / period)
    return min(shares, default=None)


def killed(root: str = "/") -> int:
    """Return how many processes of the group were killed because memory ran out."""
    for folder in reversed(groups("memory", root)):
        for name in ("memory.events", "memory.oom_control"):
            for line in text(os.path.join(folder, name)).splitlines():
                words = line.split()
                if words[:1] == ["oom_kill"] and words[1:] and words[1].isdigit():
                    return int(words[1])
    return 0


def number(path: str) -> int | None:
    """Return the number that a file of the kernel's holds; None if there is no such file, or it says "max"."""
    said = text(path).strip()
    return int(said) if said.lstrip("-").isdigit() else None
