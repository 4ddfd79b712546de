"""What is said between the process that keeps warm workers for the command line and those that run jobs: JSON over a socket.

::

    0          4
    | length   | JSON object ...      descriptors come with the length
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import struct
import time
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from akrunner import leftovers
from akrunner.launch.bundle import bundle_bytes

#: bytes of one message: environments, names of files
MOST = 16 << 20
_LENGTH = struct.Struct("<I")
_CREDENTIALS = struct.Struct("3i")
_DESCRIPTORS = 3
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_FOLDER = "warm"


class TalkError(Exception):
    """The other end has gone, is another user's, took too long, or says what nobody understands."""


def folder(make: bool = False) -> "str | None":
    """Where the socket is, which nobody else can reach; None where there is none."""
    return leftovers.state_dir(_FOLDER, make)


def name() -> str:
    """Of the socket: a home may be several machines'."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]


def version() -> str:
    """Ends of two versions do not talk: what the workers run is another program."""
    return hashlib.sha256(bundle_bytes()).hexdigest()


@contextlib.contextmanager
def place() -> Iterator[str]:
    """A path of the socket that fits a socket's address, however deep its directory is. Raises: OSError: there is none."""
    directory = os.open(folder() or "", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{name()}"
    finally:
        os.close(directory)


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


def say(connection: socket.socket, body: Dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Raises: TalkError: the other end does not take it."""
    data = json.dumps(body).encode()
    try:
        socket.send_fds(connection, [_LENGTH.pack(len(data))], list(descriptors))
        connection.sendall(data)
    except OSError as e:
        raise TalkError(str(e)) from None


def hear(connection: socket.socket, seconds: "float | None") -> Tuple[Dict[str, Any], List[int]]:
    """(the next message, descriptors that came with it). Raises: TalkError."""
    deadline = None if seconds is None else time.monotonic() + seconds
    came: List[int] = []
    try:
        head = _read(connection, _LENGTH.size, deadline, came)
        (length,) = _LENGTH.unpack(head)
        if length > MOST:
            raise TalkError("too long")
        body = json.loads(_read(connection, length, deadline, came))
        if not isinstance(body, dict):
            raise TalkError("no object")
        return body, came
    except (OSError, ValueError, RecursionError, TalkError) as e:
        for fd in came:
            os.close(fd)
        raise TalkError(str(e)) from None


def _read(connection: socket.socket, size: int, deadline: "float | None", came: List[int]) -> bytes:
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
            raise TalkError("the other end has gone")
        data += part
    return data
