"""The submitter's end of the connections to its agents (`akrunner.engines.flink.agent`)."""

from __future__ import annotations

import dataclasses
import errno
import hmac
import json
import os
import queue
import secrets
import selectors
import socket
import struct
import threading
import time
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from akrunner.engines.feeder import Given
from akrunner.engines.flink import threads
from akrunner.engines.flink.connections import BadLine, Lines, shut, tune, word_of
from akrunner.errors import ConfigError, DataError, JobError, PythonEnvError, ReadError, StartError
from akrunner.launch import environments
from akrunner.launch.process import Exit

_HELLO_LIMIT = 4096
#: a connection may take to say whose it is
_HELLO_SECONDS = 10.0
#: connections that have not said so; the oldest goes when another comes
_STRANGERS = 128
_CHANNELS = ("data", "log", "give")
#: an agent may take to say where its task can be
_SETTLE_SECONDS = 30.0
#: bytes of a line an agent says
_LINE_LIMIT = 4 << 20
_TICK = 0.1
#: a packed environment is gigabytes, maybe from far away
_UNPACK_SECONDS = 900.0
_LENGTH = struct.Struct("<Q")
#: what a word raises that lacks a field, or has something else in it: JSON of Python's knows Infinity
_UNFIT = (KeyError, TypeError, ValueError, OverflowError)


