"""Splits MaxCompute's SQL into tokens: enough to find where a statement ends, and to parse a CREATE TABLE."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from akrunner.checks import MOST_DIGITS, whole_of
from akrunner.errors import ConfigError

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>--[^\n]*|/\*.*?\*/)
    |(?P<name>`(?:[^`]|``)*`)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<open>['"`]|/\*)
    |(?P<word>\w+)
    |(?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
#: the words of a command of PAI's: `--` may occur in it, and begins a comment only at the start of a line
_WORDS = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<open>['"])
    |(?P<mark>;|[^\s'";]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|.)", re.DOTALL)
#: words that cannot be a column's name without backticks
_RESERVED = frozenset(
    "all alter and as asc between by case cast column comment create cross date desc distinct drop else end exists false from "
    "full group having if in inner insert interval into is join left like limit not null on or order outer overwrite "
    "partition right select set show table then timestamp to true union using values view when where with".split()
)


@dataclass(frozen=True)
class Token:
    """One token.

    Attributes:
        kind: "name" (in backticks), "text" (in quotes), "word", "mark" or, behind the last one, "end".
        text: as written.
        at: the position of its first character.
        end: the position behind it.
    """

    kind: str
    text: str
    at: int

    @property
    def end(self) -> int:
        return self.at + len(self.text)

    @property
    def low(self) -> str:
        """Return a word in lower case; "" for a quoted token."""
        return self.text.lower() if self.kind in ("word", "mark") else ""

    @property
    def value(self) -> str:
        """Return the text without quotes."""
        if self.kind == "name":
            return self.text[1:-1].replace("``", "`")
        return text_of(self.text) if self.kind == "text" else self.text


def tokens(text: str, at: int = 0, command: bool = False) -> Iterator[Token]:
    """Yield the tokens from position `at` on, without blanks and comments.

    Args:
        command: whether the text is a command of PAI's or of MaxCompute's client, which has only words and quotes.
    Raises:
        ConfigError: a quote, or a comment, is not closed; the message names the line.
    """
    pattern, begun = _WORDS if command else _TOKEN, None
    while at < len(text):
        match = pattern.match(text, at)
        assert match is not None
        kind = str(match.lastgroup)
        if kind == "open":
            what = "comment" if match[0] == "/*" else f"quote ({match[0]})"
            raise ConfigError(f"line {line_of(text, at)}: a {what} is opened here and never closed")
        begins = kind == "mark" and (match[0][0] == "#" or (match[0].strip("-") == "" and len(match[0]) > 1))
        if begins and (begun is None or not text[text.rfind("\n", 0, at) + 1 : at].strip()):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        if kind not in ("space", "comment"):
            begun = at
            yield Token(kind, match[0], at)
        at = match.end()


def text_of(quoted: str) -> str:
    """Return the value of a text in quotes, with \\n, \\t and the like replaced."""
    return _ESCAPE.sub(_escaped, quoted[1:-1])


def _escaped(match: re.Match[str]) -> str:
    said = match[1]
    if len(said) > 1:
        return chr(int(said[1:], 16)) if said[0] in "ux" else chr(int(said, 8))
    return _ESCAPES.get(said, said)


def quoted_text(value: str) -> str:
    """Return a text in the quotes that MaxCompute's SQL wants."""
    value = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"'{value}'"


def quoted_name(name: str) -> str:
    """Return a column's name as MaxCompute's SQL wants it, in backticks if it needs them."""
    if re.fullmatch(r"[A-Za-z_]\w*", name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class Words:
    """The tokens of a statement, for a parser that takes them one after the other.

    Attributes:
        text: of the statement.
    """

    def __init__(self, text: str, what: str) -> None:
        """Split a statement into tokens.

        Args:
            what: the statement's name in error messages.
        """
        self.text, self._what = text, what
        self._tokens: list[Token] = list(tokens(text))
        self._next = 0

    def peek(self, further: int = 0) -> Token:
        """Return the next token, or the one that is `further` tokens behind it; the kind is "end" if there is none."""
        at = self._next + further
        return self._tokens[at] if at < len(self._tokens) else Token("end", "", len(self.text))

    def take(self) -> Token:
        found = self.peek()
        self._next += 1
        return found

    def maybe(self, *words: str) -> bool:
        """Take these words if they are next. Returns whether they were."""
        for offset, word in enumerate(words):
            at = self._next + offset
            if at >= len(self._tokens) or self._tokens[at].low != word:
                return False
        self._next += len(words)
        return True

    def need(self, *words: str) -> None:
        """Take these words.

        Raises:
            ConfigError: others are next.
        """
        if not self.maybe(*words):
            raise self.wrong(f"{' '.join(words).upper()} was expected")

    def name(self, what: str) -> str:
        """Take a name: a word, or a text in backticks.

        Raises:
            ConfigError: no name is next.
        """
        token = self.take()
        if token.kind not in ("word", "name") or not token.value:
            self._next -= 1
            raise self.wrong(f"the name of a {what} was expected")
        return token.value

    def table(self) -> str:
        """Take a table's name: `t` or `project.t`, with or without backticks around each part or both."""
        found = self.name("table")
        while self.peek().text == ".":
            self.take()
            found += "." + self.name("table")
        return found

    def string(self, what: str) -> str:
        token = self.take()
        if token.kind != "text":
            self._next -= 1
            raise self.wrong(f"{what} in quotes was expected")
        value = token.value
        while self.peek().kind == "text" and self.peek().at == token.end and self.peek().text[0] == token.text[0]:
            # a doubled quote stands for one
            token = self.take()
            value += token.text[0] + token.value
        return value

    def number(self, what: str) -> int:
        """Take a whole number. Raises: ConfigError: none is next, or it has more than `MOST_DIGITS` digits."""
        token = self.take()
        found = whole_of(token.text)
        if found is None:
            self._next -= 1
            long = f" ({MOST_DIGITS} digits at most)" if len(token.text) > MOST_DIGITS else ""
            raise self.wrong(f"{what} was expected{long}")
        return found

    def rest(self) -> str:
        """Return the rest of the text, as written."""
        return self.text[self.peek().at :]

    def done(self) -> bool:
        return self.peek().kind == "end"

    def end(self) -> None:
        """Check that nothing follows.

        Raises:
            ConfigError: a token follows.
        """
        if not self.done():
            raise self.wrong("nothing more was expected")

    def wrong(self, why: str) -> ConfigError:
        token = self.peek()
        where = f"at {token.text[:40]!r}" if token.text else "at its end"
        return ConfigError(f"{self._what}: {where}: {why}: {' '.join(self.text.split())[:200]}")
