"""The submitter's end of the connections to its agents (`akrunner.engines.flink.agent`)."""

from __future__ import annotations

import dataclasses
import hmac
import json
import os
import queue
import secrets
import socket
import struct
import threading
import time
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from akrunner.engines.feeder import Given
from akrunner.engines.flink.connections import shut, tune
from akrunner.errors import ConfigError, DataError, JobError, PythonEnvError, StartError
from akrunner.launch import environments
from akrunner.launch.process import Exit

_HELLO_LIMIT = 4096
_HELLO_SECONDS = 30.0
#: a packed environment is gigabytes, maybe from far away
_UNPACK_SECONDS = 900.0
_LENGTH = struct.Struct("<Q")


class Place:
    """One subtask: where a task can be, one after the other.

    Attributes: address: "host:port" TensorFlow may use; folder: the task's, there; machine, cores: of the subtask; process: the
    task's; idle: set while there is none; gone: set for good; why: what is known of that, may wait; subtask: its number; fed:
    whether Flink brings the task's rows to it; attempt: how often Flink had started it before; job: Flink's id of its job, where it
    is known; sees, writes: whether it has the files, and the directory, it was asked for.
    """

    def __init__(self, control: socket.socket, subtask: int = 0, fed: bool = False, attempt: int = 0, job: str = "") -> None:
        self._control = control
        self.subtask = subtask
        self.fed = fed
        self.attempt = attempt
        self.job = job
        self.why: Callable[[], Optional[str]] = lambda: None
        self._lines = control.makefile("rb")
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
        self._patience = _HELLO_SECONDS

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
        self._patience = _UNPACK_SECONDS if environments.is_packed(python) else _HELLO_SECONDS
        self.say(python=python, bind_host=bind_host, advertised_host=advertised_host, files=list(files), output=output)

    def settle(self) -> None:
        """Hear what `ask` asked for.

        Raises: PythonEnvError, ConfigError: its machine has no such interpreter, or no such address; StartError: it has gone.
        """
        told = self.hear(self._patience)
        if told is None:
            self.gone.set()
            self.idle.set()
            raise StartError("a subtask has gone before its task was there")
        if "failed" in told:
            raise PythonEnvError(told["failed"]) if told["kind"] == "PythonEnvError" else ConfigError(told["failed"])
        self.address, self.folder = told["address"], told["folder"]
        self.machine, self.cores = told["machine"], told["cores"]
        self.sees, self.writes = told["sees"], told["writes"]

    def end(self) -> None:
        """Its task is over: what is left of it goes, and `idle` is set then."""
        if self.idle.is_set():
            return
        self.say(end=True)
        if self.process is None:
            # nobody listens yet
            threading.Thread(target=self.until_over, name="akrunner-place", daemon=True).start()

    def until_over(self, heed: Callable[[Dict[str, Any]], None] = lambda word: None) -> None:
        """Listen until the agent says that the task is over, or is gone. Args: heed: its other words."""
        while True:
            word = self.hear()
            if word is None:
                self.gone.set()
                self.idle.set()
                return
            if "over" in word:
                break
            heed(word)
        with self._lock:
            for connections in self._channels.values():
                while not connections.empty():
                    connections.get().close()
        self.idle.set()

    def say(self, **body: Any) -> None:
        """Nothing when it has gone."""
        try:
            with self._lock:
                self._control.sendall(json.dumps(body).encode() + b"\n")
        except OSError:
            self.gone.set()

    def hear(self, seconds: Optional[float] = None) -> Optional[Dict[str, Any]]:
        """The next word, None when it has gone, or has said nothing for so long."""
        try:
            self._control.settimeout(seconds)
            line = self._lines.readline()
            value: Optional[Dict[str, Any]] = json.loads(line) if line else None
            return value
        except (OSError, ValueError):
            return None

    def channel(self, name: str) -> "queue.Queue[socket.socket]":
        """Connections the agent opens, of a kind."""
        with self._lock:
            return self._channels.setdefault(name, queue.Queue())

    def abandon(self) -> None:
        """Whoever listens to it hears that it has gone."""
        shut(self._control, socket.SHUT_RDWR)

    def close(self) -> None:
        for closed in (self._lines, self._control):
            try:
                closed.close()
            except OSError:
                pass


