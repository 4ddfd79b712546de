"""-DhyperParameters and -DuserDefinedParameters -> flags of the script; `oss://` in them -> directories of this machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from akrunner.errors import ConfigError
from akrunner.foreign import redacted

#: up to a blank, a quote, a comma, or what closes a value of JSON
_OSS = re.compile(r"oss://[^\s'\",;|\\)}\]]*", re.IGNORECASE)
_KEY = re.compile(r"-{0,2}[A-Za-z_][\w.\-]*")


def from_file(text: str, name: str) -> list[str]:
    """`key=value` lines of a file of hyper-parameters. Empty lines and those that begin with # say nothing.

    Raises: ConfigError: a line is none.
    """
    found: list[str] = []
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        line = line.strip().rstrip(";,").rstrip()
        if not line or line.startswith(("#", "//")):
            continue
        key, sign, value = line.partition("=")
        key = key.strip()
        if not sign or not _KEY.fullmatch(key):
            raise ConfigError(f"hyperParameters: line {number} of {name} must be key=value, not {redacted(line)[:60]!r}")
        found.append(f"--{key.lstrip('-')}={_unquoted(value.strip())}")
    return found


def from_text(text: str) -> list[str]:
    """The words of -DuserDefinedParameters, as a shell divides them: `--a=1 --b='x y'`, in one line or many.

    A backslash at the end of a line says that it goes on. Raises: ConfigError: a quote is not closed.
    """
    joined = re.sub(r"\\\s*(\n|$)", "\n", text)
    try:
        return shlex.split(joined)
    except ValueError as e:
        raise ConfigError(f"userDefinedParameters: {str(e).lower()}: {redacted(joined)[-80:]!r}") from None


def localised(flags: list[str], local: Callable[[str], str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Flags with every `oss://` in them replaced by the directory it stands for, and what was replaced by what."""
    replaced: list[tuple[str, str]] = []

    def put(match: re.Match[str]) -> str:
        path = local(match[0])
        replaced.append((match[0].partition("?")[0], path))
        return path

    return [_OSS.sub(put, flag) for flag in flags], replaced


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
