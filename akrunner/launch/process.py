"""One worker process in a session of its own: started, watched, and killed with all processes that it started."""

from __future__ import annotations

import abc
import contextlib
import fcntl
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

try:
    import psutil
except ImportError:  # beside a Flink subtask Python has only what Flink brings
    psutil = None

from akrunner.launch import cgroups, procfs
from akrunner.launch.pipes import Pipes
from akrunner.wire import frames, ready
from akrunner.wire.ending import HOST, MARK, started

_KILL_WAIT = 5.0
#: seconds between two checks whether another process' child is gone, where the system does not tell it
_LOOK = 0.05
#: bytes in the kernel's unit of `ru_maxrss`
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
#: TensorFlow 2 sets this variable when this process imports it; the tasks' TensorFlow 1 would then behave as TensorFlow 2
_NOT_INHERITED = ("TF2_BEHAVIOR",)


@dataclass(frozen=True)
class Exit:
    """How a process ended.

    Attributes:
        code: exit code; None if a signal ended it.
        signal: the signal's number; None if it exited.
        peak_rss: its largest memory, in bytes.
        cpu_seconds: user and system.
        time_ns: when its end was noticed, in nanoseconds since the epoch.
        lost: why it is not known how it ended, in words; "": it is known.
        memory: how many bytes its machine or container has; 0: not known. It is looked up only for a process that was killed.
        out_of_memory: whether the kernel's out-of-memory killer is known to have ended a process of its container meanwhile.
    """

    code: int | None
    signal: int | None
    peak_rss: int
    cpu_seconds: float
    time_ns: int
    lost: str = ""
    memory: int = 0
    out_of_memory: bool = False

    def words(self) -> str:
        """Say how the process ended: "exit code 3", "SIGSEGV (exit code 139): segmentation fault", ..."""
        if self.lost:
            return self.lost
        if self.signal is None:
            return f"exit code {self.code}"
        if self.signal == signal.SIGKILL:
            if self.out_of_memory:
                by = "killed by the kernel's out-of-memory killer"
            elif self.peak_rss > self.memory / 4 > 0:
                by = "killed, likely out of memory"
            else:
                by = "killed from outside, by a person, a scheduler or the out-of-memory killer"
            of = f" of {_size(self.memory)}" if self.memory else ""
            return f"SIGKILL (exit code 137): {by}; peak RSS {_size(self.peak_rss)}{of}"
        try:
            name = signal.Signals(self.signal).name
        except ValueError:
            name = f"signal {self.signal}"
        meaning = {
            "SIGSEGV": "segmentation fault", "SIGABRT": "abort", "SIGBUS": "bus error", "SIGILL": "illegal instruction",
            "SIGFPE": "arithmetic error", "SIGTERM": "asked to end",
        }.get(name)  # fmt: skip
        return f"{name} (exit code {128 + self.signal})" + (f": {meaning}" if meaning else "")


class TaskProcess(Protocol):
    """A worker process, on this machine or another.

    Attributes:
        pid: its id, on its machine.
        exit: how it ended; None until it has ended.
        sampled_memory, sampled_rss, sampled_cpu: its memory in bytes, its largest so far, and its CPU seconds, as of the last `sample`.
    """

    pid: int
    exit: Exit | None
    sampled_memory: int
    sampled_rss: int
    sampled_cpu: float

    def writer(self) -> frames.FrameWriter:
        """Return the writer of the frames that the process reads; the caller closes it."""
        ...

    def reader(self, kinds: Mapping[int, int], most: frames.Most | None) -> frames.FrameReader:
        """Return the reader of the frames that the process writes; the caller closes it. If an agent reads these frames before
        it, the agent may send more kinds (`frames.FROM_AGENT`). Args: as of `FrameReader`."""
        ...

    def sample(self) -> None:
        """Measure how much memory and CPU time the process has used. Call it now and then while the process runs."""

    def tree_cpu(self) -> float:
        """Return the CPU seconds of the process and of all processes that it has started."""
        ...

    def unread(self) -> int:
        """Return how many bytes were written to the process that it has not read, as far as is known."""
        ...

    def wait(self, seconds: float | None) -> Exit | None:
        """Wait for the end of the process. Returns: its exit; None if it has not ended within that time."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal to the process alone; does nothing if the process has ended."""

    def terminate(self) -> None:
        """Send SIGTERM to the whole process group."""

    def kill(self) -> None:
        """Send SIGKILL to the whole process group."""

    def abandon(self) -> None:
        """Stop waiting for the exit of a process on another machine, because the connection to it is broken. Does nothing for a
        child of this process.
        """


