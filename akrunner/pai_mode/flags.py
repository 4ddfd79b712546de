"""-DhyperParameters and -DuserDefinedParameters -> the script's flags, with each `oss://` URI replaced by a directory here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from akrunner.errors import ConfigError
from akrunner.foreign import redacted
from akrunner.tables.names import unquoted

#: a URI ends at a blank, a quote, a comma, or a bracket that closes a JSON value
_OSS = re.compile(r"oss://[^\s'\",;|\\)}\]]*", re.IGNORECASE)
_KEY = re.compile(r"-{0,2}[A-Za-z_][\w.\-]*")


def from_file(text: str, name: str) -> list[str]:
    """Return the flags that a file of hyper-parameters gives: `--key=value` for each line `key=value`.

    Empty lines and lines that begin with `#` or `//` are skipped.

    Args:
        text: the file's text.
        name: the file's name, for errors.
    Raises:
        ConfigError: a line is not `key=value`.
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
        found.append(f"--{key.lstrip('-')}={unquoted(value.strip())}")
    return found


def from_text(text: str) -> list[str]:
    """Split -DuserDefinedParameters into words as a shell does: `--a=1 --b='x y'`, on one line or many.

    A backslash at the end of a line continues it. Raises: ConfigError: a quote is not closed.
    """
    joined = re.sub(r"\\\s*(\n|$)", "\n", text)
    try:
        return shlex.split(joined)
    except ValueError as e:
        raise ConfigError(f"userDefinedParameters: {str(e).lower()}: {redacted(joined)[-80:]!r}") from None


def localised(flags: list[str], local: Callable[[str], str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Replace every `oss://` URI in the flags by its local path.

    Args:
        flags: the script's flags.
        local: URI -> local path.
    Returns:
        The new flags; and for each replacement the URI (without its query) and its local path.
    """
    replaced: list[tuple[str, str]] = []

    def put(match: re.Match[str]) -> str:
        path = local(match[0])
        replaced.append((match[0].partition("?")[0], path))
        return path

    return [_OSS.sub(put, flag) for flag in flags], replaced
