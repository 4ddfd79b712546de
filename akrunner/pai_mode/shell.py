"""A shell script that calls MaxCompute's client -> the statements it hands over. Nothing of the script is run.

::

    x=1; export y="a ${x}"; z=${w:-3}            variables, as far as their values are known without running anything
    odpscmd --config=c -e "create table ...;"    statements; also ${odpscmd}, $ODPSCMD, -f FILE, and what stands behind <<HERE
    pai -name tensorflow1150 ...                 a command as it is
    if, case, for, &&, ||                        the way that is taken, where it is known (`flow`); a call of which it is not known is an error
    tar, zip, rm, echo, ossutil ...              not run; what could matter is told, with its line
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import List, Mapping, Optional

from akrunner.errors import ConfigError
from akrunner.foreign import redacted
from akrunner.pai_mode.flow import ASKING, MARK, Flow, Frame, holds, opposite
from akrunner.pai_mode.shellwords import Word, Words, closing

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?=)")
_UNKNOWN = re.compile("\0([^\0]*)\0")
_STATEMENT = re.compile(
    r"\s*(pai\s+-|create\b|drop\b|alter\b|insert\b|select\b|tunnel\b|set\s|use\s|desc\b|show\b|with\b|truncate\b|--|#|add\s)",
    re.IGNORECASE,
)
#: commands that change nothing a job could need
_HARMLESS = {
    "echo", "printf", "set", "cd", "wait", "sleep", "true", "false", ":", "date", "ls", "pwd", "source", ".", "shift", "unset", "chmod", "tee",
    "rm", "cat", "mkdir",
}  # fmt: skip
_KEYWORDS = frozenset(
    ("if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "{", "}", "!")
)
_TESTS = ("[", "[[", "test")
#: times a script's lines are read, of all its loops together
_MOST_ROUNDS = 1000


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


def read(text: str, folder: str, variables: Mapping[str, str]) -> Script:
    """Args: folder: the script is in; variables: that the caller gives, `1` for the first argument. They win over the script's.

    Raises: ConfigError: a quote or a here-document is not closed; a call needs a variable whose value is not known.
    """
    try:
        return _Reader(text, folder, variables).read()
    except RecursionError:
        raise ConfigError("the script's expansions are nested too deep") from None


class _Reader(Words):
    """One pass over a script."""

    def __init__(self, text: str, folder: str, variables: Mapping[str, str]) -> None:
        super().__init__(text, folder, variables)
        self.rounds = 0
        self.flow = Flow()
        self.script = Script()

    def read(self) -> Script:
        while self.at < len(self.text):
            self.began = self.at
            words, here, ended = self.command(self.flow)
            if words or ended in (")", "("):
                self._part(words, here, ended, self.line(self.began))
            frame = self.flow.at("case")
            if frame is not None and ended == ";;":
                frame.patterns = []
            if words and ended:
                self.flow.after = ended
        return self.script

    # -- what a command does

    def _part(self, words: List[Word], here: Optional[str], ended: str, line: int) -> None:
        """A command, with the words before it that say whether it is run."""
        flow = self.flow
        if flow.wants_pattern and not (words and words[0].text == "esac"):
            patterns = flow.frames[-1].patterns
            assert patterns is not None
            patterns += [word.text for word in words]
            if ended == ")":
                flow.part()
            return
        negated = False
        while words and words[0].text in _KEYWORDS:
            first = words.pop(0)
            if first.text == "!":
                negated = not negated
            elif first.text in ("for", "case"):
                self._head(first.text, words, line)
                return
            elif self._keyword(first, line):
                return
        if words:
            flow.status = self._take(words, here, line)
            if negated:
                flow.status = opposite(flow.status)
        if ended == "(":
            flow.begin("(", line)
        elif ended == ")" and flow.at("("):
            flow.end()

    def _keyword(self, word: Word, line: int) -> bool:
        """Returns: whether the script is read on elsewhere."""
        flow = self.flow
        if word.text in ("if", "while", "until", "{"):
            flow.begin("while" if word.text == "until" else word.text, line)
        elif word.text == "then":
            flow.then()
        elif word.text in ("elif", "else"):
            flow.otherwise()
        elif word.text == "do":
            loop = flow.at("for", "while")
            if loop is not None:
                loop.body = word.end
                self._round(loop)
            flow.after = ";"
        elif word.text == "done":
            loop = flow.at("for")
            if loop is not None and loop.values:
                self._round(loop)
                self.at, flow.after = loop.body, ";"
                return True
            if flow.at("for", "while"):
                flow.end()
        elif word.text in ("fi", "esac", "}") and flow.at({"fi": "if", "esac": "case", "}": "{"}[word.text]):
            flow.end()
        return False

    def _head(self, kind: str, words: List[Word], line: int) -> None:
        """`for name in ...`, `case ... in`."""
        frame = self.flow.begin(kind, line)
        texts = [word.text for word in words]
        if kind == "case":
            frame.value, frame.runs, frame.patterns = texts[0] if texts else MARK, False, []
            return
        frame.name = texts[0] if texts else ""
        if texts[1:2] == ["in"] and not any(MARK in text or set(text) & set("*?[{") for text in texts[2:]):
            frame.values = [
                value for word, text in zip(words[2:], texts[2:]) for value in (text.split() if word.variable else [text])
            ]

    def _round(self, loop: Frame) -> None:
        """A loop begins again."""
        loop.runs = None if loop.values is None or loop.doubt else bool(loop.values)
        if loop.values is None:
            self._assign(loop.name, "=", f"{MARK}{loop.name}{MARK}")
        elif loop.values:
            self.rounds += 1
            if self.rounds > _MOST_ROUNDS:
                raise ConfigError(f"line {loop.line}: the script's loops go round more than {_MOST_ROUNDS:,} times")
            self._assign(loop.name, "=", loop.values.pop(0))

    def _leave(self, how: str) -> None:
        """`break`, `continue`."""
        runs = self.flow.runs
        loop = next((frame for frame in reversed(self.flow.frames) if frame.kind in ("for", "while")), None)
        if loop is None:
            return
        loop.runs = False if runs else None
        if how == "break":
            loop.doubt = not runs
            loop.values = [] if runs else loop.values

    def _take(self, words: List[Word], here: Optional[str], line: int) -> Optional[bool]:
        """One command. Returns: whether it succeeds, as far as anybody knows."""
        if words[0].text == "function" or any(word.text == "()" for word in words[1:2]):
            self._skip_function(words, line)
            return True
        runs = self.flow.runs
        while words and words[0].text in ("exec", "nohup", "time", "sudo", "export", "local", "readonly", "declare"):
            words = words[1:]
        while words and (match := _ASSIGNMENT.match(words[0].text)) is not None:
            self._assign(match[1], match[2], words[0].text[match.end() :])
            words = words[1:]
        if not words or runs is False:
            # a chain goes on as if the command were not there
            return self.flow.status if runs is False else True
        first = words[0].text
        texts = [word.text for word in words]
        pai = first.lower() == "pai" and len(words) > 1 and texts[1].startswith("-")
        given = here is not None and _STATEMENT.match(here) is not None
        if first in _TESTS:
            return holds(texts)
        if first in ("break", "continue"):
            self._leave(first)
        elif first in ("exit", "return"):
            self.at = len(self.text) if runs else self.at
        elif _is_client(words[0]) or pai or given:
            self._check_runs(line)
            if _is_client(words[0]):
                self._client(words[1:], here, line)
            elif pai:
                self._piece(" ".join([first, *map(_requoted, texts[1:])]), line)
            else:
                self._piece(here or "", line)
        elif os.path.basename(first) not in _HARMLESS:
            shown = redacted(" ".join(_UNKNOWN.sub(r"$\1", text) for text in texts))
            self.script.unread.append(f"line {line} is not run: {shown if len(shown) <= 70 else shown[:67] + '...'}")
        return False if first == "false" else None if os.path.basename(first) in ASKING or MARK in first else True

    def _check_runs(self, line: int) -> None:
        """Raises: ConfigError: nobody knows whether a call is made."""
        if self.flow.runs is not None:
            return
        frame = self.flow.unknown
        at = frame.line if frame is not None else line
        asked = redacted(self.text.splitlines()[at - 1].strip())
        names = [one for one in re.findall(r"\$\{?([A-Za-z_]\w*|[0-9])", asked) if MARK in self.known.get(one, MARK)]
        mend = f"give its variable, --var {names[0]}=VALUE, or " if names else ""
        raise ConfigError(
            f"line {line}: whether this call is made depends on line {at} ({asked if len(asked) <= 70 else asked[:67] + '...'}), and only running "
            f"the script would tell; {mend}run the script itself with `akrunner pai` in odpscmd's place, or put its statements into a file of "
            "their own"
        )

    def _skip_function(self, words: List[Word], line: int) -> None:
        """Its calls are not followed; one that is given statements by a here-document is taken for the client."""
        begin = self.text.find("{", self.began)
        if begin >= 0:
            self.at = closing(self.text, begin, "{", "}")
            name = words[1].text if words[0].text == "function" and len(words) > 1 else words[0].text
            self.script.unread.append(f"line {line} is not run: the function {name}")

    def _assign(self, name: str, sign: str, value: str) -> None:
        runs = self.flow.runs
        if name in self.given or runs is False:
            return
        value = self.known.get(name, "") + value if sign == "+=" else value
        # of two values nobody knows which
        self.known[name] = value if runs or self.known.get(name) == value else f"{MARK}{name}{MARK}"

    def _client(self, words: List[Word], here: Optional[str], line: int) -> None:
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


def _is_client(word: Word) -> bool:
    name = os.path.basename(_UNKNOWN.sub(r"\1", word.text).split(" ")[0]).lower()
    return name.startswith("odpscmd") or "odpscmd" in word.variable.lower()


def _requoted(text: str) -> str:
    """A word the shell has taken the quotes from, as the command writes it."""
    name, sign, value = text.partition("=")
    if sign and re.search(r"[\s;'\"]", value):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"{name}='{escaped}'"
    return text
