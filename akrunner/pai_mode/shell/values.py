"""Expands the words of a shell script, as far as their values are known without running anything.

::

    ${x} ${y:-3} ${z%.*} "$@"    a variable's value. An unknown value is the variable's name between two marks, and the marks
                                 stay in every word that contains the value
    $(pwd), $((n+1))             what a few harmless commands print; an unknown value for any other command
"""

from __future__ import annotations

import abc
import os
import re
from collections.abc import Mapping

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import bits, braces, cuts, sums
from akrunner.pai_mode.shell.bits import Bit
from akrunner.pai_mode.shell.flow import MARK, Field
from akrunner.pai_mode.shell.nodes import Assign, Node, Part, Word
from akrunner.pai_mode.shell.scopes import Held
from akrunner.pai_mode.shell.syntax import Parser

_PARAMETER = re.compile(r"(#?)([A-Za-z_]\w*|[0-9]+|[@*#?$!-])(?:\[([^\]]*)\])?(.*)\Z", re.DOTALL)
#: lists, which may become several words even between quotes
_LISTED = re.compile(r"(!?)(?:([A-Za-z_]\w*)\[([@*])\]|([@*]))(.*)\Z", re.DOTALL)
_EACH = re.compile(r"(?:^|[$\{])@|\[@\]")
_BESIDE = re.compile(r"(?:\w+\[\*\]|\*).|(?:\w+(?:\[.*?\])?|[@*#?$!-]):?[-+=]", re.DOTALL)
#: variables that bash itself sets
_OWN = frozenset(
    (
        "RANDOM SRANDOM SECONDS LINENO BASHPID PPID UID EUID HOSTNAME HOSTTYPE OSTYPE MACHTYPE PIPESTATUS FUNCNAME "
        "BASH_SOURCE BASH_LINENO EPOCHSECONDS EPOCHREALTIME BASH BASH_VERSION BASH_VERSINFO SHELLOPTS BASHOPTS SHLVL OLDPWD "
        "OPTIND OPTARG REPLY GROUPS DIRSTACK _"
    ).split()
)


def marked(name: str) -> str:
    return f"{MARK}{name}{MARK}"


