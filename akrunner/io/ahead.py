"""A thread that parses the next batch of a file while the last one is worked with.

::

    reader thread   batches -> one place -> whoever draws
"""

from __future__ import annotations

import queue
import threading
from typing import Iterator, Optional, Union

import pyarrow as pa

_TICK = 0.2


def ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, in order. The thread starts when the first is drawn, and ends when the iterator does.

    Raises: what `batches` raises, behind all that came before it.
    """
    reader = _Reader(batches)
    reader.thread.start()
    try:
        while (item := reader.place.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        reader.over.set()


class _Reader:
    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.place: "queue.Queue[Union[pa.RecordBatch, BaseException, None]]" = queue.Queue(1)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, name="akrunner-reader", daemon=True)

    def _run(self) -> None:
        last: Optional[BaseException] = None
        try:
            try:
                for batch in self._batches:
                    if not self._put(batch):
                        break
            finally:
                close = getattr(self._batches, "close", None)
                if close is not None:
                    close()
        except BaseException as e:
            last = e
        # whatever happened: somebody waits for it
        self._put(last)

    def _put(self, item: Union[pa.RecordBatch, BaseException, None]) -> bool:
        """Whether it is still wanted."""
        while not self.over.is_set():
            try:
                self.place.put(item, timeout=_TICK)
                return True
            except queue.Full:
                continue
        return False
