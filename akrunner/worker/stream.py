"""Rows as they arrive: from the pipe's reader thread to a `tf.data.Dataset`.

::

    reader thread   frames -> a short queue       (full: the reader waits, the pipe fills, the host waits)
    dataset         the queue's chunks, a vector of serialized Examples each -> single Examples
"""

import queue
import threading

#: chunks between the reader and the dataset
_DEPTH = 4
#: what a first iterator has drawn is kept this long, for a second one that starts before the first has come far
_KEPT_BYTES = 8 << 20
#: seconds
_PAUSE = 0.1
#: pieces that may be under way at once, about
_ANCHORED = 8
#: rows handed to `tf.data` at a time
_PIECE = 4096

_END = object()


class RowStream(object):
    """One task's rows, to be read once.

    Attributes:
        rows_read: handed to the script so far.
    """

    def __init__(self, data_format="examples"):
        self._format = data_format
        self._queue = queue.Queue(_DEPTH)
        self._lock = threading.Lock()
        self._state = "new"
        self._kept = []
        self._kept_bytes = 0
        self._ended = False
        self.rows_read = 0

    # -- the reader thread

    def put(self, count, payload, host_is_there):
        """Take a chunk: `count` uint32 lengths, then the Examples end to end; or columns. Calls `host_is_there` while there is no room."""
        self._wait_put((count, payload), host_is_there)

    def end(self, host_is_there):
        """No more rows come."""
        self._wait_put(_END, host_is_there)

    def _wait_put(self, item, host_is_there):
        while True:
            try:
                self._queue.put(item, timeout=0.5)
                return
            except queue.Full:
                host_is_there()

    # -- the script

    def dataset(self):
        """A `tf.data.Dataset` of scalar serialized Examples. Its rows can be drawn once; a second pass is an error.

        An iterator that is dropped after a few rows (Keras looks at a first batch to build a model) does not count: the next
        one starts with the same rows.
        """
        import tensorflow as tf

        from akrunner.worker import data

        if self._format == "columns":
            raise RuntimeError(
                "this job's rows travel as columns (data_format='columns'), so there are no Examples to give: use "
                "task_config.dataset(batch_size) or task_config.batches(batch_size)"
            )
        vectors = (tf.string, [None])
        # the next piece is made while the one before is taken apart
        ahead = data.from_generator(self._pieces, vectors).prefetch(2)
        # read ahead is not read: the rows are gone when whoever draws them comes to the end
        chunks = ahead.concatenate(data.from_generator(self._finish, vectors))
        return chunks.unbatch() if hasattr(chunks, "unbatch") else chunks.apply(tf.data.experimental.unbatch())

    def chunks(self):
        """One pass, as (rows, payload) of each chunk."""
        yield from self._draw(None)
        for _ in self._finish():
            pass

    def _pieces(self):
        """One pass, as object arrays of byte strings. Now and then an empty one: nobody who wants to stop waits for a row."""
        import numpy as np

        nothing = np.empty(0, dtype=object)
        anchors = []
        for chunk in self._draw(_PAUSE):
            if chunk is None:
                yield nothing
                continue
            for piece in _cut(*chunk):
                if len(anchors) < _ANCHORED:
                    # a few rows of the first pieces stay, so that Python keeps the memory of the others for the next ones. Giving
                    # it back and asking for it anew costs five times what cutting does
                    anchors.append(piece[::256].copy())
                yield piece

    def _finish(self):
        """The end of a pass: gives nothing, and is asked for it when all before it was drawn."""
        with self._lock:
            self._state = "finished"
        return iter(())

    def _draw(self, pause):
        """The chunks; None after every `pause` seconds without one."""
        self._begin()
        try:
            for item in list(self._kept):
                self.rows_read += item[0]
                yield item
            while not self._ended:
                try:
                    item = self._queue.get(timeout=pause)
                except queue.Empty:
                    yield None
                    continue
                if item is _END:
                    self._ended = True
                    break
                self._keep(item)
                self.rows_read += item[0]
                yield item
        finally:
            with self._lock:
                self._state = "dropped"

    def _begin(self):
        with self._lock:
            if self._state == "running":
                raise RuntimeError("this stream is being read already: it can have one iterator at a time")
            if self._state == "finished" or (self._state == "dropped" and self._kept is None):
                raise RuntimeError(
                    "this stream was read already, and its rows are gone: iterate it once (epochs=1, no repeat()), or run the "
                    "job in batch mode, where rows can be read many times"
                )
            self._state = "running"
            self.rows_read = 0
            self._kept = self._kept or []

    def _keep(self, item):
        if self._kept is not None:
            self._kept_bytes += len(item[1])
            if self._kept_bytes <= _KEPT_BYTES:
                self._kept.append(item)
            else:
                self._kept = None


def _cut(count, payload):
    """Lengths and bytes -> object arrays of byte strings, a few thousand at a time."""
    import numpy as np

    lengths = np.frombuffer(payload, np.uint32, count)
    ends = 4 * count + np.cumsum(lengths, dtype=np.int64)
    for first in range(0, count, _PIECE):
        part = slice(first, min(first + _PIECE, count))
        size, start = int(lengths[first]), int(ends[first] - lengths[first])
        if size and (lengths[part] == size).all():
            # rows of numbers are all as long: numpy cuts them several times faster than Python does
            yield np.frombuffer(payload, "V%d" % size, part.stop - first, start).astype(object)
            continue
        data = bytes(memoryview(payload)[start : ends[part.stop - 1]])
        cuts = [0] + (ends[part] - start).tolist()
        cut = np.empty(part.stop - first, dtype=object)
        cut[:] = [data[a:b] for a, b in zip(cuts, cuts[1:])]
        yield cut
