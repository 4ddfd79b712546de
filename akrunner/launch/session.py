"""The host's end of one worker process: handshake, rows in, frames out, its last word.

::

    feeder thread   ->  send_rows / end_of_rows / start   ->  pipe
    reader thread   <-  events on one queue               <-  pipe
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from akrunner.errors import ProtocolError
from akrunner.launch.logs import LogPump
from akrunner.launch.process import TaskProcess
from akrunner.spec import TaskSpec
from akrunner.wire import PROTOCOL_VERSION, frames, messages, tables

#: frames waiting for the host, of all tasks together; past it the pipes fill and the scripts wait
EVENTS = 64


class EventKind(Enum):
    """What a task said, or what befell it: ENDED: its pipe has; BROKEN: it does not keep to the protocol; TABLE: the rows it wrote to a table, or was
    sent of one, cannot be right."""

    OPENED = "opened"
    READY = "ready"
    ENTERED = "entered"
    SERVING = "serving"
    OUTPUT = "output"
    PASSED = "passed"
    REFUSED = "refused"
    REPORT = "report"
    CLOSED = "closed"
    ENDED = "ended"
    BROKEN = "broken"
    TABLE = "table"


@dataclass(frozen=True)
class Event:
    """Something a task said, or that befell it.

    Attributes:
        task: which; kind: what.
        data: the body of what it said.
        frame: of an output event.
        error: of a broken event.
    """

    task: TaskSpec
    kind: EventKind
    data: Mapping[str, Any]
    frame: frames.Frame | None = None
    error: BaseException | None = None


class Tables(Protocol):
    """Who answers what a task asks of tables (`akrunner.engines.conversation.Conversation`)."""

    def take(self, frame: frames.Frame) -> None:
        """One frame; never waits. Raises: WireError, ProtocolError: it makes no sense."""
        ...


_KINDS = {
    frames.OPENED: EventKind.OPENED,
    frames.READY: EventKind.READY,
    frames.ENTERED: EventKind.ENTERED,
    frames.REPORT: EventKind.REPORT,
    frames.CLOSED: EventKind.CLOSED,
    frames.REFUSED: EventKind.REFUSED,
    frames.SERVING: EventKind.SERVING,
    frames.PASSED: EventKind.PASSED,
}


class TaskSession:
    """One task's process and what is said with it.

    Attributes:
        task, process, log: what it drives; the process may be another machine's.
        writer: frames to the worker; rows_sent: so far; script: the file the user named.
        hello: what the worker said first; left: what it said last, of what its script left behind, None: not yet.
    """

    def __init__(
        self,
        task: TaskSpec,
        process: TaskProcess,
        log: LogPump,
        context: Mapping[str, Any],
        events: queue.Queue[Event],
        asked: Callable[[frames.FrameWriter], Tables] | None = None,
    ) -> None:
        """Args: asked: makes who answers what it asks of tables, None: it has none."""
        self.task = task
        self.process = process
        self.log = log
        self.hello: dict[str, Any] = {}
        self.left: list[str] | None = None
        self.rows_sent = 0
        self._context = context
        self.script = str(context["script"]["real"])
        self._events = events
        self._failed: BaseException | None = None
        self._deaf = threading.Event()
        self._closed = threading.Event()
        self._greeted = threading.Event()
        self.writer = self.process.writer()
        self.tables = asked(self.writer) if asked is not None else None
        self._said: set[int] = set()
        self._reader = self.process.reader(frames.FROM_WORKER, _most(context))
        self._thread = threading.Thread(target=self._read, name=f"akrunner-read-{task.key}", daemon=True)
        self._thread.start()

    # -- to the worker

    def wait_until_greeted(self, seconds: float) -> bool:
        """Whether the context was sent, so that rows may follow it."""
        return self._greeted.wait(seconds)

    def send_rows(self, payload: list[Any], rows: int, marks: memoryview | None = None) -> None:
        """A chunk of rows, as its file will have them. Blocks while the worker is behind. Args: marks: a byte a row, the number of its split; None: rows
        are not split. Raises: OSError: it is gone."""
        if marks is not None:
            self.writer.write(frames.MARKS, [marks], rows)
        self.writer.write(frames.DATA, payload, rows)
        self.rows_sent += rows

    def stream_rows(self, payload: list[Any], rows: int) -> None:
        """A chunk of a stream: uint32 lengths, and the Examples end to end; or columns. Blocks and raises as `send_rows`."""
        self.writer.write(frames.ROWS, payload, rows)
        self.rows_sent += rows

    def was_given(self, rows: int, size: int) -> None:
        """So many rows and bytes so far, not by this host."""
        self.rows_sent = rows
        self.writer.bytes = size

    def end_of_rows(self, total_rows: int, shares: Sequence[int], splits: Sequence[Sequence[int]] = ()) -> None:
        """No more rows come: how many this worker, all, and each of them got, and of each split."""
        body = {"rows": self.rows_sent, "total_rows": total_rows, "shares": list(shares), "splits": list(map(list, splits))}
        self.writer.write_json(frames.END, body)

    def start(self) -> None:
        """Every task is ready: `main` may be called."""
        self.writer.write_json(frames.START, {})

    def stop(self) -> None:
        """Tell the task that the job needs it no longer and that it may end. Does nothing if it has gone."""
        try:
            self.writer.write_json(frames.STOP, {})
        except OSError:
            pass

    # -- from the worker

    def deafen(self) -> None:
        """Nobody will read events any more: the reader drops what comes and never waits for room."""
        self._deaf.set()

    def close(self, seconds: float = 2.0) -> None:
        """After the process has ended: let the log and the reader come to their end, and close the pipes."""
        self.deafen()
        self.log.join(seconds)
        self._thread.join(seconds)
        self.writer.close()
        # a reader that still waits closes it when it wakes
        self._closed.set()
        if not self._thread.is_alive():
            self._reader.close()

    def post(self, kind: EventKind, data: Mapping[str, Any] = {}, frame: frames.Frame | None = None) -> None:
        """Put an event on the queue; waits for room in it."""
        self._put(Event(self.task, kind, data, frame))

    def _put(self, event: Event) -> None:
        while not self._deaf.is_set():
            try:
                self._events.put(event, timeout=0.1)
                return
            except queue.Full:
                continue

    @property
    def error(self) -> BaseException | None:
        """What one of its threads here has ended with; None while all is well."""
        return self._failed or self.log.error

    def _read(self) -> None:
        try:
            self._attend()
            self.post(EventKind.ENDED)
        except BaseException as e:
            # the supervisor sees it, and what the task does then is of no interest any more
            self._failed = e
        finally:
            if self._closed.is_set():
                self._reader.close()

    def _attend(self) -> None:
        try:
            self._greet()
            while True:
                frame = self._reader.read()
                if frame is None:
                    break
                self._take(frame)
        except OSError:
            # a connection to another machine: as the end of a pipe, but nobody over there may ever say more
            self.process.abandon()
        except (ProtocolError, frames.WireError) as e:
            self._put(Event(self.task, EventKind.BROKEN, {}, None, e))

    def _greet(self) -> None:
        frame = self._reader.read()
        if frame is None:
            return
        if frame.kind != frames.HELLO:
            raise ProtocolError(f"the worker process began with {frames.NAMES[frame.kind]}, not hello")
        self.hello = frame.json()
        if self.hello.get("version") != PROTOCOL_VERSION:
            raise ProtocolError(
                f"the worker speaks version {self.hello.get('version')} of the protocol, this host {PROTOCOL_VERSION}"
            )
        messages.read(frame)
        try:
            self.writer.write_json(frames.CONTEXT, self._context)
            self._greeted.set()
        except BrokenPipeError:
            pass  # it ended; the reader finds out how

    def _take_asked(self, frame: frames.Frame) -> None:
        """Of tables. A thread that the script has left behind may still ask when all else is said, and is not answered."""
        if self.tables is None:
            raise ProtocolError(f"it said {frames.NAMES[frame.kind]}, and the job has no tables")
        if frames.OPENED not in self._said:
            raise ProtocolError(f"it said {frames.NAMES[frame.kind]} before opened")
        if frames.CLOSED not in self._said:
            self.tables.take(frame)

    def _take(self, frame: frames.Frame) -> None:
        if frame.kind in tables.QUESTIONS:
            self._take_asked(frame)
            return
        name, before = frames.NAMES[frame.kind], _AFTER.get(frame.kind)
        if before is not None and before not in self._said:
            raise ProtocolError(f"it said {name} before {frames.NAMES[before]}")
        # a thread that the script has left behind may report when all else is said
        if (frames.CLOSED in self._said and frame.kind not in (frames.REPORT, frames.LEFT)) or (
            frame.kind in _ONCE and frame.kind in self._said
        ):
            raise ProtocolError(f"it said {name} after {'closed' if frames.CLOSED in self._said else name}")
        self._said.add(frame.kind)
        if frame.kind in (frames.EXAMPLES, frames.COLUMNS):
            self.post(EventKind.OUTPUT, {}, frame)
            return
        if frame.kind == frames.LEFT:
            # nobody waits for it: the job may be over by now
            self.left = list(messages.read(frame)["notes"])
            return
        if frame.kind not in _KINDS:
            raise ProtocolError(f"a worker process does not send {name}")
        body = messages.read(frame)
        if frame.kind == frames.CLOSED and body["ok"] and frames.ENTERED not in self._said:
            raise ProtocolError("it was done before it had entered main()")
        self.post(_KINDS[frame.kind], body)


#: what is said but once, and what only after something else
_ONCE = {frames.OPENED, frames.READY, frames.ENTERED, frames.LEFT}
_AFTER = {
    frames.READY: frames.OPENED,
    frames.ENTERED: frames.READY,
    frames.SERVING: frames.ENTERED,
    frames.EXAMPLES: frames.ENTERED,
    frames.COLUMNS: frames.ENTERED,
    frames.PASSED: frames.ENTERED,
    frames.LEFT: frames.CLOSED,
}
#: bytes of a frame of several rows, several times what an output writer sends at once; and of what describes each of its columns
_SEVERAL_ROWS = 64 << 20
_DESCRIBED = 1 << 10


def _most(context: Mapping[str, Any]) -> frames.Most:
    """How long a frame may be that this task sends."""
    columns = context.get("output_schema") or []
    several = _SEVERAL_ROWS + sum(_DESCRIBED + 6 * len(column["name"]) for column in columns)
    # a model's outputs are not cut: each frame answers one chunk of rows
    whole = bool(context["script"]["module"])

    def most(kind: int, count: int) -> int:
        if kind == frames.ADD_ROWS and count != 1:
            return tables.MOST_BYTES + several
        rows = kind in (frames.EXAMPLES, frames.COLUMNS)
        return several if rows and count != 1 and not whole else frames.FROM_WORKER[kind]

    return most


def wait_for_exits(sessions: Sequence[TaskSession], seconds: float) -> list[TaskSession]:
    """Give processes up to so many seconds, all together, to end; returns those that have not."""
    deadline = time.monotonic() + seconds
    return [s for s in sessions if s.process.wait(max(0.0, deadline - time.monotonic())) is None]
