"""Hashes of rows and of values, thousands at a time, and the splits that follow from them: the same in every run and on every
machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.arrays import known_numbers_of, numbers_of, truths_of
from akrunner.column_types import NUMBERS, Family, family_of

U64 = NDArray[np.uint64]

#: the purposes for which a hash is mixed anew (see `mixed`)
SPLIT, ORDER, ROWS, VALUES, BYTES = 1, 2, 3, 4, 5
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
#: the bits that stand for a null, and for any NaN
_NULL, _NAN = np.uint64(0x6E756C6C), np.uint64(0x7FF8000000000000)
#: how many bytes of texts are hashed at a time: each byte takes some 30 bytes of memory
_AT_ONCE = 1 << 20
_FACTOR = 0xD1342543DE82EF95


def mixed(values: U64, purpose: int) -> U64:
    """Return the bits mixed for another purpose, as if they were newly drawn (splitmix64)."""
    with np.errstate(over="ignore"):
        # in place, to save memory: there are as many values as rows
        z: U64 = values + GOLDEN * np.uint64(purpose)
        z ^= z >> np.uint64(30)
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(27)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return z


def places(hashes: U64) -> NDArray[np.float64]:
    """Return [rows] a number from 0 to 1 for each hash; the splits' shares divide that range."""
    return mixed(hashes, SPLIT).astype(np.float64) / 2.0**64


def by_name(hashes: U64, fractions: Sequence[float]) -> NDArray[np.uint8]:
    """Return [rows] the number of each row's split, which depends on the row's hash alone, not on other rows."""
    return np.searchsorted(np.cumsum(fractions)[:-1], places(hashes), side="right").astype(np.uint8)


def of_numbers(base: np.uint64, first: int, rows: int, step: int = 1) -> U64:
    """Return [rows] 64 bits for the number of each row: `first`, `first + step`, ...

    Args:
        base: another base gives other bits.
    """
    numbers = np.arange(first, first + rows * step, step, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return mixed(base + numbers * GOLDEN, ROWS)


def can_hash(kind: pa.DataType) -> bool:
    """Whether `of_values` takes values of this type."""
    if pa.types.is_dictionary(kind):
        return can_hash(kind.value_type)
    family = family_of(kind)
    return family in NUMBERS or family in (Family.TEXT, Family.OCTETS, Family.DATE, Family.MOMENT)


def of_values(values: pa.Array, base: np.uint64) -> U64:
    """Return [rows] 64 bits for each value, independent of the width of its type and of other rows: 3, 3 as a byte and 3.0 get
    the same bits, and so do all nulls.

    Args:
        values: an array of a type that `can_hash` accepts; times count to the microsecond.
        base: another base gives other bits.
    """
    with np.errstate(over="ignore"):
        return mixed(_words(values) + base, VALUES)


def _words(values: pa.Array) -> U64:
    kind, family = values.type, family_of(values.type)
    if pa.types.is_dictionary(kind):
        of_each = np.concatenate([_words(values.dictionary), np.array([_NULL])])
        indices = known_numbers_of(values.indices.cast(pa.int64())).astype(np.int64)
        words: U64 = of_each[indices]
    elif family is Family.TRUTH:
        words = _words(values.cast(pa.int8()))
    elif family is Family.WHOLE:
        words = numbers_of(values).astype(np.uint64 if pa.types.is_uint64(kind) else np.int64).view(np.uint64).copy()
    elif family is Family.REAL:
        words = _of_floats(numbers_of(values).astype(np.float64))
    elif family is Family.DATE:
        words = _words(values.cast(pa.date32()).cast(pa.int32()))
    elif family is Family.MOMENT:
        words = _words(values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()))
    else:
        words = _of_texts(values.cast(pa.large_binary()))
    if values.null_count:
        words[~truths_of(values.is_valid())] = _NULL
    return words


def _of_floats(values: NDArray[np.float64]) -> U64:
    """Return the bits of floats; a float without a fraction gets those of the integer."""
    values = values + 0.0  # turns -0.0 into 0.0
    words = np.where(np.isnan(values), _NAN, values.view(np.uint64))
    whole = np.flatnonzero((np.abs(values) < 2.0**63) & (np.floor(values) == values))
    words[whole] = values[whole].astype(np.int64).view(np.uint64)
    return words


def _of_texts(values: pa.Array) -> U64:
    rows = len(values)
    words = np.zeros(rows, np.uint64)
    if not rows:
        return words
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + rows + 1]
    octets = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    at = 0
    while at < rows:
        stop = max(at + 1, int(np.searchsorted(ends, ends[at] + _AT_ONCE, side="right")) - 1)
        words[at:stop] = _of_octets(octets[ends[at] : ends[stop]], np.diff(ends[at : stop + 1]))
        at = stop
    return words


def _of_octets(octets: NDArray[np.uint8], lengths: NDArray[np.int64]) -> U64:
    """Return a hash of each text, for texts that lie end to end: a polynomial of its bytes."""
    some = lengths > 0
    starts = np.cumsum(lengths) - lengths
    sums = np.zeros(len(lengths), np.uint64)
    if some.any():
        each = mixed(np.arange(256, dtype=np.uint64), BYTES)
        powers = np.cumprod(np.full(int(lengths.max()), _FACTOR, np.uint64), dtype=np.uint64)
        inside = np.arange(len(octets)) - np.repeat(starts, lengths)
        sums[some] = np.add.reduceat(each[octets] * powers[inside], starts[some])
    with np.errstate(over="ignore"):
        return mixed(sums + lengths.astype(np.uint64) * GOLDEN, BYTES)
