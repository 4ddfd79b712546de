"""The process that `tests/starts.py` forks worker processes from, in a bundle beside the worker half: it imports nothing that a worker does not.

It serves before the first lines of the bundle run, and those run in each fork.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

#: what worker processes import sooner or later, whatever their script
_IMPORTED = """
numpy akrunner.worker.main akrunner.worker.chunks akrunner.worker.defaults akrunner.worker.column_rows akrunner.worker.column_encoding
""".split()
_CLONE_PARENT, _CHILD_CLEARTID, _CHILD_SETTID = 0x8000, 0x200000, 0x1000000
_GET_TID_ADDRESS = 40
#: fields of /proc/PID/stat behind the name: begin and end of the arguments, and of the environment
_ARGUMENTS, _ENVIRONMENT = slice(45, 47), slice(47, 49)


def serve() -> None:
    """Fork a worker for each order, until nobody asks any more. Returns in each of them."""
    asked = socket.socket(fileno=int(sys.argv[2]))
    from akrunner.worker import spare

    for name in _IMPORTED:
        importlib.import_module(name)
    asked.sendall(
        json.dumps(sorted({name.partition(".")[0] for name in sys.modules} | {"sitecustomize", "usercustomize"})).encode()
        + b"\n"
    )
    gc.collect()
    gc.freeze()
    while True:
        size, descriptors, _, _ = socket.recv_fds(asked, 10, 16)
        if not size:
            os._exit(0)
        order = json.loads(asked.recv(int(size), socket.MSG_WAITALL))
        pid = _fork(order["clone"])
        if pid == 0:
            asked.close()
            _become(order, descriptors, spare)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        asked.sendall(b"%d\n" % pid)


def _fork(clone: int) -> int:
    """As `os.fork`, of a child of this process' parent."""
    library = ctypes.PyDLL(None, use_errno=True)
    here = ctypes.c_void_p()
    flags = _CLONE_PARENT | signal.SIGCHLD
    # where the C library keeps the id of this thread
    if library.prctl(_GET_TID_ADDRESS, ctypes.byref(here), 0, 0, 0) == 0:
        flags |= _CHILD_CLEARTID | _CHILD_SETTID
    # the last two change places from processor to processor
    words = [ctypes.c_long(clone), ctypes.c_long(flags), ctypes.c_long(0), ctypes.c_long(0), here, here]
    ctypes.pythonapi.PyOS_BeforeFork()
    pid: int = library.syscall(*words)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return pid


def _become(order: dict[str, Any], descriptors: Sequence[int], spare: Any) -> None:
    """Be what Python is when it has just been started with these arguments."""
    os.setsid()
    above = max(*order["numbers"], *descriptors) + 1
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for descriptor in descriptors]
    os.closerange(0, above)
    for number, descriptor in zip(order["numbers"], high):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    _show(_ENVIRONMENT, [f"{name}={value}" for name, value in order["env"].items()])
    _show(_ARGUMENTS, order["words"])
    os.environ.update(order["env"])
    words = order["words"]
    spare._become({"env": {}, "cwd": order["cwd"], "bundle": words[1]}, None, words[3:])
    sys.argv[1:] = words[2:]
    sys.orig_argv[:] = words
    del sys.modules[__name__]


def _show(where: slice, texts: Sequence[str]) -> None:
    """Have other processes see these in place of what this one was started with."""
    with open("/proc/self/stat", "rb") as file:
        begin, end = map(int, file.read().rpartition(b")")[2].split()[where])
    told = b"".join(os.fsencode(text) + b"\0" for text in texts)
    ctypes.memmove(begin, told.ljust(end - begin, b"\0"), end - begin)
