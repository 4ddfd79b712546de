"""Finds the code of an exception by its class and its words."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

#: what stands in a message for what differs from one to the next
GAP = "{}"
#: letters of the shortest message that is known by its words; and characters of one that is of another class than the exception
LEAST, LEAST_OF_OTHERS = 9, 24
#: classes whose messages carry words of a script, which may be those of any other class
_QUOTING = ("ScriptFailedError", "TaskDiedError", "OutputError", "StartError")


class Template(NamedTuple):
    """A message of the source, or a piece of one.

    Attributes: code: its family's; kinds: the classes that say it; text: its words, with gaps; pieces: what it always says, in this order;
    begins: whether a message begins with it, as it has so few letters that it may be in others.
    """

    code: str
    kinds: tuple[str, ...]
    text: str
    pieces: tuple[str, ...]
    begins: bool = False

    def is_in(self, message: str) -> bool:
        """Whether a message says all of it."""
        if self.begins:
            return message.startswith(self.pieces[0])
        at = 0
        for piece in self.pieces:
            at = message.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return True


def pieces_of(text: str) -> tuple[str, ...]:
    """Return what a message always says: what stands between its gaps and has letters."""
    return tuple(piece for piece in text.split(GAP) if any(map(str.isalpha, piece)))


@functools.cache
def _index() -> Any:
    # akrunner may be imported from a zip
    loader: Any = globals()["__loader__"]
    return json.loads(loader.get_data(os.path.join(os.path.dirname(__file__), "index.json")))


@functools.cache
def templates() -> Sequence[Template]:
    """Return all that messages are known by, the longest first."""
    found = []
    for code, kinds, text in _index()["messages"]:
        pieces = pieces_of(text)
        short = sum(map(str.isalpha, "".join(pieces))) < LEAST
        found.append(Template(code, tuple(kinds.split()), text, pieces, short))
    return sorted(found, key=lambda one: -sum(map(len, one.pieces)))


@functools.cache
def _rest() -> Mapping[str, str]:
    """Return class -> the code of whatever else it says."""
    return dict(_index()["rest"])


def code_of(kinds: Sequence[str], message: str) -> str:
    """Return the code of an exception.

    Args: kinds: the names of its class and of the classes above, the nearest first; message: what it says, without a traceback.
    Returns: the code; "" if no class is one of akrunner's, or if it stands for no error (a signal).
    """
    kind = next((one for one in kinds if one in _rest()), None)
    if kind is None:
        return ""
    return _code_of(kind, message)


#: (its longest piece, the template): a message without the former, as nearly all are, is told from it by one search
_Known = tuple[str, Template]


def _known(found: Iterable[Template]) -> Sequence[_Known]:
    return [(max(one.pieces, key=len), one) for one in found]


@functools.cache
def _said_by(kind: str) -> Sequence[_Known]:
    """Return what messages of a class are known by, the longest first."""
    return _known(one for one in templates() if kind in one.kinds)


@functools.cache
def _long_of_others(kind: str) -> Sequence[_Known]:
    """Return what messages of other classes are known by, the longest first, as far as a message that has one of them must be theirs."""
    return _known(one for one in templates() if kind not in one.kinds and sum(map(len, one.pieces)) >= LEAST_OF_OTHERS)


def _code_in(message: str, known: Sequence[_Known]) -> str:
    """Return the code of the first that a message says; "": none."""
    return next((one.code for longest, one in known if longest in message and one.is_in(message)), "")


@functools.lru_cache(64)
def _code_of(kind: str, message: str) -> str:
    own = _code_in(message, _said_by(kind))
    if own or kind in _QUOTING:
        return own or _rest()[kind]
    return _code_in(message, _long_of_others(kind)) or _rest()[kind]


def with_code(text: str, code: str) -> str:
    """Return an error's text with its code at the end of its first line; at its end if that line leads to the next. Args: code: "": none."""
    if not code:
        return text
    first, line_end, rest = text.partition("\n")
    if not line_end or first.rstrip().endswith((":", ",")):
        return f"{text.rstrip()} [{code}]"
    return f"{first.rstrip()} [{code}]\n{rest}"
