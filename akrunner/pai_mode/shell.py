"""A shell script that calls MaxCompute's client -> the statements it hands over. Nothing of the script is run.

::

    x=1; export y="a ${x}"; z=${w:-3}            variables, as far as their values are known without running anything
    odpscmd --config=c -e "create table ...;"    statements; also ${odpscmd}, $ODPSCMD, -f FILE, and what stands behind <<HERE
    pai -name tensorflow1150 ...                 a command as it is
    if, for, tar, zip, rm, echo, ossutil ...     not run; what could matter is told, with its line
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple

from akrunner.errors import ConfigError
from akrunner.foreign import redacted

#: an expansion nobody knows stands between two of these
_MARK = "\0"
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?=)")
_UNKNOWN = re.compile("\0([^\0]*)\0")
_STATEMENT = re.compile(
    r"\s*(pai\s+-|create\b|drop\b|alter\b|insert\b|select\b|tunnel\b|set\s|use\s|desc\b|show\b|with\b|truncate\b|--|#|add\s)",
    re.IGNORECASE,
)
#: commands that change nothing a job could need
_HARMLESS = {
    "echo", "printf", "set", "cd", "exit", "wait", "sleep", "true", ":", "date", "ls", "pwd", "source", ".", "shift", "unset", "return", "fi",
    "done", "esac", "then", "else", "}", "{", "do", "chmod", "tee", "rm", "cat", "[", "[[", "test", "mkdir", "local", "readonly", "declare",
}  # fmt: skip
_FLOW = {"if", "for", "while", "until", "case", "elif", "function"}


@dataclass(frozen=True)
class Piece:
    """Attributes: text: of one or more statements; line: of the script, where the call stands; file: whether the text names one."""

    text: str
    line: int
    file: bool = False


@dataclass
class Script:
    """Attributes: pieces: in their order; unread: what was not run, in words."""

    pieces: List[Piece] = field(default_factory=list)
    unread: List[str] = field(default_factory=list)


@dataclass
class _Word:
    text: str
    #: the variable it is and nothing else, "" for any other word
    variable: str = ""


def read(text: str, folder: str, variables: Mapping[str, str]) -> Script:
    """Args: folder: the script is in; variables: that the caller gives, `1` for the first argument. They win over the script's.

    Raises: ConfigError: a quote or a here-document is not closed; a call needs a variable whose value is not known.
    """
    try:
        return _Reader(text, folder, variables).read()
    except RecursionError:
        raise ConfigError("the script's expansions are nested too deep") from None


class _Reader:
    """One pass over a script."""

    def __init__(self, text: str, folder: str, variables: Mapping[str, str]) -> None:
        self.text = text
        self.at = 0
        self.folder = folder
        self.given = variables
        self.known: Dict[str, str] = {"PWD": os.getcwd(), "0": "script.sh", "HOME": os.path.expanduser("~")}
        self.known.update(variables)
        self.began = 0
        self.script = Script()

    def read(self) -> Script:
        while self.at < len(self.text):
            self.began = self.at
            words, here = self._command()
            if words:
                self._take(words, here, self._line(self.began))
        return self.script

    # -- words

    def _line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def _command(self) -> "Tuple[List[_Word], Optional[str]]":
        """The words of a command, up to what ends it, and the text of its here-document."""
        words: List[_Word] = []
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
                return words, here
            elif char in ";&|":
                self.at += 2 if text.startswith(("&&", "||", ";;"), self.at) else 1
                if not ends:
                    return words, None
            elif text.startswith("<<", self.at) and not text.startswith("<<<", self.at):
                self.at += 3 if text.startswith("<<-", self.at) else 2
                while text.startswith((" ", "\t"), self.at):
                    self.at += 1
                quoted = text.startswith(("'", '"', "\\"), self.at)
                ends.append((self._word().text.lstrip("\\"), quoted))
            elif char in "<>":
                self._redirection()
            elif char in "()":
                self.at += 1
                if words and char == "(" and text.startswith(")", self.at):
                    words.append(_Word("()"))
            else:
                self.began = self.began if words else self.at
                words.append(self._word())
        if ends:
            raise ConfigError(f"line {self._line(len(text))}: the here-document {ends[0][0]} has no end")
        return words, None

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
        raise ConfigError(f"line {self._line(begin)}: the here-document {end} has no end")

    def _expanded(self, body: str) -> str:
        """Of a here-document: expansions, and quotes as they are."""
        inner = _Reader(body, self.folder, self.given)
        inner.known = self.known
        made = ""
        while inner.at < len(body):
            made += inner._in_double("$`\\")
        return made

    def _word(self) -> _Word:
        begin, text, made, parts, variable = self.at, self.text, "", 0, ""
        while self.at < len(text) and text[self.at] not in " \t\r\n;&|<>()":
            char = text[self.at]
            parts += 1
            if char == "'":
                end = text.find("'", self.at + 1)
                if end < 0:
                    raise ConfigError(f"line {self._line(self.at)}: a ' is not closed")
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
        return _Word(made, variable if parts == 1 else "")

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
        raise ConfigError(f'line {self._line(begin)}: a " is not closed')

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
            self.at = _closing(text, begin + 1, "(", ")")
            return self._called(text[begin + 2 : self.at - 1])
        if text.startswith("${", begin):
            self.at = _closing(text, begin + 1, "{", "}")
            return self._parameter(text[begin + 2 : self.at - 1])
        match = re.compile(r"[A-Za-z_]\w*|[0-9]").match(text, begin + 1)
        if match is None:
            self.at += 1
            return "$" if text[begin + 1 : begin + 2] not in ("@", "*", "#", "?", "$", "!") else self._none(1)
        self.at = match.end()
        return self.known.get(match[0], f"{_MARK}{match[0]}{_MARK}")

    def _none(self, size: int) -> str:
        name = self.text[self.at : self.at + size]
        self.at += size
        return f"{_MARK}{name}{_MARK}"

    def _parameter(self, body: str) -> str:
        match = re.match(r"([A-Za-z_]\w*|[0-9@*#]+)(:?[-=](.*))?\Z", body, re.DOTALL)
        if match is None:
            return self.known.get(body, f"{_MARK}{body}{_MARK}")
        value = self.known.get(match[1])
        if match[2] is not None and not value:
            return self._expanded(match[3].strip("'\"")) if match[3] is not None else ""
        return value if value is not None else f"{_MARK}{match[1]}{_MARK}"

    def _called(self, command: str) -> str:
        """What a few harmless commands print; nothing is run."""
        words = command.split()
        if words == ["pwd"]:
            return self.known.get("PWD", os.getcwd())
        if "dirname" in words and ("$0" in command or "BASH_SOURCE" in command):
            return self.folder
        if len(words) == 2 and words[0] == "date" and words[1].strip("'\"").startswith("+"):
            return time.strftime(words[1].strip("'\"")[1:])
        return f"{_MARK}$({command.strip()}){_MARK}"

    # -- what a command does

    def _take(self, words: List[_Word], here: Optional[str], line: int) -> None:
        if words[0].text == "function" or any(word.text == "()" for word in words[1:2]):
            self._skip_function(words, line)
            return
        while words and words[0].text in ("then", "else", "do", "{", "exec", "nohup", "time", "sudo", "!"):
            words = words[1:]
        while words and (match := _ASSIGNMENT.match(words[0].text)) is not None:
            self._assign(match[1], match[2], words[0].text[match.end() :])
            words = words[1:]
        if not words:
            return
        first = words[0].text
        if first in ("export", "local", "readonly", "declare"):
            for word in words[1:]:
                match = _ASSIGNMENT.match(word.text)
                if match is not None:
                    self._assign(match[1], match[2], word.text[match.end() :])
            return
        if _is_client(words[0]):
            self._client(words[1:], here, line)
        elif first.lower() == "pai" and len(words) > 1 and words[1].text.startswith("-"):
            self._piece(" ".join([first, *(_requoted(word.text) for word in words[1:])]), line)
        elif here is not None and _STATEMENT.match(here):
            self._piece(here, line)
        elif os.path.basename(first) not in _HARMLESS:
            shown = redacted(" ".join(_UNKNOWN.sub(r"$\1", word.text) for word in words))
            flow = " (both ways are read)" if first in _FLOW else ""
            self.script.unread.append(f"line {line} is not run{flow}: {shown if len(shown) <= 70 else shown[:67] + '...'}")

    def _skip_function(self, words: List[_Word], line: int) -> None:
        """Its calls are not followed; one that is given statements by a here-document is taken for the client."""
        begin = self.text.find("{", self.began)
        if begin >= 0:
            self.at = _closing(self.text, begin, "{", "}")
            name = words[1].text if words[0].text == "function" and len(words) > 1 else words[0].text
            self.script.unread.append(f"line {line} is not run: the function {name}")

    def _assign(self, name: str, sign: str, value: str) -> None:
        if name not in self.given:
            self.known[name] = self.known.get(name, "") + value if sign == "+=" else value

    def _client(self, words: List[_Word], here: Optional[str], line: int) -> None:
        rest = [word.text for word in words]
        found = False
        while rest:
            word = rest.pop(0)
            name, sign, value = word.partition("=")
            if name in ("-e", "-f", "--execute", "--file"):
                value = value if sign else rest.pop(0) if rest else ""
                self._piece(value, line, file=name in ("-f", "--file"))
                found = True
        if here is not None and not found:
            self._piece(here, line)

    def _piece(self, text: str, line: int, file: bool = False) -> None:
        unknown = _UNKNOWN.search(text)
        if unknown is not None:
            name = unknown[1]
            if name.startswith("$("):
                raise ConfigError(
                    f"line {line}: `{name[2:-1]}` would have to be run to know this call, and nothing of a script is run; put its result into a "
                    "variable, x=$(...), and give that: --var x=VALUE"
                    if not self._holder(unknown[0])
                    else f"line {line}: ${self._holder(unknown[0])} is what `{name[2:-1]}` prints, and nothing of a script is run; give its value: "
                    f"--var {self._holder(unknown[0])}=VALUE"
                )
            raise ConfigError(f"line {line}: ${name} has no value; give it: --var {name}=VALUE")
        self.script.pieces.append(Piece(text, line, file))

    def _holder(self, marked: str) -> str:
        """The variable that has it for a value."""
        return next((name for name, value in self.known.items() if marked in value), "")


def _closing(text: str, at: int, opens: str, closes: str) -> int:
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


def _is_client(word: _Word) -> bool:
    name = os.path.basename(_UNKNOWN.sub(r"\1", word.text).split(" ")[0]).lower()
    return name.startswith("odpscmd") or "odpscmd" in word.variable.lower()


def _requoted(text: str) -> str:
    """A word the shell has taken the quotes from, as the command writes it."""
    name, sign, value = text.partition("=")
    if sign and re.search(r"[\s;'\"]", value):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"{name}='{escaped}'"
    return text
