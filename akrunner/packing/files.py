"""Files -> shards: every file is read once, in the order it is written.

::

    Index --hashes--> split of each, rank in the whole --> index.arrow, in the order of shards; plan.json
    plan  --a shard at a time--> Pool: read, a batch ahead --> headers --> ShardFile --> its place
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, texts_of
from akrunner.errors import WriteError
from akrunner.foreign import redacted, underway
from akrunner.io import hashes
from akrunner.leftovers.private import private_file
from akrunner.packing import copies, images, leftout, pictures, ranks
from akrunner.packing.described import words_of
from akrunner.packing.index import (
    CLASS,
    LABEL,
    NAME,
    ROWS,
    SIZE,
    SPLIT,
    TEXT,
    Index,
    numbered,
    numbers,
    plain_names,
    released,
    text_of,
    truths,
)
from akrunner.packing.pool import NO_PATH, Batch, Pool
from akrunner.packing.progress import Meter
from akrunner.packing.remote import Unfetched, too_large
from akrunner.packing.settings import Settings, ending
from akrunner.packing.shards import ShardFile
from akrunner.packing.state import INDEX, State
from akrunner.packing.texts import other_text

#: of files that are read, or written, together
_BATCH_BYTES, _BATCH_ROWS = 16 << 20, 1024
#: from how many files on a process of its own reads them, if they have less bytes than this on average
_HELPED, _SMALL = 2000, 1 << 20
#: the bytes a row has besides its file's
_AROUND = 150
_THREAD = "akrunner-pack"
#: files looked at to learn how large they are when they are packed
_SAMPLE = 32
#: broken files after which a run looks for no more
_ENOUGH = 1000
I64 = NDArray[np.int64]
#: the column that has a file's bytes
CONTENT = {"images": "image", "texts": "text", "files": "data"}


def schema_of(kind: str, classes: bool, extra: Sequence[pa.Field]) -> pa.Schema:
    """The columns of a row."""
    content = pa.field(CONTENT[kind], pa.string() if kind == "texts" else pa.binary(), False)
    labels = [pa.field("label", pa.int64(), False), pa.field("label_name", pa.string(), False)] if classes else []
    size = [pa.field("height", pa.int64(), False), pa.field("width", pa.int64(), False)] if kind == "images" else []
    return pa.schema([content, *labels, pa.field("path", pa.string(), False), *size, *(one.remove_metadata() for one in extra)])


def work_of(kind: str, settings: Settings) -> Callable[[bytes], tuple[bytes, str]] | None:
    """What a thread does with each file it has read."""
    size = settings.resize
    if kind == "texts":
        return _text
    if kind == "images" and size is not None:
        return lambda data: pictures.resized(data, size)
    if kind == "images" and settings.check == "whole":
        return lambda data: (data, pictures.fault(data) or "")
    return None


def _text(data: bytes) -> tuple[bytes, str]:
    text = data.removeprefix(b"\xef\xbb\xbf")
    if not text:
        return b"", "it is empty, but for a byte order mark"
    try:
        text.decode()
    except UnicodeDecodeError as e:
        return b"", f"it is no UTF-8 text (byte {e.start}){other_text(text)}"
    return text, ""


@dataclass
class Plan:
    """Where each file goes. Attributes: order: [rows] rows of the index, as they are written; split, label: [rows of the index]; shards: as plan.json has
    them; dealt: [classes] how many rows of each were dealt to splits, in this part and those before; takes: [rows of the index] bytes of a shard that each
    takes, about; several: rows whose file another row has, too; unlike: files of which rows say different classes, and these; sampled: files
    that were read to learn how large they are; problems: row of the index -> (path, why) of those of them that cannot be packed; unfetched: name -> why, of
    those of them that did not come: three tries are enough."""

    order: I64
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
    """Args: splits: their names; before: [classes] rows dealt by earlier parts; there: [splits, classes] rows they have; name_of: (split, number of
    a new shard) -> its name without an ending; folder_of: [rows] number of the split that the folder says."""
    table = index.table
    rows = len(index)
    label = (numbered(table.column(CLASS), labels) if labels else np.full(rows, -1, np.int64)).astype(np.int32)
    hashed = np.empty(rows, np.uint64)
    for first in range(0, rows, ROWS):
        some = plain_names(table.column(NAME)[first : first + ROWS], index.base)
        hashed[first : first + ROWS] = ranks.hashes_of(some.to_pylist(), settings.seed)
    # the same file may be listed twice
    released()
    firsts, same = _same(hashed)
    several = rows - len(firsts)
    twice = [np.arange(rows)] if several else []
    # what has no path is not packed, however often that is said
    without = int(np.count_nonzero(truths(pc.equal(pc.binary_length(table.column(NAME)), 0))))
    dealt = np.array([*before, *([0] * (max(1, len(labels)) - len(before)))], np.int64)
    if settings.split_by == "folder":
        assert folder_of is not None
        split = folder_of.astype(np.uint8)
    else:
        fractions = settings.fractions_of(splits)
        if settings.split_by == "name":
            split = ranks.none_without(hashes.by_name(hashed, fractions), hashed, np.maximum(label, 0), fractions, there)
        else:
            split, dealt = ranks.stratified(hashed, np.maximum(label, 0), fractions, dealt)
        # and never in two splits
        split = split[firsts[same]] if several else split
    unlike = _unlike(table, label, same) if several and labels else []
    del firsts, same
    order = np.lexsort((*twice, hashes.mixed(hashed, hashes.ORDER), split))
    # of each of these there are as many as files
    del twice, hashed
    sizes, sampled, problems, unfetched = _sizes(index, order, settings, kind)
    shards: list[dict[str, Any]] = []
    counts = np.bincount(split, minlength=len(splits))
    at = 0
    for name, count in zip(splits, counts.tolist()):
        if not count:
            continue
        cuts = ranks.cut_evenly(sizes[at : at + count] + _AROUND, settings.shard_size)
        for i, (a, b) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist())):
            file = name_of(name, i) + ending(settings.form)
            shards.append({"split": name, "file": file, "first": at + a, "end": at + b})
        at += count
    takes = np.empty(rows, np.int64)
    takes[order] = sizes + _AROUND
    several = max(0, several - max(0, without - 1))
    return Plan(order, split, label, shards, dealt.tolist(), takes, several, unlike, sampled, problems, unfetched)


def _same(hashed: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """([names] the first row of each, [rows] the number of each row's name): as `numpy.unique` has them, in a third of its memory."""
    order = np.argsort(hashed, kind="stable").astype(np.int32)
    begins = np.ones(len(order), np.bool_)
    for first in range(1, len(order), ROWS):
        some = hashed[order[first - 1 : first + ROWS]]
        begins[first : first + ROWS] = some[1:] != some[:-1]
    same = np.empty(len(order), np.int32)
    same[order] = np.cumsum(begins, dtype=np.int32) - 1
    return order[begins], same


def _unlike(table: pa.Table, label: NDArray[np.int32], same: NDArray[np.int32]) -> list[tuple[bytes, list[int]]]:
    """(name, numbers of classes) of files of which rows say different classes. Args: same: [rows] the number of each row's file."""
    # what has no class, or no path, is broken, and told as that
    rows = np.flatnonzero((label >= 0) & truths(pc.greater(pc.binary_length(table.column(NAME)), 0)))
    rows = rows[np.lexsort((label[rows], same[rows]))]
    file, number = same[rows], label[rows]
    changes = np.flatnonzero((file[1:] == file[:-1]) & (number[1:] != number[:-1])) + 1
    found: dict[int, tuple[int, list[int]]] = {}
    for at in changes.tolist():
        found.setdefault(int(file[at]), (int(rows[at]), [int(number[at - 1])]))[1].append(int(number[at]))
    return [(table.column(NAME)[row].as_py(), classes) for row, classes in found.values()]


def _sizes(
    index: Index, order: I64, settings: Settings, kind: str
) -> tuple[I64, int, dict[int, tuple[str, str]], dict[bytes, str]]:
    """([rows] bytes of each file as it is packed, in the order it is written; an estimate where they are not known; how many files were read for it;
    row -> (path, why) of those of them that cannot be packed; name -> why, of those that did not come)."""
    sizes = numbers(index.table.column(SIZE))[order]
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
            found += [len(data) for data in batch.datas if data is not None]
            looked = images.look(batch.datas).problems if kind == "images" and settings.check != "none" else {}
            why = {**looked, **batch.problems}
            for i in sorted(why):
                at = batch.first + i
                (row,) = leftout.located(some.slice(at, 1), [why[i]])
                problems[int(sample[at])] = leftout.shown(names[at]), str(row)
                if isinstance(why[i], Unfetched):
                    unfetched[names[at]] = why[i]
    mean = int(np.mean(found)) if found else 0
    estimated = np.full(len(order), mean, np.int64) if settings.resize else np.where(sizes < 0, mean, sizes)
    return estimated, len(names), problems, unfetched


def seen_broken(index: Index, label: NDArray[np.int32], classes: bool, most: int) -> dict[int, tuple[str, str]]:
    """Row -> (path, why) of what a listing shows to be no good, without a look into any file. Args: label: [rows] as `Plan` has it; most: bytes of a file."""
    sizes = numbers(index.table.column(SIZE))
    paths = index.table.column(NAME)
    near = ~truths(pc.match_substring(paths, "://"))
    odd = ((sizes <= 0) & near) | (sizes > most) | (classes & (label < 0))
    broken = index.table.filter(array_of(odd))
    whys = []
    for row in np.flatnonzero(odd).tolist():
        if sizes[row] > most:
            why = too_large(int(sizes[row]), most)
        elif near[row] and sizes[row] <= 0:
            none = "it is not there, or no file" if paths[row].as_py() else NO_PATH
            why = none if sizes[row] else "it is empty"
        else:
            why = "the list says no class for it"
        whys.append(why)
    names = map(leftout.shown, broken.column(NAME).to_pylist())
    return dict(zip(np.flatnonzero(odd).tolist(), zip(names, leftout.located(broken, whys))))


def save(state: State, part: int, index: Index, plan: Plan, about: dict[str, Any]) -> None:
    """Write the index in the order of the plan, then the plan. Raises: WriteError."""
    folder = state.begin(part)
    with underway(WriteError, f"output: cannot write {folder}", at=folder):
        schema = index.table.schema.append(pa.field(SPLIT, pa.uint8())).append(pa.field(LABEL, pa.int64()))
        with private_file(os.path.join(folder, INDEX), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for first in range(0, len(plan.order), ROWS):
                some = slice(first, first + ROWS)
                batch = index.rows(plan.order[some]).combine_chunks()
                batch = batch.append_column(SPLIT, array_of(plan.split[plan.order[some]])).append_column(
                    LABEL, array_of(plan.label[plan.order[some]])
                )
                writer.write_table(batch.cast(schema))
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


@dataclass
class Tally:
    """What was found in a shard, as its record has it. Attributes: sum: its checksum; bad: (name, why) of broken files; unfetched: of those that did not come; bad_names, again:
    their names, as hex; kept: of both, with a directory for broken files, as its table has them."""

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
    """Writes the shards of one part that are not there yet. Args: earlier: (path, why) of files because of which the part is not to count, even if all of its
    own are good; unfetched: as `Plan` has it."""

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
        """Raises: ReadError: a file is broken, and `bad_rows` says fail; WriteError."""
        try:
            self._run()
        except BaseException:
            # a signal may have come before anybody held what was begun
            self._state.clear(self._part)
            raise

    def _run(self) -> None:
        state = self._state
        state.clear(self._part)
        open_ = [shard for shard in self._plan["shards"] if not state.is_done(self._part, shard)]
        state.notes_again(self._part, open_)
        done = sum(shard["end"] - shard["first"] for shard in self._plan["shards"]) - sum(s["end"] - s["first"] for s in open_)
        self._meter.goes_on(done)
        base, work = self._plan["base"], work_of(self._kind, self._settings)
        # until a shard is on the disk the next one is written
        with (
            Pool(base, self._settings.threads, work, self._settings.max_file_size, self._known) as pool,
            ThreadPoolExecutor(1, _THREAD) as closer,
            ThreadPoolExecutor(1, _THREAD) as writer,
        ):
            if self._is_worth_help(open_):
                pool.help(_BATCH_BYTES)
            batches = pool.read(self._asked(open_))
            closing: list[Future[None]] = []
            for shard in open_:
                file, tally = self._write(shard, batches, writer)
                try:
                    while closing:
                        closing.pop().result()
                    closing.append(closer.submit(self._close, shard, file, tally))
                except BaseException:
                    file.drop()
                    raise
                if len(self._broken) + len(self._unfetched) >= _ENOUGH:
                    break
            while closing:
                closing.pop().result()
        if self._broken or self._unfetched or self._earlier:
            raise leftout.refused(self._kind, self._broken, self._unfetched, self._earlier)

    def _is_worth_help(self, shards: list[dict[str, Any]]) -> bool:
        """Whether they are many files of this machine, and small: of others, each keeps a thread busy enough."""
        rows = sum(shard["end"] - shard["first"] for shard in shards)
        if rows < _HELPED or self._plan["base"] is None:
            return False
        sizes = numbers(self._index.column(SIZE))
        return float(sizes.mean()) < _SMALL and not pc.any(pc.match_substring(self._index.column(NAME), "://")).as_py()

    def _asked(self, shards: list[dict[str, Any]]) -> Iterator[tuple[tuple[int, int], list[bytes], list[int]]]:
        """What to read, one batch after the other; none of two shards."""
        for shard in shards:
            sizes = numbers(self._index.column(SIZE)[shard["first"] : shard["end"]])
            ends = np.cumsum(np.where(sizes < 0, _BATCH_BYTES // 64, sizes))
            at = 0
            while at < len(sizes):
                before = ends[at - 1] if at else 0
                end = int(np.clip(np.searchsorted(ends, before + _BATCH_BYTES, side="right"), at + 1, at + _BATCH_ROWS))
                names = self._index.column(NAME)[shard["first"] + at : shard["first"] + end].to_pylist()
                yield (shard["first"] + at, shard["first"] + end), names, sizes[at:end].tolist()
                at = end

    def _write(self, shard: dict[str, Any], batches: Iterator[Batch], writer: ThreadPoolExecutor) -> tuple[ShardFile, Tally]:
        """Write the rows of a shard."""
        tally = Tally()
        with underway(WriteError, f"output: cannot write {self._state.path}", at=self._state.path):
            file = ShardFile(self._state.folder(self._part), self._settings.form, self._schema, writer)
            try:
                at = shard["first"]
                while at < shard["end"]:
                    batch = next(batches)
                    at = batch.key[0] + batch.first + len(batch.datas)
                    self._add(batch, file, tally)
                    self._meter.add(len(batch.datas), sum(len(data) for data in batch.datas if data is not None))
                # the next batch but one may lie where the last one does
                file.settle()
            except BaseException:
                file.drop()
                raise
        if self._settings.bad_rows == "fail":
            self._broken += tally.bad
            self._unfetched += tally.unfetched
        return file, tally

    def _close(self, shard: dict[str, Any], file: ShardFile, tally: Tally) -> None:
        """Give a shard its name, once it is on the disk."""
        with underway(WriteError, f"output: cannot write {self._state.path}", at=self._state.path):
            try:
                if (tally.bad or tally.unfetched) and self._settings.bad_rows == "fail":
                    # the other shards are packed all the same: every broken file is named, and the next run has less to do
                    file.drop()
                    return
                tally.rows = file.rows
                if file.rows:
                    tally.bytes = file.commit(self._state.shard_path(self._part, shard))
                    tally.sum = str(file.sum)
                else:
                    file.drop()
            except BaseException:
                file.drop()
                raise
            self._state.finished(self._part, shard, vars(tally))

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
            # as if something had been written
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
        """Of the bad ones: their names and why; where they are to be kept, a copy of each."""
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


def _link_in_words(base: str | None, name: bytes, why: str) -> str:
    """Why a file cannot be read, where it is a link that leads nowhere."""
    path = os.path.join(os.fsencode(base or "."), name)
    if isinstance(why, Unfetched) or not name or b"\0" in name or not os.path.islink(path) or os.path.exists(path):
        return why
    return f"a link that leads to nothing ({os.fsdecode(os.readlink(path))})".encode("utf-8", "backslashreplace").decode()


def _as_it_stands(rows: pa.Table) -> pa.Array:
    """The path of each, of a list as that has it: who joins its columns to what is packed has nothing else."""
    names = text_of(rows.column(NAME))
    if TEXT not in rows.column_names:
        return names
    return pc.coalesce(rows.column(TEXT).combine_chunks().cast(pa.string()), names)


def _shown(paths: pa.Array) -> pa.Array:
    """Paths as whoever reads the shards sees them: URLs without passwords and signatures."""
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
