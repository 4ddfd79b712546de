"""Whoever draws from a thread that reads ahead hears of everything, and never waits for nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from akrunner.io.ahead import ahead

BATCH = pa.RecordBatch.from_pydict({"a": [1]})


class Closing:
    """Batches behind something that cannot be closed."""

    def __init__(self) -> None:
        self._left = [BATCH, BATCH]

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if not self._left:
            raise StopIteration
        return self._left.pop()

    def close(self) -> None:
        raise OSError("it cannot be closed")


def test_they_come_in_order_and_so_does_what_is_raised() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise ValueError("the second")

    drawn = ahead(batches())
    assert next(drawn) is BATCH
    with pytest.raises(ValueError, match="the second"):
        next(drawn)


@pytest.mark.timeout(20)
def test_what_closing_raises_is_heard_of() -> None:
    drawn = ahead(Closing())
    assert [next(drawn), next(drawn)] == [BATCH, BATCH]
    with pytest.raises(OSError, match="cannot be closed"):
        next(drawn)


def test_what_nobody_draws_any_more_is_closed() -> None:
    closed = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield BATCH
        finally:
            closed.set()

    before = threading.enumerate()
    drawn = ahead(batches())
    assert next(drawn) is BATCH
    drawn.close()
    assert closed.is_set() and set(threading.enumerate()) <= set(before)
