"""Cuts a stream of batches into chunks of a good size, and deals their rows to the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from akrunner.arrays import array_of


def rechunk(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in chunks of at most `rows` rows and about `size` bytes; small batches are joined."""
    held: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        most = max(1, min(rows, int(size * batch.num_rows / max(1, batch.nbytes))))
        if not held and batch.num_rows >= most // 2:
            at = 0
            while at < batch.num_rows:
                yield batch.slice(at, most)
                at += most
            continue
        at = 0
        while at < batch.num_rows:
            piece = batch.slice(at, max(1, most - held_rows))
            at += piece.num_rows
            held.append(piece)
            held_rows += piece.num_rows
            held_bytes += piece.nbytes
            if held_rows >= rows or held_bytes >= size:
                yield from _joined(held)
                held, held_rows, held_bytes = [], 0, 0
    if held:
        yield from _joined(held)


def behind(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows without the first `rows` of them."""
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(rows)
        rows = max(0, rows - batch.num_rows)


class Partitioner:
    """Deals row i of the table to worker i modulo the number of workers.

    So the shares are even to within one row whatever the table's length, which need not be known beforehand; the same table is
    dealt in the same way every time; the order of rows is kept inside a share; and a table sorted by its label gives every
    worker some rows of each label.

    Attributes:
        shares: how many rows each worker has been dealt so far.
    """

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.rows = 0
        self.shares = [0] * parts

    def deal(self, batch: pa.RecordBatch) -> list[tuple[int, int, pa.RecordBatch]]:
        """Return (worker, the number in the table of its first row, its rows) for every worker that gets any rows."""
        if self.parts == 1:
            dealt = [(0, self.rows, batch)]
        else:
            dealt = []
            for part in range(self.parts):
                first = (part - self.rows) % self.parts
                if first < batch.num_rows:
                    index = array_of(np.arange(first, batch.num_rows, self.parts))
                    dealt.append((part, self.rows + first, batch.take(index)))
        self.rows += batch.num_rows
        for part, _, share in dealt:
            self.shares[part] += share.num_rows
        return dealt


def _joined(held: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the batches as one, unless their dictionaries cannot become one (indices of int8 end at 127)."""
    try:
        return pa.Table.from_batches(held).combine_chunks().to_batches() if len(held) > 1 else held
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return held
