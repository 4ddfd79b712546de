"""The host's end: what this process holds, its guard, its journal."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

from akrunner.leftovers.journal import Journal, clear_dead
from akrunner.leftovers.private import temp_directory
from akrunner.wire import ending, ready

#: seconds a guard may take to read what it is told; one that takes longer is stuck
_PATIENCE = 2.0
_POLITE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Guard:
    """The guard process. Attributes: pid."""

    def __init__(self, journal: str) -> None:
        """Start it. Raises: OSError: there are no processes or descriptors left."""
        source = inspect.getsource(ending)
        # it inherits that nobody can ask it politely to end, from its first instruction on
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _POLITE)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", source, str(os.getpid()), journal],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={},
                cwd="/",
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        assert process.stdin is not None
        self._fd = os.dup(process.stdin.fileno())
        os.set_blocking(self._fd, False)
        process.stdin.close()
        self.pid = process.pid
        # it is waited for here; `Popen` would warn of one that outlives it
        process.returncode = 0

    def say(self, line: bytes) -> bool:
        """Whether it is there and has room for it."""
        deadline = time.monotonic() + _PATIENCE
        while line:
            try:
                line = line[os.write(self._fd, line) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return False
                ready.writable(self._fd, 0.1)
            except OSError:
                return False
        return True

    def is_there(self) -> bool:
        """Whether it runs."""
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == 0
        except ChildProcessError:
            return False

    def leave(self) -> None:
        """It goes; it may still be starting up, or stuck: then it is killed."""
        self.say(b'["!"]\n')
        deadline = time.monotonic() + 0.02
        while self.is_there():
            if time.monotonic() > deadline:
                self.kill()
                return
            time.sleep(0.001)
        self.drop()

    def kill(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        self.drop()

    def drop(self) -> None:
        """Close this end of its pipe."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _Keeper:
    """One process's. Attributes: guards: how often one had to be replaced."""

    def __init__(self) -> None:
        # a finalizer may run, and forget something, inside any of these methods
        self._lock = threading.RLock()
        self._held = ending.Held()
        self._guard: _Guard | None = None
        self._journal: Journal | None = None
        self._again_at = 0.0
        self._awake = 0.0
        #: blocks of `together` that run
        self._blocks = 0
        self.replaced = 0

    def say(self, *line: Any) -> None:
        """Hold something, or hold it no longer; journal and guard know it when this returns."""
        with self._lock:
            if line[0] == "+" and self._journal is None:
                clear_dead()
                self._journal = Journal()
            self._held.take(list(line))
            written = json.dumps(line).encode() + b"\n"
            if self._journal is not None:
                self._journal.write(written)
            told = self._guard is not None and self._guard.say(written)
            if self._held and not told:
                self.look()
            self._let_go_if_idle()

    def begin(self) -> None:
        """Until `end`, the guard and the journal stay, whether anything is held or not."""
        with self._lock:
            self._blocks += 1

    def end(self) -> None:
        with self._lock:
            self._blocks -= 1
            self._let_go_if_idle()

    def look(self) -> int:
        """See to it that there is a guard. Returns: how often one had to be replaced."""
        with self._lock:
            if not self._held:
                return self.replaced
            lost = self._guard
            if lost is not None and lost.is_there() and lost.say(b""):
                return self.replaced
            if lost is not None:
                lost.kill()
                self._guard = None
                self.replaced += 1
                if self._journal is not None:
                    self._journal.write(json.dumps(["-", "group", lost.pid]).encode() + b"\n")
            self._start()
            return self.replaced

    def keep_awake(self, seconds: float) -> None:
        """From now on every guard kills this process when something has held it stopped for so long."""
        with self._lock:
            self._awake = seconds
            if self._guard is not None:
                self._guard.say(self._patience())

    def _patience(self) -> bytes:
        return json.dumps(["awake", self._awake]).encode() + b"\n"

    def _start(self) -> None:
        """A guard that knows everything; without one (no process can be started) the workers and the journal are left."""
        if time.monotonic() < self._again_at:
            return
        try:
            guard = _Guard(self._journal.path if self._journal is not None else "")
        except OSError:
            self._again_at = time.monotonic() + 1.0
            return
        self._guard = guard
        if self._journal is not None:
            # one that is stopped before it can ask to be woken ends with the next start
            self._journal.write(json.dumps(["+", "group", guard.pid, ending.started(guard.pid)]).encode() + b"\n")
        for line in self._held.lines():
            guard.say(json.dumps(line).encode() + b"\n")
        if self._awake:
            guard.say(self._patience())

    def _let_go_if_idle(self) -> None:
        if self._held or self._blocks:
            return
        # the guard is the last to go: it removes the journal, should this process die on the next line
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.leave()

    def drop(self) -> None:
        """In a child made by fork: none of it is this process's."""
        if self._guard is not None:
            self._guard.drop()
        if self._journal is not None:
            self._journal.drop()


_keepers: list[_Keeper] = [_Keeper()]


def _forked() -> None:
    _keepers.append(_Keeper())
    _keepers.pop(0).drop()


os.register_at_fork(after_in_child=_forked)


def register(path: str) -> None:
    """Have a local file or directory removed if this process dies before `forget`. Call it before the path is made; the name is to
    be one that nobody else will use, as with `uuid` in it."""
    _keepers[0].say("+", "path", _place(path))


def forget(path: str) -> None:
    """Hold a path no longer: it was removed, or has become something to keep."""
    _keepers[0].say("-", "path", _place(path))


def temp_folder(prefix: str) -> str:
    """Make a directory of mode 0700 in the temp directory, which goes if this process dies before `drop`.

    Args: prefix: its name begins so. Returns: its path. Raises: OSError: it cannot be made.
    """
    path = os.path.join(temp_directory(), prefix + uuid.uuid4().hex[:16])
    register(path)
    try:
        os.mkdir(path, 0o700)
    except BaseException:
        forget(path)
        raise
    return path


def drop(path: str) -> None:
    """Remove a registered file or directory, and forget it. What cannot be removed now is left to the guard."""
    if ending.remove(path):
        forget(path)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """For work that holds one thing after the other: in a `with` block one guard serves for all of them, instead of one that comes and goes with each."""
    keeper = _keepers[0]
    keeper.begin()
    try:
        yield
    finally:
        # in a child made by fork, none of it is this process's
        if _keepers[0] is keeper:
            keeper.end()


def watch(group: int) -> None:
    """Have a process group killed if this process dies before `unwatch`."""
    _keepers[0].say("+", "group", group, ending.started(group))


def unwatch(group: int) -> None:
    """Hold a process group no longer: it has ended."""
    _keepers[0].say("-", "group", group)


def mark(value: str) -> None:
    """Have every process killed that has this value of `AKRUNNER_JOB` in its environment, if this process dies before `unmark`."""
    _keepers[0].say("+", "mark", value)


def unmark(value: str) -> None:
    """Hold a mark no longer: every process that carried it has ended."""
    _keepers[0].say("-", "mark", value)


def keep_awake(seconds: float) -> None:
    """Have this process killed when it was stopped (SIGSTOP) for so long while it holds anything: for one that others wait for, and that nobody
    stops who means well."""
    _keepers[0].keep_awake(seconds)


def guards() -> int:
    """See to it that there is a guard while one is needed. Returns: how many were lost and replaced so far."""
    return _keepers[0].look()


def _place(path: str) -> str:
    """Where it is, whatever becomes of the working directory and of links above it."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)
