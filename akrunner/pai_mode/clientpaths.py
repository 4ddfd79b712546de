"""Where a shell script names MaxCompute's client by a path: `/opt/odps/bin/odpscmd`, `$ODPS_HOME/bin/odpscmd`, `$(dirname $0)/odpscmd`.

Such a file is seldom on this machine, and is not to be started if it is. Bash takes a function in place of a command whose name has slashes,
too, if it is the very text; so all that the script's own assignments and the environment can make of it is looked for here. Nothing is run.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping

_PATH = r"(?:\$\{\w+(?::-[^{}\s]*)?\}|[\w$.~+/-])*"
#: a path whose last part is the client's name
_NAMED = re.compile(_PATH + r"/odpscmd(?:\.sh)?(?![\w./-])")
_ASSIGNED = re.compile(r"(?:^|[;&|({\s])(\w+)=(\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|()<>\"'`]*)")
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^{}]*))?\}|\$(\w+)")
#: files that a script may take its variables from
_ALSO = re.compile(_PATH + r"\.(?:sh|bash|conf|cfg|env|ini|profile|rc)\b|(?:(?<=\. )|(?<=source ))" + _PATH)
#: `$(dirname "$0")`, `$(cd "$(dirname "$0")/.." && pwd)`: stand for these variables
_OWN, _GONE_TO = "AKRUNNER_OWN_DIRECTORY", "AKRUNNER_OWN_DIRECTORY_FROM_ROOT"
_SELF = r"[\"']?\$\{?(?:0|BASH_SOURCE(?:\[0\])?)\}?[\"']?"
_DIRNAME = re.compile(rf"\$\(\s*dirname\s+(?:--\s+)?{_SELF}\s*\)|\$\{{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}}")
_REAL = re.compile(rf"\$\(\s*dirname\s+[\"']?\$\(\s*(?:readlink\s+-\w+|realpath)\s+{_SELF}\s*\)[\"']?\s*\)")
_WENT = re.compile(
    rf"\$\(\s*cd\s+(?:-\w\s+|--\s+)*[\"']?\$\{{{_OWN}\}}[\"']?([\w./-]*)[\"']?\s*(?:>\s*/dev/null\s*)?(?:2>&1\s*)?(?:&&|;)\s*pwd(?:\s+-\w)?\s*\)"
)
_MOST_FILES = 20
_MOST_BYTES = 1 << 20
_MOST_WAYS = 64
_DEEPEST = 5


def named(text: str, path: str, environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Args: text: of the script; path: of its file, as it is started; environment: the variables it begins with.

    Returns: paths that may stand for the client; and what stands in the script of which no path can be told.
    """
    folder = os.path.dirname(os.path.abspath(path))
    own = {_OWN: [os.path.dirname(path) or "."], _GONE_TO: list(dict.fromkeys([folder, os.path.realpath(folder)]))}
    texts, values = _all(_legible(text), folder, own, environment)
    found: dict[str, None] = {}
    untold: dict[str, None] = {}
    for one in texts:
        for match in _NAMED.finditer(one):
            ways = _ways(match[0], values, environment)
            if ways:
                found.update(dict.fromkeys(ways))
            else:
                untold[match[0].replace(f"${{{_OWN}}}", "$(dirname $0)")] = None
    return list(found), list(untold)


def _legible(text: str) -> str:
    """Without comments; what stands for the script's own directory is a variable, and quotes within a path are gone."""
    text = re.sub(r"(?m)^\s*#.*$", "", text)
    text = re.sub(r"`([^`\n]*)`", r"$(\1)", text)
    text = _REAL.sub(f"${{{_GONE_TO}}}", text)
    text = _DIRNAME.sub(f"${{{_OWN}}}", text)
    text = _WENT.sub(lambda match: f"${{{_GONE_TO}}}{match[1]}", text)
    return re.sub(r"\"(\$\{?\w+\}?)\"(?=/)", r"\1", text)


def _all(
    text: str, folder: str, own: dict[str, list[str]], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, list[str]]]:
    """The script's text, and those of the files it names that are here; and what all of them assign."""
    texts, seen, at = [text], [""], 0
    values = {**own, **_values(text)}
    while at < len(texts):
        for match in _ALSO.finditer(texts[at]):
            for way in _ways(match[0], values, environment):
                for path in (os.path.abspath(way), os.path.join(folder, way)):
                    if path in seen or len(seen) > _MOST_FILES or not os.path.isfile(path):
                        continue
                    seen.append(path)
                    texts.append(_legible(_read(path)))
                    for name, more in _values(texts[-1]).items():
                        values.setdefault(name, []).extend(more)
        at += 1
    return texts, values


def _read(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            data = stream.read(_MOST_BYTES)
    except OSError:
        return ""
    return "" if b"\0" in data else data.decode("utf-8", "replace")


def _values(text: str) -> dict[str, list[str]]:
    """Variable -> the texts that are assigned to it somewhere."""
    found: dict[str, list[str]] = {}
    for name, value in _ASSIGNED.findall(text):
        found.setdefault(name, []).append(value[1:-1] if value[:1] in ('"', "'") else value)
    return found


def _ways(text: str, values: Mapping[str, list[str]], environment: Mapping[str, str]) -> list[str]:
    found = [os.path.expanduser(one) for one in itertools.islice(_expanded(text, values, environment), _MOST_WAYS)]
    # `cd .. && pwd` gives a path without dots, `dirname` what it is given
    gone = _GONE_TO in text or _gone(text, values)
    return list(dict.fromkeys(os.path.normpath(one) if gone else one for one in found))


def _gone(text: str, values: Mapping[str, list[str]]) -> bool:
    """Whether a variable in it holds what `cd ... && pwd` prints."""
    names = [match[1] or match[3] for match in _VARIABLE.finditer(text)]
    return any(_GONE_TO in value and ".." in value for name in names for value in values.get(name, ()))


def _expanded(text: str, values: Mapping[str, list[str]], environment: Mapping[str, str], depth: int = 0) -> Iterator[str]:
    """What its variables can make of it."""
    match = _VARIABLE.search(text)
    if match is None:
        if "$" not in text:
            yield text
        return
    name = match[1] or match[3]
    if depth >= _DEEPEST:
        return
    ways = [*values.get(name, []), *([environment[name]] if name in environment else []), *([match[2]] if match[2] else [])]
    for way in ways or [""]:
        yield from _expanded(text[: match.start()] + way + text[match.end() :], values, environment, depth + 1)
