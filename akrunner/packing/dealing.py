"""Pass 1 of packing tables: each row is read once, and put into a bucket on disk. The module `rows` has a diagram."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, octets_of, texts_of
from akrunner.errors import ReadError, WriteError
from akrunner.folders.gathered import NAME
from akrunner.foreign import underway
from akrunner.io import formats, hashes
from akrunner.io.table import TableSource
from akrunner.leftovers.private import private_file
from akrunner.packing import ranks, sizes
from akrunner.packing.described import check_values, words_of
from akrunner.packing.index import in_order, numbered, plain_text
from akrunner.packing.progress import Meter
from akrunner.packing.sealed import Sum
from akrunner.packing.settings import Settings, ending
from akrunner.packing.shards import Sink
from akrunner.packing.state import BUCKETS, INDEX, State

RANK, SPLIT = "\x1frank", "\x1fsplit"
BITS = 6
#: how many bytes are gathered for a bucket before they are written
_GATHERED = 256 << 10
U64 = NDArray[np.uint64]


class Buckets:
    """Writes rows to files, chosen by `BITS` bits of the rows' ranks.

    Args: shift: how many bits of the rank were used before.
    """

    def __init__(self, folder: str, schema: pa.Schema, shift: int = 0) -> None:
        self._folder, self._schema, self._shift = folder, schema, shift
        self._writers: dict[int, Any] = {}
        self._held: dict[int, list[pa.RecordBatch]] = {}
        self._sizes: dict[int, int] = {}
        #: bucket -> bytes of its rows
        self.bytes: dict[int, int] = {}
        #: bucket -> the checksum of its file
        self.sums: dict[int, Sum] = {}
        self._files: list[Any] = []

    def add(self, batch: pa.RecordBatch) -> None:
        rank = np.frombuffer(batch.column(RANK).buffers()[1], np.uint64, batch.num_rows, batch.column(RANK).offset * 8)
        bucket = (rank << np.uint64(self._shift)) >> np.uint64(64 - BITS)
        order = np.argsort(bucket, kind="stable")
        whole = batch.take(array_of(order))
        counts = np.bincount(bucket.astype(np.int64), minlength=1 << BITS)
        at = 0
        for number in np.flatnonzero(counts).tolist():
            self._hold(number, whole.slice(at, int(counts[number])))
            at += int(counts[number])

    def _hold(self, number: int, batch: pa.RecordBatch) -> None:
        held = self._held.setdefault(number, [])
        held.append(batch)
        size = int(batch.nbytes)
        self._sizes[number] = self._sizes.get(number, 0) + size
        self.bytes[number] = self.bytes.get(number, 0) + size
        if self._sizes[number] >= _GATHERED:
            self._flush(number)

    def _flush(self, number: int) -> None:
        held = self._held.pop(number, [])
        self._sizes[number] = 0
        if held:
            if number not in self._writers:
                self.sums[number] = Sum()
                self._files.append(pa.OSFile(path_of(self._folder, number), "wb"))
                self._writers[number] = pa.ipc.new_stream(Sink(self._files[-1], self.sums[number]), self._schema)
            self._writers[number].write_table(pa.Table.from_batches(held).combine_chunks())

    def close(self) -> None:
        for number in list(self._held):
            self._flush(number)
        for writer in self._writers.values():
            writer.close()
        for file in self._files:
            file.close()


def path_of(folder: str, number: int) -> str:
    return os.path.join(folder, f"{number:02d}.arrows")


@dataclass(frozen=True)
class Before:
    """What earlier parts have. Attributes: labels: the classes; dealt: how many rows of each class were dealt to splits."""

    labels: list[str]
    dealt: Sequence[int]


class Dealing:
    """Reads every row, and deals it to a split and a bucket.

    Args:
        settings: the settings of the run.
        folder: directory of the buckets.
        label: the column of classes; None: there is none.
        before: what earlier parts have.
        meter: counts what is done.
    """

    def __init__(self, settings: Settings, folder: str, label: str | None, before: Before, meter: Meter) -> None:
        self._settings, self._folder, self._meter, self._label = settings, folder, meter, label
        splits = len(settings.splits)
        self._classes = _Classes(label, before.labels, before.dealt, splits)
        self._rows, self._size = np.zeros((splits, 1 << BITS), np.int64), np.zeros(splits)
        self._buckets: Buckets | None = None
        self._schema: pa.Schema | None = None

    def read(self, name: bytes, table: TableSource) -> int:
        """Read and deal all rows of a table. Args: name: the table's name. Returns: how many. Raises: ReadError, WriteError."""
        first = 0
        with underway(ReadError, f"source: cannot read {table.name}"):
            for batch in table.batches():
                if batch.num_rows:
                    self._add(batch, ranks.hashes_of_rows(name, self._settings.seed, first, batch.num_rows), first, table.name)
                    first += batch.num_rows
        return first

    def _add(self, batch: pa.RecordBatch, hashed: U64, first: int, name: str) -> None:
        settings, classes, splits = self._settings, self._classes, len(self._settings.splits)
        number = classes.of(batch, first, name)
        # checked now: once the rows are shuffled, the error could not say which row of which file is wrong
        check_values(batch.select([one for one in batch.schema.names if one != self._label]), settings.form, first, name)
        if settings.split_by == "name":
            split = hashes.by_name(hashed, settings.fractions)
        else:
            split, classes.dealt = ranks.stratified(hashed, number, settings.fractions, classes.dealt)
        rank = hashes.mixed(hashed, hashes.ORDER)
        marked = batch.append_column(RANK, array_of(rank)).append_column(SPLIT, array_of(split))
        with underway(WriteError, f"output: cannot write {self._folder}", at=self._folder):
            self._schema = batch.schema
            self._buckets = self._buckets or Buckets(self._folder, marked.schema)
            self._buckets.add(marked)
        bucket = (rank >> np.uint64(64 - BITS)).astype(np.int64)
        self._rows += _counted(split, bucket, self._rows.shape)
        classes.counts += _counted(split, number, classes.counts.shape)
        self._size += np.bincount(split, minlength=splits) * (sizes.in_memory(batch) / batch.num_rows)
        self._meter.add(batch.num_rows, batch.nbytes)

    def plan(self, name_of: Callable[[str, int], str]) -> dict[str, Any] | None:
        """Close the buckets, and return the plan; None: no row was read. The shards' numbers of rows differ by at most one.

        Args: name_of: (split, number of a new shard) -> its name without an ending.
        """
        if self._buckets is None or self._schema is None:
            return None
        labels, order = self._classes.sorted()
        with underway(WriteError, f"output: cannot write {self._folder}", at=self._folder):
            self._buckets.close()
        size = self._in_files(self._buckets.bytes, labels)
        shards: list[dict[str, Any]] = []
        for number, name in enumerate(self._settings.splits):
            rows = int(self._rows[number].sum())
            if not rows:
                continue
            wanted = max(1, min(rows, round(size[number] / self._settings.shard_size)))
            cuts = ranks.cut_rows(rows, wanted).tolist()
            for i, (a, b) in enumerate(itertools.pairwise(cuts)):
                shards.append({"split": name, "file": name_of(name, i) + ending(self._settings.form), "first": a, "end": b})
        return {
            "labels": labels,
            "label": self._label,
            "splits": list(self._settings.splits),
            "columns": words_of(schema_of(self._schema, self._label)),
            "table": words_of(self._schema),
            "shards": shards,
            "rows": int(self._rows.sum()),
            "dealt": self._classes.dealt[order].tolist(),
            "counts": self._classes.counts[:, order].tolist(),
            "buckets": self._rows.tolist(),
            "bucket_bytes": {str(number): size for number, size in self._buckets.bytes.items()},
            "bucket_sums": {str(number): str(one) for number, one in self._buckets.sums.items()},
        }

    def _in_files(self, buckets: dict[int, int], labels: list[str]) -> list[float]:
        """Return about how many bytes the rows of each split take in files [splits]; 0 for a split without rows.

        Args: buckets: bucket -> bytes of its rows, which are written; labels: names of the classes.
        """
        sample = sizes.some_rows({path_of(self._folder, number): buckets[number] for number in sorted(buckets)}, RANK)
        plain = sample.drop_columns([RANK, SPLIT])
        written = labelled(plain, self._label, labels)
        form, found = self._settings.form, []
        known: dict[int, sizes.Sizes] = {}
        for size, rows in zip(self._size.tolist(), self._rows.sum(axis=1).tolist()):
            # pass 2 writes the rows of one bucket after those of another; of Examples it does not matter how many are written at once
            most = sizes.rows_at_once(sizes.in_memory(plain), plain.num_rows)
            at_once = most if formats.named(form).examples else min(max(1, rows >> BITS), most)
            if rows and at_once not in known:
                known[at_once] = sizes.sizes_of(plain, written, form, at_once)
            found.append(known[at_once].of(size, rows) if rows else 0.0)
        return found


