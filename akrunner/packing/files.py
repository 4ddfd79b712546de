"""Packs files into shards: each file is read once, in the order in which it is written.

::

    Index --hashes--> split of each, rank in the whole --> index.arrow, in the order of shards; plan.json
    plan  --a shard at a time--> Pool: read, a batch ahead --> headers checked --> ShardFile --> finished shard
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, texts_of
from akrunner.errors import WriteError
from akrunner.folders import images
from akrunner.folders.gathered import MTIME, NAME, ROWS, SIZE, numbers, released, text_of, truths
from akrunner.folders.pool import EMPTY, NO_PATH, NOT_THERE, Batch, Pool, asked_of
from akrunner.folders.remote import Unfetched, too_large
from akrunner.folders.texts import unmarked
from akrunner.foreign import redacted, underway
from akrunner.io import hashes
from akrunner.leftovers.private import private_file
from akrunner.packing import copies, leftout, pictures, ranks
from akrunner.packing.described import words_of
from akrunner.packing.index import CLASS, LABEL, SPLIT, TEXT, Index, numbered, plain_names
from akrunner.packing.progress import Meter
from akrunner.packing.settings import Settings, ending
from akrunner.packing.shards import ShardFile
from akrunner.packing.state import INDEX, State

#: least number of files for which a helper process reads them, and the average bytes of a file below which it does
_HELPED, _SMALL = 2000, 1 << 20
#: bytes of a row besides its file's, about
_AROUND = 150
_THREAD = "akrunner-pack"
#: how many files are read to estimate the bytes of a packed file
_SAMPLE = 32
#: bytes that a file is taken to have if none could be read: about those of a photograph for the web
_GUESSED = 100_000
#: how many broken files end a run, which looks for no more then
_ENOUGH = 1000
I64 = NDArray[np.int64]
_N = TypeVar("_N", bound=np.generic)
#: kind -> the column that has a file's bytes
CONTENT = {"images": "image", "texts": "text", "files": "data"}


def schema_of(kind: str, classes: bool, extra: Sequence[pa.Field]) -> pa.Schema:
    """Return the columns of a packed row.

    Args: kind: images, texts or files; classes: whether the rows have classes; extra: other columns of a list.
    """
    content = pa.field(CONTENT[kind], pa.string() if kind == "texts" else pa.binary(), False)
    labels = [pa.field("label", pa.int64(), False), pa.field("label_name", pa.string(), False)] if classes else []
    size = [pa.field("height", pa.int64(), False), pa.field("width", pa.int64(), False)] if kind == "images" else []
    return pa.schema([content, *labels, pa.field("path", pa.string(), False), *size, *(one.remove_metadata() for one in extra)])


def work_of(kind: str, settings: Settings) -> Callable[[bytes], tuple[bytes, str]] | None:
    """Return the function by which a thread checks or changes the bytes of each file that it has read; None: there is none."""
    size = settings.resize
    if kind == "texts":
        return _text
    if kind == "images" and size is not None:
        return lambda data: pictures.resized(data, size)
    if kind == "images" and settings.check == "whole":
        return lambda data: (data, pictures.fault(data) or "")
    return None


def _text(data: bytes) -> tuple[bytes, str]:
    text, why = unmarked(data)
    return text, why or ("" if text else f"{EMPTY}, but for a byte order mark")


@dataclass
class Plan:
    """Which shard each file goes to.

    Attributes:
        order: rows of the index, in the order in which they are written [rows].
        split: number of each row's split [rows of the index].
        label: number of each row's class; -1: it has none [rows of the index].
        shards: the shards, as plan.json has them.
        dealt: how many files of each class were dealt to splits, in this part and those before [classes].
        takes: bytes of a shard that each row takes, about, in the order in which rows are written [rows].
        several: number of rows whose file another row has, too.
        unlike: (name, numbers of classes) of each file whose rows have different classes.
        sampled: how many files were read to estimate sizes.
        problems: row of the index -> (path, why) of those sampled files that cannot be packed.
        unfetched: name -> why, of those sampled files that could not be fetched; the run does not try them again.
    """

    order: NDArray[np.int32]
    split: NDArray[np.uint8]
    label: NDArray[np.int32]
    shards: list[dict[str, Any]]
    dealt: list[int]
    takes: I64
    several: int = 0
    unlike: list[tuple[bytes, list[int]]] = field(default_factory=list)
    sampled: int = 0
    problems: dict[int, tuple[str, str]] = field(default_factory=dict)
    unfetched: dict[bytes, str] = field(default_factory=dict)


def planned(
    index: Index, settings: Settings, labels: list[str], splits: Sequence[str], before: Sequence[int], there: I64, name_of: Callable[[str, int], str],
    folder_of: NDArray[np.int64] | None, kind: str,
) -> Plan:  # fmt: skip
    """Plan the shards of an index's files.

    Args:
        index: the files.
        settings: the settings of the run.
        labels: names of the classes; empty: there are none.
        splits: names of the splits.
        before: how many files of each class earlier parts dealt [classes].
        there: number of rows of earlier parts [splits, classes].
        name_of: (split, number of a new shard) -> its name without an ending.
        folder_of: number of the split that each file's folder says [rows]; None: folders are not splits.
        kind: images, texts or files.
    """
    table = index.table
    rows = len(index)
    label, hashed = np.full(rows, -1, np.int32), np.empty(rows, np.uint64)
    for first in range(0, rows, ROWS):
        some = slice(first, first + ROWS)
        if labels:
            label[some] = numbered(table.column(CLASS)[some], labels)
        hashed[some] = ranks.hashes_of(plain_names(table.column(NAME)[some], index.base).to_pylist(), settings.seed)
    # the same file may be listed twice
    released()
    firsts, same = _same(hashed)
    several = rows - len(firsts)
    # rows without a path are not packed, so they are not counted as a file that is named several times
    without = int(np.count_nonzero(truths(pc.equal(pc.binary_length(table.column(NAME)), 0))))
    dealt = np.array([*before, *([0] * (max(1, len(labels)) - len(before)))], np.int64)
    if settings.split_by == "folder":
        assert folder_of is not None
        split = folder_of.astype(np.uint8)
    else:
        fractions = settings.fractions_of(splits)
        if settings.split_by == "name":
            split = np.empty(rows, np.uint8)
            for first in range(0, rows, ROWS):
                split[first : first + ROWS] = hashes.by_name(hashed[first : first + ROWS], fractions)
            split = ranks.none_without(split, hashed, np.maximum(label, 0), fractions, there)
            # rows of the same file go to the same split
            split = _picked(split, _picked(firsts, same)) if several else split
        else:
            # files are dealt, not rows: of a file that is named twice, the second row would have another split's turn
            classes = np.maximum(_picked(label, firsts), 0)
            split, dealt = ranks.stratified(_picked(hashed, firsts), classes, fractions, dealt)
            split = _picked(split, same)
    unlike = _unlike(table, label, same) if several and labels else []
    # what is as long as the index is freed as soon as possible
    del firsts, same
    hashed = hashes.mixed(hashed, hashes.ORDER)
    # rows of the same file stay in the order of the index
    order = np.lexsort((hashed, split)).astype(np.int32)
    del hashed
    takes, sampled, problems, unfetched = _sizes(index, order, settings, kind)
    takes += _AROUND
    shards: list[dict[str, Any]] = []
    counts = np.bincount(split, minlength=len(splits))
    at = 0
    for name, count in zip(splits, counts.tolist()):
        if not count:
            continue
        cuts = ranks.cut_evenly(takes[at : at + count], settings.shard_size)
        for i, (a, b) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist())):
            file = name_of(name, i) + ending(settings.form)
            shards.append({"split": name, "file": file, "first": at + a, "end": at + b})
        at += count
    several = max(0, several - max(0, without - 1))
    return Plan(order, split, label, shards, dealt.tolist(), takes, several, unlike, sampled, problems, unfetched)


def _same(hashed: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return (the first row of each name [names], the number of each row's name [rows]).

    `numpy.unique` returns the same, with three times the memory.
    """
    order = np.argsort(hashed, kind="stable").astype(np.int32)
    begins = np.ones(len(order), np.bool_)
    for first in range(1, len(order), ROWS):
        some = hashed[order[first - 1 : first + ROWS]]
        begins[first : first + ROWS] = some[1:] != some[:-1]
    same, numbers_ = np.empty(len(order), np.int32), np.cumsum(begins, dtype=np.int32)
    numbers_ -= 1
    for first in range(0, len(order), ROWS):
        same[order[first : first + ROWS]] = numbers_[first : first + ROWS]
    return order[begins], same


