"""KEY=VALUE pairs, on the command line and in files.

Every user of a machine can read its command lines (`ps`). So a value can be in a file (`KEY=@FILE`), and so can all variables
(`--env-file`) and all params (`--params-file`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

import akrunner
from akrunner import argument_files
from akrunner.checks import KeyTwice, check_stdin, nearest_file, once_each, why_not
from akrunner.foreign import ours, redacted

#: bytes of the longest value; a longer one should be a user file
_MOST_BYTES = 16 << 20
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}
#: the name under which a command's context has the words of the whole command line
GIVEN = "akrunner.given"


def pairs(given: Sequence[str], option: str, files: bool = False) -> dict[str, str]:
    """Return the pairs of KEY=VALUE texts, as a dict.

    Args: option: names them in errors; files: whether a value may be `@FILE`.
    Raises: ConfigError: a text is no KEY=VALUE, or a file cannot be read.
    """
    found: dict[str, str] = {}
    for one in given:
        key, sign, value = one.partition("=")
        if not sign or not key:
            raise akrunner.ConfigError(f"{option} {redacted(one if not sign else '=...')}: write KEY=VALUE")
        if files and value.startswith("@@"):
            value = value[1:]
        elif files and value.startswith("@"):
            value = _read(value[1:], f"{option} {key}=@FILE", "; for text that begins with @ write @@").rstrip("\r\n")
        found[key] = value
    return found


def environment(given: Sequence[str], files: Sequence[str], what: str = "--env-file") -> dict[str, str]:
    """Return the variables of `--env` and `--env-file`; a variable of `--env` wins over one of a file.

    Args: given: KEY=VALUE texts; files: paths; what: names the files in errors.
    Raises: ConfigError: a text or a file is wrong.
    """
    found: dict[str, str] = {}
    for path in files:
        found.update(_lines(_read(path, what), path, what))
    return {**found, **pairs(given, "--env", files=True)}


def in_files(given: Sequence[str]) -> set[str]:
    """Return the keys whose values are in files, and so must not be shown. Args: given: KEY=VALUE texts."""
    divided = (one.partition("=") for one in given)
    return {key for key, _, text in divided if text.startswith("@") and not text.startswith("@@")}


def params(given: Sequence[str], path: str | None, what: str = "--params-file") -> dict[str, Any]:
    """Return the params of `--param` and `--params-file`; a param of `--param` wins over one of the file.

    Args: given: KEY=VALUE texts; path: the JSON file, None if there is none; what: names the file in errors.
    Raises: ConfigError: a text or the file is wrong.
    """
    found: dict[str, Any] = {}
    if path is not None:
        text = _read(path, what)
        try:
            found = json.loads(text, object_pairs_hook=once_each)
        except KeyTwice as e:
            raise akrunner.ConfigError(
                f"{what}: {path} has the key {str(e)!r} twice in one object; which value is meant?"
            ) from None
        except ValueError as e:
            raise akrunner.ConfigError(f"{what}: {path} is not JSON: {why_not(e)}") from None
        except RecursionError:
            raise akrunner.ConfigError(f"{what}: {path} is nested too deep") from None
        if not isinstance(found, dict):
            raise akrunner.ConfigError(f"{what}: {path} must hold an object, not {type(found).__name__}")
    return {**found, **valued(given, "--param", files=True)}


def valued(given: Sequence[str], option: str, files: bool = False) -> dict[str, Any]:
    """Return the pairs of KEY=VALUE texts; a VALUE that is JSON is parsed, any other is text.

    Args: option: names them in errors; files: whether a value may be `@FILE`.
    Raises: ConfigError: a text or a file is wrong.
    """
    found: dict[str, Any] = {}
    for key, text in pairs(given, option, files).items():
        try:
            found[key] = json.loads(text, object_pairs_hook=once_each)
        except KeyTwice as e:
            raise akrunner.ConfigError(
                f"{option} {key} has the key {str(e)!r} twice in one object; which value is meant?"
            ) from None
        except ValueError:
            found[key] = text
        except RecursionError:
            raise akrunner.ConfigError(f"{option} {key} is nested too deep") from None
    return found


def _read(path: str, what: str, hint: str = "") -> str:
    if not path:
        raise akrunner.ConfigError(f"{what} is empty: give a path{hint}")
    if "://" in path:
        raise akrunner.ConfigError(
            f"{what}: {redacted(path)} is a URL, and this must be a file of this machine: download it first{hint}"
        )
    check_stdin(f"{what}: {path}", path)
    try:
        with ours(akrunner.ConfigError, f"{what}: {path}"):
            data = argument_files.read(path, _MOST_BYTES + 1)
    except akrunner.ConfigError as e:
        near = nearest_file(path) if isinstance(e.__cause__, FileNotFoundError) else ""
        raise akrunner.ConfigError(f"{e}{near}{hint}") from e.__cause__
    if len(data) > _MOST_BYTES:
        raise akrunner.ConfigError(
            f"{what}: {path} has more than {_MOST_BYTES >> 20} MiB; lay it beside the script (--user-file)"
        )
    try:
        return argument_files.decoded(data).replace("\r\n", "\n").replace("\r", "\n")
    except argument_files.NotUtf8 as e:
        raise akrunner.ConfigError(f"{what}: {path}: {e}") from None


def _lines(text: str, path: str, what: str) -> dict[str, str]:
    """Return the pairs of KEY=VALUE lines.

    `#` begins a comment line, and `export ` may come before the key. A value may be in quotes: in single quotes it is taken as
    it is, in double quotes \\n, \\t, \\" and \\\\ are escapes.
    Raises: ConfigError: a line is no KEY=VALUE, or a key is there twice.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip().removeprefix("export ").lstrip()
        if not line or line.startswith("#"):
            continue
        key, sign, value = line.partition("=")
        key, where = key.strip(), f"{what}: line {number} of {path}"
        if not sign or not key:
            raise akrunner.ConfigError(f"{where}: write KEY=VALUE")
        if len(key.split()) > 1:
            raise akrunner.ConfigError(f"{where}: {key!r} is no name of a variable; it has a blank")
        if key in found:
            raise akrunner.ConfigError(f"{where} gives {key} once more; which value is meant?")
        found[key] = _unquoted(value.strip(), where)
    return found


