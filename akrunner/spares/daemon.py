"""The process that keeps warm workers for the command line: `akrunner warm start` starts it.

::

    akrunner run --- take, what it wants ------>  this process: a Pool
                 <-- pid, its three pipes ------
                 <=========================== the worker: rows, outputs, log, as with a child of the job's own
                 <-- how it has ended ----------  this process, its parent
        x (gone) ...............................  this process kills the worker, which has seen the end of its pipe, too
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

#: how many connections without a worker there may be at a time
_MOST = 64
#: seconds a client may take to say what it wants; and the same while others wait for its connection
_PATIENCE = 5.0
_SILENT = 1.0
#: seconds another process may take to release the lock: one that was told to stop, or that checks whether a process listens
_LETS_GO = 2.0
_TICK = 0.5
#: seconds between two checks whether a job is gone
_LOOK = 0.1


class AlreadyKept(Exception):
    """Raised if another process already keeps warm workers for this user."""


class Listening:
    """The socket that jobs connect to. While it is open, no other process of this user keeps warm workers on this machine."""

    def __init__(self) -> None:
        """Open the socket.

        Raises:
            AlreadyKept: another process has the lock.
            OSError: there is no directory for the socket, or it cannot be opened.
        """
        folder = talk.folder(make=True)
        if folder is None:
            raise FileNotFoundError(2, "no directory can be made (XDG_STATE_HOME must name one that can be written)")
        self._lock = os.open(talk.lock_path(folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._hold()
            with talk.place() as path:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)  # left by a process that was killed
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
        """Take the lock.

        Raises:
            BlockingIOError: another process holds it and does not release it.
        """
        deadline = time.monotonic() + _LETS_GO
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        # names this process, in case it does not answer one day
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()} {started(os.getpid())}".encode(), 0)

    def hide(self) -> None:
        """Remove the socket's file: no new client can connect. The lock is still held, so no other process keeps warm workers
        yet.
        """
        with contextlib.suppress(OSError), talk.place() as path:
            os.unlink(path)

    def close(self) -> None:
        """Close the socket and release the lock: no client can connect, and another process may keep warm workers."""
        self.socket.close()
        self.hide()
        os.close(self._lock)


class Daemon:
    """Hands the spares of a pool to jobs of other processes.

    Args:
        options: the options it was started with, for `status`.
    """

    def __init__(self, listening: Listening, pool: Pool, options: dict[str, Any]) -> None:
        self._listening = listening
        self._pool = pool
        self._options = options
        self._began = time.time()
        self._stopping = threading.Event()
        self._room = threading.BoundedSemaphore(_MOST)
        #: connections on which no message has come yet -> since when
        self._silent: dict[socket.socket, float] = {}
        self._jobs: list[int] = []
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Serve until told to stop, or until no job has come for `idle_seconds`; then wait for the jobs that run in its
        workers.
        """
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
        """Whether there is room for one more connection. If there is none, connections that have been silent for a while are
        cut off.
        """
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
        """Close a connection for which no thread can be started."""
        with self._lock:
            self._silent.pop(connection, None)
        connection.close()
        self._room.release()

    def _attend(self, connection: socket.socket) -> None:
        """Serve one connection."""
        with connection, contextlib.suppress(TalkError):
            try:
                spare = self._answered(connection)
            finally:
                self._room.release()
            if spare is not None:
                self._relay(connection, spare.process)

    def _answered(self, connection: socket.socket) -> Spare | None:
        """Answer the question that comes over a connection. Returns the spare that was handed over, or None."""
        try:
            talk.peer(connection)
            told, _ = talk.hear(connection, _PATIENCE)
        finally:
            with self._lock:
                self._silent.pop(connection, None)
        connection.settimeout(_PATIENCE)
        what = told.get("do")
        if what == "stop":
            # the answer is sent when the idle workers are gone, and nothing is left that other processes could find
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
        noted = self._pool.note(wanted)
        spare, why = self._pool.take(wanted, names, noted)
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
                # only the job may hold the worker's pipe open: when the job is gone, the worker sees the end of the pipe
                for fd in descriptors:
                    os.close(fd)
        except BaseException:
            spare.process.kill()
            with self._lock:
                self._jobs.remove(spare.process.pid)
            raise
        return spare

    def _relay(self, connection: socket.socket, process: LocalProcess) -> None:
        """Tell the job how its worker has ended; kill the worker if the job is gone."""
        try:
            while process.wait(_LOOK) is None:
                # a job sends no more messages: anything that can be read is the end of the connection
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
        """Return the status of the pool, and what this process is."""
        own = {"since": self._began, "jobs": len(self._jobs), "version": talk.version(), "options": self._options}
        return {**self._pool.status(), **own}