def _picked(values: NDArray[_N], places: NDArray[np.integer[Any]]) -> NDArray[_N]:
    """Return `values[places]`, made in pieces: numpy first makes indices of 64 bits of all places."""
    found = np.empty(len(places), values.dtype)
    for first in range(0, len(places), ROWS):
        found[first : first + ROWS] = values[places[first : first + ROWS]]
    return found


def _unlike(table: pa.Table, label: NDArray[np.int32], same: NDArray[np.int32]) -> list[tuple[bytes, list[int]]]:
    """Return (name, numbers of classes) of each file whose rows have different classes.

    Args: label: number of each row's class, -1: none [rows]; same: number of each row's file [rows].
    """
    # rows without a class or a path are left out: they are reported as broken
    rows = np.flatnonzero((label >= 0) & truths(pc.greater(pc.binary_length(table.column(NAME)), 0))).astype(np.int32)
    rows = _picked(rows, np.lexsort((_picked(label, rows), _picked(same, rows))))
    file, number = _picked(same, rows), _picked(label, rows)
    changes = np.flatnonzero((file[1:] == file[:-1]) & (number[1:] != number[:-1])) + 1
    found: dict[int, tuple[int, list[int]]] = {}
    for at in changes.tolist():
        found.setdefault(int(file[at]), (int(rows[at]), [int(number[at - 1])]))[1].append(int(number[at]))
    return [(table.column(NAME)[row].as_py(), classes) for row, classes in found.values()]


