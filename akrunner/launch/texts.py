"""Reads small files that may not exist."""

from __future__ import annotations


def text(path: str) -> str:
    """Return the first MiB of a file; "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read(1 << 20)
    except OSError:
        return ""
