"""Guesses, for all rows of a text at once, which of them cannot be read. A guess may be wrong: who asks parses the rows."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import numbers_of

#: [rows] whether each row is suspected
Suspected = np.ndarray[tuple[int], np.dtype[np.bool_]]
_QUOTE, _COMMA = ord('"'), ord(",")
#: cells that can be read in a column of whole numbers, or of floats; of dates, by the look of their digits
_WHOLE = r"^[ \t]*[+-]?[0-9]+[ \t]*$"
_FLOAT = r"^[ \t]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*$|^[ \t]*[+-]?(?i:nan|inf|infinity)[ \t]*$"
_TIME = r"^[0-9]{4}-[01][0-9]-[0-3][0-9]([ T][0-9:.]+(Z|[+-][0-9:]+)?)?$"
_DATE = r"^[0-9]{4}-[01][0-9]-[0-3][0-9]$"
_TRUTH = r"(?i)^(true|false|0|1)$"


def of_cells(data: bytes, starts: list[int], wanted: int) -> Suspected:
    """Return which rows of CSV have too few or too many cells.

    Args:
        data: the rows, with `,` between cells and `"` around them, as `Pieces` gives any CSV.
        starts: where the rows begin, at least one.
        wanted: how many cells a row has.
    """
    text = np.frombuffer(data, np.uint8)
    commas = text == _COMMA
    if b'"' in data:
        # behind an odd number of quotes a comma is inside a cell
        commas &= np.cumsum(text == _QUOTE) % 2 == 0
    counts = np.add.reduceat(commas, np.array(starts, np.int64), dtype=np.int64)
    return np.asarray(counts != wanted - 1)


def of_values(words: pa.Table, types: pa.Schema, nulls: list[str], decimal: str = ".") -> Suspected:
    """Return which rows have a cell that does not look like its column's type.

    Args:
        words: the cells as text.
        types: the types of some of the columns.
        nulls: the cells that are nulls.
        decimal: the character in front of a number's fraction.
    """
    found = np.zeros(words.num_rows, np.bool_)
    known = pa.array(nulls, pa.string())
    for field in types:
        pattern = _pattern(field.type)
        if pattern is None or field.name not in words.column_names:
            continue
        cells = words[field.name].combine_chunks()
        if pa.types.is_floating(field.type):
            pattern = pattern.replace(r"\.", re.escape(decimal))
        fits = pc.match_substring_regex(cells, pattern)
        if field.nullable:
            fits = pc.or_(fits, pc.is_in(cells, known))
        found |= ~numbers_of(fits.fill_null(True).cast(pa.uint8())).astype(np.bool_)
    return found


def of_objects(data: bytes, starts: list[int], types: pa.Schema) -> Suspected | None:
    """Return which lines are no JSON objects, or have another kind of value than their column; None if that cannot be said.

    Args:
        starts: where the lines begin, at least one.
        types: the types of some of the columns.
    """
    import duckdb

    offsets = pa.py_buffer(np.array([*starts, len(data)], np.int32).tobytes())
    lines = pa.Array.from_buffers(pa.binary(), len(starts), [None, offsets, pa.py_buffer(data)])
    try:
        texts = lines.cast(pa.string())
    except pa.ArrowInvalid:
        # some line is not UTF-8
        return None
    looks = ["json_type(line) IS NOT DISTINCT FROM 'OBJECT'"]
    for field in types:
        kinds = _kinds(field.type)
        if kinds and not set(field.name) & set("\"\\'"):
            known = ", ".join(f"'{kind}'" for kind in (*kinds, "NULL"))
            looks.append(f"coalesce(json_type(line, '$.\"{field.name}\"') IN ({known}), true)")
    with duckdb.connect() as connection:
        connection.register("lines", pa.table([texts], ["line"]))
        found = connection.sql(
            f"SELECT CASE WHEN json_valid(line) THEN {' AND '.join(looks)} ELSE false END AS fits FROM lines"
        ).fetchnumpy()["fits"]
    return ~np.asarray(found, np.bool_)


def _kinds(kind: pa.DataType) -> tuple[str, ...]:
    """Return the kinds of JSON values that a column of a type takes, in DuckDB's words; () if that is not said here."""
    if pa.types.is_integer(kind):
        return "BIGINT", "UBIGINT", "HUGEINT"
    if pa.types.is_floating(kind):
        return "BIGINT", "UBIGINT", "HUGEINT", "DOUBLE"
    if pa.types.is_boolean(kind):
        return ("BOOLEAN",)
    return ("VARCHAR",) if pa.types.is_string(kind) or pa.types.is_temporal(kind) else ()


def _pattern(kind: pa.DataType) -> str | None:
    looks: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
        (pa.types.is_integer, _WHOLE),
        (pa.types.is_floating, _FLOAT),
        (pa.types.is_date, _DATE),
        (pa.types.is_timestamp, _TIME),
        (pa.types.is_boolean, _TRUTH),
    )
    return next((pattern for has, pattern in looks if has(kind)), None)
