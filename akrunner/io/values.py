"""Converts Python's values to Arrow without cutting any of them. By itself pyarrow turns 1.5 into 1, a datetime into its day,
and a time with any zone into one without.

Only columns that hold such values are looked at a second time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.column_types import NUMBERS, TIMES, Family, family_of
from akrunner.io.casts import kept, unchanged
from akrunner.schema import is_list, to_array

#: types whose values pyarrow converts rightly, in whatever mixture
_PLAIN = {int, float, str, bytes, bool, NoneType}
_NULLS = ("NaTType", "NAType")
_FLOATS = (float, np.floating)
#: a column of these types alone has no value that pandas takes for a null
_SURE = {int, str, bytes, NoneType}
#: how many characters of numpy's texts are looked at together
_LOOKED_AT = 1 << 22
_TIMES = {"dates", "datetimes", "times of day", "timedeltas", "values of numpy.datetime64"}


class Unfit(ValueError):
    """A value does not fit beside the others.

    Attributes:
        row: the value's position.
        what: what is wrong with it.
    """

    def __init__(self, row: int, what: str) -> None:
        super().__init__(f"row {row}: {what}")
        self.row, self.what = row, what


def of_numpy(values: Any, nulls: bool = False) -> Any:
    """Return a numpy array of one dimension, or a pandas Series over one, as an Arrow array.

    Texts, byte strings and times become what numpy's own items are; by itself, Arrow ends each text at its first NUL, and takes
    the steps of a `datetime64[25s]` for seconds. The errors are those of `typed`.

    Args:
        nulls: as in `typed`.
    """
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "SU":
        plain = np.asarray(values)
        if _has_inner_nul(plain):
            values = (values if isinstance(values, np.ma.MaskedArray) else plain).astype(object)
    elif isinstance(values.dtype, np.dtype) and values.dtype.kind in "Mm":
        unit, count = np.datetime_data(values.dtype)
        values = values if count == 1 else values.astype(f"{values.dtype.kind}8[{unit}]")
    return pa.array(values, from_pandas=nulls)


def _has_inner_nul(values: np.ndarray[Any, Any]) -> bool:
    """Whether a text has a NUL with another character somewhere behind it. (NULs at the end are numpy's padding.)"""
    unit = np.dtype(np.uint8 if values.dtype.kind == "S" else np.uint32)
    width = values.dtype.itemsize // unit.itemsize
    if width < 2:
        return False
    rows = max(1, _LOOKED_AT // width)
    for start in range(0, len(values), rows):
        empty = np.ascontiguousarray(values[start : start + rows]).view(unit).reshape(-1, width) == 0
        if (empty[:, :-1] & ~empty[:, 1:]).any():
            return True
    return False


def typed(values: Sequence[Any], nulls: bool = False) -> pa.Array:
    """Return the values as an array of a type that holds all of them.

    Args:
        nulls: whether NaN is a null, as in pandas.
    Raises:
        pa.ArrowException, TypeError, ValueError, OverflowError: no type holds all of them.
    """
    values, kinds = _without_nulls(values)
    if kinds <= _PLAIN:
        return pa.array(values, from_pandas=nulls)
    if _families(kinds) & _TIMES:
        return _times(values, nulls)
    array = pa.array(values, from_pandas=nulls)
    kind = _refined(values, array.type)
    return array if kind == array.type else as_type(values, kind)


def as_type(values: Sequence[Any], kind: pa.DataType, rounding: bool = True) -> pa.Array:
    """Return the values as an array of the given type.

    The errors are those of `typed`, raised if a value does not fit the type or would be cut.

    Args:
        rounding: whether doubles may become narrower floats.
    """
    values, _ = _without_nulls(values, kind)
    if not rounding and _has_narrow_floats(kind) and not _are_narrow(values):
        natural = typed(values)
        return natural if natural.type == kind else unchanged(natural, kind)
    if is_list(kind) or pa.types.is_struct(kind):
        array = to_array(values, kind)
        (_check_struct if pa.types.is_struct(kind) else _check_list)(values, kind, array)
        return array
    kinds = set(map(type, values))
    if kinds <= {int, NoneType} or not _is_exact(kind):
        return to_array(values, kind)
    if pa.types.is_temporal(kind) and _families(kinds) & _TIMES:
        natural = _times(values, False)
        if (
            getattr(kind, "tz", None) is not None
            and getattr(natural.type, "tz", "") is None
            and natural.null_count < len(natural)
        ):
            row = next(row for row, value in enumerate(values) if _is_there(value))
            raise Unfit(row, f"{values[row]} has no zone, and the column is {kind}")
        return kept(natural, natural.cast(kind))
    # of floats and Decimals among them, the cast cuts none
    return pa.array(values).cast(kind)


def _without_nulls(values: Sequence[Any], kind: pa.DataType | None = None) -> tuple[Sequence[Any], set[type]]:
    """Return (values, their types) with None in place of pandas' nulls, which dicts made of its rows contain: NA, NaT, and NaN
    where there can be no number.

    Args:
        kind: the column's type; None: it is not known.
    """
    kinds = set(map(type, values))
    if kinds <= _SURE:
        return values, kinds
    named = any(one.__name__ in _NULLS for one in kinds)
    others = [one for one in kinds if one is not NoneType and one.__name__ not in _NULLS and not issubclass(one, _FLOATS)]
    if kind is not None:
        numbers = family_of(kind) in NUMBERS and not pa.types.is_boolean(kind)
    else:
        numbers = not others or any(issubclass(one, (int, np.integer, Decimal)) and one is not bool for one in others)
    nans = not numbers and any(issubclass(one, _FLOATS) for one in kinds)
    # a float that is not NaN is the user's mistake: it stays, so that an error reports it
    nans = nans and all(value != value for value in values if isinstance(value, _FLOATS))
    if not named and not nans:
        return values, kinds
    values = [None if type(one).__name__ in _NULLS or (nans and isinstance(one, _FLOATS)) else one for one in values]
    return values, set(map(type, values))


def _has_narrow_floats(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_narrow_floats(field.type) for field in kind)
    return _has_narrow_floats(kind.value_type) if is_list(kind) else pa.types.is_float32(kind) or pa.types.is_float16(kind)


def _are_narrow(values: Sequence[Any]) -> bool:
    """Whether the values are numpy's floats of single precision, or arrays of them, as the values of a column often are."""
    if set(map(type, values)) <= {np.float32, NoneType}:
        return True
    return all(value is None or (isinstance(value, np.ndarray) and value.dtype == np.float32) for value in values)


def zoned(values: Sequence[Any], kind: pa.DataType) -> bool | None:
    """Whether the timestamps have a time zone; None if there is no timestamp.

    Args:
        kind: the column's type.
    """
    while is_list(kind):
        values, kind = _flat(values), kind.value_type
    if not pa.types.is_timestamp(kind) or "datetimes" not in _families(set(map(type, values))):
        return None
    return next((value.tzinfo is not None for value in values if isinstance(value, datetime) and _is_there(value)), None)


def _is_exact(kind: pa.DataType) -> bool:
    family = family_of(kind)
    return family is Family.WHOLE or family in TIMES


def _family(kind: type) -> str:
    """Return the name of what a Python type's values are; "" for a type of nulls."""
    if kind is NoneType or kind.__name__ in _NULLS:
        return ""
    for base, name in (
        (datetime, "datetimes"),
        (date, "dates"),
        (time, "times of day"),
        ((timedelta, np.timedelta64), "timedeltas"),
        (np.datetime64, "values of numpy.datetime64"),
    ):
        if issubclass(kind, base):
            return name
    return f"values of {kind.__name__}"


def _families(kinds: Iterable[type]) -> set[str]:
    return set(map(_family, kinds)) - {""}


def _is_there(value: Any) -> bool:
    return bool(_family(type(value))) and not (isinstance(value, float) and math.isnan(value))


def _times(values: Sequence[Any], nulls: bool) -> pa.Array:
    """Return dates, times or time spans of Python, pandas or numpy as an array, in microseconds; in nanoseconds if a value has
    any.

    The errors are those of `typed`.

    Args:
        nulls: as in `typed`.
    Raises:
        Unfit: the values are of two kinds, neither of which is a special case of the other.
    """
    kinds = set(map(type, values))
    if nulls or any(kind.__name__ in _NULLS for kind in kinds):
        values = [value if _is_there(value) or (value == value and not nulls) else None for value in values]
        kinds = set(map(type, values))
    families = _families(kinds)
    if families == {"dates", "datetimes"}:
        values = [
            datetime.combine(value, time()) if isinstance(value, date) and not isinstance(value, datetime) else value
            for value in values
        ]
        families = {"datetimes"}
    if len(families) > 1:
        there = [(row, _family(type(value))) for row, value in enumerate(values) if value is not None]
        row, name = next((row, name) for row, name in there if name != there[0][1])
        raise Unfit(row, f"a column of {there[0][1]} has {name}; make them the same")
    (family,) = families
    if family == "datetimes":
        return _moments(values, kinds)
    if family == "times of day":
        _refuse_zones(values)
    if family == "timedeltas" and not any(issubclass(kind, np.timedelta64) for kind in kinds):
        return _fine(values, kinds, pa.duration("us"), pa.duration("ns"))
    return _of_datetime64(values) if family.endswith("numpy.datetime64") else pa.array(values)


def _of_datetime64(values: Sequence[Any]) -> pa.Array:
    """Return numpy's datetimes of any units as an array, in the finest of these units; datetimes without a time of day become
    dates.

    Raises:
        Unfit: a value does not fit that unit.
    """
    made = np.array([np.datetime64("NaT") if value is None else value for value in values], "datetime64")
    unit = np.datetime_data(made.dtype)[0]
    known = {"generic": "us", "Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}
    exact = made.astype(f"datetime64[{known.get(unit, unit)}]")
    for row, value in enumerate(values):
        if value is not None and not np.isnat(value) and exact[row].astype(value.dtype) != value:
            raise Unfit(
                row, f"{value} does not fit {np.datetime_data(exact.dtype)[0]}, which other values of the column are in"
            )
    return pa.array(exact)


def _moments(values: Sequence[Any], kinds: set[type]) -> pa.Array:
    zones = [value is not None and value.tzinfo is not None for value in values]
    if any(zones):
        odd = next((row for row, value in enumerate(values) if value is not None and not zones[row]), None)
        if odd is not None:
            first = next(row for row, value in enumerate(values) if value is not None)
            raise Unfit(odd if zones[first] else zones.index(True), mixed_zones(values[odd], values[zones.index(True)]))
    zone = pa.array(values[zones.index(True) :][:1]).type.tz if any(zones) else None
    return _fine(values, kinds, pa.timestamp("us", zone), pa.timestamp("ns", zone))


def mixed_zones(naive: Any, aware: Any) -> str:
    return f"{naive} has no zone, and {aware} has one, so that the hours between them are not known: give all of them a zone, or none"


def _fine(values: Sequence[Any], kinds: set[type], coarse: pa.DataType, fine: pa.DataType) -> pa.Array:
    """Return the values in the type `fine` (nanoseconds) if a value of pandas has nanoseconds, else in the type `coarse`."""
    if not any(hasattr(kind, "nanosecond") or hasattr(kind, "nanoseconds") for kind in kinds):
        return pa.array(values, coarse)
    try:
        array = pa.array(values, fine)
    except (pa.ArrowInvalid, OverflowError):
        row = next(
            (row for row, value in enumerate(values) if getattr(value, "nanosecond", getattr(value, "nanoseconds", 0))), None
        )
        if row is not None:
            raise Unfit(
                row, f"{values[row]} has nanoseconds, and another value of the column is too far away for them"
            ) from None
        return pa.array(values, coarse)
    try:
        return array.cast(coarse)
    except pa.ArrowInvalid:
        return array


def _refuse_zones(values: Sequence[Any]) -> None:
    row = next((row for row, value in enumerate(values) if value is not None and value.tzinfo is not None), None)
    if row is not None:
        raise Unfit(
            row, f"the time of day {values[row]} has a zone, which no column of times keeps; give it as text: str(value)"
        )


def _refined(values: Sequence[Any], kind: pa.DataType) -> pa.DataType:
    """Return the type that pyarrow guessed for lists or dicts, with inner types that hold all the values in them."""
    if is_list(kind):
        inner = kind.value_type
        if not pa.types.is_temporal(inner) and not pa.types.is_nested(inner):
            return kind
        return pa.list_(typed(_flat(values)).type)
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, typed(_member(values, field.name)).type) for field in kind])
    return kind


