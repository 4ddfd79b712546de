"""Frames: length-prefixed messages on a pipe, their kinds, and their reader and writer.

::

    0      1      2         4          8                 16
    | kind | 0    | 0 (2)   | count(4) | payload length  | payload ...      little endian

`count` is the number of rows, if the frame carries rows. A pipe may end only between frames; any other end is a `WireError`.

A reader does not trust the writer: it knows beforehand which kinds may come and how long each may be (`TO_WORKER`,
`FROM_WORKER`, `FROM_AGENT`), and it allocates memory as bytes arrive, not as a header announces them.
"""

import json
import os
import struct
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

# host -> worker
CONTEXT = 1
DATA = 2
END = 3
START = 4
ROWS = 5
STOP = 6
BARRIER = 7
# the splits of the rows in the DATA frame that follows: one byte a row, the number of its split
MARKS = 12
# host -> a warm worker
SPARE = 8
OFFER = 9
ORDER = 10
FORK = 11
# worker -> host
HELLO = 16
OPENED = 17
READY = 18
ENTERED = 19
EXAMPLES = 20
COLUMNS = 21
REPORT = 22
CLOSED = 23
REFUSED = 24
SERVING = 25
ANSWERED = 26
LEFT = 27
# a warm worker -> host
WAITING = 28
ANSWER = 29
FORKED = 30
ENDED = 31
# from an agent beside a worker to its host on another machine, in place of rows that are not sent to it
PASSED = 32
# worker -> host: a save of the stream's model is due; its count is the number of the barrier at which it saved last
DUE = 33
# worker -> host: how far main() is
REACHED = 34
# worker -> host: requests for tables that a script reads or writes; each has the number of its request
LOOK_TABLE = 40
READ_TABLE = 41
WRITE_TABLE = 42
CLOSE_TABLE = 43
TAKE_WORK = 44
READ_MORE = 45
ADD_ROWS = 46
# host -> worker: the answers to those requests
TABLE_OPENED = 48
TABLE_DONE = 49
TABLE_FAILED = 50
WORK = 51
TABLE_ROWS = 52
WRITE_MORE = 53

NAMES = {
    CONTEXT: "context", DATA: "data", END: "end", START: "start", ROWS: "rows", STOP: "stop", HELLO: "hello", OPENED: "opened",
    READY: "ready", ENTERED: "entered", EXAMPLES: "examples", COLUMNS: "columns", REPORT: "report", CLOSED: "closed",
    REFUSED: "refused", SERVING: "serving", BARRIER: "barrier", ANSWERED: "answered", PASSED: "passed", LEFT: "left",
    SPARE: "spare", OFFER: "offer", ORDER: "order", WAITING: "waiting", ANSWER: "answer", LOOK_TABLE: "look table",
    READ_TABLE: "read table", WRITE_TABLE: "write table", CLOSE_TABLE: "close table", TAKE_WORK: "take work",
    TABLE_OPENED: "table opened", TABLE_DONE: "table done", TABLE_FAILED: "table failed", WORK: "work", TABLE_ROWS: "table rows",
    WRITE_MORE: "write more", READ_MORE: "read more", ADD_ROWS: "add rows",
    DUE: "due", REACHED: "reached", MARKS: "marks", FORK: "fork", FORKED: "forked", ENDED: "ended",
}  # fmt: skip

