"""Rows of a table that a script asks for, and what is asked: the shapes both ends agree on beside `messages`.

::

    worker                                        host
    LOOK_TABLE(request, table)            ->      <- TABLE_OPENED(columns, start, rows)
    READ_TABLE(columns, start, stop)      ->      <- TABLE_ROWS..., TABLE_DONE(rows)      as many frames as there are credits
    READ_MORE(chunks)                     ->
    WRITE_TABLE(table, slice, process)    ->      <- TABLE_OPENED(columns, credits, replaces)     the process: of the task, or forked from it
    ADD_ROWS...                           ->      <- WRITE_MORE(chunks)
    CLOSE_TABLE(rows, whole)              ->      <- TABLE_DONE(rows)                     of a reader: how many have arrived, and
                                                                                          whether TABLE_DONE has, too; no answer
    TAKE_WORK(queue, works, digest, ...)  ->      <- WORK(work)                           null: there is no more; works: [] but the first time

In place of any answer: TABLE_FAILED(type, message); the request is over then.
"""

import struct
from typing import Any, List, Tuple

from akrunner.wire import frames
from akrunner.wire.frames import WireError

_REQUEST = struct.Struct("<Q")
#: requests a task may have open at a time
MOST_REQUESTS = 1024
#: frames of rows that may be under way in one request
CREDITS = 8
#: and bytes of one that a writer sends; a single row may be longer
MOST_BYTES = 64 << 20
#: kinds that go to the worker, and to the host
ANSWERS = (frames.TABLE_OPENED, frames.TABLE_DONE, frames.TABLE_FAILED, frames.WORK, frames.TABLE_ROWS, frames.WRITE_MORE)
QUESTIONS = (
    frames.LOOK_TABLE, frames.READ_TABLE, frames.WRITE_TABLE, frames.CLOSE_TABLE, frames.TAKE_WORK, frames.ADD_ROWS,
    frames.READ_MORE,
)  # fmt: skip


def with_request(request: int, payload: List[Any]) -> List[Any]:
    """The payload of a TABLE_ROWS or ADD_ROWS frame. Args: payload: of columns (`akrunner.wire.columns.pack`)."""
    return [_REQUEST.pack(request), *payload]


def request_of(payload: Any) -> Tuple[int, memoryview]:
    """(request, payload of columns) of a TABLE_ROWS or ADD_ROWS frame. Raises: WireError: it is too short to name one."""
    view = memoryview(payload)
    if len(view) < _REQUEST.size:
        raise WireError("a frame of a table's rows of %d bytes names no request" % len(view))
    (request,) = _REQUEST.unpack(view[: _REQUEST.size])
    return int(request), view[_REQUEST.size :]
