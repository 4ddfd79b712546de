"""JSON that shows whether it is unchanged: its last key is the checksum of all the text before it."""

from __future__ import annotations

import json
import zlib
from typing import Any

#: the key behind the last value
CHECKSUM = "checksum"
_SEAL = f',\n "{CHECKSUM}": "'
_BEHIND = '"\n}\n'
#: the number of digits of a checksum
_DIGITS = 8


def sealed(value: dict[str, Any]) -> str:
    """Return a dict as JSON text with its checksum.

    Args:
        value: must not be empty.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f"{text}{_SEAL}{_sum(text)}{_BEHIND}"


def unsealed(whole: str) -> dict[str, Any] | None:
    """Return the dict that `sealed` was given; None if a character of the text has changed."""
    text = whole[: -len(_SEAL) - _DIGITS - len(_BEHIND)]
    try:
        found = json.loads(text + "\n}") if whole == f"{text}{_SEAL}{_sum(text)}{_BEHIND}" else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"
