"""Files that earlier runs left out: broken ones, and such as could not be fetched. Each part's plan names its own."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import array_of, octets_of
from akrunner.errors import ReadError
from akrunner.foreign import redacted
from akrunner.packing import copies
from akrunner.packing.index import NAME, Index, truths
from akrunner.packing.result import counted, printable
from akrunner.packing.state import State

#: what a plan calls them: [[name as hex, why], ...]
BROKEN, UNFETCHED = "bad", "again"
#: lines of an error
_NAMED = 10
_NAMES = pa.large_binary()


def marked(state: State, what: str) -> Dict[bytes, str]:
    """Name -> why it was left out, of the files of which the last part that has them says so. Args: what: BROKEN or UNFETCHED."""
    found: Dict[bytes, str] = {}
    for part in state.parts():
        found = without(found, state.index(part) if found else None)
        found.update((bytes.fromhex(name), why) for name, why in state.plan(part).get(what, ()))
    return found


def without(found: Dict[bytes, str], index: Any) -> Dict[bytes, str]:
    """Those that an index does not list. Args: index: its table, None: there is none."""
    if not found or index is None:
        return found
    again = truths(pc.is_in(names_of(found), value_set=index.column(NAME).combine_chunks().cast(_NAMES)))
    return {name: why for (name, why), listed in zip(found.items(), again.tolist()) if not listed}


def names_of(found: Dict[bytes, str]) -> pa.Array:
    return octets_of(list(found), _NAMES)


def shown(name: bytes) -> str:
    """A name as it is told: without the secrets of a URL."""
    return redacted(name.decode("utf-8", "backslashreplace")) or "(no path)"


def rows_of(index: Index, broken: Any, why: Dict[bytes, str]) -> List[Tuple[bytes, str]]:
    """(name, why) of the rows of an index that were left out. Args: broken: [rows] which."""
    names = index.table.column(NAME).filter(array_of(np.asarray(broken))).to_pylist()
    return [(name, why[name]) for name in names]


def refused(kind: str, broken: Sequence[Tuple[bytes, str]]) -> ReadError:
    """What `bad_rows="fail"` says of them."""
    one = len(broken) == 1
    lines = "".join(f"\n  {printable(shown(name))}: {printable(why)}" for name, why in broken[:_NAMED])
    more = f"\n  and {len(broken) - _NAMED:,} more" if len(broken) > _NAMED else ""
    return ReadError(
        f"source: {counted(len(broken), f'broken {kind[:-1]}')} that an earlier run left out {'is' if one else 'are'} still there; mend "
        f"{'it, or take it' if one else 'them, or take them'} out of the input, or go on without {'it' if one else 'them'}: bad_rows='skip' "
        f"(--bad-rows skip), or bad_rows=DIR{lines}{more}"
    )


def kept(index: Index, broken: Sequence[Tuple[bytes, str]], folder: str, most: int) -> List[copies.Kept]:
    """Copy those to the directory of broken files whose copies are not there yet. Args: most: bytes of a file that is copied. Raises: WriteError."""
    there = copies.listed(folder)
    return [
        (shown(name), why, *copies.keep(index.base, name, None, why, folder, most))
        for name, why in broken
        if shown(name) not in there
    ]