def _sizes(
    index: Index, order: NDArray[np.int32], settings: Settings, kind: str
) -> tuple[I64, int, dict[int, tuple[str, str]], dict[bytes, str]]:
    """Return the sizes of the packed files; if some are not known, read a few files and estimate the others.

    Returns:
        (bytes of each packed file, in the order in which files are written [rows], how many files were read,
        row -> (path, why) of files read that cannot be packed, name -> why of those that could not be fetched).
    """
    sizes = _picked(numbers(index.table.column(SIZE)), order)
    # a larger file is not packed, so that it takes no place in a shard
    sizes = np.where(sizes > settings.max_file_size, 0, sizes)
    if (sizes >= 0).all() and not (kind == "images" and settings.resize):
        return sizes, 0, {}, {}
    sample = order[:_SAMPLE]
    some = index.rows(sample)
    names, known = some.column(NAME).to_pylist(), numbers(some.column(SIZE)).tolist()
    found: list[int] = []
    problems: dict[int, tuple[str, str]] = {}
    unfetched: dict[bytes, str] = {}
    with Pool(index.base, settings.threads, work_of(kind, settings), settings.max_file_size) as pool:
        for batch in pool.read([(None, names, known)]):
            looked = images.look(batch.datas).problems if kind == "images" and settings.check != "none" else {}
            why = {**looked, **batch.problems}
            # broken files, such as pages of HTML in place of images, say nothing about the size of those that are packed
            found += [len(data) for i, data in enumerate(batch.datas) if data is not None and i not in why]
            for i in sorted(why):
                at = batch.first + i
                (row,) = leftout.located(some.slice(at, 1), [why[i]])
                problems[int(sample[at])] = leftout.shown(names[at]), str(row)
                if isinstance(why[i], Unfetched):
                    unfetched[names[at]] = why[i]
    mean = int(np.mean(found)) if found else _GUESSED
    estimated = np.full(len(order), mean, np.int64) if settings.resize else np.where(sizes < 0, mean, sizes)
    return estimated, len(names), problems, unfetched


