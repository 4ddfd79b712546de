"""Variables that a shell script fills from its input: `read` from a here-document or a pipe, `getopts` from its arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell.flow import MARK, Field, State, of
from akrunner.pai_mode.shell.values import marked

if TYPE_CHECKING:
    from akrunner.pai_mode.shell.reader import Reader


def read(reader: Reader, words: list[Field], line: int) -> State:
    """Follow `read` or `mapfile`: the variables get the text of a here-document or a pipe; if it is unknown, unknown values."""
    rest = [word.text for word in words[1:]]
    raw = False
    while rest[:1] == ["-r"]:
        raw, rest = True, rest[1:]
    text = reader.read_text() if words[0].text == "read" and all(re.fullmatch(r"[A-Za-z_]\w*", one) for one in rest) else None
    if text is None or not rest or reader.why or MARK in text:
        for word in words[1:]:
            for name in re.findall(r"[A-Za-z_]\w*", word.text) if not word.text.startswith("-") else []:
                reader.assign(name, marked(name))
        reader.stdin.text, reader.stdin.file = None, ""
        return State.UNKNOWN
    here, end, reader.stdin.text = text.partition("\n")
    reader.stdin.file = ""
    between = reader.prefixed.get("IFS", reader.value("IFS"))
    values = None if "\\" in here and not raw else _parted(here, len(rest), between)
    for number, name in enumerate(rest):
        reader.assign(name, marked(name) if values is None else values[number] if number < len(values) else "")
    return of(bool(end))


def getopts(reader: Reader, words: list[Field], line: int) -> State:
    """Follow `getopts` over options of one letter, each in a word of its own."""
    texts = [word.text for word in words[1:]]
    held, place = reader.state.arguments, reader.state.known.get("OPTIND", "1") or ""
    if len(texts) != 2 or held is None or not re.fullmatch("[0-9]+", place) or reader.why or MARK in texts[0] + texts[1]:
        reader.assign("OPTIND", marked("OPTIND"))
        reader.assign("OPTARG", marked("OPTARG"))
        return read(reader, [words[0], *words[2:]], line)
    (shape, name), at = texts, int(place)
    word = held[at - 1] if 0 < at <= len(held) else ""
    found, value, at = word[1:2], None, at + 1
    if word in ("", "-", "--") or word[0] != "-":
        reader.assign("OPTIND", str(at if word == "--" else at - 1))
        reader.assign(name, "?")
        return State.NO
    if found == ":" or found not in shape or (f"{found}:" not in shape and len(word) > 2):
        raise ConfigError(
            f"line {line}: akrunner does not read the option {word}: of `getopts {shape}` it takes letters one by one"
        )
    if f"{found}:" in shape:
        value = word[2:] or (held[at - 1] if at <= len(held) else None)
        at += not word[2:]
        if value is None:
            raise ConfigError(f"line {line}: the option {word} has no value")
    reader.assign("OPTIND", str(at))
    reader.assign("OPTARG", value)
    reader.assign(name, found)
    return State.YES


def _parted(text: str, count: int, between: str | None) -> list[str] | None:
    """Split a line into the values that `read` gives to `count` names. None if they are unknown. Args: between: `$IFS`."""
    if between == "":
        return [text]
    if between in (None, " \t\n"):
        whole = text.strip(" \t")
        return [whole] if count == 1 else re.split(r"[ \t]+", whole, maxsplit=count - 1)
    if between is None or not re.fullmatch(r"[^\w\s\0]", between) or (text.endswith(between) and text):
        return None
    return text.split(between, count - 1)
