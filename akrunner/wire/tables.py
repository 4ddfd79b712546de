"""The protocol by which a script reads and writes tables through the host. The fields of its messages are in `messages`.

::

    worker                                        host
    LOOK_TABLE(request, table)            ->      <- TABLE_OPENED(columns, start, rows)
    READ_TABLE(columns, start, stop)      ->      <- TABLE_ROWS..., TABLE_DONE(rows)      one frame of rows for each credit
    READ_MORE(chunks)                     ->
    WRITE_TABLE(table, slice, process)    ->      <- TABLE_OPENED(columns, credits, replaces)
    ADD_ROWS...                           ->      <- WRITE_MORE(chunks)
    CLOSE_TABLE(rows, whole)              ->      <- TABLE_DONE(rows)                     a writer's; a reader gets no answer
    TAKE_WORK(queue, works, digest, ...)  ->      <- WORK(work)                           null: there is no more work

- WRITE_TABLE: `process` is the process that writes, the task's own or one forked from it.
- CLOSE_TABLE of a reader: `rows` have arrived, and `whole` says whether TABLE_DONE has arrived, too.
- TAKE_WORK: `works` is the list of works the first time, and [] from then on.

TABLE_FAILED(type, message) may come in place of any answer, and ends the request.
"""

import struct
from typing import Any, List, Tuple

from akrunner.wire import frames
from akrunner.wire.frames import WireError

_REQUEST = struct.Struct("<Q")
#: most requests that a task may have open at a time
MOST_REQUESTS = 1024
#: most frames of rows that may be under way in one request
CREDITS = 8
#: most bytes of such a frame from a writer; a single row may be longer
MOST_BYTES = 64 << 20
#: kinds of frame that go to the worker (answers) and to the host (questions)
ANSWERS = (frames.TABLE_OPENED, frames.TABLE_DONE, frames.TABLE_FAILED, frames.WORK, frames.TABLE_ROWS, frames.WRITE_MORE)
QUESTIONS = (
    frames.LOOK_TABLE, frames.READ_TABLE, frames.WRITE_TABLE, frames.CLOSE_TABLE, frames.TAKE_WORK, frames.ADD_ROWS,
    frames.READ_MORE,
)  # fmt: skip


def with_request(request: int, payload: List[Any]) -> List[Any]:
    """Return the payload of a TABLE_ROWS or ADD_ROWS frame. Args: payload: the columns (`akrunner.wire.column_layout.pack`)."""
    return [_REQUEST.pack(request), *payload]


def request_of(payload: Any) -> Tuple[int, memoryview]:
    """Return a TABLE_ROWS or ADD_ROWS frame's (request, payload of columns).

    Raises: WireError: the frame is too short to hold a request's number.
    """
    view = memoryview(payload)
    if len(view) < _REQUEST.size:
        raise WireError("a frame of a table's rows of %d bytes names no request" % len(view))
    (request,) = _REQUEST.unpack(view[: _REQUEST.size])
    return int(request), view[_REQUEST.size :]
