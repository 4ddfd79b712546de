"""PAI's command line, as text or as a shell's words -> `Command`: the algorithm, and its -D parameters as they were written.

::

    PAI -name tensorflow1150 -project algo_public     'x' and "x": the quotes go; \" \' and \\ in them become one character
        -Dscript= 'oss://bucket/x.tar.gz'             a blank after the = is ignored
        -Dcluster={"ps": {"count": 1}}                a value that begins with a brace ends where that brace closes
        -DuserDefinedParameters="--a=1                a value may have several lines
          --b='2'";                                   lines that begin with # or --, outside of quotes, are comments
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from akrunner.errors import ConfigError
from akrunner.foreign import redacted
from akrunner.wire.near import nearest

#: options of the command itself that take a value; all but `name` and `project` have a meaning only for PAI's service
_OPTIONS = ("name", "project", "lineage", "jobname", "priority", "settings")
_SWITCHES = ("cost", "verbose")
_BLANK = " \t\r\n\f\v"
_CLOSES = {"{": "}", "[": "]"}


@dataclass(frozen=True)
class Command:
    """A PAI command.

    Attributes:
        name: the algorithm's name.
        project: the algorithm's project, "" if none is given.
        parameters: the -D parameters, in their order.
        others: the command's other options.
        line: the line of its file on which the command begins.
    """

    name: str
    project: str
    parameters: Mapping[str, str]
    others: Mapping[str, str]
    line: int = 1


@dataclass(frozen=True)
class Word:
    """A word of a command. Attributes: text: without quotes; line: where it begins; quoted: whether it began with a quote."""

    text: str
    line: int
    quoted: bool = False


def parsed(text: str, line: int = 1) -> Command:
    """Parse the text of one command.

    Args:
        text: the command, with or without the word PAI and the `;`.
        line: the line of its file on which the text begins.
    Raises:
        ConfigError: the text is not one PAI command.
    """
    words, end = scanned(text, 0, line)
    rest = text[end:].strip()
    if rest:
        at = line + text[:end].count("\n")
        raise ConfigError(f"line {at}: something follows the command's `;`: {_short(rest)}")
    if words and words[0].text.lower() == "pai" and not words[0].quoted:
        words = words[1:]
    return _command(words, line)


def from_words(words: Sequence[str]) -> Command:
    """Parse a command that a shell has split into words, and whose quotes it has removed.

    Raises:
        ConfigError: the words are not a PAI command.
    """
    given = [Word(_bare(word.strip(";") if word == ";" else word), 1) for word in words if word != ";"]
    if given and given[0].text.lower() == "pai":
        given = given[1:]
    return _command(given, 1)


def scanned(text: str, at: int, line: int) -> tuple[list[Word], int]:
    """Split one command into words.

    Args:
        text: the text with the command.
        at: the position in the text at which the command begins.
        line: the line number of that position.
    Returns:
        The words; and the position after the command's `;`, or at the text's end.
    Raises:
        ConfigError: a quote or a brace is not closed.
    """
    words: list[Word] = []
    while at < len(text):
        char = text[at]
        if char == "\n":
            line += 1
        if char in _BLANK or (char == "\\" and text[at + 1 : at + 2] in ("\n", "\r", "")):
            at += 1
        elif char == ";":
            return words, at + 1
        elif _is_comment(text, at):
            at = _line_end(text, at)
        else:
            word, end = _word(text, at, line)
            words.append(word)
            line += text.count("\n", at, end)
            at = end
    return words, at


def _is_comment(text: str, at: int) -> bool:
    """Whether a comment begins here: it must be the first text of its line."""
    begins = text.rfind("\n", 0, at) + 1
    return text.startswith(("#", "--"), at) and not text[begins:at].strip()


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _word(text: str, at: int, line: int) -> tuple[Word, int]:
    """Return the word that begins here, and the position of its end."""
    made = ""
    begin = at
    while at < len(text) and text[at] not in _BLANK and text[at] != ";":
        # a quote means something at the beginning of a word, and of a value
        fresh = at == begin or (text[at - 1] == "=" and made.count("=") == 1 and made.startswith("-"))
        if fresh and text[at] in "'\"":
            value, at = _quoted(text, at, line + text.count("\n", begin, at))
            made += value
        elif fresh and text[at] in _CLOSES and made:
            value, at = _braced(text, at, line + text.count("\n", begin, at))
            made += value
        else:
            made += text[at]
            at += 1
    return Word(made, line, text[begin] in "'\""), at


def _quoted(text: str, at: int, line: int) -> tuple[str, int]:
    """Return the text between the quote here and its closing quote, and the position after that.

    The closing quote is the first of the same kind that is followed by a blank, a `;` or the end of the text.
    """
    quote, begin, made = text[at], at, []
    at += 1
    while at < len(text):
        char = text[at]
        if char == "\\" and text[at + 1 : at + 2] in ("'", '"', "\\"):
            made.append(text[at + 1])
            at += 2
            continue
        if char == quote and (at + 1 == len(text) or text[at + 1] in _BLANK + ";"):
            return "".join(made), at + 1
        made.append(char)
        at += 1
    raise ConfigError(f"line {line}: a {quote} is not closed: {_short(text[begin:])}")


def _braced(text: str, at: int, line: int) -> tuple[str, int]:
    """Return the JSON text from the brace here to the brace that closes it, and the position after that."""
    begin, open_, inside = at, [], False
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == '"':
            inside = not inside
        elif not inside and char in _CLOSES:
            open_.append(_CLOSES[char])
        elif not inside and open_ and char == open_[-1]:
            open_.pop()
            if not open_:
                return text[begin : at + 1].replace('\\"', '"'), at + 1
        at += 1
    raise ConfigError(f"line {line}: a {text[begin]} is not closed: {_short(text[begin:])}")


def _bare(word: str) -> str:
    """Return a word of a shell without the quotes that may still be around its value: those of the PAI command itself."""
    name, sign, value = word.partition("=")
    if sign and word.startswith("-") and len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return f"{name}={_quoted(value, 0, 1)[0]}" if value.count(value[0]) == 2 else word
    return word


def _command(words: list[Word], line: int) -> Command:
    options: dict[str, str] = {}
    parameters: dict[str, str] = {}
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word.quoted or not word.text.startswith("-") or word.text == "-":
            raise ConfigError(
                f"line {word.line}: {_short(word.text)} is no option of a PAI command; did the command before it lose its "
                "`;`, or the value its quotes?"
            )
        if word.text.startswith("-D"):
            name, value = _parameter(word, rest)
            if name in parameters:
                raise ConfigError(f"line {word.line}: -D{name} is given twice; which value is meant?")
            parameters[name] = value
            continue
        name, sign, value = word.text.lstrip("-").partition("=")
        if name.lower() in _SWITCHES and not sign:
            options[name.lower()] = "true"
            continue
        if name.lower() not in _OPTIONS:
            raise ConfigError(f"line {word.line}: PAI has no option {_short(word.text)}{_meant(word.text)}")
        if not sign:
            if not rest or (rest[-1].text.startswith("-") and not rest[-1].quoted):
                raise ConfigError(f"line {word.line}: -{name} needs a value")
            value = rest.pop().text
        options[name.lower()] = value
    algorithm, project = options.pop("name", ""), options.pop("project", "")
    if not algorithm:
        raise ConfigError("-name is missing: write PAI -name tensorflow1150 -Dscript=... -Dtables=...")
    return Command(algorithm, project, parameters, options, line)


def _parameter(word: Word, rest: list[Word]) -> tuple[str, str]:
    """Return the name and value of a -D parameter.

    Args:
        word: the word that begins with -D.
        rest: the words after it, in reverse order; those that belong to the parameter are removed.
    Raises:
        ConfigError: there is no name, or no value.
    """
    text = word.text[2:]
    if not text and rest:
        # `-D name=value`
        text = rest.pop().text
    name, sign, value = text.partition("=")
    if not sign and rest and rest[-1].text.startswith("=") and not rest[-1].quoted:
        # `-Dname =value`, `-Dname = value`
        sign, value = "=", rest.pop().text[1:]
    follows = rest[-1] if rest else None
    if not value and follows is not None and (follows.quoted or not follows.text.startswith("-")):
        sign, value = "=", rest.pop().text
    name = name.strip()
    if not name or not sign:
        raise ConfigError(f"line {word.line}: write -Dname=value, not {_short(word.text)}")
    return name, value


def _meant(text: str) -> str:
    name = text.lstrip("-").partition("=")[0]
    if name[:1].lower() == "d" and len(name) > 1 and "=" in text:
        return f"; did you mean -D{name[1:]}?"
    return nearest(name, list(_OPTIONS)).replace("'", "")


def _short(text: str) -> str:
    text = redacted(" ".join(text.split()))
    return repr(text if len(text) <= 60 else text[:57] + "...")
