"""Small files that may be there."""

from __future__ import annotations


def text(path: str) -> str:
    """What stands in a file, its first MiB; "" when it is not on this machine."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read(1 << 20)
    except OSError:
        return ""
