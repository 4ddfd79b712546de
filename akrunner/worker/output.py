"""`task_config.output_writer`: sends the rows of the result to the host.

::

    write(example)       rows are collected and sent as one EXAMPLES frame:  lengths (uint32 each) | Examples end to end
    write_batch({...})   rows are sent at once as a COLUMNS frame, or as several frames of fewer rows if it would be very long
"""

from __future__ import annotations

import array
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence

from akrunner.wire import frames
from akrunner.worker import forked
from akrunner.worker.of_arrow import columns_of
from akrunner.worker.waits import timing

if TYPE_CHECKING:
    from akrunner.worker.forked import Refused

_FLUSH_BYTES = 256 * 1024
_FLUSH_ROWS = frames.MOST_EXAMPLES
_FLUSH_SECONDS = 0.2
#: a longer batch is sent as several frames, so that the host never holds much of it in memory
_BATCH_BYTES = 8 << 20
_BATCH_ROWS = 1 << 20
#: bytes from which on a row is refused as too long
_TOO_LONG = 1 << 31


class OutputWriter(object):
    """Takes the rows of the result; safe for several threads.

    Attributes:
        rows: rows taken so far.
    """

    def __init__(
        self,
        writer: Any,
        schema: Optional[List[Dict[str, Any]]],
        flush_seconds: Optional[float] = None,
        inferred: bool = False,
    ) -> None:
        """Make a writer, as the task does.

        Args:
            writer: writes frames to the host.
            schema: the columns of the result; None if the job has no output schema.
            flush_seconds: the longest time that a row waits before a thread sends it; None: rows wait until there are enough.
            inferred: whether, without a schema, the first batch determines the columns.
        """
        self._writer = writer
        self._takes = schema is not None or inferred
        self._names = [column["name"] for column in schema] if schema is not None else None
        self._types = {column["name"]: column["type"] for column in schema} if schema is not None else None
        self._lock = threading.Lock()
        self._pending: List[Any] = []
        self._size = 0
        self._since = 0.0
        self._closed = False
        self._refused: Optional[Refused] = None
        self.rows = 0
        self._wake = threading.Event()
        if flush_seconds is not None:
            thread = threading.Thread(target=self._flush_late, args=(flush_seconds,), name="akrunner-flush", daemon=True)
            thread.start()

    def _flush_late(self, seconds: float) -> None:
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            time.sleep(seconds)
            self.flush()

    def write(self, example: Any) -> None:
        """Add one row.

        Args:
            example: a `tf.train.Example`, or its serialized bytes, also as a tensor.
        Raises:
            TypeError: the argument is something else.
            ValueError: the Example has 2 GiB or more.
            RuntimeError: the job has no output schema, the writer is closed, or this is a process that the script has forked.
        """
        if hasattr(example, "numpy"):
            # a tensor of bytes
            example = example.numpy()
        if isinstance(example, (bytearray, memoryview)):
            example = bytes(example)
        elif getattr(example, "shape", None) == () and hasattr(example, "item"):
            example = example.item()
        if not isinstance(example, bytes):
            serialize = getattr(example, "SerializeToString", None)
            if serialize is None:
                raise TypeError(
                    "output_writer.write takes a tf.train.Example or its bytes, not %s; for columns use "
                    "output_writer.write_batch({'column': array})" % type(example).__name__
                )
            example = serialize()
        if len(example) >= _TOO_LONG:
            raise ValueError("output_writer.write: a row of %d bytes; a row has less than 2 GiB" % len(example))
        with self._lock:
            self._check()
            if len(example) >= _FLUSH_BYTES:
                # a long row gets a frame of its own
                self._flush()
            self._pending.append(example)
            self._size += len(example)
            if self._size >= _FLUSH_BYTES or len(self._pending) >= _FLUSH_ROWS:
                self._flush()
            elif len(self._pending) == 1:
                self._since = time.monotonic()
                self._wake.set()
            elif len(self._pending) % 16 == 0 and time.monotonic() - self._since > _FLUSH_SECONDS:
                self._flush()

    def write_all(self, examples: Sequence[bytes]) -> None:
        """Add several rows, and send them.

        Args:
            examples: a list of serialized Examples.
        Raises:
            ValueError: an Example has 2 GiB or more.
            RuntimeError: for the same reasons as `write`.
        """
        longest = max(map(len, examples), default=0)
        if longest >= _FLUSH_BYTES:
            for example in examples:
                self.write(example)
            return
        some = max(1, min(_FLUSH_ROWS, _BATCH_BYTES // max(longest, 1)))
        with self._lock:
            self._check()
            self._flush()
            for first in range(0, len(examples), some):
                self._pending = list(examples[first : first + some])
                self._flush()

    def write_batch(self, columns: Mapping[str, Any]) -> None:
        """Add many rows at once; this is the fastest way to write.

        Args:
            columns: {column: values [rows, ...]} for every column of the output schema, or a table (pandas, polars, pyarrow).
                The values of a column are a numpy array, tensor, list, series or Arrow array; all columns have the same first
                dimension, and further dimensions become a list. `None` in a list or object array is a null, and so are pandas'
                NA and the masked values of a masked array. A column that is a timestamp or date in the output schema takes
                datetimes without a time zone (of numpy or Python) or their int64. Without an output schema the first batch with
                rows determines the columns.
        Raises:
            ValueError: a column is missing, is unknown, has another length, or has a value that its type cannot hold.
            TypeError: a column has values of an unsupported type, or of several types.
            RuntimeError: for the same reasons as `write`.
        """
        self._write_batch(columns_of(columns), _BATCH_ROWS, _BATCH_BYTES)

    def answer(self, columns: Mapping[str, Any]) -> None:
        """Write a batch as `write_batch` does, but always in one frame: a prediction's answer to one chunk of rows.

        Args:
            columns: as for `write_batch`, but only a mapping.
        """
        self._write_batch(columns, frames.MOST_ROWS, frames.MOST_BYTES)

    def _write_batch(self, columns: Mapping[str, Any], most_rows: int, most_bytes: int) -> None:
        from akrunner.worker import column_encoding as packing

        with self._lock, timing.spending("output"):
            self._check()
            # may raise, before anything is sent
            rows, packed = packing.packed(columns, self._names, self._types)
            if rows and self._names is None:
                self._names = list(columns)
            self._flush()
            for count, payload in packing.pieces(rows, packed, most_rows, most_bytes):
                self.rows += count
                self._writer.write(frames.COLUMNS, payload, count)

    def write_file(self, path: str) -> None:
        """Add the rows of a TFRecord file of Examples, such as TensorFlow's `TFRecordWriter` writes.

        Args:
            path: the file, on this machine.
        Raises:
            ValueError: the file is cut short.
            RuntimeError: for the same reasons as `write`.
        """
        from akrunner.worker import records

        data = records.read_file(path)
        if data is None:
            return
        with self._lock:
            self._check()
            self._flush()
            for starts, ends in records.cut(data, path):
                for first in range(0, len(starts), _FLUSH_ROWS):
                    some = slice(first, first + _FLUSH_ROWS)
                    for start, end in records.stretches(starts[some], ends[some], _BATCH_BYTES):
                        self._pending += [data[a:b] for a, b in zip(start.tolist(), end.tolist())]
                        self._flush()

    def flush(self) -> None:
        """Send the rows that were collected."""
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Send the rows that were collected, and accept no more.

        The task calls it when `main` returns. A second call does nothing.
        """
        with self._lock:
            if not self._closed:
                self._flush()
                self._closed = True

    def disown(self, refused: Refused) -> None:
        """Accept no more rows, and send nothing: this is the writer's copy in a process that the script has forked.

        Args:
            refused: records attempts to write.
        """
        # the lock may be held by a thread of the parent, which does not exist in this process
        self._lock = threading.Lock()
        self._pending, self._size = [], 0
        self._closed, self._refused = True, refused

    def _check(self) -> None:
        if not self._takes:
            raise RuntimeError(
                "this job was started without an output schema, so its script cannot write rows; start it with "
                "output_schema='id bigint, p double' (--output-schema)"
            )
        if self._refused is not None:
            self._refused.note(forked.ROWS)
            raise RuntimeError("output_writer: " + forked.WHY)
        if self._closed:
            raise RuntimeError("output_writer is closed: rows can be written until main() returns")

    def _flush(self) -> None:
        if not self._pending:
            return
        pending, self._pending, self._size = self._pending, [], 0
        lengths = array.array("I", map(len, pending))
        self.rows += len(pending)
        with timing.spending("output"):
            self._writer.write(frames.EXAMPLES, [lengths.tobytes(), b"".join(pending)], len(pending))
