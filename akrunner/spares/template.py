"""The host's end of a process that imports TensorFlow once, and is forked for each spare; see `akrunner.worker.template` for the other.

Where an import leaves something that a fork would not have, or would share (`Template.alone` says what), it is a spare itself.
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
from akrunner.wire import frames
from akrunner.wire.ending import started

#: seconds it may take to fork, and to say how a fork has ended that is gone; one that is stopped or dead is noticed at once
_FORKING = 10.0
_TELLING = 5.0
_LOOK = 0.25
#: forks of one that are there at a time
_MOST = 256


class CannotFork(Exception):
    """It does not, for a reason said in words."""


class Template(Spare):
    """One process that imports, or has imported.

    Attributes: alone: why it cannot be forked but is a spare itself, in words; "" when it can.
    """

    def __init__(self, wanted: Wanted, folder: str, preload: Sequence[str]) -> None:
        """Start it. Args: folder: of the pool, with a bundle in it; preload: modules to import. Raises: OSError: it cannot be started."""
        mark, began = uuid.uuid4().hex, time.time()
        self._temp = os.path.join(folder, mark)
        ours = {name: value for name, value in worker_environment({}, mark, folder).items() if is_late(name)}
        env = {**early(wanted.env), **ours, "TMPDIR": self._temp}
        self.alone = ""
        self._retired = self._gone = False
        #: why it was ended although forks of it run
        self._given_up = ""
        #: marks of forks that have not ended; forks: mark -> what was said of one that was to be made; exits: of one that has ended
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
        told = {"env": dict(wanted.task_env), "cpus": list(wanted.cpus), "overlay": wanted.overlay, "preload": list(preload)}
        self._say(frames.SPARE, {**told, "began_ns": int(self.began * 1e9), "temp": self._temp})

    def wait_until_imported(self) -> str:
        """Block until it has, for at most so long as a cold start would take. Returns: why it has not, in words; "" when it has."""
        self._wait(lambda: self.waiting, self.began + IMPORTING - time.time())
        why = self.lifeless()
        if why and not self.waiting:
            return "; ".join(filter(None, [why, self.last_words()]))
        return why or ("" if self.waiting else "the warm worker took too long to import TensorFlow")

    def fork(self) -> Spare:
        """A spare that has imported what this one has. Raises: CannotFork; OSError: there are no descriptors left."""
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
            # there are no threads left
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            leftovers.unwatch(pid)
            leftovers.unmark(mark)
            raise
        return Spare(self.wanted, process, mark, self.late, began, self)

    def _ask_for(self, mark: str, pipes: Pipes) -> int:
        """Have it fork. Returns: the fork's pid. Raises: CannotFork."""
        with self._changed:
            if self._retired:
                raise CannotFork(f"{self.called} is being ended")
            if len(self._running) >= _MOST:
                raise CannotFork(f"{_MOST} workers forked from one process run already")
            self._running.add(mark)
        self._print_again(pipes.far[2])
        try:
            with self._asking, contextlib.suppress(OSError):  # it has ended, which is seen below
                socket.send_fds(self._socket, [mark.encode()], list(pipes.far))
                self._say(frames.FORK, {"mark": mark})
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
        """What was printed while it imported is in the log of every worker, as it would be of a cold start."""
        os.set_blocking(log, False)
        with contextlib.suppress(BlockingIOError):
            os.write(log, self._printed)
        os.set_blocking(log, True)

    def exit_of(self, mark: str, seconds: float) -> Exit | None:
        """How a fork has ended; None: it has not, or this one has not said so within that time."""
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
        """Of one that is a spare itself: its temp directory is the job's from now on. What was imported may have left something in this one."""
        with contextlib.suppress(OSError):
            os.rmdir(self._temp)

    def retire(self) -> None:
        """Fork no more, and end when the last fork has: until then this one says how they end."""
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
        # what was not waited for any longer ends by itself: nobody has its pipes
        if kind == frames.FORKED and body["mark"] in self._running:
            self._forks[body["mark"]] = body
        elif kind == frames.ENDED and body["mark"] in self._running:
            self._ended(body)

    def _ended(self, body: dict[str, Any]) -> None:
        """One of its forks has."""
        code = os.waitstatus_to_exitcode(body["status"])
        self._running.discard(body["mark"])
        if self._retired and not self._running:
            # before anybody knows: who waits for the fork finds neither
            self.end()
        self._exits[body["mark"]] = Exit(
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            peak_rss=body["peak_rss"],
            cpu_seconds=body["cpu_seconds"],
            time_ns=time.time_ns(),
        )


class ForkedProcess(OthersChild):
    """A worker process whose parent is a template, which says how it has ended."""

    def __init__(self, pid: int, pipes: Pipes, template: Template, mark: str) -> None:
        self._template = template
        self._mark = mark
        super().__init__(pid, *pipes.near)

    def _awaited(self) -> Exit:
        deadline = None
        # nothing tells this process that it has ended but its parent, which may be gone or stopped; it is looked for, too
        while True:
            ended = self._template.exit_of(self._mark, _LOOK)
            if ended is not None:
                return ended
            if self._start and started(self.pid) == self._start:
                if self._template.process.exit is not None:
                    time.sleep(_LOOK)
                continue
            deadline = deadline or time.monotonic() + _TELLING
            why = self._template.lifeless()
            if why or time.monotonic() > deadline:
                return self._lost(why or f"{self._template.called} did not say")