def seen_broken(index: Index, label: NDArray[np.int32], classes: bool, most: int) -> dict[int, tuple[str, str]]:
    """Return row -> (path, why) of files that cannot be packed, as far as the listing shows; no file is read.

    Args:
        label: number of each row's class; -1: it has none [rows].
        classes: whether the rows have classes.
        most: most bytes of a file.
    """
    sizes, times = numbers(index.table.column(SIZE)), numbers(index.table.column(MTIME))
    paths = index.table.column(NAME)
    near = ~truths(pc.match_substring(paths, "://"))
    odd = ((sizes <= 0) & near) | (sizes > most) | (classes & (label < 0))
    broken = index.table.filter(array_of(odd))
    whys = []
    for row in np.flatnonzero(odd).tolist():
        if sizes[row] > most:
            why = too_large(int(sizes[row]), most)
        elif near[row] and sizes[row] <= 0:
            why = _unread(paths[row].as_py(), int(sizes[row]), int(times[row]))
        else:
            why = "the list says no class for it"
        whys.append(why)
    names = map(leftout.shown, broken.column(NAME).to_pylist())
    return dict(zip(np.flatnonzero(odd).tolist(), zip(names, leftout.located(broken, whys))))


def _unread(name: bytes, size: int, time: int) -> str:
    """Return why a local file without bytes cannot be packed. Args: size, time: as in an index."""
    if not name:
        return NO_PATH
    if not size:
        return EMPTY
    # only what is there has a time
    return "it is no plain file" if time else f"{NOT_THERE}, or it cannot be looked at"


