"""Words of a shell script -> what they come to, as far as that is known without running anything.

::

    ${x} ${y:-3} ${z%.*} "$@"    a variable's value; one that nobody knows stands between two marks, and goes on so from word to word
    $(pwd), $((n+1))             what a few harmless commands print; of any other a mark
"""

from __future__ import annotations

import abc
import os
import re
from dataclasses import dataclass, field, replace
from typing import Dict, List, Mapping, Optional, Tuple

from akrunner.errors import ConfigError
from akrunner.pai_mode import shellbraces, shellcuts, shellsums
from akrunner.pai_mode.flow import MARK, Field
from akrunner.pai_mode.shellnodes import Assign, Node, Part, Word
from akrunner.pai_mode.shellsyntax import Parser

_PARAMETER = re.compile(r"(#?)([A-Za-z_]\w*|[0-9]+|[@*#?$!-])(?:\[([^\]]*)\])?(.*)\Z", re.DOTALL)
#: what bash itself fills in
_OWN = frozenset(
    (
        "RANDOM SRANDOM SECONDS LINENO BASHPID PPID UID EUID HOSTNAME HOSTTYPE OSTYPE MACHTYPE PIPESTATUS FUNCNAME BASH_SOURCE BASH_LINENO EPOCHSECONDS "
        "EPOCHREALTIME BASH BASH_VERSION BASH_VERSINFO SHELLOPTS BASHOPTS SHLVL OLDPWD OPTIND OPTARG REPLY GROUPS DIRSTACK _"
    ).split()
)


def marked(name: str) -> str:
    return f"{MARK}{name}{MARK}"


@dataclass
class Held:
    """What a subshell has for itself. Attributes: known: variables, None: it is not set; arrays; arguments: None: nobody knows; folder: one is in."""

    known: Dict[str, Optional[str]] = field(default_factory=dict)
    arrays: Dict[str, Optional[List[str]]] = field(default_factory=dict)
    arguments: Optional[List[str]] = None
    folder: Optional[str] = ""
    status: str = "0"
    #: whether `set -e` and `set -u` hold; None: nobody knows
    ends_at_failure: Optional[bool] = False
    needs_values: bool = False
    frozen: Tuple[str, ...] = ()
    #: `set -o pipefail`
    pipes: bool = False
    #: a file has been read into the script: any variable may have any value
    stale: bool = False

    def copy(self) -> "Held":
        arguments = None if self.arguments is None else list(self.arguments)
        return replace(self, known=dict(self.known), arrays=dict(self.arrays), arguments=arguments)


