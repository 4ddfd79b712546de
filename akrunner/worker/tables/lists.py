"""Values within the arrays that scripts write: which of them is not of its type, said where it is written."""

from __future__ import annotations

import json
from typing import Any

#: what JSON has for a value of each type; of others the host knows
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
    """What is wrong with an array, "" if nothing that is known here. Args: text: the value as JSON; words: the column's type."""
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
