"""Paths in the words of messages."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text in one line: control characters are written as \\n, \\x1b, and so on."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quoted(path: str) -> str:
    """Return a path in one line, as `printable` does; in quotes if it has blanks at an end, which would not be visible."""
    return repr(path) if path != path.strip() else printable(path)
