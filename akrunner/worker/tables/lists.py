"""Finds a value of the wrong type within an array that a script writes, so that the error is raised where it is written."""

from __future__ import annotations

import json
from typing import Any

#: the Python types of a JSON value for each type of column; the host checks other types
_HOLDS = {
    "tinyint": (int,),
    "smallint": (int,),
    "int": (int,),
    "bigint": (int,),
    "float": (int, float),
    "double": (int, float),
    "string": (str,),
    "boolean": (bool,),
}


def misfit(text: str, words: str) -> str:
    """Return what is wrong with an array, "" if nothing is found. Args: text: the value as JSON; words: the column's type."""
    words = words.lower().replace(" ", "")
    return _misfit(json.loads(text), words) if words.startswith("array<") and words.endswith(">") else ""


def _misfit(value: Any, words: str) -> str:
    if value is None:
        return ""
    if words.startswith("array<"):
        if not isinstance(value, list):
            return "%.60r is no %s" % (value, words.upper())
        inner = words[len("array<") : -1]
        return next(filter(None, (_misfit(one, inner) for one in value)), "")
    fits = words not in _HOLDS or type(value) in _HOLDS[words]
    return "" if fits else "%.60r is no %s" % (value, words.upper())
