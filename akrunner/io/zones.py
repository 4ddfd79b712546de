"""Times in JSON lines, with or without a time zone. A column never mixes the two, as Arrow would take times without a zone for
UTC."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import numbers_of, truths_of
from akrunner.errors import SourceError

Rows = NDArray[np.int64]
Truths = NDArray[np.bool_]

#: a time of day with a zone, as Arrow reads it
_ZONED = r"[T ][0-9:]+(?:\.[0-9]+)?(?:Z|[+-][0-9:]+)"
_MAY_BE_ZONED = re.compile(_ZONED.encode() + b'"')


def has_times(kind: pa.DataType) -> bool:
    """Whether a column of this type has timestamps in it."""
    if pa.types.is_nested(kind):
        return any(has_times(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind))


def replaced(kind: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type with another one in place of its timestamps."""
    if pa.types.is_list(kind):
        return pa.list_(replaced(kind.value_type, other))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, replaced(one.type, other)) for one in kind])
    return other if pa.types.is_timestamp(kind) else kind


def guess(data: bytes, kind: pa.DataType, words: Callable[[], pa.Array]) -> pa.DataType:
    """Return the type of a column of times whose type is open; the times stay text if some have a zone and some have none.

    Args:
        data: the text of the rows.
        words: reads the column with text in place of the times.
    """
    if _MAY_BE_ZONED.search(data) is None:
        return kind
    zoned = [truths for _, truths in _leaves(words(), kind)]
    if not any(truths.any() for truths in zoned):
        return kind
    if all(truths.all() for truths in zoned):
        return replaced(kind, pa.timestamp("s", "UTC"))
    return replaced(kind, pa.string())


def first_odd(data: bytes, kind: pa.DataType, words: Callable[[], pa.Array]) -> tuple[int, bool] | None:
    """Return (row, whether it has a zone) of the first time that does not match its column's type; None if all match. The
    arguments are those of `guess`."""
    wanted = "tz=" in str(kind)
    if not wanted and _MAY_BE_ZONED.search(data) is None:
        return None
    found = [rows[truths != wanted] for rows, truths in _leaves(words(), kind)]
    odd = min((int(rows[0]) for rows in found if len(rows)), default=None)
    return None if odd is None else (odd, not wanted)


def refuse(where: str, name: str, zoned: bool) -> NoReturn:
    """Raise the error for a time that differs from the others of its column.

    Raises:
        SourceError: always.
    """
    has = "has a zone, and its column has none" if zoned else "has no zone, and its column is one of times with a zone"
    raise SourceError(
        f"source: {where}, column {name!r}: a time {has}; give input_schema= (--input-schema) with '{name} string' to keep it "
        "as it stands"
    )


def _leaves(column: pa.Array, kind: pa.DataType) -> Iterator[tuple[Rows, Truths]]:
    """Yield, for each timestamp type within the column's type, (row of each time, whether it has a zone). Nulls are left
    out."""
    yield from _below(column, kind, np.arange(len(column)))


def _below(column: pa.Array, kind: pa.DataType, rows: Rows) -> Iterator[tuple[Rows, Truths]]:
    if pa.types.is_list(kind):
        parents = numbers_of(pc.list_parent_indices(column))
        yield from _below(pc.list_flatten(column), kind.value_type, rows[parents])
    elif pa.types.is_struct(kind):
        for number, field in enumerate(kind):
            yield from _below(pc.struct_field(column, [number]), field.type, rows)
    elif pa.types.is_timestamp(kind):
        there = truths_of(column.is_valid())
        yield rows[there], truths_of(pc.match_substring_regex(column.filter(column.is_valid()), _ZONED + "$"))
