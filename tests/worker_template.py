"""The process that `tests/starts.py` forks worker processes from, in a bundle beside the worker half: it imports nothing that a worker does not.
And the one of agents on Flink (`tests/forked/worker_forks.py`), which may have imported TensorFlow, too; and the one of guards
(`tests/guard_forks.py`).

It serves before the first lines of the bundle, or of a guard's program, run, and those run in each fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any

#: what worker processes import sooner or later, whatever their script
_IMPORTED = """
numpy akrunner.worker.main akrunner.worker.chunks akrunner.worker.defaults akrunner.worker.column_rows akrunner.worker.column_encoding
""".split()
#: seconds between two looks at who may still ask
_LOOKS = 1.0
#: the bundle as jobs have it, beside the one with this module
_SOURCE = "source.zip"
#: of a template of workers: `Own` of `akrunner.worker.spare`
_own: list[Any] = []
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
    _own.append(_modules_of(spare))
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


def _modules_of(spare: Any) -> Any:
    return spare.BundleModules(os.path.join(os.path.dirname(sys.argv[0]), _SOURCE))


def serve_agents() -> None:
    """Fork a worker for each agent that asks, until no session that has asked is there any more. Returns in each of them."""
    if os.fork():
        os._exit(0)
    number, printed, module, session = sys.argv[2:6]
    server = socket.socket(fileno=int(number))
    before = dict(os.environ)
    from akrunner.worker import spare, template
    from akrunner.worker.task import before_import

    opened = template.descriptors()
    before_import({}, None, None)
    for name in [*_IMPORTED, module]:
        importlib.import_module(name)
    _own.append(_modules_of(spare))
    shutil.rmtree(os.path.dirname(sys.argv[0]))
    if [what for number, what in template.descriptors().items() if opened.get(number) != what] or _threads_in_a_fork(template):
        # who asks starts its own
        os._exit(1)
    # the other end of stdout, which is a pipe as a fork's is
    os.close(int(printed))
    gc.collect()
    gc.freeze()
    if module == "tensorflow":
        template.put_together()
    changed = {name: value for name, value in os.environ.items() if before.get(name) != value}
    if not _Agents(server, int(session), changed).serve(spare):
        os._exit(0)


def _threads_in_a_fork(template: Any) -> bool:
    """Whether this process has threads that a fork would not have. A library that supports forks ends its own before one."""
    pid = template._forked()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return bool(set(template._threads()) - template._SURVIVE)


def serve_guards() -> None:
    """Fork a guard for each order, until nobody asks any more. Returns in each of them."""
    asked = socket.socket(fileno=int(sys.argv[1]))
    gc.collect()
    gc.freeze()
    while True:
        size, descriptors, _, _ = socket.recv_fds(asked, 10, 1)
        if not size:
            os._exit(0)
        order = json.loads(asked.recv(int(size), socket.MSG_WAITALL))
        pid = _fork(order["clone"])
        if pid == 0:
            os.setsid()
            os.dup2(descriptors[0], 0)
            os.close(descriptors[0])
            asked.close()
            _show(_ARGUMENTS, order["words"])
            del sys.path[0], sys.modules[__name__]
            sys.argv[1:] = order["words"][5:]
            sys.orig_argv[:] = order["words"]
            return
        os.close(descriptors[0])
        asked.sendall(b"%d\n" % pid)


class _Agents:
    """Those who ask. Args: server: where they do; session: of the first's TaskManager; changed: variables that imports have set."""

    def __init__(self, server: socket.socket, session: int, changed: Mapping[str, str]) -> None:
        self._server, self._sessions, self._changed = server, {session}, changed
        self._imported = {name.partition(".")[0] for name in sys.modules}
        #: pid of a fork -> where its end is told; None: its agent has died
        self._told: dict[int, socket.socket | None] = {}

    def serve(self, spare: Any) -> bool:
        """Returns: whether this is a fork."""
        woken, wakes = os.pipe()
        for end in (woken, wakes):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        while self._told or any(os.path.exists(f"/proc/{session}") for session in self._sessions):
            told_of: list[Any] = [told for told in self._told.values() if told is not None]
            ready = select.select([self._server, woken, *told_of], [], [], _LOOKS)[0]
            if woken in ready:
                os.read(woken, 4096)
                self._tell_ends()
            for pid, told in self._told.items():
                if told is not None and told in ready:
                    # its agent, which says nothing more, has died: `akrunner.wire.ending.wake_when_parent_dies`
                    os.kill(pid, signal.SIGCONT)
                    told.close()
                    self._told[pid] = None
            if self._server in ready and self._fork(spare, [woken, wakes]):
                return True
        return False

    def _fork(self, spare: Any, ours: Sequence[int]) -> bool:
        """Returns: whether this is the fork."""
        told = self._server.accept()[0]
        credentials = told.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        if struct.unpack("iII", credentials)[1] != os.geteuid():
            # everybody can find a socket that has no file
            told.close()
            return False
        size, descriptors, _, _ = socket.recv_fds(told, 8, 16)
        if not size:
            told.close()
            return False
        order = json.loads(told.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL))
        self._sessions.add(order["session"])
        shadows = any(name.partition(".")[0] in self._imported for name in order["names"])
        pid = 0 if shadows else os.fork()
        if pid == 0 and not shadows:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            numbers = [*ours, self._server.detach(), *(one.detach() for one in self._told.values() if one is not None)]
            for number in numbers:
                os.close(number)
            self._be_its(order, descriptors, told.detach(), spare)
            return True
        for descriptor in descriptors:
            os.close(descriptor)
        if shadows:
            told.close()
        else:
            self._told[pid] = told
        return False

    def _be_its(self, order: dict[str, Any], descriptors: Sequence[int], told: int, spare: Any) -> None:
        """As a child of the agent, which is told so."""
        from akrunner.wire import ending

        # above those that are closed
        kept = socket.socket(fileno=fcntl.fcntl(told, fcntl.F_DUPFD_CLOEXEC, max(*order["numbers"], *descriptors, told) + 100))
        os.close(told)
        mine = os.environ["PYTHONPATH"].split(os.pathsep)
        _become(order, descriptors, spare)
        os.environ.update(self._changed)
        others = [place for place in sys.path[1:] if place not in mine]
        sys.path[1:] = dict.fromkeys([*order["path"], *others])
        parent, start = order["parent"], ending.started(order["parent"])
        os.getppid = lambda: parent if ending.started(parent) == start else 1
        with kept:
            kept.sendall(b"forked %d\n" % os.getpid())

    def _tell_ends(self) -> None:
        while self._told:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            told = self._told.pop(pid)
            if told is not None:
                with told, contextlib.suppress(OSError):
                    told.sendall(b"ended %d %f %f %d\n" % (status, usage.ru_utime, usage.ru_stime, usage.ru_maxrss))


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
    spare._become({"env": {}, "cwd": order["cwd"], "bundle": words[1]}, None, words[3:], _own[0])
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        # Python seeds its own generator again in each fork
        numpy.seed()
    sys.argv[1:] = words[2:]
    sys.orig_argv[:] = words
    del sys.modules[__name__]


def _show(where: slice, texts: Sequence[str]) -> None:
    """Have other processes see these in place of what this one was started with."""
    with open("/proc/self/stat", "rb") as file:
        begin, end = map(int, file.read().rpartition(b")")[2].split()[where])
    told = b"".join(os.fsencode(text) + b"\0" for text in texts)
    ctypes.memmove(begin, told.ljust(end - begin, b"\0"), end - begin)
