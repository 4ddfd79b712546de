"""Values of tables as people see them, the same everywhere: as `akrunner tables get` writes them."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

import pyarrow as pa

_T = pa.types
#: a value that is missing, which is another thing than an empty text
NULL = "NULL"
#: bytes that stand for themselves, as in DuckDB's text of a BLOB, which `get` writes
_REGULAR = frozenset(range(32, 127)) - frozenset(b"\\'\"")


def texts(column: Any) -> list[str]:
    """A column as text. Args: column: an array, of chunks or not."""
    return [_text(value, column.type) for value in column.to_pylist()]


def plain(value: Any, data_type: pa.DataType) -> Any:
    """A value as JSON has it: times and decimals are text, bytes too; so are the numbers it has no words for, NaN and Infinity."""
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
    """JSON's keys are texts."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moment(text: str) -> str:
    """A time without the zeros at its end: .123000 is .123."""
    whole, point, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    kept = digits.rstrip("0")
    return f"{whole}{point if kept else ''}{kept}{rest[len(digits) :]}"
