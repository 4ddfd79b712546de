"""Texts of others in the words of messages: data, names of files and the last lines of logs. Printed as they are, they could clear
the screen, or name the window."""

from __future__ import annotations

import re
import unicodedata

#: what colours a text, or makes it bold: Keras puts it into its bars of progress, also in a file
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
#: joins of letters and of emoji, which are no spaces
_JOINS = "\u200c\u200d"


def harmless(text: str) -> str:
    """Return a text without colours and without control characters but line ends and tabs: others are written as \\x1b and so on.

    Of a line that writes over itself, as a bar of progress does, the end stays, as on a terminal.
    """
    if text.isprintable():
        return text
    # Keras goes back by both characters, also in a file
    lines = _COLOURS.sub("", text).replace("\b", "").split("\n")
    return _escaped("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines), "\n\t")


def printable(text: str) -> str:
    """Return a text in one line, as `harmless` does, but with line ends, tabs and colours written as \\n, \\x1b, and so on."""
    return text if text.isprintable() else _escaped(text, "")


def quoted(path: str) -> str:
    """Return a path in one line, as `printable` does; in quotes if it has blanks at an end, which would not be visible."""
    return repr(path) if path != path.strip() else printable(path)


def _escaped(text: str, kept: str) -> str:
    def shown(c: str) -> str:
        # Python calls only one of the spaces printable
        stays = c.isprintable() or c in kept or c in _JOINS or unicodedata.category(c) == "Zs"
        return c if stays else c.encode("unicode_escape").decode()

    return "".join(map(shown, text))