HEADER = struct.Struct("<BBHIQ")
#: bytes of the longest EXAMPLES or COLUMNS frame: one row may hold as much as an Arrow string, and a row of a model's outputs
#: is never divided
MOST_BYTES = 1 << 31
#: most rows of a COLUMNS frame, and of an EXAMPLES frame
MOST_ROWS = 1 << 24
MOST_EXAMPLES = 4096
#: most bytes of a JSON body: of a few words and numbers; with a traceback; of a context, which has the user's params and every
#: column
_WORD = 64 << 10
_STORY = 16 << 20
_CONTEXT = 256 << 20
#: most bytes of a frame of a table's rows
_TABLE_ROWS = 1 << 31
#: kind of frame -> its most bytes, for frames from the host to a worker process
TO_WORKER = {
    CONTEXT: _CONTEXT, MARKS: 1 << 34, DATA: 1 << 34, END: _STORY, START: _WORD, ROWS: 1 << 34, STOP: _WORD, BARRIER: _STORY,
    TABLE_OPENED: _STORY, TABLE_DONE: _WORD, TABLE_FAILED: _STORY, WORK: _STORY, TABLE_ROWS: _TABLE_ROWS, WRITE_MORE: _WORD,
}  # fmt: skip
#: the same for frames from a worker process to the host
FROM_WORKER = {
    HELLO: _WORD, OPENED: _WORD, READY: _WORD, ENTERED: _WORD, SERVING: _WORD, EXAMPLES: MOST_BYTES, COLUMNS: MOST_BYTES,
    REPORT: _STORY, REFUSED: _STORY, CLOSED: _STORY, ANSWERED: 0, DUE: 0, REACHED: _WORD, LEFT: _STORY,
    LOOK_TABLE: _STORY, READ_TABLE: _STORY, WRITE_TABLE: _STORY, CLOSE_TABLE: _WORD, TAKE_WORK: _STORY, ADD_ROWS: _TABLE_ROWS, READ_MORE: _WORD,
}  # fmt: skip
#: the same for frames from an agent that reads what a worker process writes: the process itself may not say that its rows have
#: gone elsewhere
FROM_AGENT = {**FROM_WORKER, PASSED: _STORY}
#: the same for frames to and from a warm worker, before it gets its job
TO_SPARE = {SPARE: _STORY, OFFER: _STORY, ORDER: _STORY, FORK: _WORD}
FROM_SPARE = {WAITING: _WORD, ANSWER: _WORD, FORKED: _WORD, ENDED: _WORD}
EITHER_WAY = {**TO_WORKER, **FROM_AGENT, **TO_SPARE, **FROM_SPARE}
#: (kind, count) -> most bytes of such a frame
Most = Callable[[int, int], int]
#: bytes by which the memory for a payload grows while it arrives
_STEP = 8 << 20


class WireError(Exception):
    """Raised when the bytes on a pipe do not follow the protocol."""


class Frame:
    """A frame whose payload was read.

    Attributes:
        kind: one of the constants above.
        count: rows in it; 0 if its kind carries none.
        payload: its bytes, a bytearray.
    """

    __slots__ = ("count", "kind", "payload")

    def __init__(self, kind: int, count: int, payload: bytearray) -> None:
        self.kind = kind
        self.count = count
        self.payload = payload

    def json(self) -> Dict[str, Any]:
        """Return the payload's JSON object. Raises: WireError: the payload is not a JSON object."""
        try:
            value = json.loads(bytes(self.payload).decode("utf-8"))
        except (ValueError, RecursionError) as e:
            raise WireError("a %s frame does not hold JSON: %s" % (NAMES.get(self.kind, self.kind), e))
        if not isinstance(value, dict):
            raise WireError("a %s frame holds %s, not an object" % (NAMES.get(self.kind, self.kind), type(value).__name__))
        return value


