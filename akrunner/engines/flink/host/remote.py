"""A task's process beside its agent, as the host controls it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from akrunner.engines.feeder import Given
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.connections import PACKAGE_LENGTH_BYTES, SocketReader, SocketWriter, shut
from akrunner.engines.flink.control import rows_pass
from akrunner.engines.flink.host.subtask import BadWord, RemoteSubtask
from akrunner.engines.flink.reasons import error_of
from akrunner.launch.process import Exit
from akrunner.wire import frames

#: seconds that an agent may take to say why it does not take a task's files
_WHY_SECONDS = 1.0


def _exit_of(told: pb.Exit) -> Exit:
    code, signal = (getattr(told, name) if told.HasField(name) else None for name in ("code", "signal"))
    return Exit(
        code, signal, told.peak_rss, told.cpu_seconds, told.time_ns, memory=told.memory, out_of_memory=told.out_of_memory
    )


def _check_failed(word: Any) -> None:
    """Raises: OSError: the agent says that it cannot start the process. Args: word: its answer, or None."""
    if word is not None and word.WhichOneof("word") == "failed":
        raise OSError(word.failed.words) from None


class RemoteProcess:
    """A task's process beside its agent; see `akrunner.launch.process.LoggedProcess`.

    Attributes:
        given: the rows that have reached the task by another way than through the host.
    """

    def __init__(self, remote: RemoteSubtask, package: str, order: pb.Order, seconds: float) -> None:
        """Have the agent start the process.

        Args:
            remote: the subtask.
            package: the path of a tar of the task's files.
            order: what the agent is told.
            seconds: how long each step may take.
        Raises:
            OSError: the process cannot be started.
        """
        self._remote = remote
        self.exit: Exit | None = None
        self.sampled_memory = 0
        self.sampled_rss = 0
        self.sampled_cpu = 0.0
        self._tree = 0.0
        self.pid = 0
        self.given = Given()
        # only then is what the process writes read by its agent, which says how many rows it has passed on
        self._passed = rows_pass(order, remote.with_rows)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        #: this object closes the connections, until a reader or writer has taken them over
        self._in: socket.socket | None = None
        self._out: socket.socket | None = None
        self._mine: list[socket.socket] = []
        self.log_fd, log = os.pipe()
        self._log = open(log, "wb", buffering=0)
        remote.heeds(self)
        try:
            remote.tell(order=order)
            self._in = self._opened(pb.Opening.IN, seconds)
            with open(package, "rb") as f:
                self._send(self._in, f)
            self._until_started(remote, seconds)
            self._out = self._opened(pb.Opening.OUT, seconds)
        except BaseException:
            self._log.close()
            self._close_mine()
            os.close(self.log_fd)
            raise
        remote.process = self

    def _opened(self, kind: int, seconds: float) -> socket.socket:
        made = self._remote.opened(kind, seconds)
        self._mine.append(made)
        return made

    def _send(self, connection: socket.socket, package: IO[bytes]) -> None:
        try:
            connection.sendall(os.fstat(package.fileno()).st_size.to_bytes(PACKAGE_LENGTH_BYTES, "little"))
            connection.sendfile(package)
        except OSError:
            # an agent that cannot take the files says why, and ends the connection while they are still sent
            _check_failed(self._remote.heard(_WHY_SECONDS))
            raise

    def _until_started(self, remote: RemoteSubtask, seconds: float) -> None:
        word = remote.answer(seconds)
        if word is None:
            remote.lost()
            raise OSError(remote.broken or f"the subtask at {remote.address} has gone")
        _check_failed(word)
        self.pid = word.started.pid

    def writer(self) -> frames.FrameWriter:
        """Return a writer of the frames that the process reads."""
        return SocketWriter(self._given_away(self._in))

    def reader(self, kinds: Mapping[int, int], most: frames.Most | None) -> frames.FrameReader:
        """Return a reader of the frames that the process writes. The arguments are as for `FrameReader`."""
        return SocketReader(self._given_away(self._out), frames.FROM_AGENT if self._passed else kinds, most)

    def _given_away(self, connection: socket.socket | None) -> socket.socket:
        assert connection is not None
        with self._lock:
            if connection in self._mine:
                self._mine.remove(connection)
        return connection

    def _close_mine(self) -> None:
        with self._lock:
            for connection in self._mine:
                connection.close()

    def take(self, word: Any) -> None:
        """Handle a message of the agent about the process."""
        try:
            self._take(word)
        except (ValueError, OverflowError) as e:
            raise BadWord(f"{e!r} in {str(word)[:200]}") from None
        except Exception as e:
            # an error of this end: the job fails with it
            self._remote.died("subtask", e)

    def _take(self, word: Any) -> None:
        kind = word.WhichOneof("word")
        if kind == "sample":
            self.sampled_memory, self.sampled_rss = word.sample.memory, word.sample.rss
            self.sampled_cpu, self._tree = word.sample.cpu, word.sample.tree
        elif kind == "given":
            told = word.given
            self.given = Given(told.rows, told.dropped, told.bytes, told.finished)
        elif kind == "refused":
            self.given = dataclasses.replace(self.given, error=error_of(word.refused.reason, word.refused.words))
        elif kind == "log":
            self._print(word.log)
        elif kind == "exit":
            self._has_ended(_exit_of(word.exit))

    def _print(self, log: pb.Log) -> None:
        """Write what the task has printed to the log's pipe. The thread that reads the pipe is never behind for long."""
        data = memoryview(log.data)
        # the pipe was closed by its reader (OSError), or here, when the task was over (ValueError)
        with contextlib.suppress(OSError, ValueError):
            while len(data):
                data = data[self._log.write(data) :]
        if log.last:
            self._log.close()

    def over(self) -> None:
        """Note that no more messages about the process come."""
        self._log.close()
        if self.exit is None:
            if self._remote.broken is None:
                lost = f"lost: the TaskManager on {self._remote.address.rpartition(':')[0]}, or its Python worker, has gone"
                why = self._remote.why()
                lost += f"; Flink says: {why}" if why else ""
            else:
                lost = "lost: nobody listens to it any more"
            self._has_ended(Exit(None, None, self.sampled_rss, self.sampled_cpu, time.time_ns(), lost))
        if self._out is not None:
            # its reader need not wait for an agent that is stuck
            shut(self._out, socket.SHUT_RDWR)
        self._close_mine()

    def _has_ended(self, how: Exit) -> None:
        self.exit = how
        # as with a pipe that is no longer read: a thread that still writes gets an error
        if self._in is not None:
            shut(self._in, socket.SHUT_RDWR)
        self._ended.set()

    def sample(self) -> None:
        """Do nothing: the agent measures the process."""

    def tree_cpu(self) -> float:
        """Return the processor seconds of the process and all its descendants."""
        return self._tree

    def unread(self) -> int:
        """Return 0: how much is unread is not known here."""
        return 0

    def wait(self, seconds: float | None) -> Exit | None:
        """Return how the process ended; None if it has not ended within that time. `seconds` None waits without a limit."""
        self._ended.wait(seconds)
        return self.exit

    def signal(self, number: int) -> None:
        """Send a signal to the process alone."""
        self._remote.tell(signal=int(number))

    def terminate(self) -> None:
        """Send SIGTERM to the whole process group."""
        self._remote.tell(group=pb.TERMINATE)

    def kill(self) -> None:
        """Send SIGKILL to the whole process group."""
        self._remote.tell(group=pb.KILL)

    def abandon(self) -> None:
        """Treat the subtask as gone from now on."""
        self._remote.abandon()
