"""Files that hold arguments: params, variables, job files, statements, credentials. They are read before there is a job, so that
nothing else bounds how long that takes.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time

from akrunner.checks import kind_in_words

#: seconds in which a pipe of the shell, `<(...)`, has to end; a job's timeout= does not count them
PIPE_SECONDS = 30.0
_CHUNK = 1 << 16


class NotUtf8(ValueError):
    """A file is no UTF-8. Its text says where, and what to do: "line 3 is not UTF-8 (it has a byte 0xfc); save it as UTF-8"."""


def read(path: str, most: int | None = None) -> bytes:
    """Return a file's bytes, or the first `most` of them.

    A file must be regular, or /dev/null. A FIFO might never have a writer, and a terminal waits for its user. Only a pipe
    without a name, which bash makes for `<(...)`, is read, as its writer is there already.
    Raises: OSError: the file cannot be read, is of another kind, or is a pipe that does not end within `PIPE_SECONDS`.
    """
    # opening a FIFO would wait for its writer; and a flag of our own opening is not shared with the writer
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if stat.S_ISFIFO(found.st_mode) and _has_no_name(fd, path):
            return _of_pipe(fd, most)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(found.st_mode) and not os.path.samestat(found, os.stat(os.devnull)):
            raise OSError(errno.EINVAL, f"it is {kind_in_words(found.st_mode)}, not a file: write it to a file first", path)
        with open(fd, "rb", closefd=False) as stream:
            return stream.read(most)
    finally:
        os.close(fd)


def _has_no_name(fd: int, path: str) -> bool:
    """Whether an open pipe was made by the shell, and is no FIFO in a directory. Args: path: by which it was opened."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:")
    except OSError:
        # macOS has no /proc
        return path.startswith(("/dev/fd/", "/dev/stdin"))


def _of_pipe(fd: int, most: int | None) -> bytes:
    """Read an open pipe to its end, or `most` bytes of it. Raises: OSError: it has no end in time."""
    ends = time.monotonic() + PIPE_SECONDS
    data = bytearray()
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while most is None or len(data) < most:
        if not poll.poll(max(0.0, ends - time.monotonic()) * 1000):
            raise TimeoutError(
                errno.ETIMEDOUT,
                f"it is a pipe whose writer has not ended within {PIPE_SECONDS:.0f} s: write it to a file first",
            )
        try:
            came = os.read(fd, _CHUNK if most is None else min(_CHUNK, most - len(data)))
        except BlockingIOError:
            # somebody else has read it
            continue
        if not came:
            break
        data += came
    return bytes(data)


def decoded(data: bytes) -> str:
    """Return the text of a file in UTF-8, without a mark of the byte order. Raises: NotUtf8: it is no UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        # not `e.object`, which has lost the mark
        before = data[: len(data) - len(e.object) + e.start]
        line = before.count(b"\n") + 1
        raise NotUtf8(f"line {line} is not UTF-8 (it has a byte 0x{e.object[e.start]:02x}); save it as UTF-8") from None
