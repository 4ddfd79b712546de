"""`{a,b}` and `{01..12}` in a shell's words: one word -> several, as bash expands them before every other expansion.

::

    x{a,$b}"c"    the words x a "c" and x $b "c"
    {1..3}        1 2 3; also {a..e}, {10..0..5}
    {a}, {$a..3}  stay as they are
"""

from __future__ import annotations

import re

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell.nodes import Part, Word, joined

#: an unquoted character; or a part in which braces have no meaning
_Token = str | Part
_Text = list[_Token]
#: how many words one word may become
_MOST = 5000


def words(word: Word) -> list[Word]:
    """Return the words that the braces make of a word.

    Raises:
        ConfigError: there are too many words, or akrunner does not read the braces.
    """
    if not any(part.kind == "text" and not part.quoted and "{" in part.text for part in word.parts):
        return [word]
    tokens: _Text = []
    for part in word.parts:
        tokens += list(part.text) if part.kind == "text" and not part.quoted else [part]
    found = [
        Word(joined([Part("text", one, False) if isinstance(one, str) else one for one in text]), word.line)
        for text in _expanded(tokens, word.line)
    ]
    for one in found:
        _check(one)
    return found


def _check(word: Word) -> None:
    """Check the names in a word.

    Raises:
        ConfigError: the text after the braces has become part of a variable's name, as it does in bash.
    """
    for part, behind in zip(word.parts, word.parts[1:]):
        loose = part.kind == "name" and not part.closed and not part.quoted and re.match("[A-Za-z_]", part.text)
        if loose and behind.kind == "text" and not behind.quoted and re.match(r"\w", behind.text):
            raise ConfigError(
                f"line {word.line}: in braces ${part.text} takes what stands behind them into its name: write ${{{part.text}}}"
            )


def _expanded(text: _Text, line: int) -> list[_Text]:
    place = _place(text)
    if place is None:
        return [text]
    begin, end = place
    before, inner, behind = text[:begin], text[begin + 1 : end], text[end + 1 :]
    if "," in inner:
        made = [one for part in _parts(inner) for one in _expanded(part, line)]
    else:
        if any(isinstance(one, Part) and "," in one.text for one in inner):
            raise ConfigError(
                f"line {line}: akrunner does not read a `..` beside a quoted comma in braces: quote the braces, too"
            )
        sequence = _sequence(inner, line)
        made = [["{", *inner, "}"]] if sequence is None else [list(one) for one in sequence]
    rest = _expanded(behind, line)
    if len(made) * len(rest) > _MOST:
        raise ConfigError(f"line {line}: the braces make more than {_MOST:,} words")
    return [before + one + other for one in made for other in rest]


def _place(text: _Text) -> tuple[int, int] | None:
    """Return the positions of the first brace that is closed and has a comma, or two points, of its own, and of its end."""
    for begin, token in enumerate(text):
        if token != "{" or (not begin and text[1:2] == ["}"]):
            continue
        level, parted = 0, False
        for at in range(begin + 1, len(text)):
            here = text[at]
            if here == "}" and not level and parted:
                return begin, at
            level += 1 if here == "{" else -1 if here == "}" and level else 0
            if not level and (here == "," or (text[at : at + 2] == [".", "."] and text[at + 2 : at + 3] != ["}"])):
                parted = True
    return None


def _parts(text: _Text) -> list[_Text]:
    found: list[_Text] = [[]]
    level = 0
    for token in text:
        level += 1 if token == "{" else -1 if token == "}" and level else 0
        if token == "," and not level:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _sequence(inner: _Text, line: int) -> list[str] | None:
    """Return the values of a sequence such as `1..3`; None if the text is not a sequence."""
    if any(not isinstance(one, str) for one in inner):
        return None
    text = "".join(one for one in inner if isinstance(one, str))
    match = re.fullmatch(r"([-+]?\d+|[A-Za-z])\.\.([-+]?\d+|[A-Za-z])(?:\.\.([-+]?\d+))?", text, re.ASCII)
    if match is None:
        return None
    letters = [one.isalpha() for one in match.groups()[:2]]
    if any(letters):
        if not all(letters):
            return None
        if match[1].islower() != match[2].islower():
            raise ConfigError(f"line {line}: akrunner does not read {{{text}}}, from one case to the other")
    first, last = (ord(one) if all(letters) else int(one) for one in match.groups()[:2])
    step = abs(int(match[3] or 1)) or 1
    if max(abs(first), abs(last), step) >= 2**62 or abs(last - first) // step >= _MOST:
        raise ConfigError(f"line {line}: {{{text}}} makes more than {_MOST:,} words")
    values = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    if all(letters):
        return [chr(one) for one in values]
    padded = any(re.match(r"-?0\d", one) for one in match.groups()[:2])
    width = max(len(match[1]), len(match[2])) if padded else 0
    return [f"{one:0{width}d}" if width else str(one) for one in values]
