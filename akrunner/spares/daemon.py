"""The process that keeps warm workers for the command line: `akrunner warm start` starts it.

::

    akrunner run --- take, what it wants ------>  this process: a Pool
                 <-- pid, its three pipes ------
                 <=========================== the worker: rows, outputs, log: as of a child of its own
                 <-- how it has ended ----------  its parent
        x (gone) ...............................  kills the worker, which has seen the end of its pipe, too
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import signal
import socket
import threading
import time
from typing import Any

from akrunner.launch.process import LocalProcess
from akrunner.spares import talk
from akrunner.spares.pool import Pool
from akrunner.spares.spare import Spare
from akrunner.spares.talk import TalkError
from akrunner.spares.wanted import Wanted
from akrunner.wire import ready
from akrunner.wire.ending import started

#: connections that have not got a worker, at a time
_MOST = 64
#: seconds one may take to say what it wants, and where others wait for its room
_PATIENCE = 5.0
_SILENT = 1.0
#: seconds another process may take to let go of the lock: one that was told to stop, or looks whether there is anybody
_LETS_GO = 2.0
_TICK = 0.5
#: seconds until it is noticed that a job has gone
_LOOK = 0.1


class AlreadyKept(Exception):
    """Another process keeps warm workers for this user."""


class Listening:
    """The socket; while it is held, no other process of this user keeps warm workers on this machine."""

    def __init__(self) -> None:
        """Raises: AlreadyKept; OSError: there is no place for it."""
        folder = talk.folder(make=True)
        if folder is None:
            raise FileNotFoundError(2, "no directory can be made (XDG_STATE_HOME must name one that can be written)")
        self._lock = os.open(talk.lock_path(folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._hold()
            with talk.place() as path:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)  # of one that was killed
                self.socket.bind(path)
                os.chmod(path, 0o700)
            self.socket.listen(_MOST)
        except BaseException as e:
            self.socket.close()
            os.close(self._lock)
            if isinstance(e, BlockingIOError):
                raise AlreadyKept from None
            raise

    def _hold(self) -> None:
        """Raises: BlockingIOError: another process has the lock, and keeps it."""
        deadline = time.monotonic() + _LETS_GO
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        # who it is, should it not answer one day
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()} {started(os.getpid())}".encode(), 0)

    def hide(self) -> None:
        """Nobody new can connect any more. Others do not keep some yet."""
        with contextlib.suppress(OSError), talk.place() as path:
            os.unlink(path)

    def close(self) -> None:
        """Nobody can connect any more, and another process may keep some."""
        self.socket.close()
        self.hide()
        os.close(self._lock)


class Daemon:
    """Hands the spares of a pool to jobs of other processes. Args: options: what it was started with, for `status`."""

    def __init__(self, listening: Listening, pool: Pool, options: dict[str, Any]) -> None:
        self._listening = listening
        self._pool = pool
        self._options = options
        self._began = time.time()
        self._stopping = threading.Event()
        self._room = threading.BoundedSemaphore(_MOST)
        #: connections that have said nothing yet -> since when
        self._silent: dict[socket.socket, float] = {}
        self._jobs: list[int] = []
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Until it is told to stop, or no job has come for long. Jobs that run in workers of it are waited for."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stopping.set())
        listening = self._listening.socket
        listening.settimeout(_TICK)
        try:
            while not self._stopping.is_set() and (self._jobs or not self._pool.asleep()):
                try:
                    connection, _ = listening.accept()
                except TimeoutError:
                    continue
                except OSError:
                    time.sleep(_TICK)  # no descriptors left, for now
                    continue
                if not self._has_room():
                    connection.close()
                    continue
                with self._lock:
                    self._silent[connection] = time.monotonic()
                try:
                    threading.Thread(target=self._attend, args=(connection,), daemon=True).start()
                except RuntimeError:  # no threads left, for now
                    self._cut_off(connection)
        finally:
            self._listening.close()
            self._pool.close()
            while self._jobs:
                time.sleep(_TICK)

    def _has_room(self) -> bool:
        """For one more; where there is none, whoever has said nothing for a while is cut off."""
        deadline = time.monotonic() + 2 * _SILENT
        while not self._room.acquire(timeout=0.05):
            if self._stopping.is_set() or time.monotonic() > deadline:
                return False
            with self._lock:
                for connection, since in self._silent.items():
                    if time.monotonic() - since > _SILENT:
                        with contextlib.suppress(OSError):
                            connection.shutdown(socket.SHUT_RDWR)
        return True

    def _cut_off(self, connection: socket.socket) -> None:
        """One that nobody can attend to."""
        with self._lock:
            self._silent.pop(connection, None)
        connection.close()
        self._room.release()

    def _attend(self, connection: socket.socket) -> None:
        """One connection."""
        with connection, contextlib.suppress(TalkError):
            try:
                spare = self._answered(connection)
            finally:
                self._room.release()
            if spare is not None:
                self._relay(connection, spare.process)

    def _answered(self, connection: socket.socket) -> Spare | None:
        """Answer what was asked. Returns: the spare that was handed over, if one was."""
        try:
            talk.peer(connection)
            told, _ = talk.hear(connection, _PATIENCE)
        finally:
            with self._lock:
                self._silent.pop(connection, None)
        connection.settimeout(_PATIENCE)
        what = told.get("do")
        if what == "stop":
            # the answer says that the idle ones are gone, and nothing is left of it that others could find
            status = self.status()
            self._listening.hide()
            self._pool.close()
            talk.say(connection, status)
            self._stopping.set()
        elif what == "status":
            if told.get("hurry"):
                self._pool.hurry()
            talk.say(connection, self.status())
        elif what == "take":
            return self._taken(connection, told)
        return None

    def _taken(self, connection: socket.socket, told: dict[str, Any]) -> Spare | None:
        talk.say(connection, {"heard": True})
        if told.get("version") != talk.version():
            talk.say(connection, {"why": "they are another version's of akrunner (akrunner warm stop, and start)"})
            return None
        try:
            wanted = Wanted.of(told["wanted"])
            names = [str(name) for name in told["names"]]
        except (LookupError, TypeError, ValueError) as e:
            raise TalkError("not understood") from e
        self._pool.note(wanted)
        spare, why = self._pool.take(wanted, names)
        if spare is None:
            talk.say(connection, {"why": why or "none was ready"})
            return None
        with self._lock:
            self._jobs.append(spare.process.pid)
        try:
            descriptors = spare.hand_over()
            try:
                body = {"pid": spare.process.pid, "mark": spare.mark, "began": spare.began, "late": spare.late}
                talk.say(connection, body, descriptors)
            finally:
                # the job is to be the only one that writes to it: its end is the worker's
                for fd in descriptors:
                    os.close(fd)
        except BaseException:
            spare.process.kill()
            with self._lock:
                self._jobs.remove(spare.process.pid)
            raise
        return spare

    def _relay(self, connection: socket.socket, process: LocalProcess) -> None:
        """Say how a worker has ended; end it when its job has gone."""
        try:
            while process.wait(_LOOK) is None:
                # a job says nothing more: what comes is its end
                if ready.readable(connection, 0):
                    process.kill()
                    process.wait(None)
            ended = process.exit
            if ended is not None:
                talk.say(connection, {"exit": dataclasses.asdict(ended)})
        finally:
            with self._lock:
                self._jobs.remove(process.pid)

    def status(self) -> dict[str, Any]:
        """As `Pool.status`, and what this process is."""
        own = {"since": self._began, "jobs": len(self._jobs), "version": talk.version(), "options": self._options}
        return {**self._pool.status(), **own}
