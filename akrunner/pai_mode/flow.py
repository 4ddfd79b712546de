"""Which commands of a shell script are run, as far as that is known without running any of them.

::

    if [ -f rows.csv ]; then A; else B; fi     one of both, or, if only running the script would tell, neither: whoever asks is told so
    for day in 1 2; do A; done                 each in its turn; `while`: nobody knows
    [ -z "$x" ] && A || B                      as `if`

True, False and None, which is: nobody knows.
"""

from __future__ import annotations

import fnmatch
import os
import re
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional

#: an expansion nobody knows stands between two of these
MARK = "\0"
_FILES: Dict[str, Callable[[str], bool]] = {
    "-e": os.path.exists,
    "-f": os.path.isfile,
    "-d": os.path.isdir,
    "-s": lambda path: os.path.isfile(path) and os.path.getsize(path) > 0,
    "-L": os.path.islink,
    "-h": os.path.islink,
    "-r": lambda path: os.access(path, os.R_OK),
    "-w": lambda path: os.access(path, os.W_OK),
    "-x": lambda path: os.access(path, os.X_OK),
}
_NUMBERS: Dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
#: commands that are asked something: what they would answer is not known
ASKING = frozenset(("grep", "egrep", "diff", "cmp", "which", "command", "type", "hash", "expr", "let", "read", "ls", "find"))


def both(one: Optional[bool], other: Optional[bool]) -> Optional[bool]:
    """Whether both are so."""
    if one is False or other is False:
        return False
    return True if one and other else None


def opposite(one: Optional[bool]) -> Optional[bool]:
    return None if one is None else not one


@dataclass
class Frame:
    """What one is in the middle of.

    Attributes:
        kind: "if", "case", "for", "while", "{", "(".
        line: of the script, where it begins; runs: whether the part one is in is run; taken: whether one before it was.
        value: of a case; patterns: those of its next part, as far as they are read, None: one is in a part.
        name, values: of a for; those that are still to come, None: nobody knows; body: where it begins; doubt: whether it may have been left.
    """

    kind: str
    line: int
    runs: Optional[bool] = True
    taken: Optional[bool] = False
    value: str = ""
    patterns: Optional[List[str]] = None
    name: str = ""
    values: Optional[List[str]] = None
    body: int = 0
    doubt: bool = False


@dataclass
class Flow:
    """Where in a script one is. Attributes: frames; status: whether the last command succeeded; after: what it ended with."""

    frames: List[Frame] = field(default_factory=list)
    status: Optional[bool] = True
    after: str = ";"

    @property
    def runs(self) -> Optional[bool]:
        """Whether the next command is run."""
        found: Optional[bool] = True
        for frame in self.frames:
            found = both(found, frame.runs)
        if self.after in ("&&", "||"):
            found = both(found, self.status if self.after == "&&" else opposite(self.status))
        return found

    @property
    def unknown(self) -> Optional[Frame]:
        """The innermost of which nobody knows whether it is run."""
        return next((frame for frame in reversed(self.frames) if frame.runs is None), None)

    @property
    def wants_pattern(self) -> bool:
        return bool(self.frames) and self.frames[-1].patterns is not None

    def at(self, *kinds: str) -> Optional[Frame]:
        """What one is in, if it is one of these."""
        return self.frames[-1] if self.frames and self.frames[-1].kind in kinds else None

    def begin(self, kind: str, line: int) -> Frame:
        frame = Frame(kind, line, self.runs if kind in "{(" else True)
        self.frames.append(frame)
        self.after = ";"
        return frame

    def end(self) -> None:
        self.frames.pop()
        self.after = ";"
        self.status = True

    def then(self) -> None:
        frame = self.at("if")
        if frame is not None:
            frame.runs = both(self.status, opposite(frame.taken))
            frame.taken = True if frame.taken or frame.runs else None if None in (frame.taken, frame.runs) else False
        self.after = ";"

    def otherwise(self) -> None:
        """`elif`, `else`."""
        frame = self.at("if")
        if frame is not None:
            frame.runs = opposite(frame.taken)
        self.after = ";"

    def part(self) -> None:
        """The patterns of a part of a case are read."""
        frame = self.frames[-1]
        assert frame.patterns is not None
        known = [one for one in frame.patterns if MARK not in one]
        fits: Optional[bool] = None if MARK in frame.value else any(fnmatch.fnmatchcase(frame.value, one) for one in known)
        if fits is False and len(known) < len(frame.patterns):
            fits = None
        frame.runs, frame.patterns = both(fits, opposite(frame.taken)), None
        frame.taken = True if frame.taken or frame.runs else None if None in (frame.taken, frame.runs) else False


def holds(words: List[str]) -> Optional[bool]:
    """What `[ ... ]`, `[[ ... ]]` and `test ...` come to."""
    closes = {"[": "]", "[[": "]]"}.get(words[0])
    if closes is not None and words[-1] != closes:
        return None
    return _any(words[1:-1] if closes is not None else words[1:])


def _any(words: List[str]) -> Optional[bool]:
    """`a -o b`, `a || b`."""
    for number, word in enumerate(words):
        if word in ("-o", "||"):
            return opposite(both(opposite(_all(words[:number])), opposite(_any(words[number + 1 :]))))
    return _all(words)


def _all(words: List[str]) -> Optional[bool]:
    """`a -a b`, `a && b`."""
    for number, word in enumerate(words):
        if word in ("-a", "&&") and number:
            return both(_one(words[:number]), _all(words[number + 1 :]))
    return _one(words)


def _one(words: List[str]) -> Optional[bool]:
    if words[:1] == ["!"] and len(words) > 1:
        return opposite(_one(words[1:]))
    if any(MARK in word for word in words):
        return None
    if len(words) < 2:
        return bool(words and words[0])
    if len(words) == 2:
        if words[0] in ("-z", "-n"):
            return bool(words[1]) == (words[0] == "-n")
        return _FILES[words[0]](os.path.expanduser(words[1])) if words[0] in _FILES else None
    return _compared(*words) if len(words) == 3 else None


def _compared(left: str, sign: str, right: str) -> Optional[bool]:
    if sign in ("=", "==", "!="):
        return fnmatch.fnmatchcase(left, right) == (sign != "!=")
    try:
        if sign in _NUMBERS:
            return _NUMBERS[sign](int(left), int(right))
        return re.search(right, left) is not None if sign == "=~" else None
    except (ValueError, re.error):
        return None
