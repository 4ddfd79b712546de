"""Texts that are safe to print on a terminal."""

from __future__ import annotations


def harmless(text: str) -> str:
    """Return a text without control characters but line ends and tabs: others are written as \\x1b and so on.

    Data and names of files come into messages. Printed as they are, they could colour or clear the screen, or name the window.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