class Values(abc.ABC):
    """The values of a script's words. Attributes: state; given: values that win over the script's."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.given = {name: value for name, value in variables.items() if not name.isdigit()}
        self.places = {name: value for name, value in variables.items() if name.isdigit()}
        numbers = [name for name in variables if name.isdigit() and name != "0"]
        listed = [variables.get(str(number + 1)) for number in range(len(numbers))]
        whole = [one for one in listed if one is not None]
        self.state = Held(arguments=whole if whole and len(whole) == len(numbers) else None, folder=os.getcwd())
        self.calls = 0

    # -- variables

    def value(self, name: str) -> Optional[str]:
        """A value, perhaps with marks. None: the variable is not set, as far as anybody knows."""
        state = self.state
        if name == "?":
            return state.status
        if name.isdigit() and name != "0":
            if state.arguments is not None:
                return state.arguments[int(name) - 1] if int(name) <= len(state.arguments) else None
            return self.places.get(name) if not self.calls else marked(name)
        if name == "#":
            return marked("#") if state.arguments is None else str(len(state.arguments))
        if name in ("@", "*"):
            return marked(name) if state.arguments is None else " ".join(state.arguments)
        if name == "0":
            return self.places.get("0", marked("0"))
        if name in self.given:
            return self.given[name]
        if name in state.arrays:
            held = state.arrays[name]
            return marked(name) if held is None else held[0] if held else None
        if name in state.known:
            return state.known[name]
        if name in _OWN or state.stale or not re.match(r"[A-Za-z_]", name):
            return marked(name)
        if name == "PWD":
            return state.folder if state.folder is not None else marked(name)
        return os.environ.get(name)

    def unset(self, name: str) -> bool:
        """Whether a variable is known to have no value."""
        if name.isdigit() and self.state.arguments is not None:
            return True
        return name in self.state.known and name not in self.given

    # -- words

    def fields(self, words: "List[Word]") -> List[Field]:
        return [one for word in words for one in self.words(word)]

    def text(self, word: Word) -> str:
        """A word that stays one: the right of an assignment, a redirection's target."""
        return self.whole(word).text

    def whole(self, word: Word) -> Field:
        pieces: List[Tuple[str, bool]] = []
        for part in self._tilde(word.parts):
            pieces.append((self._part(part), part.quoted))
        return Field(pieces, _variable(word))

    def words(self, word: Word) -> List[Field]:
        """A command's word: none, one or several."""
        return [one for part in shellbraces.words(word) for one in self._split(part)]

    def _split(self, word: Word) -> List[Field]:
        found: List[Field] = []
        now: List[Tuple[str, bool]] = []
        for part in self._tilde(word.parts):
            if part.kind == "text":
                now.append((part.text, part.quoted))
                continue
            several = self._several(part)
            if several is None:
                value = self._part(part)
                if part.quoted or MARK in value:
                    now.append((value, part.quoted))
                    continue
                several = self._fields(value)
            if several:
                if several[0] or part.quoted:
                    now.append((several[0], part.quoted))
                for one in several[1:]:
                    found += [Field(now)] if now else []
                    now = [(one, part.quoted)] if one or part.quoted else []
        if now and (any(text or quoted for text, quoted in now)):
            found.append(Field(now, _variable(word)))
        return [self._globbed(one) for one in found]

    @staticmethod
    def _globbed(one: Field) -> Field:
        """A pattern is replaced by files nobody knows."""
        if any(not quoted and re.search(r"[*?]|\[.*\]", text, re.DOTALL) for text, quoted in one.pieces if MARK not in text):
            return Field([(marked(one.text.replace(MARK, "$")), False)])
        return one

    def _fields(self, value: str) -> List[str]:
        """An unquoted value in words, with an empty one where it begins or ends in a blank."""
        between = self.value("IFS")
        between = " \t\n" if between is None else between
        if not value:
            return []
        if not between or not any(char in between for char in value):
            return [value] if MARK not in between else [marked("IFS")]
        if not between.strip(" \t\n"):
            return re.split(f"[{between}]+", value)
        found = value.split(between)
        # what becomes of empty ones, and of blanks beside other characters, is not followed
        return found if len(between) == 1 and all(found) and MARK not in between else [marked("IFS")]

    def _several(self, part: Part) -> Optional[List[str]]:
        """Of "$@", "${a[@]}" and a part of them, "${@:2}"."""
        shape = r"(!?)([A-Za-z_]\w*)\[[@*]\](:(?![-=+?]).*)?|([@*])(:(?![-=+?]).*)?"
        match = re.fullmatch(shape, part.text, re.DOTALL) if part.kind == "name" else None
        if match is None or (part.quoted and "*" in part.text.partition(":")[0]):
            return None
        numbers = match[3] or match[5]
        held = self.state.arguments if match[4] else self.state.arrays.get(match[2])
        if held is None or (self.state.stale and not match[4]) or (match[1] and numbers):
            return None
        if match[1]:
            held = [str(number) for number in range(len(held))]
        if numbers:
            sliced = self._sliced(held, numbers[1:], 1 if match[4] else 0)
            if sliced is None:
                return None
            held = sliced
        if part.quoted:
            return list(held)
        return [word for one in held for word in (self._fields(one) if one else []) if word]

    def _sliced(self, held: List[str], numbers: str, first: int) -> Optional[List[str]]:
        """Args: first: the number of the first of them."""
        begin, sign, count = shellcuts.halves(numbers)
        at, length = self._offset(begin), self._offset(count) if sign else len(held)
        if at is None or length is None or length < 0 or (at <= 0 and first and not at < 0) or at < -len(held):
            return None
        at = at + len(held) if at < 0 else at - first
        return held[at : at + length]

    @staticmethod
    def _tilde(parts: List[Part]) -> List[Part]:
        first = parts[0] if parts else None
        if first is None or first.kind != "text" or first.quoted or not first.text.startswith("~"):
            return parts
        if first.text == "~" or first.text.startswith("~/"):
            return [Part("name", "HOME", True), Part("text", first.text[1:], False), *parts[1:]]
        return [Part("text", marked(first.text), False), *parts[1:]]

    def _part(self, part: Part) -> str:
        if part.kind == "text":
            return part.text
        if part.kind == "call":
            return self.called(part.text, part.body)
        return self.sum(part.text) if part.kind == "sum" else self._parameter(part)

    @abc.abstractmethod
    def called(self, text: str, body: "List[Node]") -> str:
        """What `$(...)` prints."""

    @abc.abstractmethod
    def assign(self, name: str, value: Optional[str]) -> None:
        """A variable gets a value. None: none."""

    @property
    @abc.abstractmethod
    def line(self) -> int:
        """Of the command that is read."""

    def sum(self, text: str) -> str:
        """Arithmetic, and what it assigns."""
        plain = "".join(self._part(part) for part in Parser(text.replace('"', "")).double())
        value = self.reckoned(plain)
        return marked(f"(({text.strip()}))") if value is None else str(value)

    def reckoned(self, plain: str) -> Optional[int]:
        """A sum, in which nothing is expanded any more. None: nobody knows; nor what it would have assigned, from then on."""
        try:
            if MARK not in plain:
                return shellsums.Sums(self._number, self.assign).reckon(plain)
        except shellsums.Unsure:
            pass
        except shellsums.Wrong as error:
            raise ConfigError(f"line {self.line}: bash does not reckon `{plain.strip()}`: {error}") from None
        for name in shellsums.names(plain):
            self.assign(name, marked(name))
        return None

    def _number(self, name: str) -> Optional[str]:
        """A variable in a sum."""
        found = self.value(name)
        if found is None and self.unset(name):
            if self.state.needs_values:
                raise ConfigError(f"line {self.line}: {name} is not set, and the script ends there (set -u)")
            return ""
        return None if found is None or MARK in found or name in self.state.arrays else found

    # -- ${...}

    def _parameter(self, part: Part) -> str:
        match = _PARAMETER.match(part.text)
        if part.text.startswith("!"):
            return self._named(part)
        if match is None:
            return marked(part.text)
        count, name, index, operation = match.groups()
        if count and (index in ("@", "*") or name in ("@", "*")):
            held = self.state.arrays.get(name)
            return marked(part.text) if held is None or self.state.stale else str(len(held))
        if operation and (index in ("@", "*") or name in ("@", "*")):
            # it goes for each of them by itself
            return marked(part.text)
        if (index == "*" or name == "*") and self.value("IFS") not in (None, " \t\n"):
            held = self.state.arguments if name == "*" else self.state.arrays.get(name)
            between = self.value("IFS") or ""
            known = part.quoted and held is not None and not self.state.stale and MARK not in between
            return between[:1].join(held or []) if known else marked("IFS")
        value = self._element(name, index) if index is not None else self.value(name)
        if count and not operation:
            # of other letters it is the locale's whether they or their bytes are counted
            return marked(part.text) if value is None or not value.isascii() or MARK in value else str(len(value))
        if count:
            return marked(part.text)
        if re.match(r":?[-=+?]", operation):
            return self._otherwise(name, value, operation, part.quoted)
        if value is None:
            if self.unset(name) and self.state.needs_values:
                raise ConfigError(f"${{{name}}} is not set, and the script ends there (set -u)")
            return "" if self.unset(name) else marked(name)
        if not operation:
            return value
        found = None
        if MARK not in value:
            found = shellcuts.cut(value, operation, part.quoted, self.whole, self._offset)
        return marked(part.text) if found is None else found

    def _offset(self, text: str) -> Optional[int]:
        found = self.sum(text)
        return None if MARK in found else int(found)

    def _named(self, part: Part) -> str:
        """`${!x}`: the variable whose name x holds."""
        name = self.value(part.text[1:]) if re.fullmatch(r"![A-Za-z_]\w*", part.text) else None
        if name is None or not re.fullmatch(r"[A-Za-z_]\w*|[1-9]\d*", name) or name in self.state.arrays:
            return marked(part.text)
        return self._parameter(Part("name", name, part.quoted))

    def _element(self, name: str, index: str) -> Optional[str]:
        held = self.state.arrays.get(name)
        if held is None or self.state.stale:
            return marked(f"{name}[{index}]")
        if index in ("@", "*"):
            return " ".join(held)
        at = self._offset(index)
        if at is None or (at < 0 and -at > len(held)):
            return marked(f"{name}[{index}]")
        return held[at] if at < len(held) else ""

    def _otherwise(self, name: str, value: Optional[str], operation: str, quoted: bool) -> str:
        colon = operation[0] == ":"
        sign, rest = operation[colon], operation[colon + 1 :]
        if value is not None and MARK in value:
            return marked(name)
        there = bool(value) if colon else value is not None
        if sign == "?" and not there:
            raise ConfigError(
                f"the script ends where {name} is not set (${{{name}{operation}}}): give it by --var {name}=VALUE"
            )
        if there != (sign == "+"):
            return value or ""
        made = self._inner(rest, quoted) if there or sign in "-=" else ""
        if sign == "=":
            self.assign(name, made)
        return made

    def _inner(self, text: str, quoted: bool) -> str:
        if quoted and ('"' in text or "\\" in text):
            # quotes in quotes
            return marked(text)
        parser = Parser(text)
        return self.text(Word(parser.double(), 0) if quoted else parser.word(""))

    def array(self, one: Assign) -> Optional[List[str]]:
        """An array's new elements. None: nobody knows."""
        assert isinstance(one.value, list)
        texts = [field.text for field in self.fields(one.value)]
        if any(MARK in text or text.startswith("[") for text in texts) or one.index is not None:
            return None
        before = self.state.arrays.get(one.name, []) if one.sign == "+=" else []
        return None if before is None else [*before, *texts]

    def element(self, one: Assign, value: str) -> Optional[List[str]]:
        """An array after `a[i]=v`. None: nobody knows."""
        held = self.state.arrays.get(one.name, None if self.value(one.name) or self.state.stale else [])
        at = self._offset(one.index or "")
        if held is None or at is None or MARK in value or one.sign == "+=" or not 0 <= at <= len(held):
            return None
        return [*held[:at], value, *held[at + 1 :]]


def _variable(word: Word) -> str:
    if len(word.parts) != 1 or word.parts[0].kind != "name":
        return ""
    return re.sub(r"\W.*", "", word.parts[0].text, flags=re.DOTALL)


def checked(text: str) -> str:
    """Raises: ConfigError: a script has ends of lines that a shell does not take."""
    if "\r" in text:
        raise ConfigError("the script has ends of lines of Windows, which no shell takes: dos2unix FILE")
    return text
