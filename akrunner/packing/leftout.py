"""Files that earlier runs left out, because they are broken or could not be fetched. Each part's plan names its own."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import array_of, octets_of
from akrunner.checks import counted
from akrunner.errors import ReadError
from akrunner.folders.gathered import MTIME, NAME, numbers, truths
from akrunner.folders.pool import NOT_THERE
from akrunner.folders.remote import fits
from akrunner.folders.words import printable, quoted
from akrunner.foreign import redacted
from akrunner.packing import copies
from akrunner.packing.index import ROW, TEXT, Index
from akrunner.packing.state import State

#: keys in a plan for the broken and the unfetched files: [[name as hex, why], ...]
BROKEN, UNFETCHED = "bad", "again"
#: how many files of a kind an error names
_NAMED = 20
#: how many files `dataset.json` names
_DESCRIBED = 100
#: share of a list's files that are "nearly all" of them
_NEARLY_ALL = 0.9
_NAMES = pa.large_binary()


def marked(state: State, what: str, parts: Sequence[int] | None = None) -> dict[bytes, str]:
    """Return name -> why it was left out, for files that the last part which lists them left out.

    Args: what: BROKEN or UNFETCHED; parts: the parts to look at, in order; None: those that count.
    """
    found: dict[bytes, str] = {}
    for part in state.parts() if parts is None else parts:
        found = without(found, state.index(part) if found else None)
        found.update((bytes.fromhex(name), why) for name, why in state.plan(part).get(what, ()))
    return found


def without(found: dict[bytes, str], index: Any) -> dict[bytes, str]:
    """Return those files that an index does not list. Args: index: the index's table; None: there is none."""
    if not found or index is None:
        return found
    again = truths(pc.is_in(names_of(found), value_set=index.column(NAME).combine_chunks().cast(_NAMES)))
    return {name: why for (name, why), listed in zip(found.items(), again.tolist()) if not listed}


def names_of(found: dict[bytes, str]) -> pa.Array:
    return octets_of(list(found), _NAMES)


def shown(name: bytes) -> str:
    """Return a file's name for messages, without the secrets of a URL."""
    return redacted(name.decode("utf-8", "backslashreplace")) or "(no path)"


#: the row of a list, as it stands at the end of the reason why a file was left out
_OF_LIST = re.compile(r" \(row (?P<row>[0-9]+) of the list[^)]*\)\Z")


def located(table: pa.Table, whys: Sequence[str]) -> list[str]:
    """Return the reasons why files are left out; for files from a list, with the number of their row in it.

    The row is needed because a path may be empty, or look like another one. Args: table: the files' rows of an index.
    """
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
        # an `Unfetched` stays one: its type says that the file is tried again
        found.append(type(why)(f"{why} (row {row} of the list{blanks})"))
    return found


def unlocated(why: str) -> str:
    """Return why a file is left out, without the row of a list: the lists of two runs may have it in different rows."""
    return _OF_LIST.sub("", why)


