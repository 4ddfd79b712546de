"""Checks the values that replace a column's nulls (`defaults=` of `dataset()` and `batches()`).

It converts them to the column's own numbers, a date to days and a time to the column's unit, and words its errors as those of
the job's option `defaults=`.
"""

from __future__ import annotations

import datetime
import numbers
import re
from typing import Any, Dict, List, Mapping, Optional

import numpy as np

from akrunner.wire.near import nearest

_DATE, _MOMENT, _TIME, _SPAN = "date", "timestamp", "time", "duration"
#: kind of column -> what its values are, in words
_WORDS = {
    "bool": "True or False",
    "int64": "a whole number",
    "float": "a number, or NaN",
    "bytes": "text or bytes",
    _DATE: "a date, or text like '2026-11-23'",
    _MOMENT: "a datetime, or text like '2026-11-23 12:00:00'",
    _TIME: "a time, or text like '12:00:00'",
    _SPAN: "a timedelta",
}
_DAY = r"\d{4}-\d\d-\d\d"
_CLOCK = r"(\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?"
#: the parts of a text that is a timestamp: date, time of day, offset from UTC
_MOMENTS = r"(%s)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(Z|[+-]\d\d:?\d\d)?)?" % _DAY
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def checked(defaults: Optional[Mapping[str, Any]], schema: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Return the defaults as values of their columns' features; a value None stays None. {} for None.

    Args:
        schema: as `TaskConfig.schema`.
    Raises:
        ValueError: there is no such column, or the column is of another type.
        TypeError: the defaults are not a mapping.
    """
    if defaults is None:
        return {}
    if not isinstance(defaults, Mapping):
        raise TypeError("defaults=%.100r: say which column gets which value, {'age': 0}" % (defaults,))
    columns = {column["name"]: column for column in schema}
    unknown = [name for name in defaults if name not in columns]
    if unknown:
        raise ValueError(
            "defaults names columns that are not there: %s; columns: %s%s"
            % (", ".join(map(str, unknown)), ", ".join(columns), nearest(unknown[0], columns))
        )
    return {name: _of_column(columns[name], value) for name, value in defaults.items()}


def _of_column(column: Dict[str, Any], value: Any) -> Any:
    """Return a column's default, a value or a list of values, converted. Raises: ValueError: it does not fit the column."""
    kind, unit = _kind(column), column.get("unit")
    values = value.tolist() if isinstance(value, np.ndarray) else value
    many = column["shape"] != []
    if values is None:
        return None
    try:
        if many and isinstance(values, (list, tuple)):
            made: Any = _each(kind, unit, values)
        else:
            made = _one(kind, unit, values)
    except _Other:
        words = "text" if kind == "bytes" and "string" in str(column.get("type")) else _WORDS[kind]
        raise ValueError(
            "defaults: column %r is %s, and %.100r is none of its values; give %s"
            % (column["name"], column.get("type") or kind, value, "a list, each of it %s" % words if many else words)
        ) from None
    if kind == "int64" and str(column.get("dtype")).lstrip("u").startswith("int"):
        room = np.iinfo(column["dtype"])
        low, high = (np.min(made), np.max(made)) if np.size(made) else (0, 0)
        if low < room.min or high > room.max:
            raise ValueError(
                "defaults: column %r is %s, and cannot hold %.100r" % (column["name"], column.get("type") or kind, value)
            )
    return made


class _Other(Exception):
    """Raised for a value that is not of the column's type."""


def _kind(column: Dict[str, Any]) -> str:
    """Return what kind of values a column has, a key of `_WORDS`."""
    if column.get("dtype") == "bool" or column.get("type") == "bool":
        return "bool"
    words = re.match(r"[a-z]*", column.get("type") or "")
    named = words.group(0) if words is not None else ""
    return named if named in (_DATE, _MOMENT, _TIME, _SPAN) else str(column["kind"])


def _each(kind: str, unit: Optional[str], values: Any) -> List[Any]:
    return [_each(kind, unit, one) if isinstance(one, (list, tuple)) else _one(kind, unit, one) for one in values]


def _one(kind: str, unit: Optional[str], value: Any) -> Any:
    """Return one value converted. Raises: _Other: it is not of this kind."""
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    if kind == "bytes":
        if isinstance(value, (str, bytes)):
            return value
        raise _Other
    if kind == "float":
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            return float(value)
        raise _Other
    if kind == "bool":
        if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        raise _Other
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        # a time may also be given as the number that the script sees
        return _whole(int(value))
    if kind == "int64":
        if isinstance(value, float) and value.is_integer():
            return _whole(int(value))
        raise _Other
    return _whole({_DATE: _days, _MOMENT: _moment, _TIME: _time, _SPAN: _span}[kind](value, unit or "us"))


def _whole(value: int) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise _Other
    return value


def _days(value: Any, unit: str) -> int:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value.toordinal() - datetime.date(1970, 1, 1).toordinal()
    if isinstance(value, np.datetime64):
        return _units(value, "D")
    if isinstance(value, str) and re.match(_DAY + r"\Z", value):
        return _units(_numpy(value), "D")
    raise _Other


def _moment(value: Any, unit: str) -> int:
    if isinstance(value, np.datetime64):
        return _units(value, unit)
    if isinstance(value, datetime.datetime):
        ahead = value.utcoffset()
        plain = value.replace(tzinfo=None)
        return _units(np.datetime64(plain if ahead is None else plain - ahead, "us"), unit)
    found = re.match(_MOMENTS + r"\Z", value) if isinstance(value, str) else None
    if found is None:
        raise _Other
    day, clock, zone = found.groups()
    moment = _numpy("%sT%s" % (day, clock) if clock else day)
    if zone and zone != "Z":
        digits = zone[1:].replace(":", "")
        minutes = int(digits[:2]) * 60 + int(digits[2:])
        moment = moment - np.timedelta64(minutes if zone[0] == "+" else -minutes, "m")
    return _units(moment, unit)


def _time(value: Any, unit: str) -> int:
    if isinstance(value, datetime.time):
        value = value.replace(tzinfo=None).isoformat()
    found = re.match(_CLOCK + r"\Z", value) if isinstance(value, str) else None
    if found is None:
        raise _Other
    hours, minutes, seconds, part = found.groups()
    whole = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)
    if not (int(hours) < 24 and int(minutes) < 60 and int(seconds or 0) < 60):
        raise _Other
    return (whole * 10**9 + int((part or ".")[1:].ljust(9, "0"))) // _NANOSECONDS[unit]


def _span(value: Any, unit: str) -> int:
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        found = np.timedelta64(value)
        if not np.isnat(found):
            return int(found.astype("timedelta64[%s]" % unit).astype(np.int64))
    raise _Other


def _numpy(text: str) -> Any:
    try:
        return np.datetime64(text)
    except ValueError:
        # such as 2024-02-30
        raise _Other from None


def _units(value: Any, unit: str) -> int:
    if np.isnat(value):
        raise _Other
    return int(value.astype("datetime64[%s]" % unit).astype(np.int64))
