"""What a command says on stderr. While it works, neither a terminal that is stopped (Ctrl-S) nor a pipe that nobody reads holds up
anything but those who wait on purpose. A reader who is gone is no error: what is said to nobody is dropped, and the command goes on.

::

    with working() as console:      text goes as far as there is room, the rest is kept, and nobody waits
        console.print(...)
    console.print(...)              waits for the reader, until a signal comes

Rich holds locks while it writes, and Python's own `sys.stderr` one that no signal interrupts: who waits for one of them behind a
write that blocks sees neither the end of the job's time nor a signal. Of a pipe that broke Rich makes a SystemExit, and sends stdout
to /dev/null: so it sees no error of writing.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, Any, cast

from rich.console import Console

import akrunner
from akrunner.cli import signals
from akrunner.io.unblocked import Unblocked

#: errors of a limit that ended a command
LIMITS = (akrunner.JobTimeoutError, akrunner.JobStalledError)
#: how many seconds a reader has to make room for what is kept, if a signal or a limit ends the command
GIVEN_UP_SECONDS = 0.5
#: how many bytes are kept for a reader; what comes when there are more is left out
_MOST = 8 << 20
#: how many seconds a reader has to take all that is kept, until who waits for him (`wait_for_reader`) waits no more
_READER_SECONDS = 1.0
#: how many bytes are written at once, at most
_PART = 1 << 16
_TICK = 0.05


class Stderr(io.TextIOBase):
    """Stderr as a text stream for a Rich console, by a descriptor and without a lock of its own.

    If `sys.stderr` is no descriptor, the text goes there, and whoever writes waits as it does. What cannot be written, because its
    reader is gone or a disk is full, is dropped, and nothing is raised.

    Attributes:
        encoding: as that of `sys.stderr`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unblocked: Unblocked | None = None
        with contextlib.suppress(OSError, ValueError):
            self._unblocked = Unblocked(os.dup(sys.stderr.fileno()))
        self._left = bytearray()
        #: how many bytes were left out, and nothing tells so yet
        self._lost = 0
        #: time (of `time.monotonic`) at which the reader fell behind
        self._since = 0.0
        self._waits = True
        #: held only for what does not block
        self._lock = threading.Lock()

    @property
    # that of the base class can be set
    def encoding(self) -> str:  # type: ignore[override]
        return sys.stderr.encoding or "utf-8"

    def isatty(self) -> bool:
        return sys.stderr.isatty() if self._unblocked is None else self._unblocked.isatty()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Write a text, or keep it for the reader while a command works."""
        if self._unblocked is None:
            with contextlib.suppress(OSError):
                sys.stderr.write(text)
            return len(text)
        with self._lock:
            self._keep(text.encode(self.encoding, "backslashreplace"))
            self._write_on(self._unblocked)
        while self._waits and self._left:
            self._wait_a_little()
        return len(text)

    def flush(self) -> None:
        """Flush `sys.stderr` if the text goes there; else there is nothing to flush."""
        if self._unblocked is None:
            with contextlib.suppress(OSError):
                sys.stderr.flush()

    def go_on(self) -> bool:
        """Write what goes at once of what is kept, as the reader may read again. Returns: whether there is text left."""
        until = time.monotonic() + _TICK
        seconds = 0.0
        # who reads takes a terminal's few kB at once, and then the next ones
        while self._left and self._look_again(seconds):
            seconds = max(0.0, until - time.monotonic())
        return bool(self._left)

    def wait_for_reader(self) -> None:
        """Wait until the reader has taken what is kept, but do not wait for one who pauses, or is much slower than what is said."""
        while self._left and time.monotonic() < self._since + _READER_SECONDS:
            self._wait_a_little()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the reader has taken what is kept.

        Args: seconds: how long to wait at most; what is left then is lost. None: until a signal comes.
        """
        until = time.monotonic() + seconds if seconds is not None else None
        while self._left:
            if until is not None and time.monotonic() >= until:
                with self._lock:
                    self._left.clear()
                return
            self._wait_a_little()

    def begin(self) -> None:
        """From now on keep what the reader has no room for."""
        self._waits = False

    def end(self, error: BaseException | None = None) -> None:
        """Wait for the reader of what is kept, and from now on of each text. It has little time if a signal or a limit ends the
        command. Args: error: the exception that is on its way."""
        hurried = signals.seen() is not None or isinstance(error, (KeyboardInterrupt, *LIMITS))
        try:
            with self._lock:
                self._tell_lost()
            self.wait(GIVEN_UP_SECONDS if hurried else None)
        finally:
            self._waits = True

    def close(self) -> None:
        if not self.closed and self._unblocked is not None:
            self._unblocked.close()
        super().close()

    def _keep(self, data: bytes) -> None:
        if len(self._left) >= _MOST:
            self._lost += len(data)
            return
        if not self._left:
            self._since = time.monotonic()
        self._tell_lost()
        self._left += data

    def _tell_lost(self) -> None:
        if self._lost:
            self._left += f"[... {self._lost:,} bytes left out, as nobody read them ...]\n".encode()
        self._lost = 0

    def _wait_a_little(self) -> None:
        """Wait a tick at most for the reader to take something."""
        if not self._look_again(_TICK) and self._left:
            # a terminal may be ready and still have no room for the next character
            time.sleep(_TICK)

    def _look_again(self, seconds: float) -> bool:
        """Write what goes of what is kept, once there is room. Args: seconds: how long to wait for it at most. Returns: whether
        anything was written, or dropped."""
        assert self._unblocked is not None
        if not self._unblocked.ready(seconds):
            return False
        with self._lock:
            return self._write_on(self._unblocked)

    def _write_on(self, unblocked: Unblocked) -> bool:
        """Write what goes at once of what is kept. Returns: whether anything was written, or dropped."""
        before = len(self._left)
        try:
            while self._left and (written := unblocked.write(bytes(self._left[:_PART]))):
                del self._left[:written]
        except OSError:
            # nobody can read it; who tells Rich, or the job, has the job ended
            self._left.clear()
        return len(self._left) < before


def console(out: Stderr | None = None, **options: Any) -> Console:
    """Return a console on stderr. Args: out: its stream, None: a new one; options: further ones of Rich's console."""
    return Console(file=cast("IO[str]", out or Stderr()), highlight=False, soft_wrap=True, **options)


def say(text: str) -> None:
    """Print a text. Who is gone does not hear it, and the command goes on."""
    Stderr().write(f"{text}\n")


@contextlib.contextmanager
def working() -> Iterator[Console]:
    """Yield a console on stderr for a block that works, and in which nobody waits for the reader. At its end the reader is waited
    for as `Stderr.end` says."""
    out = Stderr()
    out.begin()
    try:
        yield console(out)
    except BaseException as e:
        out.end(e)
        raise
    out.end()


def say_aside(text: str, error: BaseException) -> None:
    """Print a text while an exception is on its way, for as long as the exception allows. Args: error: the exception."""
    out = Stderr()
    out.begin()
    out.write(f"{text}\n")
    out.end(error)
