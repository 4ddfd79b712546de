"""A job's end of the connection to the process that keeps warm workers for the command line (`akrunner warm start`)."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psutil

from akrunner.launch.process import Exit, LocalProcess, OthersChild
from akrunner.spares import talk
from akrunner.spares.spare import become
from akrunner.spares.talk import CutOffError, TalkError
from akrunner.spares.wanted import Wanted
from akrunner.wire import ready
from akrunner.wire.ending import started

#: seconds the other end may take to confirm that it has heard; to find a worker, which may still be importing
_HEARD = 1.0
_FOUND = 120.0
#: and to answer a question that needs no work, or to end the workers that wait
_ANSWER = 10.0
_LOOK = 0.5
#: seconds until a process that has no room for a connection is asked again; and until it is given up
_AGAIN = 0.1
_TRYING = 8.0
#: pipes of a worker
_PIPES = 3
#: the largest number that a process can have
_MOST_PID = 2**31 - 1
#: seconds that a process may take to end after a signal
_ENDING = 5.0


@dataclasses.dataclass(frozen=True)
class Handed:
    """A worker that was handed over by the process that kept it.

    Attributes:
        mark: as of `Spare`.
        began: as of `Spare`.
        process: the worker's process.
        late: as of `Spare`.
    """

    mark: str
    began: float
    process: HandedProcess
    late: Sequence[str]

    def order(self, env: Mapping[str, str], cwd: str, bundle: str) -> LocalProcess:
        """Make it the job's worker process, as `Spare.order` does."""
        become(self.process.input_fd, env, self.late, cwd, bundle)
        return self.process


class HandedProcess(OthersChild):
    """A worker process whose parent is the process that kept it; the parent reports how it has ended."""

    def __init__(self, pid: int, descriptors: Sequence[int], connection: socket.socket) -> None:
        self._connection = connection
        super().__init__(pid, *descriptors)

    def _awaited(self) -> Exit:
        with self._connection:
            try:
                told, _ = talk.hear(self._connection, None)
                ended = Exit(**told["exit"])
                # its parent did not measure its memory while it ran
                return dataclasses.replace(ended, peak_rss=ended.peak_rss or self.sampled_rss)
            except (TalkError, LookupError, TypeError):
                pass
        self._wait_until_gone()
        return self._lost("the process that had kept it warm (akrunner warm) ended before it")


def is_there() -> bool:
    """Whether a process seems to keep warm workers for this user: its socket exists."""
    folder = talk.folder()
    return folder is not None and os.path.exists(os.path.join(folder, talk.name()))


def take(wanted: Wanted, names: Sequence[str]) -> tuple[Handed | None, str]:
    """Return a warm worker for a job, as `Pool.take` does. The reason is "" if no process keeps any."""
    try:
        connection = _connected()
        if connection is None:
            return None, ""
        try:
            found = _asked(connection, wanted, names)
        except BaseException:
            connection.close()
            raise
        if isinstance(found, str):
            connection.close()
            return None, found
        return found, ""
    except TalkError as e:
        return None, f"the process that keeps the warm workers (akrunner warm status) does not answer: {e}"


def _asked(connection: socket.socket, wanted: Wanted, names: Sequence[str]) -> Handed | str:
    """Ask for a worker. Returns the worker, which owns the connection from now on; or why there is none, in words."""
    pid = talk.peer(connection)
    question = {"do": "take", "version": talk.version(), "wanted": dataclasses.asdict(wanted), "names": list(names)}
    talk.say(connection, question)
    talk.hear(connection, _HEARD)
    told, descriptors = _heard(connection, pid, taking=True)
    with contextlib.ExitStack() as unclaimed:
        for fd in descriptors:
            unclaimed.callback(os.close, fd)
        if told.get("why"):
            return str(told["why"])
        try:
            mark, began, worker = str(told["mark"]), float(told["began"]), int(told["pid"])
            late = [str(name) for name in told["late"]]
        except (ArithmeticError, LookupError, TypeError, ValueError) as e:
            raise TalkError("not understood") from e
        if len(descriptors) != _PIPES or not 1 < worker <= _MOST_PID or not math.isfinite(began):
            raise TalkError("not understood")
        unclaimed.pop_all()
    return Handed(mark, began, HandedProcess(worker, descriptors, connection), late)


def ask(what: str, hurry: bool = False) -> dict[str, Any] | None:
    """Ask the process for its "status", or tell it to "stop".

    Args:
        hurry: whether it is to start the missing workers at once.
    Returns:
        Its answer; None if there is no such process.
    Raises:
        TalkError: the process exists, and does not answer.
    """
    deadline = time.monotonic() + _TRYING
    while True:
        try:
            return _answer({"do": what, "version": talk.version(), "hurry": hurry})
        except CutOffError:
            if time.monotonic() > deadline or stopped() is not None:
                raise CutOffError("it has too many connections") from None
            time.sleep(_AGAIN)


def _answer(question: dict[str, Any]) -> dict[str, Any] | None:
    connection = _connected()
    if connection is None:
        return None
    with connection:
        pid = talk.peer(connection)
        talk.say(connection, question)
        return {**_heard(connection, pid, _ANSWER)[0], "pid": pid}


def stopped() -> int | None:
    """Return the pid of the process that keeps the workers if it is stopped (SIGSTOP), else None."""
    keeper = talk.keeper()
    with contextlib.suppress(psutil.Error):
        if keeper is not None and psutil.Process(keeper[0]).status() == psutil.STATUS_STOPPED:
            return keeper[0]
    return None


def wake() -> None:
    """Let the process continue if it is stopped."""
    pid = stopped()
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def wait_for_end() -> None:
    """Wait until the process is gone, for at most `_ENDING` seconds."""
    deadline = time.monotonic() + _ENDING
    while talk.keeper() is not None and time.monotonic() < deadline:
        time.sleep(0.02)


def end() -> int | None:
    """End by signals a process that does not answer. Returns its pid; None if there is none."""
    keeper = talk.keeper()
    if keeper is None:
        return None
    pid, start = keeper
    for number in (signal.SIGCONT, signal.SIGTERM, signal.SIGKILL):
        if started(pid) != start:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + (0 if number == signal.SIGCONT else _ENDING)
        # it may be waiting for jobs that have taken workers; when its socket is gone, it keeps no workers any more
        while started(pid) == start and is_there() and time.monotonic() < deadline:
            time.sleep(0.05)
        if not is_there():
            break
    talk.clear_dead()
    return pid


def _connected() -> socket.socket | None:
    """Return a connection to the process; None if there is none.

    Raises:
        TalkError: the process exists, and cannot be connected to.
    """
    if not is_there() or not hasattr(socket, "SO_PEERCRED"):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_HEARD)
    try:
        with talk.place() as path:
            connection.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        # the socket of a process that was killed
        talk.clear_dead()
        return None
    except BlockingIOError:
        connection.close()
        raise CutOffError("it has too many connections") from None
    except OSError as e:
        connection.close()
        raise TalkError(str(e)) from None
    return connection


def _heard(
    connection: socket.socket, pid: int, seconds: float = _FOUND, taking: bool = False
) -> tuple[dict[str, Any], list[int]]:
    """Return the answer of the process, and the descriptors that came with it.

    Raises:
        TalkError: it took too long, or the process was stopped meanwhile.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if ready.readable(connection, _LOOK):
            return talk.hear(connection, _HEARD, taking)
        with contextlib.suppress(psutil.Error):
            if psutil.Process(pid).status() == psutil.STATUS_STOPPED:
                raise TalkError("it was stopped")
    raise TalkError("it took too long")
