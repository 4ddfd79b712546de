"""Carries rows from Flink to a subtask's task, and back to Flink, as Arrow chunks on the task's own machine.

::

    subtask    put(Arrow bytes) -> a few waiting -> encode -> DATA or ROWS frames --+
    subtask    barrier(number) -> in its turn -> BARRIER frame -----------------------+
    host       CONTEXT, END, START, STOP frames -> forwarded ----------------------> the task's pipe
    subtask    taken() -> Arrow bytes <- a few waiting <- decode <- EXAMPLES or COLUMNS frames --+
    subtask    answered(number) <- ANSWERED, CLOSED frames <--------------------------+
    host       all other frames, and PASSED in place of EXAMPLES and COLUMNS <----------------- the task's pipe
"""

from __future__ import annotations

import contextlib
import itertools
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
from akrunner.engines.flink.reasons import refused
from akrunner.engines.flink.schemas import schema_bytes, schema_from
from akrunner.engines.flink.threads import Failed, started
from akrunner.errors import DataError, ProtocolError, ReadError
from akrunner.io import formats
from akrunner.io.ahead import ahead
from akrunner.io.pairing import Fed, Pairing
from akrunner.io.part_file import PartError, PartFile
from akrunner.io.partitioner import rechunk
from akrunner.io.pg_ranges import Range, Ranges
from akrunner.io.shared import DISKS, Place
from akrunner.schema import Schema
from akrunner.wire import frames, messages

#: how many chunks may wait for the task; Flink waits while there are more
_DEPTH = 4
#: how many bytes of rows may wait for Flink; the task waits while there are more
_WRITTEN_BYTES = 8 << 20
_TICK = 0.1
_TELL_SECONDS = 0.2
#: the most characters of what is wrong with a row
_WORDS = 1 << 16

Say = Callable[..., None]


def pairs_word(pairing: Pairing) -> pb.Pairs:
    """Return what an agent is told of a pairing."""
    inputs = [pb.Pairs.Input(name=i.name, dtype=i.dtype, columns=i.columns, travels=i.travels) for i in pairing.inputs]
    return pb.Pairs(
        inputs=inputs, feed=schema_bytes(pairing.feed), outputs=pairing.outputs, result=schema_bytes(pairing.result)
    )


def pairing_of(word: pb.Pairs) -> Pairing:
    """Return the pairing that `pairs_word` has turned into a message."""
    inputs = tuple(Fed(one.name, one.dtype, tuple(one.columns), tuple(one.travels)) for one in word.inputs)
    return Pairing(inputs, schema_from(word.feed), tuple(word.outputs), schema_from(word.result))


def as_bytes(batches: list[pa.RecordBatch]) -> bytes:
    """Return an Arrow IPC stream of one batch.

    Args:
        batches: at least one batch, all of one schema.
    """
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches() or batches[:1]
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, joined.schema) as writer:
        writer.write_batch(joined)
    return bytes(out.getvalue())


