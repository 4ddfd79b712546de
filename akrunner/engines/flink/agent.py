"""Beside a subtask: one task's process, on the machine Flink has put it, and its pipes as connections to the submitter.

::

    submitter (Hub)                        agent, in the Python worker of a subtask
    control  lines of JSON   <---------->  who and where it is; start, signals, stop; samples, the exit
    data     bytes           <---------->  the two pipes of the task's process, as they are
    log      bytes           <-----------  what it prints
    give     a tar           <-----------  files of the task: what a train job's chief has exported, what a replay needs

Standard library only, and Python's own interpreter of Flink: nothing of akrunner's host half is imported but process, guard and ports.
"""

from __future__ import annotations

import io
import json
import os
import select
import shutil
import socket
import struct
import tarfile
import tempfile
import threading
import time
import uuid
from typing import Any, Dict, Optional, Tuple

from akrunner.cluster.ports import PortHold
from akrunner.launch.guard import Guard
from akrunner.launch.process import ChildProcess, stop_all, sweep, worker_process

_SAMPLE_SECONDS = 0.3
_CHUNK = 1 << 20
_LENGTH = struct.Struct("<Q")


class SubmitterGone(Exception):
    """The connection to the submitter has ended before the submitter said so."""


def work(address: Tuple[str, int], token: str) -> None:
    """Be one task's place until the submitter says that it is over. Raises: SubmitterGone, OSError: it went away."""
    _Agent(address, token).run()


