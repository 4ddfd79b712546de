"""What a record has of a job's arguments: values that JSON can hold, without secrets, and why others are left out."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from akrunner.options import named, of_verb
from akrunner.redact import means_secret, redacted

_HIDDEN = "***"
SECRET = "secret"
#: options with keys, each of which has its own value
KEYED = ("user_params", "env", "defaults", "variables", "parameters")
#: options that say nothing of the job itself
_NEVER = ("observer", "job", "keep_run", "notify", "metrics_file", "metrics_port", "metrics_host", "report", "progress")
#: flags whose values may have a secret anywhere
_SECRET_FLAGS = ("--notify",)
#: how many characters of JSON one argument may have
_MOST = 200_000
_MOST_NAME = 100
#: the same of one of the params that are compared, and the largest whole number that a double holds as it is
_MOST_TEXT, _MOST_WHOLE = 200, 1 << 53


@dataclass(frozen=True)
class Kept:
    """Arguments as a record has them.

    Attributes: values: by the arguments' names; left_out: see `Record.left_out`.
    """

    values: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def kept(verb: str, given: Mapping[str, Any]) -> Kept:
    """Return what is kept of a verb's arguments: those that are no defaults. Args: given: all of them, by name."""
    made = Kept()
    defaults = {one.name: one.default_in(verb) for one in of_verb(verb)}
    for name, value in given.items():
        if name in _NEVER or name not in defaults or _is_same(value, defaults[name]):
            continue
        put(made, name, value)
    return made


def put(made: Kept, name: str, value: Any) -> None:
    """Add an argument to what is kept."""
    if name in KEYED and isinstance(value, Mapping):
        values = {str(key): _keyed(made, name, str(key), inner) for key, inner in value.items()}
        if values:
            made.values[name] = values
    elif name == "script_args" and isinstance(value, (list, tuple)):
        words = without_secrets([str(one) for one in value])
        made.values[name] = words
        if words != [str(one) for one in value]:
            made.left_out[name] = SECRET
    else:
        made.values[name] = _value(made, name, value)
    if len(json.dumps(made.values.get(name), default=str)) > _MOST:
        made.values[name] = "<too long>"
        made.left_out[name] = "it is too long to be kept"


def _keyed(made: Kept, name: str, key: str, value: Any) -> Any:
    """Return one value of an option with keys. One whose name says that it is a secret is hidden, whatever it is."""
    where = f"{name}.{key}"
    if means_secret(key) and not (
        value is None or isinstance(value, bool) or (_is_number(value) and "pass" not in key.lower())
    ):
        made.left_out[where] = SECRET
        return _HIDDEN
    if name != "env" and isinstance(value, Mapping):
        return {str(inner): _keyed(made, where, str(inner), one) for inner, one in value.items()}
    return _value(made, where, value)


def _is_number(value: Any) -> bool:
    """Whether a value is a number, which is hardly ever a secret, whatever its name is: max_token, key."""
    return isinstance(value, (int, float))


def _value(made: Kept, where: str, value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        hidden = redacted(value)
        if hidden != value:
            made.left_out[where] = SECRET
        return hidden
    if isinstance(value, (list, tuple)):
        return [_value(made, where, one) for one in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value) and where.partition(".")[0] != "source":
        return {key: _value(made, where, one) for key, one in value.items()}
    made.left_out[where] = f"it was {_article(value)} of a Python program"
    return f"<{_called(value)}>"


def _article(value: Any) -> str:
    called = _called(value)
    return f"a{'n' if called[:1].lower() in 'aeiou' else ''} {called}"


def _called(value: Any) -> str:
    kind = type(value)
    if kind.__name__ in ("function", "method"):
        return f"function {getattr(value, '__name__', '?')}"[:_MOST_NAME]
    module = kind.__module__.partition(".")[0]
    return (kind.__name__ if module in ("builtins", "akrunner") else f"{module}.{kind.__name__}")[:_MOST_NAME]


def _is_same(value: Any, default: Any) -> bool:
    """Whether a value is a default. Of other objects no method is called, as it may do anything."""
    if type(value) in (list, tuple, dict):
        return not value and not default
    if type(value) is str and type(default) in (int, float):
        # as the command line has it
        return value == str(default)
    return value is default or (type(value) in (bool, int, float, str) and type(value) is type(default) and value == default)


def without_secrets(words: Sequence[str]) -> list[str]:
    """Return a command line with *** for the values of flags, and of NAME=VALUE words, whose names mean secrets."""
    made: list[str] = []
    follows = False
    for word in words:
        name, equals, value = word.partition("=")
        # --param name=value, whose name stands in the word behind the flag
        inner, inner_equals, _ = value.partition("=")
        if follows and not word.startswith("--"):
            # a secret may begin with one -
            made.append(_HIDDEN)
        elif equals and value and (name in _SECRET_FLAGS or ("://" not in word and means_secret(name))):
            made.append(f"{name}={_HIDDEN}")
        elif inner_equals and "://" not in word and means_secret(inner):
            made.append(f"{name}={inner}={_HIDDEN}")
        else:
            made.append(redacted(word))
        follows = word in _SECRET_FLAGS or (word.startswith("-") and not equals and means_secret(word) and not _is_ours(word))
    return made


def _is_ours(word: str) -> bool:
    """Whether a word is a flag of akrunner's own, of which none takes a secret."""
    name = word.lstrip("-").replace("-", "_")
    try:
        return bool(named(name))
    except StopIteration:
        return False


def fields_of(arguments: Any) -> dict[str, Any]:
    """Return the fields of a dataclass of arguments by their names."""
    return {one.name: getattr(arguments, one.name) for one in dataclasses.fields(arguments)}


def hparams(given: Any, hidden: Collection[str] = ()) -> dict[str, bool | float | str]:
    """Return the params of a script as programs that compare runs want them: without secrets, and without what is long.

    Args:
        given: `user_params`.
        hidden: keys whose values come from files: as these may be secrets, only numbers are told.
    Returns: numbers and short texts, by flat names: "model.units".
    """
    made = Kept()
    if isinstance(given, Mapping):
        put(made, "user_params", given)
    values = made.values.get("user_params")
    found = {}
    for where, value in _flat(values if isinstance(values, Mapping) else {}, "user_params"):
        name = where.partition(".")[2]
        secret = name.partition(".")[0] in hidden and (means_secret(name.rpartition(".")[2]) or not _is_number(value))
        told = _compared(value)
        if where not in made.left_out and not secret and told is not None:
            found[name] = told
    return found


def _flat(values: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{where}.{key}")
        else:
            yield f"{where}.{key}", value


def _compared(value: Any) -> bool | float | str | None:
    """Return a value as a number or a text; None if it is too long."""
    if (isinstance(value, int) and abs(value) <= _MOST_WHOLE) or (isinstance(value, float) and math.isfinite(value)):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _MOST_TEXT else None
