"""Packing of files, from their index to the published part."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, texts_of
from akrunner.checks import counted, holds_no_files, is_within
from akrunner.errors import ConfigError, ReadError
from akrunner.folders.gathered import MTIME, NAME, SIZE, numbers, released, text_of, truths
from akrunner.folders.pool import is_url
from akrunner.folders.words import quoted
from akrunner.foreign import redacted
from akrunner.options import named
from akrunner.packing import copies, files, folders, leftout
from akrunner.packing.described import check_as_before, described
from akrunner.packing.given import Given
from akrunner.packing.index import CLASS, ROW, Difference, Index, difference
from akrunner.packing.progress import Meter
from akrunner.packing.result import Packed
from akrunner.packing.settings import Settings
from akrunner.packing.state import State
from akrunner.schema import is_text

#: the values of `check`, from the loosest to the strictest
_CHECKS = named("check").choices

#: how many left-out files a result names
_NAMED = 1000
#: in how many directories it is checked that the directory for broken files does not hold files of the input
_FOLDERS = 20_000
#: how many names a warning has
_FEW = 3


def check_bad_place(folder: str, given: Given, state: State) -> None:
    """Raise a ConfigError if broken files cannot be copied to a directory."""
    real = os.path.realpath(folder)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise ConfigError(f"bad_rows (--bad-rows): {folder} is a file; give fail, skip, or a directory")
    if given.place is not None and os.path.isdir(given.place) and is_within(real, os.path.realpath(given.place)):
        raise ConfigError(f"bad_rows (--bad-rows): {folder} lies in the input, and would be packed the next time")
    if is_within(real, state.path):
        raise ConfigError(f"bad_rows (--bad-rows): {folder} lies in the output; name a directory beside it")
    there = real
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise ConfigError(f"bad_rows (--bad-rows): {there} is a file, so that there can be no {real}; name another directory")
    if holds_no_files(real) or not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"bad_rows (--bad-rows): nothing may be written in {there}")
    if no := copies.check_list(folder):
        raise ConfigError(f"bad_rows (--bad-rows): {no}; name another directory")
    if given.index is not None and (place := _listed_within(given.index, real)):
        raise ConfigError(
            f"bad_rows (--bad-rows): files that are packed lie in {folder} ({place}); name a directory of its own"
        )


def _listed_within(index: Index, folder: str) -> str:
    """Return the first directory with files of an index that is `folder` or lies in it, with links resolved; "": none does.

    If there are very many directories, only the first are looked at.
    """
    above = pc.unique(pc.replace_substring_regex(index.table.column(NAME), rb"[^/]*\z", b""))[:_FOLDERS]
    for one in above.to_pylist():
        if not is_url(one) and b"\0" not in one:
            place = os.path.realpath(os.path.join(os.fsencode(index.base or "."), one))
            if is_within(os.fsdecode(place), folder):
                return os.fsdecode(place).encode("utf-8", "backslashreplace").decode()
    return ""


def packed(given: Given, settings: Settings, state: State, overwrite: bool, meter: Meter) -> Packed:
    """Finish an unfinished part, then pack the files that are new. Raises: what `pack` raises."""
    assert given.index is not None
    released()
    broken = _still_broken(given.index, settings, state, overwrite)
    given.said += _checked_more([one for one in broken if not one.again], given, settings, state)
    warnings = list(given.said)
    # files that this run tries again are left out: their new try decides
    earlier = [one.told for one in broken if not one.again] if settings.bad_rows == "fail" else []
    rows, bad = 0, Bad()
    part = state.unfinished()
    if part is not None and not _goes_on(given, settings, state, part, overwrite):
        state.drop(part)
        part = None
    bad.asked = {one.name for one in broken if one.again}
    tried: pa.Table | None = None
    if part is not None:
        # broken files that the failed run tried again are in its part, which reports them: they are not tried once more
        tried = state.index(part)
        begun = set(tried.column(NAME).to_pylist())
        try:
            rows += _finish(given, settings, state, part, meter, bad, earlier)
            overwrite = False
            broken = [one for one in broken if one.name not in begun]
        except ReadError as e:
            if state.has_index(part):
                raise _with_the_rest(e, earlier, given, settings, state, part, meter, overwrite) from None
            if len(begun) == len(given.index):
                raise
            # the part was dropped, as none of its files could be packed: begin again, with the files that came since
            part, tried, asked = None, None, bad.asked
            bad = Bad()
            bad.asked = asked
    new, told = _new(given.index, settings, state, overwrite, tried)
    warnings += told
    if len(new):
        part = state.next()
        plan, about = _plan(given, new, settings, state, overwrite)
        warnings += _several(plan, about["labels"])
        files.save(state, part, new, plan, about)
        unfetched = plan.unfetched
        # as long as the index, and saved by now
        del plan
        rows += _finish(given, settings, state, part, meter, bad, earlier, unfetched)
    elif part is None and earlier:
        raise leftout.refused(given.kind, [], earlier=earlier, packed=False, base=given.index.base, read=len(given.index))
    broken = [one for one in broken if not one.again]
    bad.before(broken)
    if settings.bad_rows not in ("fail", "skip"):
        kept = leftout.kept(given.index, [(one.name, one.why) for one in broken], settings.bad_rows, settings.max_file_size)
        bad.kept += kept
    warnings += copies.write_list(settings.bad_rows, _as_in(given.index, bad.kept))
    where = leftout.looked_for(bad.some, given.index.base, len(given.index), bad.rows)
    warnings += [f"nearly no file of the list is there: {where}"] if where else []
    if state.about is not None:
        about = {**state.about, **leftout.in_input(state, state.parts(), given.index)}
        if about != state.about:
            state.describe(about)
    return result(state, given.kind, rows, bad, [*warnings, *_checked_less(given, settings, state)])


def _with_the_rest(
    error: ReadError,
    earlier: Sequence[tuple[str, str]],
    given: Given,
    settings: Settings,
    state: State,
    part: int,
    meter: Meter,
    overwrite: bool,
) -> ReadError:
    """Return the error about broken files of an unfinished part, extended by those among files that came to the input since.

    A user who mends the former should not meet the latter only in the next run.
    """
    assert given.index is not None
    tried = state.index(part)
    new, _ = _new(given.index, settings, state, overwrite, tried)
    begun = pc.is_in(new.table.column(NAME), value_set=tried.column(NAME).combine_chunks())
    rest = Index(new.table.filter(array_of(~truths(begun))), new.base)
    if not len(rest) or not (error.broken or error.unfetched):
        return error
    after = state.next()
    plan, about = _plan(given, rest, settings, state, overwrite)
    files.save(state, after, rest, plan, about)
    try:
        meter.starts("looking at", len(rest))
        files.FilePacker(state, after, settings, meter, unfetched=plan.unfetched).run()
    except ReadError as e:
        told = set(earlier)
        return leftout.refused(
            given.kind,
            [*(one for one in error.broken if one not in told), *e.broken],
            [*error.unfetched, *e.unfetched],
            earlier,
            base=given.index.base,
            read=len(given.index),
        )
    finally:
        state.drop(after)
    return error


def planned_only(given: Given, settings: Settings, state: State, overwrite: bool) -> Packed:
    """Return what `packed` would do."""
    assert given.index is not None
    bad = Bad()
    broken = [one for one in _still_broken(given.index, settings, state, overwrite) if not one.again]
    given.said += _checked_more(broken, given, settings, state)
    if settings.bad_rows == "fail" and broken:
        raise leftout.refused(
            given.kind, [], earlier=[one.told for one in broken], packed=False, base=given.index.base, read=len(given.index)
        )
    bad.before(broken)
    new, told = _new(given.index, settings, state, overwrite)
    before = None if overwrite else state.about
    splits: dict[str, int] = {name: split["rows"] for name, split in (before or {}).get("splits", {}).items()}
    shards = sum(len(split["files"]) for split in (before or {}).get("splits", {}).values())
    size = sum(int(split["bytes"]) for split in (before or {}).get("splits", {}).values())
    labels = list((before or {}).get("labels", ()))
    lost = np.zeros(len(new), np.bool_)
    if len(new):
        plan, about = _plan(given, new, settings, state, overwrite)
        labels = about["labels"]
        told += [*_several(plan, labels), *_alike(labels)]
        known = {**files.seen_broken(new, plan.label, bool(labels), settings.max_file_size), **plan.problems}
        lost[list(known)] = True
        told.append(_looked_into(len(new), plan.sampled, leftout.in_order(list(known.values())), settings.bad_rows))
        where = leftout.looked_for(list(known.values()), given.index.base, len(new))
        told += [f"nearly no file of the list is there: {where}"] if where else []
        for name in about["splits"]:
            splits.setdefault(name, 0)
        for shard in plan.shards:
            splits[shard["split"]] += int((~lost[plan.order[shard["first"] : shard["end"]]]).sum())
        shards += len(plan.shards)
        size += int(plan.takes[~lost[plan.order]].sum())
    return Packed(
        state.path,
        given.kind,
        splits,
        int((~lost).sum()),
        sum(splits.values()),
        shards,
        size,
        labels,
        bad.some,
        bad.rows,
        bad.earlier,
        warnings=[*given.said, *told, *_no_rows(splits, settings.split_by), *_checked_less(given, settings, state)],
    )


def _looked_into(files_: int, sampled: int, known: Sequence[tuple[str, str]], bad_rows: str) -> str:
    """Return a message about what a dry run knows of the files, and what it does not.

    Args: files_: how many files there are; sampled: how many it has read; known: (path, why) of those that would not be packed.
    """
    but = f" but {sampled:,} to learn their sizes" if sampled else ""
    found = "what is broken, or cannot be fetched, is found when it is packed"
    if not known:
        return f"a dry run looks into no file{but}: {found}"
    few = "; ".join(f"{quoted(path)}: {why}" for path, why in known[:_FEW]) + (" ..." if len(known) > _FEW else "")
    ends = ", and with bad_rows='fail' (--bad-rows fail) nothing at all" if bad_rows == "fail" else ""
    return (
        f"{len(known):,} of {counted(files_, 'file')} would not be packed ({few}){ends}; a dry run looks into no other file{but}: "
        f"{found.replace('is broken', 'else is broken')}"
    )


def _checked_less(given: Given, settings: Settings, state: State) -> list[str]:
    """Return a warning if earlier runs have checked images less strictly than this one would."""
    ranks = [_CHECKS.index(state.plan(part).get("check", _CHECKS[0])) for part in state.parts()]
    if given.kind != "images" or not ranks or min(ranks) >= _CHECKS.index(settings.check):
        return []
    how = {"none": "not looked at", "header": "checked by their headers only"}[_CHECKS[min(ranks)]]
    return [
        f"check={settings.check!r} (--check {settings.check}) is for what is new: images that are packed were {how}; "
        "--overwrite checks and packs all anew"
    ]


def _checked_more(broken: Sequence[leftout.LeftOut], given: Given, settings: Settings, state: State) -> list[str]:
    """Return a warning if an earlier run has left out images that it checked more strictly than this one would.

    Args: broken: the broken files that stay left out.
    """
    ranks = [
        _CHECKS.index(plan.get("check", _CHECKS[0])) for plan in map(state.plan, state.parts()) if plan.get(leftout.BROKEN)
    ]
    if given.kind != "images" or not broken or max(ranks) <= _CHECKS.index(settings.check):
        return []
    return [
        f"check={settings.check!r} (--check {settings.check}) is for what is new: images that an earlier run left out were checked by "
        f"check={_CHECKS[max(ranks)]!r}, and stay left out unless they change; --overwrite checks and packs all anew"
    ]


def _several(plan: files.Plan, labels: Sequence[str]) -> list[str]:
    """Return warnings about files that a list names more than once."""
    if not plan.several:
        return []
    few = ", ".join(
        f"{quoted(leftout.shown(name))}: {' and '.join(quoted(labels[one]) for one in numbers_)}"
        for name, numbers_ in plan.unlike[:_FEW]
    ) + (" ..." if len(plan.unlike) > _FEW else "")
    count = len(plan.unlike)
    unlike = [
        f"{counted(count, 'file')} {'has' if count == 1 else 'have'} different classes in different rows of the list, and "
        f"{'is' if count == 1 else 'are'} packed with each of them ({few})"
    ]
    return [
        *(unlike if count else []),
        f"{counted(plan.several, 'row')} of the list {'names' if plan.several == 1 else 'name'} a file that another row "
        "names, too: it is packed as often as it is named, in one split",
    ]


def _alike(labels: Sequence[str]) -> list[str]:
    """Return a warning about classes whose names look the same."""
    groups: dict[str, list[str]] = {}
    for name in labels:
        groups.setdefault(unicodedata.normalize("NFC", " ".join(name.split())).casefold(), []).append(name)
    some = [names for names in groups.values() if len(names) > 1]
    if not some:
        return []
    shown = "; ".join(", ".join(map(repr, names[:_NAMED])) for names in some[:_FEW]) + (" ..." if len(some) > _FEW else "")
    return [
        f"classes whose names differ only by blanks, case or how their accents are written are classes of their own: {shown}; "
        "if they are the same, spell them alike and pack all anew (--overwrite)"
    ]


def _no_rows(splits: dict[str, int], split_by: str) -> list[str]:
    """Return a warning about splits without a row."""
    none = [name for name, rows in splits.items() if not rows]
    if not none or not any(splits.values()):
        return []
    fewer = {"name": ", or split_by='exact' (--split-by exact), where each has its share to within a row,"}.get(split_by, "")
    return [
        f"no row fell into {', '.join(none)}, so there "
        f"{'is no such directory' if len(none) == 1 else 'are no such directories'}: more rows, or a larger share{fewer} fill "
        f"{'it' if len(none) == 1 else 'them'}"
    ]


class Bad:
    """Files that were left out.

    Attributes:
        some: (path, why) of broken files, the first of them.
        rows: how many broken files there are.
        earlier: how many of these an earlier run left out.
        unfetched: (path, why) of files that could not be fetched, the first of them.
        unfetched_rows: how many files could not be fetched.
        kept: rows of the table of left-out files, for both kinds; empty without a directory for broken files.
        asked: names of files that an earlier run left out, and this one tries again.
    """

    def __init__(self) -> None:
        self.some: list[tuple[str, str]] = []
        self.rows = 0
        self.earlier = 0
        self.unfetched: list[tuple[str, str]] = []
        self.unfetched_rows = 0
        self.kept: list[copies.Kept] = []
        self.asked: set[bytes] = set()

    def before(self, broken: Sequence[leftout.LeftOut]) -> None:
        """Count broken files that an earlier run left out."""
        self.rows += len(broken)
        self.earlier += len(broken)
        self.some = leftout.in_order([*self.some, *(one.told for one in broken)])[:_NAMED]


def _as_in(index: Index, kept: list[copies.Kept]) -> list[copies.Kept]:
    """Return rows of the table of left-out files in the order of the input."""
    if not kept:
        return kept
    there = text_of(index.table.column(NAME))
    places = pc.index_in(texts_of([row[0] for row in kept]), value_set=there).to_pylist()
    # a path that is not shown as it stands (a URL without its secret, an empty one) comes last
    order = sorted(range(len(kept)), key=lambda i: (places[i] is None, places[i] or 0, kept[i][0]))
    return [kept[i] for i in order]


def extra_of(state: State) -> pa.Schema | None:
    """Return the other columns of the packed list of files; None: there are none."""
    parts = state.parts()
    if not parts or "table" in state.plan(parts[0]):
        return None
    fields = [field for field in state.index(parts[0]).schema if not field.name.startswith("\x1f")]
    return pa.schema(fields) if fields else None


def _still_broken(index: Index, settings: Settings, state: State, overwrite: bool) -> list[leftout.LeftOut]:
    """Return the files of the input that an earlier run left out as broken, and that have not changed, as far as is known."""
    if overwrite or not state.parts():
        return []
    why = leftout.marked(state, leftout.BROKEN)
    return leftout.rows_of(index, _difference(index, state, why).broken, why, settings.max_file_size) if why else []


def _new(
    index: Index, settings: Settings, state: State, overwrite: bool, tried: pa.Table | None = None
) -> tuple[Index, list[str]]:
    """Return the files of an index that are not packed yet, and warnings.

    Files that could not be fetched count as new, and so do broken ones that only another try shows to be mended.
    Args: tried: the index of the part that this run has finished: it has tried these of them already; None: there is none.
    """
    if overwrite or not state.parts():
        return index, []
    broken = leftout.marked(state, leftout.BROKEN)
    found = _difference(index, state, broken)
    unfetched = leftout.names_of(leftout.marked(state, leftout.UNFETCHED))
    again = truths(pc.is_in(index.table.column(NAME), value_set=unfetched))
    again |= found.broken & leftout.tried_again(index.table, broken, settings.max_file_size)
    if tried is not None:
        again &= ~truths(pc.is_in(index.table.column(NAME), value_set=tried.column(NAME).combine_chunks()))
    fresh = found.new | again
    return Index(index.table.filter(array_of(fresh)), index.base), [
        *_told(found, index.listed),
        *_said_otherwise(index, state, fresh),
    ]


def _said_otherwise(index: Index, state: State, fresh: NDArray[np.bool_]) -> list[str]:
    """Return a warning about rows of a list whose class or other columns are not as they were packed.

    Args: fresh: which rows are packed now [rows].
    """
    if not index.listed:
        return []
    packed_ = [state.index(part) for part in state.parts()]
    names = [CLASS, *(field.name for field in index.extra if _compared(field.type))]
    names = [name for name in names if all(name in one.column_names for one in packed_)]
    before = pa.chunked_array([one for table in packed_ for one in _keys(table, names).chunks], pa.large_binary())
    other = ~truths(pc.is_in(_keys(index.table, names), value_set=before.combine_chunks())) & ~fresh
    left_out = [leftout.names_of(leftout.marked(state, what)) for what in (leftout.BROKEN, leftout.UNFETCHED)]
    for some in left_out:
        other &= ~truths(pc.is_in(index.table.column(NAME), value_set=some))
    count = int(other.sum())
    if not count:
        return []
    few = ", ".join(redacted(one) for one in text_of(index.table.column(NAME).filter(array_of(other))[:_FEW]).to_pylist())
    says = (
        "says another thing of its file than when that was"
        if count == 1
        else "say other things of their files than when those were"
    )
    return [f"{counted(count, 'row')} of the list {says} packed ({few}); --overwrite packs all anew"]


def _compared(data_type: pa.DataType) -> bool:
    return is_text(data_type) or data_type in (pa.bool_(), pa.float32(), pa.float64()) or pa.types.is_integer(data_type)


def _keys(table: pa.Table, names: Sequence[str]) -> pa.ChunkedArray:
    """Return the name and other columns of each row as one value, to compare rows by."""
    texts = [pc.fill_null(pc.cast(pc.cast(table.column(name), pa.large_string()), pa.large_binary()), b"\0") for name in names]
    return pc.binary_join_element_wise(table.column(NAME), *texts, pa.scalar(b"\x1f", pa.large_binary()))


def _difference(index: Index, state: State, broken: dict[bytes, str]) -> Difference:
    """Compare an index with the files of earlier runs. Args: broken: name -> why, of files that were left out as broken."""
    packed_ = pa.concat_tables([state.index(part).select([NAME, SIZE, MTIME]) for part in state.parts()])
    return difference(
        index.table, _latest(packed_), leftout.names_of(broken), leftout.names_of(leftout.marked(state, leftout.UNFETCHED))
    )


def _latest(table: pa.Table) -> pa.Table:
    """Return the rows in reverse order, so that the last row of a name (a broken file that was mended) is found first."""
    return table.take(array_of(np.arange(table.num_rows)[::-1].copy()))


def _told(found: Difference, listed: bool) -> list[str]:
    """Return warnings about packed files that have changed or are gone.

    Args: listed: whether a list names the files; they may exist then although the list does not name them any longer.
    """
    told = []
    if found.changed:
        told.append(
            f"{counted(found.changed, 'file')} {'has' if found.changed == 1 else 'have'} changed since, and "
            f"{'is' if found.changed == 1 else 'are'} as packed ({', '.join(found.some['changed'])}); --overwrite packs all "
            "anew"
        )
    if found.gone:
        told.append(
            f"{counted(found.gone, 'file')} that {'was' if found.gone == 1 else 'were'} packed "
            f"{'is' if found.gone == 1 else 'are'} {'not on the list now' if listed else 'gone'}, and the rows are still "
            f"there ({', '.join(found.some['gone'])}); --overwrite packs all anew"
        )
    return told


def _goes_on(given: Given, settings: Settings, state: State, part: int, overwrite: bool) -> bool:
    """Whether an unfinished part is what would be packed now: its settings and files are the same. Others may be new."""
    assert given.index is not None
    plan = state.plan(part)
    if (
        plan.get("settings") != given.kept(settings)
        or plan.get("shard_size") != settings.shard_size
        or plan.get("alone") != overwrite
    ):
        return False
    if plan.get("check") != settings.check or plan.get("base") != given.index.base:
        return False
    table, listed = state.index(part), given.index.table
    # the number of a row is not compared, as the list may have got other rows before it
    names = [one.name for one in listed.schema if one.name != ROW]
    if any(name not in table.column_names for name in names):
        return False
    if any(table.schema.field(one.name).type != one.type for one in given.index.extra):
        # the texts 1 and 2 are equal to the numbers, once one is cast to the other
        return False
    where = pc.index_in(table.column(NAME), value_set=listed.column(NAME).combine_chunks())
    if where.null_count:
        return False
    here = listed.take(where).select(names).combine_chunks()
    return bool(here.equals(table.select(names).combine_chunks().cast(here.schema)))


def _plan(given: Given, new: Index, settings: Settings, state: State, overwrite: bool) -> tuple[files.Plan, dict[str, Any]]:
    before = None if overwrite else state.about
    old = list((before or {}).get("labels", ()))
    every = given.classes()
    labels = [*old, *(name for name in every if name not in old)]
    splits = list(given.splits or settings.splits)
    splits = [*(before or {}).get("splits", {}), *(name for name in splits if name not in (before or {}).get("splits", {}))]
    folder: Any | None = None
    if given.splits:
        assert given.index is not None
        firsts = folders.first_folders(new.table, given.index.start)
        folder = numbers(pc.index_in(firsts, value_set=texts_of(splits)))
    if before is not None and bool(old) != bool(labels):
        raise ConfigError(f"source: it has classes, and {state.path} was packed without; --overwrite packs all anew")
    check_as_before(before, files.schema_of(given.kind, bool(labels), new.extra))
    dealt, there = (before or {}).get("dealt", ()), _there(before, splits, len(labels))
    plan = files.planned(new, settings, labels, splits, dealt, there, state.namer(overwrite), folder, given.kind)
    about = {
        "kind": given.kind, "labels": labels, "splits": splits, "settings": given.kept(settings), "shard_size": settings.shard_size,
        "check": settings.check, "alone": overwrite, "generation": state.generation(overwrite),
    }  # fmt: skip
    return plan, about


def _there(before: dict[str, Any] | None, splits: Sequence[str], labels: int) -> files.I64:
    """Return how many rows are packed already [splits, classes]; without classes, all rows count as one class."""
    found = np.zeros((len(splits), max(1, labels)), np.int64)
    for name, split in (before or {}).get("splits", {}).items():
        counts = split["labels"] if labels else [split["rows"]]
        found[splits.index(name), : len(counts)] = counts
    return found


def _finish(
    given: Given,
    settings: Settings,
    state: State,
    part: int,
    meter: Meter,
    bad: Bad,
    earlier: Sequence[tuple[str, str]],
    unfetched: Mapping[bytes, str] | None = None,
) -> int:
    """Write the unfinished shards of a part, and publish it.

    Args:
        given: the input.
        settings: the settings of the run.
        state: the output.
        part: number of the part.
        meter: counts what is done.
        bad: takes the files that are left out.
        earlier: (path, why) of files that an earlier run left out, if these make this run fail.
        unfetched: name -> why, of files that this run has tried to fetch already.
    Returns:
        The number of the part's rows.
    Raises:
        ReadError: `bad_rows` is "fail", and files of this part are broken, or `earlier` has some; or no file could be packed.
    """
    assert given.index is not None
    plan = state.plan(part)
    meter.starts("packing", plan["rows"])
    files.FilePacker(state, part, settings, meter, earlier, unfetched).run()
    results = state.results(part, plan["shards"])
    broken: list[tuple[str, str]] = []
    again: list[tuple[str, str]] = []
    for one in results:
        bad.rows += len(one["bad"])
        bad.some = leftout.in_order([*bad.some, *((path, why) for path, why in one["bad"])])[:_NAMED]
        bad.unfetched_rows += len(one.get("unfetched", ()))
        bad.unfetched = leftout.in_order([*bad.unfetched, *((path, why) for path, why in one.get("unfetched", ()))])[:_NAMED]
        # several files may be shown by the same name: rows without a path, URLs without their secrets
        kept: dict[tuple[str, str], list[copies.Kept]] = {}
        for row in reversed(one.get("kept", ())):
            kept.setdefault((row[0], row[1]), []).append(tuple(row))
        for path, why in [*one["bad"], *one.get("unfetched", ())] if settings.bad_rows not in ("fail", "skip") else ():
            plain = leftout.unlocated(why)
            same = kept.get((path, plain))
            bad.kept.append(same.pop() if same else (path, plain, "", "an earlier run left it out"))
        broken += [(name, leftout.unlocated(why)) for name, (_, why) in zip(one["bad_names"], one["bad"])]
        bad.earlier += sum(bytes.fromhex(name) in bad.asked for name in one["bad_names"]) if bad.asked else 0
        again += [(name, leftout.unlocated(why)) for name, (_, why) in zip(one.get("again", ()), one.get("unfetched", ()))]
    rows = sum(int(one["rows"]) for one in results)
    if not rows and (plan["alone"] or state.about is None):
        # an output without rows cannot be the input of a job, and without an error the user would take it for one
        state.drop(part)
        assert given.index is not None
        copies.write_list(settings.bad_rows, _as_in(given.index, bad.kept))
        left = [[(path, why) for one in results for path, why in one.get(what, ())] for what in ("bad", "unfetched")]
        raise leftout.none_left(given.kind, left[0], left[1], plan["base"])
    if not rows and not plan["alone"] and leftout.asked_again(state.index(part), again).all() and _known(state, broken, again):
        # all files were only tried once more, and are as before: keep no part. A part of other files records how they are now
        state.drop(part)
        return 0
    state.note(part, {**plan, leftout.BROKEN: broken, leftout.UNFETCHED: again})
    about = described(None if plan["alone"] else state.about, plan, results, part, plan["settings"])
    about.update(leftout.in_input(state, [part] if plan["alone"] else [*state.parts(), part], given.index))
    state.publish(part, about, plan["alone"])
    return rows


def _known(state: State, broken: Sequence[tuple[str, str]], again: Sequence[tuple[str, str]]) -> bool:
    """Whether earlier parts left these files out for the same reasons."""
    for what, some in ((leftout.BROKEN, broken), (leftout.UNFETCHED, again)):
        before = leftout.marked(state, what) if some else {}
        if any(before.get(bytes.fromhex(name)) != why for name, why in some):
            return False
    return True


def result(state: State, kind: str, rows: int, bad: Bad, warnings: Sequence[str]) -> Packed:
    """Return the result of a run: what the output has now."""
    about = state.about or {"splits": {}, "labels": [], "formats": {}}
    splits = {name: split["rows"] for name, split in about["splits"].items()}
    shards = [one for split in about["splits"].values() for one in split["files"]]
    webp = about["formats"].get("webp", 0)
    told = list(warnings)
    if rows:
        told += [*_alike(about["labels"]), *_no_rows(splits, str(about.get("settings", {}).get("split_by")))]
    told += state.redone()
    if webp and rows:
        told.append(
            f"{counted(webp, 'image')} {'is' if webp == 1 else 'are'} WebP, which tf.io.decode_image reads only in the newest "
            "TensorFlow; --resize makes PNGs of them"
        )
    return Packed(
        state.path, kind, splits, rows, sum(splits.values()), len(shards), sum(one["bytes"] for one in shards), list(about["labels"]),
        bad.some, bad.rows, bad.earlier, bad.unfetched, bad.unfetched_rows, told,
        label=(about.get("settings", {}).get("label") or "") if about["labels"] else "",
    )  # fmt: skip
