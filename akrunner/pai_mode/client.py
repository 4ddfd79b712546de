"""The arguments of `odpscmd` -> the statements to run; and the form in which `odpscmd` prints rows.

::

    odpscmd -e "STATEMENTS"      -f FILE      < FILE      there may be several, and they run in their order
    --project=NAME               the project of tables that are named without one
    -k 3                         begin with the third statement
    -M                           print rows as CSV, not in a frame
    --config, --endpoint, ...    how the real client reaches MaxCompute: ignored

Mirrors MaxCompute's client, `odpscmd --help`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from akrunner.checks import whole_of
from akrunner.errors import ConfigError
from akrunner.foreign import redacted
from akrunner.tables import shown
from akrunner.tables.names import check_project

_STATEMENTS = {"-e": "text", "--execute": "text", "-f": "file", "--file": "file"}
#: options that say how the real client reaches MaxCompute -> whether a value follows as a word of its own; some hold secrets
PASSED = {
    "--config": True,
    "--endpoint": True,
    "--tunnel-endpoint": True,
    "-u": True,
    "-p": True,
    "-r": True,
    "--instance-priority": True,
    "--schema": True,
}
#: width, in characters, of the box in which the real client describes a table
_BOX = 84
#: the owner that is printed for every table here
_OWNER = "ALIYUN$local"
#: the real client's columns are no narrower than this
_NARROWEST = 10


@dataclass(frozen=True)
class Call:
    """The parsed arguments of a call of `odpscmd`.

    Attributes:
        parts: ("text", statements) and ("file", path), in their order; empty if the statements come from stdin.
        project: "" if the call names none.
        first: the number of the statement to begin with, from 1.
        machine: whether rows are printed as CSV.
        shown: "help" or "version" if the call asks only for that, otherwise "".
    """

    parts: tuple[tuple[str, str], ...] = ()
    project: str = ""
    first: int = 1
    machine: bool = False
    shown: str = ""


def parsed(words: Sequence[str]) -> Call:
    """Parse the words after `odpscmd`. Raises: ConfigError: a word is not an option of the client, or lacks its value."""
    parts: list[tuple[str, str]] = []
    project, first, machine = "", 1, False
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        name, sign, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in ("-h", "--help", "-v", "--version"):
            return Call(shown="help" if "h" in name else "version")
        if name == "-M":
            machine = True
            continue
        if name not in _STATEMENTS and name not in PASSED and name not in ("--project", "-k"):
            raise ConfigError(_unknown(word, parts))
        if not sign:
            if not rest:
                raise ConfigError(f"odpscmd: {name} needs a value")
            value = rest.pop()
        if name in _STATEMENTS:
            parts.append((_STATEMENTS[name], value))
        elif name == "--project":
            project = check_project(value)
        elif name == "-k":
            first = _number(value)
    return Call(tuple(parts), project, first, machine)


def _unknown(word: str, parts: Sequence[tuple[str, str]]) -> str:
    shown = redacted(word)
    shown = shown if len(shown) <= 40 else shown[:37] + "..."
    if not word.startswith("-") and parts:
        return f'odpscmd: {shown!r} stands behind the statements: quote them as a whole, odpscmd -e "select 1;"'
    known = ", ".join(sorted([*_STATEMENTS, *PASSED, "--project", "-k", "-M"], key=lambda one: one.lstrip("-")))
    return f"odpscmd: {shown!r} is no option of MaxCompute's client; it has {known}"


def _number(value: str) -> int:
    number = whole_of(value)
    if number is None:
        raise ConfigError(f"odpscmd: -k {value[:20]!r}: which statement is to be the first? -k 1, -k 2, ...")
    # for the client, -k 0 means all statements
    return max(1, number)


def as_printed(statement: str, rows: pa.Table, machine: bool) -> str:
    """Return a statement's rows as the client prints them.

    Mirrors ShowPartitionsCommand, ShowTablesCommand and DescribeTableCommand of aliyun-odps-console: names stand one per line,
    below an empty line, and a table's columns stand in a box.

    Args:
        statement: the statement's text.
        rows: its rows.
        machine: whether the call has -M: rows as CSV.
    """
    first, second = [*statement.lower().split(), "", ""][:2]
    if first in ("show", "list", "ls") and second == "partitions":
        return "\n".join(["", *shown.texts(rows.column(0))])
    if first in ("show", "list", "ls") and second == "tables":
        return "\n".join(["", *(f"{_OWNER}:{name}" for name in shown.texts(rows.column(0)))])
    if first in ("desc", "describe") and rows.column_names == ["column", "type", "comment"]:
        return described(rows)
    return as_csv(rows) if machine else framed(rows)


def described(rows: pa.Table) -> str:
    """Return a table's columns in the client's box. Of the box's head, it has only what a table on this machine has."""
    line = "+" + "-" * _BOX + "+"

    def title(text: str) -> list[str]:
        return [f"| {text:<{_BOX - 2}} |", line]

    columns = list(zip(*(shown.texts(column) for column in rows.columns)))
    own = [
        f"| {name:<15} | {kind:<10} | {'':<5} | {comment:<43} |" for name, kind, comment in columns if comment != "partition"
    ]
    keys = [f"| {name:<15} | {kind:<10} | {'':<51} |" for name, kind, comment in columns if comment == "partition"]
    head = f"| {'Field':<15} | {'Type':<10} | {'Label':<5} | {'Comment':<43} |"
    found = ["", line, *title("Native Columns:"), head, line, *own, line]
    return "\n".join([*found, *title("Partition Columns:"), *keys, line] if keys else found)


def framed(rows: pa.Table) -> str:
    """Return rows in the client's frame: three lines of head, a line for each row, and a closing line.

    The layout is exactly the client's, because scripts cut values out of it.
    """
    cells = [shown.texts(column) for column in rows.columns]
    widths = [max([_NARROWEST, len(name), *map(len, column)]) for name, column in zip(rows.column_names, cells)]
    line = "+" + "".join("-" * (width + 2) + "+" for width in widths)
    found = [line, _row(rows.column_names, widths), line]
    found += [_row(row, widths) for row in zip(*cells)]
    # without rows the frame has no closing line
    return "\n".join([*found, line] if rows.num_rows else found)


def as_csv(rows: pa.Table) -> str:
    """Return rows as `odpscmd -M` prints them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows.column_names)
    writer.writerows(zip(*map(shown.texts, rows.columns)))
    return text.getvalue().rstrip("\n")


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + "".join(f"{cell:<{width}} | " for cell, width in zip(cells, widths))
