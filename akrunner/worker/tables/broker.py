"""The task's end of the requests for tables: sends requests to the host, takes its answers, and writes rows into spool files.

::

    any thread     look, read, more, write, put, close, take_work   -> sends a frame, and waits for the answer
    link's thread  take(frame)                                      <- never waits for the script, only for the disk

The rows of one (table, columns, range) are requested once, however many readers there are and however often they read. The host
sends as many chunks ahead of the furthest reader as there are credits. Rows stay in the spool until the task ends.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from akrunner.wire import failure, frames, messages, tables
from akrunner.worker.tables.errors import TableError, failed

_BUFFER = 1 << 20
#: the header of each chunk in a spool: its bytes and its rows
CHUNK = struct.Struct("<QQ")
_REQUEST = struct.Struct("<Q")
#: seconds that `finish` waits, so that threads and processes of the script that still write get an error, and are reported
_LINGER = 0.25
#: the name of the threads that answer the task's other processes
CHILDREN = "akrunner-tables-child"
#: the error of a writer that another one has replaced
REPLACED = "table %s: its slice was opened again, which drops what this writer has written; it takes no more rows"


class _Spool(object):
    """A file with the rows of a request.

    Attributes:
        path: the file's path.
        request: the request's number.
        chunks, rows, size: chunks, rows and bytes so far.
        granted: how many chunks the host may send.
        whole: whether all rows have come.
        closed: whether the host has been told that the request is closed.
        error: type and message of the error that has ended the request, None if there is none.
    """

    def __init__(self, path: str, request: int) -> None:
        self.path = path
        self.request = request
        self.chunks = self.rows = self.size = 0
        self.granted = tables.CREDITS
        self.whole = False
        self.closed = False
        self.error: Optional[Tuple[str, str]] = None


class _Writing(object):
    """A table that is being written.

    Attributes:
        table: the table's name.
        slice: the writer's slice_id.
        process: the process that has opened the table, as `asking.process` names it.
        columns: the table's columns, None until the host has opened it.
        credits: how many frames of rows may be sent now.
        rows: how many rows have been sent.
        closing: whether the writer is closed.
        done: whether the host has confirmed all rows.
        ended: whether the script's end closes the writer, and not the process that has opened it.
        replaces: the earlier requests that had the same slice.
        replaced: whether a later request has the slice now.
        error: type and message of the host's error, None if there is none.
    """

    def __init__(self, table: str, slice_id: int, process: str) -> None:
        self.table, self.slice, self.process = table, slice_id, process
        self.ended = False
        self.columns: Optional[List[Dict[str, Any]]] = None
        self.replaces: List[int] = []
        self.replaced = False
        self.credits = self.rows = 0
        self.closing = self.done = False
        self.error: Optional[Tuple[str, str]] = None


class Broker(object):
    """Asks the host for tables. Safe for several threads.

    Args:
        writer: sends frames to the host.
        folder: the directory for spools, used by this task alone; made when it is needed.
    """

    def __init__(self, writer: Any, folder: str) -> None:
        self._writer = writer
        self._folder = folder
        self._changed = threading.Condition()
        self._number = 0
        self._answers: Dict[int, Any] = {}
        self._looks: Dict[str, Dict[str, Any]] = {}
        self._spools: Dict[Any, _Spool] = {}
        self._reads: Dict[int, _Spool] = {}
        self._writes: Dict[int, _Writing] = {}
        self._over = False
        #: what those who ask are told when the task is over
        self._why = "the task is over: tables are read and written until the script ends"
        #: whether the script has ended: no table may be opened for writing then
        self._ending = False
        self._buffer = memoryview(bytearray(_BUFFER))
        # closes this process's writers when the script has ended; set by `install`
        self.close_writers: Callable[[], bool] = lambda: False
        #: sentences that the user should read
        self.notes: List[str] = []
        self._late: List[str] = []

    # -- asked by scripts

    def look(self, table: str) -> Dict[str, Any]:
        """Return {"columns", "start", "rows"} of a table, or of the range in its name.

        Raises:
            TableError: the host refuses it.
        """
        with self._changed:
            known = self._looks.get(table)
        if known is None:
            told: Dict[str, Any] = self._ask(frames.LOOK_TABLE, lambda number: messages.LookTable(request=number, table=table))
            with self._changed:
                known = self._looks[table] = told
        return known

    def read(self, table: str, columns: Sequence[str], start: int, stop: int) -> Dict[str, Any]:
        """Request the rows of a range, and return the {"spool", "path"} of their spool. Args: columns: names, as a list."""
        key = (table.partition("?")[0], tuple(columns), start, stop)
        with self._changed:
            self._check()
            spool = self._spools.get(key)
            if spool is None or spool.error is not None:
                number = self._next()
                if not os.path.isdir(self._folder):
                    os.mkdir(self._folder, 0o700)
                path = os.path.join(self._folder, "rows-%d" % number)
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                spool = self._spools[key] = self._reads[number] = _Spool(path, number)
                asked = messages.ReadTable(
                    request=number, table=key[0], columns=list(columns), start=start, stop=stop, credits=tables.CREDITS
                )
                self._writer.write_json(frames.READ_TABLE, asked)
        return {"spool": spool.request, "path": spool.path}

    def more(self, spool: int, chunk: int) -> Dict[str, Any]:
        """Wait until a chunk of a spool has come, or no more will.

        Returns:
            {"chunks": how many have come, "whole": whether these are all}.
        Raises:
            TableError: the host cannot send the rows.
            OSError: they cannot be spooled.
        """
        with self._changed:
            of = self._reads[spool]
            while True:
                if of.error is not None:
                    raise failed(*of.error)
                self._grant(of, chunk)
                if of.chunks > chunk or of.whole:
                    return {"chunks": of.chunks, "whole": of.whole}
                self._check()
                self._changed.wait()

    def _grant(self, spool: _Spool, chunk: int) -> None:
        """Let the host send the chunks that a reader of this chunk is going to need next."""
        wanted = min(chunk + 1, spool.chunks) + tables.CREDITS - spool.granted
        if (
            not spool.whole
            and not self._over
            and wanted > 0
            and (wanted >= tables.CREDITS // 2 or spool.chunks == spool.granted)
        ):
            spool.granted += wanted
            self._writer.write_json(frames.READ_MORE, messages.More(request=spool.request, chunks=wanted))

    def write(self, table: str, slice_id: int, process: str) -> Dict[str, Any]:
        """Open a table for writing, which empties it.

        Args:
            table: the table's name.
            slice_id: the writer's slice.
            process: the process that writes, as `asking.process` names it.
        Returns:
            {"writing": the request's number, "columns": the table's, "replaces": earlier requests that had the slice}.
        Raises:
            TableError: the table may not be written.
        """
        with self._changed:
            self._check()
            if self._ending:
                self.late(table, "rows")
                raise TableError("table %s: the script has ended, and no table is opened to write any more" % table)
            number = self._next()
            writing = self._writes[number] = _Writing(table, slice_id, process)
            asked = messages.WriteTable(request=number, table=table, slice=slice_id, process=process)
            self._writer.write_json(frames.WRITE_TABLE, asked)
            while writing.columns is None:
                self._raise(writing)
                self._changed.wait()
            for earlier in writing.replaces:
                self._writes[earlier].replaced = True
                self._close_writing(earlier)
            self._changed.notify_all()
            return {"writing": number, "columns": writing.columns, "replaces": writing.replaces}

    def put(self, writing: int, rows: int, payload: List[Any]) -> None:
        """Send rows to the host.

        Args:
            writing: the request's number.
            rows: the number of rows.
            payload: the buffers of the columns.
        Raises:
            TableError: the table has refused rows, or the writer is closed.
        """
        of = self._writes[writing]
        with self._changed:
            while of.credits <= 0 and not of.closing:
                self._raise(of)
                self._changed.wait()
            self._raise(of)
            if of.replaced:
                raise failed("TableUseError", REPLACED % of.table)
            if of.closing:
                if of.ended:
                    self.late(of.table, "%d rows more" % rows)
                raise TableError("table %s: its writer is closed" % of.table)
            of.credits -= 1
            of.rows += rows
            self._writer.write(frames.ADD_ROWS, tables.with_request(writing, payload), rows)

    def close(self, writing: int) -> None:
        """Close a writer, and wait until the host has confirmed all its rows. Raises: TableError: the host has refused some."""
        of = self._writes[writing]
        with self._changed:
            self._close_writing(writing)
            while not of.done:
                self._raise(of)
                self._check()
                self._changed.wait()

    def _close_writing(self, number: int) -> None:
        of = self._writes[number]
        if not of.closing and of.error is None:
            of.closing = True
            self._writer.write_json(frames.CLOSE_TABLE, messages.CloseTable(request=number, rows=of.rows, whole=True))

    def take_work(
        self, queue: str, works: List[str], digest: str, epochs: Optional[int], shuffle: bool, seed: Optional[int],
        slices: Optional[int],
    ) -> Optional[str]:  # fmt: skip
        """Return the next work of a queue that all tasks share, None if there is no more. Args: as in `messages.TakeWork`."""

        def made(number: int) -> messages.TakeWork:
            return messages.TakeWork(
                request=number,
                queue=queue,
                works=works,
                digest=digest,
                epochs=epochs,
                shuffle=shuffle,
                seed=seed,
                slices=slices,
            )

        answer: messages.Work = self._ask(frames.TAKE_WORK, made)
        return answer["work"]

    def _ask(self, kind: int, made: Callable[[int], Any]) -> Any:
        """Ask, and return the host's answer. Args: made: makes the message, given the number of its request."""
        with self._changed:
            self._check()
            number = self._next()
            self._answers[number] = None
            self._writer.write_json(kind, made(number))
            while self._answers[number] is None:
                self._check()
                self._changed.wait()
            answer = self._answers.pop(number)
        if isinstance(answer, tuple):
            raise failed(*answer)
        return answer

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _check(self) -> None:
        if self._over:
            raise TableError(self._why)

    def _raise(self, writing: _Writing) -> None:
        if writing.error is not None:
            raise failed(*writing.error)
        if not writing.closing:
            self._check()

    # -- what the host says

    def take(self, reader: frames.FrameReader, kind: int, count: int, size: int) -> None:
        """Take a frame from the host whose header has been read. Raises: WireError: it does not answer a request."""
        if kind == frames.TABLE_ROWS:
            self._spool(reader, count, size)
            return
        body = messages.read(frames.Frame(kind, count, reader.read_payload(size)))
        number = body["request"]
        with self._changed:
            if number in self._answers:
                self._answers[number] = (body["type"], body["message"]) if kind == frames.TABLE_FAILED else body
            elif number in self._reads:
                self._told_reading(self._reads[number], kind, body)
            elif number in self._writes:
                self._told_writing(self._writes[number], kind, body)
            else:
                raise frames.WireError("a %s frame answers the request %d, which is none" % (frames.NAMES[kind], number))
            self._changed.notify_all()

    def _told_reading(self, spool: _Spool, kind: int, body: Dict[str, Any]) -> None:
        if kind == frames.TABLE_FAILED:
            spool.error = (body["type"], body["message"])
            return
        if kind != frames.TABLE_DONE:
            raise frames.WireError("a %s frame is no answer to a reader" % frames.NAMES[kind])
        if spool.error is None and body["rows"] != spool.rows:
            spool.error = ("TableError", "%d rows of a table were sent, %d arrived" % (body["rows"], spool.rows))
        spool.whole = True
        self._close_reading(spool)

    def _told_writing(self, writing: _Writing, kind: int, body: Dict[str, Any]) -> None:
        if kind == frames.TABLE_OPENED and writing.columns is None:
            if any(number not in self._writes for number in body["replaces"]):
                raise frames.WireError("a writer replaces the requests %s, which are none" % body["replaces"])
            writing.columns, writing.credits, writing.replaces = body["columns"], body["credits"], body["replaces"]
        elif kind == frames.WRITE_MORE:
            writing.credits += body["chunks"]
        elif kind == frames.TABLE_DONE and writing.closing:
            writing.done = True
        elif kind == frames.TABLE_FAILED:
            writing.error = (body["type"], body["message"])
        else:
            raise frames.WireError("a %s frame is no answer to a writer" % frames.NAMES[kind])

    def _spool(self, reader: frames.FrameReader, rows: int, size: int) -> None:
        """Copy a chunk from the pipe into its spool."""
        if size < _REQUEST.size:
            raise frames.WireError("a table rows frame of %d bytes names no request" % size)
        (number,) = _REQUEST.unpack(reader.read_payload(_REQUEST.size))
        size -= _REQUEST.size
        spool = self._reads.get(number)
        if spool is None or spool.whole or spool.chunks >= spool.granted:
            raise frames.WireError("rows of table request %d, which has not asked for them" % number)
        error = self._append(spool, reader, rows, size)
        with self._changed:
            if error is not None and spool.error is None:
                spool.error = ("OSError", "%s%s: %r" % (failure.SPOOL_FAILED, error.strerror, spool.path))
            spool.chunks += 1
            spool.rows += rows
            spool.size += CHUNK.size + size
            self._changed.notify_all()

    def _append(self, spool: _Spool, reader: frames.FrameReader, rows: int, size: int) -> Optional[OSError]:
        """Append a chunk to a spool. Return the disk's error, or None. The frame is read to its end either way."""
        out = -1
        error: Any = spool.error
        if error is None:
            try:
                out = os.open(spool.path, os.O_WRONLY)
                os.lseek(out, spool.size, os.SEEK_SET)
                _write(out, CHUNK.pack(size, rows))
            except OSError as e:
                error = e
        while size:
            part = self._buffer[: min(size, _BUFFER)]
            reader.read_into(part)
            size -= len(part)
            if error is None:
                try:
                    _write(out, part)
                except OSError as e:
                    error = e
        if out >= 0:
            if error is not None:
                # free the space of this spool: on a full disk, others need it
                os.ftruncate(out, 0)
            os.close(out)
        return error if isinstance(error, OSError) else None

    # -- the end

    def _close_reading(self, spool: _Spool) -> None:
        if not spool.closed:
            spool.closed = True
            told = messages.CloseTable(request=spool.request, rows=spool.rows, whole=spool.whole)
            self._writer.write_json(frames.CLOSE_TABLE, told)

    def finish(self) -> None:
        """Close the writers that the script has left open when it ended, and accept no further request.

        Waits until the host has confirmed every row, so it must not be called in the thread that reads the host's frames.

        Raises:
            TableError: rows were refused; or a process has not closed its writer and still runs.
        """
        with self._changed:
            self._ending = True
            for writing in self._writes.values():
                writing.ended = not writing.closing
        # a child process that has asked for something keeps its connection, and so a thread here
        others = self.close_writers() or any(one.name == CHILDREN for one in threading.enumerate())
        unclosed = []
        for number, writing in list(self._writes.items()):
            if writing.closing or writing.error is not None or writing.columns is None:
                continue
            unclosed.append(writing)
            others = others or _lives(writing.process)
            self.close(number)
        with self._changed:
            # a writer whose slice was opened again is closed already; the host may still have rows of it to take
            while any(writing.closing and not writing.done and writing.error is None for writing in self._writes.values()):
                self._check()
                self._changed.wait()
        if others:
            # a thread or process that still writes gets an error now; without the wait, only that thread would know of the
            # lost rows
            time.sleep(_LINGER)
        with self._changed:
            self._over = True
            if self._late:
                raise TableError(self._late[0])
            for writing in unclosed:
                if _lives(writing.process):
                    raise TableError(_unclosed(writing, True))
                self.notes.append(_unclosed(writing, False))
            for spool in self._reads.values():
                if spool.error is None:
                    self._close_reading(spool)
            self._changed.notify_all()

    def late(self, table: str, rows: str) -> None:
        """Note that rows are lost: a part of the script tried to write them after its end. Args: rows: how many, in words."""
        self._late.append(
            "table %s: a thread or process that the script had not waited for tried to write %s when the script had ended, "
            "and they are lost: wait for it (join) before the script ends" % (table, rows)
        )

    def end(self, why: Optional[str] = None) -> None:
        """End all waiting: the task has failed, or is over.

        Args:
            why: what those who wait are told, if the host's answers have broken off; None if the task is over.
        """
        with self._changed:
            self._over = True
            self._why = why or self._why
            self._changed.notify_all()


def _lives(process: str) -> bool:
    """Whether a process is alive. Args: process: as `asking.process` names it."""
    try:
        with open("/proc/%s/stat" % process.partition(":")[0], "rb") as f:
            return f.read().rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def _unclosed(writing: _Writing, there: bool) -> str:
    """Return a sentence about a writer that its process has not closed. Args: there: whether that process still runs."""
    number = writing.process.partition(":")[0]
    its = "its TableWriter(%r, slice_id=%d)" % (writing.table, writing.slice)
    if there:
        return (
            "table %s: process %s still ran when the script had ended, and had not closed %s, of which %d rows had come: "
            "close it there (with ... as writer), and wait for the process (join) before the script ends"
            % (writing.table, number, its, writing.rows)
        )
    return (
        "process %s ended without closing %s, of which %d rows are in the table: they are all of them only if it was not "
        "killed in the midst; close it there (with ... as writer)" % (number, its, writing.rows)
    )


def _write(fd: int, data: Union[bytes, bytearray, memoryview]) -> None:
    view = memoryview(data)
    while len(view):
        view = view[os.write(fd, view) :]
