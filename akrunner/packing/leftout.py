"""Files that earlier runs left out: broken ones, and such as could not be fetched. Each part's plan names its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, octets_of
from akrunner.errors import ReadError
from akrunner.foreign import redacted
from akrunner.packing import copies
from akrunner.packing.index import MTIME, NAME, ROW, TEXT, Index, numbers, truths
from akrunner.packing.result import counted, printable, quoted
from akrunner.packing.state import State

#: what a plan calls them: [[name as hex, why], ...]
BROKEN, UNFETCHED = "bad", "again"
#: files of a kind that an error names
_NAMED = 20
#: files that `dataset.json` names
_DESCRIBED = 100
_NAMES = pa.large_binary()


def marked(state: State, what: str, parts: Sequence[int] | None = None) -> dict[bytes, str]:
    """Name -> why it was left out, of the files of which the last part that has them says so. Args: what: BROKEN or UNFETCHED; parts: None: those that count."""
    found: dict[bytes, str] = {}
    for part in state.parts() if parts is None else parts:
        found = without(found, state.index(part) if found else None)
        found.update((bytes.fromhex(name), why) for name, why in state.plan(part).get(what, ()))
    return found


def without(found: dict[bytes, str], index: Any) -> dict[bytes, str]:
    """Those that an index does not list. Args: index: its table, None: there is none."""
    if not found or index is None:
        return found
    again = truths(pc.is_in(names_of(found), value_set=index.column(NAME).combine_chunks().cast(_NAMES)))
    return {name: why for (name, why), listed in zip(found.items(), again.tolist()) if not listed}


def names_of(found: dict[bytes, str]) -> pa.Array:
    return octets_of(list(found), _NAMES)


def shown(name: bytes) -> str:
    """A name as it is told: without the secrets of a URL."""
    return redacted(name.decode("utf-8", "backslashreplace")) or "(no path)"


#: what is said of a list's row, and behind why its file is no good
_OF_LIST = re.compile(r" \(row [0-9]+ of the list[^)]*\)\Z")


def located(table: pa.Table, whys: Sequence[str]) -> list[str]:
    """Why files are no good, of a list with their rows in it: as a path may be empty, or look like another one. Args: table: rows of an index."""
    if ROW not in table.column_names:
        return list(whys)
    found = []
    texts = zip(table.column(TEXT).to_pylist(), table.column(NAME).to_pylist())
    for row, (text, name), why in zip(numbers(table.column(ROW)).tolist(), texts, whys):
        text = name.decode("utf-8", "replace") if text is None else text
        ends = [where for where, cut in (("before", text.lstrip()), ("behind", text.rstrip())) if cut != text]
        blanks = f", where a blank stands {' and '.join(ends)} the path" if ends and text.strip() else ""
        if text and not text.strip():
            blanks = ", where the path is nothing but blanks"
        # what is tried again is told apart by its type
        found.append(type(why)(f"{why} (row {row} of the list{blanks})"))
    return found


def unlocated(why: str) -> str:
    """Why a file is no good, whatever row of a list names it: lists of two nights have it in two."""
    return _OF_LIST.sub("", why)


class LeftOut(NamedTuple):
    """A broken file of the input. Attributes: name; why: it is broken; again: whether nothing but another try tells whether it was mended; located: why, with the
    row of a list."""

    name: bytes
    why: str
    again: bool
    located: str

    @property
    def told(self) -> tuple[str, str]:
        """(path, why) for people."""
        return shown(self.name), self.located


def rows_of(index: Index, broken: Any, why: dict[bytes, str]) -> list[LeftOut]:
    """The rows of an index that were left out. Args: broken: [rows] which."""
    some = index.table.filter(array_of(np.asarray(broken)))
    names = some.column(NAME).to_pylist()
    whys = located(some, [why[name] for name in names])
    return [LeftOut(name, why[name], again, row) for name, again, row in zip(names, untold(some).tolist(), whys)]


def in_input(state: State, parts: Sequence[int], index: Index) -> dict[str, Any]:
    """What `dataset.json` says of the files of the input that are left out. Args: parts: that count."""
    told: dict[str, Any] = {}
    for field, what in (("skipped", BROKEN), ("unfetched", UNFETCHED)):
        found = marked(state, what, parts)
        there = np.zeros(len(found), np.bool_)
        # a copy of all names would double what an index takes
        for chunk in index.table.column(NAME).chunks if found else ():
            there |= truths(pc.is_in(names_of(found), value_set=chunk.cast(_NAMES)))
        left = [(name, why) for (name, why), is_there in zip(found.items(), there.tolist()) if is_there]
        told[f"{field}_rows"] = len(left)
        told[field] = [{"path": shown(name), "why": why} for name, why in left[:_DESCRIBED]]
    return told


def untold(table: pa.Table) -> NDArray[np.bool_]:
    """[rows] Which of an index are URLs of which nobody knows whether they have changed: nothing but another try tells."""
    there: NDArray[np.bool_] = (numbers(table.column(MTIME)) == 0) & truths(pc.match_substring(table.column(NAME), "://"))
    return there


def asked_again(table: pa.Table, unfetched: Sequence[tuple[str, str]]) -> NDArray[np.bool_]:
    """[rows] Which of an index every run tries again. Args: unfetched: (name as hex, why) of those that it could not fetch."""
    names = octets_of([bytes.fromhex(name) for name, _ in unfetched], _NAMES)
    return untold(table) | truths(pc.is_in(table.column(NAME).combine_chunks().cast(_NAMES), value_set=names))


def none_left(kind: str, bad: Sequence[tuple[str, str]], unfetched: Sequence[tuple[str, str]]) -> ReadError:
    """What is said where nothing would be packed. Args: (path, why) of all that was to be."""
    whole = len(bad) + len(unfetched)
    what = "is broken" if whole == 1 else "are broken"
    if unfetched:
        what = "could not be fetched" + (f", or {what}" if bad else "")
    some = [*unfetched, *bad]
    lines = "".join(f"\n  {quoted(path)}: {printable(why)}" for path, why in some[:_NAMED])
    error = ReadError(
        f"source: {f'the only {kind[:-1]}' if whole == 1 else f'all of {counted(whole, kind[:-1])}'} {what}: nothing was packed, whatever bad_rows= (--bad-rows) says, "
        f"and no input for a job is there{'; a later run tries again' if unfetched else ''}{lines}"
        + (f"\n  and {whole - _NAMED:,} more" if whole > _NAMED else "")
    )
    error.broken, error.unfetched = list(bad), list(unfetched)
    return error


def refused(
    kind: str, bad: Sequence[tuple[str, str]], unfetched: Sequence[tuple[str, str]] = (), earlier: Sequence[tuple[str, str]] = (), packed: bool = True
) -> ReadError:  # fmt: skip
    """What `bad_rows="fail"` says. Args: bad, unfetched: (path, why) of what this run has met; earlier: of broken files that an earlier run left out, and
    that are as they were; packed: whether this run has packed anything."""
    broken, whats = [*earlier, *bad], []
    if unfetched:
        whats.append(f"{counted(len(unfetched), 'file')} could not be fetched")
    if broken:
        whats.append(counted(len(broken), f"broken {kind[:-1]}"))
    if earlier:
        are = "is" if len(earlier) == 1 else "are"
        whats[-1] += (
            f" that an earlier run left out {are} still there" if not bad else f" ({len(earlier):,} left out by an earlier run)"
        )
    lines = "".join(f"\n  {quoted(path)}: {printable(why)}" for some in (unfetched, broken) for path, why in some[:_NAMED])
    more = sum(max(0, len(some) - _NAMED) for some in (unfetched, broken))
    them = "it" if len(unfetched) + len(broken) == 1 else "them"
    error = ReadError(
        f"source: {', '.join(whats)}; mend {them}, or take {them} out of the input; bad_rows='skip' (--bad-rows skip) leaves {them} out and lists {them}"
        f"{f' (a later run tries {them} again)' if unfetched else ''}, bad_rows=DIR copies {them} there, too."
        f"{' What was packed so far is kept, and the next run goes on from there' if packed else ''}{lines}"
        + (f"\n  and {more:,} more" if more else "")
    )
    error.broken, error.unfetched = broken, list(unfetched)
    return error


def kept(index: Index, broken: Sequence[tuple[bytes, str]], folder: str, most: int) -> list[copies.Kept]:
    """Copy those to the directory of broken files whose copies are not there yet. Args: most: bytes of a file that is copied. Raises: WriteError."""
    there = copies.listed(folder)
    return [
        (shown(name), why, *copies.keep(index.base, name, None, why, folder, most))
        for name, why in broken
        if not copies.is_kept(index.base, name, why, folder, there.get(shown(name)))
    ]
