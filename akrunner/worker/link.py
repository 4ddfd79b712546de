"""The worker's end of the two pipes.

::

    hello(version, pid) ->            <- context(JSON)
    opened ->                         <- data..., end(count)      into the spool file
    ready(rows) ->                    <- start
    entered ->  examples/columns... ->  closed(ok | failure)
                                      <- stop: the job no longer needs this task (a task that stays gets it after closed)
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import select
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, NoReturn, Optional, Tuple

from akrunner.wire import PROTOCOL_VERSION, ending, frames, messages, tables
from akrunner.wire.context import Context
from akrunner.wire.context import read as read_context
from akrunner.wire.shapes import escaped
from akrunner.worker import forked, splits

if TYPE_CHECKING:
    from akrunner.worker.forked import Refused
    from akrunner.worker.stream import RowStream
    from akrunner.worker.tables.broker import Broker

_BUFFER = 1 << 20
#: seconds the host may take to die after its pipes have ended
_DYING = 1.0
#: the job's marks and its host, from the environment before the script could change it; a warm worker has had another mark
#: before
_told: Dict[str, Any] = {"marks": [], "host": {}}
_going = threading.Lock()


#: kind of frame -> what a forked process has tried that sends it; with any other kind it would speak for the whole task
_TRIED = {
    frames.EXAMPLES: forked.ROWS,
    frames.COLUMNS: forked.ROWS,
    frames.REPORT: forked.REPORTS,
    frames.REACHED: forked.REPORTS,
}
for _kind in (
    frames.LOOK_TABLE, frames.READ_TABLE, frames.WRITE_TABLE, frames.CLOSE_TABLE, frames.TAKE_WORK, frames.READ_MORE, frames.ADD_ROWS,
):  # fmt: skip
    _TRIED[_kind] = forked.TABLES


class Writer(frames.FrameWriter):
    """Writes frames to the host, from the task's own process only: a process that the script has forked has the pipe, too."""

    #: in a forked process, where its attempts are recorded; None in the task's own process
    refused: Optional[Refused] = None

    def write(self, kind: int, payload: Any = b"", count: int = 0) -> None:
        """Write as `FrameWriter.write` does. Raises: RuntimeError: this is a forked process."""
        if self.refused is not None:
            self.refused.note(_TRIED.get(kind, forked.ENDING))
            raise RuntimeError(forked.WHY)
        super(Writer, self).write(kind, payload, count)


