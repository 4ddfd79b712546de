"""Parses the words of a shell script, with the expansions in them. Nothing is expanded here, and nothing is run.

::

    "a $x"'b'$(c)    a Word of four Parts: text, name, text, call
"""

from __future__ import annotations

import abc
import re

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell.nodes import Node, Part, Redirection, Word, joined

_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")


class Characters(abc.ABC):
    """Reads words from a script's text.

    Attributes:
        text: the text.
        at: the position of the parser.
        first: the line number of the text's first line.
        waiting: the here-documents whose text begins on the next line: redirection, end mark, whether the mark is quoted, and
            whether tabs in front of lines are removed.
    """

    def __init__(self, text: str, first: int = 1) -> None:
        self.text = text
        self.at = 0
        self.first = first
        self.waiting: list[tuple[Redirection, str, bool, bool]] = []

    @property
    def line(self) -> int:
        return self.first + self.text.count("\n", 0, self.at)

    def error(self, words: str) -> ConfigError:
        return ConfigError(f"line {self.line}: {words}")

    def next_is(self, *words: str) -> bool:
        return self.text.startswith(words, self.at)

    # -- words

    def word(self, stops: str = " \t\n;&|<>()") -> Word:
        """Read a word, up to an unquoted character of `stops`."""
        parts: list[Part] = []
        line = self.line
        while self.at < len(self.text) and self.text[self.at] not in stops:
            char = self.text[self.at]
            if char == "'":
                parts.append(Part("text", self._until("'"), True))
            elif char == '"':
                parts += self._double()
            elif self.next_is("$'"):
                parts.append(Part("text", self._ansi(), True))
            elif self.next_is('$"'):
                self.at += 1
            elif self.next_is("\\\n"):
                self.at += 2
            elif char == "\\":
                parts.append(Part("text", self.text[self.at + 1 : self.at + 2] or "\\", True))
                self.at += 2
            elif char in "$`":
                parts.append(self._expansion(False))
            else:
                parts.append(Part("text", char, False))
                self.at += 1
        return Word(joined(parts), line)

    def double(self, escaped: str = '$`"\\', stop: str = "", quotes: bool = False) -> list[Part]:
        """Read text as it stands between double quotes.

        Args:
            escaped: the characters that lose their meaning after a backslash.
            stop: the text before which reading ends, "" for the end of the text.
            quotes: whether double quotes within the text are dropped.
        """
        parts: list[Part] = []
        while self.at < len(self.text) and not (stop and self.next_is(stop)):
            char = self.text[self.at]
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in tuple(escaped):
                parts.append(Part("text", self.text[self.at + 1], True))
                self.at += 2
            elif self.next_is("\\\n"):
                self.at += 2
            elif quotes and (char == '"' or self.next_is('$"')):
                last = parts[-1] if parts else None
                named = last is not None and last.kind == "name" and not last.closed and re.match(r'"\w', self.text[self.at :])
                if named or char == "$":
                    raise self.error(
                        "in quotes within quotes bash joins a name and what stands behind it: write ${...}, with braces"
                    )
                self.at += 1
            elif char in "$`":
                parts.append(self._expansion(True))
            else:
                parts.append(Part("text", char, True))
                self.at += 1
        return joined(parts)

    def _double(self) -> list[Part]:
        begin = self.line
        self.at += 1
        parts = self.double(stop='"')
        if self.at >= len(self.text):
            raise ConfigError(f'line {begin}: a " is not closed')
        self.at += 1
        return parts or [Part("text", "", True)]

    def _until(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise self.error(f"a {quote} is not closed")
        found = self.text[self.at + 1 : end]
        self.at = end + 1
        return found

    def _ansi(self) -> str:
        match = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if match is None:
            raise self.error("a ' is not closed")
        if re.search(r"\\[^nt'\"\\]", match[1]):
            raise self.error(
                f"akrunner does not read {match[0]}; of what stands behind a backslash in $'...' it knows n, t, quotes and a "
                "backslash"
            )
        self.at = match.end()
        return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), match[1])

    def _expansion(self, quoted: bool) -> Part:
        begin = self.at
        if self.next_is("`"):
            end = begin + 1
            while end < len(self.text) and self.text[end] != "`":
                end += 2 if self.text[end] == "\\" else 1
            if end >= len(self.text):
                raise self.error("a ` is not closed")
            line, self.at = self.line, end + 1
            inner = re.sub(r'\\([$`\\"])' if quoted else r"\\([$`\\])", r"\1", self.text[begin + 1 : end])
            return Part("call", inner, quoted, self.script(inner, line))
        if self.next_is("$(("):
            self.at += 3
            return Part("sum", self.balanced("))"), quoted)
        if self.next_is("$("):
            self.at += 2
            body = self.commands(")")
            return Part("call", self.text[begin + 2 : self.at - 1], quoted, body)
        if self.next_is("${"):
            self.at += 2
            return Part("name", self._braces(quoted), quoted, closed=True)
        match = _NAME.match(self.text, begin + 1)
        self.at = match.end() if match else begin + 1
        return Part("name", match[0], quoted) if match else Part("text", "$", quoted)

    def balanced(self, close: str) -> str:
        """Return the text of arithmetic, up to the brackets that close it."""
        begin, depth = self.at, 0
        while self.at < len(self.text):
            if not depth and self.next_is(close):
                self.at += len(close)
                return self.text[begin : self.at - len(close)]
            depth += {"(": 1, ")": -1}.get(self.text[self.at], 0)
            self.at += 1
        raise self.error(f"a {close} is missing")

    def _braces(self, quoted: bool) -> str:
        """Return the text after `${`, up to its `}`. Args: quoted: whether the expansion stands between double quotes."""
        begin, line = self.at, self.line
        while self.at < len(self.text):
            if self.next_is("}"):
                self.at += 1
                return self.text[begin : self.at - 1]
            if self.next_is("'"):
                self._until("'")
            elif self.next_is('"'):
                self._double()
            elif self.next_is("\\"):
                self.at += 2
            elif self.next_is("${", "$(", "`"):
                self._expansion(quoted)
            else:
                self.at += 1
        raise ConfigError(f"line {line}: a ${{ is not closed")

    @abc.abstractmethod
    def script(self, text: str, line: int) -> list[Node]:
        """Parse the commands between backticks. Args: text: without the backslashes; line: the line on which it begins."""

    @abc.abstractmethod
    def commands(self, close: str) -> list[Node]:
        """Parse the commands after `$(`, up to `close`."""

    # -- between words

    def blanks(self) -> None:
        while self.at < len(self.text):
            if self.next_is(" ", "\t"):
                self.at += 1
            elif self.next_is("\\\n"):
                self.at += 2
            elif self.next_is("#"):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def newlines(self) -> None:
        """Skip blanks and line ends, and read the here-documents that begin after a line end."""
        self.blanks()
        while self.next_is("\n"):
            self.at += 1
            for redirection, end, literal, tabs in self.waiting:
                redirection.target = self._here(end, literal, tabs)
            self.waiting = []
            self.blanks()

    def _here(self, end: str, literal: bool, tabs: bool) -> Word:
        begin, first = self.at, self.line
        lines: list[str] = []
        while self.at < len(self.text):
            stop = self.text.find("\n", self.at)
            stop = len(self.text) if stop < 0 else stop
            line = self.text[self.at : stop].lstrip("\t" if tabs else "")
            self.at = min(stop + 1, len(self.text))
            if line == end:
                body = "".join(f"{one}\n" for one in lines)
                return Word([Part("text", body, True)] if literal else type(self)(body, first).double("$`\\"), first)
            lines.append(line)
        self.at = begin
        raise self.error(f"the here-document {end} has no end")