class LoggedProcess(TaskProcess, Protocol):
    """A worker process whose log is still to be read. Attributes: log_fd: read end of the pipe that it prints to."""

    log_fd: int


def worker_environment(env: Mapping[str, str], mark: str, remove: str = "") -> dict[str, str]:
    """Return the whole environment of a worker process.

    Args:
        env: variables to set in addition to those of this process.
        mark: the job's mark.
        remove: the directory to remove if this process and its guard have died; "": none.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    host = json.dumps({"pid": os.getpid(), "start": started(os.getpid()), "remove": remove})
    return {**inherited, **env, MARK: mark, HOST: host}


def worker_process(python: str, bundle: str, env: Mapping[str, str], cwd: str) -> ChildProcess:
    """Start a worker process for a task. Args: env: its whole environment. Raises: OSError: it cannot be started."""
    return ChildProcess([python, bundle, "run", "{read_fd}", "{write_fd}"], env, cwd)


def spare_process(python: str, bundle: str, env: Mapping[str, str], cwd: str, socket_fd: int) -> ChildProcess:
    """Start a warm worker, or the process that warm workers are forked from.

    Args:
        socket_fd: the socket on which the pipes of forks arrive.
    Raises:
        OSError: it cannot be started.
    """
    return ChildProcess([python, bundle, "spare", "{read_fd}", "{write_fd}", str(socket_fd)], env, cwd, also=(socket_fd,))


class LocalProcess(abc.ABC):
    """A worker process of this machine that leads a session of its own, whichever process has started it.

    Attributes:
        pid: its id, also the id of its process group and session.
        input_fd: write end of the pipe it reads; the owner closes it.
        output_fd: read end of the pipe it writes; the owner closes it.
        log_fd: read end of the pipe that it prints to; the owner closes it.
        exit: how it ended; None until it has ended.
        sampled_memory, sampled_rss, sampled_cpu: its memory in bytes, its largest so far, and its CPU seconds, as of the last `sample`.
    """

    def __init__(self, pid: int, input_fd: int, output_fd: int, log_fd: int) -> None:
        """Start a thread that waits for the end of the process.

        Raises:
            RuntimeError: no thread can be started; the process is then killed.
        """
        self.pid = pid
        self.input_fd, self.output_fd, self.log_fd = input_fd, output_fd, log_fd
        self.sampled_memory = 0
        self.sampled_rss = 0
        self.sampled_cpu = 0.0
        self.exit: Exit | None = None
        self._oom_before = cgroups.killed()
        self._ended = threading.Event()
        self._waiter = threading.Thread(target=self._wait, name=f"akrunner-wait-{self.pid}", daemon=True)
        try:
            self._waiter.start()
        except BaseException:
            # without the thread, the end of the process would not be noticed
            self._signal_group(signal.SIGKILL)
            for fd in (self.input_fd, self.output_fd, self.log_fd):
                os.close(fd)
            raise

    def begins(self) -> None:
        """Note that a job takes the process now. What the out-of-memory killer has ended until now was none of the job's."""
        self._oom_before = cgroups.killed()

    def writer(self) -> frames.FrameWriter:
        """Return the writer of the frames that the process reads."""
        return frames.FrameWriter(self.input_fd)

    def reader(self, kinds: Mapping[int, int], most: frames.Most | None) -> frames.FrameReader:
        """Return the reader of the frames that the process writes. Args: as of `FrameReader`."""
        return frames.FrameReader(self.output_fd, kinds, most)

    @abc.abstractmethod
    def _awaited(self) -> Exit:
        """Block until the process has ended."""

    def _wait(self) -> None:
        try:
            ended = self._awaited()
        except BaseException as e:
            ended = self._lost(f"waiting for it raised {type(e).__name__}: {e}")
        # kill the processes that it started and left running
        self._signal_group(signal.SIGKILL)
        self.exit = self._with_memory(ended)
        self._ended.set()

    def _with_memory(self, ended: Exit) -> Exit:
        """Return how the process ended with what memory it had, if it was killed and its parent has not told."""
        if ended.signal != signal.SIGKILL or ended.memory:
            return ended
        try:
            memory, out_of_memory = cgroups.memory_bytes(), cgroups.killed() > self._oom_before
        except Exception:
            # its end must be known, whatever else is not
            return ended
        return replace(ended, memory=memory, out_of_memory=out_of_memory)

    def _lost(self, why: str) -> Exit:
        return Exit(None, None, self.sampled_rss, self.sampled_cpu, time.time_ns(), f"an unknown exit code: {why}")

    def sample(self) -> None:
        """Measure how much memory and CPU time the process has used. Call it now and then while the process runs."""
        if psutil is None:
            self.sampled_memory, cpu = procfs.usage(self.pid)
            self.sampled_rss, self.sampled_cpu = max(self.sampled_rss, self.sampled_memory), max(self.sampled_cpu, cpu)
            return
        try:
            process = psutil.Process(self.pid)
            self.sampled_memory = process.memory_info().rss
            self.sampled_rss = max(self.sampled_rss, self.sampled_memory)
            times = process.cpu_times()
            ended = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
            self.sampled_cpu = times.user + times.system + ended
        except psutil.Error:
            pass

    def tree_cpu(self) -> float:
        """Return the CPU seconds of the process and of all processes that it has started."""
        if psutil is None:
            return procfs.group_cpu(self.pid)
        used = 0.0
        try:
            root = psutil.Process(self.pid)
            for process in [root, *root.children(recursive=True)]:
                times = process.cpu_times()
                used += times.user + times.system
        except psutil.Error:
            pass
        return used

    def unread(self) -> int:
        """Return how many bytes are in the pipe that the process reads."""
        try:
            (count,) = struct.unpack("i", fcntl.ioctl(self.input_fd, termios.FIONREAD, b"\0\0\0\0"))
            return int(count)
        except OSError:
            return 0

    def wait(self, seconds: float | None) -> Exit | None:
        """Wait for the end of the process. Returns: its exit; None if it has not ended within that time."""
        self._ended.wait(seconds)
        return self.exit

    def signal(self, number: int) -> None:
        """Send a signal to the process alone; does nothing if the process has ended."""
        if self.exit is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass

    def terminate(self) -> None:
        """Send SIGTERM to the whole process group."""
        if self.exit is None:
            self._signal_group(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the whole process group."""
        if self.exit is None:
            self._signal_group(signal.SIGKILL)

    def abandon(self) -> None:  # noqa: B027 -- there is nothing to do
        """Do nothing, because the pipes of a local process do not break."""

    def _signal_group(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass


class OthersChild(LocalProcess):
    """A worker process whose parent is another process than this one: its id may belong to another process by the time it is to
    be killed.
    """

    def __init__(self, pid: int, input_fd: int, output_fd: int, log_fd: int) -> None:
        self._start = started(pid)
        super().__init__(pid, input_fd, output_fd, log_fd)

    def _signal_group(self, number: int) -> None:
        # a leader that has ended ("") may have left other processes of its group
        if started(self.pid) in ("", self._start):
            super()._signal_group(number)

    def _wait_until_gone(self) -> None:
        """Block until the process has ended, whether its parent has waited for it or not."""
        try:
            watched = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            # the system has none, this process may open no more files, or it has ended
            watched = None
        try:
            while self._start and started(self.pid) == self._start:
                if watched is None:
                    time.sleep(_LOOK)
                else:
                    ready.readable(watched, None)
        finally:
            if watched is not None:
                os.close(watched)


class ChildProcess(LocalProcess):
    """A child of this process with two pipes of its own besides stdout/stderr."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str, also: Sequence[int] = ()) -> None:
        """Start the process. `{read_fd}` and `{write_fd}` in the command become the child's ends of the pipes.

        Args:
            also: further descriptors that the child inherits.
        Raises:
            OSError: it cannot be started; no pipe stays open.
        """
        pipes = Pipes()
        child_read, child_write, child_log = pipes.far
        try:
            argv = [part.format(read_fd=child_read, write_fd=child_write) for part in command]
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=child_log,
                stderr=child_log,
                pass_fds=(child_read, child_write, *also),
                start_new_session=True,
                cwd=cwd,
                env=dict(env),
            )
        except BaseException:
            pipes.close()
            raise
        pipes.handed()
        # a child's peak starts at the highest its parent had when it was forked, so a peak below that says nothing
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self._parent_rss = usage.ru_maxrss * _RSS_UNIT
        try:
            super().__init__(self._process.pid, *pipes.near)
        except BaseException:
            self._process.wait()
            raise

    def _awaited(self) -> Exit:
        try:
            status, usage = os.wait4(self.pid, 0)[1:]
        except ChildProcessError:
            return self._lost("something else in this process, a handler of SIGCHLD perhaps, has waited for it")
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        peak = usage.ru_maxrss * _RSS_UNIT
        return Exit(
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            peak_rss=peak if peak > self._parent_rss else self.sampled_rss,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            time_ns=time.time_ns(),
        )

    def _lost(self, why: str) -> Exit:
        # otherwise `Popen` would wait for it once more
        self._process.returncode = 0
        return super()._lost(why)


