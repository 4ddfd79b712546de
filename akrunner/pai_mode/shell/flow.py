"""Whether a command of a shell script succeeds, as far as that is known without running the script.

::

    State           how a command ended: YES (it succeeded), NO (it failed), UNKNOWN;
                    DONE: it was not run, and is assumed to succeed (tar, cp); UNDONE: the opposite of DONE (`! tar`);
                    HOPED: as DONE, but of a program that akrunner does not know: the assumption counts only where the
                    script would end if the program failed; FEARED: the opposite of HOPED
    holds           `[ ... ]` and `test ...`
    compares        `[[ ... ]]`
    fits            the patterns of `case`

Results are True, False, or None if they are unknown.
"""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: the name of an expansion whose value is unknown stands between two of these
MARK = "\0"
#: `$?` of a command that was not run and is assumed to have succeeded
DONE_MARK = f"{MARK}?done{MARK}"


class State(enum.Enum):
    YES = True
    NO = False
    UNKNOWN = None
    DONE = "done"
    UNDONE = "undone"
    HOPED = "hoped"
    FEARED = "feared"

    @property
    def opposite(self) -> State:
        pairs = ((State.YES, State.NO), (State.DONE, State.UNDONE), (State.HOPED, State.FEARED))
        return next((pair[pair[0] is self] for pair in pairs if self in pair), self)

    @property
    def known(self) -> bool | None:
        """True or False if it is certain how the command ended; None otherwise, also if its success is only assumed."""
        return self.value if isinstance(self.value, bool) else None

    @property
    def likely(self) -> bool | None:
        if self in (State.DONE, State.HOPED):
            return True
        return False if self in (State.UNDONE, State.FEARED) else self.known


def of(known: bool | None) -> State:
    return State.UNKNOWN if known is None else State.YES if known else State.NO


@dataclass
class Field:
    """A word after its expansion.

    Attributes:
        pieces: texts, each with whether it was quoted.
        variable: the variable's name if the word is one expansion of a variable and nothing else, otherwise "".
    """

    pieces: list[tuple[str, bool]]
    variable: str = ""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)

    @property
    def loose(self) -> bool:
        """Whether an unquoted part is unknown, so that bash may make no word of it, or several."""
        return any(MARK in text and not quoted and text != DONE_MARK for text, quoted in self.pieces)

    @property
    def glob(self) -> str | None:
        """The field as a pattern: a regular expression that matches as much as it can; None if it is unknown."""
        made = ""
        for text, quoted in self.pieces:
            if MARK in text:
                return None
            if quoted:
                made += re.escape(text)
                continue
            found = _GLOB.sub("", text)
            if found or re.search(r"[@!+?*]\(", text):
                return None
            made += _GLOB.sub(lambda match: _globbed(match[0]), text)
        return made

    @property
    def pattern(self) -> re.Pattern[str] | None:
        made = self.glob
        return None if made is None else re.compile(rf"(?s:{made})\Z")


#: pieces of a pattern that mean the same in every locale: `*`, `?`, `[0-9]`, another character
_GLOB = re.compile(r"\*+|\?|\[[!^]?(?:[0-9]-[0-9]|[a-z]-[a-z]|[A-Z]-[A-Z]|[\w.,:])+\]|[^\[\\*?]", re.ASCII | re.DOTALL)


def _globbed(one: str) -> str:
    if one[0] == "*":
        return ".*"
    if one[0] == "[" and len(one) > 1:
        return f"[^{one[2:]}" if one[1] in "!^" else one
    return "." if one == "?" else re.escape(one)


_FILES: dict[str, Callable[[str], bool]] = {
    "-e": os.path.exists,
    "-f": os.path.isfile,
    "-d": os.path.isdir,
    "-s": lambda path: os.path.exists(path) and os.path.getsize(path) > 0,
    "-L": os.path.islink,
    "-h": os.path.islink,
    "-r": lambda path: os.access(path, os.R_OK),
    "-w": lambda path: os.access(path, os.W_OK),
    "-x": lambda path: os.access(path, os.X_OK),
}
_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_BINARY = frozenset((*_NUMBERS, "=", "==", "!=", "<", ">", "-nt", "-ot", "-ef", "=~"))


