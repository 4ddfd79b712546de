"""Checks of the limits of this machine, and of a container on it: memory, cores, address space, open files, processes."""

from __future__ import annotations

import os
import resource

import psutil

from akrunner.checkup.lines import BROKEN, LOOK, OK, Line
from akrunner.launch import cgroups
from akrunner.launch.texts import text

_GIB = 1 << 30
#: bytes of free memory: below the first number the check says "look here", below the second "broken"
_LITTLE, _TOO_LITTLE = 1 << 30, 300 << 20
_FEW_FILES, _TOO_FEW_FILES = 1024, 48
#: address space, in bytes: with 1.9 GiB TensorFlow 2.20 can be imported, but ends by SIGABRT when it computes; with 2.4 GiB it
#: runs, on two cores
_LEAST_ADDRESSES, _FEW_ADDRESSES = 9 << 28, 8 << 30
_LEAST_FILE, _SMALL_FILE = 100 << 20, 10 << 30
#: what helps if `ulimit -v` is too small
MORE_ADDRESSES = "TensorFlow reserves far more than it uses: ulimit -v unlimited; limit memory by a container instead"
#: free processes and threads: below the first number the check says "look here", below the second "broken". They are chosen by
#: what a job of two workers with TensorFlow uses on a machine with a few cores
_FEW_THREADS, _TOO_FEW_THREADS = 500, 60


def memory(root: str = "/") -> list[Line]:
    """Check the free memory, and whether processes were killed for want of memory. Args: root: where the kernel's files are."""
    known = meminfo(root)
    total, free = known.get("MemTotal", 0), known.get("MemAvailable", 0)
    limited = min(cgroups.memory(root), key=lambda one: one[0] - one[1], default=None)
    if limited is not None and limited[0] < total:
        most, used = limited
        free = min(free, max(0, most - used))
        about = f"{gib(most)} for this container, of the machine's {gib(total)}; {gib(free)} free"
    else:
        about = f"{gib(total)}; {gib(free)} free"
    swap = known.get("SwapTotal", 0)
    about += f"; {gib(swap)} of swap" if swap else "; no swap"
    lines = [Line("memory", *_memory_state(free, about))]
    killed = cgroups.killed(root)
    if killed:
        lines.append(
            Line(
                "out of memory",
                LOOK,
                f"{killed} process{'es' * (killed > 1)} of this container were killed for want of memory since it began",
                "fewer workers (--num-workers), smaller batches, or more memory for the container",
            )
        )
    return lines


def _memory_state(free: int, about: str) -> tuple[str, str, str]:
    do = "a worker with TensorFlow takes 300 to 700 MiB before it reads a row: end something, or give the container more"
    if not free:
        return LOOK, about, "the kernel does not say how much is free"
    if free < _TOO_LITTLE:
        return BROKEN, about, do
    return (LOOK, about, do) if free < _LITTLE else (OK, about, "")


def meminfo(root: str = "/") -> dict[str, int]:
    """Return the entries of /proc/meminfo in bytes, by name; empty if there is no such file."""
    found = {}
    for line in text(os.path.join(root, "proc/meminfo")).splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


def cores(root: str = "/") -> list[Line]:
    """Check the cores that this process may use, the processor time that the container has, and AVX."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = cgroups.cores(root)
    about = f"{usable} of the machine's {os.cpu_count()}" if usable != os.cpu_count() else f"{usable}"
    if share is not None and share < usable - 0.01:
        return [
            Line(
                "cores",
                LOOK,
                f"{about}, and the container has the time of {share:g} of them",
                f"TensorFlow starts threads for all {usable}: --intra-op-parallelism {max(1, int(share))}, or --env "
                f"OMP_NUM_THREADS={max(1, int(share))}",
            )
        ]
    flags = next((line for line in text(os.path.join(root, "proc/cpuinfo")).splitlines() if line.startswith("flags")), "")
    if flags and " avx " not in flags + " ":
        return [
            Line(
                "cores",
                LOOK,
                f"{about}, without AVX",
                "TensorFlow's own wheels need it (they end with SIGILL): a machine that has it, or a TensorFlow built without",
            )
        ]
    return [Line("cores", OK, about)]


def allowed() -> list[Line]:
    """Check the limits (`ulimit`) of address space, open files and the size of files."""
    addresses = resource.getrlimit(resource.RLIMIT_AS)[0]
    lines = [Line("address space", OK, "not limited (ulimit -v)")]
    if addresses != resource.RLIM_INFINITY:
        state = BROKEN if addresses < _LEAST_ADDRESSES else LOOK if addresses < _FEW_ADDRESSES else OK
        lines = [Line("address space", state, f"{gib(addresses)} (ulimit -v)", MORE_ADDRESSES if state != OK else "")]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = soft == resource.RLIM_INFINITY
    state = OK if endless or soft >= _FEW_FILES else LOOK if soft >= _TOO_FEW_FILES else BROKEN
    wanted = max(4096, 4 * soft)
    rises = hard == resource.RLIM_INFINITY or hard >= wanted
    do = (
        f"ulimit -n {wanted} before the job"
        if rises
        else f"the hard limit is {hard}: limits.conf, docker run --ulimit nofile={wanted}"
    )
    lines.append(Line("open files", state, "not limited" if endless else f"{soft} (ulimit -n)", do if state != OK else ""))
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if largest != resource.RLIM_INFINITY:
        state = BROKEN if largest < _LEAST_FILE else LOOK if largest < _SMALL_FILE else OK
        do = "a job's rows, logs and models are files: ulimit -f unlimited before the job" if state != OK else ""
        lines.append(Line("size of files", state, f"{gib(largest)} at most (ulimit -f)", do))
    return lines


def processes(root: str = "/") -> list[Line]:
    """Check how many processes and threads there may be, and how many there are."""
    rooms = []
    for limit, used in cgroups.processes(root):
        rooms.append((limit - used, f"{used} of {limit} in this container (pids.max)"))
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:
        used = _threads_of_user(os.getuid())
        rooms.append((soft - used, f"{used} of {soft} for this user (ulimit -u)"))
    most = cgroups.number(os.path.join(root, "proc/sys/kernel/threads-max"))
    there = text(os.path.join(root, "proc/loadavg")).split()
    if most is not None and len(there) > 3 and "/" in there[3]:
        now = int(there[3].partition("/")[2] or 0)
        rooms.append((most - now, f"{now} of {most} on the machine"))
    if not rooms:
        return [Line("processes", OK, "the system names no limit")]
    room, about = min(rooms)
    state = BROKEN if room < _TOO_FEW_THREADS else LOOK if room < _FEW_THREADS else OK
    do = (
        "a worker with TensorFlow has a hundred threads and more: --pids-limit of the container, ulimit -u"
        if state != OK
        else ""
    )
    return [Line("processes and threads", state, about, do)]


def _threads_of_user(user: int) -> int:
    """Return the number of threads of all processes of a user, as far as this process can see them: what `ulimit -u` counts."""
    found = psutil.process_iter(["uids", "num_threads"])
    return sum(one.info["num_threads"] or 0 for one in found if one.info["uids"] is not None and one.info["uids"].real == user)


def gib(size: int) -> str:
    if size >= _GIB:
        return f"{size / _GIB:.1f} GiB"
    return f"{size >> 20} MiB" if size >= 1 << 20 or not size else f"{-(-size >> 10)} KiB"
