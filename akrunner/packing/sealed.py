"""JSON files that say themselves whether they are as they were written: what a later run trusts, and nobody else reads.

::

    {...} -> JSON, and as its last key the checksum of all that stands before it
"""

from __future__ import annotations

import json
import os
import zlib
from typing import Any, Dict, Optional

from akrunner.leftovers.private import private_file

_CHUNK = 4 << 20
#: stands behind the last value
_SEAL = ',\n "checksum": "'
_BEHIND = '"\n}\n'
#: digits of a checksum
_DIGITS = 8


def write(folder: str, name: str, value: Dict[str, Any]) -> None:
    """A file that only its owner may read, whole or not at all. Args: value: not empty."""
    text = json.dumps(value, indent=1, ensure_ascii=False).removesuffix("\n}")
    partial = os.path.join(folder, f".{name}.partial")
    with private_file(partial, encoding="utf-8") as stream:
        stream.write(f"{text}{_SEAL}{_sum(text)}{_BEHIND}")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, os.path.join(folder, name))


def read(path: str) -> Optional[Dict[str, Any]]:
    """What was written, without its checksum; None: there is no such file, or it is not as it was written."""
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            whole = stream.read()
        text = whole[: -len(_SEAL) - _DIGITS - len(_BEHIND)]
        if whole != f"{text}{_SEAL}{_sum(text)}{_BEHIND}":
            return None
        found = json.loads(text + "\n}")
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def sum_of(path: str) -> str:
    """The checksum of a file of any kind, with its size. Raises: OSError."""
    found, size = 0, 0
    with open(path, "rb", buffering=0) as stream:
        while chunk := stream.read(_CHUNK):
            found, size = zlib.crc32(chunk, found), size + len(chunk)
    return f"{found:08x} of {size} bytes"
