"""Beside a subtask: a task's process, on the machine Flink has put it, and its pipes as connections to the submitter.

::

    submitter (Hub)                        agent, in the Python worker of a subtask
    control  lines of JSON   <---------->  who and where it is; start, signals, stop; samples, the exit
    data     bytes           <---------->  the two pipes of the task's process, as they are
    log      bytes           <-----------  what it prints
    give     a tar           <-----------  files of the task: what a train job's chief has exported, what a replay needs

Standard library only, and Python's own interpreter of Flink: nothing of akrunner's host half is imported but process, guard, ports and
archives.
No thread dies without a word: the submitter is told its traceback, and the job fails with it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import shutil
import socket
import struct
import tarfile
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple

from akrunner import leftovers
from akrunner.cluster.ports import PortHold
from akrunner.cluster.resources import THREADS
from akrunner.engines.flink import threads
from akrunner.engines.flink.connections import Lines, shut, tune
from akrunner.engines.flink.folders import TaskFolder
from akrunner.errors import ConfigError, JobError, PythonEnvError
from akrunner.launch import archives
from akrunner.launch.guard import Guard
from akrunner.launch.process import ChildProcess, stop_all, sweep, worker_environment, worker_process
from akrunner.launch.trees import Blame

if TYPE_CHECKING:
    from akrunner.engines.flink.feed import Feed

#: Flink waits for its Python when it ends a job; after three minutes it ends the TaskManager, with all that is there
_STOPPED_SECONDS = 20.0
_SAMPLE_SECONDS = 0.3
_LOG_SECONDS = 0.5
_CHUNK = 1 << 20
_LENGTH = struct.Struct("<Q")
#: bytes of a line the submitter says: a task's environment, and every block it reads
_LINE_LIMIT = 256 << 20


class SubmitterGone(Exception):
    """The connection to the submitter has ended before the submitter said so."""


class JobFailed(Exception):
    """The job has failed, in the submitter's words. Attributes: final: it would fail again."""

    def __init__(self, words: str, final: bool = False) -> None:
        super().__init__(words)
        self.final = final


def work(address: Tuple[str, int], token: str, feed: "Optional[Feed]" = None, **who: Any) -> None:
    """Be a place for tasks until the submitter says that it is over.

    Args: feed: where the task's rows come from, None: from the submitter; who: what `akrunner.engines.flink.hub.Place` knows of it.
    Raises: JobFailed: it said so, or is not there; SubmitterGone, OSError: it went away.
    """
    _Agent(address, token, feed, who).run()


