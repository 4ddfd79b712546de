"""Parses the next batch of a file in a thread, while the caller works with the last one."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from akrunner.reader import Reader

#: seconds to wait for the reader thread to close what it reads
_CLOSING = 1.0


def ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same batches, in order. The thread starts when the first batch is drawn, and ends when the iterator does.

    Raises:
        Exception: whatever `batches` raises, after all batches that came before it.
    """
    reader = Reader(batches, "akrunner-reader")
    try:
        while (batch := reader.next()) is not None:
            yield batch
    finally:
        reader.stop(_CLOSING)
