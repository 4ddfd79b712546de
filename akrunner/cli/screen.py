"""Texts that are safe to print on a terminal."""

from __future__ import annotations

import re
import unicodedata

#: what colours a text, or makes it bold: Keras puts it into its bars of progress, also in a file
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
#: joins of letters and of emoji, which are no spaces
_JOINS = "\u200c\u200d"


def harmless(text: str) -> str:
    """Return a text without colours and without control characters but line ends and tabs: others are written as \\x1b and so on.

    Data, names of files and the last lines of logs come into messages. Printed as they are, they could clear the screen, or name
    the window.
    """
    return text if text.isprintable() else "".join(map(_shown, _COLOURS.sub("", text)))


def _shown(c: str) -> str:
    # Python calls only one of the spaces printable
    kept = c.isprintable() or c in "\n\t" or c in _JOINS or unicodedata.category(c) == "Zs"
    return c if kept else c.encode("unicode_escape").decode()
