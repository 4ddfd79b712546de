"""The messages between the process that keeps warm workers for the command line and the processes that run jobs: JSON over a
socket.

::

    0          4
    | length   | JSON object ...      descriptors come with the length
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any

from akrunner import leftovers
from akrunner.launch import bundle
from akrunner.wire.ending import started

#: the largest message in bytes; it holds environments and names of files
MOST = 16 << 20
_LENGTH = struct.Struct("<I")
_CREDENTIALS = struct.Struct("3i")
_DESCRIPTORS = 3
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_FOLDER = "warm"


class TalkError(Exception):
    """Raised if the other end is gone, belongs to another user, takes too long, or sends a message that is not understood."""


class CutOffError(TalkError):
    """Raised if the other end has no room for one more connection, or is gone."""


def folder(make: bool = False) -> str | None:
    """Return the directory of the socket, which other users cannot enter; None if there is none."""
    return leftovers.state_dir(_FOLDER, make)


def name() -> str:
    """Return the name of the socket. It depends on the host name, because several machines may share a home directory."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]


def version() -> str:
    """Return the version that both ends must share, because the workers of another version run another program."""
    return bundle.version()


@contextlib.contextmanager
def place() -> Iterator[str]:
    """Yield a path of the socket that is short enough for a socket's address, however deep its directory is.

    Raises:
        OSError: there is no such directory.
    """
    directory = os.open(folder() or "", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{name()}"
    finally:
        os.close(directory)


def lock_path(directory: str) -> str:
    """Return the path of the file that the listening process locks; the file names this process."""
    return os.path.join(directory, f"{name()}.lock")


def keeper() -> tuple[int, str] | None:
    """Return (pid, start time) of the process that listens, even if it does not answer; None if there is none."""
    directory = folder()
    try:
        with open(lock_path(directory or "")) as f:
            pid, start = f.read(100).split()
        there = started(int(pid)) == start and os.stat(f"/proc/{int(pid)}").st_uid == os.geteuid()
    except (OSError, ValueError):
        return None
    return (int(pid), start) if there else None


def clear_dead() -> None:
    """Remove the socket of a process that died without removing it."""
    directory = folder()
    if directory is None:
        return
    try:
        lock = os.open(lock_path(directory), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        # a process that listens holds this lock; a process that starts meanwhile tries again
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(os.path.join(directory, name()))
    except OSError:
        pass
    finally:
        os.close(lock)


def peer(connection: socket.socket) -> int:
    """Return the pid of the other end.

    Raises:
        TalkError: it belongs to another user.
    """
    try:
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError as e:
        raise TalkError(str(e)) from None
    pid, user, _ = _CREDENTIALS.unpack(told)
    if user != os.geteuid():
        raise TalkError("the other end is another user's")
    return int(pid)


def say(connection: socket.socket, body: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send a message, with descriptors.

    Raises:
        TalkError: the other end does not take it.
    """
    data = json.dumps(body).encode()
    try:
        socket.send_fds(connection, [_LENGTH.pack(len(data))], list(descriptors))
        connection.sendall(data)
    except ConnectionError as e:
        raise CutOffError(str(e)) from None
    except OSError as e:
        raise TalkError(str(e)) from None


def hear(connection: socket.socket, seconds: float | None, taking: bool = False) -> tuple[dict[str, Any], list[int]]:
    """Return the next message, and the descriptors that came with it.

    Args:
        seconds: how long to wait; None for no limit.
        taking: whether descriptors are expected; if not, they are closed.
    Raises:
        TalkError: no message came in time, or it is not understood.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    came: list[int] = []
    try:
        head = _read(connection, _LENGTH.size, deadline, came)
        (length,) = _LENGTH.unpack(head)
        if length > MOST:
            raise TalkError("too long")
        body = json.loads(_read(connection, length, deadline, came))
        if not isinstance(body, dict):
            raise TalkError("no object")
        if not taking:
            _close(came)
        return body, came
    except (OSError, ValueError, RecursionError, TalkError) as e:
        _close(came)
        kind = CutOffError if isinstance(e, (ConnectionError, CutOffError)) else TalkError
        raise kind(str(e)) from None


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


def _read(connection: socket.socket, size: int, deadline: float | None, came: list[int]) -> bytes:
    data = b""
    while len(data) < size:
        if deadline is not None and deadline <= time.monotonic():
            raise TalkError("it took too long")
        connection.settimeout(None if deadline is None else max(0.001, deadline - time.monotonic()))
        part, descriptors, _, _ = socket.recv_fds(connection, min(size - len(data), 1 << 16), _DESCRIPTORS, _CLOEXEC)
        for fd in descriptors:
            os.set_inheritable(fd, False)
        came += descriptors
        if not part:
            raise CutOffError("the other end has gone")
        data += part
    return data
