"""A shell script as words and commands, with its variables in their place as far as they are known. Nothing of it is run.

::

    x=1; echo "${x} ${y:-3}" 'a b' $(date +%Y)   words: `echo`, `1 3`, `a b`, `2026`
    cat <<HERE                                   and the text up to HERE
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

from akrunner.errors import ConfigError
from akrunner.pai_mode.flow import MARK, Flow

_BEGINS = frozenset(("if", "then", "elif", "else", "while", "until", "do", "{"))
_OPERATORS = ("&&", "||", "|", ";;", ";", "&")


@dataclass
class Word:
    """Attributes: text; variable: the one it is and nothing else, "" for any other word; end: where the script goes on behind it."""

    text: str
    variable: str = ""
    end: int = 0


class Words:
    """One pass over a script. Attributes: at: where it is; began: where the command began; known: variables and their values."""

    def __init__(self, text: str, folder: str, variables: Mapping[str, str]) -> None:
        self.text = text
        self.at = 0
        self.folder = folder
        self.given = variables
        self.known: Dict[str, str] = {"PWD": os.getcwd(), "0": "script.sh", "HOME": os.path.expanduser("~")}
        self.known.update(variables)
        places = [name for name in variables if name.isdigit()]
        if places:
            self.known["#"] = str(len(places))
        # akrunner ends at the first that fails
        self.known["?"] = "0"
        self.began = 0

    def line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def command(self, flow: Flow) -> "Tuple[List[Word], Optional[str], str]":
        """The words of a command, up to what ends it, the text of its here-document, and what ends it."""
        words: List[Word] = []
        ends: List[Tuple[str, bool]] = []
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if text.startswith("\\\n", self.at):
                self.at += 2
            elif char in " \t\r":
                self.at += 1
            elif char == "#":
                self._skip_line()
            elif char == "\n":
                self.at += 1
                here = "".join(self._here(end, literal) for end, literal in ends) if ends else None
                return words, here, "\n"
            elif words and words[0].text == "[[" and words[-1].text != "]]" and char in "&|<>()":
                self.at += 2 if text.startswith(("&&", "||"), self.at) else 1
                words.append(Word(text[self.at - 2 : self.at] if char in "&|" else char))
            elif char in ";&|":
                found = next(one for one in _OPERATORS if text.startswith(one, self.at))
                self.at += len(found)
                if not ends:
                    return words, None, found
            elif text.startswith("<<", self.at) and not text.startswith("<<<", self.at):
                self.at += 3 if text.startswith("<<-", self.at) else 2
                while text.startswith((" ", "\t"), self.at):
                    self.at += 1
                quoted = text.startswith(("'", '"', "\\"), self.at)
                ends.append((self._word().text.lstrip("\\"), quoted))
            elif char in "<>":
                self._redirection()
            elif text.startswith("((", self.at):
                end = text.find("))", self.at)
                end = len(text) if end < 0 else end + 2
                words.append(Word(f"{MARK}{text[self.at : end]}{MARK}", end=end))
                self.at = end
            elif char in "()":
                self.at += 1
                if words and char == "(" and text.startswith(")", self.at):
                    words.append(Word("()"))
                elif (char == "(" and not words and not flow.wants_pattern) or (
                    char == ")" and (flow.wants_pattern or flow.at("("))
                ):
                    return words, None, char
            else:
                self.began = self.began if words else self.at
                words.append(self._word())
                if (len(words) == 1 and words[0].text in _BEGINS) or (words[0].text == "case" and words[-1].text == "in"):
                    # what follows may be another's words: `do echo $x` is read after each value of x
                    return words, None, ""
        if ends:
            raise ConfigError(f"line {self.line(len(text))}: the here-document {ends[0][0]} has no end")
        return words, None, "\n"

    def _redirection(self) -> None:
        while self.text.startswith(("<", ">", "&"), self.at):
            self.at += 1
        while self.text.startswith((" ", "\t"), self.at):
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in "\n;":
            self._word()

    def _skip_line(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _here(self, end: str, literal: bool) -> str:
        begin = self.at
        while self.at < len(self.text):
            line_end = self.text.find("\n", self.at)
            line_end = len(self.text) if line_end < 0 else line_end
            if self.text[self.at : line_end].strip() == end:
                body = self.text[begin : self.at]
                self.at = min(line_end + 1, len(self.text))
                return body if literal else self._expanded(body)
            self.at = line_end + 1
        raise ConfigError(f"line {self.line(begin)}: the here-document {end} has no end")

    def _expanded(self, body: str) -> str:
        """Of a here-document: expansions, and quotes as they are."""
        inner = Words(body, self.folder, self.given)
        inner.known = self.known
        made = ""
        while inner.at < len(body):
            made += inner._in_double("$`\\")
        return made

    def _word(self) -> Word:
        begin, text, made, parts, variable = self.at, self.text, "", 0, ""
        while self.at < len(text) and text[self.at] not in " \t\r\n;&|<>()":
            char = text[self.at]
            parts += 1
            if char == "'":
                end = text.find("'", self.at + 1)
                if end < 0:
                    raise ConfigError(f"line {self.line(self.at)}: a ' is not closed")
                made += text[self.at + 1 : end]
                self.at = end + 1
            elif char == '"':
                made += self._double()
            elif text.startswith("$'", self.at):
                made += self._ansi()
            elif char == "\\":
                made += text[self.at + 1 : self.at + 2].replace("\n", "")
                self.at += 2
            elif char in "$`":
                before = self.at
                made += self._expansion()
                variable = text[before : self.at].strip("${}")
            else:
                made += char
                self.at += 1
        if self.at == begin:
            self.at += 1
        return Word(made, variable if parts == 1 else "", self.at)

    def _ansi(self) -> str:
        end = self.at + 2
        while end < len(self.text) and self.text[end] != "'":
            end += 2 if self.text[end] == "\\" else 1
        body = self.text[self.at + 2 : end]
        self.at = end + 1
        return body.replace("\\n", "\n").replace("\\t", "\t").replace("\\'", "'").replace("\\\\", "\\")

    def _double(self) -> str:
        begin, made = self.at, ""
        self.at += 1
        while self.at < len(self.text):
            if self.text[self.at] == '"':
                self.at += 1
                return made
            made += self._in_double()
        raise ConfigError(f'line {self.line(begin)}: a " is not closed')

    def _in_double(self, escaped: str = '$`"\\') -> str:
        """The next character between double quotes, or what an expansion gives. Args: escaped: what a backslash takes its meaning."""
        text, char = self.text, self.text[self.at]
        if char == "\\" and text[self.at + 1 : self.at + 2] in tuple(escaped):
            self.at += 2
            return text[self.at - 1]
        if text.startswith("\\\n", self.at):
            self.at += 2
            return ""
        if char in "$`":
            return self._expansion()
        self.at += 1
        return char

    # -- expansions

    def _expansion(self) -> str:
        text, begin = self.text, self.at
        if text[begin] == "`":
            end = text.find("`", begin + 1)
            end = len(text) if end < 0 else end
            self.at = end + 1
            return self._called(text[begin + 1 : end])
        if text.startswith("$(", begin):
            self.at = closing(text, begin + 1, "(", ")")
            return self._called(text[begin + 2 : self.at - 1])
        if text.startswith("${", begin):
            self.at = closing(text, begin + 1, "{", "}")
            return self._parameter(text[begin + 2 : self.at - 1])
        match = re.compile(r"[A-Za-z_]\w*|[0-9]").match(text, begin + 1)
        if match is None:
            self.at += 1
            name = text[begin + 1 : begin + 2]
            if name not in ("@", "*", "#", "?", "$", "!"):
                return "$"
            self.at += 1
            return self.known.get(name, f"{MARK}{name}{MARK}")
        self.at = match.end()
        return self.known.get(match[0], f"{MARK}{match[0]}{MARK}")

    def _parameter(self, body: str) -> str:
        match = re.match(r"([A-Za-z_]\w*|[0-9@*#]+)(:?[-=](.*))?\Z", body, re.DOTALL)
        if match is None:
            return self.known.get(body, f"{MARK}{body}{MARK}")
        value = self.known.get(match[1])
        if match[2] is not None and not value:
            return self._expanded(match[3].strip("'\"")) if match[3] is not None else ""
        return value if value is not None else f"{MARK}{match[1]}{MARK}"

    def _called(self, command: str) -> str:
        """What a few harmless commands print; nothing is run."""
        words = command.split()
        if words == ["pwd"]:
            return self.known.get("PWD", os.getcwd())
        if "dirname" in words and ("$0" in command or "BASH_SOURCE" in command):
            return self.folder
        if len(words) == 2 and words[0] == "date" and words[1].strip("'\"").startswith("+"):
            return time.strftime(words[1].strip("'\"")[1:])
        return f"{MARK}$({command.strip()}){MARK}"


def closing(text: str, at: int, opens: str, closes: str) -> int:
    """Behind what closes the bracket at a place."""
    depth = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == opens:
            depth += 1
        elif text[at] == closes:
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return len(text)
