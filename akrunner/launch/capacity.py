"""How many tasks this machine could hold at all: a generous bound, so that a slip is refused before it exhausts the machine.

::

    memory, descriptors, processes, ports -> (how many tasks each allows, in words) -> the least of them
"""

from __future__ import annotations

import numbers
import os
import resource
from collections.abc import Iterator
from typing import Any

import psutil

from akrunner.checks import shown, whole_number
from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.launch import cgroups, cramped

#: bytes of memory of a bare Python with numpy; one with TensorFlow takes ten times as much
_TASK_BYTES = 24 << 20
#: file descriptors of this process for one task: pipes, log, port, and the one that reports its end
_TASK_FILES = 6
_OTHER_FILES = 64
#: processes and threads of one task: it has threads beside its main one
_TASK_THREADS = 3
#: threads of this process, without those for the tasks and without DuckDB's, which has one for each core
_JOB_THREADS = 8
#: bytes of address space for what a job loads and holds, and for the rows on their way to one task
_JOB_ROOM = 256 << 20
_TASK_ROOM = 16 << 20
#: limit, the least that a job needs, its unit, what it counts, and the option of the shell's `ulimit` for it
_LEAST = (
    (resource.RLIMIT_AS, 1 << 30, 1 << 20, "MiB of address space", "v"),
    (resource.RLIMIT_NOFILE, 48, 1, "open files", "n"),
)


def check_fits(**counts: Any) -> None:
    """Check that this machine can hold a job's tasks.

    Args:
        counts: numbers of tasks, by the names of the parameters that gave them; values that are no integers are ignored.
    Raises:
        ConfigError: the limits of this process are below what any job needs, or this machine cannot hold so many tasks even if
            they were idle; the error says how many it can hold, and which limit allows no more.
    """
    given = {name: whole_number(name, value) for name, value in counts.items() if isinstance(value, numbers.Integral)}
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
    """Raises: ConfigError: a limit is so low that a job would fail half way, and not always with an error message."""
    for kind, least, unit, what, flag in _LEAST:
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY and limit < least:
            raise ConfigError(
                f"this process may have {limit // unit} {what} (ulimit -{flag}); a job needs at least {least // unit}"
            )


def _check_room(count: int) -> None:
    """Raises: ConfigError: too little address space is left for so many tasks. (Arrow crashes if it cannot start a thread.)"""
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
            f"this process may have {limit >> 20} MiB of address space (ulimit -v) and has used {used >> 20} of them; a job "
            f"of {count} task{'s' * (count > 1)} needs {need >> 20} more; fewer tasks (num_workers=, num_ps=) need less, and "
            "so do threads of smaller stacks (ulimit -s)"
        )


def most_tasks() -> tuple[int, str]:
    """Return (how many tasks this machine holds, which limit bounds them, in words)."""
    return min(((max(1, most), why) for most, why in _bounds()), key=lambda bound: bound[0])


def memory_left() -> int:
    """Return how many bytes of memory are free on this machine, or in this process's control groups if that is less."""
    return max(0, int(min([psutil.virtual_memory().available, *(most - used for most, used in cgroups.memory())])))


def _bounds() -> Iterator[tuple[int, str]]:
    memory = cgroups.memory_bytes()
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
