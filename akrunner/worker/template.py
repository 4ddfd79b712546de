"""A template: a process that has imported TensorFlow and forks itself into warm workers, to wait or to be used at once.

::

    host                               template                         fork
    three descriptors (socket)   ->
    fork(mark)                   ->    forks                       ->   gets its own session, mark, random numbers, descriptors
                                 <-    forked(mark, pid)           <-   (closes a pipe when it has them)
                                 <- ...............................     waiting; goes on as a spare that has imported by itself
                                 <-    ended(mark, status...)      <-   x

An import may leave things in a process that cannot be in two processes: the template first checks for threads, descriptors and
device files.
"""

from __future__ import annotations

import array
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import time
import warnings
from typing import Any, Dict, List, Optional, Tuple

from akrunner.wire import ending, frames, messages
from akrunner.worker import link
from akrunner.worker.leaving import below, flush

#: threads that their library starts again in a fork (OpenBLAS ends its own before a fork, and starts them when they are needed)
_SURVIVE = frozenset({"jemalloc_bg_thd"})
#: the fields of /proc/PID/stat, counted from the one after the name, with the start and end of the environment in memory
_ENVIRONMENT = slice(47, 49)
_DESCRIPTORS = 3
#: the fork before which the memory is put together, which takes as long as is saved in ten
_OFTEN = 5
#: bytes of a large page; the advice to the system to make one (MADV_COLLAPSE, Linux 6.1)
_LARGE, _COLLAPSE = 2 << 20, 25
#: bytes for which the system is asked at once, and how long it may take in all
_AT_ONCE, _TOGETHER_SECONDS = 128 << 20, 1.0


def descriptors() -> Dict[int, str]:
    """Return the open descriptors: number -> what it refers to; {} if the system does not say."""
    found = {}
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink("/proc/self/fd/" + name)
    return found


def why_not(opened: Dict[int, str], temp: str) -> str:
    """Return why this process cannot be forked, in words; "" if it can.

    Args:
        opened: the descriptors that were open before anything was imported.
        temp: the temp directory, which was empty then.
    """
    if not sys.platform.startswith("linux"):
        return "processes that have imported much cannot be forked on this system"
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if threads:
        return "what was imported has started the thread %s" % threads[0]
    new = [what for fd, what in descriptors().items() if opened.get(fd) != what]
    if new:
        return "what was imported has opened %s" % new[0]
    if below("self"):
        return "what was imported has started a process"
    if os.listdir(temp):
        return "what was imported has made %s in the temp directory" % os.listdir(temp)[0]
    if _shares_memory():
        return "what was imported has made memory that forks would share"
    if not _is_fresh():
        return "what was imported has drawn, or seeded, random numbers of numpy's"
    try:
        remark(os.environ[ending.MARK])
        pid = _forked()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
    except (OSError, LookupError, ValueError) as e:
        return "%s: %s" % (type(e).__name__, e)
    # a library that supports forks has ended its threads before the fork above
    left = [name for name in _threads() if name not in _SURVIVE]
    return "what was imported has started a thread, %s, that a fork would not have" % left[0] if left else ""


def _threads() -> List[str]:
    """Return the names of the process's other threads, as the system lists them."""
    found = []
    for number in os.listdir("/proc/self/task"):
        if int(number) != os.getpid():
            with contextlib.suppress(OSError), open("/proc/self/task/%s/comm" % number) as f:
                found.append(f.read().strip())
    return found


def _shares_memory() -> bool:
    with open("/proc/self/maps") as f:
        return any(rights[1] == "w" and rights[3] == "s" for rights in (line.split()[1] for line in f))


def _is_fresh() -> bool:
    """Whether numpy's random generator is in its initial state: neither seeded nor used, its first word is 1 << 31."""
    numpy = sys.modules.get("numpy.random")
    if numpy is None:
        return True
    kind, words, at = numpy.get_state()[:3]
    return kind == "MT19937" and int(words[0]) == 1 << 31 and at >= 623