def save(state: State, part: int, index: Index, plan: Plan, about: dict[str, Any]) -> None:
    """Write the index in the order of the plan, then the plan. Raises: WriteError."""
    folder = state.begin(part)
    with underway(WriteError, f"output: cannot write {folder}", at=folder):
        schema = index.table.schema.append(pa.field(SPLIT, pa.uint8())).append(pa.field(LABEL, pa.int64()))
        with private_file(os.path.join(folder, INDEX), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for first in range(0, len(plan.order), ROWS):
                writer.write_table(_rows(index, plan, plan.order[first : first + ROWS]).cast(schema))
                released()
        state.save(
            part,
            {
                **about,
                "columns": words_of(schema_of(about["kind"], bool(about["labels"]), index.extra)),
                "shards": plan.shards,
                "dealt": plan.dealt,
                "base": index.base,
                "rows": len(plan.order),
            },
        )


def _rows(index: Index, plan: Plan, places: NDArray[np.int32]) -> pa.Table:
    """Return some rows of an index, with the split and the class of each."""
    rows = index.rows(places).append_column(SPLIT, array_of(plan.split[places]))
    return rows.append_column(LABEL, array_of(plan.label[places]))


@dataclass
class Tally:
    """What is in a shard, as its record has it.

    Attributes:
        rows: number of rows.
        bytes: bytes of the shard.
        sum: checksum of the shard.
        formats: format of images -> how many there are.
        labels: number of a class, as text -> how many rows it has.
        bad: (path, why) of broken files.
        bad_names: names of the broken files, as hex.
        unfetched: (path, why) of files that could not be fetched.
        again: names of the files that could not be fetched, as hex.
        kept: rows of the table of left-out files, for both kinds; empty without a directory for broken files.
    """

    rows: int = 0
    bytes: int = 0
    sum: str = ""
    formats: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    bad: list[tuple[str, str]] = field(default_factory=list)
    bad_names: list[str] = field(default_factory=list)
    unfetched: list[tuple[str, str]] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    kept: list[copies.Kept] = field(default_factory=list)


class FilePacker:
    """Writes the shards of one part that are not finished yet.

    Args:
        state: the output.
        part: number of the part.
        settings: the settings of the run.
        meter: counts what is done.
        earlier: (path, why) of broken files of earlier runs; if there are any, the run fails even if the part's files are good.
        unfetched: name -> why, of files that could not be fetched a moment ago, and are not tried again.
    """

    def __init__(
        self,
        state: State,
        part: int,
        settings: Settings,
        meter: Meter,
        earlier: Sequence[tuple[str, str]] = (),
        unfetched: Mapping[bytes, str] | None = None,
    ) -> None:
        self._state, self._part, self._settings, self._meter = state, part, settings, meter
        self._earlier = earlier
        self._known = unfetched
        self._plan = state.plan(part)
        self._kind: str = self._plan["kind"]
        self._labels: list[str] = self._plan["labels"]
        self._names = texts_of(self._labels)
        self._index = state.index(part)
        self._extra = [one for one in self._index.schema if not one.name.startswith("\x1f")]
        self._schema = schema_of(self._kind, bool(self._labels), self._extra)
        self._broken: list[tuple[str, str]] = []
        self._unfetched: list[tuple[str, str]] = []
        self._others = pa.schema([one for one in self._schema if one.name != CONTENT[self._kind]])

    def run(self) -> None:
        """Write the shards. Raises: ReadError: a file is broken, and `bad_rows` is "fail"; WriteError."""
        try:
            self._run()
        except BaseException:
            # a signal may have come before any object held the file that was begun, so remove such files here
            self._state.clear(self._part)
            raise

    def _run(self) -> None:
        state = self._state
        state.clear(self._part)
        open_ = self._open()
        done = sum(shard["end"] - shard["first"] for shard in self._plan["shards"]) - sum(s["end"] - s["first"] for s in open_)
        self._meter.goes_on(done)
        base, work = self._plan["base"], work_of(self._kind, self._settings)
        # one thread makes sure that a shard is on the disk, while the next one is written
        with (
            Pool(base, self._settings.threads, work, self._settings.max_file_size, self._known) as pool,
            ThreadPoolExecutor(1, _THREAD) as closer,
            ThreadPoolExecutor(1, _THREAD) as writer,
        ):
            if self._is_worth_help(open_):
                pool.help()
            batches = pool.read(self._asked(open_))
            closing: list[Future[None]] = []
            for shard in open_:
                file, tally = self._write(shard, batches, writer)
                done += shard["end"] - shard["first"]
                with _dropped(file):
                    while closing:
                        closing.pop().result()
                    closing.append(closer.submit(self._close, shard, file, tally))
                if len(self._broken) + len(self._unfetched) >= _ENOUGH:
                    break
            while closing:
                closing.pop().result()
        if self._broken or self._unfetched or self._earlier:
            raise leftout.refused(
                self._kind,
                self._broken,
                self._unfetched,
                self._earlier,
                base=self._plan["base"],
                read=done + len(self._earlier),
            )

    def _open(self) -> list[dict[str, Any]]:
        """Return the shards to write; note those that an earlier run had finished and that are gone or damaged."""
        found, lost = [], []
        for shard in self._plan["shards"]:
            if self._is_read_again(shard):
                found.append(shard)
            elif not self._state.is_done(self._part, shard):
                found.append(shard)
                lost.append(shard)
        self._state.notes_again(self._part, lost)
        return found

    def _is_read_again(self, shard: dict[str, Any]) -> bool:
        """Whether this run has other files of a shard to pack, or to name, than the run that has finished it."""
        if self._settings.bad_rows == "fail":
            # its broken files are read again, so that the error names them, and all of them are as they are now
            return self._state.has_left_out(self._part, shard)
        # no later run would try a file again that is in this part
        left_out = (self._state.result(self._part, shard) or {}).get("bad", ())
        return leftout.has_fitting(left_out, self._settings.max_file_size)

    def _is_worth_help(self, shards: list[dict[str, Any]]) -> bool:
        """Whether a helper should read the files: if they are many, local and small. Larger files keep threads busy enough."""
        rows = sum(shard["end"] - shard["first"] for shard in shards)
        if rows < _HELPED or self._plan["base"] is None:
            return False
        sizes = numbers(self._index.column(SIZE))
        # a larger file is not read
        sizes = np.where(sizes > self._settings.max_file_size, 0, sizes)
        return float(sizes.mean()) < _SMALL and not pc.any(pc.match_substring(self._index.column(NAME), "://")).as_py()

    def _asked(self, shards: list[dict[str, Any]]) -> Iterator[tuple[tuple[int, int], list[bytes], list[int]]]:
        """Give the batches to read: (key, names, sizes); no batch has files of two shards."""
        for shard in shards:
            yield from asked_of(self._index, shard["first"], shard["end"])

    def _write(self, shard: dict[str, Any], batches: Iterator[Batch], writer: ThreadPoolExecutor) -> tuple[ShardFile, Tally]:
        """Write the rows of a shard. Returns: (its file, which `_close` gives its name; what is in it)."""
        tally = Tally()
        with self._writing():
            file = ShardFile(self._state.folder(self._part), self._settings.form, self._schema, writer)
        # dropped outside: the error about a full disk says how much is free as long as the shard is there
        with _dropped(file), self._writing():
            at = shard["first"]
            while at < shard["end"]:
                batch = next(batches)
                at = batch.key[0] + batch.first + len(batch.datas)
                self._add(batch, file, tally)
                self._meter.add(len(batch.datas), sum(len(data) for data in batch.datas if data is not None))
            # wait for the writing: the next batch but one may overwrite the bytes of the last one
            file.settle()
        if self._settings.bad_rows == "fail":
            self._broken += tally.bad
            self._unfetched += tally.unfetched
        return file, tally

    def _close(self, shard: dict[str, Any], file: ShardFile, tally: Tally) -> None:
        """Give a shard its name, once it is on the disk."""
        if (tally.bad or tally.unfetched) and self._settings.bad_rows == "fail":
            # the other shards are still packed: the error names every broken file, and the next run has less to do
            with self._writing():
                file.drop()
            return
        with _dropped(file), self._writing():
            tally.rows = file.rows
            if file.rows:
                tally.bytes = file.commit(self._state.shard_path(self._part, shard))
                tally.sum = str(file.sum)
            else:
                file.drop()
        with self._writing():
            self._state.finished(self._part, shard, vars(tally))

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return underway(WriteError, f"output: cannot write {self._state.path}", at=self._state.path)

    def _add(self, batch: Batch, file: ShardFile, tally: Tally) -> None:
        """Write the good rows of a batch, and note the others."""
        first = batch.key[0] + batch.first
        end = first + len(batch.datas)
        rows = self._index.slice(first, end - first)
        looked = images.look(batch.datas) if self._kind == "images" else None
        if looked is not None and self._settings.check != "none":
            for i, words in looked.problems.items():
                batch.problems.setdefault(i, words)
        label = numbers(rows.column(LABEL))
        if self._labels:
            for i in np.flatnonzero(label < 0).tolist():
                batch.problems.setdefault(i, "the list says no class for it")
        good = np.delete(np.arange(end - first), list(batch.problems))
        if batch.problems:
            self._note(rows, batch, tally)
        if not len(good):
            # as after a batch with rows: the bytes of the batch before may be overwritten now
            file.settle()
            return
        taken = rows if len(good) == len(batch.datas) else rows.take(array_of(good))
        columns: dict[str, Any] = {"path": _shown(_as_it_stands(taken))}
        if self._labels:
            counts = np.bincount(label[good], minlength=len(self._labels))
            for number in np.flatnonzero(counts).tolist():
                tally.labels[str(number)] = tally.labels.get(str(number), 0) + int(counts[number])
            columns["label"] = array_of(label[good])
            columns["label_name"] = self._names.take(columns["label"])
        if looked is not None:
            columns["height"], columns["width"] = array_of(looked.height[good]), array_of(looked.width[good])
            counts = np.bincount(looked.format[good] + 1, minlength=1 + len(images.FORMATS))
            for name, count in zip(("unknown", *images.FORMATS), counts.tolist()):
                if count:
                    tally.formats[name] = tally.formats.get(name, 0) + count
        for one in self._extra:
            columns[one.name] = taken.column(one.name).combine_chunks()
        datas = [batch.datas[i] for i in good.tolist()]
        made = pa.RecordBatch.from_arrays([_whole(columns[one.name]) for one in self._others], schema=self._others)
        crcs = None if batch.crcs is None else batch.crcs[good]
        file.write_files(made, self._schema.field(CONTENT[self._kind]), [data for data in datas if data is not None], crcs)

    def _note(self, rows: pa.Table, batch: Batch, tally: Tally) -> None:
        """Note the names of files that cannot be packed, and why; copy them, if there is a directory for broken files."""
        places = sorted(batch.problems)
        taken = rows.take(array_of(np.array(places, np.int64)))
        names, shown = taken.column(NAME).to_pylist(), text_of(taken.column(NAME)).to_pylist()
        whys = [
            _link_in_words(self._plan["base"], name, batch.problems[i]) if batch.datas[i] is None else batch.problems[i]
            for i, name in zip(places, names)
        ]
        for i, name, text, why, row in zip(places, names, shown, whys, leftout.located(taken, whys)):
            came = not isinstance(why, Unfetched)
            said = redacted(text) or "(no path)"
            (tally.bad if came else tally.unfetched).append((said, str(row)))
            (tally.bad_names if came else tally.again).append(name.hex())
            if self._settings.bad_rows not in ("fail", "skip"):
                place, most = self._settings.bad_rows, self._settings.max_file_size
                tally.kept.append((said, str(why), *copies.keep(self._plan["base"], name, batch.datas[i], why, place, most)))


@contextlib.contextmanager
def _dropped(file: ShardFile) -> Iterator[None]:
    """Give a shard's file up if an exception leaves the block."""
    try:
        yield
    except BaseException:
        file.drop()
        raise


def _link_in_words(base: str | None, name: bytes, why: str) -> str:
    """Return why a file cannot be read: `why`, or that it is a link that leads to nothing."""
    path = os.path.join(os.fsencode(base or "."), name)
    if isinstance(why, Unfetched) or not name or b"\0" in name or not os.path.islink(path) or os.path.exists(path):
        return why
    return f"a link that leads to nothing ({os.fsdecode(os.readlink(path))})".encode("utf-8", "backslashreplace").decode()


def _as_it_stands(rows: pa.Table) -> pa.Array:
    """Return the path of each file; for a file from a list exactly as the list has it.

    The user has nothing else by which to join columns of the list to the packed rows.
    """
    names = text_of(rows.column(NAME))
    if TEXT not in rows.column_names:
        return names
    return pc.coalesce(rows.column(TEXT).combine_chunks().cast(pa.string()), names)


def _shown(paths: pa.Array) -> pa.Array:
    """Return paths as the shards have them: URLs without passwords and signatures."""
    secret = pc.match_substring_regex(paths, r"://(?:[^/]*@|[^?]*\?)")
    if not pc.any(secret).as_py():
        return paths
    return pa.array(
        [redacted(path) if hidden else path for path, hidden in zip(paths.to_pylist(), secret.to_pylist())], paths.type
    )


def _whole(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column
