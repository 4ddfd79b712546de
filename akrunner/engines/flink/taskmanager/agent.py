"""The agent beside a subtask: it runs a task's process on the machine that Flink has chosen, and connects the process's
pipes to the host.

::

    host (ControlServer)                             agent, in the Python worker of a subtask
    service  words           <---------->  which subtask it is, and where; start, signals, stop; samples, the task's log,
                                           the exit (`control.proto`)
    in       package, bytes  ----------->  the task's files; the pipe that the task's process reads, unchanged
    out      bytes           <-----------  the pipe that it writes
    give     a tar           <-----------  files of the task: what a train job's chief has exported, what a replay needs

Uses the standard library, what PyFlink brings (gRPC and protobuf), and Flink's own Python interpreter. Of akrunner's host
half it imports only what needs no more than these. No thread dies silently: the host is told its traceback, and the
job fails with it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import tarfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from akrunner import leftovers
from akrunner.cluster.ports import PortHold
from akrunner.cluster.resources import THREADS
from akrunner.engines.flink import threads
from akrunner.engines.flink.connections import (
    PACKAGE_LENGTH_BYTES,
    SocketReader,
    SocketWriter,
    come,
    exactly,
    opened,
    pump_in,
    pump_out,
    shut,
)
from akrunner.engines.flink.control import rows_pass
from akrunner.engines.flink.keys import Door
from akrunner.engines.flink.taskmanager.folders import TaskFolder
from akrunner.engines.flink.taskmanager.line import HostGone, JobFailed, Line
from akrunner.errors import ConfigError, JobError, PythonEnvError
from akrunner.launch import archives
from akrunner.launch.guard import Guard
from akrunner.launch.process import ChildProcess, stop_all, sweep, worker_environment, worker_process
from akrunner.launch.trees import Blame
from akrunner.wire import ready

if TYPE_CHECKING:
    from akrunner.engines.flink.taskmanager.feed import Feed
    from akrunner.io.pg_ranges import Ranges
    from akrunner.io.shared import Place

#: Flink waits for its Python when it ends a job; after three minutes it ends the TaskManager, with all that runs there
_STOPPED_SECONDS = 20.0
_SAMPLE_SECONDS = 0.3
#: between two looks at whether the TaskManager is there, where the system does not tell its end
_LOOK_SECONDS = 0.5
_LOG_SECONDS = 0.5
_CHUNK = 1 << 20
_LOG_CHUNK = 64 << 10

__all__ = ["HostGone", "JobFailed", "watch_java", "work"]


def work(door: Door, feed: Feed | None = None, **who: Any) -> None:
    """Run tasks for the host until it says that the subtask is no longer needed.

    Args:
        feed: the task's rows; None if they come from the host.
        who: the fields of `Register`.
    Raises:
        JobFailed: the host said that the job has failed, or does not answer, or something else answers in its place.
        HostGone, OSError: the host is gone.
    """
    _Agent(door, feed).run(who)


def places_of_scripts(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that says where the processes of a script look for modules, as far as an agent changes it: what the job has brought
    of akrunner is only what agents import, and would hide the whole akrunner from them, where that is installed."""
    ours = str(Path(__file__).parents[4])
    places = environ.get("PYTHONPATH", "").split(os.pathsep)
    return {"PYTHONPATH": os.pathsep.join(place for place in places if place != ours)} if ours in places else {}


