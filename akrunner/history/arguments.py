"""What a record has of a job's arguments: values that JSON can hold, without secrets, and why others are left out."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from akrunner.options import named, of_verb
from akrunner.redact import is_secret, redacted

_HIDDEN = "***"
SECRET = "secret"
#: options with keys, each of which has its own value
KEYED = ("user_params", "env", "defaults", "variables", "parameters")
#: options that say nothing of the job itself
_NEVER = ("observer", "job", "keep_run", "notify", "metrics_file", "metrics_port", "metrics_host", "report", "progress")
#: flags whose values may have a secret anywhere
_SECRET_FLAGS = ("--notify",)
#: flags whose values are a user's name and, behind a colon, the password
_USERS = frozenset(["u", "user", "username", "login", "proxy_user", "credentials"])
#: a line of a header, whose name tells: X-Api-Key: abc. Digits behind the colon without a blank are a port
_HEADER = re.compile(r"^([ \t]*-{0,2}([A-Za-z][\w-]*)[ \t]?:(?:[ \t]+|(?!//|\d{1,5}(?:/|$))))(\S.*)$", re.MULTILINE)
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
        if value:
            made.values[name] = _value(made, name, value)
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


def without_secret(name: str, value: Any) -> Any:
    """Return the value of a param, or of an environment variable, with *** for the secrets in it. Args: name: the param's, or the variable's."""
    return _keyed(Kept(), KEYED[0], name, value)


def _keyed(made: Kept, where: str, key: str, value: Any) -> Any:
    """Return one value of an option with keys, or of a value in it. One whose name says that it is a secret is hidden, whatever it is.

    Args: where: the option, and the keys that lead there: "user_params.servers.0".
    """
    # a number that stands for the nulls of a column is no secret
    if is_secret(key, value) and not (where == "defaults" and _is_number(value)):
        made.left_out[f"{where}.{key}"] = SECRET
        return _HIDDEN
    return _value(made, f"{where}.{key}", value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _value(made: Kept, where: str, value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    option, _, within = where.partition(".")
    if isinstance(value, str):
        hidden = _shown(within.rpartition(".")[2], value) if option in KEYED else redacted(value)
        if hidden != value:
            made.left_out[where] = SECRET
        return hidden
    if isinstance(value, (list, tuple)):
        return [_value(made, f"{where}.{place}" if option in KEYED else where, one) for place, one in enumerate(value)]
    if isinstance(value, Mapping) and option in KEYED:
        return {str(key): _keyed(made, where, str(key), one) for key, one in value.items()}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value) and option != "source":
        # its keys are those of the option, or names of columns
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
    """Return a command line with *** for the values of flags, of NAME=VALUE words and of headers, whose names mean secrets, and for the
    password behind a user's name."""
    made: list[str] = []
    flag = ""
    for word in words:
        made.append(_word(flag, word))
        # the value of a flag is none itself
        flag = word if word.startswith("-") and "=" not in word and made[-1] == word else ""
    return made


def _word(flag: str, word: str) -> str:
    """Return a word of a command line without secrets. Args: flag: the word before it, if that may be a flag without a value; else ""."""
    # a secret may begin with one -
    if flag and not word.startswith("--") and (flag in _SECRET_FLAGS or (is_secret(flag, word) and not _is_ours(flag))):
        return _HIDDEN
    # -ume:password, -ptoken=x
    begin, rest = (word[:2], word[2:]) if word[:2] in ("-u", "-p") and word[2:] else ("", word)
    flag = begin or flag
    # --param=name=value has two names
    for _ in range(2):
        name, equals, value = rest.partition("=")
        if not equals or ":" in name:
            break
        if value and (name in _SECRET_FLAGS or is_secret(name, value)):
            return f"{begin}{name}={_HIDDEN}"
        begin, flag, rest = f"{begin}{name}=", name, value
    shown = _shown(flag, rest)
    return redacted(word) if shown == rest else begin + shown


def _shown(name: str, text: str) -> str:
    """Return a text without secrets. Args: name: that of the flag or of the param whose value it is."""
    user, colon, password = text.partition(":")
    if colon and password and "://" not in text and name.lstrip("-").replace("-", "_").lower() in _USERS:
        return f"{user}:{_HIDDEN}"
    if text[:1] in ("{", "["):
        text = _of_json(text)
    headers = _HEADER.sub(lambda line: f"{line[1]}{_HIDDEN}" if is_secret(line[2], line[3]) else line[0], text)
    return redacted(headers)


def _of_json(text: str) -> str:
    """Return a text, if it is JSON, without secrets in it."""
    made = Kept()
    try:
        value = _value(made, KEYED[0], json.loads(text))
        return json.dumps(value) if made.left_out else text
    except (ValueError, RecursionError):
        return text


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
        secret = name.partition(".")[0] in hidden and (is_secret(name.rpartition(".")[2], value) or not _is_number(value))
        told = _compared(value)
        within = any(one == where or one.startswith(f"{where}.") for one in made.left_out)
        if not within and not secret and told is not None:
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
