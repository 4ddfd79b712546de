"""The host's side of one worker process: handshake, rows to the worker, frames from the worker, the end.

::

    feeder thread   ->  send_rows / end_of_rows / start   ->  pipe
    reader thread   <-  events on one queue               <-  pipe
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from akrunner.errors import ProtocolError
from akrunner.launch import events as said
from akrunner.launch.events import Event
from akrunner.launch.logs import LogPump
from akrunner.launch.process import TaskProcess
from akrunner.spec import TaskSpec
from akrunner.wire import PROTOCOL_VERSION, frames, messages, tables

#: how many frames, of all tasks together, may wait for the host; when there are more, the pipes fill and the scripts wait
EVENTS = 64


class Tables(Protocol):
    """The part of the host that answers a task's questions about tables (`akrunner.engines.conversation.Conversation`)."""

    def take(self, frame: frames.Frame) -> None:
        """Take one frame of the task; never waits. Raises: WireError, ProtocolError: the frame makes no sense."""
        ...


#: a kind of frame -> the event that it brings, whose `body` is declared as the frame's (a test compares both)
_EVENTS: Mapping[int, Callable[[TaskSpec, Any], Event]] = {
    frames.OPENED: said.Opened,
    frames.READY: said.Ready,
    frames.ENTERED: said.Entered,
    frames.REPORT: said.Report,
    frames.REACHED: said.Reached,
    frames.CLOSED: said.Closed,
    frames.REFUSED: said.Refused,
    frames.SERVING: said.Serving,
    frames.PASSED: said.Passed,
}


class TaskSession:
    """The host's side of one task's process.

    Attributes:
        task: the task.
        process: its worker process, which may be on another machine.
        log: the reader of its log.
        writer: the writer of frames to the worker.
        rows_sent: how many rows were sent so far.
        script: the file that the user named.
        hello: the worker's first message; {} until it has come.
        left: the worker's last message, about what its script left behind; None until it has come.
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
        """Args: asked: makes the object that answers the task's questions about tables; None: the job has no tables."""
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
        """Wait until the context was sent, so that rows may follow it. Returns: whether it was sent in that time."""
        return self._greeted.wait(seconds)

    def send_rows(self, payload: list[Any], rows: int, marks: memoryview | None = None) -> None:
        """Send a chunk of rows, in the form that the spool file has. Blocks while the worker is behind.

        Args:
            marks: one byte for each row, the number of its split; None: the rows are not split.
        Raises:
            OSError: the worker is gone.
        """
        if marks is not None:
            self.writer.write(frames.MARKS, [marks], rows)
        self.writer.write(frames.DATA, payload, rows)
        self.rows_sent += rows

    def stream_rows(self, payload: list[Any], rows: int) -> None:
        """Send a chunk of a stream: uint32 lengths and the Examples end to end, or columns. Blocks and raises as
        `send_rows`.
        """
        self.writer.write(frames.ROWS, payload, rows)
        self.rows_sent += rows

    def barrier(self, number: int, save: bool, place: Mapping[str, Any]) -> None:
        """Send a barrier: the task answers it once it has answered all rows before it. Blocks and raises as `send_rows`.

        Args:
            number: the barrier's number; each is greater than the one before.
            save: whether a script that saves by `task_config.checkpoint()` saves here.
            place: the place in the stream behind these rows, as JSON values.
        """
        self.writer.write_json(frames.BARRIER, messages.Barrier(save=save, place=dict(place)), number)

    def was_given(self, rows: int, size: int) -> None:
        """Note how many rows and bytes the worker has got so far from another sender than this host."""
        self.rows_sent = rows
        self.writer.bytes = size

    def end_of_rows(self, total_rows: int, shares: Sequence[int], splits: Sequence[Sequence[int]] = ()) -> None:
        """Tell the worker that no more rows come, and how many rows it got.

        Args:
            total_rows: how many rows all workers got together.
            shares: how many rows each worker got.
            splits: for each worker, how many rows of each split it got; (): the rows are not split.
        """
        body = messages.End(rows=self.rows_sent, total_rows=total_rows, shares=list(shares), splits=list(map(list, splits)))
        self.writer.write_json(frames.END, body)

    def start(self) -> None:
        """Tell the task that every task is ready, so that it may call `main`."""
        self.writer.write_json(frames.START, messages.Empty())

    def stop(self) -> None:
        """Tell the task that the job needs it no longer and that it may end. Does nothing if the worker has gone."""
        try:
            self.writer.write_json(frames.STOP, messages.Empty())
        except OSError:
            pass

    # -- from the worker

    def deafen(self) -> None:
        """Stop posting events, because they are no longer read: the reader thread drops all frames and never waits for room in
        the queue.
        """
        self._deaf.set()

    def close(self, until: float) -> None:
        """Let the log and the reader thread finish, and close the pipes. Call it after the process has ended.

        Args: until: the time (of `time.monotonic`) up to which the threads are waited for.
        """
        self.deafen()
        self.log.join(max(0.0, until - time.monotonic()))
        self._thread.join(max(0.0, until - time.monotonic()))
        self.writer.close()
        # a reader thread that still waits closes the pipe itself when it wakes
        self._closed.set()
        if not self._thread.is_alive():
            self._reader.close()

    def post(self, event: Event) -> None:
        """Put an event on the queue; waits for room in it."""
        while not self._deaf.is_set():
            try:
                self._events.put(event, timeout=0.1)
                return
            except queue.Full:
                continue

    @property
    def error(self) -> BaseException | None:
        """The exception that ended one of this session's threads in the host; None while all is well."""
        return self._failed or self.log.error

    def _read(self) -> None:
        try:
            self._attend()
            self.post(said.Ended(self.task))
        except BaseException as e:
            # the supervisor sees the error, and what the task does after it no longer matters
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
            # a broken connection to another machine is like the end of a pipe, but the process may never report its exit
            self.process.abandon()
        except (ProtocolError, frames.WireError) as e:
            self.post(said.Broken(self.task, e))

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
            pass  # the process has ended; the reader finds out how

    def _take_asked(self, frame: frames.Frame) -> None:
        """Take a frame about tables. A thread that the script has left behind may still ask after the task has closed; it gets
        no answer.
        """
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
        # a thread that the script has left behind may still report after the task has closed
        if (frames.CLOSED in self._said and frame.kind not in (frames.REPORT, frames.REACHED, frames.LEFT)) or (
            frame.kind in _ONCE and frame.kind in self._said
        ):
            raise ProtocolError(f"it said {name} after {'closed' if frames.CLOSED in self._said else name}")
        self._said.add(frame.kind)
        if frame.kind in (frames.EXAMPLES, frames.COLUMNS):
            self.post(said.Output(self.task, frame))
            return
        if frame.kind == frames.LEFT:
            # no event is posted, because the job may be over by now
            left: messages.Left = messages.read(frame)
            self.left = list(left["notes"])
            return
        if frame.kind in (frames.ANSWERED, frames.DUE):
            self.post((said.Answered if frame.kind == frames.ANSWERED else said.Due)(self.task, frame.count))
            return
        if frame.kind not in _EVENTS:
            raise ProtocolError(f"a worker process does not send {name}")
        body = messages.read(frame)
        if frame.kind == frames.CLOSED and body["ok"] and frames.ENTERED not in self._said:
            raise ProtocolError("it was done before it had entered main()")
        self.post(_EVENTS[frame.kind](self.task, body))