class _Agent:
    def __init__(self, door: Door, feed: Feed | None) -> None:
        from akrunner.engines.flink import control_pb2

        self._pb: Any = control_pb2
        self._door = door
        self._feed = feed
        self._name = uuid.uuid4().hex
        self._process: ChildProcess | None = None
        self._pumps: list[threading.Thread] = []
        self._logged: threading.Thread | None = None
        self._open: list[socket.socket] = []
        self._reads: Feed | None = None
        self._place: Place | Ranges | None = None
        self._broken: BaseException | None = None

    def run(self, who: dict[str, Any]) -> None:
        leftovers.keep_awake(_STOPPED_SECONDS)
        watch_java(self._broke)
        # one guard for all the tasks
        with leftovers.together(), Line(self._door, agent=self._name, with_rows=self._feed is not None, **who) as self._line:
            try:
                self._work()
            except (JobFailed, HostGone, OSError):
                raise
            except BaseException as e:
                self._broke("agent", e)
                raise

    def _work(self) -> None:
        while True:
            told = self._line.hear()
            kind = told.WhichOneof("word")
            if kind == "leave":
                if told.leave.HasField("error"):
                    raise JobFailed(told.leave.error, told.leave.final)
                return
            if kind == "ask":
                self._one(told.ask)
                self._line.say(over=self._pb.Nothing())
            # else: a message about a task that could not be started

    def _broke(self, name: str, error: BaseException) -> None:
        """Tell the host why a thread of this end has died. The task ends then."""
        if self._broken is None:
            self._broken = error
            where = f" beside the task on {socket.gethostname()}"
            with contextlib.suppress(OSError, HostGone, AttributeError):
                self._line.wake()
                self._line.say(broken=threads.words_of(name, error, where))

    def _failed(self, words: str, reason: int = 0) -> None:
        """Tell the host why the task cannot run here. Args: reason: a `Reason`; 0: SYSTEM."""
        self._line.say(failed=self._pb.Failed(reason=reason, words=words))

    def _one(self, asked: Any) -> None:
        """Run one task, from its address to the last of its processes and files.

        Args:
            asked: an `Ask`.
        """
        began = time.time()
        mark = uuid.uuid4().hex
        self._process, self._pumps, self._logged, self._open, self._reads = None, [], None, [], None
        self._place = None
        with Guard() as guard, TaskFolder(mark, guard.remove) as folder:
            guard.watch_mark(mark)
            hold: PortHold | None = None
            try:
                python = self._interpreter(asked.python)
                hold = self._ports(asked) if python is not None else None
                if hold is None or python is None:
                    return
                unread = self._look(asked)
                self._line.say(
                    settled=self._pb.Settled(
                        address=hold.addresses[0], folder=folder, machine=socket.gethostname(), cores=_cores(),
                        reads_files=not unread, writes_output=asked.HasField("output") and os.access(asked.output, os.W_OK),
                        unread=unread,
                    )
                )  # fmt: skip
                told = self._line.hear()
                if told.WhichOneof("word") == "order" and self._start(told.order, python, folder, mark, guard):
                    hold.give_way()
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
                # it may have keys
                self._place = self._reads = None

    def _look(self, asked: Any) -> str:
        """Return why this machine cannot read the host's table itself; "" if it can.

        Args:
            asked: an `Ask`.
        """
        if not asked.files:
            return ""
        from akrunner.engines.flink.taskmanager import sight

        self._place = sight.place_from(asked.store)
        return sight.unseen(self._place, asked.files, self._broke)

    def _ports(self, asked: Any) -> PortHold | None:
        """Hold the task's port. Args: asked: an `Ask`. Returns: None: the host has been told that there is none."""
        try:
            return PortHold(1, asked.bind_host, asked.advertised_host or self._line.address)
        except ConfigError as e:
            self._failed(f"{e} (on {socket.gethostname()})", self._pb.ADDRESS)
            return None

    def _interpreter(self, python_env: str) -> str | None:
        """Return the path of the task's interpreter, which may have to be unpacked first; None if there is none."""
        # it needs more than this module's standard library: packages that PyFlink has brought
        from akrunner.launch import environments

        try:
            return environments.there(python_env)
        except PythonEnvError as e:
            self._failed(f"{e} (on {socket.gethostname()})", self._pb.INTERPRETER)
            return None

    def _close(self) -> None:
        """Close the connections of a task, and its process's pipes, but only once no pump can write to a descriptor that
        gets the same number next."""
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

    def _connect(self, kind: int) -> socket.socket:
        made = opened(self._door, self._name, kind)
        self._open.append(made)
        return made

    # -- the process

    def _start(self, order: Any, python: str, folder: str, mark: str, guard: Guard) -> bool:
        """Start the task's process. Returns whether there is one; if not, the host was told why.

        Args:
            order: an `Order`.
        """
        rows_in = self._connect(self._pb.Opening.IN)
        size = int.from_bytes(exactly(rows_in, PACKAGE_LENGTH_BYTES), "little")
        package = os.path.join(folder, "package.tar")
        if size > shutil.disk_usage(folder).free:
            self._failed(f"{folder} on {socket.gethostname()} has no room for the {size:,} bytes of the job's files")
            return False
        _save(rows_in, size, package)
        try:
            archives.unpack(
                package, folder, Blame("user_files", JobError, "the task's directory"), shown="what the host has sent"
            )
        except JobError as e:
            self._failed(f"{e} (on {socket.gethostname()})")
            return False
        os.unlink(package)
        for name in order.directories:
            os.makedirs(os.path.join(folder, name), mode=0o700, exist_ok=True)
        # the tasks on a machine share its cores, unless the environment says otherwise
        thread_limits = {name: str(order.threads) for name in THREADS if name not in os.environ}
        env = {"TMPDIR": os.path.join(folder, "tmp"), **thread_limits, **places_of_scripts(os.environ), **order.env}
        try:
            every = worker_environment(env, mark, folder)
            process = worker_process(python, os.path.join(folder, "bundle.zip"), every, os.path.join(folder, "work"))
        except OSError as e:
            self._failed(f"cannot start {python} on {socket.gethostname()}: {e.strerror} (python_env=)")
            return False
        self._process = process
        guard.watch(process.pid)
        self._line.say(started=self._pb.Started(pid=process.pid))
        rows_out = self._connect(self._pb.Opening.OUT)
        passing = self._passing(order)
        if passing is not None:
            out = self._started("out", passing, process.output_fd, SocketWriter(rows_out), order.output)
        else:
            out = self._started("out", pump_out, process.output_fd, rows_out)
        self._logged = self._started("log", self._log, process.log_fd)
        self._pumps += [out, self._logged, self._started("close-out", _close_out, out, rows_out)]
        feed = self._feed
        if order.HasField("files"):
            from akrunner.engines.flink.taskmanager.feed import feed_of

            assert self._place is not None
            feed = self._reads = feed_of(self._place)
        if feed is not None:
            self._pumps += feed.start(SocketReader(rows_in), process.input_fd, order, self._line.say, self._broke)
        else:
            fed = self._started("in", pump_in, rows_in, process.input_fd)
            self._pumps += [fed, self._started("close-in", _close_in, fed, process.input_fd)]
        return True

    def _started(self, name: str, target: Callable[..., None], *given: Any) -> threading.Thread:
        return threads.started(name, self._broke, target, *given)

    def _log(self, source: int) -> None:
        """Send to the host what the process prints, until that ends."""
        with contextlib.suppress(OSError, HostGone):
            while data := _read(source):
                self._line.say(log=self._pb.Log(data=data))
            self._line.say(log=self._pb.Log(last=True))

    def _passing(self, order: Any) -> Callable[..., None] | None:
        """Return the function that handles the rows that the task writes; None if they go to the host as they are."""
        if not rows_pass(order, self._feed is not None):
            return None
        if not order.output.part:
            assert self._feed is not None
            return self._feed.pass_on
        from akrunner.engines.flink.taskmanager.feed import pass_to_part

        return pass_to_part

    def _attend(self, folder: str, guard: Guard) -> None:
        """Do as the host says, and report how the process is, until the host says that the task is over."""
        process = self._process
        assert process is not None and self._logged is not None
        told = False
        sampled = 0.0
        self._started("ended", self._wake_at_end, process)
        while True:
            if self._broken is not None:
                raise HostGone("a thread beside the task failed") from self._broken
            word = self._line.heard(max(0.0, sampled + _SAMPLE_SECONDS - time.monotonic()))
            kind = word.WhichOneof("word") if word is not None else None
            if kind == "end":
                return
            if kind == "signal":
                process.signal(word.signal)
            if kind == "group":
                process.terminate() if word.group == self._pb.TERMINATE else process.kill()
            if kind == "give":
                self._give(folder, word.give.names)
            now = time.monotonic()
            if now - sampled >= _SAMPLE_SECONDS:
                sampled = now
                replaced = guard.check()
                if replaced is not None:
                    logging.warning("akrunner: %s", replaced)
                if not told:
                    process.sample()
                    self._line.say(
                        sample=self._pb.Sample(
                            rss=process.sampled_rss,
                            cpu=process.sampled_cpu,
                            tree=process.tree_cpu(),
                            memory=process.sampled_memory,
                        )
                    )
            ended = process.exit
            if ended is not None and not told:
                # its last lines are sent first; but a daemon that it has left may hold the log open for ever
                self._logged.join(_LOG_SECONDS)
                told = True
                self._line.say(
                    exit=self._pb.Exit(
                        code=ended.code, signal=ended.signal, peak_rss=ended.peak_rss, cpu_seconds=ended.cpu_seconds,
                        time_ns=ended.time_ns, memory=ended.memory, out_of_memory=ended.out_of_memory,
                    )
                )  # fmt: skip

    def _wake_at_end(self, process: ChildProcess) -> None:
        process.wait(None)
        self._line.wake()

    def _give(self, folder: str, names: Any) -> None:
        """Send files and directories of the task to the host, as a tar. If that fails, the host sees that it is cut short."""
        try:
            with opened(self._door, self._name, self._pb.Opening.GIVE) as connection, connection.makefile("wb") as out:
                with tarfile.open(fileobj=out, mode="w|") as archive:
                    for name in names:
                        if os.path.exists(os.path.join(folder, name)):
                            _add(archive, folder, name)
        except OSError as e:
            # a file that becomes shorter meanwhile, or the host wants no more of it
            logging.warning("akrunner: the files of a task could not be sent to its host: %s", e)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read(source: int) -> bytes:
    return os.read(source, _LOG_CHUNK)


