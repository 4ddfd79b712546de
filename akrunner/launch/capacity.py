"""How many tasks this machine could hold at all: a generous bound, so that a slip is refused before it eats the machine.

::

    memory, descriptors, processes, ports -> (how many each allows, in words) -> the least of them
"""

from __future__ import annotations

import numbers
import os
import resource
from collections.abc import Iterator
from typing import Any

import psutil

from akrunner.checks import shown
from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.launch import cgroups, cramped

#: a bare Python with numpy; one with TensorFlow has ten times as much
_TASK_BYTES = 24 << 20
#: pipes, log, port, what tells its end; of this process
_TASK_FILES = 6
_OTHER_FILES = 64
#: it has threads beside its main one
_TASK_THREADS = 3
#: of this process, beside those of the tasks and of DuckDB, which has one for each core
_JOB_THREADS = 8
#: address space for what a job loads and holds, and for the rows on their way to one task
_JOB_ROOM = 256 << 20
_TASK_ROOM = 16 << 20
#: limit, the least a job needs, its unit, what it counts, the shell's letter for it
_LEAST = (
    (resource.RLIMIT_AS, 1 << 30, 1 << 20, "MiB of address space", "v"),
    (resource.RLIMIT_NOFILE, 48, 1, "open files", "n"),
)


def check_fits(**counts: Any) -> None:
    """Args: counts: of tasks, by the parameters they were given by; what is no number is not looked at.

    Raises: ConfigError: this process may not have what any job needs, or not even idle processes of so many tasks fit this machine; it says how many do, and why no more.
    """
    given = {name: int(value) for name, value in counts.items() if isinstance(value, numbers.Integral)}
    count = max(sum(value for name, value in given.items() if name != "parallelism"), given.get("parallelism", 0))
    _check_limits()
    _check_room(max(1, count))
    if count <= 2:
        return
    most, why = most_tasks()
    if count > most:
        name, value = max(given.items(), key=lambda one: one[1])
        raise ConfigError(f"{name}={shown(value)}: this machine holds at most {most} tasks ({why})")


def _check_limits() -> None:
    """Raises: ConfigError: a job would end half way, and not always in words."""
    for kind, least, unit, what, flag in _LEAST:
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY and limit < least:
            raise ConfigError(
                f"this process may have {limit // unit} {what} (ulimit -{flag}); a job needs at least {least // unit}"
            )


def _check_room(count: int) -> None:
    """Raises: ConfigError: the address space that is left is too little for so many tasks: Arrow crashes where it can start no thread."""
    limit = cramped.limit()
    if limit is None:
        return
    with ours(ConfigError, "this process has no room for what a job needs"):
        cramped.lean()
        used = cramped.used()
    threads = _JOB_THREADS + (os.cpu_count() or 1) + _TASK_THREADS * count
    need = _JOB_ROOM + threads * cramped.stack() + count * _TASK_ROOM
    if limit - used < need:
        raise ConfigError(
            f"this process may have {limit >> 20} MiB of address space (ulimit -v) and has used {used >> 20} of them; a job of {count} "
            f"task{'s' * (count > 1)} needs {need >> 20} more; fewer tasks (num_workers=, num_ps=) need less, and so do threads of smaller "
            "stacks (ulimit -s)"
        )


def most_tasks() -> tuple[int, str]:
    """(how many, what bounds them)."""
    return min(((max(1, most), why) for most, why in _bounds()), key=lambda bound: bound[0])


def memory_bytes() -> int:
    """Memory of the machine, or as much of it as this process's control group may have."""
    return int(min([psutil.virtual_memory().total, *(most for most, _ in cgroups.memory())]))


def memory_left() -> int:
    """As much of it as nobody uses."""
    return max(0, int(min([psutil.virtual_memory().available, *(most - used for most, used in cgroups.memory())])))


def _bounds() -> Iterator[tuple[int, str]]:
    memory = memory_bytes()
    yield memory // _TASK_BYTES, f"{memory / 2**30:.1f} GiB of memory, {_TASK_BYTES >> 20} MiB for each at the very least"
    threads = [most for most, _ in cgroups.processes()]
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files != resource.RLIM_INFINITY:
        yield (files - _OTHER_FILES) // _TASK_FILES, f"{files} open files, {_TASK_FILES} for each: ulimit -n"
    own = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if own != resource.RLIM_INFINITY and os.geteuid() != 0:
        threads.append(own)
    known = (cgroups.number(f"/proc/sys/kernel/{name}") for name in ("pid_max", "threads-max"))
    threads += [most for most in known if most is not None]
    if threads:
        yield (
            min(threads) // _TASK_THREADS,
            f"{min(threads)} processes and threads, {_TASK_THREADS} for each: ulimit -u, pids.max",
        )
    yield 20_000, "ports"