def stop_all(processes: Iterable[TaskProcess], grace: float) -> None:
    """Stop processes: SIGTERM to each process group, up to `grace` seconds for all of them together to end, then SIGKILL.

    Blocks for at most `grace` + 5 s; even after SIGKILL a process in an uninterruptible system call may stay.
    """
    alive = [process for process in processes if process.exit is None]
    for process in alive:
        process.terminate()
    deadline = time.monotonic() + grace
    for process in alive:
        process.wait(max(0.0, deadline - time.monotonic()))
    for process in alive:
        process.kill()
    deadline = time.monotonic() + _KILL_WAIT
    for process in alive:
        process.wait(max(0.0, deadline - time.monotonic()))


def sweep(marks: Collection[str], since: float) -> list[int]:
    """Kill the processes that still carry a mark of the job in their environment: those that have left their process group.

    Args:
        marks: values of the `AKRUNNER_JOB` variable; unique to the job.
        since: epoch seconds; processes that are older are not looked at.
    Returns:
        The ids of the processes that were killed.
    """
    if psutil is None:
        return _sweep_by_proc(marks)
    found: list[psutil.Process] = []
    for process in _may_carry(marks):
        try:
            if process.create_time() < since - 2 or process.pid == os.getpid():
                continue
            if process.environ().get(MARK) in marks and process.status() != psutil.STATUS_ZOMBIE:
                process.kill()
                found.append(process)
        except (psutil.Error, OSError):
            continue
    # a dead process whose parent does not reap it is as good as gone; psutil.wait_procs would wait for it
    deadline = time.monotonic() + _KILL_WAIT
    while any(_runs(process) for process in found) and time.monotonic() < deadline:
        time.sleep(0.005)
    return [process.pid for process in found]


def _may_carry(marks: Collection[str]) -> Iterator[psutil.Process]:
    """Yield the processes that may carry a mark: all of the machine, if it does not show environments as files."""
    if not procfs.shows_environments():
        yield from psutil.process_iter()
        return
    # psutil takes seven times as long to look at each process of the machine for the first time
    for pid in procfs.marked(MARK, marks):
        with contextlib.suppress(psutil.Error):
            yield psutil.Process(pid)


def _sweep_by_proc(marks: Collection[str]) -> list[int]:
    swept: list[int] = []
    deadline = time.monotonic() + _KILL_WAIT
    while (left := procfs.marked(MARK, marks)) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                swept.append(pid)
            except (ProcessLookupError, PermissionError):
                pass
        time.sleep(0.005)
    return swept


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, OSError):
        return False


def _size(count: int) -> str:
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if round(value) < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
