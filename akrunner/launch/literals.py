"""Values -> expressions that make them again in another process."""

from __future__ import annotations

import datetime
import decimal
import logging
import math
import pathlib
import re
from typing import Any

import numpy as np

from akrunner.errors import ScriptError

#: characters of a value that is written down
_LONGEST = 100_000
INSTEAD = (
    "make it inside the function, or hand it over: numbers and text in user_params=, tables as the source, files in user_files="
)


def literal(name: str, value: Any, user: str) -> str:
    """A value as Python writes it. Raises: ScriptError: it cannot be written down; it names what of it."""
    try:
        text = _expression(name, value)
    except _Unwritten as e:
        where, what = e.args
        raise ScriptError(
            f"script: {user}() uses {where}, a {type(what).__name__}, which cannot be handed to other processes; {INSTEAD}"
        ) from None
    except RecursionError:
        raise ScriptError(f"script: {user}() uses {name}, which has itself in it, or is too deep; {INSTEAD}") from None
    if len(text) > _LONGEST:
        raise ScriptError(f"script: {user}() uses {name}, which is too long to be written down; {INSTEAD}")
    return text


class _Unwritten(Exception):
    """(what it is called, the value)"""


def _expression(name: str, value: Any) -> str:
    """An expression that makes the value again, whatever the file imports. Raises: _Unwritten: there is none."""
    kind = type(value)
    if kind in (bool, int, str, bytes, type(None)):
        return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if kind is complex:
        return f"complex({_expression(name, value.real)}, {_expression(name, value.imag)})"
    if kind in (tuple, list, set, frozenset):
        inside = ", ".join(
            _expression(f"{name}[{at}]" if kind in (tuple, list) else f"a member of {name}", one)
            for at, one in enumerate(value)
        )
        if kind in (set, frozenset):
            return f"{kind.__name__}([{inside}])"
        return f"[{inside}]" if kind is list else f"({inside}{',' if len(value) == 1 else ''})"
    if kind is dict:
        pairs = (
            f"{_expression(f'a key of {name}', key)}: {_expression(f'{name}[{key!r}]', one)}" for key, one in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, logging.Logger):
        return f"__import__('logging').getLogger({value.name!r})"
    if isinstance(value, pathlib.PurePath):
        return f"__import__('pathlib').Path({str(value)!r})"
    if kind in (datetime.date, datetime.timedelta) or (kind is datetime.datetime and value.tzinfo is None):
        return f"__import__({kind.__module__!r}).{repr(value).partition('.')[2]}"
    if kind is decimal.Decimal:
        return f"__import__('decimal').{value!r}"
    if kind is re.Pattern:
        return f"__import__('re').compile({value.pattern!r}, {value.flags})"
    if isinstance(value, np.generic) and isinstance(value, (np.bool_, np.number)) and not isinstance(value, np.longdouble):
        # as bytes, whatever numpy is there: its text may be one of another value
        return f"__import__('numpy').frombuffer({value.tobytes()!r}, {value.dtype.str!r})[0]"
    raise _Unwritten(name, value)