class _Agent:
    def __init__(self, address: Tuple[str, int], token: str, feed: "Optional[Feed]", who: Dict[str, Any]) -> None:
        self._address = address
        self._token = token
        self._feed = feed
        self._who = who
        self._place = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._process: Optional[ChildProcess] = None
        self._pumps: "list[threading.Thread]" = []
        self._open: "list[socket.socket]" = []
        self._reads: "Optional[Feed]" = None
        self._broken: Optional[BaseException] = None

    def run(self) -> None:
        leftovers.keep_awake(_STOPPED_SECONDS)
        watch_java(self._broke)
        try:
            self._control = self._connect("control")
            self._lines = Lines(self._control, _LINE_LIMIT)
        except OSError as e:
            # started again, perhaps, after whoever submitted it has ended
            host, port = self._address
            raise JobFailed(f"what submitted this job does not answer at {host}:{port}: {e.strerror or e}", True) from e
        with self._control:
            try:
                self._work()
            except (JobFailed, SubmitterGone, OSError):
                raise
            except BaseException as e:
                self._broke("agent", e)
                raise

    def _work(self) -> None:
        while True:
            told = self._hear()
            if "leave" in told:
                if told.get("error"):
                    raise JobFailed(told["error"], told["final"])
                return
            if "end" in told:
                continue  # of a task that could not be started
            self._one(told)
            self._say(over=True)

    def _broke(self, name: str, error: BaseException) -> None:
        """A thread of this end has died: the submitter is told why, and the task goes."""
        if self._broken is None:
            self._broken = error
            where = f"beside the task on {socket.gethostname()}"
            with contextlib.suppress(OSError):
                self._say(broken=f"akrunner's own thread {name!r} {where} failed:\n{threads.trace_of(error)}")

    def _one(self, told: Dict[str, Any]) -> None:
        """One task, from its address to the last of its processes and files."""
        began = time.time()
        mark = uuid.uuid4().hex
        self._process, self._pumps, self._open, self._reads = None, [], [], None
        with Guard() as guard, TaskFolder(mark, guard.remove) as folder:
            guard.watch_mark(mark)
            hold: Optional[PortHold] = None
            try:
                python = self._interpreter(told["python"])
                hold = self._ports(told["bind_host"]) if python is not None else None
                if hold is None or python is None:
                    return
                here = told["advertised_host"] or self._control.getsockname()[0]
                self._say(
                    address=f"{here}:{hold.ports[0]}", folder=folder, machine=socket.gethostname(), cores=_cores(),
                    sees=_sees(told["files"]), writes=told["output"] is not None and os.access(told["output"], os.W_OK),
                )  # fmt: skip
                order = self._hear()
                if "end" not in order and self._start({**order, "python": python}, folder, mark, guard):
                    self._attend(folder, guard)
            finally:
                for feed in (self._feed, self._reads):
                    if feed is not None:
                        feed.close()
                if self._process is not None:
                    stop_all([self._process], 0.0 if self._process.exit is None else 1.0)
                    guard.forget(self._process.pid)
                sweep([mark], began)
                if hold is not None:
                    hold.close()
                self._close()

    def _ports(self, bind_host: str) -> Optional[PortHold]:
        try:
            return PortHold(1, bind_host)
        except ConfigError as e:
            self._say(failed=f"{e} (on {socket.gethostname()})", kind="ConfigError")
            return None

    def _interpreter(self, python_env: str) -> Optional[str]:
        """Path of the task's, which may have to be unpacked first."""
        # it needs more than this module's standard library: what PyFlink has brought
        from akrunner.launch import environments

        try:
            return environments.there(python_env)
        except PythonEnvError as e:
            self._say(failed=f"{e} (on {socket.gethostname()})", kind="PythonEnvError")
            return None

    def _close(self) -> None:
        """The connections of one task, and its process's pipes: only when no pump can write to what gets their numbers next."""
        for connection in self._open:
            shut(connection, socket.SHUT_RDWR)
        for pump in self._pumps:
            pump.join(5.0)
        if any(pump.is_alive() for pump in self._pumps):
            return
        for connection in self._open:
            connection.close()
        if self._process is not None:
            os.close(self._process.output_fd)
            os.close(self._process.log_fd)

    # -- the connections

    def _connect(self, channel: str) -> socket.socket:
        made = socket.create_connection(self._address, timeout=30)
        made.settimeout(None)
        tune(made)
        hello = {
            "token": self._token,
            "place": self._place,
            "channel": channel,
            "who": {"fed": self._feed is not None, **self._who},
        }
        made.sendall(json.dumps(hello).encode() + b"\n")
        return made

    def _say(self, **body: Any) -> None:
        with self._lock:
            self._control.sendall(json.dumps(body).encode() + b"\n")

    def _hear(self) -> Dict[str, Any]:
        """The next line. Raises: SubmitterGone, BadLine."""
        word = self._lines.hear()
        if word is None:
            raise SubmitterGone("the submitter has gone")
        return word

    # -- the process

    def _start(self, order: Dict[str, Any], folder: str, mark: str, guard: Guard) -> bool:
        """Whether there is a process now; why there is none was said."""
        data = self._connect("data")
        # the pumps have their numbers only
        self._open.append(data)
        (size,) = _LENGTH.unpack(_exactly(data, _LENGTH.size))
        package = os.path.join(folder, "package.tar")
        if size > shutil.disk_usage(folder).free:
            self._say(failed=f"{folder} on {socket.gethostname()} has no room for the {size:,} bytes of the job's files")
            return False
        _save(data, size, package)
        try:
            archives.unpack(
                package, folder, Blame("user_files", JobError, "the task's directory"), shown="what the submitter has sent"
            )
        except JobError as e:
            self._say(failed=f"{e} (on {socket.gethostname()})")
            return False
        os.unlink(package)
        for name in order["directories"]:
            os.makedirs(os.path.join(folder, name), mode=0o700, exist_ok=True)
        # a machine's cores are shared by the tasks it has, unless somebody has said otherwise
        thread_limits = {name: str(order["threads"]) for name in THREADS if name not in os.environ}
        env = {"TMPDIR": os.path.join(folder, "tmp"), **thread_limits, **order["env"]}
        python = order["python"]
        try:
            every = worker_environment(env, mark, folder)
            process = worker_process(python, os.path.join(folder, "bundle.zip"), every, os.path.join(folder, "work"))
        except OSError as e:
            self._say(failed=f"cannot start {python} on {socket.gethostname()}: {e.strerror} (python_env=)")
            return False
        self._process = process
        guard.watch(process.pid)
        log = self._connect("log")
        self._open.append(log)
        self._say(started=process.pid)
        passing = self._passing(order["output"])
        if passing is not None:
            out = self._started("out", passing, process.output_fd, os.dup(data.fileno()), order["output"])
        else:
            out = self._started("out", _pump, process.output_fd, data.fileno())
        self._pumps += [out, self._started("log", _pump, process.log_fd, log.fileno())]
        self._pumps.append(self._started("close-out", _close_out, *self._pumps, data, log))
        feed = self._feed
        if order["files"] is not None:
            from akrunner.engines.flink.feed import FileFeed

            feed = self._reads = FileFeed()
        if feed is not None:
            self._pumps += feed.start(os.dup(data.fileno()), process.input_fd, order, self._say, self._broke)
        else:
            fed = self._started("in", _pump, data.fileno(), process.input_fd)
            self._pumps += [fed, self._started("close-in", _close_in, fed, process.input_fd)]
        return True

    def _started(self, name: str, target: Callable[..., None], *given: Any) -> threading.Thread:
        return threads.started(name, self._broke, target, *given)

    def _passing(self, output: Optional[Dict[str, str]]) -> Optional[Callable[..., None]]:
        """Who takes the rows the task writes; None: the submitter, as of a task beside a PyFlink table's that has no rows of it."""
        if output is None:
            return None
        if "part" not in output:
            return self._feed.pass_on if self._feed is not None else None
        from akrunner.engines.flink.feed import pass_to_part

        return pass_to_part

    def _attend(self, folder: str, guard: Guard) -> None:
        """Do as the submitter says, and tell how the process is, until the submitter says that it is over."""
        process = self._process
        assert process is not None
        told = False
        sampled = 0.0
        while True:
            if self._broken is not None:
                raise SubmitterGone("a thread beside the task failed") from self._broken
            readable = self._lines.waiting or select.select([self._control], [], [], 0.05)[0]
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
            if now - sampled > _SAMPLE_SECONDS:
                sampled = now
                replaced = guard.check()
                if replaced is not None:
                    logging.warning("akrunner: %s", replaced)
                if not told:
                    process.sample()
                    self._say(rss=process.sampled_rss, cpu=process.sampled_cpu, tree=process.tree_cpu())
            ended = process.exit
            if ended is not None and not told:
                # its last words come first; but a daemon it has left may hold the log for ever
                self._pumps[1].join(_LOG_SECONDS)
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


