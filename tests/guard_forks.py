"""Guards of what pytest's own process holds begin as forks of one that is about to run the guard's program: each takes 12 ms of processor until it
is there, and thousands of tests have one.

::

    one of pytest's processes -- arguments, the guard's end of its pipe -->  template (`worker_template.serve_guards`)
            ^                                                                  |
            +------------ parent ---------------  guard  <------ clone --------+

A fork runs the program of a guard that was started, with its arguments, descriptors, session and blocked signals, as a child of pytest's process.
Guards start as they do for users in tests with the marker `cold`, in those of guards, in most of the crash table, and in all that is not pytest's own process:
commands, hosts, a child that a test forks.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Collection, Sequence
from typing import Any

from akrunner.leftovers import keeper
from tests.starts import CLONE, ends_cold

#: how a guard is started; its program, its host's pid and its journal follow
_HOW = ["-I", "-S", "-c"]
#: stands before a guard's program
_BEGIN = "import sys; sys.path.insert(0, sys.argv[2]); import worker_template; worker_template.serve_guards()\n"
#: how a program runs what is compiled already
_RUNS = "\nexec("
#: and behind it: a guard that leaves does nothing for its end
_END = "\n__import__('os')._exit(0)\n"
#: bytes of the arguments that a fork can have beside the program
_ROOM = 4096
#: tests of guards
_OF_GUARDS = ("tests/unit/leftovers/", "tests/unit/launch/test_guard.py", "tests/chaos/")


class _Template:
    """The process that guards are forked from. Attributes: pid: its id."""

    def __init__(self) -> None:
        """Start it, where a guard is to be started: the signals that a guard must not get are blocked, and stay so in it and its forks."""
        self._asked, theirs = socket.socketpair()
        self._owner = os.getpid()
        # each fork has its code from here
        before, _, code = keeper.program().rpartition(_RUNS)
        code = f"{before}\ncode = ({code}\n{_BEGIN}exec(code){_END}"
        words = [sys.executable, *_HOW, code, str(theirs.fileno()), os.path.dirname(__file__), "-" * _ROOM]
        with theirs:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], start_new_session=True, env={}, cwd="/",
            )  # fmt: skip
        self.pid = self._process.pid
        atexit.register(self.stop)

    def stop(self) -> None:
        # not in what pytest's process has forked
        if os.getpid() == self._owner:
            self._asked.close()
            self._process.wait()

    def fork(self, words: Sequence[str], descriptor: int) -> int:
        """The pid of a new fork. Args: words: a guard's; descriptor: its stdin. Raises: OSError, ValueError: the template has died."""
        told = json.dumps({"words": words, "clone": CLONE[platform.machine()]}).encode()
        socket.send_fds(self._asked, [b"%10d" % len(told)], [descriptor])
        self._asked.sendall(told)
        return int(self._asked.recv(20))


_templates: list[_Template] = []
_lock = threading.Lock()
#: this process, where it has a template
_owner = 0


def server() -> int:
    """The pid of the process that guards are forked from, 0 for none."""
    return _templates[0].pid if _templates else 0


def _popen(words: Sequence[str], **options: Any) -> Any:
    """A fork where it is what would be started, which is started otherwise."""
    # a test may have something else in its place
    if subprocess.Popen is _POPEN and words[1:4] == _HOW and len(words[-1]) < _ROOM // 2 and _may_fork():
        read, write = os.pipe()
        try:
            with _lock:
                if not _templates:
                    _templates.append(_Template())
                pid = _templates[0].fork(words, read)
            return types.SimpleNamespace(pid=pid, stdin=open(write, "wb", 0, closefd=True), returncode=None)
        except (OSError, ValueError):
            os.close(write)
        finally:
            os.close(read)
    return subprocess.Popen(words, **options)


def _may_fork() -> bool:
    """Whether this is pytest's process, which forks are children of, and not one that it has forked."""
    global _owner
    if platform.system() != "Linux" or platform.machine() not in CLONE:
        return False
    if not _owner and threading.current_thread() is threading.main_thread():
        _owner = os.getpid()
    return _owner == os.getpid()


_POPEN = subprocess.Popen
#: what `akrunner.leftovers.keeper` has in place of `subprocess`
_SHIM = types.SimpleNamespace(**{**vars(subprocess), "Popen": _popen})


def choose(marked: Collection[str], test: str) -> None:
    """Have guards of a test begin in the way that is its. Args: marked: the names of its markers; test: its id."""
    starts = "cold" in marked or test.startswith(_OF_GUARDS) or ends_cold(test)
    keeper.subprocess = subprocess if starts else _SHIM  # type: ignore[assignment, attr-defined]
