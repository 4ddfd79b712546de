"""A process whose address space is limited (`ulimit -v`): what it must not reserve, and how much of it is used.

If C++ libraries cannot start a thread, they end the process by SIGABRT and not with an error. Most of the address space is
reserved and never used: 1 GiB by Arrow's allocator, 64 MiB by the C library for each thread that allocates.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource

#: M_ARENA_MAX, a parameter of `mallopt`, from malloc.h
_ARENA_MAX = -8
_ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"
#: threads of each of Arrow's two pools, which otherwise have one for each core, and eight
_ARROW_THREADS = 2


def limit() -> int | None:
    """Return how many bytes of address space this process may have; None: there is no limit."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if most == resource.RLIM_INFINITY else most


def lean() -> None:
    """Make this process reserve little, if its address space is limited. The earlier it is called, the better; a second call
    does no harm.

    Raises:
        ImportError, MemoryError: there is no room for Arrow.
    """
    if limit() is None:
        return
    with contextlib.suppress(AttributeError):  # a C library without arenas
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
    with contextlib.suppress(OSError):
        # a thread that ends loads this library, and aborts the process if there is no room for it then
        ctypes.CDLL("libgcc_s.so.1")
    given = os.environ.get(_ARROW_POOL)
    # Arrow reads the variable once; it is put back, because the tasks inherit it and their setting is not ours to change
    os.environ[_ARROW_POOL] = "system"
    try:
        import pyarrow as pa

        name = pa.default_memory_pool().backend_name
    finally:
        del os.environ[_ARROW_POOL]
        if given is not None:
            os.environ[_ARROW_POOL] = given
    if name == "mimalloc":
        # Arrow was imported earlier: make its allocator reserve now what it is going to reserve anyway, so that it counts as
        # used
        pa.allocate_buffer(1 << 16, memory_pool=pa.mimalloc_memory_pool())
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(min(pa.cpu_count(), _ARROW_THREADS))
    pa.set_io_thread_count(min(pa.io_thread_count(), _ARROW_THREADS))


def used() -> int:
    """Return how many bytes of address space this process uses."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def stack() -> int:
    """Return how many bytes of address space the stack of a new thread takes."""
    most = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return (8 << 20) if most == resource.RLIM_INFINITY else most