def _sees(files: "list[Tuple[str, int]]") -> bool:
    """Whether this machine has the submitter's files, under the same names."""
    try:
        return all(os.path.getsize(path) == size for path, size in files)
    except OSError:
        return False


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        got = connection.recv(size - len(data))
        if not got:
            raise SubmitterGone("the submitter has gone")
        data += got
    return bytes(data)


def _save(connection: socket.socket, size: int, path: str) -> None:
    with open(path, "wb") as f:
        while size:
            got = connection.recv(min(size, _CHUNK))
            if not got:
                raise SubmitterGone("the submitter has gone")
            f.write(got)
            size -= len(got)


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


def _close_out(out: threading.Thread, logged: threading.Thread, data: socket.socket, log: socket.socket) -> None:
    """What the process writes has ended: so do the connections it went over."""
    out.join()
    shut(data, socket.SHUT_WR)
    logged.join()
    shut(log, socket.SHUT_RDWR)


def _close_in(fed: threading.Thread, input_fd: int) -> None:
    """Nothing more comes for the process: its pipe ends, and with it the process."""
    fed.join()
    os.close(input_fd)


def watch_java(failed: threads.Failed) -> None:
    """End this process when the TaskManager it belongs to is gone: after SIGKILL of that, Flink's Python workers live on.

    A task's guard ends its process then, and removes its directory. Args: failed: told, should the watching itself fail.
    """
    java = _java_ancestor()
    if java is None:
        return

    def watch() -> None:
        while _start_time(java[0]) == java[1]:
            time.sleep(0.5)
        os._exit(1)

    threads.started("watch-java", failed, watch)


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
    """None when it has gone, a zombie its parent has not noticed included."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return fields[19] if fields[0] not in "ZX" else None