def _save(connection: socket.socket, size: int, path: str) -> None:
    # TLS gives 16 kB at a time: into the same memory, instead of a megabyte of its own for each of them
    buffer = memoryview(bytearray(min(size, _CHUNK)))
    with open(path, "wb") as f:
        while size:
            got = come(connection, buffer[:size])
            if not got:
                raise HostGone("the job's host has gone")
            f.write(buffer[:got])
            size -= got


def _add(archive: tarfile.TarFile, folder: str, name: str) -> None:
    """Add a file, or a directory with everything in it, to a tar. What cannot be read is named in it, with the reason.

    Args:
        folder: the directory that the tar is of.
        name: the path in that directory.
    Raises:
        OSError: the tar cannot be written, or a file has become shorter while it was read.
    """
    pending = [name]
    while pending:
        name = pending.pop()
        path = os.path.join(folder, name)
        with contextlib.ExitStack() as stack:
            try:
                info = archive.gettarinfo(path, name)
                file = stack.enter_context(open(path, "rb")) if info is not None and info.isreg() else None
                inside = os.listdir(path) if info is not None and info.isdir() else []
            except OSError as e:
                info, file, inside = None, None, []
                why = e.strerror or str(e)
            else:
                why = "it is a socket"
            if info is None:
                info = tarfile.TarInfo(name)
                info.pax_headers = {archives.UNREAD: why}
            archive.addfile(info, file)
            pending += [os.path.join(name, one) for one in sorted(inside, reverse=True)]


