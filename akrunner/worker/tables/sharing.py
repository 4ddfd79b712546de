"""Lets other processes of the task ask its broker, through a Unix socket in the task's directory.

::

    child process                            task's process
    | json length | payload length | json | payload |   ->   a thread for each connection calls the broker
                                          <-   the same format: {"value": ...} or {"kind", "message"}

Only the user's own processes can open the socket, as only the user can enter its directory. Each thread has a connection of its
own, which is opened when the thread asks for the first time.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple, Union

from akrunner.worker.tables.broker import CHILDREN
from akrunner.worker.tables.errors import TableError, failed

if TYPE_CHECKING:
    from akrunner.worker.tables.broker import Broker

_HEAD = struct.Struct("<IQ")
_CALLS = ("look", "read", "more", "write", "put", "close", "take_work")
#: a path longer than this does not fit into a socket's address: it is reached through a file descriptor of its directory
_LONGEST = 100
#: most bytes of a message without its rows
_MOST_JSON = 16 << 20
_MOST_PAYLOAD = 1 << 31


def listen(broker: Broker, path: str) -> None:
    """Answer the processes that connect, until this process ends."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    _at(path, server.bind)
    server.listen(64)
    threading.Thread(target=_accept, args=(server, broker), name="akrunner-tables", daemon=True).start()


def _at(path: str, call: Callable[[str], Any]) -> Any:
    """Call `call` with an address that stands for a socket's path, and return its result."""
    if len(os.fsencode(path)) <= _LONGEST:
        return call(path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        return call("/proc/self/fd/%d/%s" % (folder, os.path.basename(path)))
    finally:
        os.close(folder)


def _accept(server: socket.socket, broker: Broker) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection, broker), name=CHILDREN, daemon=True).start()


def _answer(connection: socket.socket, broker: Broker) -> None:
    with connection:
        while True:
            try:
                got = _receive(connection)
                if got is None:
                    return
                asked, payload = got
                _send(connection, _called(broker, asked, payload))
            except (OSError, ValueError, KeyError, TypeError):
                return


def _called(broker: Broker, asked: Dict[str, Any], payload: Union[bytes, bytearray, memoryview]) -> Dict[str, Any]:
    if asked["call"] not in _CALLS:
        return {"kind": "TableError", "message": "no such call"}
    given = asked["given"]
    if asked["call"] == "put":
        given = dict(given, payload=[payload])
    try:
        return {"value": getattr(broker, asked["call"])(**given)}
    except (TableError, OSError) as e:
        kind = "OSError" if isinstance(e, OSError) else type(e).__name__
        return {"kind": kind, "message": str(e)}


def _send(connection: socket.socket, value: Dict[str, Any], payload: Sequence[Any] = ()) -> None:
    text = json.dumps(value).encode("utf-8")
    size = sum(memoryview(part).nbytes for part in payload)
    connection.sendall(_HEAD.pack(len(text), size) + text)
    for part in payload:
        if memoryview(part).nbytes:
            connection.sendall(memoryview(part).cast("B"))


def _receive(connection: socket.socket) -> Optional[Tuple[Dict[str, Any], bytearray]]:
    head = _exactly(connection, _HEAD.size, True)
    if head is None:
        return None
    text, size = _HEAD.unpack(head)
    if text > _MOST_JSON or size > _MOST_PAYLOAD:
        raise ValueError("a message of %d and %d bytes" % (text, size))
    return json.loads(bytes(_exactly(connection, text)).decode("utf-8")), _exactly(connection, size)


def _exactly(connection: socket.socket, size: int, may_end: bool = False) -> Any:
    data = bytearray(size)
    view = memoryview(data)
    while len(view):
        got = connection.recv_into(view)
        if not got:
            if may_end and len(view) == size:
                return None
            raise OSError("the task's process does not answer")
        view = view[got:]
    return data


class _Connection(socket.socket):
    """The connection of one thread; closed when the thread has ended."""

    def __del__(self) -> None:
        self.close()


class Remote(object):
    """Has the methods of the broker, and passes each call on to it. For processes forked, or started, by the task's process.

    The methods raise what the broker raises.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._local = threading.local()

    def _ask(self, call: str, payload: Sequence[Any] = (), **given: Any) -> Any:
        connection = getattr(self._local, "connection", None)
        try:
            if connection is None:
                connection = _Connection(socket.AF_UNIX, socket.SOCK_STREAM)
                _at(self._path, connection.connect)
                self._local.connection = connection
            _send(connection, {"call": call, "given": given}, payload)
            got = _receive(connection)
        except BaseException as e:
            # give the connection up: the next request would get the answer to this one
            self._local.connection = None
            if connection is not None:
                connection.close()
            if isinstance(e, OSError):
                raise TableError("the task's process does not answer: %s" % e)
            raise
        if got is None:
            raise TableError("the task is over: tables are read and written until the script ends")
        if "value" not in got[0]:
            raise failed(got[0]["kind"], got[0]["message"])
        return got[0]["value"]

    def look(self, table: str) -> Dict[str, Any]:
        told: Dict[str, Any] = self._ask("look", table=table)
        return told

    def read(self, table: str, columns: Sequence[str], start: int, stop: int) -> Dict[str, Any]:
        told: Dict[str, Any] = self._ask("read", table=table, columns=list(columns), start=start, stop=stop)
        return told

    def more(self, spool: int, chunk: int) -> Dict[str, Any]:
        told: Dict[str, Any] = self._ask("more", spool=spool, chunk=chunk)
        return told

    def write(self, table: str, slice_id: int, process: str) -> Dict[str, Any]:
        told: Dict[str, Any] = self._ask("write", table=table, slice_id=slice_id, process=process)
        return told

    def put(self, writing: int, rows: int, payload: Sequence[Any]) -> Any:
        return self._ask("put", payload, writing=writing, rows=rows)

    def close(self, writing: int) -> Any:
        return self._ask("close", writing=writing)

    def take_work(self, **asked: Any) -> Optional[str]:
        work: Optional[str] = self._ask("take_work", **asked)
        return work
