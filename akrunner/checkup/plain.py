"""The cleaning of checks' lines for people: no secrets, no control characters for a terminal, and a limited length."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from akrunner.checks import path_shown
from akrunner.checkup.lines import Line
from akrunner.foreign import redacted

#: the most lines of a finding's text, the most characters of a line, and of all; tracebacks and ends of logs are the longest
_LINES, _CHARACTERS, _ALL = 60, 2000, 40_000
#: characters of the shortest value that is hidden, as a shorter one may be in a text by chance
_SHORTEST = 8
#: endings of the names of variables that hold a directory, a file or a host
_PLACES = ("DIR", "HOME", "TABLES", "PATH", "FILE", "CREDENTIALS", "HOST", "PYTHON")
#: a key: so many letters and digits in a row are in no path's name
_KEY = re.compile(r"[A-Za-z0-9_=+-]{32}")


def plain(line: Line, environ: Mapping[str, str] = os.environ) -> Line:
    """Return a line with cleaned texts. Args: environ: variables whose values are hidden if they may be secrets."""
    about = " ".join(shown(line.about, environ).split())
    return Line(about, line.state, shown(line.found, environ), shown(line.do, environ))


def shown(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a text, of whatever origin, cleaned for people."""
    # before the text is cut: a value, or a secret, that is cut would not be found
    for value, name in _hidden(environ):
        text = text.replace(value, f"(what {name} holds, which is no path)")
    lines = redacted(text)[:_ALL].split("\n")
    more = [f"... and {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
    return "\n".join([*map(_line, lines[:_LINES]), *more])


def _line(text: str) -> str:
    """Return one line of text, cut if it is long, without characters that a terminal would obey."""
    more = "..." if len(text) > _CHARACTERS else ""
    kept = text[:_CHARACTERS]
    return "".join(letter if letter.isprintable() or letter == "\t" else "\N{REPLACEMENT CHARACTER}" for letter in kept) + more


def _hidden(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (value, name) of variables that may hold a secret: several lines, JSON, or a key where a path should be.

    Each value is also yielded in the forms that a library may show: stripped, as a normalized path, escaped.
    """
    for name, value in environ.items():
        strange = "\n" in value or "{" in value or (name.endswith(_PLACES) and _KEY.search(value))
        if len(value) < _SHORTEST or not strange or path_shown(value, "") == value:
            continue
        for one in {value, value.strip(), os.path.normpath(value), repr(value)[1:-1]}:
            if len(one) >= _SHORTEST:
                yield one, name