def both(one: bool | None, other: bool | None) -> bool | None:
    """Return whether both are true; None if that is unknown."""
    if one is False or other is False:
        return False
    return True if one and other else None


def opposite(one: bool | None) -> bool | None:
    return None if one is None else not one


def either(one: bool | None, other: bool | None) -> bool | None:
    return opposite(both(opposite(one), opposite(other)))


def taken_for_done(ask: Callable[[Sequence[Field]], bool | None], words: Sequence[Field]) -> State:
    """Evaluate a test. `$?` of a command that was not run counts as 0.

    Args:
        ask: evaluates the test's words.
        words: the test's words.
    Returns:
        The state; HOPED or FEARED if it depends on such a `$?`.
    """
    if not any(DONE_MARK in word.text for word in words):
        return of(ask(words))
    put = [Field([(text.replace(DONE_MARK, "0"), quoted) for text, quoted in word.pieces]) for word in words]
    return {True: State.HOPED, False: State.FEARED, None: State.UNKNOWN}[ask(put)]


#: a file test: (operator such as "-f", path) -> its result
Looks = Callable[[str, str], bool | None]


def looked(test: str, path: str) -> bool | None:
    return _FILES[test](path) if test in _FILES else None


def holds(words: Sequence[Field], look: Looks) -> bool | None:
    """Evaluate `[ ... ]` or `test ...`. Args: words: those between the brackets; look: evaluates a file test."""
    if any(word.loose for word in words):
        return None
    return _several([word.text for word in words], look)


def _several(words: list[str], look: Looks) -> bool | None:
    if len(words) <= 3:
        return _few(words, look)
    if len(words) == 4 and words[0] == "!":
        return opposite(_few(words[1:], look))
    if any(word in ("(", ")") for word in words):
        return None
    for sign, join in (("-o", either), ("-a", both)):
        if sign in words[1:-1]:
            at = words.index(sign, 1)
            if any(len(part) == 2 and part[0][:1] not in ("-", "!") for part in (words[:at], words[at + 1 :])):
                return None
            return join(_several(words[:at], look), _several(words[at + 1 :], look))
    return None


def _few(words: list[str], look: Looks) -> bool | None:
    """Evaluate a test of at most three words; their number decides what each of them is."""
    if len(words) < 2:
        return False if words in ([], [""]) else None if MARK in words[0] else True
    if len(words) == 2:
        if words[0] == "!":
            return opposite(_few(words[1:], look))
        if MARK in words[1]:
            return None
        if words[0] in ("-z", "-n"):
            return bool(words[1]) == (words[0] == "-n")
        return look(*words)
    if words[1] in _BINARY:
        return _compared(words[0], words[1], words[2])
    if words[1] in ("-a", "-o"):
        return (both if words[1] == "-a" else either)(_few(words[:1], look), _few(words[2:], look))
    return opposite(_few(words[1:], look)) if words[0] == "!" else None


def _compared(left: str, sign: str, right: str, octal: bool = False) -> bool | None:
    if MARK in left + right:
        return None
    if sign in ("=", "==", "!="):
        return (left == right) == (sign != "!=")
    if sign in _NUMBERS:
        found = [_number(one, octal) for one in (left, right)]
        return None if found[0] is None or found[1] is None else _NUMBERS[sign](found[0], found[1])
    if sign in ("<", ">") and _plainly_ordered(left, right):
        return left < right if sign == "<" else left > right
    return None


def _plainly_ordered(left: str, right: str) -> bool:
    """Whether both texts have the same order in every locale.

    They do if they have only digits and letters of one case; or no letters, and the same characters at the same positions apart
    from the digits.
    """
    if re.fullmatch("[0-9a-z]*|[0-9A-Z]*", left + right, re.ASCII):
        return True
    shapes = [re.sub("[0-9]", "0", one) for one in (left, right)]
    return shapes[0] == shapes[1] and re.fullmatch("[-0-9/:. ]*", left, re.ASCII) is not None


