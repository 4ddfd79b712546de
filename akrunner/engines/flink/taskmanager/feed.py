"""Rows on their way from Flink to the task of a place, and back to Flink: Arrow chunks, on the task's own machine.

::

    subtask    put(Arrow bytes) -> a few waiting -> encode -> DATA or ROWS frames --+
    subtask    barrier(number) -> in its turn -> BARRIER frame -----------------------+
    host       CONTEXT, END, START, STOP frames -> forwarded ----------------------> the task's pipe
    subtask    taken() -> Arrow bytes <- a few waiting <- decode <- EXAMPLES or COLUMNS frames --+
    subtask    answered(number) <- ANSWERED, CLOSED frames <--------------------------+
    host       all other frames, PASSED in place of those <---------------------------------------- the task's pipe
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

import pyarrow as pa

from akrunner import codec
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.schemas import schema_bytes, schema_from
from akrunner.engines.flink.threads import Failed, started
from akrunner.errors import DataError, ProtocolError, ReadError
from akrunner.io import formats
from akrunner.io.pairing import Fed, Pairing
from akrunner.io.part_file import PartError, PartFile
from akrunner.io.partition import rechunk
from akrunner.schema import Schema
from akrunner.wire import frames

#: chunks waiting for the task; past it Flink waits
_DEPTH = 4
#: rows waiting for Flink; past it the task waits
_WRITTEN_BYTES = 8 << 20
_TICK = 0.1
_TELL_SECONDS = 0.2
#: characters of what is wrong with a row
_WORDS = 1 << 16

Say = Callable[..., None]


def pairs_word(pairing: Pairing) -> pb.Pairs:
    """What an agent is told of it."""
    inputs = [pb.Pairs.Input(name=i.name, dtype=i.dtype, columns=i.columns, travels=i.travels) for i in pairing.inputs]
    return pb.Pairs(
        inputs=inputs, feed=schema_bytes(pairing.feed), outputs=pairing.outputs, result=schema_bytes(pairing.result)
    )


def pairing_of(word: pb.Pairs) -> Pairing:
    """Of `pairs_word`."""
    inputs = tuple(Fed(one.name, one.dtype, tuple(one.columns), tuple(one.travels)) for one in word.inputs)
    return Pairing(inputs, schema_from(word.feed), tuple(word.outputs), schema_from(word.result))


def as_bytes(batches: list[pa.RecordBatch]) -> bytes:
    """An Arrow IPC stream of one batch. Args: batches: at least one, all of one schema."""
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches() or batches[:1]
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, joined.schema) as writer:
        writer.write_batch(joined)
    return bytes(out.getvalue())


class Written:
    """What a task has written and Flink has not taken yet: a few megabytes at most."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._changed = threading.Condition()

    def put(self, batch: pa.RecordBatch, over: threading.Event) -> None:
        """Blocks while there is enough. Args: over: set when nobody takes any more."""
        with self._changed:
            while self._bytes > _WRITTEN_BYTES and not over.is_set():
                self._changed.wait(_TICK)
            self._batches.append(batch)
            self._bytes += batch.nbytes
            self._changed.notify_all()

    def take(self, seconds: float) -> list[pa.RecordBatch]:
        """Everything; waits so long for the first."""
        with self._changed:
            if not self._batches and seconds:
                self._changed.wait(seconds)
            taken, self._batches, self._bytes = self._batches, [], 0
            self._changed.notify_all()
            return taken


def pass_to_part(source_fd: int, writer: frames.FrameWriter, output: pb.Output) -> None:
    """What the task says, until it ends: rows to a file of the output's, the rest to the host. Args: as `pass_on`."""
    part = PartFile(output.part, output.format, schema_from(output.rows))
    pass_on(source_fd, writer, output, part.write, lambda went_well: part.close())