class Link(object):
    """The connection to the host: it does the handshake, spools the rows, and notices when the host dies.

    Attributes:
        writer: writes frames to the host.
        context: the task's context, once `handshake` has returned; None before.
        stopped: set when the host has said that the job no longer needs this task.
        on_stop: called then, by the thread that reads the pipe; None for none.
        tables: the broker of a job that has tables (`akrunner.worker.tables.broker.Broker`), which takes the frames that answer
            its requests; None for none.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        remember_host(more=True)
        # programs that the script starts must not hold the pipes open
        os.set_inheritable(read_fd, False)
        os.set_inheritable(write_fd, False)
        self._reader = frames.FrameReader(read_fd, frames.TO_WORKER)
        self.writer = Writer(write_fd)
        self.context: Optional[Context] = None
        self.stopped = threading.Event()
        self.on_stop: Optional[Callable[[], Any]] = None
        self.tables: Optional[Broker] = None
        self._spooled = threading.Event()
        self._started = threading.Event()
        self._result: Tuple[int, messages.End] = (0, messages.End(rows=0, total_rows=0, shares=[], splits=[]))
        self._error: Optional[BaseException] = None

    def handshake(self) -> Context:
        """Say hello to the host and return the context that it answers with."""
        self.writer.write_json(
            frames.HELLO,
            messages.Hello(
                version=PROTOCOL_VERSION,
                pid=os.getpid(),
                python="%d.%d.%d" % sys.version_info[:3],
                executable=escaped(sys.executable),
            ),
        )
        frame = self._expect(frames.CONTEXT)
        self.context = told = read_context(frame.json())
        return told

    def spool(self, path: str, split: bool = False) -> Tuple[int, messages.End]:
        """Write the rows to the spool file as they arrive.

        Args:
            path: the file.
            split: whether rows have splits, which are written to a second file.
        Returns:
            (number of rows, the END frame's {"rows", "total_rows", "shares", "splits"}).
        Raises:
            WireError: the rows ended without END, or its count is not the number that arrived.
        """
        arrived = {frames.DATA: 0}
        # few rows touch few of its pages
        buffer = memoryview(mmap.mmap(-1, _BUFFER))
        with contextlib.ExitStack() as stack:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            files = {frames.DATA: stack.enter_context(os.fdopen(descriptor, "wb", 0))}
            if split:
                files[frames.MARKS] = stack.enter_context(os.fdopen(splits.make_file(path), "wb", 0))
                arrived[frames.MARKS] = 0
            while True:
                header = self._header()
                if header is None:
                    host_is_gone()
                kind, count, size = header
                if kind not in files:
                    break
                if kind == frames.MARKS and size != count:
                    raise frames.WireError("%d bytes for the splits of %d rows" % (size, count))
                while size:
                    part = buffer[: min(size, _BUFFER)]
                    self._reader.read_into(part)
                    size -= len(part)
                    while len(part):
                        part = part[files[kind].write(part) :]
                arrived[kind] += count
        rows = arrived[frames.DATA]
        if kind != frames.END:
            raise frames.WireError("expected data or end, got %s" % frames.NAMES[kind])
        end: messages.End = messages.read(frames.Frame(kind, count, self._reader.read_payload(size)))
        if end["rows"] != rows:
            raise frames.WireError("%d rows were sent, %d arrived" % (end["rows"], rows))
        if split and arrived[frames.MARKS] != rows:
            raise frames.WireError("%d rows arrived, and the splits of %d" % (rows, arrived[frames.MARKS]))
        return rows, end

    def serve(self, path: str, split: bool = False) -> None:
        """Start the thread that reads the pipe as long as this process lives.

        First come the rows, into the file `path`, then START, then perhaps STOP. The end of the pipe means that the host is
        dead.

        Args:
            path, split: as for `spool`.
        """
        thread = threading.Thread(target=self._serve, args=(path, split), name="akrunner-reader", daemon=True)
        thread.start()

    def serve_stream(self, stream: RowStream) -> None:
        """Do as `serve`, for a stream: first comes START, then the rows, which go to `stream` as they arrive."""
        thread = threading.Thread(target=self._serve_stream, args=(stream,), name="akrunner-reader", daemon=True)
        thread.start()

    def _serve_stream(self, stream: RowStream) -> None:
        try:
            self._expect(frames.START)
            self._started.set()
            rows = 0
            while True:
                frame = self._frame()
                if frame is not None and frame.kind == frames.STOP:
                    self._stop()
                    continue
                if frame is not None and frame.kind == frames.BARRIER:
                    told: messages.Barrier = messages.read(frame) if frame.payload else messages.Barrier(save=False, place={})
                    stream.barrier(frame.count, self.check_host, told["save"], told["place"])
                    continue
                if frame is None or frame.kind != frames.ROWS:
                    break
                stream.put(frame.count, frame.payload, self.check_host)
                rows += frame.count
            if frame is None:
                host_is_gone()
            if frame.kind != frames.END or messages.read(frame)["rows"] != rows:
                raise frames.WireError("the stream ended with %s after %d rows" % (frames.NAMES[frame.kind], rows))
            stream.end(self.check_host)
            self._wait_for_stop()
        except BaseException as e:  # half a stream must not pass for a whole one
            _say("the rows from the host broke off", e)
        host_is_gone()

    def check_host(self) -> None:
        """Return if the host's end of the pipe is open; else end this process (`host_is_gone`)."""
        poll = select.poll()
        poll.register(self._reader.fd, select.POLLHUP)
        if any(event & select.POLLHUP for _, event in poll.poll(0)):
            host_is_gone()

    def wait_for_rows(self) -> Tuple[int, messages.End]:
        """Block until all rows are in the spool file. Returns and raises the same as `spool`."""
        self._spooled.wait()
        if self._error is not None:
            raise self._error
        return self._result

    def wait_for_start(self) -> None:
        """Block until the host says START, which it does when every task of the job is ready."""
        self._started.wait()
        if self._error is not None:
            raise self._error

    def _serve(self, path: str, split: bool) -> None:
        try:
            self._result = self.spool(path, split)
            self._spooled.set()
            self._expect(frames.START)
            self._started.set()
            self._wait_for_stop()
        except BaseException as e:
            if self._started.is_set():
                # no thread waits for this one any more, and none but this one would notice that the host is dead
                _say("what the host says is not understood", e)
                host_is_gone()
            # the waiting thread raises it
            self._error = e
            if self.tables is not None:
                # a script that asks for tables while it is imported would wait for ever: no thread reads the pipe any more
                self.tables.end("the rows from the host broke off: %s: %s" % (type(e).__name__, e))
            self._spooled.set()
            self._started.set()
            return
        host_is_gone()

    def _wait_for_stop(self) -> None:
        """Read frames until the pipe ends; handle STOP."""
        while True:
            frame = self._frame()
            if frame is None:
                return
            if frame.kind == frames.STOP:
                self._stop()

    def _stop(self) -> None:
        self.stopped.set()
        if self.on_stop is not None:
            self.on_stop()

    def _header(self) -> Optional[Tuple[int, int, int]]:
        """Return the header of the next frame, None at the pipe's end; frames for the tables go to the broker before."""
        while True:
            header = self._reader.read_header()
            if header is None or header[0] not in tables.ANSWERS:
                return header
            if self.tables is None:
                raise frames.WireError("a %s frame, and the job has no tables" % frames.NAMES[header[0]])
            self.tables.take(self._reader, *header)

    def _frame(self) -> Optional[frames.Frame]:
        """Return the next frame, as `_header` but with its payload."""
        header = self._header()
        return None if header is None else frames.Frame(header[0], header[1], self._reader.read_payload(header[2]))

    def _expect(self, kind: int) -> frames.Frame:
        frame = self._frame()
        if frame is None:
            host_is_gone()
        if frame.kind != kind:
            raise frames.WireError("expected %s, got %s" % (frames.NAMES[kind], frames.NAMES[frame.kind]))
        return frame


def _say(what: str, error: BaseException) -> None:
    sys.stderr.write("akrunner: %s: %s: %s\n" % (what, type(error).__name__, error))
    sys.stderr.flush()


def remember_host(more: bool = False) -> None:
    """Remember the job's mark and the host from the environment.

    Args:
        more: whether to keep the marks remembered before: a process that waited for its job still carries an earlier one.
    """
    _told["marks"] = _told["marks"] * more + [mark for mark in [os.environ.get(ending.MARK)] if mark]
    _told["host"] = json.loads(os.environ.get(ending.HOST, "{}"))


def host_is_gone() -> NoReturn:
    """End this process and its whole group, because the pipe from the host has ended.

    The host's guard does that, too, and removes the job's files, but it may have been killed with the host. So the first task
    that finds the host dead ends the others and removes the files itself.
    """
    _going.acquire()  # never released: one thread does the work, the others wait for the process to end
    try:
        _clean_up()
    finally:
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)


def _clean_up() -> None:
    """Do what the guard of a dead host does; nothing if the host is alive and has only closed the pipe."""
    host = _told["host"]
    deadline = time.monotonic() + _DYING
    while host and ending.started(host["pid"]) == host["start"] and time.monotonic() < deadline:
        time.sleep(0.01)
    if host and ending.started(host["pid"]) != host["start"]:
        ending.end((), _told["marks"])
        if host["remove"]:
            ending.remove(host["remove"])