class Written:
    """The rows that a task has written and Flink has not taken yet: a few megabytes at most."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._changed = threading.Condition()

    def put(self, batch: pa.RecordBatch, over: threading.Event) -> None:
        """Add a batch. Blocks while there are too many rows.

        Args:
            over: an event that is set when the rows are no longer taken.
        """
        with self._changed:
            while self._bytes > _WRITTEN_BYTES and not over.is_set():
                self._changed.wait(_TICK)
            self._batches.append(batch)
            self._bytes += batch.nbytes
            self._changed.notify_all()

    def take(self, seconds: float) -> list[pa.RecordBatch]:
        """Return everything. Waits up to `seconds` for the first batch."""
        with self._changed:
            if not self._batches and seconds:
                self._changed.wait(seconds)
            taken, self._batches, self._bytes = self._batches, [], 0
            self._changed.notify_all()
            return taken


def pass_to_part(source_fd: int, writer: frames.FrameWriter, output: pb.Output) -> None:
    """Handle what the task writes to its pipe, until it ends: rows go to a file of the output, the rest to the host. The
    arguments are as for the function `pass_on` of this module."""
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
    """Handle what the task writes to its pipe, until it ends: rows go to their destination, all else to the host.

    Args:
        source_fd: the task's pipe.
        writer: writes to the host; closed at the end.
        output: the schemas of what the task writes, and of what `put` takes.
        put: takes rows; raises PartError if they cannot be kept.
        finish: called before the host hears that the task is done, with whether all went well; raises PartError if the
            rows cannot be kept.
        answered: called with a barrier's number once every row before the barrier is put.
        paired: makes what is put out of what the task wrote.
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
                writer.write_json(frames.PASSED, messages.Passed(error=str(e)))
                continue
            except ProtocolError as e:
                complete = False
                writer.write_json(frames.PASSED, messages.Passed(broken=str(e)))
                continue
            except PartError as e:
                complete = False
                writer.write_json(frames.PASSED, messages.Passed(lost=f"{e} (on {socket.gethostname()})"))
                continue
            rows += batch.num_rows
            writer.write_json(frames.PASSED, messages.Passed(rows=batch.num_rows, bytes=len(frame.payload)))
    except frames.WireError as e:
        with contextlib.suppress(OSError):
            writer.write_json(frames.PASSED, messages.Passed(broken=str(e)))
    except OSError:
        return
    finally:
        writer.close()


