"""A subtask, as its host sees it: it runs tasks, and its agent is at the other end of a stream (`control.proto`)."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.reasons import error_of
from akrunner.engines.flink.threads import words_of
from akrunner.errors import StartError
from akrunner.launch import environments

#: seconds that an agent may take to say where its task can run
_SETTLE_SECONDS = 30.0
#: seconds to unpack a packed environment: it has gigabytes, perhaps from far away
_UNPACK_SECONDS = 900.0
_TICK = 0.1
#: how many answers may wait that were not asked for
_ANSWERS = 16


class BadWord(ValueError):
    """An agent has sent something that it may not send."""


class Task(Protocol):
    """Receives what an agent says of the task that it has."""

    def take(self, word: Any) -> None:
        """Handle a message.

        Args:
            word: a `Said`.
        Raises:
            BadWord: the agent may not send that.
        """

    def over(self) -> None:
        """Called when no more messages come."""


class RemoteSubtask:
    """One subtask, which runs one task after the other.

    Attributes:
        address: the "host:port" that TensorFlow may use.
        folder: the task's directory on the subtask's machine.
        machine, cores: the name of that machine, and the cores of the subtask.
        process: the task's process.
        idle: an event that is set while there is no task.
        gone: an event that is set once the subtask is gone for good.
        why: returns the reason why it is gone, None if none is known; may wait for it.
        subtask: its number in Flink.
        with_rows: whether Flink brings the task's rows to it.
        attempt: how often Flink had started it before.
        job: Flink's id of its job; "" if that is not known.
        reads_files: whether it has the files that it was asked for.
        unread: why it does not have them, as half a sentence; "" if it has.
        writes_output: whether it may write the directory that it was asked for.
        broken: why it cannot be used: a fault of akrunner's own at either end, with its traceback, or an agent that broke the
            protocol or did not answer; None if nothing is wrong.
        fault: whether that is a fault of akrunner's own.
        silent: whether it is that the agent did not answer; its machine may be lost.
        control_broken: returns such a fault of the control server; None if there is none.
        hang_up: ends the stream, whatever is still on its way.
    """

    def __init__(self, subtask: int = 0, with_rows: bool = False, attempt: int = 0, job: str = "") -> None:
        self.subtask = subtask
        self.with_rows = with_rows
        self.attempt = attempt
        self.job = job
        self.why: Callable[[], str | None] = lambda: None
        self.broken: str | None = None
        self.fault = self.silent = False
        self.control_broken: Callable[[], str | None] = lambda: None
        self.hang_up: Callable[[], object] = lambda: None
        self.address = ""
        self.folder = ""
        self.machine = ""
        self.cores = 1
        self.reads_files = self.writes_output = False
        self.unread = ""
        self.gone = threading.Event()
        self.idle = threading.Event()
        self.idle.set()
        self.process: Any = None
        self._task: Task | None = None
        self._out: queue.SimpleQueue[pb.Told | None] = queue.SimpleQueue()
        self._answers: queue.Queue[Any] = queue.Queue(_ANSWERS)
        self._channels: dict[int, queue.Queue[socket.socket]] = {}
        self._lock = threading.Lock()
        self._patience = _SETTLE_SECONDS

    # -- a task comes and goes

    def ask(
        self,
        python: str,
        bind_host: str,
        advertised_host: str | None,
        files: Sequence[tuple[str, int]] = (),
        output: str | None = None,
        store: pb.Store | None = None,
    ) -> None:
        """Announce a task. `settle` waits for its address and folder.

        Args:
            python: the interpreter of the task.
            bind_host: the address at which the task's ports are held.
            advertised_host: the host in the task's address; None for the address from which the subtask reaches this host.
            files: (path, bytes) of files that the task would read itself.
            output: the directory that it would write to itself; None for none.
            store: where the files lie; None for disks.
        """
        self.idle.clear()
        self.process = None
        self._forget_answers()
        self._patience = _UNPACK_SECONDS if environments.is_packed(python) else _SETTLE_SECONDS
        asked = pb.Ask(python=python, bind_host=bind_host, advertised_host=advertised_host or "", output=output, store=store)
        asked.files.extend(pb.File(path=path, bytes=size) for path, size in files)
        self.tell(ask=asked)

    def settle(self) -> None:
        """Wait for the answer to `ask`.

        Raises:
            PythonEnvError, ConfigError: its machine has no such interpreter, or no such address.
            StartError: the subtask is gone.
        """
        word = self.answer(self._patience)
        if word is None:
            self.lost()
            raise StartError(self.broken or "a subtask has gone before its task was there")
        if word.WhichOneof("word") == "failed":
            raise error_of(word.failed.reason, word.failed.words)
        told = word.settled
        self.address, self.folder, self.machine = told.address, told.folder, told.machine
        self.cores, self.reads_files, self.writes_output = max(1, told.cores), told.reads_files, told.writes_output
        self.unread = told.unread

    def heeds(self, task: Task) -> None:
        """Pass what the agent says of its task to this object from now on."""
        self._task = task

    def end(self) -> None:
        """End the task: what is left of it is removed, and then `idle` is set."""
        if not self.idle.is_set():
            self.tell(end=pb.Nothing())

    # -- to the agent

    def tell(self, **word: Any) -> None:
        """Send a message to the agent. Does nothing if the agent is gone.

        Args:
            word: the field of `Told`, by name.
        """
        if not self.gone.is_set():
            self._out.put(pb.Told(**word))

    def told(self) -> Iterator[pb.Told]:
        """Yield the messages to the agent, until the subtask is closed or lost."""
        while (word := self._out.get()) is not None:
            yield word

    # -- from the agent

    def listen(self, words: Iterator[pb.Said]) -> None:
        """Handle what the agent says, until it is gone.

        Args:
            words: its messages. May raise anything when they end.
        """
        try:
            while (word := _next(words)) is not None:
                self._heed(word)
        except BadWord as e:
            self.broken = f"the agent of subtask {self.subtask} broke the protocol: {e}"
        self.lost()

    def _heed(self, word: Any) -> None:
        kind = word.WhichOneof("word")
        if kind == "broken":
            # nothing more may come from it
            self.broken, self.fault = word.broken, True
            self.lost()
        elif kind == "over":
            task, self._task = self._task, None
            self._close_channels()
            self.idle.set()
            if task is not None:
                task.over()
        elif kind in ("settled", "failed", "started"):
            try:
                self._answers.put_nowait(word)
            except queue.Full:
                raise BadWord(f"it says {kind} without end") from None
        elif kind in (None, "register"):
            raise BadWord(f"it said {kind or 'what this version does not know'}")
        elif self._task is not None:
            self._task.take(word)

    def answer(self, seconds: float | None = None) -> Any:
        """Return the agent's next answer; None if it is gone, or has said nothing for so long: `broken` says so."""
        word = self.heard(seconds)
        if word is None and not self.gone.is_set():
            self.broken, self.silent = f"the agent of subtask {self.subtask} said nothing for {seconds:g} s", True
        return word

    def heard(self, seconds: float | None) -> Any:
        """Return the agent's next answer; None if it is gone, or says nothing for so long, which is no fault."""
        deadline = time.monotonic() + seconds if seconds is not None else None
        while True:
            try:
                return self._answers.get(timeout=_TICK)
            except queue.Empty:
                if self.gone.is_set() or (deadline is not None and time.monotonic() > deadline):
                    return None

    def _forget_answers(self) -> None:
        """Forget what the agent has answered of an earlier task, which nobody has waited for."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._answers.get_nowait()

    def died(self, name: str, error: BaseException) -> None:
        """Note that a thread of this end has died: the subtask cannot be used any more."""
        if self.broken is None:
            self.broken, self.fault = words_of(name, error), True
        self.lost()

    def lost(self) -> None:
        """Note that the agent is gone, or cannot be used any more: it may be alive, and not know that."""
        self.gone.set()
        self.idle.set()
        task, self._task = self._task, None
        self._out.put(None)
        self.hang_up()
        if task is not None:
            task.over()

    # -- its connections to the port of rows

    def opened(self, kind: int, seconds: float) -> socket.socket:
        """Return the connection of a kind that the agent opens.

        Raises:
            OSError: the agent does not open it within that time.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.channel(kind).get(timeout=_TICK)
            except queue.Empty:
                broken = self.broken or self.control_broken()
                if broken or self.gone.is_set():
                    raise OSError(broken or f"the subtask at {self.address} has gone") from None
                if time.monotonic() > deadline:
                    raise OSError(f"the subtask at {self.address} does not answer") from None

    def channel(self, kind: int) -> queue.Queue[socket.socket]:
        """Return the queue of the connections of a kind that the agent opens."""
        with self._lock:
            return self._channels.setdefault(kind, queue.Queue())

    def _close_channels(self) -> None:
        with self._lock:
            for connections in self._channels.values():
                while not connections.empty():
                    connections.get().close()

    def abandon(self) -> None:
        """End the stream: the thread that reads it then sees that the subtask is gone."""
        self.hang_up()

    def close(self) -> None:
        """End the stream, after the messages that are still to be sent."""
        self._out.put(None)
        self._close_channels()


def _next(words: Iterator[pb.Said]) -> Any:
    """Return the next message; None if the stream has ended, in whatever way."""
    try:
        return next(words)
    except Exception:
        # gRPC's exception for a stream that was cut, or for a message that cannot be read
        return None
