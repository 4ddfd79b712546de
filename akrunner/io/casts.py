"""Converts a column of Arrow to another type: one that the user asked for, or the type that another part of the same table
has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import decoded, first_wrong, truths_of
from akrunner.column_types import Family, family_of
from akrunner.errors import SourceError
from akrunner.io import exact
from akrunner.schema import is_list, is_text, to_floats

#: names of the kinds of values
_KINDS: dict[Family | None, str] = {
    Family.TRUTH: "truths",
    **dict.fromkeys((Family.WHOLE, Family.REAL, Family.DECIMAL), "numbers"),
    **dict.fromkeys((Family.MOMENT, Family.DATE), "moments"),
    Family.TIME_OF_DAY: "times of day",
    Family.SPAN: "spans of time",
    Family.OCTETS: "bytes",
}


def asked(column: pa.Array, field: pa.Field, first: int, parameter: str = "input_schema") -> pa.Array:
    """Return a column in the type that the user asked for. Floats are rounded to it; no other value changes.

    Args:
        first: the number of the column's first row, for errors.
        parameter: the parameter that asked for the type, for errors.
    Raises:
        SourceError: a value cannot be converted, or is null where the schema says NOT NULL.
    """
    try:
        cast = _as_type(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        wrong = first_wrong(len(column), lambda start, stop: _as_type(column[start:stop], field.type), pa.ArrowException)
        raise SourceError(
            f"{parameter}: row {first + wrong}, column {field.name!r}: column {field.name!r} cannot become {field.type}: {e}"
        ) from None
    if not field.nullable and cast.null_count:
        row = first + int(np.flatnonzero(truths_of(cast.is_null()))[0])
        raise SourceError(f"{parameter}: row {row}, column {field.name!r}: a null, and the schema says NOT NULL")
    return cast


def _as_type(column: pa.Array, target: pa.DataType) -> pa.Array:
    if column.type == target:
        return column
    if pa.types.is_floating(column.type) and pa.types.is_floating(target):
        return to_floats(column, target)
    return kept(column, column.cast(target))


def kept(given: pa.Array, cast: pa.Array) -> pa.Array:
    """Return the converted column, after a check that Arrow did not silently cut a value, such as the time of a timestamp or
    the first bit of 0xFF.

    Raises:
        pa.ArrowInvalid: Arrow did cut a value.
    """
    result = cast
    while is_list(given.type) and is_list(cast.type):
        given, cast = pc.list_flatten(given), pc.list_flatten(cast)
    row = None
    if pa.types.is_signed_integer(cast.type) and is_text(given.type):
        row = exact.first_wrapped(decoded(given), cast)
    elif pa.types.is_boolean(cast.type) and (pa.types.is_integer(given.type) or pa.types.is_floating(given.type)):
        row = pc.index(pc.is_in(given, pa.array([0, 1, None], given.type)), pa.scalar(False)).as_py()
    elif pa.types.is_timestamp(given.type) and pa.types.is_time(cast.type):
        row = pc.index(given.is_valid(), pa.scalar(True)).as_py()
    elif pa.types.is_temporal(given.type) and pa.types.is_temporal(cast.type):
        row = pc.index(pc.equal(cast.cast(given.type), given), pa.scalar(False)).as_py()
    elif pa.types.is_floating(cast.type):
        _check_finite(given, cast)
    if row is not None and row >= 0:
        raise pa.ArrowInvalid(
            f"{given[row].as_py()} would lose a part of itself; select= (--select) takes a CAST that means to"
        )
    return result


def _check_finite(given: pa.Array, cast: pa.Array) -> None:
    """Raise pa.ArrowInvalid if Arrow silently made a finite value infinite, such as 1e300 as a float."""
    made = _infinite(cast)
    if not pc.any(made).as_py():
        return
    given = decoded(given)
    if pa.types.is_binary(given.type) or pa.types.is_large_binary(given.type):
        given = given.cast(pa.large_string())
    if pa.types.is_floating(given.type):
        finite = pc.invert(_infinite(given))
    elif is_text(given.type):
        finite = pc.invert(pc.match_substring_regex(decoded(given), r"(?i)^\s*[+-]?inf(inity)?\s*$"))
    else:
        finite = given.is_valid()
    row = pc.index(pc.and_(made, finite), pa.scalar(True)).as_py()
    if row >= 0:
        raise pa.ArrowInvalid(f"{given[row].as_py()!r} would become infinite")


def _infinite(values: pa.Array) -> pa.Array:
    """Return where values are infinite; older Arrow does not know it of floats of 16 bits."""
    return pc.is_inf(values.cast(pa.float32()) if pa.types.is_float16(values.type) else values)


def unchanged(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values in another type if every value stays what it was. (Without a word Arrow rounds a double, turns 7 into a
    boolean and a number into a timestamp.)

    Raises:
        pa.ArrowInvalid: a value would change.
        pa.ArrowNotImplementedError: Arrow cannot convert between the types.
    """
    cast = column.cast(kind)
    if pa.types.is_null(column.type):
        return cast
    given, made = decoded(column), decoded(cast)
    while is_list(given.type) and is_list(made.type):
        given, made = pc.list_flatten(given), pc.list_flatten(made)
    if not (_of_kind(given.type) == _of_kind(made.type) or is_text(given.type) or is_text(made.type)):
        raise pa.ArrowInvalid(f"{_of_kind(given.type)} are no {_of_kind(made.type)}")
    zones = [getattr(one.type, "tz", None) is None for one in (given, made)]
    if pa.types.is_timestamp(given.type) and pa.types.is_timestamp(made.type) and zones[0] != zones[1]:
        raise pa.ArrowInvalid("one has a time zone, the other has none")
    back = made.cast(given.type)
    if pa.types.is_nested(given.type):
        if not back.equals(given):
            raise pa.ArrowInvalid("a value in it would be another one")
        return cast
    same = pc.equal(back, given)
    if pa.types.is_floating(given.type):
        same = pc.or_kleene(same, pc.and_(pc.is_nan(back), pc.is_nan(given)))
    row = pc.index(same, pa.scalar(False)).as_py()
    if row >= 0:
        raise pa.ArrowInvalid(f"{given[row].as_py()!r} would be {made[row].as_py()!r}")
    return cast


def _of_kind(data_type: pa.DataType) -> str:
    """Return the kind of a type's values: only values of the same kind are converted without being asked for."""
    return "structs" if pa.types.is_struct(data_type) else _KINDS.get(family_of(data_type), str(data_type))


def as_in_first(batch: pa.RecordBatch, field: pa.Field, where: str, first: str) -> pa.Array:
    """Return a batch's column in the type that the first part of its table has.

    Args:
        where: the words for the part that the batch comes from, for errors.
        first: the words for the part that has set the type, for errors.
    Raises:
        SourceError: a value would change.
    """
    column = batch.column(field.name)
    if column.type == field.type:
        return column
    try:
        return unchanged(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise SourceError(
            f"source: column {field.name!r} of {where} is {column.type}, and cannot become {field.type}, as in {first}: {e}; "
            "input_schema= (--input-schema) says which type it is to have"
        ) from None