class Values(abc.ABC):
    """Expands words, and keeps the variables.

    Attributes:
        state: the variables, arguments and directory of the shell.
        given: the variables that the caller gave: their values before the script sets them, and wherever the script's own value
            is unknown.
        places: the arguments that the caller gave, by number.
        calls: how many functions are being followed.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.given = {name: value for name, value in variables.items() if not re.fullmatch("[0-9]+", name)}
        self.places = {name: value for name, value in variables.items() if re.fullmatch("[0-9]+", name)}
        numbers = [name for name in variables if re.fullmatch("[0-9]+", name) and name != "0"]
        listed = [variables.get(str(number + 1)) for number in range(len(numbers))]
        whole = [one for one in listed if one is not None]
        self.state = Held(
            arguments=whole if whole and len(whole) == len(numbers) else None, folder=os.getcwd(), known=dict(self.given)
        )
        self.calls = 0

    # -- variables

    def value(self, name: str) -> str | None:
        """Return a variable's value, with marks around unknown parts. None if the variable is not set, as far as is known."""
        state = self.state
        if name == "?":
            return state.status
        if re.fullmatch("[0-9]+", name) and name != "0":
            if state.arguments is not None:
                return state.arguments[int(name) - 1] if int(name) <= len(state.arguments) else None
            return self.places.get(name) if not self.calls else marked(name)
        if name == "#":
            return marked("#") if state.arguments is None else str(len(state.arguments))
        if name in ("@", "*"):
            return marked(name) if state.arguments is None else " ".join(state.arguments)
        if name == "0":
            return self.places.get("0", marked("0"))
        if name in state.arrays:
            held = state.arrays[name]
            return marked(name) if held is None else held[0] if held else None
        if name in state.known:
            return state.known[name]
        if state.stale and name in self.given:
            return self.given[name]
        if name in _OWN or state.stale or not re.match(r"[A-Za-z_]", name):
            return marked(name)
        if name == "PWD":
            return state.folder if state.folder is not None else marked(name)
        return os.environ.get(name)

    def unset(self, name: str) -> bool:
        """Whether it is known that a variable has no value, for a variable whose value is None."""
        if re.fullmatch("[0-9]+", name) and self.state.arguments is not None:
            return True
        return name in self.state.known

    # -- words

    def fields(self, words: list[Word]) -> list[Field]:
        return [one for word in words for one in self.words(word)]

    def text(self, word: Word) -> str:
        """Return the text of a word that is not split: the right side of an assignment, or a redirection's target."""
        return self.whole(word).text

    def whole(self, word: Word) -> Field:
        return Field(bits.whole(self._bits(word.parts)), _variable(word))

    def compared(self, word: Word) -> Field:
        """Expand a word of `case`.

        It is unknown if it has, beside something else, a list, or an expansion such as `${x/a/b}` that leaves nothing:
        akrunner does not follow what bash makes of these.
        """
        lists = any(part.kind == "name" and _EACH.search(part.text.replace("*", "@")) for part in word.parts)
        lists = lists or any(
            part.kind == "name" and re.match(r"\w+(?:\[.*?\])?(?:[\^,/]|:(?![-=+?]))", part.text) and not self._part(part)
            for part in word.parts
        )
        return Field([(marked("a list in case"), False)]) if lists and len(word.parts) > 1 else self.whole(word)

    def words(self, word: Word) -> list[Field]:
        """Expand a command's word, which may become no word, one or several."""
        return [one for part in braces.words(word) for one in self._split(part)]

    def _split(self, word: Word) -> list[Field]:
        found = bits.fields(self._bits(word.parts), self.value("IFS"))
        quoted = [part.text for part in word.parts if part.kind == "name" and part.quoted]
        if any(_EACH.search(text) for text in quoted) and len(quoted) > 1 and any(_BESIDE.match(text) for text in quoted):
            # bash splits such an expansion beside "$@", though it is quoted
            found = [[(marked('"$@" beside this'), False)]]
        return [self._globbed(Field(one, _variable(word) if len(found) == 1 else "")) for one in found]

    def _bits(self, parts: list[Part], inner: bool = False) -> list[Bit]:
        """Expand the parts of a word. Args: inner: whether they stand in an unquoted `${x:-...}`."""
        found: list[Bit] = []
        for part in self._tilde(parts):
            if part.kind == "text":
                found.append(Bit(part.text, part.quoted, split=inner and not part.quoted, written=True))
            elif part.kind == "name":
                found += self._named_bits(part)
            else:
                found.append(bits.of(self._part(part), part.quoted))
        return found

    @staticmethod
    def _globbed(one: Field) -> Field:
        """Return the field, or an unknown one if it is a pattern: bash replaces a pattern by the names of files."""
        if any(not quoted and re.search(r"[*?]|\[.*\]", text, re.DOTALL) for text, quoted in one.pieces if MARK not in text):
            return Field([(marked(one.text.replace(MARK, "$")), False)])
        return one

    def _named_bits(self, part: Part) -> list[Bit]:
        """Expand a parameter: `$x`, `${x:-a "b c"}`, `"${a[@]:1}"`."""
        match = _LISTED.match(part.text)
        if match is not None:
            return self._listed(part, match)
        if part.text.startswith("!"):
            named = self._indirect(part.text)
            # x may hold a name such as a[@], which makes several words
            return [bits.unknown(marked(part.text))] if named is None else self._named_bits(Part("name", named, part.quoted))
        match = _PARAMETER.match(part.text)
        if match is not None and not match[1] and re.match(r":?[-=+?]", match[4]):
            value = self._element(match[2], match[3]) if match[3] is not None else self.value(match[2])
            return self._otherwise(match[2], value, match[4], part.quoted)
        if match is not None and not match[1] and match[3] is None and self.state.needs_values and self.value(match[2]) is None:
            raise ConfigError(f"line {self.line}: ${match[2]} has no value, and `set -u` ends the script there")
        return [bits.of(self._parameter(part), part.quoted)]

    def _listed(self, part: Part, match: re.Match[str]) -> list[Bit]:
        """Expand a list: `$@`, `${a[*]}`, `${!a[@]}`, also with an operation on each element: `${a[@]%.*}`."""
        sign, array, index, place, operation = match.groups()
        name, joins = array or place, (index or place) == "*"
        held = self._held(name)
        if sign and held is not None:
            held = [str(number) for number in range(len(held))] if not operation and array else None
        between = self.value("IFS") if joins else " "
        between = " " if between is None else between[:1]
        own = self.value("IFS") not in (None, " \t\n")
        empty = held and not any(held) and operation[:1] == ":" and operation[1:2] in tuple("-=+?")
        if held is None or between == MARK or empty or (own and not part.quoted and "" in held):
            return [Bit(marked(name if not operation else part.text), part.quoted and joins)]
        if re.match(r":?[-=+?]", operation):
            there = " ".join(held) if operation[0] == ":" else held or None
            if operation.lstrip(":")[0] == "=" and not there:
                raise ConfigError(f"line {self.line}: bash cannot assign to {name} by ${{{part.text}}}")
            kept = bits.listed(held, part.quoted, between)
            if bool(there) != ("+" in operation[:2]) and held:
                return [Bit(between.join(held), True)] if joins and part.quoted else kept
            if "+" in operation[:2] and not there:
                return kept if not held and not joins else [Bit("", part.quoted)]
            return self._otherwise(name, between.join(held) if there else None, operation, part.quoted)
        if operation and (own or (array and array not in self.state.arrays)):
            # some of these operations treat a single value as a text
            held = None
        elif operation[:1] == ":":
            held = self._sliced(held, operation[1:], 0 if array else 1)
        elif operation:
            made = [None if MARK in one else cuts.cut(one, operation, part.quoted, self.whole, self._offset) for one in held]
            held = None if None in made else [one for one in made if one is not None]
        if held is None:
            return [Bit(marked(part.text), part.quoted and joins)]
        return [Bit(between.join(held), True)] if joins and part.quoted else bits.listed(held, part.quoted, between)

    def _held(self, name: str) -> list[str] | None:
        """Return the elements of an array, or the arguments; None if they are unknown."""
        if name in ("@", "*"):
            return self.state.arguments
        if self.state.stale and name not in self.given:
            return None
        if name in self.state.arrays:
            return self.state.arrays[name]
        value = self.value(name)
        if value is None:
            return [] if self.unset(name) else None
        return None if MARK in value else [value]

    def _sliced(self, held: list[str], numbers: str, first: int) -> list[str] | None:
        """Return a slice of a list, None if it is unknown.

        Args:
            numbers: the text `offset:length`.
            first: the number of the first element.
        """
        begin, sign, count = cuts.halves(numbers)
        at, length = self._offset(begin), self._offset(count) if sign else len(held)
        if at is None or length is None or length < 0 or (at <= 0 and first and not at < 0) or at < -len(held):
            return None
        at = at + len(held) if at < 0 else at - first
        return held[at : at + length]

    @staticmethod
    def _tilde(parts: list[Part]) -> list[Part]:
        first = parts[0] if parts else None
        if first is None or first.kind != "text" or first.quoted or not first.text.startswith("~"):
            return parts
        if first.text == "~" or first.text.startswith("~/"):
            return [Part("name", "HOME", True), Part("text", first.text[1:], False), *parts[1:]]
        return [Part("text", marked(first.text), False), *parts[1:]]

    def _part(self, part: Part) -> str:
        if part.kind == "text":
            return part.text
        if part.kind == "name":
            return "".join(text for text, _ in bits.whole(self._named_bits(part)))
        if part.kind == "call":
            return self.called(part.text, part.body)
        return self.sum(part.text)

    @abc.abstractmethod
    def called(self, text: str, body: list[Node]) -> str:
        """Return what `$(...)` prints."""

    @abc.abstractmethod
    def assign(self, name: str, value: str | None) -> None:
        """Give a variable a value; None if it is not set."""

    @property
    @abc.abstractmethod
    def line(self) -> int:
        """The line of the command that is being followed."""

    def sum(self, text: str) -> str:
        """Evaluate arithmetic, with its assignments. Return the value as a text, or an unknown value."""
        plain = "".join(self._part(part) for part in Parser(text.replace('"', "")).double())
        value = self.reckoned(plain)
        return marked(f"(({text.strip()}))") if value is None else str(value)

    def reckoned(self, plain: str) -> int | None:
        """Evaluate arithmetic in which everything has been expanded.

        Return None if the value is unknown; then the variables to which it assigns have unknown values afterwards.
        """
        try:
            if MARK not in plain:
                return sums.Sums(self._number, self.assign).reckon(plain)
        except sums.Unsure:
            pass
        except sums.Wrong as error:
            raise ConfigError(f"line {self.line}: bash does not reckon `{plain.strip()}`: {error}") from None
        for name in sums.names(plain):
            self.assign(name, marked(name))
        return None

    def _number(self, name: str) -> str | None:
        """Return the value of a variable in arithmetic: "" if it is not set, None if it is unknown."""
        found = self.value(name)
        if found is None and self.unset(name):
            if self.state.needs_values:
                raise ConfigError(f"line {self.line}: {name} is not set, and the script ends there (set -u)")
            return ""
        return None if found is None or MARK in found or name in self.state.arrays else found

    # -- ${...}

    def _parameter(self, part: Part) -> str:
        match = _PARAMETER.match(part.text)
        if match is None:
            return marked(part.text)
        count, name, index, operation = match.groups()
        if count and (index in ("@", "*") or name in ("@", "*")):
            held = self.state.arrays.get(name)
            return marked(part.text) if held is None or self.state.stale else str(len(held))
        value = self._element(name, index) if index is not None else self.value(name)
        if count and not operation:
            # for other letters, the locale decides whether letters or bytes are counted
            return marked(part.text) if value is None or not value.isascii() or MARK in value else str(len(value))
        if count:
            return marked(part.text)
        if value is None:
            if self.unset(name) and self.state.needs_values:
                raise ConfigError(f"${{{name}}} is not set, and the script ends there (set -u)")
            return "" if self.unset(name) else marked(name)
        if not operation:
            return value
        found = None
        if MARK not in value:
            found = cuts.cut(value, operation, part.quoted, self.whole, self._offset)
        return marked(part.text) if found is None else found

    def _offset(self, text: str) -> int | None:
        found = self.sum(text)
        return None if MARK in found else int(found)

    def _indirect(self, text: str) -> str | None:
        """Return the name that x holds, for `${!x}`; None if it is unknown."""
        name = self.value(text[1:]) if re.fullmatch(r"![A-Za-z_]\w*", text) else None
        if name is None or MARK in name or (re.fullmatch(r"[A-Za-z_]\w*\[.*\]|[@*#?$!-]|0", name, re.DOTALL)):
            return None
        if not re.fullmatch(r"[A-Za-z_]\w*|[1-9]\d*", name):
            raise ConfigError(
                f"line {self.line}: {text[1:]} holds `{name}`, which is no name of a variable: bash does not take ${{{text}}}"
            )
        return None if name in self.state.arrays else name

    def _element(self, name: str, index: str) -> str | None:
        held = self.state.arrays.get(name)
        if held is None or self.state.stale:
            return marked(f"{name}[{index}]")
        if index in ("@", "*"):
            return " ".join(held)
        at = self._offset(index)
        if at is None or (at < 0 and -at > len(held)):
            return marked(f"{name}[{index}]")
        return held[at] if at < len(held) else None

    def _otherwise(self, name: str, value: str | None, operation: str, quoted: bool) -> list[Bit]:
        """Expand `${x:-...}`, `${x=...}`, `${x+...}` or `${x?...}`."""
        colon = operation[0] == ":"
        sign, rest = operation[colon], operation[colon + 1 :]
        if value is not None and MARK in value:
            return [
                bits.of(marked(name), quoted and sign != "+")
                if not quoted or not re.search("[@!]", rest)
                else bits.unknown(marked(name))
            ]
        there = bool(value) if colon else value is not None
        if sign == "?" and not there:
            raise ConfigError(
                f"the script ends where {name} is not set (${{{name}{operation}}}): give it by --var {name}=VALUE"
            )
        if there != (sign == "+"):
            return [bits.of(value or "", quoted)]
        if not there and sign not in "-=":
            return [bits.of("", quoted)]
        made = self._inner(rest, quoted)
        if sign != "=":
            return made
        if not re.match("[A-Za-z_]", name):
            raise ConfigError(
                f"line {self.line}: bash cannot assign to ${name} by ${{{name}{operation}}}: write ${{{name}:-...}}"
            )
        text = "".join(one for one, _ in bits.whole(made))
        self.assign(name, text)
        return [bits.of(text, quoted)]

    def _inner(self, text: str, quoted: bool) -> list[Bit]:
        if not quoted and self.value("IFS") not in (None, " \t\n") and _EACH.search(text.replace("*", "@")):
            return [bits.unknown(marked(text))]
        if not quoted:
            return self._bits(Parser(text).word("").parts, inner=True)
        found = self._bits(Parser(text).double('$`"\\}', quotes=True))
        return [Bit("", True) if one.kind == "none" else one for one in found] or [Bit("", True)]

    def array(self, one: Assign) -> list[str] | None:
        """Return an array's elements after an assignment; None if they are unknown."""
        assert isinstance(one.value, list)
        texts = [field.text for field in self.fields(one.value)]
        if any(MARK in text or text.startswith("[") for text in texts) or one.index is not None:
            return None
        before = (self._held(one.name) if self.value(one.name) is not None else []) if one.sign == "+=" else []
        return None if before is None else [*before, *texts]

    def element(self, one: Assign, value: str) -> list[str] | None:
        """Return an array's elements after `a[i]=v`; None if they are unknown."""
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
    """Return the text. Raises: ConfigError: it has the line ends of Windows, which no shell accepts."""
    if "\r" in text:
        raise ConfigError("the script has ends of lines of Windows, which no shell takes: dos2unix FILE")
    return text