def _number(text: str, octal: bool) -> int | None:
    match = re.fullmatch(r"\s*([+-]?)([0-9]{1,18})\s*", text)
    if match is None or (octal and len(match[2]) > 1 and match[2][0] == "0"):
        return None
    return int(match[1] + match[2])


def compares(words: Sequence[Field], signs: Sequence[bool], look: Looks) -> bool | None:
    """Evaluate `[[ ... ]]`. Args: signs: for each word, whether it is an operator; look: evaluates a file test."""
    return _Brackets(list(words), list(signs), look).whole()


class _Brackets:
    def __init__(self, words: list[Field], signs: list[bool], look: Looks) -> None:
        self.words, self.signs, self.look, self.at = words, signs, look, 0

    def whole(self) -> bool | None:
        found = self._any()
        return found if self.at == len(self.words) else None

    def _sign(self, text: str) -> bool:
        if self.at < len(self.words) and self.signs[self.at] and self.words[self.at].text == text:
            self.at += 1
            return True
        return False

    def _any(self) -> bool | None:
        found = self._all()
        while self._sign("||"):
            found = either(found, self._all())
        return found

    def _all(self) -> bool | None:
        found = self._one()
        while self._sign("&&"):
            found = both(found, self._one())
        return found

    def _one(self) -> bool | None:
        if self._sign("("):
            found = self._any()
            return found if self._sign(")") else None
        begin = self.at
        while self.at < len(self.words) and (not self.signs[self.at] or self.words[self.at].text in "<>"):
            self.at += 1
        return self._primary(self.words[begin : self.at])

    def _primary(self, words: list[Field]) -> bool | None:
        if words and words[0].pieces == [("!", False)]:
            return opposite(self._primary(words[1:]) if len(words) > 1 else self._one())
        texts = [word.text for word in words]
        if len(words) != 3 or texts[1] not in _BINARY:
            return _few(texts, self.look) if 0 < len(words) < 3 else None
        if texts[1] in ("=", "==", "!="):
            pattern = words[2].pattern
            if pattern is None or MARK in texts[0]:
                return None
            return (pattern.match(texts[0]) is not None) == (texts[1] != "!=")
        if texts[1] == "=~":
            return _searched(texts[0], words[2])
        return _compared(texts[0], texts[1], texts[2], octal=True)


_CLASSES = {
    "[:digit:]": "0-9",
    "[:alpha:]": "A-Za-z",
    "[:alnum:]": "A-Za-z0-9",
    "[:space:]": r"\s",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
}
_PLAIN = re.compile(
    r"\^|\$|[\w/,:@%=~<>;!#&\x22'` -]|\.|[()|]|\[\^?(?:0-9|A-Z|a-z|[\w/,:.]|\[:(?:digit|alpha|alnum|space|upper|lower):\])+-?\]"
    r"|(?:[*+?]|\{\d+(?:,\d*)?\})(?![*+?{])",
    re.ASCII,
)


def _searched(text: str, word: Field) -> bool | None:
    """Evaluate `text =~ word`; None unless the pattern means the same in every library of regular expressions."""
    made = ""
    for piece, quoted in word.pieces:
        if MARK in piece:
            return None
        if quoted:
            made += re.escape(piece)
            continue
        if _PLAIN.sub("", piece) or re.search(r"\(\?|\(\||\|\||\|\)|\(\)|^\||\|$|[(|^][*+?{]", piece):
            return None
        for name, put in _CLASSES.items():
            piece = piece.replace(name, put)
        made += re.sub(r"\$(?=\)|\||\Z)", r"\\Z", piece)
    if MARK in text or not text.isascii() or not made:
        return None
    try:
        return re.search(made, text, re.DOTALL | re.ASCII) is not None
    except re.error:
        return None


def fits(value: Field, patterns: Sequence[Field]) -> bool | None:
    """Return whether a value matches one of several patterns of `case`; None if that is unknown."""
    found: bool | None = False
    for one in patterns:
        pattern = one.pattern
        here = None if MARK in value.text or pattern is None else pattern.match(value.text) is not None
        if one.pieces == [("*", False)]:
            here = True
        found = either(found, here)
    return found