class Hub:
    """Listens for agents; close it.

    Args: host: address to listen on. Attributes: port; token: what agents must show; arrived: places, in the order they came.
    """

    def __init__(self, host: str) -> None:
        self.token = secrets.token_hex(16)
        self.arrived: "queue.Queue[Place]" = queue.Queue()
        self._places: Dict[str, Place] = {}
        self._closed = False
        self._listener = socket.create_server((host, 0), backlog=256)
        self.port = int(self._listener.getsockname()[1])
        self._accepting = threading.Thread(target=self._accept, name="akrunner-hub", daemon=True)
        self._accepting.start()

    def close(self) -> None:
        self._closed = True
        # a thread in accept() is not woken by closing what it listens on
        shut(self._listener, socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(5.0)
        for place in list(self._places.values()):
            place.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._greet, args=(connection,), name="akrunner-greet", daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        """Who it is, and which of its connections. Without the token it is nobody."""
        try:
            connection.settimeout(_HELLO_SECONDS)
            hello = json.loads(_line(connection))
            if not hmac.compare_digest(str(hello["token"]).encode(), self.token.encode()):
                raise ValueError("a wrong token")
            connection.settimeout(None)
            tune(connection)
        except (OSError, ValueError, KeyError, TypeError):
            connection.close()
            return
        if hello["channel"] == "control":
            place = self._places[hello["place"]] = Place(connection, **hello["who"])
            self.arrived.put(place)
        elif hello["place"] in self._places:
            self._places[hello["place"]].channel(hello["channel"]).put(connection)
        else:
            connection.close()


def _line(connection: socket.socket) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte or len(line) > _HELLO_LIMIT:
            raise ValueError("no hello")
        line += byte
    return bytes(line)


def error_of(kind: str, words: str) -> Exception:
    """What an agent could not do with a row."""
    return DataError(words) if kind == DataError.__name__ else JobError(f"{kind}: {words}")


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
        try:
            data = place.channel("data").get(timeout=seconds)
            data.sendall(_LENGTH.pack(os.path.getsize(package)))
            with open(package, "rb") as f:
                data.sendfile(f)
            self._until_started(place, seconds)
            log = place.channel("log").get(timeout=seconds)
        except queue.Empty:
            raise OSError(f"the subtask at {place.address} does not answer") from None
        self._data = data.dup()
        self.log_fd = log.detach()
        self.output_fd = data.detach()
        self.input_fd = os.dup(self.output_fd)
        place.process = self
        threading.Thread(target=self._listen, name="akrunner-place", daemon=True).start()

    def _until_started(self, place: Place, seconds: float) -> None:
        while True:
            word = place.hear(seconds)
            if word is None:
                place.gone.set()
                place.idle.set()
                raise OSError(f"the subtask at {place.address} has gone")
            if "failed" in word:
                raise OSError(word["failed"])
            if "started" in word:
                self.pid = word["started"]
                return

    def _listen(self) -> None:
        self._place.until_over(self._heed)
        if self.exit is None:
            lost = f"lost: the TaskManager on {self._place.address.rpartition(':')[0]}, or its Python worker, has gone"
            why = self._place.why()
            lost += f"; Flink says: {why}" if why else ""
            self._has_ended(Exit(None, None, self.sampled_rss, self.sampled_cpu, time.time_ns(), lost))
        self._data.close()

    def _heed(self, word: Dict[str, Any]) -> None:
        if "rss" in word:
            self.sampled_rss, self.sampled_cpu, self._tree = word["rss"], word["cpu"], word["tree"]
        if "fed" in word:
            self.given = Given(word["fed"], word["dropped"], word["bytes"], word["all"])
        if "refused" in word:
            self.given = dataclasses.replace(self.given, error=error_of(word["kind"], word["refused"]))
        if "exit" in word:
            self._has_ended(Exit(**word["exit"]))

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