def _flat(values: Iterable[Any]) -> list[Any]:
    return list(
        itertools.chain.from_iterable(
            np.ravel(one) if isinstance(one, np.ndarray) else one for one in values if one is not None
        )
    )


def _member(values: Iterable[Any], name: str) -> list[Any]:
    return [value.get(name) if isinstance(value, Mapping) else None for value in values]


def _check_list(values: Sequence[Any], kind: pa.DataType, array: pa.Array) -> None:
    inner = kind.value_type
    if not _is_exact(inner) and not pa.types.is_nested(inner):
        return
    if all(value is None or (isinstance(value, np.ndarray) and value.dtype.kind in "iu") for value in values):
        return
    flat = _flat(values)
    if set(map(type, flat)) <= {int, NoneType}:
        return
    found = as_type(flat, inner)
    if _is_exact(inner) and not pc.list_flatten(array).equals(found):
        raise ValueError(f"a value in a list is not {inner}, and would be cut")


def _check_struct(values: Sequence[Any], kind: pa.DataType, array: pa.Array) -> None:
    names = {field.name for field in kind}
    for value in values:
        if isinstance(value, Mapping) and not names.issuperset(value):
            raise ValueError(f"a dict in it has {min(map(str, set(value) - names))!r}, which those before it have not")
    for number, field in enumerate(kind):
        found = as_type(_member(values, field.name), field.type)
        if _is_exact(field.type) and not pc.struct_field(array, [number]).equals(found):
            raise ValueError(f"{field.name!r} of a dict is not {field.type}, and would be cut")
