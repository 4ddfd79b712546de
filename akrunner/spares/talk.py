"""What is said between the process that keeps warm workers for the command line and those that run jobs: JSON over a socket.

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

#: bytes of one message: environments, names of files
MOST = 16 << 20
_LENGTH = struct.Struct("<I")
_CREDENTIALS = struct.Struct("3i")
_DESCRIPTORS = 3
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_FOLDER = "warm"


class TalkError(Exception):
    """The other end has gone, is another user's, took too long, or says what nobody understands."""


class CutOffError(TalkError):
    """The other end has no room for one more connection, or has gone."""


def folder(make: bool = False) -> str | None:
    """Where the socket is, which nobody else can reach; None where there is none."""
    return leftovers.state_dir(_FOLDER, make)


def name() -> str:
    """Of the socket: a home may be several machines'."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]


def version() -> str:
    """Ends of two versions do not talk: what the workers run is another program."""
    return bundle.version()


@contextlib.contextmanager
def place() -> Iterator[str]:
    """A path of the socket that fits a socket's address, however deep its directory is. Raises: OSError: there is none."""
    directory = os.open(folder() or "", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{name()}"
    finally:
        os.close(directory)


def lock_path(directory: str) -> str:
    """Of the file that is locked while somebody listens, and says who."""
    return os.path.join(directory, f"{name()}.lock")


def keeper() -> tuple[int, str] | None:
    """(pid, when it started) of the process that listens, also when it does not answer; None when there is none."""
    directory = folder()
    try:
        with open(lock_path(directory or "")) as f:
            pid, start = f.read(100).split()
        there = started(int(pid)) == start and os.stat(f"/proc/{int(pid)}").st_uid == os.geteuid()
    except (OSError, ValueError):
        return None
    return (int(pid), start) if there else None


def clear_dead() -> None:
    """Remove the socket of one that is gone without having done so."""
    directory = folder()
    if directory is None:
        return
    try:
        lock = os.open(lock_path(directory), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        # nobody listens who could not get it; whoever starts meanwhile tries again
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(os.path.join(directory, name()))
    except OSError:
        pass
    finally:
        os.close(lock)


def peer(connection: socket.socket) -> int:
    """Pid of the other end. Raises: TalkError: it is another user's."""
    try:
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError as e:
        raise TalkError(str(e)) from None
    pid, user, _ = _CREDENTIALS.unpack(told)
    if user != os.geteuid():
        raise TalkError("the other end is another user's")
    return int(pid)


def say(connection: socket.socket, body: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Raises: TalkError: the other end does not take it."""
    data = json.dumps(body).encode()
    try:
        socket.send_fds(connection, [_LENGTH.pack(len(data))], list(descriptors))
        connection.sendall(data)
    except ConnectionError as e:
        raise CutOffError(str(e)) from None
    except OSError as e:
        raise TalkError(str(e)) from None


def hear(connection: socket.socket, seconds: float | None, taking: bool = False) -> tuple[dict[str, Any], list[int]]:
    """(the next message, descriptors that came with it). Args: taking: such are expected; others are closed. Raises: TalkError."""
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
