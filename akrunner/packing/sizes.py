"""Estimates how many bytes a table's rows take in files of a format, from some of the rows in the buckets.

::

    buckets --some rows, mixed as in a shard--> a file in memory: Sizes --> about how many bytes all rows take
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import array_of
from akrunner.codec import encode_records
from akrunner.io import formats
from akrunner.packing.shards import writer_of

#: most rows and bytes of a batch that is written to a shard
_BATCH_ROWS, _BATCH_BYTES = 4096, 8 << 20
#: about how many rows are looked at, and how many bytes of rows: a whole batch
_ROWS, _ENOUGH = _BATCH_ROWS, _BATCH_BYTES
#: how many batches are written at most, as each takes its time, however few rows it has
_BATCHES = 32


def rows_at_once(size: int, rows: int) -> int:
    """Return how many rows of a table are written to a shard as one batch. Args: size: bytes of its rows; rows: how many it has."""
    return int(max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, size // rows))))


def in_memory(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch's rows, without dictionaries: each batch has them whole, however few its rows are."""
    return sum(column.indices.nbytes if pa.types.is_dictionary(column.type) else column.nbytes for column in batch.columns)


def some_rows(buckets: Mapping[str, int], ranks: str) -> pa.RecordBatch:
    """Return the rows that have the lowest ranks, in their order: hashes make ranks, so they are from all over the table.

    Args:
        buckets: path of each bucket's file -> bytes of its rows, in the order of ranks; some bucket has a row.
        ranks: the column of ranks.
    """
    taken: list[pa.RecordBatch] = []
    rows, room = _ROWS, _ENOUGH
    for path, size in buckets.items():
        with pa.memory_map(path) as source:
            # a column without the others: the rest of the file is not read
            count, lowest = 0, np.empty(0, np.uint64)
            for batch in pa.ipc.open_stream(source):
                count += batch.num_rows
                lowest = _least(np.concatenate([lowest, batch.column(ranks).to_numpy()]), rows)
            last = _least(lowest, max(1, min(rows, room * count // max(1, size)))).max()
            source.seek(0)
            taken += [
                batch.take(array_of(np.flatnonzero(batch.column(ranks).to_numpy() <= last)))
                for batch in pa.ipc.open_stream(source)
            ]
        rows, room = rows - count, room - size
        if rows <= 0 or room <= 0:
            break
    table = pa.Table.from_batches(taken)
    (batch,) = table.take(pc.sort_indices(table.column(ranks))).combine_chunks().to_batches()
    return batch


def _least(values: np.ndarray[Any, Any], most: int) -> np.ndarray[Any, Any]:
    """Return the least of some numbers, in no order. Args: most: how many at most, 1 or more."""
    return values if len(values) <= most else np.partition(values, most - 1)[:most]


@dataclass(frozen=True)
class Sizes:
    """What some rows of a table take.

    Attributes: rows: how many they are; memory: their bytes in memory; file: their bytes in a file.
    """

    rows: int
    memory: int
    file: int

    def of(self, size: int, rows: int) -> float:
        """Return about how many bytes other rows of the table take in files. Args: size: their bytes in memory; rows: how many.

        What a file has besides the values is counted by rows, so that a few large values among small ones do not grow, too.
        What makes values smaller is counted by bytes.
        """
        if self.file >= self.memory:
            return size + rows * (self.file - self.memory) / self.rows
        return size * self.file / self.memory


def sizes_of(plain: pa.RecordBatch, written: pa.RecordBatch, form: str, at_once: int) -> Sizes:
    """Return what some rows of a table take.

    Args:
        plain: the rows as the table has them.
        written: the same rows with the columns that are written.
        form: format of the file.
        at_once: how many rows are written as one batch: files of columns have more bytes if they have more batches.
    """
    if formats.named(form).examples:
        return Sizes(plain.num_rows, in_memory(plain), len(encode_records(written).data))
    some = plain.slice(0, at_once * _BATCHES)
    batches = [written.slice(first, min(at_once, some.num_rows - first)) for first in range(0, some.num_rows, at_once)]
    # a file has its dictionaries however many rows it has, and each batch of the sample has them whole
    size = _size(form, written.schema, batches) - _size(form, written.schema, [written.slice(0, 0)])
    return Sizes(some.num_rows, in_memory(some), size)


def _size(form: str, schema: pa.Schema, batches: list[pa.RecordBatch]) -> int:
    """Return the size of a file that has these batches."""
    sink = pa.MockOutputStream()
    with writer_of(form, sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return int(sink.size())