def _unquoted(value: str, where: str) -> str:
    quote = value[:1]
    if quote not in ("'", '"'):
        return value
    made: list[str] = []
    rest = iter(value[1:])
    for char in rest:
        if char == quote:
            if "".join(rest).strip():
                raise akrunner.ConfigError(f"{where}: something follows the closing quote")
            return "".join(made)
        if char == "\\" and quote == '"':
            char = next(rest, "")
            char = _ESCAPES.get(char, "\\" + char)
        made.append(char)
    raise akrunner.ConfigError(f"{where}: a quote is not closed")


#: number of steps if `--profile-input` is given without a number
_STEPS = 20
_NUMBER = re.compile(r"-?[0-9.]+")
#: what follows `--mlflow` if it is the URI of a server: other words may be the script's
_SERVER = re.compile(r"(?!.*\.py\Z)[\w+.-]+://.*|databricks[\w-]*|auto")
#: what it gets if nothing of the kind follows
_AUTO = "auto"


def with_values(words: Sequence[str]) -> list[str]:
    """Return a command line that Typer understands.

    `--profile-input` and `--mlflow` get their defaults if they have no value, and `--dry-run=5` becomes `--dry-run --dry-run-rows=5`.
    """
    found: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--profile-input":
            # the next word is meant as the number if it is neither a file nor an option
            own = bool(left) and not (left[0].startswith("-") or os.path.exists(left[0]) or left[0].endswith(".py"))
            found.append(f"{word}={left.pop(0) if own or _NUMBER.fullmatch(''.join(left[:1])) else _STEPS}")
        elif word == "--mlflow":
            found.append(f"{word}={left.pop(0) if _SERVER.fullmatch(''.join(left[:1])) else _AUTO}")
        elif word.startswith("--dry-run="):
            found += ["--dry-run", word.replace("--dry-run", "--dry-run-rows", 1)]
        else:
            found.append(word)
    return found
