"""A place for tasks, as its host knows it: one subtask, whose agent is at the other end of a stream (`control.proto`)."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.threads import trace_of
from akrunner.errors import ConfigError, PythonEnvError, StartError
from akrunner.launch import environments

#: an agent may take to say where its task can be
_SETTLE_SECONDS = 30.0
#: a packed environment is gigabytes, maybe from far away
_UNPACK_SECONDS = 900.0
_TICK = 0.1
#: answers nobody has asked for
_ANSWERS = 16


class BadWord(ValueError):
    """What an agent says is nothing that it may say."""


class Task(Protocol):
    """Heeds what an agent says of the task it has."""

    def take(self, word: Any) -> None:
        """Args: word: a `Said`. Raises: BadWord."""

    def over(self) -> None:
        """Nothing more comes."""


class Place:
    """One subtask: where a task can be, one after the other.

    Attributes: address: "host:port" TensorFlow may use; folder: the task's, there; machine, cores: of the subtask; process: the
    task's; idle: set while there is none; gone: set for good; why: what is known of that, may wait; subtask: its number; fed:
    whether Flink brings the task's rows to it; attempt: how often Flink had started it before; job: Flink's id of its job, where it
    is known; sees, writes: whether it has the files, and the directory, it was asked for; broken: a fault of akrunner's own, at either
    end, with its traceback; hub_broken: the same of the hub; hang_up: ends the stream, whatever is still on its way.
    """

    def __init__(self, subtask: int = 0, fed: bool = False, attempt: int = 0, job: str = "") -> None:
        self.subtask = subtask
        self.fed = fed
        self.attempt = attempt
        self.job = job
        self.why: Callable[[], str | None] = lambda: None
        self.broken: str | None = None
        self.hub_broken: Callable[[], str | None] = lambda: None
        self.hang_up: Callable[[], object] = lambda: None
        self.address = ""
        self.folder = ""
        self.machine = ""
        self.cores = 1
        self.sees = self.writes = False
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
    ) -> None:
        """A task is to come: `settle` hears its address and folder.

        Args: files: (path, bytes) it would read itself; output: directory it would write to itself.
        """
        self.idle.clear()
        self.process = None
        self._patience = _UNPACK_SECONDS if environments.is_packed(python) else _SETTLE_SECONDS
        asked = pb.Ask(python=python, bind_host=bind_host, advertised_host=advertised_host or "", output=output)
        asked.files.extend(pb.Ask.File(path=path, bytes=size) for path, size in files)
        self.tell(ask=asked)

    def settle(self) -> None:
        """Hear what `ask` asked for.

        Raises: PythonEnvError, ConfigError: its machine has no such interpreter, or no such address; StartError: it has gone.
        """
        word = self.answer(self._patience)
        if word is None:
            self.lost()
            raise StartError(self.broken or "a subtask has gone before its task was there")
        if word.WhichOneof("word") == "failed":
            words = word.failed.words
            raise PythonEnvError(words) if word.failed.kind == PythonEnvError.__name__ else ConfigError(words)
        told = word.settled
        self.address, self.folder, self.machine = told.address, told.folder, told.machine
        self.cores, self.sees, self.writes = max(1, told.cores), told.sees, told.writes

    def heeds(self, task: Task) -> None:
        """What the agent says of its task is for this one from now on."""
        self._task = task

    def end(self) -> None:
        """Its task is over: what is left of it goes, and `idle` is set then."""
        if not self.idle.is_set():
            self.tell(end=pb.Nothing())

    # -- to the agent

    def tell(self, **word: Any) -> None:
        """Say a word to the agent; does nothing if the agent has gone. Args: word: of `Told`."""
        if not self.gone.is_set():
            self._out.put(pb.Told(**word))

    def told(self) -> Iterator[pb.Told]:
        """What is said to the agent, until the place is closed or lost."""
        while (word := self._out.get()) is not None:
            yield word

    # -- from the agent

    def listen(self, words: Iterator[pb.Said]) -> None:
        """Heed what the agent says until it has gone. Args: words: raises what it likes when they end."""
        try:
            while (word := _next(words)) is not None:
                self._heed(word)
        except BadWord as e:
            self.broken = f"the agent of subtask {self.subtask} broke the protocol: {e}"
        self.lost()

    def _heed(self, word: Any) -> None:
        kind = word.WhichOneof("word")
        if kind == "broken":
            # what else it says may never come
            self.broken = word.broken
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
        """Its next answer, None when it has gone, or has said nothing for so long: `broken` says so."""
        deadline = time.monotonic() + seconds if seconds is not None else None
        while True:
            try:
                return self._answers.get(timeout=_TICK)
            except queue.Empty:
                if self.gone.is_set():
                    return None
                if deadline is not None and time.monotonic() > deadline:
                    self.broken = f"the agent of subtask {self.subtask} said nothing for {seconds:g} s"
                    return None

    def died(self, name: str, error: BaseException) -> None:
        """A thread of this end has: the place is of no use any more."""
        self.broken = self.broken or f"akrunner's own thread {name!r} failed:\n{trace_of(error)}"
        self.lost()

    def lost(self) -> None:
        """The agent has gone, or is of no use any more: it may live, and not know that."""
        self.gone.set()
        self.idle.set()
        task, self._task = self._task, None
        self._out.put(None)
        self.hang_up()
        if task is not None:
            task.over()

    # -- its connections to the port of rows

    def opened(self, kind: int, seconds: float) -> socket.socket:
        """The connection of a kind that the agent opens. Raises: OSError: it does not, in that time."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.channel(kind).get(timeout=_TICK)
            except queue.Empty:
                broken = self.broken or self.hub_broken()
                if broken or self.gone.is_set():
                    raise OSError(broken or f"the subtask at {self.address} has gone") from None
                if time.monotonic() > deadline:
                    raise OSError(f"the subtask at {self.address} does not answer") from None

    def channel(self, kind: int) -> queue.Queue[socket.socket]:
        """Connections the agent opens, of a kind."""
        with self._lock:
            return self._channels.setdefault(kind, queue.Queue())

    def _close_channels(self) -> None:
        with self._lock:
            for connections in self._channels.values():
                while not connections.empty():
                    connections.get().close()

    def abandon(self) -> None:
        """Whoever listens to it hears that it has gone."""
        self.hang_up()

    def close(self) -> None:
        """End the stream, behind what is still to be said."""
        self._out.put(None)
        self._close_channels()


def _next(words: Iterator[pb.Said]) -> Any:
    """The next word; None: the stream has ended, in whatever way."""
    try:
        return next(words)
    except Exception:
        # gRPC's own of a stream that was cut, and a message that is none
        return None
