"""Rows as they arrive: from the pipe's reader thread to a `tf.data.Dataset`.

::

    reader thread   frames -> a short queue       (full: the reader waits, the pipe fills, the host waits)
    dataset         the queue's chunks, a vector of serialized Examples each -> single Examples
"""

import queue
import struct
import threading

#: chunks between the reader and the dataset
_DEPTH = 4
#: what a first iterator has drawn is kept this long, for a second one that starts before the first has come far
_KEPT_BYTES = 8 << 20

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
        chunks = data.from_generator(lambda: (_cut(*chunk) for chunk in self.chunks()), (tf.string, [None]))
        return chunks.unbatch() if hasattr(chunks, "unbatch") else chunks.apply(tf.data.experimental.unbatch())

    def chunks(self):
        """One pass, as (rows, payload) of each chunk."""
        self._begin()
        finished = False
        try:
            for item in list(self._kept):
                self.rows_read += item[0]
                yield item
            while not self._ended:
                item = self._queue.get()
                if item is _END:
                    self._ended = True
                    break
                self._keep(item)
                self.rows_read += item[0]
                yield item
            finished = True
        finally:
            with self._lock:
                self._state = "finished" if finished else "dropped"

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
    """Lengths and bytes -> a list of byte strings."""
    lengths = struct.unpack_from("<%dI" % count, payload)
    data = bytes(memoryview(payload)[4 * count :])
    cut = []
    at = 0
    for length in lengths:
        cut.append(data[at : at + length])
        at += length
    return cut