class FrameWriter:
    """Writes frames to a file descriptor it owns; safe for several threads.

    Attributes:
        blocked_ns: nanoseconds spent in write calls; most of that is waiting for the reader.
        bytes: payload bytes written.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.blocked_ns = 0
        self.bytes = 0
        self._lock = threading.Lock()

    def write(self, kind: int, payload: Any = b"", count: int = 0) -> None:
        """Write one frame; payload is bytes-like or a list of bytes-likes. Blocks while the pipe is full.

        Raises: OSError: the write failed; a BrokenPipeError if the reader has closed its end.
        """
        parts = payload if isinstance(payload, list) else [payload]
        views = [memoryview(part).cast("B") if len(part) else memoryview(b"") for part in parts]
        size = sum(len(view) for view in views)
        pending = [memoryview(HEADER.pack(kind, 0, 0, count, size))] + [view for view in views if len(view)]
        with self._lock:
            started = time.monotonic_ns()
            while pending:
                written = self._put(pending)
                while pending and written >= len(pending[0]):
                    written -= len(pending.pop(0))
                if written:
                    pending[0] = pending[0][written:]
            self.blocked_ns += time.monotonic_ns() - started
            self.bytes += size

    def write_json(self, kind: int, value: Any, count: int = 0) -> None:
        self.write(kind, json.dumps(value).encode("utf-8"), count)

    def _put(self, pending: List[memoryview]) -> int:
        """Write some of the pending bytes and return how many. Overridden for other kinds of connection."""
        return os.writev(self.fd, pending[:64])

    def _end(self, fd: int) -> None:
        os.close(fd)

    def close(self) -> None:
        """Close the descriptor. A second call does nothing."""
        with self._lock:
            fd, self.fd = self.fd, -1
        if fd >= 0:
            self._end(fd)


class FrameReader:
    """Reads frames from a file descriptor it owns; one thread at a time.

    Attributes:
        bytes: payload bytes read.
    """

    def __init__(self, fd: int, kinds: Mapping[int, int] = EITHER_WAY, most: Optional[Most] = None) -> None:
        """Make a reader.

        Args:
            fd: the descriptor to read.
            kinds: kind -> most bytes, for each kind of frame that may come.
            most: a tighter limit: (kind, count) -> most bytes of such a frame; None for none.
        """
        self.fd = fd
        self.bytes = 0
        self._kinds = kinds
        self._most = most

    def read(self) -> Optional[Frame]:
        """Return the next frame, or None at the pipe's end.

        Raises: WireError: the pipe ended inside a frame, or the bytes are not a frame that may come.
        """
        header = self.read_header()
        if header is None:
            return None
        kind, count, size = header
        return Frame(kind, count, self.read_payload(size))

    def read_header(self) -> Optional[Tuple[int, int, int]]:
        """Return the next frame's (kind, count, payload length), or None at the pipe's end. Read its payload next."""
        raw = bytearray(HEADER.size)
        if not self._fill(memoryview(raw), True):
            return None
        kind, zero, zeros, count, size = HEADER.unpack(raw)
        if kind not in NAMES or zero or zeros:
            raise WireError("not a frame: %s" % bytes(raw).hex())
        if kind not in self._kinds:
            raise WireError("a %s frame does not go this way" % NAMES[kind])
        most = self._kinds[kind]
        if self._most is not None:
            most = min(most, self._most(kind, count))
        if size > most:
            raise WireError("a %s frame of %d rows announces %d bytes; %d are the most" % (NAMES[kind], count, size, most))
        return kind, count, size

    def read_payload(self, size: int) -> bytearray:
        """Return the next `size` bytes of the pipe; memory grows as they arrive."""
        payload = bytearray(min(size, _STEP))
        at = 0
        while True:
            with memoryview(payload) as view, view[at:] as part:
                self._fill(part, False)
            at = len(payload)
            if at == size:
                self.bytes += size
                return payload
            payload.extend(bytes(min(_STEP, size - at)))

    def read_into(self, view: memoryview) -> None:
        """Fill `view` from the pipe."""
        self._fill(view, False)
        self.bytes += len(view)

    def _fill(self, view: memoryview, may_end: bool) -> bool:
        at = 0
        while at < len(view):
            got = self._get(view[at:])
            if got == 0:
                if at == 0 and may_end:
                    return False
                raise WireError("the pipe ended after %d of %d bytes" % (at, len(view)))
            at += got
        return True

    def _get(self, view: memoryview) -> int:
        """Read some bytes into `view` and return how many, 0 at the pipe's end. Overridden for other kinds of connection."""
        return os.readv(self.fd, [view])

    def _end(self, fd: int) -> None:
        os.close(fd)

    def close(self) -> None:
        """Close the descriptor. A second call does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            self._end(fd)
