"""The texts that plans of jobs and plans of predictions have in common."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len, chop_cells

from akrunner.checks import counted
from akrunner.foreign import redacted
from akrunner.history.arguments import without_secret

#: the indent of lines that continue the line above
INDENT = " " * 14
#: how many columns, files, tasks and so on are shown; of more, the first
SHOWN = 40
_GAP = "  "
#: columns of text: those to which the cells of a table are filled up at most; those that a column keeps on any terminal
_WIDEST, _NARROWEST = 40, 8
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


def width_of_terminal() -> int | None:
    """Return the columns of the terminal where a plan is printed, None if there is none."""
    return shutil.get_terminal_size((0, 0)).columns or None


def side_by_side(rows: Sequence[tuple[str, ...]], width: int | None = None) -> list[str]:
    """Return the lines of a table, its headings first.

    Args: width: the columns of the terminal, within which cells are broken; None: no cell is broken.
    """
    widths = [min(_WIDEST, max(cell_len(row[place]) for row in rows)) for place in range(len(rows[0]))]
    if width is None:
        return [_joined(row, widths) for row in rows]
    widths = _narrowed([max(cell_len(row[place]) for row in rows) for place in range(len(rows[0]))], width)
    broken = ([_broken(cell, wide) for cell, wide in zip(row, widths)] for row in rows)
    return [_joined(line, widths) for row in broken for line in itertools.zip_longest(*row, fillvalue="")]


def indented(words: str, width: int | None) -> list[str]:
    """Return the lines of words that continue a line of a plan. Args: width: as for `side_by_side`."""
    return [INDENT + line for line in (_broken(words, max(_NARROWEST, width - len(INDENT))) if width is not None else [words])]


def more_columns(count: int, width: int | None) -> list[str]:
    """Return the lines that say how to see the columns that a plan leaves out. Args: count: how many; width: as for `side_by_side`."""
    told = f"and {counted(count, 'more column')}: --dry-run --json has them all, in Python plan.columns"
    return indented(told, width) if count > 0 else []


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    return (INDENT + _GAP.join(cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths))).rstrip()


def _narrowed(natural: Sequence[int], width: int) -> list[int]:
    """Return the width of each column of a table: narrow ones have what they need, and wide ones share the rest of a terminal."""
    widths = list(natural)
    left = width - len(INDENT) - len(_GAP) * (len(natural) - 1)
    # the narrow columns first: the columns behind them share what they do not need
    for number, place in enumerate(sorted(range(len(natural)), key=lambda at: natural[at])):
        widths[place] = min(natural[place], max(_NARROWEST, left // (len(natural) - number)))
        left -= widths[place]
    return widths


def _broken(cell: str, width: int) -> list[str]:
    """Return a cell in lines of at most `width` columns, broken between words where that can be."""
    lines = [""]
    for word in cell.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines += chop_cells(word, width)
    return lines if lines[0] or len(lines) == 1 else lines[1:]
