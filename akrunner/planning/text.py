"""The texts that plans of jobs and plans of predictions have in common."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from akrunner.foreign import redacted
from akrunner.history.arguments import without_secret

#: the indent of lines that continue the line above
INDENT = " " * 14
#: how many columns, files, tasks and so on are shown; of more, the first
SHOWN = 40
#: the text shown in place of a secret
HIDDEN = "***"


def neat(path: str) -> str:
    """Return a path without `dir/../`, if that leads to the same file. (A path of a job file has the file's directory in
    front.)
    """
    if ".." not in path.split(os.sep) or "://" in path:
        return path
    short = os.path.normpath(path) + (os.sep if path.endswith(os.sep) else "")
    # if `dir` is a link, `dir/..` is another directory
    return short if os.path.realpath(short) == os.path.realpath(path) else path


def value_shown(name: str, value: Any) -> str:
    """Return a value as text, with *** in place of the secrets that a run's record does not have."""
    told = without_secret(name, value)
    text = told if isinstance(told, str) else json.dumps(told)
    return redacted(f"{name}={text}").partition("=")[2]


def interpreter_shown(python: str, version: str, tensorflow: str, keras: str) -> str:
    """Return an interpreter and its packages in words. Args: version: Python's version, "" if only the cluster can tell."""
    if not version:
        return f"{python} (on the cluster)"
    packages = (("Python", version), ("TensorFlow", tensorflow), ("Keras", keras))
    return f"{python} ({', '.join(f'{name} {number}' for name, number in packages if number)})"


def line_of_given(given: Sequence[str]) -> list[str]:
    """Return the line that says where each value of a plan came from; [] if there is nothing to say."""
    return line_of("given", "; ".join(given)) if given else []


def line_of(name: str, words: str) -> list[str]:
    """Return a line of a plan, as a list with one element."""
    return [f"{name + ':':14}{words}"]


def side_by_side(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table, its headings first."""
    widths = [min(40, max(len(row[place]) for row in rows)) for place in range(len(rows[0]))]
    return [(INDENT + "  ".join(cell.ljust(width) for cell, width in zip(row, widths))).rstrip() for row in rows]