def pass_on(
    source_fd: int,
    writer: frames.FrameWriter,
    output: pb.Output,
    put: Callable[[pa.RecordBatch], None],
    finish: Callable[[bool], None],
    answered: Callable[[int], None] = lambda number: None,
    paired: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda batch: batch,
) -> None:
    """What the task says, until it ends: rows to where they go, all else to the submitter.

    Args: source_fd: the task's pipe; writer: to the host, closed at the end; output: schemas of what it writes and of what is put; put: takes
    rows; finish: called before the host hears that the task is done, with whether it went well; both raise PartError when the rows
    cannot be kept; answered: called with a barrier's number once every row of before it is put; paired: makes of what the task wrote what is put.
    """
    reader = frames.FrameReader(source_fd, frames.FROM_WORKER)
    rows = 0
    complete = True
    try:
        schema, put_as = Schema.from_arrow(schema_from(output.schema)), schema_from(output.rows)
        while True:
            frame = reader.read()
            if frame is None:
                return
            try:
                if frame.kind == frames.CLOSED:
                    finish(complete and frame.json().get("ok") is True)
                if frame.kind == frames.ANSWERED:
                    if complete:
                        answered(frame.count)
                    continue
                if frame.kind not in (frames.EXAMPLES, frames.COLUMNS):
                    writer.write(frame.kind, frame.payload, frame.count)
                    continue
                batch = codec.decode_frame(schema, frame, rows)
                for cast in pa.Table.from_batches([paired(batch)]).cast(put_as).to_batches():
                    put(cast)
            except (DataError, pa.ArrowException) as e:
                complete = False
                writer.write_json(frames.PASSED, {"error": str(e)})
                continue
            except ProtocolError as e:
                complete = False
                writer.write_json(frames.PASSED, {"broken": str(e)})
                continue
            except PartError as e:
                complete = False
                writer.write_json(frames.PASSED, {"lost": f"{e} (on {socket.gethostname()})"})
                continue
            rows += batch.num_rows
            writer.write_json(frames.PASSED, {"rows": batch.num_rows, "bytes": len(frame.payload)})
    except frames.WireError as e:
        with contextlib.suppress(OSError):
            writer.write_json(frames.PASSED, {"broken": str(e)})
    except OSError:
        return
    finally:
        writer.close()


