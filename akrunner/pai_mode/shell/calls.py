"""A shell script's calls of odpscmd -> the statements they hand over.

::

    odpscmd -e "..."        a Piece of text
    odpscmd -f job.sql      a Piece that names a file, or has the text that the script has written into the file
    ... <<E, | odpscmd      a Piece of the text on stdin, if it is known
    pai -name ...           a Piece of the command as it stands
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from akrunner.errors import ConfigError
from akrunner.foreign import redacted
from akrunner.pai_mode.client import PASSED
from akrunner.pai_mode.shell import builtins
from akrunner.pai_mode.shell.flow import MARK, Field, State
from akrunner.pai_mode.shell.values import marked
from akrunner.tables.names import check_project

if TYPE_CHECKING:
    from akrunner.pai_mode.shell.reader import Reader

#: an unknown value in a text; the group is its name
UNKNOWN = re.compile("\0([^\0]*)\0")
#: relative paths in a statement: they are looked for in the directory that the script is in at the time
_RELATIVE = re.compile(
    r"-D(?:script|hyperParameters)\s*=\s*['\"]?(?:file:/{0,2})?(?!/|file:|odps:|oss:|['\"])([^\s'\";]+)"
    r"|\btunnel\s+\w+\s+(?![/-])(\S+)|\badd\s+(?:py|file|archive|jar)\s+(?!/)(\S+)",
    re.IGNORECASE,
)


#: statements that may make or change files on this machine
_CHANGES = re.compile(r"\bpai\b|\btunnel\s+d", re.IGNORECASE)


#: the options of the client that change nothing here -> whether a value follows as a word of its own
_PASSED = {**PASSED, "-M": False}


@dataclass(frozen=True)
class Piece:
    """What a call hands over at once.

    Attributes:
        text: one or more statements, or the path of a file with statements.
        line: the line of the script on which the call stands.
        file: whether the text is a path.
        project: the project that the call names, "" if it names none.
        more: whether the piece belongs to the same call as the piece before it.
    """

    text: str
    line: int
    file: bool = False
    project: str = ""
    more: bool = False


@dataclass
class Script:
    """The calls of a script. Attributes: pieces: in their order; unread: notes about programs that were not run."""

    pieces: list[Piece] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


class Client:
    """Collects the calls of the client that a reader finds.

    Args:
        reader: stands at the command that is being read.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        #: the project of the call that is being read; whether the call has handed over a piece already
        self._project, self._more = "", False

    def bare(self, words: list[Field], line: int) -> State:
        """Follow `pai -name ...`, a command of its own."""
        self.check(line)
        self._project, self._more = "", False
        self._piece(" ".join([words[0].text, *(_requoted(word.text) for word in words[1:])]), line)
        return State.YES

    def meant(self, word: Field) -> bool:
        """Whether a command's first word is the client."""
        name = os.path.basename(UNKNOWN.sub(r"\1", word.text)).lower()
        if name.startswith("odpscmd"):
            return True
        # a variable of that name may hold any path
        return "odpscmd" in word.variable.lower() and (MARK in word.text or not builtins.is_known(name))

    def check(self, line: int) -> None:
        """Check that the call is made for sure.

        Raises:
            ConfigError: it is unknown whether it is made, or it stands in $(...).
        """
        if self._reader.inside:
            raise ConfigError(
                f"line {line}: a call stands in $(...) or in backticks, and what it prints is not known before it is run; put "
                "the call on a line of its own, or run it without --dry-run"
            )
        at = self._reader.why
        if not at:
            return
        asked = redacted(self._reader.lines[at - 1].strip()) if at <= len(self._reader.lines) else ""
        names = [
            one for one in re.findall(r"\$\{?#?([A-Za-z_]\w*|[0-9#@*])", asked) if MARK in (self._reader.value(one) or MARK)
        ]
        # without the variables that a loop sets: the user cannot give them
        names = [one for one in names if not re.search(rf"\b(for|read|read -r)\s+{re.escape(one)}\b", asked)]
        mend = f"give {_asked_for(names[0])}, or " if names else ""
        held = UNKNOWN.fullmatch((self._reader.value(names[0]) or "") if names else "")
        if held is not None and held[1].startswith("$("):
            shown = redacted(held[1][2:-1])
            mend = f"akrunner does not know what `{shown if len(shown) <= 70 else shown[:67] + '...'}` prints; {mend}"
        raise ConfigError(
            f"line {line}: whether this call is made depends on line {at} "
            f"({asked if len(asked) <= 70 else asked[:67] + '...'}), and only running the script would tell; {mend}run it "
            "without --dry-run"
        )

    def called(self, words: list[Field], line: int) -> State:
        """Follow a call of the client. Args: words: its arguments."""
        self.check(line)
        rest = [word.text for word in words]
        found = False
        for before, word in zip(["", *rest], words):
            # the value of such an option (a name, a password, a file) is not needed here, and may be unknown
            passed = _PASSED.get(before) or _PASSED.get(word.text.partition("=")[0])
            if word.loose and not passed:
                self._known(word.text, line)
        self._project, self._more = self._said(rest, line), False
        while rest:
            name, sign, value = rest.pop(0).partition("=")
            if name in ("-e", "-f", "--execute", "--file"):
                value = value if sign else rest.pop(0) if rest else ""
                found = True
                if rest and not rest[0].startswith("-"):
                    raise ConfigError(
                        f'line {line}: {name} has several words; quote them: {name} "..." (an array: {name} "${{a[*]}}")'
                    )
                if name in ("-f", "--file"):
                    self._file(value, line)
                else:
                    self._piece(value, line)
            elif name in ("--version", "--help", "-h", "-v"):
                return State.YES
            elif name in ("--project", "-k") or _PASSED.get(name):
                rest = rest if sign else rest[1:]
            elif name.startswith("-") and name not in _PASSED:
                raise ConfigError(
                    f"line {line}: akrunner does not know odpscmd's option {redacted(UNKNOWN.sub('', name))[:40]}, and so not "
                    "what the call does: leave it out"
                )
        if found:
            self._reader.emit(marked("odpscmd"))
            return State.YES
        if self._reader.stdin.file:
            self._file(self._reader.stdin.file, line)
        elif self._reader.stdin.text is not None:
            self._piece(self._reader.stdin.text, line)
        else:
            raise ConfigError(
                f"line {line}: this call reads statements that are not known before the script is run; hand them over by -e, "
                "-f or a here-document"
            )
        self._reader.stdin.text, self._reader.stdin.file = None, ""
        self._reader.emit(marked("odpscmd"))
        return State.YES

    def _said(self, rest: Sequence[str], line: int) -> str:
        """Return the project that a call names, the last of several; "" if it names none.

        Raises:
            ConfigError: the name is not valid; or the call leaves statements out (-k).
        """
        project = ""
        words = iter(rest)
        for word in words:
            name, sign, value = word.partition("=")
            if name in ("-e", "-f", "--execute", "--file", "--project", "-k") or _PASSED.get(name):
                value = value if sign else next(words, "")
            if name == "-k" and value not in ("", "0", "1"):
                raise ConfigError(
                    f"line {line}: -k leaves out the first statements of the call: take them out of it, and leave out -k"
                )
            if name == "--project":
                self._known(value, line)
                try:
                    project = check_project(value)
                except ConfigError as e:
                    raise ConfigError(f"line {line}: --project: {e}") from None
        return project

    def _add(self, text: str, line: int, file: bool = False) -> None:
        self._reader.script.pieces.append(Piece(text, line, file, self._project, self._more))
        self._more = True

    def _file(self, path: str, line: int) -> None:
        self._known(path, line)
        full = self._reader.path(path)
        if full is not None and full in self._reader.written:
            text = self._reader.written[full]
            if text is not None and MARK not in text and full not in self._reader.touched:
                self._piece(text, line)
                return
        if full is not None and (full in self._reader.written or full in self._reader.touched):
            raise ConfigError(
                f"line {line}: the script itself makes or changes {path}, and nothing of a script is run; hand its statements "
                "over by -e or a here-document"
            )
        if full is None:
            raise ConfigError(f"line {line}: {path} is looked for in a directory that is not known; name it from / on")
        self._reader.passed = self._reader.passed or _may_change(full)
        self._add(path if self._reader.state.folder == self._reader.began else full, line, True)

    def _piece(self, text: str, line: int) -> None:
        self._known(text, line)
        if self._reader.state.folder != self._reader.began:
            for match in _RELATIVE.finditer(text):
                name = next(one for one in match.groups() if one)
                if self._reader.state.folder != self._reader.folder or os.path.exists(
                    os.path.join(self._reader.began or "", name)
                ):
                    raise ConfigError(
                        f"line {line}: {name} is looked for where the script has gone by cd: name it from / on, or run "
                        "akrunner there"
                    )
        if _CHANGES.search(text):
            self._reader.passed = True
        self._add(text, line)

    def _known(self, text: str, line: int) -> None:
        """Check that nothing in a text is unknown.

        Raises:
            ConfigError: something is; the error says which value the user can give.
        """
        unknown = UNKNOWN.search(text)
        if unknown is None:
            return
        name = unknown[1]
        holder = next((one for one, value in self._reader.state.known.items() if value and unknown[0] in value), "")
        if name.startswith("$("):
            raise ConfigError(
                f"line {line}: ${holder} is what `{name[2:-1]}` prints, and nothing of a script is run; give its value: --var "
                f"{holder}=VALUE"
                if holder
                else f"line {line}: `{name[2:-1]}` would have to be run to know this call, and nothing of a script is run; "
                "put its result into a variable, x=$(...), and give that: --var x=VALUE"
            )
        if (name in ("@", "*", "#") or re.fullmatch("[0-9]+", name)) and self._reader.calls and name != "0":
            raise ConfigError(f"line {line}: what the function is called with is not known: call it with words that are")
        if name in ("@", "*", "#") or re.fullmatch("[0-9]+", name):
            raise ConfigError(f"line {line}: what the script is called with is not known; give {_asked_for(name)}")
        if name == "IFS":
            raise ConfigError(
                f"line {line}: akrunner cannot tell how bash parts this at IFS: have one character between two words and none "
                "at the ends"
            )
        if not re.fullmatch(r"\w+", name):
            mend = f"--var {holder}=VALUE" if holder else "put it into a variable, x=..., and give that: --var x=VALUE"
            raise ConfigError(f"line {line}: akrunner cannot tell what {name} comes to here; {mend}")
        raise ConfigError(f"line {line}: ${name} has no value; give it: --var {name}=VALUE")


def _may_change(path: str) -> bool:
    """Whether the statements in a file may make or change files."""
    if not os.path.isfile(path) or os.path.getsize(path) > 1_000_000:
        return True
    with open(path, "rb") as opened:
        return _CHANGES.search(opened.read().decode("utf-8", "replace")) is not None


def _asked_for(name: str) -> str:
    """Return what the user has to give if the value of a variable is unknown, in words."""
    if name in ("#", "@", "*") or (re.fullmatch("[0-9]+", name) and name != "0"):
        number = name if re.fullmatch("[0-9]+", name) else "1"
        others = " (and 2, 3, ...)" if name in ("#", "@", "*") else ""
        return f"its arguments, --var {number}=VALUE{others}"
    return f"its variable, --var {name}=VALUE"


def giving(text: str) -> str:
    """Return the name of the variable whose value is unknown, "NAME" if there is none."""
    found = UNKNOWN.search(text)
    return found[1] if found is not None and re.fullmatch(r"\w+", found[1]) else "NAME"


def _requoted(text: str) -> str:
    """Put the quotes that the shell has removed around the value of `name=value` again, if it needs them."""
    name, sign, value = text.partition("=")
    if sign and re.search(r"[\s;'\"]", value):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"{name}='{escaped}'"
    return text
