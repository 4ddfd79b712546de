"""Values of arrays, maps and structs, read from JSON. Each value is one that its type can hold; otherwise there is an
error, never a changed value."""

from __future__ import annotations

import decimal
import json
import math
import re
from typing import Any

import pyarrow as pa

from akrunner.tables import types

_T = pa.types
#: the text of a decimal
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: type of floats -> how many bits of a whole number it always holds exactly
_EXACT = {pa.float16(): 11, pa.float32(): 24, pa.float64(): 53}
_LARGEST = {pa.float16(): 65504.0, pa.float32(): 3.4028234663852886e38}


class _Object(list[tuple[str, Any]]):
    """The pairs of a JSON object. A key that occurs twice is in two pairs."""


def from_json(text: str, data_type: pa.DataType) -> Any:
    """Return the value, in a form that Arrow takes for this type.

    Raises:
        ValueError: the text is no value of the type; the error names the first part that does not fit.
    """
    # digits that a decimal keeps would be lost in a float
    return _fitted(json.loads(text, object_pairs_hook=_Object, parse_float=decimal.Decimal), data_type)


def to_json(value: Any, data_type: pa.DataType) -> str:
    """Return a value as JSON, a map as an object.

    Raises:
        ValueError: the value holds bytes that are no text.
    """
    return json.dumps(_plain(value, data_type), default=str)


def _plain(value: Any, data_type: pa.DataType) -> Any:
    if value is None:
        return None
    if _T.is_map(data_type):
        return {_key_text(_plain(key, data_type.key_type)): _plain(one, data_type.item_type) for key, one in value}
    if _T.is_struct(data_type):
        return {one.name: _plain(value[one.name], one.type) for one in data_type}
    if _T.is_nested(data_type):
        return [_plain(one, data_type.value_type) for one in value]
    return value.decode("utf-8") if isinstance(value, bytes) else value


def _key_text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else str(key)


def _no(value: Any, data_type: pa.DataType, why: str = "") -> ValueError:
    if isinstance(value, _Object):
        value = dict(value)
    return ValueError(f"{_shown(value)[:60]} is no {types.type_words(data_type)}{why}")


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, decimal.Decimal) else repr(value)


def _fitted(value: Any, data_type: pa.DataType) -> Any:
    if value is None:
        return None
    if _T.is_map(data_type):
        return _map(value, data_type)
    if _T.is_struct(data_type):
        return _struct(value, data_type)
    if _T.is_nested(data_type):
        if not isinstance(value, list) or isinstance(value, _Object):
            raise _no(value, data_type)
        return [_fitted(one, data_type.value_type) for one in value]
    return _single(value, data_type)


def _map(value: Any, data_type: pa.DataType) -> Any:
    pairs = value if isinstance(value, list) else [value]
    found, seen = [], set()
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or isinstance(pair, _Object) or len(pair) != 2:
            raise _no(value, data_type)
        key = _key(pair[0], data_type.key_type) if isinstance(value, _Object) else _fitted(pair[0], data_type.key_type)
        if key is None:
            raise _no(value, data_type, ": a key is null")
        # of floats that differ only in digits that the type does not hold, the map has one key
        held = pa.scalar(key, data_type.key_type).as_py() if _T.is_floating(data_type.key_type) else key
        if repr(held) in seen:
            raise _no(value, data_type, f": it has the key {_shown(pair[0])} twice")
        seen.add(repr(held))
        found.append((key, _fitted(pair[1], data_type.item_type)))
    return found


def _key(text: str, data_type: pa.DataType) -> Any:
    """Return a key of a JSON object, which is always text there, as a value of the type."""
    if _T.is_integer(data_type) or _T.is_floating(data_type) or _T.is_boolean(data_type):
        try:
            return _single(json.loads(text, parse_float=decimal.Decimal), data_type)
        except ValueError:
            raise _no(text, data_type) from None
    return _fitted(text, data_type)


def _struct(value: Any, data_type: pa.DataType) -> Any:
    if not isinstance(value, _Object):
        raise _no(value, data_type)
    given = dict(value)
    known = {one.name: one.type for one in data_type}
    for name in given:
        if name not in known:
            raise _no(value, data_type, f": it has no field {name!r}")
    if len(given) < len(value):
        raise _no(value, data_type, ": it has a field twice")
    return {name: _fitted(one, known[name]) for name, one in given.items()}


def _single(value: Any, data_type: pa.DataType) -> Any:
    if isinstance(value, list):
        raise _no(value, data_type)
    number = isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool)
    if _T.is_boolean(data_type):
        fits = isinstance(value, bool)
    elif _T.is_integer(data_type):
        fits = number and isinstance(value, int)
        if fits and not _holds(value, data_type):
            raise _no(value, data_type, ", which it cannot hold")
    elif _T.is_floating(data_type):
        return _float(value, data_type, number)
    elif _T.is_decimal(data_type):
        return _decimal(value, data_type, number)
    elif _T.is_date(data_type) or _T.is_timestamp(data_type):
        return _moment(value, data_type)
    else:
        fits = isinstance(value, str)
    if not fits:
        raise _no(value, data_type)
    return value


def _holds(value: int, data_type: pa.DataType) -> bool:
    bits = int(data_type.bit_width)
    if _T.is_signed_integer(data_type):
        return -(1 << bits - 1) <= value < 1 << bits - 1
    return 0 <= value < 1 << bits


def _float(value: Any, data_type: pa.DataType, number: bool) -> float:
    if not number:
        raise _no(value, data_type)
    if isinstance(value, int) and abs(value) > 1 << _EXACT[data_type]:
        raise _no(value, data_type, ", which it cannot hold exactly")
    made = float(value)
    finite = isinstance(value, decimal.Decimal)
    if finite and (math.isinf(made) or abs(made) > _LARGEST.get(data_type, math.inf)):
        raise _no(value, data_type, ", which it cannot hold")
    return made


def _decimal(value: Any, data_type: pa.DataType, number: bool) -> decimal.Decimal:
    # of text, Decimal itself would also take spaces, and digits with _ between them
    if not number and not (isinstance(value, str) and _NUMBER.fullmatch(value)):
        raise _no(value, data_type)
    try:
        made = decimal.Decimal(value)
    except decimal.InvalidOperation:
        raise _no(value, data_type) from None
    if not made.is_finite():
        raise _no(value, data_type)
    context = decimal.Context(prec=data_type.precision, traps=[decimal.InvalidOperation, decimal.Inexact])
    try:
        # Arrow itself makes 0.00 of 1e-77, and dies of 1e-999999999
        held = made.quantize(decimal.Decimal((0, (1,), -data_type.scale)), context=context)
    except decimal.Inexact:
        raise _no(value, data_type, ", which it cannot hold exactly") from None
    except decimal.InvalidOperation:
        raise _no(value, data_type, ", which it cannot hold") from None
    # -0.00 is the same key as 0.00
    return held if held else held.copy_abs()


def _moment(value: Any, data_type: pa.DataType) -> int:
    if not isinstance(value, str):
        raise _no(value, data_type)
    try:
        return int(pa.scalar(value, pa.string()).cast(data_type).value)
    except pa.ArrowException:
        raise _no(value, data_type) from None
