"""The paths by which a shell script names MaxCompute's client.

Examples are `/opt/odps/bin/odpscmd`, `$ODPS_HOME/bin/odpscmd` and `$(dirname $0)/odpscmd`. Such a file is seldom on this
machine, and must not be started if it is. Bash runs a function in place of a command with slashes in its name, too, if the
function has exactly that name. So this module finds every text that such a path can become, with the values that the script's
own assignments and the environment give its variables. Nothing is run.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping

_PATH = r"(?:\$\{\w+(?::-[^{}\s]*)?\}|[\w$.~+/-])*"
#: a path that ends in the client's name
_NAMED = re.compile(_PATH + r"/odpscmd(?:\.sh)?(?![\w./-])")
_ASSIGNED = re.compile(r"(?:^|[;&|({\s])(\w+)=(\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|()<>\"'`]*)")
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^{}]*))?\}|\$(\w+)")
#: files from which a script may take its variables
_ALSO = re.compile(_PATH + r"\.(?:sh|bash|conf|cfg|env|ini|profile|rc)\b|(?:(?<=\. )|(?<=source ))" + _PATH)
#: the variables that replace `$(dirname "$0")` and `$(cd "$(dirname "$0")/.." && pwd)` in the script's text
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
    """Find the paths by which a script may call the client.

    Args:
        text: the script's text.
        path: the path by which the script is started.
        environment: the variables the script begins with.
    Returns:
        The paths that may stand for the client; and the texts in the script that name the client by a path nobody can know.
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
    """Return the text without comments and without quotes within paths; a variable stands for the script's own directory."""
    text = re.sub(r"(?m)^\s*#.*$", "", text)
    text = re.sub(r"`([^`\n]*)`", r"$(\1)", text)
    text = _REAL.sub(f"${{{_GONE_TO}}}", text)
    text = _DIRNAME.sub(f"${{{_OWN}}}", text)
    text = _WENT.sub(lambda match: f"${{{_GONE_TO}}}{match[1]}", text)
    return re.sub(r"\"(\$\{?\w+\}?)\"(?=/)", r"\1", text)


def _all(
    text: str, folder: str, own: dict[str, list[str]], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, list[str]]]:
    """Return the texts of the script and of the existing files it names, and the values they assign to variables."""
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
    """Return a dict: variable -> the texts that are assigned to it somewhere."""
    found: dict[str, list[str]] = {}
    for name, value in _ASSIGNED.findall(text):
        found.setdefault(name, []).append(value[1:-1] if value[:1] in ('"', "'") else value)
    return found


def _ways(text: str, values: Mapping[str, list[str]], environment: Mapping[str, str]) -> list[str]:
    found = [os.path.expanduser(one) for one in itertools.islice(_expanded(text, values, environment), _MOST_WAYS)]
    # `cd .. && pwd` prints a path without dots; `dirname` leaves the dots as they are
    gone = _GONE_TO in text or _gone(text, values)
    return list(dict.fromkeys(os.path.normpath(one) if gone else one for one in found))


def _gone(text: str, values: Mapping[str, list[str]]) -> bool:
    """Whether the text has a variable that holds what `cd ... && pwd` prints."""
    names = [match[1] or match[3] for match in _VARIABLE.finditer(text)]
    return any(_GONE_TO in value and ".." in value for name in names for value in values.get(name, ()))


def _expanded(text: str, values: Mapping[str, list[str]], environment: Mapping[str, str], depth: int = 0) -> Iterator[str]:
    """Yield every text that results when the variables in it are replaced by their possible values."""
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
