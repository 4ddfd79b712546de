"""The host's end of one worker process that waits for a job; see `akrunner.worker.spare` for the other."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import psutil

from akrunner import leftovers
from akrunner.launch.process import ChildProcess, LocalProcess, worker_environment, worker_process
from akrunner.spares.wanted import Wanted, early, is_late
from akrunner.wire import frames, messages

#: seconds a spare that waits may take to answer
_PATIENCE = 2.0
#: seconds one may take to import what it should; a cold start would take as long
_IMPORTING = 120.0
_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


@dataclass(frozen=True)
class Answer:
    """Whether a spare is right for a job. Attributes: why: why not, in words, "" when it is; usable: whether it may be for another."""

    why: str
    usable: bool = True


class Spare:
    """One worker process that has no job yet.

    Attributes:
        wanted: what it is; process: its; mark: in its environment, as others see it; began: when, since the epoch.
        waiting: whether it has imported what it should; seconds: which took so long.
    """

    def __init__(self, wanted: Wanted, folder: str, preload: Sequence[str]) -> None:
        """Start it. Args: folder: of the pool, with a bundle in it; preload: modules to import. Raises: OSError: it cannot be started."""
        self.wanted = wanted
        self.mark = uuid.uuid4().hex
        self.began = time.time()
        self.waiting = False
        self.seconds = 0.0
        self._changed = threading.Condition()
        self._answer: Optional[Answer] = None
        self._bundle = os.path.join(folder, "bundle.zip")
        ours = {name: value for name, value in worker_environment({}, self.mark, folder).items() if is_late(name)}
        self._env = {**early(wanted.env), **ours, "TMPDIR": os.path.join(folder, "tmp")}
        leftovers.mark(self.mark)
        try:
            self.process: ChildProcess = worker_process(wanted.python, self._bundle, self._env, folder, "spare")
        except BaseException:
            leftovers.unmark(self.mark)
            raise
        leftovers.watch(self.process.pid)
        self._writer = frames.FrameWriter(self.process.input_fd)
        self._reader = frames.FrameReader(self.process.output_fd, frames.FROM_SPARE)
        self._thread = threading.Thread(target=self._read, name=f"akrunner-spare-{self.process.pid}", daemon=True)
        self._thread.start()
        told = {"env": dict(wanted.task_env), "cpus": list(wanted.cpus), "overlay": wanted.overlay, "preload": list(preload)}
        self._say(frames.SPARE, {**told, "began_ns": int(self.began * 1e9)})

    @property
    def rss(self) -> int:
        """Bytes of memory it has, 0 when it is gone."""
        try:
            return int(psutil.Process(self.process.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def lifeless(self) -> str:
        """Why no answer can be expected of it, in words; "" when one can."""
        ended = self.process.exit
        if ended is not None:
            return f"the warm worker had ended: {ended.words()}"
        try:
            state = psutil.Process(self.process.pid).status()
        except psutil.Error:
            return "the warm worker had ended"
        return f"the warm worker was {state}" if state in _STOPPED else ""

    def offer(self, names: Sequence[str]) -> Answer:
        """Ask whether it is right for a job. Blocks while it is still importing: a cold start would take longer.

        Args: names: of files beside the script.
        """
        self._wait(lambda: self.waiting, self.began + _IMPORTING - time.time())
        if not self.waiting:
            return Answer(self.lifeless() or "the warm worker took too long to import TensorFlow", False)
        if self.lifeless():
            return Answer(self.lifeless(), False)
        self._answer = None
        self._say(frames.OFFER, {"names": list(names)})
        self._wait(lambda: self._answer is not None, _PATIENCE)
        return self._answer or Answer(self.lifeless() or "the warm worker did not answer", False)

    def order(self, env: Mapping[str, str], cwd: str, bundle: str) -> LocalProcess:
        """Make it the worker process of a job that it has been offered. Args: env: all of that process's environment."""
        self._thread.join()
        become(self.process.input_fd, env, self.late(), cwd, bundle)
        return self.process

    def late(self) -> List[str]:
        """Variables it has that a job gives it anew."""
        return [name for name in self._env if is_late(name)]

    def hand_over(self) -> List[int]:
        """Let a job of another process have it, which orders. Returns: its pipes' descriptors, to be closed here."""
        self._thread.join()
        leftovers.unwatch(self.process.pid)
        leftovers.unmark(self.mark)
        return [self.process.input_fd, self.process.output_fd, self.process.log_fd]

    def end(self) -> None:
        """Kill it. Returns when it is gone and nothing is held for it any more."""
        self.process.kill()
        self.process.wait(5.0)
        self._thread.join(1.0)
        for fd in (self.process.input_fd, self.process.output_fd, self.process.log_fd):
            os.close(fd)
        leftovers.unwatch(self.process.pid)
        leftovers.unmark(self.mark)

    def last_words(self) -> str:
        """The last line it printed, of one that has ended."""
        os.set_blocking(self.process.log_fd, False)
        try:
            said = os.read(self.process.log_fd, 1 << 20)
        except OSError:
            return ""
        lines = said.decode("utf-8", "backslashreplace").strip().splitlines()
        return lines[-1] if lines else ""

    def _wait(self, until: Callable[[], bool], seconds: float) -> None:
        """Until it is so, or cannot become so, for at most so long."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not until() and time.monotonic() < deadline and not self.lifeless():
                self._changed.wait(0.05)

    def _say(self, kind: int, body: Dict[str, Any]) -> None:
        try:
            self._writer.write_json(kind, body)
        except OSError:
            pass  # it has ended; whoever waits for an answer sees that

    def _read(self) -> None:
        """What it says, until it has taken a job, or ended."""
        try:
            while self._answer is None or self._answer.why:
                frame = self._reader.read()
                if frame is None:
                    return
                body = messages.read(frame)
                with self._changed:
                    if frame.kind == frames.WAITING:
                        self.waiting, self.seconds = True, float(body["seconds"])
                    else:
                        self._answer = Answer(body["why"], not body["stale"])
                    self._changed.notify_all()
        except (OSError, frames.WireError):
            self.process.kill()


def become(input_fd: int, env: Mapping[str, str], late: Sequence[str], cwd: str, bundle: str) -> None:
    """Make a spare that has been offered a job its worker process.

    Args: input_fd: of the pipe it reads; env: all of that process's environment; late: variables it has that may be others now.
    """
    names = [*late, *(name for name in env if is_late(name))]
    body = {"env": {name: env.get(name) for name in names}, "cwd": cwd, "bundle": bundle}
    with contextlib.suppress(OSError):  # it has ended; whoever waits for its first word sees that
        frames.FrameWriter(input_fd).write_json(frames.ORDER, body)


__all__ = ["Answer", "Spare", "become"]