def in_order(some: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return files that are left out in the order of the list that names them, others by their paths.

    They are met in the order in which they would be packed, which is by chance. Args: some: (path, why).
    """

    def place(one: tuple[str, str]) -> tuple[int, str]:
        row = _OF_LIST.search(one[1])
        return (int(row["row"]) if row else -1, one[0])

    return sorted(some, key=place)


def looked_for(bad: Sequence[tuple[str, str]], base: str | None, read: int, rows: int | None = None) -> str:
    """Return where files of a list were looked for, and what to change, if nearly all of them are not there; else "".

    Args:
        bad: (path, why) of files that are left out, in messages' words.
        base: the directory that relative paths are below.
        read: how many files of the list were looked at.
        rows: how many of these are left out, if `bad` names only the first of them; None: `bad` names all.
    """
    gone = [path for path, why in bad if why.startswith(NOT_THERE) and _OF_LIST.search(why) and _is_below(path)]
    left = len(bad) if rows is None else rows
    if base is None or not gone or len(gone) < _NEARLY_ALL * len(bad) or left < _NEARLY_ALL * read:
        return ""
    return f"they were looked for below {quoted(base)}; paths_in=DIR (--paths-in DIR) names the directory that their paths begin in"


def _is_below(path: str) -> bool:
    """Whether a path of a list begins in the directory of the list, as neither a URL nor an absolute path does."""
    return "://" not in path and not os.path.isabs(path)


class LeftOut(NamedTuple):
    """A broken file of the input.

    Attributes:
        name: name of the file.
        why: why it is broken.
        again: whether this run tries it again, although it has not changed as far as is known.
        located: why it is broken, with its row in a list.
    """

    name: bytes
    why: str
    again: bool
    located: str

    @property
    def told(self) -> tuple[str, str]:
        """Return (path, why) for messages."""
        return shown(self.name), self.located


def rows_of(index: Index, broken: Any, why: dict[bytes, str], most: int) -> list[LeftOut]:
    """Return the files of an index that were left out.

    Args: broken: which ones [rows]; why: name -> why it is broken; most: most bytes of a file.
    """
    some = index.table.filter(array_of(np.asarray(broken)))
    names = some.column(NAME).to_pylist()
    whys = located(some, [why[name] for name in names])
    return [
        LeftOut(name, why[name], again, row) for name, again, row in zip(names, tried_again(some, why, most).tolist(), whys)
    ]


def in_input(state: State, parts: Sequence[int], index: Index) -> dict[str, Any]:
    """Return what `dataset.json` says about files of the input that are left out. Args: parts: the parts that count."""
    told: dict[str, Any] = {}
    for field, what in (("skipped", BROKEN), ("unfetched", UNFETCHED)):
        found = marked(state, what, parts)
        there = np.zeros(len(found), np.bool_)
        # chunk by chunk, as a copy of all names would double the memory of the index
        for chunk in index.table.column(NAME).chunks if found else ():
            there |= truths(pc.is_in(names_of(found), value_set=chunk.cast(_NAMES)))
        left = [(name, why) for (name, why), is_there in zip(found.items(), there.tolist()) if is_there]
        told[f"{field}_rows"] = len(left)
        told[field] = [{"path": shown(name), "why": why} for name, why in left[:_DESCRIBED]]
    return told


def untold(table: pa.Table) -> NDArray[np.bool_]:
    """Return which files of an index are URLs without a time: only another try tells whether they have changed [rows]."""
    there: NDArray[np.bool_] = (numbers(table.column(MTIME)) == 0) & truths(pc.match_substring(table.column(NAME), "://"))
    return there


def tried_again(table: pa.Table, why: dict[bytes, str], most: int) -> NDArray[np.bool_]:
    """Return which files of an index a run tries again, if they were left out as broken and have not changed [rows].

    They are URLs without a time, and files that were too large for an earlier run and are not for this one.
    Args: why: name -> why a file is broken; most: most bytes of a file.
    """
    fitting = names_of({name: told for name, told in why.items() if fits(told, most)})
    return untold(table) | truths(pc.is_in(table.column(NAME), value_set=fitting))


def has_fitting(bad: Sequence[tuple[str, str]], most: int) -> bool:
    """Whether one of the files that were left out of a shard was too large, and may be no longer.

    Args: bad: (path, why) of each, as the shard's record has it; most: most bytes of a file now.
    """
    return any(fits(unlocated(why), most) for _, why in bad)


def asked_again(table: pa.Table, unfetched: Sequence[tuple[str, str]]) -> NDArray[np.bool_]:
    """Return which files of an index every run tries again [rows].

    Args: unfetched: (name as hex, why) of files that could not be fetched.
    """
    names = octets_of([bytes.fromhex(name) for name, _ in unfetched], _NAMES)
    return untold(table) | truths(pc.is_in(table.column(NAME).combine_chunks().cast(_NAMES), value_set=names))


def none_left(
    kind: str, bad: Sequence[tuple[str, str]], unfetched: Sequence[tuple[str, str]], base: str | None = None
) -> ReadError:
    """Return the error for an input of which no file can be packed.

    Args:
        bad, unfetched: (path, why) of all its files.
        base: the directory that relative paths of a list are below.
    """
    bad, unfetched = in_order(bad), in_order(unfetched)
    whole = len(bad) + len(unfetched)
    what = "is broken" if whole == 1 else "are broken"
    if unfetched:
        what = "could not be fetched" + (f", or {what}" if bad else "")
    some = [*unfetched, *bad]
    lines = "".join(f"\n  {quoted(path)}: {printable(why)}" for path, why in some[:_NAMED])
    error = ReadError(
        f"source: {f'the only {kind[:-1]}' if whole == 1 else f'all of {counted(whole, kind[:-1])}'} {what}: nothing was "
        "packed, whatever bad_rows= (--bad-rows) says, and no input for a job is "
        f"there{'; a later run tries again' if unfetched else ''}{lines}"
        + (f"\n  and {whole - _NAMED:,} more" if whole > _NAMED else "")
        + _last(looked_for(bad, base, whole))
    )
    error.broken, error.unfetched = list(bad), list(unfetched)
    return error


def _last(sentence: str) -> str:
    return f"\n{sentence}" if sentence else ""


def refused(
    kind: str, bad: Sequence[tuple[str, str]], unfetched: Sequence[tuple[str, str]] = (), earlier: Sequence[tuple[str, str]] = (), packed: bool = True,
    base: str | None = None, read: int = 0,
) -> ReadError:  # fmt: skip
    """Return the error of `bad_rows="fail"`.

    Args:
        kind: images, texts or files.
        bad: (path, why) of the broken files that this run has met.
        unfetched: (path, why) of the files that this run could not fetch.
        earlier: (path, why) of broken files that an earlier run left out, and that are as they were.
        packed: whether this run has packed anything.
        base: the directory that relative paths of a list are below.
        read: how many files of the input were looked at, by this run or an earlier one.
    """
    broken, unfetched, whats = in_order([*earlier, *bad]), in_order(unfetched), []
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
        f"source: {', '.join(whats)}; mend {them}, or take {them} out of the input; bad_rows='skip' (--bad-rows skip) leaves "
        f"{them} out and lists {them}{f' (a later run tries {them} again)' if unfetched else ''}, bad_rows=DIR copies {them} "
        f"there, too.{' What was packed so far is kept, and the next run goes on from there' if packed else ''}{lines}"
        + (f"\n  and {more:,} more" if more else "")
        + _last(looked_for(broken, base, read))
    )
    error.broken, error.unfetched = broken, list(unfetched)
    return error


def kept(index: Index, broken: Sequence[tuple[bytes, str]], folder: str, most: int) -> list[copies.Kept]:
    """Copy broken files to the directory for them, unless their copies are there already.

    Args: broken: (name, why) of each file; folder: the directory; most: most bytes of a file that is copied.
    Returns: rows for the directory's table, of the files that it does not list correctly yet. Raises: WriteError.
    """
    there = copies.listed(folder)
    return [
        (shown(name), why, *copies.keep(index.base, name, None, why, folder, most))
        for name, why in broken
        if not copies.is_kept(index.base, name, why, folder, there.get(shown(name)))
    ]
