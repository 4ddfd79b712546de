"""Where a shell script names MaxCompute's client by a path: `/opt/odps/bin/odpscmd`, `$ODPS_HOME/bin/odpscmd`.

Such a file is seldom on this machine, and is not to be started if it is. Bash takes a function in place of a command whose name has slashes,
too, if it is the very text; so all that the script's own assignments and the environment can make of it is looked for here. Nothing is run.
"""

from __future__ import annotations

import itertools
import os
import re
from typing import Dict, Iterator, List, Mapping, Set, Tuple

#: a path whose last part is the client's name
_NAMED = re.compile(r"(?:\$\{\w+(?::-[^{}]*)?\}|[\w$.~+/-])*/odpscmd(?:\.sh)?(?![\w./-])")
_ASSIGNED = re.compile(r"(?:^|[;&|({\s])(\w+)=(\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|()<>\"'`]*)")
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^{}]*))?\}|\$(\w+)")
#: files that a script may take its variables from
_ALSO = re.compile(r"[\w./~-]+\.(?:sh|bash|conf|cfg|env|ini|profile|rc)\b")
_MOST_FILES = 20
_MOST_BYTES = 1 << 20
_MOST_WAYS = 64
_DEEPEST = 5


def named(text: str, folder: str, environment: Mapping[str, str]) -> Tuple[List[str], List[str]]:
    """Args: text: of the script; folder: it is in; environment: the variables it begins with.

    Returns: paths that may stand for the client; and what stands in the script of which no path can be told.
    """
    texts = list(_texts(text, folder))
    values = _values(texts)
    found: Dict[str, None] = {}
    untold: Dict[str, None] = {}
    for one in texts:
        for match in _NAMED.finditer(_without_comments(one)):
            ways = list(itertools.islice(_expanded(match[0], values, environment), _MOST_WAYS))
            if ways:
                found.update(dict.fromkeys(os.path.expanduser(way) for way in ways))
            else:
                untold[match[0]] = None
    return list(found), list(untold)


def _texts(text: str, folder: str) -> Iterator[str]:
    """The script's, and those of the files it names that are here."""
    yield text
    seen: Set[str] = set()
    waiting = [text]
    while waiting and len(seen) < _MOST_FILES:
        for name in _ALSO.findall(waiting.pop()):
            for path in (os.path.abspath(os.path.expanduser(name)), os.path.join(folder, name)):
                if path in seen or len(seen) >= _MOST_FILES or not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
                    continue
                seen.add(path)
                try:
                    with open(path, encoding="utf-8", errors="replace") as stream:
                        waiting.append(stream.read())
                except OSError:
                    continue
                yield waiting[-1]


def _without_comments(text: str) -> str:
    return re.sub(r"(?m)^\s*#.*$", "", text)


def _values(texts: List[str]) -> Dict[str, List[str]]:
    """Variable -> the texts that are assigned to it somewhere."""
    found: Dict[str, List[str]] = {}
    for text in texts:
        for name, value in _ASSIGNED.findall(_without_comments(text)):
            found.setdefault(name, []).append(value[1:-1] if value[:1] in "\"'" and value[:1] else value)
    return found


def _expanded(text: str, values: Mapping[str, List[str]], environment: Mapping[str, str], depth: int = 0) -> Iterator[str]:
    """What its variables can make of it."""
    match = _VARIABLE.search(text)
    if match is None:
        if "$" not in text and "`" not in text:
            yield text
        return
    name = match[1] or match[3]
    if depth >= _DEEPEST:
        return
    ways = [*values.get(name, []), *([environment[name]] if name in environment else []), *([match[2]] if match[2] else [])]
    for way in ways or [""]:
        yield from _expanded(text[: match.start()] + way + text[match.end() :], values, environment, depth + 1)