class Place:
    """One subtask: where a task can be, one after the other.

    Attributes: address: "host:port" TensorFlow may use; folder: the task's, there; machine, cores: of the subtask; process: the
    task's; idle: set while there is none; gone: set for good; why: what is known of that, may wait; subtask: its number; fed:
    whether Flink brings the task's rows to it; attempt: how often Flink had started it before; job: Flink's id of its job, where it
    is known; sees, writes: whether it has the files, and the directory, it was asked for; broken: a fault of akrunner's own, at either
    end, with its traceback; hub_broken: the same of the hub.
    """

    def __init__(self, control: socket.socket, subtask: int = 0, fed: bool = False, attempt: int = 0, job: str = "") -> None:
        self._control = control
        self.subtask = subtask
        self.fed = fed
        self.attempt = attempt
        self.job = job
        self.why: Callable[[], Optional[str]] = lambda: None
        self.broken: Optional[str] = None
        self.hub_broken: Callable[[], Optional[str]] = lambda: None
        self._lines = Lines(control, _LINE_LIMIT)
        self._channels: "Dict[str, queue.Queue[socket.socket]]" = {}
        self._lock = threading.Lock()
        self.address = ""
        self.folder = ""
        self.machine = ""
        self.cores = 1
        self.sees = self.writes = False
        self.gone = threading.Event()
        self.idle = threading.Event()
        self.idle.set()
        self.process: Optional[RemoteProcess] = None
        self._patience = _SETTLE_SECONDS

    def ask(
        self,
        python: str,
        bind_host: str,
        advertised_host: Optional[str],
        files: "Sequence[Tuple[str, int]]" = (),
        output: Optional[str] = None,
    ) -> None:
        """A task is to come: `settle` hears its address and folder.

        Args: files: (path, bytes) it would read itself; output: directory it would write to itself.
        """
        self.idle.clear()
        self.process = None
        self._patience = _UNPACK_SECONDS if environments.is_packed(python) else _SETTLE_SECONDS
        self.say(python=python, bind_host=bind_host, advertised_host=advertised_host, files=list(files), output=output)

    def settle(self) -> None:
        """Hear what `ask` asked for.

        Raises: PythonEnvError, ConfigError: its machine has no such interpreter, or no such address; StartError: it has gone.
        """
        told = self.hear(self._patience)
        if told is None:
            self.gone.set()
            self.idle.set()
            raise StartError(self.broken or "a subtask has gone before its task was there")
        if "failed" in told:
            words = str(told["failed"])
            raise PythonEnvError(words) if told.get("kind") == "PythonEnvError" else ConfigError(words)
        try:
            self.address, self.folder = str(told["address"]), str(told["folder"])
            self.machine, self.cores = str(told["machine"]), int(told["cores"])
            self.sees, self.writes = bool(told["sees"]), bool(told["writes"])
        except _UNFIT as e:
            raise StartError(f"a subtask broke the protocol: {e!r}") from None

    def end(self) -> None:
        """Its task is over: what is left of it goes, and `idle` is set then."""
        if self.idle.is_set():
            return
        self.say(end=True)
        if self.process is None:
            # nobody listens yet
            threads.started("place", self.died, self.until_over)

    def died(self, name: str, error: BaseException) -> None:
        """A thread of this end has: the place is of no use any more."""
        self.broken = self.broken or f"akrunner's own thread {name!r} failed:\n{threads.trace_of(error)}"
        self.gone.set()
        self.idle.set()
        self.abandon()

    def until_over(self, heed: Callable[[Dict[str, Any]], None] = lambda word: None) -> None:
        """Listen until the agent says that the task is over, or is gone. Args: heed: its other words."""
        while True:
            word = self.hear()
            try:
                if word is not None and "over" not in word:
                    heed(word)
            except BadLine as e:
                self.broken = f"the agent of subtask {self.subtask} broke the protocol: {e}"
                word = None
            if word is None:
                self.gone.set()
                self.idle.set()
                # it may live, and not know that it is of no use any more
                self.abandon()
                return
            if "over" in word:
                break
        with self._lock:
            for connections in self._channels.values():
                while not connections.empty():
                    connections.get().close()
        self.idle.set()

    def say(self, **body: Any) -> None:
        """Say a line to the agent; does nothing if the agent has gone."""
        try:
            with self._lock:
                self._control.sendall(json.dumps(body).encode() + b"\n")
        except OSError:
            self.gone.set()

    def hear(self, seconds: Optional[float] = None) -> Optional[Dict[str, Any]]:
        """The next word, None when it has gone, or has said nothing for so long, or what is no word: `broken` says so."""
        try:
            word = self._lines.hear(seconds)
        except BadLine as e:
            self.broken = f"the agent of subtask {self.subtask} broke the protocol: {e}"
            return None
        except OSError as e:
            # ETIMEDOUT is the system's, which has given up on a network that was cut
            if isinstance(e, TimeoutError) and e.errno is None:
                self.broken = f"the agent of subtask {self.subtask} said nothing for {seconds:g} s"
            return None
        if word is not None and "broken" in word:
            # what else it says may never come
            self.broken = str(word["broken"])
            return None
        return word

    def opened(self, name: str, seconds: float) -> socket.socket:
        """The connection of a kind that the agent opens. Raises: OSError: it does not, in that time."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.channel(name).get(timeout=_TICK)
            except queue.Empty:
                broken = self.broken or self.hub_broken()
                if broken or self.gone.is_set():
                    raise OSError(broken or f"the subtask at {self.address} has gone") from None
                if time.monotonic() > deadline:
                    raise OSError(f"the subtask at {self.address} does not answer") from None

    def channel(self, name: str) -> "queue.Queue[socket.socket]":
        """Connections the agent opens, of a kind."""
        with self._lock:
            return self._channels.setdefault(name, queue.Queue())

    def abandon(self) -> None:
        """Whoever listens to it hears that it has gone."""
        shut(self._control, socket.SHUT_RDWR)

    def close(self) -> None:
        self._control.close()
        with self._lock:
            for connections in self._channels.values():
                while not connections.empty():
                    connections.get().close()


class Hub:
    """Listens for agents, and greets them in one thread; close it.

    Args: host: address to listen on. Attributes: port; token: what agents must show; arrived: places, in the order they came; broken: what
    its thread died of, None while it lives.
    """

    def __init__(self, host: str) -> None:
        self.token = secrets.token_hex(16)
        self.arrived: "queue.Queue[Place]" = queue.Queue()
        self.broken: Optional[str] = None
        self._places: Dict[str, Place] = {}
        self._strangers: Dict[socket.socket, _Stranger] = {}
        self._closed = False
        self._listener = socket.create_server((host, 0), backlog=256)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._greeting = threads.started("hub", self._died, self._greet)

    def close(self) -> None:
        self._closed = True
        # what waits for strangers is not woken by closing what it listens on
        shut(self._listener, socket.SHUT_RDWR)
        self._greeting.join(5.0)
        self._listener.close()
        self._selector.close()
        for stranger in list(self._strangers):
            stranger.close()
        for place in list(self._places.values()):
            place.close()

    def _died(self, name: str, error: BaseException) -> None:
        self.broken = f"akrunner's own thread {name!r} failed:\n{threads.trace_of(error)}"

    def _greet(self) -> None:
        while not self._closed:
            ready = [key.fileobj for key, _ in self._selector.select(_TICK)]
            # first those who have said something: they make room
            for connection in ready:
                if isinstance(connection, socket.socket) and connection is not self._listener:
                    self._hear(connection)
            now = time.monotonic()
            for connection in [one for one, stranger in self._strangers.items() if now > stranger.until]:
                self._part(connection).close()
            if self._listener in ready:
                self._accept()

    def _accept(self) -> None:
        if len(self._strangers) >= _STRANGERS:
            self._part(next(iter(self._strangers))).close()
        try:
            connection, _ = self._listener.accept()
        except OSError as e:
            if self._strangers and e.errno in (errno.EMFILE, errno.ENFILE):
                self._part(next(iter(self._strangers))).close()
            elif not self._closed and e.errno not in (errno.ECONNABORTED, errno.EAGAIN):
                time.sleep(_TICK / 10)  # no room of the system's: it may come
            return
        connection.setblocking(False)
        self._strangers[connection] = _Stranger(time.monotonic() + _HELLO_SECONDS)
        self._selector.register(connection, selectors.EVENT_READ)

    def _part(self, connection: socket.socket) -> socket.socket:
        self._selector.unregister(connection)
        del self._strangers[connection]
        return connection

    def _hear(self, connection: socket.socket) -> None:
        """Some of its first line, and not a byte behind that: what follows is for whoever gets the connection."""
        said = self._strangers[connection].said
        try:
            seen = connection.recv(_HELLO_LIMIT, socket.MSG_PEEK)
            end = seen.find(b"\n") + 1
            said += connection.recv(end or len(seen)) if seen else b""
            if not end and (not seen or len(said) > _HELLO_LIMIT):
                raise BadLine("no hello")
            if end:
                self._part(connection)
                connection.setblocking(True)
                self._let_in(connection, word_of(bytes(said)))
        except BlockingIOError:
            return
        except (OSError, *_UNFIT):
            if connection in self._strangers:
                self._part(connection)
            connection.close()

    def _let_in(self, connection: socket.socket, hello: Dict[str, Any]) -> None:
        """Whose it is, and which of its connections. Raises: `_UNFIT`: nobody's; without the token it is nobody."""
        if not hmac.compare_digest(str(hello["token"]).encode(), self.token.encode()):
            raise ValueError("a wrong token")
        tune(connection)
        name, channel = str(hello["place"]), hello["channel"]
        if channel == "control":
            if name in self._places:
                raise ValueError("it has come already")
            who = hello["who"]
            if not isinstance(who, dict):
                raise ValueError("nobody")
            place = Place(
                connection, int(who.get("subtask", 0)), bool(who["fed"]), int(who.get("attempt", 0)), str(who.get("job", ""))
            )
            place.hub_broken = lambda: self.broken
            self._places[name] = place
            self.arrived.put(place)
        elif channel in _CHANNELS:
            self._places[name].channel(channel).put(connection)
        else:
            raise ValueError("no such channel")


