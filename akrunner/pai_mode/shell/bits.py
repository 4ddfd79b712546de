"""The expanded parts of a word -> the words that bash makes of them.

::

    a"$@"b                  Bits a1, a break, 2b                  two words, if there are two arguments 1 and 2
    x$l                     x, and a text split at blanks         as many words as the text has
    "${none}"               an empty Bit that was quoted          one empty word
    "$@", no arguments      a Bit of kind "none"                  no word, if the word has nothing else
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from akrunner.pai_mode.shell.flow import MARK

#: stands for words whose number is unknown
_MANY = (f'{MARK}"$@" of nothing{MARK}', False)


@dataclass(frozen=True)
class Bit:
    """A part of a word that is expanded.

    Attributes:
        text: the part's text.
        quoted: whether it was quoted.
        split: whether bash splits it at blanks.
        kind: "" for a text; "break" where another word begins (`text` stands there if all remains one word); "none" for a list
            without elements.
        written: whether the text stands in the script as it is.
    """

    text: str
    quoted: bool = False
    split: bool = False
    kind: str = ""
    written: bool = False


def of(text: str, quoted: bool) -> Bit:
    """Return the bit of an expansion's text: split at blanks unless it is quoted."""
    return Bit(text, quoted, split=not quoted)


def unknown(text: str) -> Bit:
    """Return the bit of an expansion that may be any number of words. Args: text: its name between marks."""
    return Bit(text)


def listed(texts: Sequence[str], quoted: bool, between: str = " ") -> list[Bit]:
    """Return the bits of a list: each element becomes a word.

    Args:
        between: the text between the elements if they remain one word.
    """
    found: list[Bit] = []
    for text in texts:
        found += [Bit(between, kind="break")] if found else []
        found.append(of(text, quoted))
    return found or [Bit("", quoted, kind="none")]


def whole(bits: Sequence[Bit]) -> list[tuple[str, bool]]:
    """Return the pieces of the bits as one word, each with whether it was quoted."""
    for bit, behind in itertools.pairwise(bits):
        if (bit.kind == "break" or behind.kind == "break") and any(one.split and not one.text for one in (bit, behind)):
            # beside an empty element, bash drops some of the blanks
            return [(f"{MARK}a list with an empty word{MARK}", True)]
    return [(bit.text, bit.quoted or bit.kind == "break") for bit in bits]


def fields(bits: Sequence[Bit], between: str | None) -> list[list[tuple[str, bool]]]:
    """Split the bits into words. Args: between: `$IFS`, None if it is not set. Returns: for each word, its pieces."""
    found: list[list[tuple[str, bool]]] = []
    now: list[Bit] = []

    def close() -> None:
        pieces = [(bit.text, bit.quoted) for bit in now if bit.kind != "none"]
        empty = not any(text for text, _ in pieces)
        quoted = [bit for bit in now if bit.quoted and bit.kind != "none"]
        if (
            empty
            and quoted
            and any(bit.kind == "none" and bit.quoted for bit in now)
            and not any(bit.written for bit in quoted)
        ):
            # what bash does depends on whether both stand between the same quotes, which the bits do not say
            pieces = [_MANY]
        if any(text or was for text, was in pieces):
            found.append([one for one in pieces if one[0] or one[1]])
        now.clear()

    for bit in bits:
        if bit.kind == "break":
            close()
        elif not bit.split or MARK in bit.text:
            now.append(bit)
        else:
            for number, text in enumerate(_parted(bit.text, between)):
                if number:
                    close()
                now.append(Bit(text))
    close()
    return found


def _parted(value: str, between: str | None) -> list[str]:
    """Split an unquoted value into words, with an empty word at an end that is a blank."""
    between = " \t\n" if between is None else between
    if not value:
        return []
    if MARK in between:
        return [f"{MARK}IFS{MARK}"]
    if not any(char in between for char in value):
        return [value]
    if not between.strip(" \t\n"):
        return re.split(f"[{between}]+", value)
    found = value.split(between)
    # akrunner does not follow what bash makes of empty words, and of blanks beside other characters
    return found if len(between) == 1 and all(found) else [f"{MARK}IFS{MARK}"]