class _Agent:
    def __init__(self, address: Tuple[str, int], token: str) -> None:
        self._address = address
        self._token = token
        self._place = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._process: Optional[ChildProcess] = None
        self._pumps: "list[threading.Thread]" = []
        self._open: "list[socket.socket]" = []

    def run(self) -> None:
        began = time.time()
        mark = uuid.uuid4().hex
        folder = os.path.realpath(tempfile.mkdtemp(prefix="akrunner-"))
        self._control = self._connect("control")
        with Guard() as guard:
            guard.remove(folder)
            watch_java(guard)
            hold: Optional[PortHold] = None
            try:
                told = self._hear()
                hold = PortHold(1, told["bind_host"])
                here = told["advertised_host"] or self._control.getsockname()[0]
                self._say(address=f"{here}:{hold.ports[0]}", folder=folder)
                order = self._hear()
                self._start(order, folder, mark, guard)
                self._attend(folder)
            finally:
                if self._process is not None:
                    stop_all([self._process], 0.0 if self._process.exit is None else 1.0)
                    guard.forget(self._process.pid)
                sweep(mark, began)
                if hold is not None:
                    hold.close()
                shutil.rmtree(folder, ignore_errors=True)
                for connection in (*self._open, self._control):
                    connection.close()

    # -- the connections

    def _connect(self, channel: str) -> socket.socket:
        made = socket.create_connection(self._address, timeout=30)
        made.settimeout(None)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        hello = {"token": self._token, "place": self._place, "channel": channel}
        made.sendall(json.dumps(hello).encode() + b"\n")
        return made

    def _say(self, **body: Any) -> None:
        with self._lock:
            self._control.sendall(json.dumps(body).encode() + b"\n")

    def _hear(self) -> Dict[str, Any]:
        """The next line. Raises: SubmitterGone."""
        line = bytearray()
        while True:
            byte = self._control.recv(1)
            if not byte:
                raise SubmitterGone("the submitter has gone")
            if byte == b"\n":
                value: Dict[str, Any] = json.loads(line)
                return value
            line += byte

    # -- the process

    def _start(self, order: Dict[str, Any], folder: str, mark: str, guard: Guard) -> None:
        data = self._connect("data")
        (size,) = _LENGTH.unpack(_exactly(data, _LENGTH.size))
        with tarfile.open(fileobj=io.BytesIO(_exactly(data, size))) as archive:
            # it is the submitter's own, over a connection that has shown the job's token
            archive.extractall(folder)
        for name in order["directories"]:
            os.makedirs(os.path.join(folder, name), mode=0o700, exist_ok=True)
        env = {"TMPDIR": os.path.join(folder, "tmp"), **order["env"]}
        python = order["python"]
        try:
            process = worker_process(python, os.path.join(folder, "bundle.zip"), env, mark, os.path.join(folder, "work"))
        except OSError as e:
            self._say(failed=f"cannot start {python} on {socket.gethostname()}: {e.strerror} (python_env=)")
            raise
        self._process = process
        guard.watch(process.pid)
        log = self._connect("log")
        self._say(started=process.pid)
        for name, source, target in (
            ("in", data.fileno(), process.input_fd), ("out", process.output_fd, data.fileno()), ("log", process.log_fd, log.fileno()),
        ):  # fmt: skip
            pump = threading.Thread(target=_pump, args=(source, target), name=f"akrunner-{name}", daemon=True)
            pump.start()
            self._pumps.append(pump)
        # the pumps have their numbers only
        self._open += [data, log]
        threading.Thread(target=self._close_out, args=(data, log), name="akrunner-close", daemon=True).start()
        threading.Thread(target=self._close_in, name="akrunner-close-in", daemon=True).start()

    def _close_out(self, data: socket.socket, log: socket.socket) -> None:
        """What the process writes has ended: so do the connections it went over."""
        self._pumps[1].join()
        _shut(data, socket.SHUT_WR)
        self._pumps[2].join()
        _shut(log, socket.SHUT_RDWR)

    def _close_in(self) -> None:
        """Nothing more comes for the process: its pipe ends, and with it the process."""
        self._pumps[0].join()
        assert self._process is not None
        os.close(self._process.input_fd)

    def _attend(self, folder: str) -> None:
        """Do as the submitter says, and tell how the process is, until the submitter says that it is over."""
        process = self._process
        assert process is not None
        told = False
        sampled = 0.0
        while True:
            readable, _, _ = select.select([self._control], [], [], 0.05)
            if readable:
                word = self._hear()
                if "end" in word:
                    return
                if "signal" in word:
                    process.signal(word["signal"])
                if "group" in word:
                    process.terminate() if word["group"] == "terminate" else process.kill()
                if "give" in word:
                    self._give(folder, word["give"])
            now = time.monotonic()
            if now - sampled > _SAMPLE_SECONDS and not told:
                sampled = now
                process.sample()
                self._say(rss=process.sampled_rss, cpu=process.sampled_cpu, tree=process.tree_cpu())
            ended = process.exit
            if ended is not None and not told and not self._pumps[2].is_alive():
                told = True
                self._say(
                    exit={
                        "code": ended.code, "signal": ended.signal, "peak_rss": ended.peak_rss, "cpu_seconds": ended.cpu_seconds,
                        "time_ns": ended.time_ns,
                    }
                )  # fmt: skip

    def _give(self, folder: str, names: "list[str]") -> None:
        """Files and directories of the task, as a tar."""
        with self._connect("give") as connection, connection.makefile("wb") as out:
            with tarfile.open(fileobj=out, mode="w|") as archive:
                for name in names:
                    path = os.path.join(folder, name)
                    if os.path.exists(path):
                        archive.add(path, name)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    while len(view):
        got = connection.recv_into(view, min(len(view), _CHUNK))
        if not got:
            raise SubmitterGone("the submitter has gone")
        view = view[got:]
    return bytes(data)


def _pump(source: int, target: int) -> None:
    """Bytes from one descriptor to another, until either ends."""
    try:
        while True:
            data = os.read(source, _CHUNK)
            if not data:
                return
            view = memoryview(data)
            while len(view):
                view = view[os.write(target, view) :]
    except OSError:
        return


def _shut(connection: socket.socket, how: int) -> None:
    try:
        connection.shutdown(how)
    except OSError:
        pass


def watch_java(guard: Guard) -> None:
    """End this process when the TaskManager it belongs to is gone: after SIGKILL of that, Flink's Python workers live on.

    Args: guard: ends the task's process then, and removes its directory.
    """
    java = _java_ancestor()
    if java is None:
        return

    def watch() -> None:
        while _start_time(java[0]) == java[1]:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="akrunner-watch-java", daemon=True).start()


def _java_ancestor() -> "Optional[Tuple[int, str]]":
    """(pid, start time) of the Java process this one descends from; None where /proc does not tell."""
    pid = os.getppid()
    try:
        while pid > 1:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().strip() == "java":
                    started = _start_time(pid)
                    return (pid, started) if started is not None else None
            with open(f"/proc/{pid}/stat") as f:
                pid = int(f.read().rsplit(")", 1)[1].split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return None


def _start_time(pid: int) -> Optional[str]:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return None
