"""A process whose address space is limited (`ulimit -v`): what it must not reserve, and what is left of it.

Threads that cannot be started end a process of C++ libraries by SIGABRT, not in words. What takes the room is mostly reserved and never used:
1 GiB by Arrow's allocator, 64 MiB by the C library for each thread that allocates.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource

#: of `mallopt`, in malloc.h
_ARENA_MAX = -8
_ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"
#: of Arrow's two pools, which have a thread for each core, and eight, else
_ARROW_THREADS = 2


def limit() -> int | None:
    """Bytes of address space this process may have; None: there is no limit."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if most == resource.RLIM_INFINITY else most


def lean() -> None:
    """Have this process reserve little, if its address space is limited. The earlier the better; twice is fine.

    Raises: ImportError, MemoryError: there is no room for Arrow.
    """
    if limit() is None:
        return
    with contextlib.suppress(AttributeError):  # a C library without arenas
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
    with contextlib.suppress(OSError):
        # a thread that ends loads it, and aborts the process when there is no room then
        ctypes.CDLL("libgcc_s.so.1")
    given = os.environ.get(_ARROW_POOL)
    # read once, and the tasks' is none of ours
    os.environ[_ARROW_POOL] = "system"
    try:
        import pyarrow as pa

        name = pa.default_memory_pool().backend_name
    finally:
        del os.environ[_ARROW_POOL]
        if given is not None:
            os.environ[_ARROW_POOL] = given
    if name == "mimalloc":
        # somebody has imported Arrow before: what is going to be reserved for its own code is reserved now, and counts as used
        pa.allocate_buffer(1 << 16, memory_pool=pa.mimalloc_memory_pool())
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(min(pa.cpu_count(), _ARROW_THREADS))
    pa.set_io_thread_count(min(pa.io_thread_count(), _ARROW_THREADS))


def used() -> int:
    """Bytes of address space this process has."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def stack() -> int:
    """Bytes of address space the stack of a new thread takes."""
    most = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return (8 << 20) if most == resource.RLIM_INFINITY else most