@dataclasses.dataclass
class _Stranger:
    """Who has not said who it is. Attributes: until: when its time is over; said: so far."""

    until: float
    said: bytearray = dataclasses.field(default_factory=bytearray)


def error_of(kind: str, words: str) -> Exception:
    """What an agent could not do with a row."""
    known = {DataError.__name__: DataError, ReadError.__name__: ReadError}
    return known[kind](words) if kind in known else JobError(f"{kind}: {words}")


def _exit_of(told: Dict[str, Any]) -> Exit:
    code, signal = (None if told[name] is None else int(told[name]) for name in ("code", "signal"))
    return Exit(code, signal, int(told["peak_rss"]), float(told["cpu_seconds"]), int(told["time_ns"]))


class RemoteProcess:
    """A task's process beside its agent; see `akrunner.launch.process.LoggedProcess`. Attributes: given: the rows Flink has brought it."""

    def __init__(self, place: Place, package: str, order: Dict[str, Any], seconds: float) -> None:
        """Have it started. Args: package: path of a tar of its files; order: what the agent is told. Raises: OSError: it cannot be."""
        self._place = place
        self.exit: Optional[Exit] = None
        self.sampled_rss = 0
        self.sampled_cpu = 0.0
        self._tree = 0.0
        self.pid = 0
        self.given = Given()
        self._ended = threading.Event()
        place.say(**order)
        data = place.opened("data", seconds)
        data.sendall(_LENGTH.pack(os.path.getsize(package)))
        with open(package, "rb") as f:
            data.sendfile(f)
        self._until_started(place, seconds)
        log = place.opened("log", seconds)
        self._data = data.dup()
        self.log_fd = log.detach()
        self.output_fd = data.detach()
        self.input_fd = os.dup(self.output_fd)
        place.process = self
        threads.started("place", self._died, self._listen)

    def _until_started(self, place: Place, seconds: float) -> None:
        while True:
            word = place.hear(seconds)
            if word is None:
                place.gone.set()
                place.idle.set()
                raise OSError(place.broken or f"the subtask at {place.address} has gone")
            if "failed" in word:
                raise OSError(str(word["failed"]))
            if "started" in word:
                try:
                    self.pid = int(word["started"])
                except _UNFIT as e:
                    raise OSError(f"the agent of subtask {place.subtask} broke the protocol: {e!r}") from None
                return

    def _listen(self) -> None:
        self._place.until_over(self._heed)
        if self.exit is None:
            lost = f"lost: the TaskManager on {self._place.address.rpartition(':')[0]}, or its Python worker, has gone"
            why = self._place.why()
            lost += f"; Flink says: {why}" if why else ""
            self._has_ended(Exit(None, None, self.sampled_rss, self.sampled_cpu, time.time_ns(), lost))
        self._data.close()

    def _died(self, name: str, error: BaseException) -> None:
        self._place.died(name, error)
        self._has_ended(
            Exit(None, None, self.sampled_rss, self.sampled_cpu, time.time_ns(), "lost: nobody listens to it any more")
        )
        self._data.close()

    def _heed(self, word: Dict[str, Any]) -> None:
        try:
            self._take(word)
        except _UNFIT as e:
            raise BadLine(f"{e!r} in {str(word)[:200]}") from None

    def _take(self, word: Dict[str, Any]) -> None:
        if "rss" in word:
            self.sampled_rss, self.sampled_cpu, self._tree = int(word["rss"]), float(word["cpu"]), float(word["tree"])
        if "fed" in word:
            self.given = Given(int(word["fed"]), int(word["dropped"]), int(word["bytes"]), bool(word["all"]))
        if "refused" in word:
            self.given = dataclasses.replace(self.given, error=error_of(str(word["kind"]), str(word["refused"])))
        if "exit" in word:
            self._has_ended(_exit_of(word["exit"]))

    def _has_ended(self, how: Exit) -> None:
        self.exit = how
        # as a pipe nobody reads: whoever still writes to it is told
        shut(self._data, socket.SHUT_WR)
        self._ended.set()

    def sample(self) -> None:
        """The agent does."""

    def tree_cpu(self) -> float:
        """Processor seconds of it and all it has started."""
        return self._tree

    def unread(self) -> int:
        """Not known from here."""
        return 0

    def wait(self, seconds: Optional[float]) -> Optional[Exit]:
        """Its exit, None when it has not ended within that time."""
        self._ended.wait(seconds)
        return self.exit

    def signal(self, number: int) -> None:
        """Send a signal to the process alone."""
        self._place.say(signal=int(number))

    def terminate(self) -> None:
        """SIGTERM to the whole group."""
        self._place.say(group="terminate")

    def kill(self) -> None:
        """SIGKILL to the whole group."""
        self._place.say(group="kill")

    def abandon(self) -> None:
        """Its place counts as gone from now on."""
        self._place.abandon()
