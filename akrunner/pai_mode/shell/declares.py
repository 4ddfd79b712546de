"""`export`, `local`, `declare`, `typeset` and `readonly` of a shell script: the values they set, and in which scope."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import braces
from akrunner.pai_mode.shell.flow import State
from akrunner.pai_mode.shell.nodes import Assign, Word
from akrunner.pai_mode.shell.values import marked

if TYPE_CHECKING:
    from akrunner.pai_mode.shell.reader import Reader


def declared(reader: Reader, name: str, words: Sequence[Word | Assign]) -> State:
    """Follow `export`, `local`, `declare`, `typeset` or `readonly`."""
    if name == "local" and not reader.calls:
        raise ConfigError(f"line {reader.line}: bash takes no `local` outside of a function: leave the word away")
    # bash expands all values before it sets the first
    texts = [
        reader.text(word.value) if isinstance(word, Assign) and isinstance(word.value, Word) and _plain(word) else ""
        for word in words
    ]
    frozen = name == "readonly"
    for word, value in zip(words, texts):
        if isinstance(word, Assign):
            if isinstance(word.value, Word) and braces.words(word.value) != [word.value]:
                raise ConfigError(f"line {reader.line}: bash makes several values of the braces behind {name}: quote them")
            if name in ("local", "declare", "typeset"):
                reader.keep(word.name)
            if not _plain(word):
                reader.assigned(word)
            else:
                reader.assign(word.name, value)
            if frozen:
                reader.state.frozen += (word.name,)
            continue
        text = reader.text(word)
        frozen = frozen or re.fullmatch(r"-\w*r\w*", text) is not None
        if text == "-p":
            reader.emit(marked(f"$({name} -p)"))
        if re.fullmatch(r"[-+]\w*[iluncgA]\w*", text):
            raise ConfigError(f"line {word.line}: akrunner does not read `{name} {text}`: assign the value itself")
        if re.fullmatch(r"\w+", text) and name in ("local", "declare", "typeset"):
            reader.keep(text)
            if any(scope.kind == "function" for scope in reader.scopes):
                reader.assign(text, None)
        if frozen and re.fullmatch(r"\w+", text):
            reader.state.frozen += (text,)
    return State.YES


def _plain(one: Assign) -> bool:
    return not isinstance(one.value, list) and one.index is None and one.sign == "="
