"""What checks found, as people may see it: no secret, nothing a terminal obeys, not without end."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from akrunner.checks import path_shown
from akrunner.checkup.lines import Line
from akrunner.foreign import redacted

#: of a line's words: a traceback and the end of a log are the longest
_LINES, _CHARACTERS, _ALL = 60, 2000, 40_000
#: a value that is shorter stands in words by chance
_SHORTEST = 8
#: variables that name a directory, a file or a host end so
_PLACES = ("DIR", "HOME", "TABLES", "PATH", "FILE", "CREDENTIALS", "HOST", "PYTHON")
#: no name has so many letters and digits in a row as keys have
_KEY = re.compile(r"[A-Za-z0-9_=+-]{32}")


def plain(line: Line, environ: Mapping[str, str] = os.environ) -> Line:
    """Args: environ: of which no value is shown that may be a secret."""
    about = " ".join(shown(line.about, environ).split())
    return Line(about, line.state, shown(line.found, environ), shown(line.do, environ))


def shown(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """A text that may have come from anywhere."""
    # one that is cut may lack the end that a value is known by
    for value, name in _hidden(environ):
        text = text.replace(value, f"(what {name} holds, which is no path)")
    lines = redacted(text[:_ALL]).split("\n")
    more = [f"... and {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
    return "\n".join([*map(_line, lines[:_LINES]), *more])


def _line(text: str) -> str:
    """What a terminal cannot be made to do anything by."""
    more = "..." if len(text) > _CHARACTERS else ""
    kept = text[:_CHARACTERS]
    return "".join(letter if letter.isprintable() or letter == "\t" else "\N{REPLACEMENT CHARACTER}" for letter in kept) + more


def _hidden(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(value, name) of those that hold several lines, JSON, or a key where a place should be; also as the path a library makes of it."""
    for name, value in environ.items():
        strange = "\n" in value or "{" in value or (name.endswith(_PLACES) and _KEY.search(value))
        if len(value) < _SHORTEST or not strange or path_shown(value, "") == value:
            continue
        for one in {value, value.strip(), os.path.normpath(value), repr(value)[1:-1]}:
            if len(one) >= _SHORTEST:
                yield one, name
