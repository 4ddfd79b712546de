"""The helper process: it reads files into memory that it shares with the packing process (the module `helper` is its side).

This module's source is passed to an interpreter that imports no installed packages, so that the helper starts within a moment.

::

    stdin   number of a piece of the memory, which has names and sizes -> the system is asked to read these files
            -> the files are read, in turn
    stdout  the same number, and a code for how it went; in the piece: the length of each file (-1: the packing process has to
            read it itself), the CRC-32C of each, and from `FOUND` on their bytes
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

#: a message: number of a piece, and the length of what it asks for, or a code for how it went
MESSAGE = struct.Struct("<ii")
#: most files of a piece, and bytes at its beginning for their lengths and checksums
MOST_FILES = 1024
FOUND = 16 * MOST_FILES
READ, LATE, SLOW = 0, 1, 2
#: flags with which files are opened
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Reader:
    """Reads files into shared memory.

    Args:
        memory: the shared memory.
        size: bytes of a piece of it.
        base: descriptor of the open directory that names are relative to; None: there is none.
        most: most bytes of a file.
        tried: how many files are opened to measure how long it takes.
        slow: seconds for opening one file above which the helper is too slow.
        late: seconds for reading one file above which the helper is too slow.
        crc_of: function that returns the CRC-32C of bytes.
    """

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
        """Read files until the packing process closes stdin."""
        waiting: deque[tuple[int, list[bytes], list[int], bool]] = deque()
        while True:
            # ask the system to read all files that are asked for, before waiting for the first
            while select.select([0], [], [], 0 if waiting else None)[0]:
                asked = os.read(0, MESSAGE.size)
                if len(asked) < MESSAGE.size:
                    return
                piece, length = MESSAGE.unpack(asked)
                start = piece * self._size + FOUND
                names, sizes = marshal.loads(self._view[start : start + length])
                # files of unknown size may be devices, which must not be opened; those that are too large are not read
                files = [name for name, size in zip(names, sizes) if 0 < size <= self._most]
                waiting.append((piece, names, sizes, advised(files, self._base, self._tried, self._slow)))
            piece, names, sizes, quick = waiting.popleft()
            said = self._read(piece, names, sizes) if quick else SLOW
            os.write(1, MESSAGE.pack(piece, said))

    def _read(self, piece: int, names: list[bytes], sizes: list[int]) -> int:
        """Read the files of a piece. Returns: READ, or LATE if it took long."""
        began = time.monotonic()
        lengths, crcs, crc_of = [], [], self._crc_of
        at, end = piece * self._size + FOUND, (piece + 1) * self._size
        for name, size in zip(names, sizes):
            length = self._one(name, size, at, end)
            lengths.append(length)
            if length > 0:
                # computed now, while the bytes are in the processor's cache
                crcs.append(crc_of(bytes(self._view[at : at + length])))
                at += length
            else:
                crcs.append(0)
        start = piece * self._size
        self._view[start : start + 16 * len(lengths)] = struct.pack(f"<{2 * len(lengths)}q", *lengths, *crcs)
        return LATE if time.monotonic() - began > len(names) * self._late else READ

    def _one(self, name: bytes, size: int, at: int, end: int) -> int:
        """Read one file to position `at`. Returns: its length; -1: it is not as listed, cannot be read, or does not fit."""
        fd = -1
        try:
            # something that is not a regular file must not be opened
            if size < 0 and not stat.S_ISREG(os.stat(name, dir_fd=self._base).st_mode):
                return -1
            fd = os.open(name, FLAGS, dir_fd=self._base)
            if size < 0:
                about = os.fstat(fd)
                size = about.st_size if stat.S_ISREG(about.st_mode) else 0
            # read a byte more than the size, to see whether the file has grown
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
    """Ask the system to read files ahead, without waiting for them.

    Args:
        names: the files.
        base: descriptor of the directory that names are relative to; None: there is none.
        tried: how many files are opened before it is judged whether opening takes long.
        slow: seconds for opening one file above which it takes long.
    Returns:
        Whether the files can be read one after the other: False if opening takes long, or the system takes no such advice.
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
            # a pipe, or a directory: the error is reported when it is read
            continue
        finally:
            os.close(fd)
    return True


def in_memory(names: list[bytes], base: int | None) -> bool:
    """Whether files are in the system's memory, judged by the first and the last of them; False if it is not known."""
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
            # the read would have to wait (EAGAIN), or this file system cannot tell
            return False
        finally:
            os.close(fd)
    return True


def main() -> None:
    """Run the helper.

    The command's arguments: descriptor of the memory, bytes of a piece, number of pieces, descriptor of the directory (-1:
    none); `most`, `tried`, `slow` and `late` of `Reader`; and the directory of the library for checksums.
    """
    fd, size, pieces, base, most, tried = map(int, sys.argv[1:7])
    slow, late = map(float, sys.argv[7:9])
    sys.path.append(sys.argv[9])
    crc_of = importlib.import_module("_crc32c").value
    Reader(mmap.mmap(fd, size * pieces), size, base if base >= 0 else None, most, tried, slow, late, crc_of).serve()


if __name__ == "__main__":
    main()
