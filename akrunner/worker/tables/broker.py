"""The task's end of what is asked of the host: requests out, answers in, rows into spool files.

::

    any thread     look, read, more, write, put, close, take_work   -> a frame, and waits for the answer
    link's thread  take(frame)                                      <- never waits for a script, only for the disk

Rows of one (table, columns, range) are asked for once, however many readers there are and however often they read. The host sends as many
chunks ahead of the reader that is furthest as there are credits; what has come stays in the spool until the task ends.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from akrunner.wire import frames, messages, tables
from akrunner.worker.tables.errors import TableError, failed

if TYPE_CHECKING:
    pass

_BUFFER = 1 << 20
#: in front of each chunk in a spool: its bytes, its rows
CHUNK = struct.Struct("<QQ")
_REQUEST = struct.Struct("<Q")
#: seconds the end of a script waits for what its threads and processes, still at it, try to write then
_LINGER = 0.25
#: what the threads are called that answer the task's other processes
CHILDREN = "akrunner-tables-child"
#: why a writer takes no more rows
REPLACED = "table %s: its slice was opened again, which drops what this writer has written; it takes no more rows"


class _Spool(object):
    """Attributes: path; request; chunks, rows, size: so far; granted: chunks the host may send; whole: all are there; error: why not."""

    def __init__(self, path: str, request: int) -> None:
        self.path = path
        self.request = request
        self.chunks = self.rows = self.size = 0
        self.granted = tables.CREDITS
        self.whole = False
        self.closed = False
        self.error: Optional[Tuple[str, str]] = None


class _Writing(object):
    """Attributes: table; columns: of it, None: not opened yet; credits; rows: sent; done; error: the host's; replaces: requests that had
    its slice before; replaced: another has it now; slice; process: who has opened it; ended: by the script's end, not by who has opened it."""

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
    """Safe for several threads. Args: writer: frames to the host; folder: for spools, a directory of this task's alone, made when needed."""

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
        #: the script has ended: nobody opens a table to write
        self._ending = False
        self._buffer = memoryview(bytearray(_BUFFER))
        # of this process's writers, which are closed when the script has ended; set by `install`
        self.close_writers: Callable[[], bool] = lambda: False
        #: what the script's user should know
        self.notes: List[str] = []
        self._late: List[str] = []

    # -- asked by scripts

    def look(self, table: str) -> Dict[str, Any]:
        """{"columns", "start", "rows"} of a table, or of the range its name says. Raises: TableError."""
        with self._changed:
            known = self._looks.get(table)
        if known is None:
            told: Dict[str, Any] = self._ask(frames.LOOK_TABLE, {"table": table})
            with self._changed:
                known = self._looks[table] = told
        return known

    def read(self, table: str, columns: Sequence[str], start: int, stop: int) -> Dict[str, Any]:
        """{"spool", "path"} of the rows of a range. Args: columns: their names, as a list."""
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
                body = {"request": number, "table": key[0], "columns": list(columns), "start": start, "stop": stop}
                self._writer.write_json(frames.READ_TABLE, dict(body, credits=tables.CREDITS))
        return {"spool": spool.request, "path": spool.path}

    def more(self, spool: int, chunk: int) -> Dict[str, Any]:
        """Wait until a chunk of a spool is there: {"chunks": so many are, "whole": no more come}. Raises: TableError, OSError."""
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
        """Let the host send what a reader of this chunk is going to want next."""
        wanted = min(chunk + 1, spool.chunks) + tables.CREDITS - spool.granted
        if (
            not spool.whole
            and not self._over
            and wanted > 0
            and (wanted >= tables.CREDITS // 2 or spool.chunks == spool.granted)
        ):
            spool.granted += wanted
            self._writer.write_json(frames.READ_MORE, {"request": spool.request, "chunks": wanted})

    def write(self, table: str, slice_id: int, process: str) -> Dict[str, Any]:
        """{"writing", "columns", "replaces"} of a table that is empty from now on.

        Args: process: who writes, as `asking.process` has it. Raises: TableError: it may not be written.
        """
        with self._changed:
            self._check()
            if self._ending:
                self.late(table, "rows")
                raise TableError("table %s: the script has ended, and no table is opened to write any more" % table)
            number = self._next()
            writing = self._writes[number] = _Writing(table, slice_id, process)
            asked = {"request": number, "table": table, "slice": slice_id, "process": process}
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
        """Send rows. Args: payload: buffers of columns. Raises: TableError: the table has refused some."""
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
        """No more rows: whether the host has them all is known when it returns. Raises: TableError: some were refused."""
        of = self._writes[writing]
        with self._changed:
            self._close_writing(writing)
            while not of.done:
                self._raise(of)
                self._changed.wait()

    def _close_writing(self, number: int) -> None:
        of = self._writes[number]
        if not of.closing and of.error is None:
            of.closing = True
            self._writer.write_json(frames.CLOSE_TABLE, {"request": number, "rows": of.rows, "whole": True})

    def take_work(self, **asked: Any) -> Optional[str]:
        """The next work of a queue that all tasks share, None: there is no more. Args: as TAKE_WORK has them. Raises: TableError."""
        work: Optional[str] = self._ask(frames.TAKE_WORK, asked)["work"]
        return work

    def _ask(self, kind: int, body: Dict[str, Any]) -> Any:
        with self._changed:
            self._check()
            number = self._next()
            self._answers[number] = None
            self._writer.write_json(kind, dict(body, request=number))
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
            raise TableError("the task is over: tables are read and written until the script ends")

    def _raise(self, writing: _Writing) -> None:
        if writing.error is not None:
            raise failed(*writing.error)
        if not writing.closing:
            self._check()

    # -- what the host says

    def take(self, reader: frames.FrameReader, kind: int, count: int, size: int) -> None:
        """One frame whose header was read. Raises: WireError: nobody has asked for it."""
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
        """A chunk, from the pipe into its file."""
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
                spool.error = ("OSError", "cannot spool a table's rows: %s: %r" % (error.strerror, spool.path))
            spool.chunks += 1
            spool.rows += rows
            spool.size += CHUNK.size + size
            self._changed.notify_all()

    def _append(self, spool: _Spool, reader: frames.FrameReader, rows: int, size: int) -> Optional[OSError]:
        """Why the disk did not take it, None: it did. The pipe is read to the frame's end either way."""
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
                # what is there of it would be in the way of others on a full disk
                os.ftruncate(out, 0)
            os.close(out)
        return error if isinstance(error, OSError) else None

    # -- the end

    def _close_reading(self, spool: _Spool) -> None:
        if not spool.closed:
            spool.closed = True
            told = {"request": spool.request, "rows": spool.rows, "whole": spool.whole}
            self._writer.write_json(frames.CLOSE_TABLE, told)

    def finish(self) -> None:
        """The script has ended: writers it has left open are closed, and nobody asks any more. Waits for the host to have every row: not
        in the thread that hears what it says.

        Raises: TableError: rows were refused; a process has not closed its writer and still runs.
        """
        with self._changed:
            self._ending = True
            for writing in self._writes.values():
                writing.ended = not writing.closing
        # a child that has asked for something keeps its connection
        others = self.close_writers() or any(one.name == CHILDREN for one in threading.enumerate())
        unclosed = []
        for number, writing in list(self._writes.items()):
            if writing.closing or writing.error is not None or writing.columns is None:
                continue
            unclosed.append(writing)
            others = others or _lives(writing.process)
            self.close(number)
        if others:
            # whoever is still writing finds it closed now, and would be the only one to know
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
        """The script has ended, and something of it tried to write rows nevertheless: they are lost. Args: rows: in words, how many."""
        self._late.append(
            "table %s: a thread or process that the script had not waited for tried to write %s when the script had ended, and they are "
            "lost: wait for it (join) before the script ends" % (table, rows)
        )

    def end(self) -> None:
        """The task has failed, or is over: whoever still waits is told."""
        with self._changed:
            self._over = True
            self._changed.notify_all()


def _lives(process: str) -> bool:
    """Args: process: as `asking.process` has it."""
    try:
        with open("/proc/%s/stat" % process.partition(":")[0], "rb") as f:
            return f.read().rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def _unclosed(writing: _Writing, there: bool) -> str:
    """Words for a writer that whoever has opened it has not closed. Args: there: whether it still runs."""
    number = writing.process.partition(":")[0]
    its = "its TableWriter(%r, slice_id=%d)" % (writing.table, writing.slice)
    if there:
        return (
            "table %s: process %s still ran when the script had ended, and had not closed %s, of which %d rows had come: close it there "
            "(with ... as writer), and wait for the process (join) before the script ends"
            % (writing.table, number, its, writing.rows)
        )
    return (
        "process %s ended without closing %s, of which %d rows are in the table: they are all of them only if it was not killed in the midst; "
        "close it there (with ... as writer)" % (number, its, writing.rows)
    )


def _write(fd: int, data: Union[bytes, bytearray, memoryview]) -> None:
    view = memoryview(data)
    while len(view):
        view = view[os.write(fd, view) :]
