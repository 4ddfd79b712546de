"""Packs tables into shards in two passes, so that all rows are shuffled within bounded memory.

::

    pass 1   batches --hash of each row's file and number--> split, rank --first bits of the rank--> buckets/00 ... 63, on disk
    pass 2   a bucket --sorted by (split, rank)--> the current shard of each split
             a bucket that is too large for the memory is dealt again, by the next bits of the rank

The rows' order is that of their ranks, whatever the size of the memory. A run that is killed in pass 1 begins again; one that
is killed in pass 2 goes on behind the shards that are finished.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner import leftovers
from akrunner.errors import WriteError
from akrunner.folders.gathered import numbers
from akrunner.foreign import underway
from akrunner.packing.dealing import BITS, RANK, SPLIT, Buckets, labelled, path_of
from akrunner.packing.described import schema_in
from akrunner.packing.files import Tally
from akrunner.packing.progress import Meter
from akrunner.packing.settings import Settings
from akrunner.packing.shards import ShardFile
from akrunner.packing.sizes import rows_at_once
from akrunner.packing.state import BUCKETS, State


class RowPacker:
    """Writes the shards of one part whose rows come from tables (pass 2)."""

    def __init__(self, state: State, part: int, settings: Settings, meter: Meter) -> None:
        self._state, self._part, self._settings, self._meter = state, part, settings, meter
        self._label: str | None = None
        self._labels: list[str] = []

    # -- pass 2

    def run(self) -> None:
        """Write the shards that are not finished yet. Raises: WriteError."""
        try:
            with self._writing():
                self._run()
        except BaseException:
            # a signal may have come before any object held the file that was begun, so remove such files here
            self._state.clear(self._part)
            raise

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return underway(WriteError, f"output: cannot write {self._state.path}", at=self._state.path)

    def _run(self) -> None:
        state, plan = self._state, self._state.plan(self._part)
        self._label, self._labels = plan["label"], plan["labels"]
        state.clear(self._part)
        rows = np.array(plan["buckets"], np.int64)
        queues: list[list[dict[str, Any]]] = []
        starts: list[int] = []
        for split in plan["splits"]:
            shards = [shard for shard in plan["shards"] if shard["split"] == split]
            # shards are finished in their order, so all from the first unfinished one on are written
            left = next((i for i, shard in enumerate(shards) if not state.is_done(self._part, shard)), len(shards))
            queues.append(shards[left:])
            # a finished shard behind it is written again, too, but is not reported as gone or damaged
            state.notes_again(self._part, (shard for shard in queues[-1] if not state.is_done(self._part, shard)))
            starts.append(queues[-1][0]["first"] if queues[-1] else int(rows[len(starts)].sum()))
        self._meter.goes_on(sum(starts))
        ends = np.cumsum(rows, axis=1)
        # the outputs are dropped behind it: the error about a full disk says how much is free as long as their files are there
        with contextlib.ExitStack() as stack, self._writing():
            outputs = [stack.enter_context(_Output(self, queue, start)) for queue, start in zip(queues, starts)]
            folder = os.path.join(state.folder(self._part), BUCKETS)
            for number in range(1 << BITS):
                if all(ends[i, number] <= start for i, start in enumerate(starts)):
                    continue
                skip = [max(0, start - int(ends[i, number] - rows[i, number])) for i, start in enumerate(starts)]
                for part in self._sorted(path_of(folder, number), int(plan["bucket_bytes"].get(str(number), 0)), BITS):
                    self._give(part, outputs, skip)

    def _give(self, table: pa.Table, outputs: list[_Output], skip: list[int]) -> None:
        """Write sorted rows to the shards of their splits. Args: skip: how many rows of each split are written already."""
        split = numbers(table.column(SPLIT))
        plain = table.drop_columns([RANK, SPLIT])
        for i, output in enumerate(outputs):
            first, end = np.searchsorted(split, [i, i + 1]).tolist()
            passed = min(skip[i], end - first)
            skip[i] -= passed
            if end > first + passed:
                output.write(plain.slice(first + passed, end - first - passed))

    def _sorted(self, path: str, size: int, used: int) -> Iterator[pa.Table]:
        """Give a bucket's rows, sorted by (split, rank), if it fits into memory; else deal it into smaller buckets first.

        The smaller buckets are in order of rank, and the rows of each are sorted by (split, rank).

        Args: path: the bucket's file; size: its bytes; used: how many bits of the rank were used for it.
        """
        if not os.path.exists(path):
            return
        if size <= self._settings.memory // 3 or used + BITS > 60:
            with pa.memory_map(path) as source:
                table = pa.ipc.open_stream(source).read_all()
            yield table.take(pc.sort_indices(table, sort_keys=[(SPLIT, "ascending"), (RANK, "ascending")]))
            return
        folder = path + ".parts"
        shutil.rmtree(folder, ignore_errors=True)
        leftovers.register(folder)
        try:
            os.makedirs(folder)
            with pa.OSFile(path) as source, pa.ipc.open_stream(source) as reader:
                buckets = Buckets(folder, reader.schema, used)
                for batch in reader:
                    buckets.add(batch)
                buckets.close()
            for number in range(1 << BITS):
                yield from self._sorted(path_of(folder, number), buckets.bytes.get(number, 0), used + BITS)
        finally:
            leftovers.drop(folder)

    def shard(self) -> ShardFile:
        plan = self._state.plan(self._part)
        return ShardFile(self._state.folder(self._part), self._settings.form, schema_in(plan["columns"]))

    def labelled(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return labelled(batch, self._label, self._labels)

    def done(self, shard: dict[str, Any], file: ShardFile) -> None:
        tally = Tally(rows=file.rows, bytes=file.commit(self._state.shard_path(self._part, shard)))
        tally.sum = str(file.sum)
        self._state.finished(self._part, shard, vars(tally))

    def count(self, rows: int) -> None:
        self._meter.add(rows)


class _Output:
    """Writes the shards of one split, one after the other."""

    def __init__(self, packer: RowPacker, shards: list[dict[str, Any]], at: int) -> None:
        self._packer, self._shards, self._at = packer, shards, at
        self._file: ShardFile | None = None

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.drop()

    def write(self, table: pa.Table) -> None:
        while table.num_rows:
            shard = self._shards[0]
            self._file = self._file or self._packer.shard()
            some = table.slice(0, min(shard["end"] - self._at, rows_at_once(table.nbytes, table.num_rows)))
            self._file.write_rows(self._packer.labelled(_one_batch(some)))
            self._at += some.num_rows
            self._packer.count(some.num_rows)
            table = table.slice(some.num_rows)
            if self._at == shard["end"]:
                self._packer.done(shard, self._file)
                self._file = None
                self._shards.pop(0)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    return batch
