"""KEY=VALUE, on the command line and in files.

What stands on a command line can be read by every user of the machine (`ps`). So a value may be in a file: `KEY=@FILE`; variables may all be
(`--env-file`), and params (`--params-file`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import akrunner
from akrunner.checks import KeyTwice, check_stdin, nearest_file, once_each
from akrunner.foreign import ours, redacted

#: more is no value but a user file
_MOST_BYTES = 16 << 20
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}


def pairs(given: Sequence[str], option: str, files: bool = False) -> dict[str, str]:
    """Args: files: whether a value may be `@FILE`. Raises: ConfigError: one is no KEY=VALUE, or its file cannot be read."""
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
    """Of `--env` and `--env-file`, which the former wins over. Args: what: names the files. Raises: ConfigError."""
    found: dict[str, str] = {}
    for path in files:
        found.update(_lines(_read(path, what), path, what))
    return {**found, **pairs(given, "--env", files=True)}


def in_files(given: Sequence[str]) -> set[str]:
    """The keys whose values nobody is to see: they stand in files. Args: given: KEY=VALUE."""
    divided = (one.partition("=") for one in given)
    return {key for key, _, text in divided if text.startswith("@") and not text.startswith("@@")}


def params(given: Sequence[str], path: str | None, what: str = "--params-file") -> dict[str, Any]:
    """Of `--param` and `--params-file`, which the former wins over. Args: what: names the file. Raises: ConfigError."""
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
            raise akrunner.ConfigError(f"{what}: {path} is not JSON: {e}") from None
        except RecursionError:
            raise akrunner.ConfigError(f"{what}: {path} is nested too deep") from None
        if not isinstance(found, dict):
            raise akrunner.ConfigError(f"{what}: {path} must hold an object, not {type(found).__name__}")
    return {**found, **valued(given, "--param", files=True)}


def valued(given: Sequence[str], option: str, files: bool = False) -> dict[str, Any]:
    """KEY=VALUE where VALUE is JSON, else text. Args: files: whether it may be `@FILE`. Raises: ConfigError."""
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
        with ours(akrunner.ConfigError, f"{what}: {path}"), open(path, encoding="utf-8-sig") as f:
            text = _text(f.read, f"{what}: {path}")
    except akrunner.ConfigError as e:
        near = nearest_file(path) if isinstance(e.__cause__, FileNotFoundError) else ""
        raise akrunner.ConfigError(f"{e}{near}{hint}") from e.__cause__
    if len(text) > _MOST_BYTES:
        raise akrunner.ConfigError(
            f"{what}: {path} has more than {_MOST_BYTES >> 20} MiB; lay it beside the script (--user-file)"
        )
    return text


def _text(read: Callable[[int], str], where: str) -> str:
    try:
        return read(_MOST_BYTES + 1)
    except UnicodeDecodeError as e:
        raise akrunner.ConfigError(
            f"{where} is not UTF-8 (it has a byte 0x{e.object[e.start]:02x}); save it as UTF-8"
        ) from None


def _lines(text: str, path: str, what: str) -> dict[str, str]:
    """KEY=VALUE lines; `#` begins a comment line, `export ` may stand before the key. A value may be in quotes: in single ones as it
    is, in double ones with \\n, \\t, \\" and \\\\. Raises: ConfigError: a line is not one, or a key is there twice."""
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


#: steps of `--profile-input` without a number
_STEPS = 20
_NUMBER = re.compile(r"-?[0-9.]+")


def with_numbers(words: Sequence[str]) -> list[str]:
    """A command line whose `--profile-input` has its number, which may be left out, and whose `--dry-run=5` is what Typer knows."""
    found: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--profile-input":
            # what is no file, and no option, is meant to be its number
            own = bool(left) and not (left[0].startswith("-") or os.path.exists(left[0]) or left[0].endswith(".py"))
            found.append(f"{word}={left.pop(0) if own or _NUMBER.fullmatch(''.join(left[:1])) else _STEPS}")
        elif word.startswith("--dry-run="):
            found += ["--dry-run", word.replace("--dry-run", "--dry-run-rows", 1)]
        else:
            found.append(word)
    return found