class Feed:
    """The rows of one task. The subtask calls `put`, `answered` and `taken`; the agent calls everything else."""

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
        """Add something for the task. Once the task is over, rows are dropped.

        Args:
            chunk: an Arrow IPC stream; or the number of a barrier, from 1; or None when no more rows come.
            seconds: how long to wait at most.
        Returns:
            Whether it was taken; False if the task was behind for so long.
        """
        if self._over.is_set():
            return True
        try:
            self._waiting.put(chunk, timeout=seconds)
            return True
        except queue.Full:
            return False

    def answered(self, number: int) -> bool:
        """Whether the task has answered all rows before a barrier, or has returned. Its output for them can be taken then."""
        return self._returned or self._answered >= number

    def taken(self, seconds: float = 0.0) -> Iterator[bytes]:
        """Yield what the task has written so far, as an Arrow IPC stream. Waits up to `seconds` for the first of it."""
        batches = self._written.take(seconds)
        if batches:
            yield as_bytes(batches)

    def close(self) -> None:
        """Note that the task is over."""
        self._over.set()

    def start(
        self, reader: frames.FrameReader, target_fd: int, order: pb.Order, say: Say, failed: Failed
    ) -> list[threading.Thread]:
        """Start the threads that write to the task's pipe, and return them.

        Args:
            reader: reads what the host sends.
            target_fd: the task's pipe; closed at the end.
            order: the launcher's order.
            say: sends a `Said` to the host, whose field is given by name.
            failed: called with the error of which one of the threads dies.
        """
        self._writer = frames.FrameWriter(target_fd)
        if order.HasField("pairs"):
            self._pairs = pairing_of(order.pairs)
        return [started("in", failed, self._forward, reader), started("rows", failed, self._feed, order, say)]

    def pass_on(self, source_fd: int, writer: frames.FrameWriter, output: pb.Output) -> None:
        """Handle what the task writes to its pipe, until it ends: rows go to the subtask, the rest to the host. The
        arguments are as for the function `pass_on` of this module."""
        pass_on(source_fd, writer, output, self._put_written, self._end, self._answer, self._paired)

    def _put_written(self, batch: pa.RecordBatch) -> None:
        self._written.put(batch, self._over)

    def _paired(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch together with the kept columns of the rows that it answers. A task answers in order."""
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
            # as when a pipe ends: nothing more comes for the process
            self._writer.close()

    def _feed(self, order: pb.Order, say: Say) -> None:
        assert self._writer is not None
        stream = order.streaming
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
                    batch = self._pairs.model_inputs(batch, given.rows)
                payload = codec.encode_frame(batch, order.data_format, stream, given.rows)
                try:
                    self._writer.write(frames.ROWS if stream else frames.DATA, payload, batch.num_rows)
                    given.rows += batch.num_rows
                except OSError:
                    # the task is gone, or has returned before the stream had ended
                    given.dropped += batch.num_rows
                if time.monotonic() - told > _TELL_SECONDS:
                    told = time.monotonic()
                    given.bytes = self._writer.bytes
                    say(given=given)
            if not self._over.is_set():
                given.bytes, given.finished = self._writer.bytes, True
                say(given=given)
        except (DataError, ReadError, pa.ArrowException) as e:
            say(refused=refused(e, _WORDS))

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
    """Feeds rows of files that this machine reads itself; see `akrunner.engines.flink.host.files`.

    Args:
        place: where the files lie.
    """

    def __init__(self, place: Place = DISKS) -> None:
        super().__init__()
        self._place = place

    def _chunks(self, order: pb.Order) -> Iterator[pa.RecordBatch]:
        counted = {file.path: (file.bytes, file.tag) for file in order.files.files}
        for path, parts in itertools.groupby(order.files.parts, key=lambda part: part.path):
            if self._over.is_set():
                return
            read = self._rows(order.files, path, parts, counted[path])
            # the next rows are on their way while the task is sent the last ones
            yield from rechunk(ahead(read) if self._place.away else read, order.chunk_rows, order.chunk_bytes)

    def _rows(
        self, files: pb.Files, path: str, parts: Iterator[pb.Files.Part], counted: tuple[int, str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some parts of one file, after a look at the file, and before another one.

        Args:
            counted: (bytes, tag) of the file when its rows were counted.
        Raises:
            ReadError: the file cannot be read, or was changed since.
        """
        name, here = self._place.shown(path), socket.gethostname()
        form, schema = formats.named(files.format), schema_from(files.schema)
        try:
            before = self._place.seen(path)
            same = (before.bytes, before.tag) == counted
            for part in parts:
                if not same or self._over.is_set():
                    break
                yield from _between(form.rows(path, json.loads(part.block), schema, self._place), part.start, part.stop)
            same = same and self._place.seen(path) == before
        except (pa.ArrowException, OSError) as e:
            raise ReadError(f"source: cannot read {name} on {here}: {self._place.hidden(str(e))}") from None
        if not same:
            raise ReadError(f"source: {name} was changed while the job ran, as {here} sees it; give a copy of it")


class TableFeed(Feed):
    """Feeds rows of a table of a database that this machine reads itself; see `akrunner.engines.flink.host.databases`.

    Args:
        ranges: the table.
    """

    def __init__(self, ranges: Ranges) -> None:
        super().__init__()
        self._ranges = ranges

    def _chunks(self, order: pb.Order) -> Iterator[pa.RecordBatch]:
        parts = (Range._make((*json.loads(part.block), part.start, part.stop)) for part in order.files.parts)
        wanted = itertools.takewhile(lambda _: not self._over.is_set(), parts)
        # the next rows are on their way while the task is sent the last ones
        yield from rechunk(
            ahead(self._ranges.rows(schema_from(order.files.schema), wanted)), order.chunk_rows, order.chunk_bytes
        )


def feed_of(place: Place | Ranges) -> Feed:
    """Return what feeds rows of files that lie somewhere, or of a table of a database."""
    return TableFeed(place) if isinstance(place, Ranges) else FileFeed(place)


def _between(batches: Iterator[pa.RecordBatch], start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Yield rows `start` to `stop` of the batches."""
    at = 0
    for batch in batches:
        first, last = max(start - at, 0), min(stop - at, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        at += batch.num_rows
