"""A job's end of the talk with the process that keeps warm workers for the command line (`akrunner warm start`)."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import socket
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import psutil

from akrunner.launch.process import Exit, LocalProcess
from akrunner.spares import talk
from akrunner.spares.spare import become
from akrunner.spares.talk import TalkError
from akrunner.spares.wanted import Wanted
from akrunner.wire.ending import started

#: seconds the other end may take to say that it has heard, and to find a worker, which may still be importing
_HEARD = 1.0
_FOUND = 120.0
_LOOK = 0.5


@dataclasses.dataclass(frozen=True)
class Handed:
    """A worker that was handed over. Attributes: mark, began: as of `Spare`."""

    mark: str
    began: float
    process: "HandedProcess"
    late: Sequence[str]

    def order(self, env: Mapping[str, str], cwd: str, bundle: str) -> LocalProcess:
        """As `Spare.order`."""
        become(self.process.input_fd, env, self.late, cwd, bundle)
        return self.process


class HandedProcess(LocalProcess):
    """A worker process whose parent is the one that kept it, and says how it has ended."""

    def __init__(self, pid: int, descriptors: Sequence[int], connection: socket.socket) -> None:
        self._connection = connection
        self._start = started(pid)
        super().__init__(pid, *descriptors)

    def _awaited(self) -> Exit:
        with self._connection:
            try:
                told, _ = talk.hear(self._connection, None)
                ended = Exit(**told["exit"])
                # its parent did not look while it ran
                return dataclasses.replace(ended, peak_rss=ended.peak_rss or self.sampled_rss)
            except (TalkError, LookupError, TypeError):
                pass
        while started(self.pid) and started(self.pid) == self._start:
            self._look()
        return self._lost("the process that had kept it warm (akrunner warm) ended before it")

    def _look(self) -> None:
        """Wait for its end a while, where the system can tell it at once."""
        try:
            watched = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            time.sleep(0.05)
            return
        try:
            select.select([watched], [], [], _LOOK)
        finally:
            os.close(watched)


def is_there() -> bool:
    """Whether somebody seems to keep some."""
    folder = talk.folder()
    return folder is not None and os.path.exists(os.path.join(folder, talk.name()))


def take(wanted: Wanted, names: Sequence[str]) -> Tuple[Optional[Handed], str]:
    """As `Pool.take`; no reason where nobody keeps any."""
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


def _asked(connection: socket.socket, wanted: Wanted, names: Sequence[str]) -> Union[Handed, str]:
    """The worker that was handed over, and has the connection from now on; or why none was."""
    pid = talk.peer(connection)
    question = {"do": "take", "version": talk.version(), "wanted": dataclasses.asdict(wanted), "names": list(names)}
    talk.say(connection, question)
    talk.hear(connection, _HEARD)
    told, descriptors = _heard(connection, pid)
    if told.get("why"):
        return str(told["why"])
    try:
        late = [str(name) for name in told["late"]]
        return Handed(str(told["mark"]), float(told["began"]), HandedProcess(int(told["pid"]), descriptors, connection), late)
    except (LookupError, TypeError, ValueError) as e:
        raise TalkError("not understood") from e


def ask(what: str, seconds: float = 10.0) -> Optional[Dict[str, Any]]:
    """Ask for its "status", or tell it to "stop". Returns: its answer, None when there is none.

    Raises: TalkError: it is there, and does not answer.
    """
    connection = _connected()
    if connection is None:
        return None
    with connection:
        pid = talk.peer(connection)
        talk.say(connection, {"do": what, "version": talk.version()})
        return {**talk.hear(connection, seconds)[0], "pid": pid}


def _connected() -> Optional[socket.socket]:
    """A connection, None where nobody listens."""
    if not is_there() or not hasattr(socket, "SO_PEERCRED"):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_HEARD)
    try:
        with talk.place() as path:
            connection.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as e:
        connection.close()
        raise TalkError(str(e)) from None
    return connection


def _heard(connection: socket.socket, pid: int) -> Tuple[Dict[str, Any], List[int]]:
    """What was found, unless the other end is stopped meanwhile."""
    deadline = time.monotonic() + _FOUND
    while time.monotonic() < deadline:
        readable, _, _ = select.select([connection], [], [], _LOOK)
        if readable:
            return talk.hear(connection, _HEARD)
        with contextlib.suppress(psutil.Error):
            if psutil.Process(pid).status() == psutil.STATUS_STOPPED:
                raise TalkError("it was stopped")
    raise TalkError("it took too long")
