"""Brings a stream's rows, as they arrive, from the thread that reads the pipe to a `tf.data.Dataset`.

::

    reader thread   frames -> a short queue       (if it is full, the reader waits, the pipe fills, the host waits)
    dataset         the queue's chunks, a vector of serialized Examples each -> single Examples
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, List, Optional, Tuple

from akrunner.wire.frames import WireError
from akrunner.worker import forked, tf_data
from akrunner.worker.waits import timing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from akrunner.worker.forked import Refused

#: most chunks in the queue between the reader thread and the dataset
_DEPTH = 4
#: up to this many bytes, rows that a first iterator has read are kept for a second one
_KEPT_BYTES = 8 << 20
#: seconds without rows after which an empty piece is yielded
_PAUSE = 0.1
#: about how many pieces may be under way at once
_ANCHORED = 8
#: rows handed to `tf.data` at a time
_PIECE = 4096

_END = object()


class RowStream(object):
    """One task's rows, which can be read once.

    Attributes:
        rows_read: the number of rows given to the script so far.
        barriers: whether barriers may come among the rows. If so, no row is read ahead, and before a barrier the rows that
            wait for a full batch are given as a short one.
        answered: called with a barrier's number when the script asks for the rows behind it; None for none.
        epochs: whether the rows are read in epochs, each of which ends at a barrier to save at. Other barriers count for
            nothing then.
        reached: the barrier to save at that has been reached: no rows come until `go_on`. None: rows come.
    """

    def __init__(self, data_format: str = "examples", barriers: bool = False) -> None:
        self._format = data_format
        self.barriers = barriers
        self.answered: Optional[Callable[[int], Any]] = None
        self.epochs = False
        self.reached: Optional[Barrier] = None
        self._queue: Any = queue.Queue(_DEPTH)
        self._lock = threading.Lock()
        self._state = "new"
        self._kept: Optional[List[Any]] = []
        self._kept_bytes = 0
        self._ended = False
        #: an item that has come before it was drawn
        self._next: Any = None
        self._refused: Optional[Refused] = None
        self.rows_read = 0
        #: rows of the epochs before
        self._read_before = 0

    def disown(self, refused: Refused) -> None:
        """Give no rows: this is the copy in a process that the script has forked, where none arrive.

        Args:
            refused: records attempts to read.
        """
        # the lock may be held by a thread of the parent, which does not exist in this process
        self._lock = threading.Lock()
        self._refused = refused

    # -- the reader thread

    def put(self, count: int, payload: Any, host_is_there: Callable[[], Any]) -> None:
        """Take a chunk of rows; blocks while the queue is full.

        Args:
            count: the number of rows.
            payload: `count` uint32 lengths and then the Examples, end to end; or columns.
            host_is_there: called now and then while it blocks.
        """
        self._wait_put((count, payload), host_is_there)

    def barrier(self, number: int, host_is_there: Callable[[], Any], save: bool = False, place: Any = None) -> None:
        """Take a barrier: it is answered after all rows before it.

        Args:
            number: the barrier's number.
            host_is_there: called now and then while it blocks.
            save: whether it is one to save at.
            place: the place in the stream; None, or {}, if it has none that can be set.
        """
        self._wait_put(Barrier(number, save, place), host_is_there)

    def end(self, host_is_there: Callable[[], Any]) -> None:
        """Mark the end of the rows."""
        self._wait_put(_END, host_is_there)

    def _wait_put(self, item: Any, host_is_there: Callable[[], Any]) -> None:
        while True:
            try:
                self._queue.put(item, timeout=0.5)
                return
            except queue.Full:
                host_is_there()

    # -- the script

    def in_epochs(self) -> None:
        """Read the rows in epochs from now on.

        Raises:
            RuntimeError: rows were read before.
        """
        with self._lock:
            if self._state != "new" or self.epochs:
                raise RuntimeError(
                    "checkpoint() comes before the first row of a stream is read, and once: rows that were read before it would be "
                    "in no save"
                )
            self.epochs = True

    def wait(self) -> bool:
        """Wait until it is known what comes next. Returns: whether rows come: neither a barrier to save at, nor the end."""
        self._check()
        while not self._ended and self.reached is None and self._next is None:
            item = self._drawn(None)
            if item is not None:
                self._next = item
        return self._next is not None

    def go_on(self) -> None:
        """Begin the next epoch: the barrier that was reached is answered, and rows come again."""
        assert self.reached is not None
        number, self.reached = self.reached.number, None
        with self._lock:
            self._state = "new"
            self._kept, self._kept_bytes = [], 0
            self._read_before = self.rows_read
        if self.answered is not None:
            self.answered(number)

    @property
    def left(self) -> bool:
        """Whether the rows of this epoch have neither been read to their end, nor has the stream ended."""
        return self.reached is None and not self._ended

    def dataset(self) -> Any:
        """Return a `tf.data.Dataset` of scalar serialized Examples. Its rows can be read once; a second pass is an error.

        An iterator that is dropped after a few rows does not count (Keras reads a first batch to build a model): the next
        iterator starts with the same rows.
        """
        self._check()
        import tensorflow as tf

        if self._format == "columns":
            raise RuntimeError(
                "this job's rows travel as columns (data_format='columns'), so there are no Examples to give: use "
                "task_config.dataset(batch_size) or task_config.batches(batch_size)"
            )
        vectors = (tf.string, [None])
        pieces = tf_data.from_generator(self._pieces, vectors)
        # a piece is made while the one before it is taken apart
        ahead = pieces if self.barriers else pieces.prefetch(2)
        # rows that were only read ahead do not count: the pass is finished when the script has read to the end
        chunks = ahead.concatenate(tf_data.from_generator(self._finish, vectors))
        rows = chunks.unbatch() if hasattr(chunks, "unbatch") else chunks.apply(tf.data.experimental.unbatch())
        return tf_data.not_ahead(rows) if self.barriers else rows

    def batches(self, batch_size: int, drop_remainder: bool) -> Any:
        """Return a `tf.data.Dataset` of vectors of serialized Examples, for streams with barriers.

        Each vector has `batch_size` Examples; one before a barrier may have fewer.
        """
        self._check()
        import tensorflow as tf

        def vectors() -> Iterator[Any]:
            yield from _regrouped(self._vectors(), batch_size, drop_remainder)
            yield from self._finish()

        some = tf_data.from_generator(vectors, (tf.string, [None])).filter(
            tf_data.as_written(lambda vector: tf.size(vector) > 0)
        )
        return tf_data.not_ahead(some)

    def chunks(self) -> Iterator[Tuple[int, Any]]:
        """Yield (rows, payload) of each chunk in one pass, and (0, None) before a barrier."""
        yield from self._draw(None)
        for _ in self._finish():
            pass

    def _pieces(self) -> Iterator[Any]:
        """Yield the rows of one pass as object arrays of byte strings.

        While no rows come, it yields empty arrays, so that a reader that wants to stop need not wait for a row.
        """
        for vector in self._vectors():
            if vector is not None:
                yield vector

    def _vectors(self) -> Iterator[Any]:
        """Yield the same as `_pieces`, and None before a barrier."""
        import numpy as np

        nothing = np.empty(0, dtype=object)
        anchors: List[Any] = []
        for chunk in self._draw(_PAUSE):
            if chunk is None or chunk[1] is None:
                yield nothing if chunk is None else None
                continue
            for piece in _cut(*chunk):
                if len(anchors) < _ANCHORED:
                    # a few rows of the first pieces are kept, so that Python keeps their memory for the next pieces: to give
                    # it back and ask for it again takes five times as long as cutting the rows
                    anchors.append(piece[::256].copy())
                yield piece

    def _finish(self) -> Iterator[Any]:
        """Mark the pass as finished. Yields nothing; it is called when all rows before it have been read."""
        with self._lock:
            self._state = "finished"
        return iter(())

    def _draw(self, pause: Optional[float]) -> Iterator[Any]:
        """Yield the chunks; None after every `pause` seconds without one; (0, None) before a barrier."""
        self._begin()
        try:
            for item in list(self._kept or ()):
                yield self._given(item)
                self._asked_on(item)
            while not self._ended and self.reached is None:
                self._check()
                try:
                    item = self._drawn(pause)
                except queue.Empty:
                    yield None
                    continue
                if item is None:
                    continue
                self._keep(item)
                yield self._given(item)
                self._asked_on(item)
        finally:
            with self._lock:
                self._state = "dropped"

    def _drawn(self, pause: Optional[float]) -> Any:
        """Return the next item; None for one that counts for nothing, or ends the epoch or the stream, which is noted.

        Raises:
            queue.Empty: none has come within `pause` seconds.
        """
        if self._next is not None:
            item, self._next = self._next, None
            return item
        with timing.spending("pipe"):
            item = self._queue.get(timeout=pause)
        if item is _END:
            self._ended = True
            return None
        if self.epochs and isinstance(item, Barrier):
            self.reached = item if item.save else None
            return None
        return item

    def _given(self, item: Any) -> Tuple[int, Any]:
        if isinstance(item, Barrier):
            return 0, None
        rows, payload = item
        self.rows_read += rows
        return rows, payload

    def _asked_on(self, item: Any) -> None:
        """Note that the reader asks for more after an item, so it is done with that item: a barrier is answered."""
        if isinstance(item, Barrier) and self.answered is not None:
            self.answered(item.number)

    def _check(self) -> None:
        if self._refused is not None:
            self._refused.note(forked.READING)
            raise RuntimeError(forked.WHY_NOT_READ)

    def _begin(self) -> None:
        self._check()
        with self._lock:
            if self._state == "running":
                raise RuntimeError("this stream is being read already: it can have one iterator at a time")
            if self._state == "finished" or (self._state == "dropped" and self._kept is None):
                raise RuntimeError(
                    "this stream was read already, and its rows are gone: iterate it once (epochs=1, no repeat()), or run the "
                    "job in batch mode, where rows can be read many times"
                )
            self._state = "running"
            self.rows_read = self._read_before
            self._kept = self._kept or []

    def _keep(self, item: Any) -> None:
        if self._kept is not None:
            self._kept_bytes += 0 if isinstance(item, Barrier) else len(item[1])
            if self._kept_bytes <= _KEPT_BYTES:
                self._kept.append(item)
            else:
                self._kept = None


class Barrier(object):
    """A mark among the rows.

    Attributes:
        number: its number.
        save: whether tasks that save do it here.
        place: the place in the stream, from which another attempt or job can go on; None, or {}, if none can.
    """

    def __init__(self, number: int, save: bool, place: Any) -> None:
        self.number = number
        self.save = save
        self.place = place


def _regrouped(vectors: Iterable[Any], size: int, drop_remainder: bool) -> Iterator[Any]:
    """Yield vectors of `size` entries from vectors of any length.

    Where a None comes among them, and at the end, a vector may be shorter (with `drop_remainder`, none is). Empty vectors are
    passed through.
    """
    import numpy as np

    held: List[Any] = []
    count = 0
    for vector in vectors:
        while vector is not None and count + len(vector) >= size:
            yield np.concatenate(held + [vector[: size - count]])
            vector = vector[size - count :]
            held, count = [], 0
        if vector is not None:
            if not len(vector):
                yield vector
                continue
            held.append(vector)
            count += len(vector)
        elif count and not drop_remainder:
            yield np.concatenate(held)
            held, count = [], 0
    if count and not drop_remainder:
        yield np.concatenate(held)


def _cut(count: int, payload: Any) -> Iterator[NDArray[Any]]:
    """Yield the rows of a chunk as object arrays of byte strings, a few thousand at a time. Args: payload: as for `put`."""
    import numpy as np

    lengths = np.frombuffer(payload, np.uint32, count) if 4 * count <= len(payload) else ()
    ends = 4 * count + np.cumsum(lengths, dtype=np.int64)
    if len(lengths) != count or (count and ends[-1] != len(payload)):
        raise WireError("%d rows from the host do not lie in %d bytes" % (count, len(payload)))
    for first in range(0, count, _PIECE):
        part = slice(first, min(first + _PIECE, count))
        size, start = int(lengths[first]), int(ends[first] - lengths[first])
        if size and (lengths[part] == size).all():
            # rows of numbers have one length, and numpy cuts them several times faster than Python does
            yield np.frombuffer(payload, "V%d" % size, part.stop - first, start).astype(object)
            continue
        data = bytes(memoryview(payload)[start : ends[part.stop - 1]])
        cuts = [0] + (ends[part] - start).tolist()
        cut = np.empty(part.stop - first, dtype=object)
        cut[:] = [data[a:b] for a, b in zip(cuts, cuts[1:])]
        yield cut
