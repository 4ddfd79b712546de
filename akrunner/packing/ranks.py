"""The split of a row, and its rank in the shuffled order.

Both come from hashes of the row's name, so that they do not depend on the order in which rows are found.

::

    name --blake2b, keyed with the seed--> 64 bits --splitmix64--> order of the rows of a class    -> split
                                                   --splitmix64--> rank in the shuffled order
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from akrunner.io.hashes import SPLIT, U64, mixed, of_numbers, places

I64 = NDArray[np.int64]

#: denominators to which fractions are rounded; the second is used where the first is not exact
_FINE, _FINER = 10_000, 1_000_000
#: how many rows are counted at a time
_AT_ONCE = 65536


def hashes_of(names: Iterable[bytes], seed: int) -> U64:
    """Return a hash of 64 bits for each name, which depends on the seed [names]."""
    key = seed.to_bytes(8, "little")
    made = b"".join([hashlib.blake2b(name, digest_size=8, key=key).digest() for name in names])
    return np.frombuffer(made, "<u8").astype(np.uint64)


def hashes_of_rows(name: bytes, seed: int, first: int, rows: int) -> U64:
    """Return a hash of 64 bits for each row of a file, from the file's name and the row's number [rows]."""
    return of_numbers(hashes_of([name], seed)[0], first, rows)


def none_without(
    splits: NDArray[np.uint8], hashes: U64, classes: I64, fractions: Sequence[float], before: I64
) -> NDArray[np.uint8]:
    """Change splits so that each split has a row of every class that has at least as many rows as there are splits.

    A split without a row of a class gets the class's row whose place is nearest to the split's range, but never the last one of
    another split.

    Args:
        splits: the split of each row, as `by_name` returns them [rows].
        hashes: hash of each row [rows].
        classes: number of each row's class [rows].
        fractions: share of each split.
        before: number of rows from earlier calls [splits, classes].
    Returns:
        The changed splits [rows].
    """
    counts = before.copy()
    for at in range(0, len(splits), _AT_ONCE):
        some = slice(at, at + _AT_ONCE)
        for number, row in enumerate(counts):
            row += np.bincount(classes[some][splits[some] == number], minlength=len(row))
    few = (counts == 0).any(axis=0) & (counts.sum(axis=0) >= len(counts))
    pieces = [np.flatnonzero(few[classes[at : at + _AT_ONCE]]).astype(np.int32) + at for at in range(0, len(splits), _AT_ONCE)]
    rows = np.concatenate([np.zeros(0, np.int32), *pieces])
    del pieces
    rows = rows[np.argsort(classes[rows], kind="stable")]
    ordered = classes[rows]
    found = splits.copy()
    ends = np.cumsum(fractions)
    for number in np.flatnonzero(few).tolist():
        first, end = np.searchsorted(ordered, [number, number + 1]).tolist()
        some = rows[first:end]
        place = places(hashes[some])
        for split in np.flatnonzero(counts[:, number] == 0).tolist():
            # a row that is the only one of its class in its split stays there
            far = np.maximum(ends[split] - fractions[split] - place, place - ends[split])
            far = np.where(counts[found[some], number] > 1, far, np.inf)
            if not np.isfinite(far).any():
                break
            row = some[int(np.lexsort((hashes[some], far))[0])]
            counts[found[row], number] -= 1
            counts[split, number] += 1
            found[row] = split
    return found


def stratified(hashes: U64, classes: I64, fractions: Sequence[float], before: I64) -> tuple[NDArray[np.uint8], I64]:
    """Return splits in which every class has its share, to within one row.

    Args:
        hashes: hash of each row [rows].
        classes: number of each row's class [rows].
        fractions: share of each split.
        before: how many rows of each class earlier calls dealt [classes].
    Returns:
        (the split of each row [rows], how many rows of each class were dealt by now [classes]).
    """
    order = np.lexsort((mixed(hashes, SPLIT), classes))
    counts = np.bincount(classes, minlength=len(before)).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    ordered = classes[order]
    positions = np.arange(len(order)) - starts[ordered] + before[ordered]
    turns = _turns(tuple(fractions))
    splits = np.empty(len(order), np.uint8)
    splits[order] = turns[positions % len(turns)]
    return splits, before + counts


@lru_cache(maxsize=8)
def _turns(fractions: tuple[float, ...]) -> NDArray[np.uint8]:
    """Return which split each row in turn goes to, so that after any number of rows each split has its share to within one row.

    The sequence repeats after its end [period]. Of splits whose turn comes at the same time, the largest is first.
    """
    whole = next((size for size in (_FINE, _FINER) if all(abs(f * size - round(f * size)) < 1e-6 for f in fractions)), _FINER)
    shares = [round(f * whole) for f in fractions]
    shares[int(np.argmax(shares))] += whole - sum(shares)
    times = np.concatenate([(np.arange(share) + 0.5) / share for share in shares])
    owners = np.repeat(np.arange(len(shares), dtype=np.uint8), shares)
    turns: NDArray[np.uint8] = owners[np.lexsort((-np.array(shares)[owners], times))]
    return turns


def cut_evenly(sizes: I64, wanted: int) -> I64:
    """Return where to cut rows into shards of about `wanted` bytes, as even as the rows allow [shards + 1].

    Args: sizes: bytes of each row [rows].
    """
    rows = len(sizes)
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if rows else 0
    shards = max(1, min(rows, round(total / wanted)))
    goals = np.arange(1, shards) * (total / shards)
    # cut at the row's end that is nearer to the goal, but never make a shard without a row
    middles = sizes / -2
    middles += ends
    cuts = np.searchsorted(middles, goals, side="left")
    cuts = np.maximum(cuts, np.arange(1, shards))
    cuts = np.minimum(cuts, rows - np.arange(shards - 1, 0, -1))
    cuts = np.maximum.accumulate(cuts) if shards > 1 else cuts
    return np.concatenate(([0], cuts, [rows])).astype(np.int64)


def cut_rows(rows: int, shards: int) -> I64:
    """Return where to cut rows into a number of shards whose rows differ by at most one [shards + 1]."""
    return np.arange(shards + 1, dtype=np.int64) * rows // shards
