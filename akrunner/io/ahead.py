"""A thread that parses the next batch of a file while the last one is worked with."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from akrunner.reader import Reader

#: seconds it may take to close what is read
_CLOSING = 1.0


def ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, in order. The thread starts when the first is drawn, and ends when the iterator does.

    Raises: what `batches` raises, behind all that came before it.
    """
    reader = Reader(batches, "akrunner-reader")
    try:
        while (batch := reader.next()) is not None:
            yield batch
    finally:
        reader.stop(_CLOSING)