class Feed:
    """One task's rows. `put` and `taken` are the subtask's, everything else the agent's."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[bytes | int | None] = queue.Queue(_DEPTH)
        self._context = threading.Event()
        self._started = threading.Event()
        self._over = threading.Event()
        self._answered = 0
        self._returned = False
        self._written = Written()
        self._pairs: Pairing | None = None
        self._unpaired: deque[pa.RecordBatch] = deque()
        self._writer: frames.FrameWriter | None = None

    def put(self, chunk: bytes | int | None, seconds: float) -> bool:
        """An Arrow IPC stream; a barrier's number, from 1; None: no more rows come.

        Returns: whether it was taken; False when the task was behind for so long. Once the task is over, rows are dropped.
        """
        if self._over.is_set():
            return True
        try:
            self._waiting.put(chunk, timeout=seconds)
            return True
        except queue.Full:
            return False

    def answered(self, number: int) -> bool:
        """Whether the task has answered all rows before a barrier, or has returned; what it wrote for them can be taken."""
        return self._returned or self._answered >= number

    def taken(self, seconds: float = 0.0) -> Iterator[bytes]:
        """What the task has written so far, as an Arrow IPC stream; waits so long for the first of it."""
        batches = self._written.take(seconds)
        if batches:
            yield as_bytes(batches)

    def close(self) -> None:
        """The task is over."""
        self._over.set()

    def start(
        self, reader: frames.FrameReader, target_fd: int, order: pb.Order, say: Say, failed: Failed
    ) -> list[threading.Thread]:
        """Args: reader: what the host sends; target_fd: the task's pipe, closed at the end; order: of the launcher; say: a `Said` to the host,
        by name; failed: told what one of the threads dies of."""
        self._writer = frames.FrameWriter(target_fd)
        if order.HasField("pairs"):
            self._pairs = pairing_of(order.pairs)
        return [started("in", failed, self._forward, reader), started("rows", failed, self._feed, order, say)]

    def pass_on(self, source_fd: int, writer: frames.FrameWriter, output: pb.Output) -> None:
        """What the task says, until it ends: rows to the subtask, the rest to the host. Args: as `pass_on`."""
        pass_on(source_fd, writer, output, self._put_written, self._end, self._answer, self._paired)

    def _put_written(self, batch: pa.RecordBatch) -> None:
        self._written.put(batch, self._over)

    def _paired(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """With what is kept of the rows it answers; a task answers in order."""
        return batch if self._pairs is None else self._pairs.joined(self._unpaired.popleft(), batch)

    def _end(self, went_well: bool) -> None:
        self._returned = went_well

    def _answer(self, number: int) -> None:
        self._answered = number

    def _forward(self, reader: frames.FrameReader) -> None:
        assert self._writer is not None
        try:
            while True:
                frame = reader.read()
                if frame is None:
                    return
                self._writer.write(frame.kind, frame.payload, frame.count)
                if frame.kind == frames.CONTEXT:
                    self._context.set()
                if frame.kind == frames.START:
                    self._started.set()
        except (OSError, frames.WireError):
            return
        finally:
            reader.close()
            # as with a pipe: nothing more comes for the process
            self._writer.close()

    def _feed(self, order: pb.Order, say: Say) -> None:
        assert self._writer is not None
        stream = order.mode == "stream"
        may_begin = self._started if stream else self._context
        while not may_begin.wait(_TICK):
            if self._over.is_set():
                return
        given = pb.Given()
        told = time.monotonic()
        try:
            for batch in self._chunks(order):
                if isinstance(batch, int):
                    with contextlib.suppress(OSError):
                        self._writer.write(frames.BARRIER, b"", batch)
                    continue
                if self._pairs is not None:
                    self._unpaired.append(batch)
                    batch = self._pairs.fed(batch, given.rows)
                payload = codec.encode_frame(batch, order.data_format, stream, given.rows)
                try:
                    self._writer.write(frames.ROWS if stream else frames.DATA, payload, batch.num_rows)
                    given.rows += batch.num_rows
                except OSError:
                    # it has gone, or has returned before the stream had ended
                    given.dropped += batch.num_rows
                if time.monotonic() - told > _TELL_SECONDS:
                    told = time.monotonic()
                    given.bytes = self._writer.bytes
                    say(given=given)
            if not self._over.is_set():
                given.bytes, given.finished = self._writer.bytes, True
                say(given=given)
        except (DataError, ReadError, pa.ArrowException) as e:
            say(refused=pb.Refused(kind=type(e).__name__, words=str(e)[:_WORDS]))

    def _chunks(self, order: pb.Order) -> Iterator[pa.RecordBatch | int]:
        while not self._over.is_set():
            try:
                chunk = self._waiting.get(timeout=_TICK)
            except queue.Empty:
                continue
            if chunk is None:
                return
            if isinstance(chunk, int):
                yield chunk
                continue
            with pa.ipc.open_stream(chunk) as reader:
                yield from rechunk(iter(reader), order.chunk_rows, order.chunk_bytes)


class FileFeed(Feed):
    """Rows of files that this machine reads itself; see `akrunner.engines.flink.host.files`."""

    def _chunks(self, order: pb.Order) -> Iterator[pa.RecordBatch]:
        form, schema = formats.named(order.files.format), schema_from(order.files.schema)
        for part in order.files.parts:
            if self._over.is_set():
                return
            try:
                read = _between(form.rows(part.path, json.loads(part.block), schema), part.start, part.stop)
                yield from rechunk(read, order.chunk_rows, order.chunk_bytes)
            except (pa.ArrowException, OSError) as e:
                raise ReadError(f"source: cannot read {part.path} on {socket.gethostname()}: {e}") from None


def _between(batches: Iterator[pa.RecordBatch], start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Rows `start` to `stop` of them."""
    at = 0
    for batch in batches:
        first, last = max(start - at, 0), min(stop - at, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        at += batch.num_rows
