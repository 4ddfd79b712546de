"""Packing of tables and of lines of text, from the checked input to the published part."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import array_of, octets_of
from akrunner.checks import counted
from akrunner.errors import ReadError, SourceError
from akrunner.folders.gathered import MTIME, NAME, SIZE
from akrunner.foreign import shortage
from akrunner.io.table import TableSource
from akrunner.options import called
from akrunner.packing import sealed
from akrunner.packing.dealing import Before, deal, path_of, schema_of
from akrunner.packing.described import check_as_before, described, schema_in
from akrunner.packing.filejob import Bad, result
from akrunner.packing.given import Given
from akrunner.packing.index import difference
from akrunner.packing.progress import Meter
from akrunner.packing.result import Packed
from akrunner.packing.rows import RowPacker
from akrunner.packing.settings import Settings
from akrunner.packing.state import BUCKETS, State

#: of how many new files the beginning is read, as a check, before the packing begins
_LOOKED = 16
#: matches errors about a file that is intact but has other columns
_OF_TYPES = re.compile(r"input_schema=|has no column")
#: advice on the types of a table, which does not help where tables are packed already: their types are settled
_UNHELPFUL = re.compile(r"; (?:input_schema= \(--input-schema\) says (?:its type|which type)|the types were guessed)")
_ANEW = "; --overwrite packs everything anew"


def packed(given: Given, settings: Settings, state: State, overwrite: bool, meter: Meter) -> Packed:
    """Finish an unfinished part, then pack the files that are new. Raises: what `pack` raises."""
    rows = 0
    part = state.unfinished()
    if part is not None and not _goes_on(given, settings, state, part, overwrite):
        state.drop(part)
        part = None
    # before the unfinished part is published: if what is new is refused, nothing is written
    tables, files, told = _new(given, state, overwrite, part)
    if part is not None:
        rows += _finish(settings, state, part, meter)
        overwrite = False
    if tables:
        part = state.next()
        before = None if overwrite else state.about
        meter.starts("reading")
        about: dict[str, Any] = {
            "kind": given.kind, "settings": given.kept(settings), "shard_size": settings.shard_size, "alone": overwrite,
            "generation": state.generation(overwrite), "read_as": given.read_as,
        }  # fmt: skip
        earlier = Before(list((before or {}).get("labels", ())), (before or {}).get("dealt", ()))
        with _fitting(None if overwrite else state):
            there_are = deal(state, part, settings, meter, tables, given.label, earlier, files, about)
        if there_are:
            rows += _finish(settings, state, part, meter)
        elif before is None:
            raise SourceError("source: there are no rows")
    return result(state, given.kind, rows, Bad(), [*given.said, *told])


def planned_only(given: Given, state: State, overwrite: bool) -> Packed:
    """Return what `packed` would do, as far as it can be told without reading the tables."""
    tables, _, gone = _new(given, state, overwrite)
    found = result(state, given.kind, 0, Bad(), given.said)
    told = f"{counted(len(tables), 'table')} would be read; the rows are counted then" if tables else "there is nothing new"
    label = str(given.asked.get("label") or "") if tables else found.label
    return dataclasses.replace(found, warnings=[*found.warnings, *gone, told], label=label)


def _new(
    given: Given, state: State, overwrite: bool, begun: int | None = None
) -> tuple[list[tuple[bytes, TableSource]], Any, list[str]]:
    """Return (the tables that are not packed yet, the files they are read from, warnings about others).

    Args: begun: an unfinished part, which goes on, so that its files are not new; None: there is none.
    Raises: SourceError: it cannot be told which tables are new, or those cannot be packed alone.
    """
    parts = [*([] if overwrite else state.parts()), *([] if begun is None else [begun])]
    if not parts:
        return list(given.tables), given.files, []
    if given.files is None:
        raise SourceError(
            f"source: {given.tables[0][1].name} is not read from files of this machine, so its new rows cannot be told from "
            f"those packed{_ANEW}"
        )
    before = pa.concat_tables([state.index(part).select([NAME, SIZE, MTIME]) for part in parts])
    found = difference(given.files, before, octets_of([], pa.large_binary()))
    if found.changed:
        raise SourceError(
            f"source: {found.some['changed'][0]} has changed since it was packed (its size, or its time), and single rows are "
            f"not compared{_ANEW}"
        )
    if found.new.any() and given.asked.get("whole"):
        raise SourceError(f"source: there are new files, and {_why_whole(given)}{_ANEW}")
    told = []
    if found.gone:
        one = found.gone == 1
        told.append(
            f"{counted(found.gone, 'file')} that {'was' if one else 'were'} packed {'is' if one else 'are'} not among those "
            f"given now, and the rows are still there ({', '.join(found.some['gone'])}); --overwrite packs all anew"
        )
    fresh = given.files.filter(array_of(found.new))
    names = set(fresh.column(NAME).to_pylist())
    tables = [one for one in given.tables if one[0] in names]
    if tables and not overwrite:
        check_as_before(state.about, schema_of(tables[0][1].schema, given.label))
        told += _read_otherwise(given, state)
    for _, table in tables[:_LOOKED]:
        # read the first rows, so that an error is found before the packing begins
        with _fitting(None if overwrite else state):
            next(table.batches(), None)
    return tables, fresh, told


def _read_otherwise(given: Given, state: State) -> list[str]:
    """Return a warning that new files are read by other rules than those that were packed last, although their columns agree.

    The types, and so `input_schema=`, are compared elsewhere, and files of several formats may have the same rows.
    """
    before = state.plan(state.parts()[-1]).get("read_as", {}).get("input_csv") if state.parts() else None
    if before is None or before == given.read_as.get("input_csv"):
        return []
    return [
        "what is new is read with another input_csv= (--input-csv) than what is packed: --overwrite reads all files as it says now"
    ]


def columns_of(state: State) -> pa.Schema | None:
    """Return the columns of the tables that are packed; None: no tables are packed."""
    words = state.plan(state.parts()[0]).get("table") if state.parts() else None
    return schema_in(words) if words is not None else None


def ups_of(state: State) -> int:
    """Return how many levels the directory that held all packed files is above the one that their names are relative to.

    It is the largest number of ".." at the beginning of a name.
    """
    parts = [part for part in state.parts() if state.has_index(part)]
    names = pa.chunked_array([one for part in parts for one in state.index(part).column(NAME).chunks], pa.large_binary())
    above = pc.match_substring_regex(names, rb"\A\.\./")
    return max((name.split(b"/").count(b"..") for name in names.filter(above).to_pylist()), default=0)


@contextlib.contextmanager
def _fitting(state: State | None) -> Iterator[None]:
    """Extend errors about the types of new tables: they must have the types of what is packed.

    Args: state: the output that tables are added to; None: they are not added to anything, and errors are left as they are.
    """
    try:
        yield
    except (ReadError, SourceError) as e:
        if state is None or state.about is None or shortage(e) or not _OF_TYPES.search(str(e)):
            raise
        raise (ReadError if isinstance(e, ReadError) else SourceError)(
            f"{_UNHELPFUL.split(str(e))[0].replace('as in the first file', 'as it is packed')}. What is new is read in the "
            f"types of what is packed in {state.path} ({state.about['schema']}); overwrite=True (--overwrite) packs "
            "everything anew"
        ) from None


def _why_whole(given: Given) -> str:
    """Return why new files cannot be packed alone, as half a sentence."""
    if given.asked.get("select") is not None:
        return "what select= (--select) makes of them depends on all"
    if given.asked.get("decimals", "refuse") != "refuse":
        return "files whose decimals become something else (decimals=, --decimals) are packed as a whole"
    return "files that stand side by side, or hold Examples, are packed as a whole"


def _goes_on(given: Given, settings: Settings, state: State, part: int, overwrite: bool) -> bool:
    """Whether an unfinished part is what would be packed now.

    Its rows are in buckets already, so it is enough that its files are the same, how they are read, and the settings, and that
    the buckets are undamaged.
    """
    plan = state.plan(part)
    if (
        plan.get("settings") != given.kept(settings)
        or plan.get("shard_size") != settings.shard_size
        or plan.get("alone") != overwrite
    ):
        return False
    if given.files is None:
        return False
    index = state.index(part)
    found = difference(given.files, index, octets_of([], pa.large_binary()))
    if found.changed or found.gone or found.new.all():
        return False
    if why := _why_anew(given, state, part, bool(found.new.any())):
        state.begins_anew(why)
        return False
    return True


def _why_anew(given: Given, state: State, part: int, more: bool) -> str:
    """Return why the rows of an unfinished part are not those that would be packed now, in words; "": they are.

    Args: more: whether there are files that are not in the part.
    """
    plan = state.plan(part)
    before = plan.get("read_as", {})
    odd = [called(name) for name, value in given.read_as.items() if before.get(name) != value]
    if odd:
        return f"its rows were read with another {', '.join(odd)}"
    if not schema_in(plan["table"]).equals(given.tables[0][1].schema):
        return "its rows were read in other types"
    if more and given.asked.get("whole"):
        return f"there are new files, and {_why_whole(given)}"
    if not _has_its_rows(state, part, plan):
        return f"rows in {os.path.join(state.folder(part), BUCKETS)} are gone or damaged"
    return ""


def _has_its_rows(state: State, part: int, plan: dict[str, Any]) -> bool:
    """Whether the buckets of a part are as they were written; if not, the caller reads the tables again."""
    folder = os.path.join(state.folder(part), BUCKETS)
    sums = plan.get("bucket_sums") or {}
    return sums.keys() == plan["bucket_bytes"].keys() and all(
        sealed.is_of(path_of(folder, int(number)), told) for number, told in sums.items()
    )


def _finish(settings: Settings, state: State, part: int, meter: Meter) -> int:
    plan = state.plan(part)
    meter.starts("writing", plan["rows"])
    RowPacker(state, part, settings, meter).run()
    results = state.results(part, plan["shards"])
    about = described(None if plan["alone"] else state.about, plan, results, part, plan["settings"])
    state.publish(part, about, plan["alone"])
    return sum(one["rows"] for one in results)