def _forked() -> int:
    """Call `os.fork` without its warning about threads: `why_not` has checked them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        return os.fork()


def put_together() -> None:
    """Have the system keep this process's memory in large pages: a fork gets it, and gives it back, in half of the time.

    The system copies an entry for each page of memory to a fork. A fork that writes to a large page gets a small one, as without this.
    Does nothing where the system has no such pages, or where its administrator wants none: `madvise` would make them nevertheless.
    """
    ctypes: Any = sys.modules.get("ctypes")
    if ctypes is None:
        # what imports much imports it, too; otherwise a fork would have a module that no cold start has
        return
    if not _large_pages_are_allowed():
        return
    madvise = ctypes.CDLL(None).madvise
    until = time.monotonic() + _TOGETHER_SECONDS
    for start, end in _full():
        start = -(-start // _LARGE) * _LARGE
        while end - start >= _LARGE and time.monotonic() < until:
            size = min(end - start, _AT_ONCE) // _LARGE * _LARGE
            madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _COLLAPSE)
            start += size


def _large_pages_are_allowed() -> bool:
    """Whether the system has large pages, and its administrator has not said "never"."""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as f:
            return "[never]" not in f.read()
    except OSError:
        return False


def _full() -> List[Tuple[int, int]]:
    """Return where this process's memory is that is not a file's, longest first; without areas of which less than half was ever used."""
    found = []
    place: Optional[Tuple[int, int]] = None
    with contextlib.suppress(OSError, ValueError), open("/proc/self/smaps") as f:
        for words in map(str.split, f):
            if not words[0].endswith(":"):
                start, end = (int(part, 16) for part in words[0].split("-"))
                # memory of Python's and of libraries
                place = (start, end) if words[1] == "rw-p" and words[5:] in ([], ["[heap]"]) else None
            elif words[0] == "Rss:" and place is not None and int(words[1]) << 11 >= place[1] - place[0]:
                found.append(place)
    return sorted(found, key=lambda area: area[0] - area[1])


def remark(mark: str) -> None:
    """Replace the job's mark in this process's environment, also in the copy that other processes see in /proc.

    Args:
        mark: the new mark, which must have the length of the old one.
    Raises:
        OSError, LookupError, ValueError: the system does not allow it, or the lengths differ.
    """
    with open("/proc/self/stat", "rb") as f:
        start, end = map(int, f.read().rsplit(b")", 1)[1].split()[_ENVIRONMENT])
    name, value = ("\0%s=" % ending.MARK).encode("ascii"), mark.encode("ascii")
    with open("/proc/self/mem", "r+b", 0) as memory:
        memory.seek(start)
        text = b"\0" + memory.read(end - start)
        at = text.index(name) + len(name)
        if text.index(b"\0", at) - at != len(value):
            raise ValueError("the mark it was started with has another length")
        memory.seek(start + at - 1)
        memory.write(value)
    os.environ[ending.MARK] = mark


class Template(object):
    """Forks this process when the host asks for it.

    Args:
        host: the `spare.Host` of this process.
        descriptors: number of the socket on which the descriptors for forks arrive.
    """

    def __init__(self, host: Any, descriptors: int) -> None:
        self._host = host
        self._socket = socket.socket(fileno=descriptors)
        #: pid -> mark
        self._forks: Dict[int, str] = {}
        self._asked = 0

    def serve(self, body: Dict[str, Any]) -> Tuple[int, int]:
        """Fork whenever the host says so, and report how forks have ended. Returns in forks only.

        Args:
            body: the body of the first FORK message.
        Returns:
            in a fork, the descriptors of its pipes.
        """
        gc.collect()
        # otherwise the collector would write to every object, and so copy its memory in each fork
        gc.freeze()
        self._woken, self._wakes = os.pipe()
        for fd in (self._woken, self._wakes):
            os.set_blocking(fd, False)
        self._handler = signal.signal(signal.SIGCHLD, lambda number, stack: None)
        self._wakeup = signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        while True:
            pipes = self._fork(body["mark"])
            if pipes is not None:
                return pipes
            _, body = self._host.next((frames.FORK,), self._woken, self._reap)

    def _fork(self, mark: str) -> Optional[Tuple[int, int]]:
        """Fork once. Returns: None; in the fork, the descriptors of its pipes."""
        read_fd, write_fd, log_fd = self._received(mark)
        self._asked += 1
        if self._asked == _OFTEN:
            put_together()
        settled, settles = os.pipe()
        flush()
        why = ""
        try:
            pid = _forked()
        except OSError as e:
            pid, why = -1, "no process can be forked: %s" % e
        if pid == 0:
            self._settle(mark, log_fd)
            for fd in (settled, settles):
                os.close(fd)
            return read_fd, write_fd
        for fd in (read_fd, write_fd, log_fd, settles):
            os.close(fd)
        if pid > 0:
            # wait for the fork to settle: until then it is in this process's session and carries its mark
            os.read(settled, 1)
            self._forks[pid] = mark
        os.close(settled)
        self._host.writer.write_json(frames.FORKED, messages.Forked(mark=mark, pid=max(pid, 0), why=why))
        self._reap()
        return None

    def _received(self, mark: str) -> array.array[int]:
        """Return the descriptors for a fork, which arrive together with its mark."""
        size = array.array("i").itemsize
        while True:
            whose, ancillary, _, _ = self._socket.recvmsg(len(mark), socket.CMSG_LEN(_DESCRIPTORS * size))
            came = array.array("i")
            for level, kind, data in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    came.frombytes(data[: len(data) - len(data) % size])
            if len(came) != _DESCRIPTORS:
                link.host_is_gone()
            for fd in came:
                os.set_inheritable(fd, False)
            if whose == mark.encode("ascii"):
                return came
            # these are for a fork that the host gave up (Ctrl-C) after it had sent them
            for fd in came:
                os.close(fd)

    def _settle(self, mark: str, log_fd: int) -> None:
        """Rid a new fork of everything of the template except the imported modules."""
        os.setsid()
        signal.set_wakeup_fd(self._wakeup)
        signal.signal(signal.SIGCHLD, self._handler)
        for fd in (1, 2):
            os.dup2(log_fd, fd)
        for fd in (log_fd, self._woken, self._wakes):
            os.close(fd)
        self._socket.close()
        self._host.close()
        remark(mark)
        link.remember_host()
        ending.wake_when_parent_dies()
        numpy = sys.modules.get("numpy.random")
        if numpy is not None:
            # Python seeds its own generator again in each fork, and TensorFlow has not drawn random numbers yet
            numpy.seed()

    def _reap(self) -> None:
        """Report to the host which forks have ended, and how."""
        with contextlib.suppress(OSError):
            while os.read(self._woken, 512):
                pass
        for pid in list(self._forks):
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                told = messages.Ended(
                    mark=self._forks.pop(pid),
                    status=status,
                    peak_rss=usage.ru_maxrss << 10,
                    cpu_seconds=usage.ru_utime + usage.ru_stime,
                )
                self._host.writer.write_json(frames.ENDED, told)