def deal(
    state: State, part: int, settings: Settings, meter: Meter, sources: Sequence[tuple[bytes, TableSource]], label: str | None, before: Before,
    files: pa.Table | None, about: dict[str, Any],
) -> bool:  # fmt: skip
    """Read the tables of a part, and write its plan.

    Args:
        state: the output.
        part: number of the part.
        settings: the settings of the run.
        meter: counts what is done.
        sources: (name, table) of each file.
        label: the column of classes; None: there is none.
        before: what earlier parts have.
        files: the index of the files; None: the tables are not read from files.
        about: other values of the plan.
    Returns:
        Whether there are rows. If there are none, or an error is raised, nothing of the part is left.
    Raises:
        ReadError: a table cannot be read, or a row has no class.
        WriteError: the buckets or the plan cannot be written.
    """
    home = state.begin(part)
    try:
        folder = os.path.join(home, BUCKETS)
        os.makedirs(folder)
        dealing = Dealing(settings, folder, label, before, meter)
        empty = [name for name, table in sources if not dealing.read(name, table)]
        plan = dealing.plan(state.namer(about["alone"]))
        if plan is None:
            shutil.rmtree(home, ignore_errors=True)
            return False
        with underway(WriteError, f"output: cannot write {folder}", at=folder):
            if files is not None:
                # leave out files without rows: none of them is packed, so one that gets rows later counts as new
                files = files.filter(pc.invert(pc.is_in(files.column(NAME), value_set=octets_of(empty, pa.large_binary()))))
                with private_file(os.path.join(home, INDEX), "wb") as sink, pa.ipc.new_file(sink, files.schema) as writer:
                    writer.write_table(files)
            state.save(part, {**about, **plan, "indexed": files is not None})
        return True
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise


