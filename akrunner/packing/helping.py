"""The helper's end: a process that reads files into memory that the process that packs has, too. Its text is handed to an interpreter without anybody's
packages, so that it is there within a moment; `helper` is the other end.

::

    stdin   the number of a piece of the memory, in which names and sizes lie -> the system is asked to read these files -> they are read, in turn
    stdout  the same number, and what came of it; in the piece: the length of each (-1: whoever packs has to look), the CRC-32C of each, and
            from `FOUND` on their bytes
"""

from __future__ import annotations

import importlib
import marshal
import mmap
import os
import select
import stat
import struct
import sys
import time
from collections import deque
from collections.abc import Callable

#: a piece, and what is said of it
MESSAGE = struct.Struct("<ii")
#: files a piece may have, and bytes for what is found of them
MOST_FILES = 1024
FOUND = 16 * MOST_FILES
READ, LATE, SLOW = 0, 1, 2
#: a file is opened with
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Reader:
    """Args: memory: shared; size: bytes of a piece; base: the directory names are below, open; most: bytes of a file; tried, slow, late: as `pool` has them."""

    def __init__(
        self,
        memory: mmap.mmap,
        size: int,
        base: int | None,
        most: int,
        tried: int,
        slow: float,
        late: float,
        crc_of: Callable[[bytes], int],
    ) -> None:
        self._crc_of = crc_of
        self._view = memoryview(memory)
        self._size, self._base, self._most = size, base, most
        self._tried, self._slow, self._late = tried, slow, late

    def serve(self) -> None:
        """Until nobody asks any longer."""
        waiting: deque[tuple[int, list[bytes], list[int], bool]] = deque()
        while True:
            # the system begins to read whatever is asked for before the first of it is waited for
            while select.select([0], [], [], 0 if waiting else None)[0]:
                asked = os.read(0, MESSAGE.size)
                if len(asked) < MESSAGE.size:
                    return
                piece, length = MESSAGE.unpack(asked)
                start = piece * self._size + FOUND
                names, sizes = marshal.loads(self._view[start : start + length])
                # the others may be devices, which are not to be opened
                files = [name for name, size in zip(names, sizes) if size > 0]
                waiting.append((piece, names, sizes, advised(files, self._base, self._tried, self._slow)))
            piece, names, sizes, quick = waiting.popleft()
            said = self._read(piece, names, sizes) if quick else SLOW
            os.write(1, MESSAGE.pack(piece, said))

    def _read(self, piece: int, names: list[bytes], sizes: list[int]) -> int:
        """Read the files of a piece."""
        began = time.monotonic()
        lengths, crcs, crc_of = [], [], self._crc_of
        at, end = piece * self._size + FOUND, (piece + 1) * self._size
        for name, size in zip(names, sizes):
            length = self._one(name, size, at, end)
            lengths.append(length)
            if length > 0:
                # while it is in the processor's cache
                crcs.append(crc_of(bytes(self._view[at : at + length])))
                at += length
            else:
                crcs.append(0)
        start = piece * self._size
        self._view[start : start + 16 * len(lengths)] = struct.pack(f"<{2 * len(lengths)}q", *lengths, *crcs)
        return LATE if time.monotonic() - began > len(names) * self._late else READ

    def _one(self, name: bytes, size: int, at: int, end: int) -> int:
        """Returns: its bytes, -1: it is not what it was listed as, cannot be read, or there is no room for it."""
        fd = -1
        try:
            # what is no file is not to be opened
            if size < 0 and not stat.S_ISREG(os.stat(name, dir_fd=self._base).st_mode):
                return -1
            fd = os.open(name, FLAGS, dir_fd=self._base)
            if size < 0:
                about = os.fstat(fd)
                size = about.st_size if stat.S_ISREG(about.st_mode) else 0
            # a byte more, to see whether it has grown
            if not 0 < size <= self._most or size >= end - at:
                return -1
            got = more = os.readv(fd, (self._view[at : at + size + 1],))
            while more and got < size:
                more = os.readv(fd, (self._view[at + got : at + size + 1],))
                got += more
            return size if got == size else -1
        except (OSError, ValueError):
            return -1
        finally:
            if fd >= 0:
                os.close(fd)


def advised(names: list[bytes], base: int | None, tried: int, slow: float) -> bool:
    """Ask the system to read files, and wait for none of them.

    Args: base: descriptor of the directory that names are below; tried: files by which it is judged how long opening takes; slow: seconds for one.
    Returns: whether they can be read one after the other. Not if opening one takes long, or the system takes no such advice.
    """
    if in_memory(names, base):
        return True
    if not hasattr(os, "posix_fadvise"):
        return False
    began = time.monotonic()
    for i, name in enumerate(names):
        if i == tried and time.monotonic() - began > tried * slow:
            return False
        try:
            fd = os.open(name, FLAGS, dir_fd=base)
        except (OSError, ValueError):
            continue
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)
        except OSError:
            # a pipe, or a directory: whoever reads it says so
            continue
        finally:
            os.close(fd)
    return True


def in_memory(names: list[bytes], base: int | None) -> bool:
    """Whether files are in memory, by the first and the last of them. Not known: they are not."""
    if not hasattr(os, "RWF_NOWAIT"):
        return False
    for name in names[:1] + names[-1:]:
        try:
            fd = os.open(name, FLAGS, dir_fd=base)
        except (OSError, ValueError):
            return False
        try:
            os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
        except OSError:
            # it would have to wait (EAGAIN), or this file system cannot tell
            return False
        finally:
            os.close(fd)
    return True


def main() -> None:
    """Args: of the command: descriptor of the memory, bytes of a piece, how many, descriptor of the directory; then as `Reader` takes them; and
    the directory of the library for checksums."""
    fd, size, pieces, base, most, tried = map(int, sys.argv[1:7])
    slow, late = map(float, sys.argv[7:9])
    sys.path.append(sys.argv[9])
    crc_of = importlib.import_module("_crc32c").value
    Reader(mmap.mmap(fd, size * pieces), size, base if base >= 0 else None, most, tried, slow, late, crc_of).serve()


if __name__ == "__main__":
    main()
