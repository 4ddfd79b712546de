"""The host's side of the requests by which each task asks for tables.

::

    reader thread of a task   requests -> Conversation.take        never waits: it only hands them on
    thread "look"             LOOK_TABLE, TAKE_WORK -> answers
    thread of each reader     store -> chunks -> TABLE_ROWS, as many as there are credits -> TABLE_DONE
    thread of each writer     ADD_ROWS -> part of the output -> credit ... TABLE_DONE
    JobTables                 what the tasks share: readings, outputs, which task writes which slice, queues of works, counts
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from akrunner import codec
from akrunner.engines import crossing
from akrunner.engines.tables import JobTables, SlicePart
from akrunner.errors import AkrunnerError, ConfigError, DataError, InputLostError, ProtocolError, ReadError, WriteError
from akrunner.foreign import underway
from akrunner.io.partitioner import rechunk
from akrunner.spec import TaskSpec
from akrunner.tables.store import Reading
from akrunner.wire import frames, messages
from akrunner.wire import tables as wire

_TICK = 0.1
_END_WAIT = 30.0

#: called with (exception, words) when the job must end: a task's rows cannot be kept, or were lost
Failing = Callable[[BaseException, str], None]


@dataclass
class _Request:
    """The state of one reader or writer.

    Attributes:
        credits: how many more frames may be sent.
        rows: the number of rows sent to the worker, or taken from it.
        said: the number of rows that the worker says have arrived, or that it has sent; None until it closes the table.
        over: whether the request is over, with success or without.
        done: whether all its rows were sent or written, or a writer was refused from the start.
    """

    name: str
    writes: bool
    credits: int = 0
    rows: int = 0
    said: int | None = None
    over: bool = False
    done: bool = False
    waiting: queue.Queue[tuple[int, memoryview] | int] = field(default_factory=queue.Queue)


class Conversation:
    """The requests of one task. The thread that reads the task's frames calls `take`; the thread that runs the job calls
    everything else."""

    def __init__(self, tables: JobTables, task: TaskSpec, writer: frames.FrameWriter, failing: Failing) -> None:
        """Make a conversation without requests.

        Args:
            failing: called when the job must end, with the exception and words.
        """
        self._tables = tables
        self._task = task
        self._writer = writer
        self._failing = failing
        self._requests: dict[int, _Request] = {}
        self._used: set[int] = set()
        #: requests that were refused: frames about them were under way before the task was told, and are ignored
        self._refused: set[int] = set()
        self._changed = threading.Condition()
        self._stopped = False
        self._looks: queue.Queue[tuple[int, Mapping[str, Any]] | None] = queue.Queue()
        self._threads: list[threading.Thread] = []
        self._answers = False

    def take(self, frame: frames.Frame) -> None:
        """Handle one frame of the task.

        Raises:
            WireError, ProtocolError: the frame makes no sense.
        """
        if frame.kind == frames.ADD_ROWS:
            number, payload = wire.request_of(frame.payload)
            request = self._request(number, frame.kind, writes=True)
            with self._changed:
                if request.said is not None or request.credits <= 0:
                    raise ProtocolError(f"it sent more rows of table request {number} than it may")
                request.credits -= 1
            request.waiting.put((frame.count, payload))
            return
        body = messages.read(frame)
        number = body["request"]
        if number in self._refused and frame.kind in (frames.READ_MORE, frames.CLOSE_TABLE):
            return
        if frame.kind == frames.READ_MORE:
            request = self._request(number, frame.kind, writes=False)
            with self._changed:
                request.credits = min(request.credits + body["chunks"], wire.CREDITS)
                self._changed.notify_all()
        elif frame.kind == frames.CLOSE_TABLE:
            self._closed(number, body["rows"], body["whole"])
        else:
            self._opened(frame.kind, number, body)

    def _request(self, number: int, kind: int, writes: bool) -> _Request:
        request = self._requests.get(number)
        if request is None or request.writes != writes:
            raise ProtocolError(f"a {frames.NAMES[kind]} frame names the request {number}, which is none")
        return request

    def _opened(self, kind: int, number: int, body: Mapping[str, Any]) -> None:
        if number in self._used:
            raise ProtocolError(f"the table request {number} is there already")
        self._used.add(number)
        if kind in (frames.LOOK_TABLE, frames.TAKE_WORK):
            if self._looks.qsize() >= wire.MOST_REQUESTS:
                raise ProtocolError(f"it asked {wire.MOST_REQUESTS + 1:,} things about tables before one was answered")
            if not self._answers:
                self._answers = True
                self._start("look", self._look)
            self._looks.put((kind, body))
            return
        if sum(not request.over for request in self._requests.values()) >= wire.MOST_REQUESTS:
            words = (
                f"table {body['table']}: this task has {wire.MOST_REQUESTS:,} tables open already; close those that are done"
            )
            self._refused.add(number)
            self._start("table-refused", self._refuse, number, ConfigError(words))
            return
        writes = kind == frames.WRITE_TABLE
        request = _Request(body["table"], writes, wire.CREDITS if writes else min(body["credits"], wire.CREDITS))
        self._requests[number] = request
        self._start(f"table-{number}", self._write if writes else self._read, number, request, body)

    def _closed(self, number: int, rows: int, whole: bool) -> None:
        request = self._requests.get(number)
        if request is None or request.said is not None:
            raise ProtocolError(f"a close table frame names the request {number}, which is none")
        with self._changed:
            request.said = rows
            self._changed.notify_all()
            # a task that closes early does not know how many rows there were, and some may still be on their way
            lost = not request.writes and (rows > request.rows or (whole and rows != request.rows))
        if request.writes:
            request.waiting.put(rows)
        elif lost:
            words = f"received {rows} of the {request.rows} rows it was sent of table {request.name}"
            self._failing(InputLostError(words), words)

    # -- threads

    def _start(self, name: str, target: Callable[..., None], *given: Any) -> None:
        # forget the threads that have ended
        self._threads = [one for one in self._threads if one.is_alive()]
        thread = threading.Thread(
            target=self._guarded, args=(target, *given), name=f"akrunner-{name}-{self._task.key}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _guarded(self, target: Callable[..., None], *given: Any) -> None:
        try:
            target(*given)
        except OSError:
            pass  # the worker has gone; the end of its process says how
        except BaseException as e:
            if not self._stopped:
                self._failing(e, f"{type(e).__name__}: {e}")

    def _say(self, kind: int, body: Any) -> None:
        self._writer.write_json(kind, body)

    def _refuse(self, number: int, error: Exception) -> None:
        words = crossing.said(error) if isinstance(error, DataError) else str(error)
        self._say(frames.TABLE_FAILED, messages.TableFailed(request=number, type=type(error).__name__, message=words))

    def _look(self) -> None:
        while not self._stopped:
            try:
                asked = self._looks.get(timeout=_TICK)
            except queue.Empty:
                continue
            if asked is None:
                return
            kind, body = asked
            number = body["request"]
            try:
                if kind == frames.TAKE_WORK:
                    work = self._tables.works.take(body, self._task.role)
                    self._say(frames.WORK, messages.Work(request=number, work=work))
                else:
                    name, reading = self._tables.reading(body["table"])
                    start, stop = name.rows(reading.rows)
                    columns = crossing.described(reading.info)
                    told = messages.TableOpened(
                        request=number, columns=columns, start=start, rows=stop - start, credits=0, replaces=[]
                    )
                    self._say(frames.TABLE_OPENED, told)
            except AkrunnerError as e:
                self._refuse(number, e)

    def _read(self, number: int, request: _Request, body: messages.ReadTable) -> None:
        try:
            name, reading = self._tables.reading(body["table"])
            for batch in self._batches(reading, body):
                with self._changed:
                    while request.credits <= 0 and request.said is None and not self._stopped:
                        self._changed.wait(_TICK)
                    if request.said is not None or self._stopped:
                        return
                    request.credits -= 1
                columns = crossing.crossed(batch, body["table"])
                payload = wire.with_request(number, codec.encode_columns(columns, request.rows))
                with self._changed:
                    # count the rows before they are sent: the worker's answer with its own count may come at once
                    request.rows += batch.num_rows
                self._writer.write(frames.TABLE_ROWS, payload, batch.num_rows)
                self._tables.has_read(name, batch.num_rows)
            wanted = max(0, body["stop"] - body["start"])
            if request.rows != wanted:
                raise ReadError(
                    f"table {body['table']} gave {request.rows} rows of the {wanted} it has (rows {body['start']} to "
                    f"{body['stop']})"
                )
            # free the request before the task is told: it may open its next table at once
            request.over = request.done = True
            self._say(frames.TABLE_DONE, messages.TableDone(request=number, rows=request.rows))
        except AkrunnerError as e:
            request.over = True
            self._refuse(number, e)
        finally:
            request.over = True

    def _batches(self, reading: Reading, body: messages.ReadTable) -> Iterator[pa.RecordBatch]:
        """Yield a table's rows in chunks.

        Raises:
            SourceError, ReadError: the rows cannot be read.
        """
        start, rows = body["start"], body["stop"] - body["start"]
        if rows <= 0:
            return
        with underway(ReadError, f"table {body['table']}"):
            batches = rechunk(iter(reading.read(body["columns"], start, rows)), *self._tables.chunk)
        while True:
            with underway(ReadError, f"table {body['table']}"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _write(self, number: int, request: _Request, body: messages.WriteTable) -> None:
        try:
            output, part = self._tables.output(body["table"], self._task, body["slice"], body["process"], number)
        except AkrunnerError as e:
            request.over = request.done = True
            self._refuse(number, e)
            return
        try:
            schema = crossing.written(output.info)
            columns = crossing.described(output.info)
            told = messages.TableOpened(
                request=number, columns=columns, start=0, rows=0, credits=wire.CREDITS, replaces=part.replaces
            )
            self._say(frames.TABLE_OPENED, told)
            while not self._stopped:
                try:
                    taken = request.waiting.get(timeout=_TICK)
                except queue.Empty:
                    continue
                if isinstance(taken, int):
                    self._close_part(number, request, part, taken)
                    return
                count, payload = taken
                batch = codec.decode_some_columns(schema, payload, request.rows, count)
                with underway(WriteError, f"table {body['table']}"):
                    part.write(crossing.back(batch, output.info, request.rows))
                request.rows += count
                self._tables.has_moved()
                with self._changed:
                    request.credits += 1
                self._say(frames.WRITE_MORE, messages.More(request=number, chunks=1))
        except (DataError, WriteError, ProtocolError, frames.WireError) as e:
            words = f"row of table {body['table']} that it refuses: {crossing.said(e)}" if isinstance(e, DataError) else str(e)
            request.over = True
            self._failing(e, words)
            self._refuse(number, e)
        finally:
            request.over = True

    def _close_part(self, number: int, request: _Request, part: SlicePart, rows: int) -> None:
        if rows != request.rows:
            words = f"wrote {rows} rows to table {request.name}, {request.rows} arrived"
            self._failing(InputLostError(words), words)
            return
        with underway(WriteError, f"table {request.name}"):
            part.close()
        request.over = request.done = True
        self._say(frames.TABLE_DONE, messages.TableDone(request=number, rows=rows))

    # -- the end

    def unfinished(self) -> list[str]:
        """Return the tables whose rows are not all written. Asked of a task that says it is done: it may only say so when
        it was told that they are."""
        return [request.name for request in list(self._requests.values()) if request.writes and not request.done]

    def stop(self) -> None:
        """End the threads: the task asks for nothing more."""
        self._stopped = True
        self._looks.put(None)
        with self._changed:
            self._changed.notify_all()

    def join(self) -> None:
        """Wait for the threads, after the task's process has ended."""
        deadline = time.monotonic() + _END_WAIT
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
