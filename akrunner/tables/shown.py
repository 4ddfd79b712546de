"""Values of tables as people see them: the same text everywhere, also in what `akrunner tables get` writes."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

import pyarrow as pa

_T = pa.types
#: the text for a null, which differs from an empty text
NULL = "NULL"
#: bytes that are shown as themselves, as in DuckDB's text of a BLOB, which `get` writes
_REGULAR = frozenset(range(32, 127)) - frozenset(b"\\'\"")


def texts(column: Any) -> list[str]:
    """Return the values of a column as texts. `column` is an array, chunked or not."""
    return [_text(value, column.type) for value in column.to_pylist()]


def plain(value: Any, data_type: pa.DataType) -> Any:
    """Return a value as JSON can hold it. Times, decimals and bytes become text, and so do NaN and Infinity, which JSON does
    not have.
    """
    if value is None:
        return None
    if _T.is_map(data_type):
        return {_key(plain(key, data_type.key_type)): plain(one, data_type.item_type) for key, one in value}
    if _T.is_struct(data_type):
        return {one.name: plain(value[one.name], one.type) for one in data_type}
    if _T.is_nested(data_type):
        return [plain(one, data_type.value_type) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return "".join(chr(one) if one in _REGULAR else f"\\x{one:02X}" for one in value)
    if isinstance(value, datetime.datetime):
        return _moment(str(value))
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _text(value: Any, data_type: pa.DataType) -> str:
    if value is None:
        return NULL
    found = plain(value, data_type)
    if isinstance(found, (dict, list)):
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return str(found).lower() if isinstance(found, bool) else str(found)


def _key(value: Any) -> str:
    """Return a map's key as text, because JSON's keys are texts."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moment(text: str) -> str:
    """Return a time without the zeros at its end: .123000 becomes .123."""
    whole, point, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    kept = digits.rstrip("0")
    return f"{whole}{point if kept else ''}{kept}{rest[len(digits) :]}"