def _close_out(out: threading.Thread, connection: socket.socket) -> None:
    """Close the connection when the process's output, which went over it, has ended."""
    out.join()
    shut(connection, socket.SHUT_WR)


def _close_in(fed: threading.Thread, input_fd: int) -> None:
    """Close the process's pipe when no more comes for it; the process then ends too."""
    fed.join()
    os.close(input_fd)


def watch_java(failed: threads.Failed) -> None:
    """End this process when the TaskManager that it belongs to is gone: Flink's Python workers go on after their
    TaskManager is killed with SIGKILL.

    A task's guard then ends its process, and removes its directory.

    Args:
        failed: called if the watching itself fails.
    """
    java = _java_ancestor()
    if java is None:
        return

    def watch() -> None:
        try:
            watched = os.pidfd_open(java[0])
        except (AttributeError, OSError):
            # the system, or this Python, has none, or it is gone
            watched = None
        while _start_time(java[0]) == java[1]:
            if watched is None:
                time.sleep(_LOOK_SECONDS)
            else:
                # where it is there nevertheless, it is not told again
                ready.readable(watched, None)
                watched = None
        os._exit(1)

    threads.started("watch-java", failed, watch)


def _java_ancestor() -> tuple[int, str] | None:
    """Return (pid, start time) of the Java process that this one descends from; None if /proc does not tell."""
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


def _start_time(pid: int) -> str | None:
    """Return a process's start time; None if it is gone, or a zombie that its parent has not noticed."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return fields[19] if fields[0] not in "ZX" else None
