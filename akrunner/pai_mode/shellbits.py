"""What the parts of a word come to -> the words that bash makes of them.

::

    a"$@"b        Bits a1, a break, 2b                   two words
    x$l           x, and what is parted at blanks        as many as there are
    "${none}"     an empty Bit that was quoted           one word, an empty one
    "$@" of none  a Bit that leaves nothing behind       no word, if the word has nothing else
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from akrunner.pai_mode.flow import MARK

#: it is not known how many words they are
_MANY = (f'{MARK}"$@" of nothing{MARK}', False)


@dataclass(frozen=True)
class Bit:
    """Of a word that is expanded.

    Attributes: text; quoted; split: whether it is parted at blanks; kind: "" (text), "break" (another word begins; `text` stands there where all stay
    one), "none" (of no arguments); written: whether it stands so in the script.
    """

    text: str
    quoted: bool = False
    split: bool = False
    kind: str = ""
    written: bool = False


def of(text: str, quoted: bool) -> Bit:
    """What an expansion comes to."""
    return Bit(text, quoted, split=not quoted)


def unknown(text: str) -> Bit:
    """An expansion nobody knows how many words it is. Args: text: between marks."""
    return Bit(text)


def listed(texts: Sequence[str], quoted: bool, between: str = " ") -> list[Bit]:
    """A word each. Args: between: what stands there where they stay one."""
    found: list[Bit] = []
    for text in texts:
        found += [Bit(between, kind="break")] if found else []
        found.append(of(text, quoted))
    return found or [Bit("", quoted, kind="none")]


def whole(bits: Sequence[Bit]) -> list[tuple[str, bool]]:
    """All in one word: pieces, and whether they were quoted."""
    for bit, behind in itertools.pairwise(bits):
        if (bit.kind == "break" or behind.kind == "break") and any(one.split and not one.text for one in (bit, behind)):
            # bash drops some of the blanks beside an empty one
            return [(f"{MARK}a list with an empty word{MARK}", True)]
    return [(bit.text, bit.quoted or bit.kind == "break") for bit in bits]


def fields(bits: Sequence[Bit], between: str | None) -> list[list[tuple[str, bool]]]:
    """Args: between: `$IFS`. Returns: of each word its pieces."""
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
            # whether they stand between the same quotes is what bash goes by
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
    """An unquoted value in words, with an empty one where it begins or ends in a blank."""
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
    # what becomes of empty ones, and of blanks beside other characters, is not followed
    return found if len(between) == 1 and all(found) else [f"{MARK}IFS{MARK}"]
