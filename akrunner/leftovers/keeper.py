"""The host's side of `akrunner.leftovers`: what this process holds, its guard, its journal."""

from __future__ import annotations

import contextlib
import functools
import json
import marshal
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

#: seconds that a guard may take to read a line; a guard that takes longer is stuck
_PATIENCE = 2.0
_POLITE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@functools.cache
def program() -> str:
    """Return what the guard's Python runs: `ending`, which is compiled already, as that would take as long as Python's start."""
    loader: Any = ending.__loader__
    code = loader.get_code(ending.__name__)
    return f"# akrunner's guard, akrunner/wire/ending.py\nimport marshal\nexec(marshal.loads({marshal.dumps(code)!r}))"


class _Guard:
    """The guard process. Attributes: pid: its id."""

    def __init__(self, journal: str) -> None:
        """Start the guard. Raises: OSError: there are no processes or descriptors left."""
        # the guard inherits the blocked signals, so that from its first instruction on none of them can end it
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _POLITE)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", program(), str(os.getpid()), journal],
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
        # this class waits for it; `Popen` would warn of a process that outlives it
        process.returncode = 0

    def say(self, line: bytes) -> bool:
        """Send the guard a line. Returns: whether the guard is there and had room for it."""
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
        """Whether the guard runs."""
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == 0
        except ChildProcessError:
            return False

    def leave(self) -> None:
        """Tell the guard to end; if it does not, because it is still starting up or stuck, kill it."""
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
        """Close this end of the guard's pipe."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _Keeper:
    """What one process holds, with its guard and its journal. Attributes: replaced: how often a guard had to be replaced."""

    def __init__(self) -> None:
        # reentrant, because a finalizer may run, and forget something, inside any of these methods
        self._lock = threading.RLock()
        self._held = ending.Held()
        self._guard: _Guard | None = None
        self._journal: Journal | None = None
        self._again_at = 0.0
        self._awake = 0.0
        #: how many blocks of `together` run
        self._blocks = 0
        self.replaced = 0

    def say(self, *line: Any) -> None:
        """Hold something, or hold it no longer; when this returns, the journal and the guard know it."""
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
        """Keep the guard and the journal until `end`, whether anything is held or not."""
        with self._lock:
            self._blocks += 1

    def end(self) -> None:
        with self._lock:
            self._blocks -= 1
            self._let_go_if_idle()

    def look(self) -> int:
        """Make sure that there is a guard, if anything is held. Returns: how often a guard had to be replaced."""
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
        """Have every guard, from now on, kill this process when it has been stopped (SIGSTOP) for so many seconds."""
        with self._lock:
            self._awake = seconds
            if self._guard is not None:
                self._guard.say(self._patience())

    def _patience(self) -> bytes:
        return json.dumps(["awake", self._awake]).encode() + b"\n"

    def _start(self) -> None:
        """Start a guard and tell it all that is held. If no process can be started, cleaning up is left to the workers and the
        journal.
        """
        if time.monotonic() < self._again_at:
            return
        try:
            guard = _Guard(self._journal.path if self._journal is not None else "")
        except OSError:
            self._again_at = time.monotonic() + 1.0
            return
        self._guard = guard
        if self._journal is not None:
            # a guard that is stopped (SIGSTOP) before it can ask the kernel to wake it when this process dies is ended by the
            # next start of akrunner
            self._journal.write(json.dumps(["+", "group", guard.pid, ending.started(guard.pid)]).encode() + b"\n")
        for line in self._held.lines():
            guard.say(json.dumps(line).encode() + b"\n")
        if self._awake:
            guard.say(self._patience())

    def _let_go_if_idle(self) -> None:
        if self._held or self._blocks:
            return
        # the guard goes last: it removes the journal if this process dies on the next line
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.leave()

    def drop(self) -> None:
        """Close the pipe and the journal in a child made by fork, because both belong to its parent."""
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
    """Have a local file or directory removed if this process dies before `forget`. Call it before the path is made; the name
    must be one that no other program will use, for example one with a `uuid` in it.
    """
    _keepers[0].say("+", "path", _place(path))


def forget(path: str) -> None:
    """Stop holding a path, because it was removed, or has become something to keep."""
    _keepers[0].say("-", "path", _place(path))


def temp_folder(prefix: str) -> str:
    """Make a directory of mode 0700 in the temp directory, which is removed if this process dies before `drop`.

    Args:
        prefix: the start of its name.
    Returns:
        Its path.
    Raises:
        OSError: it cannot be made.
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
    """Remove a registered file or directory, and forget it. If it cannot be removed now, it is left to the guard."""
    if ending.remove(path):
        forget(path)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Keep one guard for a whole `with` block, for work that holds one thing after the other; without it, a guard would be
    started and ended for each.
    """
    keeper = _keepers[0]
    keeper.begin()
    try:
        yield
    finally:
        # in a child made by fork, the block belongs to the parent
        if _keepers[0] is keeper:
            keeper.end()


def watch(group: int) -> None:
    """Have a process group killed if this process dies before `unwatch`."""
    _keepers[0].say("+", "group", group, ending.started(group))


def unwatch(group: int) -> None:
    """Stop holding a process group, because it has ended."""
    _keepers[0].say("-", "group", group)


def mark(value: str) -> None:
    """Have every process that has this value of `AKRUNNER_JOB` in its environment killed if this process dies before
    `unmark`.
    """
    _keepers[0].say("+", "mark", value)


def unmark(value: str) -> None:
    """Stop holding a mark, because every process that carried it has ended."""
    _keepers[0].say("-", "mark", value)


def keep_awake(seconds: float) -> None:
    """Have this process killed if it is stopped (SIGSTOP) for so many seconds while it holds anything. This is for a process
    that others wait for, and that no user has a good reason to stop.
    """
    _keepers[0].keep_awake(seconds)


def guards() -> int:
    """Make sure that there is a guard if one is needed. Returns: how many guards were lost and replaced so far."""
    return _keepers[0].look()


def _place(path: str) -> str:
    """Return the path in a form that stays valid if the working directory, or a link above it, changes."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)
