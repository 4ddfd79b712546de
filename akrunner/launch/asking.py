"""Runs a program for what it prints (an interpreter, pip, java), within bounds: the program may print for ever, never end, or
leave a process running that holds its output open.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from akrunner import leftovers
from akrunner.wire import ending

_TICK = 0.05
_CHUNK = 1 << 16
#: bytes that are kept of each output: the last ones
_KEPT = 1 << 18
#: bytes; a program that prints more in answer to a question has not understood the question
_MOST = 16 << 20


class Asked(NamedTuple):
    """What a program answered.

    Attributes:
        code: the exit code, or minus the number of the signal that ended it.
        out, err: the end of what it printed, as text.
    """

    code: int
    out: str
    err: str


def ask(
    command: Sequence[str],
    seconds: float | None,
    env: Mapping[str, str] | None = None,
    most: int | None = _MOST,
    noted: bool = True,
) -> Asked:
    """Run a program to its end. Processes that it started and left running are ended with it.

    Args:
        seconds: the time it may take; None: for ever.
        env: its environment; None: this process's.
        most: the bytes it may print; None: any number.
        noted: write down that it runs, for the case that this process is killed. False is for callers that must not create
            anything: the program is then noted only if the directory for such notes exists.
    Raises:
        OSError: it cannot be run, has not ended in time, or prints more than `most` bytes. No process of it runs on.
    """
    mark = f"ask-{uuid.uuid4().hex}"
    inherited: Mapping[str, str] = os.environ if env is None else env
    noted = noted or leftovers.state_dir("leftovers", make=False) is not None
    if noted:
        leftovers.mark(mark)
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**inherited, ending.MARK: mark},
            start_new_session=True,
        ) as process:
            try:
                return _listen(process, seconds, most)
            finally:
                ending.end([(process.pid, "")], [mark])
    finally:
        if noted:
            leftovers.unmark(mark)


def _listen(process: subprocess.Popen[bytes], seconds: float | None, most: int | None) -> Asked:
    deadline = None if seconds is None else time.monotonic() + seconds
    streams: list[Any] = [process.stdout, process.stderr]
    said: dict[Any, bytes] = {stream: b"" for stream in streams}
    printed = behind = 0
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            ready = [key.fileobj for key, _ in selector.select(0 if ended else _TICK)] if selector.get_map() else []
            for stream in ready:
                piece = _read(stream)
                if not piece:
                    selector.unregister(stream)
                printed += len(piece)
                behind += len(piece) if ended else 0
                said[stream] = (said[stream] + piece)[-_KEPT:]
            if most is not None and printed > most:
                raise OSError(f"it printed more than {most >> 20} MiB")
            # other processes that hold its pipes are not waited for
            if ended and (not ready or behind > _KEPT):
                return Asked(process.returncode, *(said[stream].decode(errors="replace") for stream in streams))
            if not ended and not ready and not selector.get_map():
                time.sleep(_TICK)
            if deadline is not None and time.monotonic() > deadline:
                raise OSError(f"it had not ended after {seconds:g} s")


def _read(stream: Any) -> bytes:
    try:
        return os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return b""