#: the frames that a worker sends only once, and those that it sends only after another frame
_ONCE = {frames.OPENED, frames.READY, frames.ENTERED, frames.LEFT}
_AFTER = {
    frames.READY: frames.OPENED,
    frames.ENTERED: frames.READY,
    frames.SERVING: frames.ENTERED,
    frames.EXAMPLES: frames.ENTERED,
    frames.COLUMNS: frames.ENTERED,
    frames.PASSED: frames.ENTERED,
    frames.ANSWERED: frames.ENTERED,
    frames.DUE: frames.ENTERED,
    frames.REACHED: frames.ENTERED,
    frames.LEFT: frames.CLOSED,
}
#: the bytes of a frame of several rows, several times what an output writer sends at once; and the bytes that describe each of
#: its columns
_SEVERAL_ROWS = 64 << 20
_DESCRIBED = 1 << 10


def _most(context: Mapping[str, Any]) -> frames.Most:
    """Return a function that says how many bytes a frame of this task may have."""
    columns = context.get("output_schema") or []
    several = _SEVERAL_ROWS + sum(_DESCRIBED + 6 * len(column["name"]) for column in columns)
    # a model's outputs are not split over frames: each frame answers one chunk of rows
    whole = bool(context["script"]["module"])

    def most(kind: int, count: int) -> int:
        if kind == frames.ADD_ROWS and count != 1:
            return tables.MOST_BYTES + several
        rows = kind in (frames.EXAMPLES, frames.COLUMNS)
        return several if rows and count != 1 and not whole else frames.FROM_AGENT[kind]

    return most


def wait_for_exits(sessions: Sequence[TaskSession], seconds: float) -> list[TaskSession]:
    """Wait for processes to end, for at most `seconds` for all of them together.

    Returns:
        The sessions whose processes have not ended.
    """
    deadline = time.monotonic() + seconds
    return [s for s in sessions if s.process.wait(max(0.0, deadline - time.monotonic())) is None]


def close_all(sessions: Sequence[TaskSession], seconds: float) -> None:
    """Close every session, also if the closing of one raises. Args: seconds: how long their threads, all together, are waited
    for at most."""
    until = time.monotonic() + seconds
    for session in sessions:
        # who is waited for last has no time left, and its log is complete nevertheless
        session.log.ended()
    with contextlib.ExitStack() as last_first:
        for session in reversed(sessions):
            last_first.callback(session.close, until)
