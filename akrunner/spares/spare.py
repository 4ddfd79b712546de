"""The host's end of one worker process that waits for a job; `akrunner.worker.spare` is the other end."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import psutil

from akrunner import leftovers
from akrunner.launch.process import LocalProcess
from akrunner.spares.wanted import Wanted, is_late
from akrunner.wire import frames, messages

#: seconds that a waiting spare may take to answer
_PATIENCE = 2.0
#: seconds that a spare may take to import its modules; a cold start would take as long
IMPORTING = 120.0
#: seconds between the first two measurements of its memory, each of which takes the system some milliseconds; and between two of a process that has
#: waited for long, whose memory changes little
_MEASURED, _SELDOM = 5.0, 80.0
#: seconds until the parent of a spare that has ended reports how
_TOLD = 1.0
_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
_ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


@dataclass(frozen=True)
class Answer:
    """Whether a spare is right for a job.

    Attributes:
        why: why it is not, in words; "" if it is.
        usable: whether it may be right for another job.
        stale: whether what it has imported has changed.
    """

    why: str
    usable: bool = True
    stale: bool = False


class Memory(NamedTuple):
    """The memory of a process in bytes; zeros if the process is gone.

    Attributes:
        whole: all its memory.
        part: the same, but of memory shared with other processes only its share.
        own: memory that it shares with no other process.
    """

    whole: int
    part: int
    own: int

    @classmethod
    def of(cls, pid: int) -> Memory:
        """Measure the memory of a process."""
        with contextlib.suppress(OSError, LookupError, ValueError), open(f"/proc/{pid}/smaps_rollup") as f:
            told = {line.split()[0]: int(line.split()[1]) << 10 for line in f.readlines()[1:]}
            return cls(told["Rss:"], told["Pss:"], told["Private_Clean:"] + told["Private_Dirty:"])
        try:
            size = int(psutil.Process(pid).memory_info().rss)
        except psutil.Error:
            size = 0
        return cls(size, size, size)


class Spare:
    """One worker process that has no job yet.

    Attributes:
        wanted: the properties of the process.
        process: the process.
        mark: the value in its environment by which other processes recognise it.
        began: when it was started, in seconds since the epoch.
        late: variables it has that a job sets anew.
        parent: the template it was forked from; None if it was not forked.
        waiting: whether it has imported its modules.
        seconds: how long the import took.
        called: its name in messages.
    """

    def __init__(
        self,
        wanted: Wanted,
        process: LocalProcess,
        mark: str,
        late: Sequence[str],
        began: float,
        parent: Spare | None = None,
    ) -> None:
        """Listen to a process that is running, and that the guard ends if this process dies (`leftovers`).

        Raises:
            RuntimeError: no thread can be started; the process is ended.
        """
        self.called = "the warm worker"
        self.wanted = wanted
        self.process = process
        self.mark = mark
        self.late = list(late)
        self.began = began
        self.parent = parent
        self.waiting = False
        self.seconds = 0.0
        self._changed = threading.Condition()
        self._answer: Answer | None = None
        #: held while its log is read or closed, because the number of a closed descriptor may belong to another file the next
        #: moment
        self._log = threading.Lock()
        self._printed, self._closed = b"", False
        self._memory, self._measured, self._again = Memory(0, 0, 0), 0.0, 0.0
        self._writer = frames.FrameWriter(process.input_fd)
        self._reader = frames.FrameReader(process.output_fd, frames.FROM_SPARE)
        self._thread = threading.Thread(target=self._read, name=f"akrunner-spare-{process.pid}", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            # no thread would read its messages
            Spare.end(self)
            raise

    @property
    def memory(self) -> Memory:
        """Return its memory, measured now and then."""
        if not self.waiting or time.monotonic() - self._measured > self._again:
            self._memory, self._measured = Memory.of(self.process.pid), time.monotonic()
            self._again = min(max(_MEASURED, 2 * self._again), _SELDOM) if self.waiting else 0.0
        return self._memory

    def lifeless(self) -> str:
        """Return why no answer can be expected from it, in words; "" if one can."""
        try:
            state = psutil.Process(self.process.pid).status()
        except psutil.Error:
            state = psutil.STATUS_DEAD
        if state in _ENDED:
            ended = self.process.wait(_TOLD)
            return f"{self.called} had ended" + (f": {ended.words()}" if ended is not None else "")
        if state in _STOPPED:
            return f"{self.called} was {state}"
        return self.parent.lifeless() if self.parent is not None else ""

    def offer(self, names: Sequence[str]) -> Answer:
        """Ask whether it is right for a job. Blocks while it is still importing, because a cold start would take longer.

        Args:
            names: names of the files beside the script.
        """
        self._wait(lambda: self.waiting, self.began + IMPORTING - time.time())
        if not self.waiting:
            return Answer(self.lifeless() or "the warm worker took too long to import TensorFlow", False)
        if self.lifeless():
            return Answer(self.lifeless(), False)
        self._answer = None
        self._say(frames.OFFER, messages.Offer(names=list(names)))
        self._wait(lambda: self._answer is not None, _PATIENCE)
        return self._answer or Answer(self.lifeless() or "the warm worker did not answer", False)

    def order(self, env: Mapping[str, str], cwd: str, bundle: str) -> LocalProcess:
        """Make it the worker process of a job that it was offered.

        Args:
            env: the whole environment that the worker process is to have.
        """
        self._thread.join()
        self.process.begins()
        become(self.process.input_fd, env, self.late, cwd, bundle)
        return self.process

    def hand_over(self) -> list[int]:
        """Give it to a job of another process, which then makes it its worker process. Returns its pipes' descriptors, for the
        caller to close.
        """
        self._thread.join()
        self.process.begins()
        leftovers.unwatch(self.process.pid)
        leftovers.unmark(self.mark)
        return [self.process.input_fd, self.process.output_fd, self.process.log_fd]

    def end(self) -> None:
        """Kill it. Returns when the process is gone and this object holds nothing any more."""
        self.process.kill()
        self.process.wait(5.0)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(1.0)
        # a caller may ask later what it has printed
        self.printed()
        with self._log:
            self._closed = True
            for fd in (self.process.input_fd, self.process.output_fd, self.process.log_fd):
                os.close(fd)
        leftovers.unwatch(self.process.pid)
        leftovers.unmark(self.mark)

    def last_words(self) -> str:
        """Return the last line that it printed before it ended."""
        lines = self.printed().decode("utf-8", "backslashreplace").strip().splitlines()
        return lines[-1] if lines else ""

    def printed(self) -> bytes:
        """Return what it has printed so far. Only for a spare whose log no other reader takes."""
        with self._log:
            if not self._closed:
                os.set_blocking(self.process.log_fd, False)
                with contextlib.suppress(OSError):
                    self._printed += os.read(self.process.log_fd, 1 << 20)
            return self._printed

    def _wait(self, until: Callable[[], bool], seconds: float) -> None:
        """Wait until `until()` is true or the process has become lifeless, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not until() and time.monotonic() < deadline and not self.lifeless():
                self._changed.wait(0.05)

    def _say(self, kind: int, body: Any) -> None:
        try:
            self._writer.write_json(kind, body)
        except OSError:
            pass  # it has ended; the caller that waits for an answer notices

    def _read(self) -> None:
        """Read its messages until it has taken a job, or has ended."""
        try:
            while self._is_ours():
                frame = self._reader.read()
                if frame is None:
                    return
                body = messages.read(frame)
                with self._changed:
                    self._heard(frame.kind, body)
                    self._changed.notify_all()
        except (OSError, frames.WireError):
            self.process.kill()

    def _is_ours(self) -> bool:
        """Whether its next message is for this object, and not for a job."""
        return self._answer is None or bool(self._answer.why)

    def _heard(self, kind: int, body: Any) -> None:
        if kind == frames.WAITING:
            waits: messages.Waiting = body
            self.waiting, self.seconds = True, float(waits["seconds"])
        elif kind == frames.ANSWER:
            answer: messages.Answer = body
            self._answer = Answer(answer["why"], not answer["stale"], answer["stale"])


def become(input_fd: int, env: Mapping[str, str], late: Sequence[str], cwd: str, bundle: str) -> None:
    """Turn a spare that was offered a job into the job's worker process.

    Args:
        input_fd: of the pipe that the spare reads.
        env: the whole environment that the worker process is to have.
        late: variables that the spare has and that may have other values now.
    """
    names = [*late, *(name for name in env if is_late(name))]
    body = messages.Order(env={name: env.get(name) for name in names}, cwd=cwd, bundle=bundle)
    with contextlib.suppress(OSError):  # it has ended; the caller that waits for its first message notices
        frames.FrameWriter(input_fd).write_json(frames.ORDER, body)


__all__ = ["IMPORTING", "Answer", "Memory", "Spare", "become"]
