"""The host's end of a process that imports TensorFlow once, and is forked for each spare. `akrunner.worker.template` is the
other end.

If an import leaves something in the process that a fork would lack, or would share (`Template.alone` says what), the process
is not forked, but is a spare itself.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from akrunner import leftovers
from akrunner.launch.pipes import Pipes
from akrunner.launch.process import Exit, LocalProcess, OthersChild, spare_process, worker_environment
from akrunner.spares.spare import IMPORTING, Spare
from akrunner.spares.wanted import Wanted, early, is_late
from akrunner.wire import frames, messages

#: seconds it may take to fork; and to report how a fork that is gone has ended. A template that is stopped or dead is noticed
#: at once
_FORKING = 10.0
_TELLING = 5.0
_LOOK = 0.25
#: how many forks of one template there may be at a time
_MOST = 256


class CannotFork(Exception):
    """Raised if a template does not fork; the message says why."""


class Template(Spare):
    """One process that imports, or has imported, TensorFlow.

    Attributes:
        alone: why it cannot be forked and is a spare itself, in words; "" if it can be forked.
    """

    def __init__(self, wanted: Wanted, folder: str, preload: Sequence[str]) -> None:
        """Start the process.

        Args:
            folder: the directory of the pool, which has a bundle in it.
            preload: the modules to import.
        Raises:
            OSError: it cannot be started.
        """
        mark, began = uuid.uuid4().hex, time.time()
        self._temp = os.path.join(folder, mark)
        ours = {name: value for name, value in worker_environment({}, mark, folder).items() if is_late(name)}
        env = {**early(wanted.env), **ours, "TMPDIR": self._temp}
        self.alone = ""
        self._retired = self._gone = False
        #: why it was ended while forks of it were running, in words
        self._given_up = ""
        #: `_running`: marks of forks that have not ended; `_forks`: mark -> what the template reported about a fork it was
        #: asked for; `_exits`: mark -> how a fork has ended
        self._running: set[str] = set()
        self._forks: dict[str, Mapping[str, Any]] = {}
        self._exits: dict[str, Exit] = {}
        self._asking = threading.Lock()
        with contextlib.ExitStack() as undone:
            os.mkdir(self._temp, 0o700)
            undone.callback(shutil.rmtree, self._temp, ignore_errors=True)
            self._socket, theirs = socket.socketpair()
            undone.callback(self._socket.close)
            leftovers.mark(mark)
            undone.callback(leftovers.unmark, mark)
            with theirs:
                process = spare_process(wanted.python, os.path.join(folder, "bundle.zip"), env, folder, theirs.fileno())
            leftovers.watch(process.pid)
            super().__init__(wanted, process, mark, [name for name in env if is_late(name)], began)
            undone.pop_all()
        told = messages.Spare(
            env=dict(wanted.task_env),
            cpus=list(wanted.cpus),
            overlay=wanted.overlay,
            preload=list(preload),
            began_ns=int(self.began * 1e9),
            temp=self._temp,
        )
        self._say(frames.SPARE, told)

    def wait_until_imported(self) -> str:
        """Block until it has imported its modules, for at most as long as a cold start would take.

        Returns:
            Why it has not, in words; "" if it has.
        """
        self._wait(lambda: self.waiting, self.began + IMPORTING - time.time())
        why = self.lifeless()
        if why and not self.waiting:
            return "; ".join(filter(None, [why, self.last_words()]))
        return why or ("" if self.waiting else "the warm worker took too long to import TensorFlow")

    def fork(self) -> Spare:
        """Return a spare that is forked from it, and so has imported the same.

        Raises:
            CannotFork: it does not fork.
            OSError: there are no descriptors left.
        """
        mark, began = uuid.uuid4().hex, time.time()
        pipes = Pipes()
        leftovers.mark(mark)
        try:
            pid = self._ask_for(mark, pipes)
        except BaseException:
            pipes.close()
            leftovers.unmark(mark)
            raise
        pipes.handed()
        leftovers.watch(pid)
        try:
            process = ForkedProcess(pid, pipes, self, mark)
        except BaseException:
            # no thread can be started
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            leftovers.unwatch(pid)
            leftovers.unmark(mark)
            raise
        return Spare(self.wanted, process, mark, self.late, began, self)

    def _ask_for(self, mark: str, pipes: Pipes) -> int:
        """Have it fork. Returns the pid of the fork.

        Raises:
            CannotFork: it does not fork.
        """
        with self._changed:
            if self._retired:
                raise CannotFork(f"{self.called} is being ended")
            if len(self._running) >= _MOST:
                raise CannotFork(f"{_MOST} workers forked from one process run already")
            self._running.add(mark)
        self._print_again(pipes.far[2])
        try:
            with self._asking, contextlib.suppress(OSError):  # it has ended, which is noticed below
                socket.send_fds(self._socket, [mark.encode()], list(pipes.far))
                self._say(frames.FORK, messages.Fork(mark=mark))
            self._wait(lambda: mark in self._forks, _FORKING)
            told = self._forks.get(mark, {"why": self.lifeless() or "the process that is forked for each did not answer"})
            if told["why"]:
                raise CannotFork(told["why"])
            return int(told["pid"])
        except BaseException:
            with self._changed:
                self._running.discard(mark)
                last = self._retired and not self._running
            if last:
                self.end()
            raise
        finally:
            self._forks.pop(mark, None)

    def _print_again(self, log: int) -> None:
        """Write what was printed during the import to the log of a fork, where it would be after a cold start."""
        os.set_blocking(log, False)
        with contextlib.suppress(BlockingIOError):
            os.write(log, self._printed)
        os.set_blocking(log, True)

    def exit_of(self, mark: str, seconds: float) -> Exit | None:
        """Return how a fork has ended; None if it has not, or if the template has not reported it within `seconds`."""
        with self._changed:
            if mark not in self._exits and self.process.exit is None:
                self._changed.wait(seconds)
            return self._exits.pop(mark, None)

    def order(self, env: Mapping[str, str], cwd: str, bundle: str) -> LocalProcess:
        self._leave_temp()
        return super().order(env, cwd, bundle)

    def hand_over(self) -> list[int]:
        self._leave_temp()
        return super().hand_over()

    def _leave_temp(self) -> None:
        """Remove the temp directory of a template that is a spare itself, as it uses the job's from now on. It stays if an
        import has left something in it.
        """
        with contextlib.suppress(OSError):
            os.rmdir(self._temp)

    def retire(self) -> None:
        """Fork no more, and end when the last fork has ended; until then the template reports how its forks end."""
        with self._changed:
            self._retired = True
            last = not self._running
        self._given_up = "" if last else self.lifeless()
        if last or self._given_up:
            self.end()

    def lifeless(self) -> str:
        return self._given_up or super().lifeless()

    def end(self) -> None:
        with self._changed:
            if self._gone:
                return
            self._gone = True
        super().end()
        self._socket.close()
        shutil.rmtree(self._temp, ignore_errors=True)

    def _is_ours(self) -> bool:
        return super()._is_ours() and not (self._retired and not self._running)

    def _heard(self, kind: int, body: dict[str, Any]) -> None:
        if kind == frames.WAITING:
            self.alone = body["alone"]
            if self.alone:
                self._socket.close()
            else:
                self.called = "the process that warm workers are forked from"
                self.printed()
        super()._heard(kind, body)
        # a fork that is not waited for any longer ends by itself, because no process holds the other ends of its pipes
        if kind == frames.FORKED and body["mark"] in self._running:
            self._forks[body["mark"]] = body
        elif kind == frames.ENDED and body["mark"] in self._running:
            self._ended(body)

    def _ended(self, body: dict[str, Any]) -> None:
        """Note how one of its forks has ended."""
        code = os.waitstatus_to_exitcode(body["status"])
        self._running.discard(body["mark"])
        if self._retired and not self._running:
            # before the exit is known: when the caller learns that the fork has ended, the template is gone too
            self.end()
        self._exits[body["mark"]] = Exit(
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            peak_rss=body["peak_rss"],
            cpu_seconds=body["cpu_seconds"],
            time_ns=time.time_ns(),
        )


class ForkedProcess(OthersChild):
    """A worker process whose parent is a template, which reports how it has ended."""

    def __init__(self, pid: int, pipes: Pipes, template: Template, mark: str) -> None:
        self._template = template
        self._mark = mark
        super().__init__(pid, *pipes.near)

    def _awaited(self) -> Exit:
        # only the parent can report how it has ended, and may be gone or stopped
        self._wait_until_gone()
        deadline = time.monotonic() + _TELLING
        while True:
            ended = self._template.exit_of(self._mark, _LOOK)
            if ended is not None:
                return ended
            why = self._template.lifeless()
            if why or time.monotonic() > deadline:
                return self._lost(why or f"{self._template.called} did not say")
