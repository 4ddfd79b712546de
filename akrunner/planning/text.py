"""What the plans of a job and of a prediction say in the same words."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from akrunner.foreign import redacted

#: what lines begin with that go on with what is said above them
INDENT = " " * 14
#: columns, files, tasks and such that are shown, of more the first
SHOWN = 40
#: what stands for a secret
HIDDEN = "***"


def neat(path: str) -> str:
    """A path without `dir/../`, where that is the same place: those of a job file are put behind its directory."""
    if ".." not in path.split(os.sep) or "://" in path:
        return path
    short = os.path.normpath(path) + (os.sep if path.endswith(os.sep) else "")
    # what is up from a link is somewhere else
    return short if os.path.realpath(short) == os.path.realpath(path) else path


def value_shown(name: str, value: Any) -> str:
    """A value as text; of one whose name says that it is a secret, ***."""
    text = value if isinstance(value, str) else json.dumps(value)
    return redacted(f"{name}={text}").partition("=")[2]


def interpreter_shown(python: str, version: str, tensorflow: str, keras: str) -> str:
    """An interpreter and what is in it. Args: version: its own, "" where only the cluster can tell."""
    return python + (f" (Python {version}, TensorFlow {tensorflow}, Keras {keras})" if version else " (on the cluster)")


def line_of_given(given: Sequence[str]) -> list[str]:
    """Where each value of a plan came from; none: it was all given in one place."""
    return line_of("given", "; ".join(given)) if given else []


def counted(number: int, what: str) -> str:
    """ "1 row", "2,000 rows"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def line_of(name: str, words: str) -> list[str]:
    """A line of a plan, as a list of one."""
    return [f"{name + ':':14}{words}"]


def side_by_side(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of a table, its headings first."""
    widths = [min(40, max(len(row[place]) for row in rows)) for place in range(len(rows[0]))]
    return [(INDENT + "  ".join(cell.ljust(width) for cell, width in zip(row, widths))).rstrip() for row in rows]