def _counted(rows: Any, columns: Any, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Return how often each pair of a row number and a column number occurs, as a table of the given shape."""
    return np.bincount(rows.astype(np.int64) * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape)


class _Classes:
    """The classes met so far, in the order in which they were met, and the rows dealt of each.

    Attributes:
        dealt: rows of each class dealt in this part and those before [classes].
        counts: rows of this part [splits, classes].
    """

    def __init__(self, label: str | None, labels: list[str], before: Sequence[int], splits: int) -> None:
        self._label, self._there = label, labels
        self._names: list[str] = list(labels)
        self.dealt = np.array([*before, *([0] * (max(1, len(labels)) - len(before)))], np.int64)
        self.counts = np.zeros((splits, max(1, len(labels))), np.int64)

    def of(self, batch: pa.RecordBatch, first: int, name: str) -> NDArray[np.int64]:
        """Return the number of each row's class [rows]. Raises: ReadError: a row has none."""
        if self._label is None:
            return np.zeros(batch.num_rows, np.int64)
        column = batch.column(self._label)
        known = set(self._names)
        self._names += [one for one in pc.unique(plain_text(column)).to_pylist() if one and one not in known]
        more = max(1, len(self._names)) - len(self.dealt)
        self.dealt = np.pad(self.dealt, (0, more))
        self.counts = np.pad(self.counts, ((0, 0), (0, more)))
        found = numbered(column, self._names)
        if (found < 0).any():
            row = first + int(np.flatnonzero(found < 0)[0])
            raise ReadError(
                f"source: {name}: row {row} has no {self._label!r}: fill it, leave such rows out with select= "
                "(--select), or pack without classes: label='none' (--label none)"
            )
        return found

    def sorted(self) -> tuple[list[str], NDArray[np.int64]]:
        """Return (all classes: those of earlier parts, then the new ones, sorted; the number under which each was met)."""
        new = in_order(self._names[len(self._there) :])
        names = [*self._there, *new]
        place = {name: i for i, name in enumerate(self._names)}
        return names, np.array([place[name] for name in names] or [0], np.int64)


def schema_of(schema: pa.Schema, label: str | None) -> pa.Schema:
    """Return the schema of packed rows.

    Args: schema: schema of the table; label: its column of classes; None: there is none.
    """
    none = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    return labelled(none, label, []).schema


def labelled(batch: pa.RecordBatch, label: str | None, labels: list[str]) -> pa.RecordBatch:
    """Return a batch whose column of classes is replaced by two, with their numbers and names.

    Args: label: the column of classes; None: there is none, and the batch is unchanged; labels: names of the classes.
    """
    if label is None:
        return batch
    fields: list[pa.Field] = []
    columns: list[pa.Array] = []
    classes = numbered(batch.column(label), labels)
    for field, column in zip(batch.schema, batch.columns):
        if field.name == label:
            fields += [pa.field("label", pa.int64(), False), pa.field("label_name", pa.string(), False)]
            columns += [array_of(classes), texts_of(labels).take(array_of(classes))]
        else:
            fields.append(field)
            columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
