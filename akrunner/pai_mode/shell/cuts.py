"""The operations of `${x...}` on a known value.

::

    ${x:2:3} ${x: -2} ${x:i}        a part of it; the numbers may be arithmetic
    ${x%.*} ${x##*/}                without an end or a beginning
    ${x/a/b} ${x//a/b} ${x/#a/b}    with one text replaced by another
    ${x^^} ${x,} ...                in upper or lower case
"""

from __future__ import annotations

import re
from collections.abc import Callable

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell.flow import MARK, Field
from akrunner.pai_mode.shell.nodes import Word
from akrunner.pai_mode.shell.syntax import Parser

#: a word -> the field it expands to
Wholes = Callable[[Word], Field]


def cut(value: str, operation: str, quoted: bool, whole: Wholes, reckon: Callable[[str], int | None]) -> str | None:
    """Apply an operation to a value.

    Args:
        value: the variable's value.
        operation: everything after the variable's name.
        quoted: whether the expansion stands between double quotes.
        whole: expands a word.
        reckon: evaluates arithmetic, None if its value is unknown.
    Returns:
        The result, None if it is unknown.
    """
    if operation[0] == ":":
        return _part(value, operation[1:], reckon)
    if operation in ("^", "^^", ",", ",,"):
        return _cased(value, operation) if value.isascii() else None
    match = re.fullmatch(r"(##?|%%?)(.*)", operation, re.DOTALL)
    if match is not None:
        pattern = whole(Parser(match[2]).word("")).pattern
        return None if pattern is None else _without(value, match[1], pattern)
    return _replaced(value, operation[1:], quoted, whole) if operation[0] == "/" else None


def _part(value: str, numbers: str, reckon: Callable[[str], int | None]) -> str | None:
    if not value.isascii() or re.search(r"[?'\"`]", numbers):
        return None
    first, sign, second = halves(numbers)
    begin = reckon(first)
    length = reckon(second) if sign else None
    if begin is None or (sign and length is None):
        return None
    if begin < 0:
        begin += len(value)
    if begin < 0 or begin > len(value):
        return ""
    if length is None:
        return value[begin:]
    if length >= 0:
        return value[begin : begin + length]
    if len(value) + length < begin:
        raise ConfigError(f"bash takes no ${{...:{numbers}}} of a text of {len(value)}: its end is in front of its beginning")
    return value[begin : len(value) + length]


def halves(numbers: str) -> tuple[str, str, str]:
    """Split `offset:length` into offset, ":" and length, at the colon outside of brackets. Without one, the last two are ""."""
    depth = 0
    for at, char in enumerate(numbers):
        depth += (char in "({[") - (char in ")}]")
        if char == ":" and not depth:
            return numbers[:at], ":", numbers[at + 1 :]
    return numbers, "", ""


def _cased(value: str, sign: str) -> str:
    change = str.upper if sign[0] == "^" else str.lower
    return change(value) if len(sign) == 2 else change(value[:1]) + value[1:]


def _without(value: str, sign: str, pattern: re.Pattern[str]) -> str:
    ends: list[int] = list(range(len(value) + 1))
    if sign[0] == "#":
        return next((value[end:] for end in (ends if len(sign) == 1 else ends[::-1]) if pattern.match(value[:end])), value)
    return next((value[:end] for end in (ends[::-1] if len(sign) == 1 else ends) if pattern.match(value[end:])), value)


def _replaced(value: str, operation: str, quoted: bool, whole: Wholes) -> str | None:
    everywhere = operation[:1] == "/"
    operation = operation[everywhere:]
    anchor = operation[:1] if operation[:1] in ("#", "%") and not everywhere else ""
    parser = Parser(operation[len(anchor) :])
    pattern = whole(parser.word("/")).glob
    rest = parser.text[parser.at + 1 :]
    if quoted and re.search(r"['\"]", rest):
        # akrunner does not follow quotes within quotes
        return None
    if pattern is None or "\\" in rest or rest.startswith("~") or (operation[:1] in ("#", "%", "/") and everywhere):
        return None
    put = whole(Parser(rest).word("")) if rest else Field([])
    if MARK in put.text or "&" in put.text:
        # the meaning of & in a replacement depends on bash's version
        return None
    if not pattern:
        return {"": value, "#": put.text + value, "%": value + put.text}[anchor] if not everywhere else value
    if re.fullmatch(r"(\.\*)+", pattern) and not value:
        return None
    shape = {"": pattern, "#": rf"\A(?:{pattern})", "%": rf"(?:{pattern})\Z"}[anchor]
    return re.sub(f"(?s:{shape})", lambda _: put.text, value, count=0 if everywhere and not pattern.startswith(".*") else 1)
