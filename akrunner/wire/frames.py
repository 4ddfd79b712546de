"""One length-prefixed message on a pipe.

::

    0      1      2         4          8                 16
    | kind | 0    | 0 (2)   | count(4) | payload length  | payload ...      little endian

`count` is rows where the frame carries rows. A pipe ends well only between frames; anything else is a `WireError`.

Whoever reads believes nothing: which kinds may come, and how long each may be, is known beforehand (`TO_WORKER`, `FROM_WORKER`), and
memory is taken for what has come, not for what a header announces.
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
# of the rows of the DATA behind it: a byte each, the number of its split
MARKS = 12
# host -> a worker process that waits for its job
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
# a worker process that waits for its job -> host
WAITING = 28
ANSWER = 29
FORKED = 30
ENDED = 31
# to a host on another machine, in place of rows that do not come to it
PASSED = 32
# worker -> host, of tables a script asks for; each names its request
LOOK_TABLE = 40
READ_TABLE = 41
WRITE_TABLE = 42
CLOSE_TABLE = 43
TAKE_WORK = 44
READ_MORE = 45
ADD_ROWS = 46
# host -> worker: the answers
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
    MARKS: "marks", FORK: "fork", FORKED: "forked", ENDED: "ended",
}  # fmt: skip

HEADER = struct.Struct("<BBHIQ")
#: bytes of the longest data frame: one row may have as much as Arrow's strings hold, and rows of a model's outputs are not cut
MOST_BYTES = 1 << 31
#: rows of the longest COLUMNS, and of the longest EXAMPLES frame
MOST_ROWS = 1 << 24
MOST_EXAMPLES = 4096
#: bytes of a JSON body: words, numbers, a traceback; of a context, which has the user's params and every column in it
_WORD = 64 << 10
_STORY = 16 << 20
_CONTEXT = 256 << 20
#: of a frame of a table's rows
_TABLE_ROWS = 1 << 31
#: most bytes a host's frames have, by kind
TO_WORKER = {
    CONTEXT: _CONTEXT, MARKS: 1 << 34, DATA: 1 << 34, END: _STORY, START: _WORD, ROWS: 1 << 34, STOP: _WORD, BARRIER: 0,
    TABLE_OPENED: _STORY, TABLE_DONE: _WORD, TABLE_FAILED: _STORY, WORK: _STORY, TABLE_ROWS: _TABLE_ROWS, WRITE_MORE: _WORD,
}  # fmt: skip
#: and a worker process's
FROM_WORKER = {
    HELLO: _WORD, OPENED: _WORD, READY: _WORD, ENTERED: _WORD, SERVING: _WORD, EXAMPLES: MOST_BYTES, COLUMNS: MOST_BYTES,
    REPORT: _STORY, REFUSED: _STORY, CLOSED: _STORY, ANSWERED: 0, PASSED: _STORY, LEFT: _STORY, LOOK_TABLE: _STORY, READ_TABLE: _STORY, WRITE_TABLE: _STORY,
    CLOSE_TABLE: _WORD, TAKE_WORK: _STORY, ADD_ROWS: _TABLE_ROWS, READ_MORE: _WORD,
}  # fmt: skip
#: and before either, while the process waits for its job
TO_SPARE = {SPARE: _STORY, OFFER: _STORY, ORDER: _STORY, FORK: _WORD}
FROM_SPARE = {WAITING: _WORD, ANSWER: _WORD, FORKED: _WORD, ENDED: _WORD}
EITHER_WAY = {**TO_WORKER, **FROM_WORKER, **TO_SPARE, **FROM_SPARE}
#: (kind, count) -> most bytes of such a frame
Most = Callable[[int, int], int]
#: memory taken at a time for a payload that has not come yet
_STEP = 8 << 20


class WireError(Exception):
    """The bytes on a pipe are not what the protocol says."""


class Frame:
    """A frame whose payload was read.

    Attributes:
        kind: one of the constants above.
        count: rows in it, 0 where it carries none.
        payload: bytearray.
    """

    __slots__ = ("count", "kind", "payload")

    def __init__(self, kind: int, count: int, payload: bytearray) -> None:
        self.kind = kind
        self.count = count
        self.payload = payload

    def json(self) -> Dict[str, Any]:
        """The payload as the JSON object it is. Raises: WireError: it is not one."""
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
        blocked_ns: nanoseconds spent in write calls, that is, mostly waiting for the reader.
        bytes: payload bytes written.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.blocked_ns = 0
        self.bytes = 0
        self._lock = threading.Lock()

    def write(self, kind: int, payload: Any = b"", count: int = 0) -> None:
        """Write one frame; payload is bytes-like or a list of bytes-likes. Blocks while the pipe is full.

        Raises: OSError: BrokenPipeError when the other end is gone.
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
        """Write some of it; returns how many bytes. Another kind of connection has its own."""
        return os.writev(self.fd, pending[:64])

    def _end(self, fd: int) -> None:
        os.close(fd)

    def close(self) -> None:
        """Close the descriptor; closing twice is fine."""
        with self._lock:
            fd, self.fd = self.fd, -1
        if fd >= 0:
            self._end(fd)


class FrameReader:
    """Reads frames from a file descriptor it owns; one thread at a time.

    Attributes:
        starved_ns: nanoseconds spent in read calls, that is, mostly waiting for the writer.
        bytes: payload bytes read.
    """

    def __init__(self, fd: int, kinds: Mapping[int, int] = EITHER_WAY, most: Optional[Most] = None) -> None:
        """kinds: kind -> most bytes, of the frames that may come; most: what more is known of them."""
        self.fd = fd
        self.starved_ns = 0
        self.bytes = 0
        self._kinds = kinds
        self._most = most

    def read(self) -> Optional[Frame]:
        """The next frame, None at the pipe's end. Raises: WireError: the pipe ended inside a frame, or garbage."""
        header = self.read_header()
        if header is None:
            return None
        kind, count, size = header
        return Frame(kind, count, self.read_payload(size))

    def read_header(self) -> Optional[Tuple[int, int, int]]:
        """(kind, count, payload length), None at the pipe's end. The payload must be read next."""
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
        """So many bytes from the pipe, held as they come."""
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
        started = time.monotonic_ns()
        while at < len(view):
            got = self._get(view[at:])
            if got == 0:
                if at == 0 and may_end:
                    return False
                raise WireError("the pipe ended after %d of %d bytes" % (at, len(view)))
            at += got
        self.starved_ns += time.monotonic_ns() - started
        return True

    def _get(self, view: memoryview) -> int:
        """Fill some of it; returns how many bytes, 0 at the end. Another kind of connection has its own."""
        return os.readv(self.fd, [view])

    def _end(self, fd: int) -> None:
        os.close(fd)

    def close(self) -> None:
        """Close the descriptor; closing twice is fine."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            self._end(fd)
