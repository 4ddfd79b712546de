"""The packing process's side of the helper, a process that reads files; the module `helper_process` is the helper itself.

The helper is a second interpreter, so that reading and writing do not take turns. It ends when its pipe is closed; if the
packing process is killed, the guard ends it, too.
"""

from __future__ import annotations

import inspect
import marshal
import mmap
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from akrunner import leftovers
from akrunner.arrays import Octets
from akrunner.codec import crc32c
from akrunner.folders import helper_process
from akrunner.folders.helper_process import FOUND, LATE, MESSAGE, SLOW
from akrunner.wire import ready

#: how many pieces the memory has: one is written to a shard, one may be waited for, the others are being read or asked for
PIECES = 4
#: seconds to wait for a piece; after that the helper or a disk must have stopped, and threads read the files
_PATIENCE = 30.0
#: most bytes of a path
_LONGEST = 4096
_POLITE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def can_help() -> bool:
    """Whether this system has what a helper needs, and a second core."""
    return (
        crc32c.IN_C
        and bool(sys.executable)
        and all(hasattr(os, name) for name in ("memfd_create", "posix_fadvise", "RWF_NOWAIT", "sched_getaffinity"))
        and (len(os.sched_getaffinity(0)) > 1)
    )


@dataclass
class Answer:
    """The files of a piece.

    Attributes:
        datas: the bytes of each file; None: the helper has not read it.
        crcs: CRC-32C of each file [files].
        missing: indices of the files that the helper has not read, and the packing process reads itself.
        late: whether the helper took long.
    """

    datas: list[Octets | None]
    crcs: crc32c.U32
    missing: list[int]
    late: bool


class Helper:
    """A helper process that reads files.

    Args:
        base: descriptor of the directory that names are relative to; None: there is none.
        room: bytes for the files of a piece.
        most: most bytes of a file.
        tried: how many files are opened to measure how long it takes.
        slow: seconds for opening one file above which the helper is too slow.
        late: seconds for reading one file above which the helper is too slow.
    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, base: int | None, room: int, most: int, tried: int, slow: float, late: float) -> None:
        page = mmap.PAGESIZE
        self._size = -(-(FOUND + room + 1) // page) * page
        fd = os.memfd_create("akrunner-files")
        try:
            os.ftruncate(fd, self._size * PIECES)
            self._view = memoryview(mmap.mmap(fd, self._size * PIECES))
            given = (fd, self._size, PIECES, -1 if base is None else base, most, tried, slow, late, crc32c.LIBRARY)
            self._process = _started([str(one) for one in given], (fd,) if base is None else (fd, base))
        finally:
            os.close(fd)
        leftovers.watch(self._process.pid)

    def ask(self, piece: int, names: list[bytes], sizes: list[int]) -> None:
        """Ask the helper to read files into a piece, whose old content is not needed any longer."""
        # a name from a list may be of any length; one that is too long for a path is left empty, so the helper does not read it
        said = marshal.dumps(([name if len(name) <= _LONGEST else b"" for name in names], sizes))
        start = piece * self._size + FOUND
        self._view[start : start + len(said)] = said
        assert self._process.stdin is not None
        # if the helper has ended, `answer` notices
        with suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), MESSAGE.pack(piece, len(said)))

    def answer(self, files: int) -> Answer | None:
        """Wait for the piece that was asked for first. Args: files: number of its files.

        Returns: its files; None: the helper has read nothing, and must not be asked again.
        """
        assert self._process.stdout is not None
        if not ready.readable(self._process.stdout, _PATIENCE):
            return None
        said = os.read(self._process.stdout.fileno(), MESSAGE.size)
        if len(said) < MESSAGE.size:
            return None
        piece, how = MESSAGE.unpack(said)
        if how == SLOW:
            return None
        start = piece * self._size
        found = np.frombuffer(self._view, "<i8", 2 * files, start).reshape(2, files)
        lengths, view = found[0], self._view
        ends = start + FOUND + np.cumsum(np.maximum(lengths, 0))
        datas: list[Octets | None] = [
            view[end - size : end] if size > 0 else None for end, size in zip(ends.tolist(), lengths.tolist())
        ]
        return Answer(datas, found[1].astype(np.uint32), np.flatnonzero(lengths < 0).tolist(), how == LATE)

    def ends(self) -> None:
        """Close the helper's input, as nothing more is asked for: it may end while the files it has read are being written."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def close(self) -> None:
        """End the helper at once, whatever it reads."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait()
        leftovers.unwatch(self._process.pid)


def _started(words: list[str], kept: tuple[int, ...]) -> subprocess.Popen[bytes]:
    # the helper inherits that these signals are blocked: from its first instruction on, Ctrl-C is for this process alone
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _POLITE)
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", inspect.getsource(helper_process), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=kept,
            start_new_session=True,
            env={},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
