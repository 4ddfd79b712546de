"""Words of a shell script -> what they come to, as far as that is known without running anything.

::

    ${x} ${y:-3} ${z%.*} "$@"    a variable's value; one that nobody knows stands between two marks, and goes on so from word to word
    $(pwd), $((n+1))             what a few harmless commands print; of any other a mark
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import Dict, List, Mapping, Optional, Tuple

from akrunner.errors import ConfigError
from akrunner.pai_mode.flow import MARK, Field, reckoned
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


class Values:
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
        return [one for word in words for one in self.split(word)]

    def text(self, word: Word) -> str:
        """A word that stays one: the right of an assignment, a redirection's target."""
        return self.whole(word).text

    def whole(self, word: Word) -> Field:
        pieces: List[Tuple[str, bool]] = []
        for part in self._tilde(word.parts):
            pieces.append((self._part(part), part.quoted))
        return Field(pieces, _variable(word))

    def split(self, word: Word) -> List[Field]:
        """A command's word: none, one or several."""
        found: List[Field] = []
        now: List[Tuple[str, bool]] = []
        literal = "".join(part.text for part in word.parts if part.kind == "text" and not part.quoted)
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
        if re.search(r"\{[^{}]*(,|\.\.)[^{}]*\}", literal, re.DOTALL) or (
            literal.count("{") and re.search(r",|\.\.", literal) and "}" in literal
        ):
            return [Field([(marked(literal), False)])]
        return [self._globbed(one) for one in found]

    @staticmethod
    def _globbed(one: Field) -> Field:
        """A pattern is replaced by files nobody knows."""
        if any(not quoted and re.search(r"[*?]|\[.*\]", text, re.DOTALL) for text, quoted in one.pieces if MARK not in text):
            return Field([(marked(one.text.replace(MARK, "$")), False)])
        return one

    def _fields(self, value: str) -> List[str]:
        """An unquoted value in words, with an empty one where it begins or ends in a blank."""
        if self.value("IFS") not in (None, " \t\n") and value:
            return [marked("IFS")]
        if not value:
            return []
        found = re.split(r"[ \t\n]+", value)
        return found

    def _several(self, part: Part) -> Optional[List[str]]:
        """Of "$@" and "${a[@]}"."""
        match = re.fullmatch(r"([A-Za-z_]\w*)\[[@*]\]|([@*])", part.text) if part.kind == "name" else None
        if match is None or (part.quoted and "*" in part.text):
            return None
        held = self.state.arguments if match[2] else self.state.arrays.get(match[1])
        if held is None or (self.state.stale and not match[2]):
            return None
        if part.quoted:
            return list(held)
        return [word for one in held for word in (self._fields(one) if one else []) if word]

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

    def called(self, text: str, body: "List[Node]") -> str:
        raise NotImplementedError

    def sum(self, text: str) -> str:
        """Arithmetic. What it assigns is not known from then on."""
        if re.search(r"\+\+|--|(?<![<>=!])=(?!=)", text):
            for name in re.findall(r"[A-Za-z_]\w*", text):
                self.assign(name, marked(name))
            return marked(f"(({text}))")
        shown = Parser(text).double()
        plain = "".join(self._part(part) for part in shown)

        def put(match: "re.Match[str]") -> str:
            found = self.value(match[0])
            return found if found is not None else "0" if self.unset(match[0]) else MARK

        value = None if MARK in plain else re.sub(r"[A-Za-z_]\w*", put, plain)
        result = reckoned(value) if value is not None and MARK not in value else None
        return marked(f"(({text}))") if result is None else str(result)

    def assign(self, name: str, value: Optional[str]) -> None:
        raise NotImplementedError

    # -- ${...}

    def _parameter(self, part: Part) -> str:
        match = _PARAMETER.match(part.text)
        if match is None or part.text.startswith("!"):
            return marked(part.text)
        count, name, index, operation = match.groups()
        if count and (index is not None or name in "@*"):
            held = self.state.arrays.get(name)
            return str(len(held)) if held is not None and index in ("@", "*") and not self.state.stale else marked(part.text)
        if operation and (index in ("@", "*") or name in ("@", "*")):
            # it goes for each of them by itself
            return marked(part.text)
        if (index == "*" or name == "*") and self.value("IFS") not in (None, " \t\n"):
            return marked("IFS")
        value = self._element(name, index) if index is not None else self.value(name)
        if count and not operation:
            return marked(part.text) if value is None or MARK in value else str(len(value))
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
        found = None if MARK in value else self._cut(value, operation)
        return marked(part.text) if found is None else found

    def _element(self, name: str, index: str) -> Optional[str]:
        held = self.state.arrays.get(name)
        if held is None or self.state.stale:
            return marked(f"{name}[{index}]")
        if index in ("@", "*"):
            return " ".join(held)
        if not index.isdigit():
            return marked(f"{name}[{index}]")
        return held[int(index)] if int(index) < len(held) else ""

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

    def _cut(self, value: str, operation: str) -> Optional[str]:
        """`:0:4`, `%.*`, `##*/`, `/a/b`. None: nobody knows."""
        match = re.fullmatch(r":\s*(\d+)(?::\s*(\d+))?", operation)
        if match is not None:
            begin = int(match[1])
            return value[begin : begin + int(match[2])] if match[2] else value[begin:]
        match = re.fullmatch(r"(##?|%%?)(.*)", operation, re.DOTALL)
        if match is not None:
            pattern = self.whole(Parser(match[2]).word("")).pattern
            if pattern is None:
                return None
            ends = list(range(len(value) + 1))
            if match[1][0] == "#":
                return next(
                    (value[end:] for end in (ends if len(match[1]) == 1 else ends[::-1]) if pattern.match(value[:end])), value
                )
            return next(
                (value[:end] for end in (ends[::-1] if len(match[1]) == 1 else ends) if pattern.match(value[end:])), value
            )
        match = re.fullmatch(r"(//?)([\w.:-]+)(?:/([\w.:-]*))?", operation)
        if match is not None and MARK not in operation:
            return value.replace(match[2], match[3] or "", -1 if match[1] == "//" else 1)
        return None

    def array(self, one: Assign) -> Optional[List[str]]:
        """An array's new elements. None: nobody knows."""
        assert isinstance(one.value, list)
        texts = [field.text for field in self.fields(one.value)]
        if any(MARK in text or text.startswith("[") for text in texts):
            return None
        before = self.state.arrays.get(one.name, []) if one.sign == "+=" else []
        return None if before is None else [*before, *texts]


def _variable(word: Word) -> str:
    if len(word.parts) != 1 or word.parts[0].kind != "name":
        return ""
    return re.sub(r"\W.*", "", word.parts[0].text, flags=re.DOTALL)


def checked(text: str) -> str:
    """Raises: ConfigError: a script has ends of lines that a shell does not take."""
    if "\r" in text:
        raise ConfigError("the script has ends of lines of Windows, which no shell takes: dos2unix FILE")
    return text
