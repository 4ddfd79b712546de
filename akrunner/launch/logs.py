"""The log of a task: always read, so that the task does not block, kept in a file, echoed on request; its end is remembered for
error reports.
"""

from __future__ import annotations

import collections
import contextlib
import os
import select
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO

from akrunner.leftovers.private import private_file

_TAIL_BYTES = 64 * 1024
_CHUNK = 64 * 1024
#: how many parts of a log are kept for a slow echo
_AHEAD = 1024
#: TensorFlow 2.20 prints this, at error level, on every machine without a graphics card's driver; only the log file keeps it
_NO_GRAPHICS_CARD = b"failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)"


class LogPump:
    """Reads the log pipe of one task until its end.

    Args:
        fd: the pipe; the pump closes it.
        path: the file that the log goes to.
        echo: called with each line as it comes, without its line end; None: lines are not echoed.
        limit: the bytes that the file takes; past it only the last lines are kept, and added when the log ends.

    Attributes:
        error: the exception that `echo`, or the pump itself, raised; None: none.
        unwritten: the error because of which the file is not complete; None: it is. The pipe is read to its end all the same.
    """

    def __init__(self, fd: int, path: str, echo: Callable[[str], None] | None = None, limit: int = 64 << 20) -> None:
        self.path = path
        self.error: BaseException | None = None
        self.unwritten: OSError | None = None
        self._fd = fd
        self._echo = echo
        self._limit = limit
        self._tail = bytearray()
        self._total = 0
        self._written = 0
        self._dropped = 0
        self._ended = False
        #: what was read, and is not echoed yet
        self._ahead: collections.deque[bytes] = collections.deque()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="akrunner-log", daemon=True)
        self._thread.start()

    def ended(self) -> None:
        """Note that the process has ended: what it has printed is read into the file and the tail before more lines are echoed, so
        that a slow echo costs neither of them its end."""
        self._ended = True

    def join(self, seconds: float) -> None:
        """Wait for the end of the log, for at most `seconds`. Call it after `ended`."""
        self._thread.join(seconds)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines as text; bytes that are not UTF-8 are escaped."""
        with self._lock:
            data = bytes(self._tail)
        if _NO_GRAPHICS_CARD in data:
            data = b"".join(line for line in data.splitlines(keepends=True) if _NO_GRAPHICS_CARD not in line)
        return "\n".join(_text(data).splitlines()[-lines:])

    @property
    def position(self) -> int:
        """How many bytes have come so far."""
        return self._total

    def since(self, position: int) -> str:
        """Return the text that came after a position, as much of it as is remembered."""
        with self._lock:
            new = self._total - position
            return _text(bytes(self._tail[-new:])) if new > 0 else ""

    def _run(self) -> None:
        try:
            self._pump()
        except BaseException as e:
            self.error = e
            # whatever the error is, a task must not block on its own prints
            while self._read():
                pass
        finally:
            os.close(self._fd)

    def _pump(self) -> None:
        rest = b""
        with self._opened() as out:
            while chunk := self._ahead.popleft() if self._ahead else self._taken(out):
                if self._echo is not None:
                    rest = self._lines(rest + chunk, out)
            if self._dropped:
                kept = bytes(self._tail[-min(len(self._tail), self._dropped) :])
                self._write(out, f"\n[... {self._dropped - len(kept)} bytes left out ...]\n".encode() + kept)
            if self._echo is not None and rest:
                self._echo(_text(rest))

    def _taken(self, out: IO[bytes] | None) -> bytes:
        """Read a part of the log into the file and the tail, and return it; b"" at the end."""
        chunk = self._read()
        with self._lock:
            self._total += len(chunk)
            self._tail += chunk
            del self._tail[:-_TAIL_BYTES]
        room = self._limit - self._written
        if room > 0:
            self._write(out, chunk[:room])
        self._dropped += max(0, len(chunk) - max(0, room))
        return chunk

    def _read_ahead(self, out: IO[bytes] | None) -> None:
        """Read what has come, and keep it for the echo, but no more than `_AHEAD` parts: what the task has left behind may print on."""
        while len(self._ahead) < _AHEAD and _readable(self._fd) and (chunk := self._taken(out)):
            self._ahead.append(chunk)

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, _CHUNK)
        except OSError:
            return b""

    def _opened(self) -> AbstractContextManager[IO[bytes] | None]:
        """Open the file; None if it cannot be made. The last lines are remembered all the same."""
        try:
            return private_file(self.path, "wb", buffering=0)
        except OSError as e:
            self.unwritten = e
            return contextlib.nullcontext()

    def _write(self, out: IO[bytes] | None, chunk: bytes) -> None:
        if out is None:
            return
        try:
            # a disk that is nearly full takes only a part of it, without an error
            while chunk:
                written = out.write(chunk)
                self._written += written
                chunk = chunk[written:]
        except OSError as e:
            # a full disk must not stop the reading, or the task would block on its own prints
            self.unwritten = e
            self._written = self._limit

    def _lines(self, data: bytes, out: IO[bytes] | None) -> bytes:
        """Echo the complete lines of the data; return the incomplete last line. Args: out: the file for what is read meanwhile."""
        *whole, rest = data.split(b"\n")
        if len(rest) > _CHUNK:
            whole, rest = [*whole, rest], b""
        for line in whole:
            if self._ended:
                self._read_ahead(out)
            if self._echo is not None and _NO_GRAPHICS_CARD not in line:
                self._echo(_text(line).rstrip("\r"))
        return rest


def _readable(fd: int) -> bool:
    """Whether a read of a pipe returns at once, also because it has ended."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
