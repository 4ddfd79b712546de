"""JSON that says itself whether it is as it was written: its last key is the checksum of all that stands before it."""

from __future__ import annotations

import json
import zlib
from typing import Any

#: stands behind the last value
CHECKSUM = "checksum"
_SEAL = f',\n "{CHECKSUM}": "'
_BEHIND = '"\n}\n'
#: digits of a checksum
_DIGITS = 8


def sealed(value: dict[str, Any]) -> str:
    """Args: value: not empty."""
    text = json.dumps(value, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f"{text}{_SEAL}{_sum(text)}{_BEHIND}"


def unsealed(whole: str) -> dict[str, Any] | None:
    """What `sealed` was given; None: a character is not as it was written."""
    text = whole[: -len(_SEAL) - _DIGITS - len(_BEHIND)]
    try:
        found = json.loads(text + "\n}") if whole == f"{text}{_SEAL}{_sum(text)}{_BEHIND}" else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"
