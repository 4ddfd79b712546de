"""`akrunner doctor`: it examines this machine, or the directory of a job."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import akrunner
from akrunner.checkup.lines import BROKEN, LOOK, OK, Checkup, Line
from akrunner.cli import given, progress, stderr, variables
from akrunner.cli.engines import MASTER
from akrunner.cli.guarded import emit, exit_codes
from akrunner.folders.words import harmless, printable
from akrunner.foreign import redacted
from akrunner.options import named
from akrunner.outcomes import EXIT_FAILED

HELP = """
Check what may make jobs fail on this machine: its Python and TensorFlow, graphics cards, memory, disks, limits, ports, clock, Flink, credentials (found \
or not, never shown), tools. Or, with WORK_DIR, explain what became of a job: which task failed first and why, where the time went, what to change.

Each line says ok, look here, or broken, and what to do. Each check has a time limit. Nothing is left changed: to try a directory, a check writes a file of \
64 kB there and removes it; only a packed --python-env is unpacked into the cache, as a job would do.

[bold]Examples[/bold]

  akrunner doctor

  akrunner doctor --python-env tf1.15 --python-env ~/venvs/tf --flink-master HOST:8081

  akrunner doctor /tmp/akrunner-ab12cd      (a job run with --debug or --work-dir, or the directory of the log of one that failed)
"""
EPILOG = exit_codes(
    "0 nothing is broken; 1 something is, or the job failed; 2 an argument is wrong; 4 stdout could not be written"
)

_STYLES = {OK: "green", LOOK: "yellow", BROKEN: "red"}


def doctor(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    as_json = words["as_json"]
    options = given.options("doctor", words)
    if words["work_dir"] is None:
        # without these options, take the values that a job of the command line would take
        options["python_env"] = options["python_env"] or os.environ.get(named("python_env").variable)
        options["flink_master"] = options["flink_master"] or os.environ.get(MASTER) or None
    options["python_env"] = options["python_env"] or None
    with stderr.working() as console, progress.Line(console, "looking", as_json):
        found = akrunner.doctor(words["work_dir"], **options)
        if words["work_dir"] is None:
            found = dataclasses.replace(found, lines=(*found.lines, *variables_of(os.environ)))
    code = 0 if found.ok else EXIT_FAILED
    if as_json:
        emit({"ok": found.ok, "exit_code": code, **found.asdict()})
    else:
        show(found)
    if code:
        raise typer.Exit(code)


def variables_of(environment: Mapping[str, str]) -> list[Line]:
    """Return what is wrong with the environment variables that jobs of the command line read, or seem to read."""
    wrong = [
        Line("variables", BROKEN, words, "every job is refused: unset it, or mend it") for words in variables.wrong(environment)
    ]
    return wrong + [Line("variables", LOOK, words) for words in variables.unread(environment, "run")]


def show(found: Checkup) -> None:
    """Print the checkup's lines to stdout: as a table on a terminal, else as text whose lines are not wrapped."""
    console = Console(highlight=False)
    if not console.is_terminal:
        typer.echo(harmless(redacted(str(found))))
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True)
        table.add_column()
        table.add_column(overflow="fold")
        for line in found.lines:
            said = Text(harmless(redacted(line.found)))
            if line.do:
                said.append(f"\n-> {harmless(redacted(line.do))}", style="bold")
            table.add_row(Text(line.state, style=_STYLES[line.state]), Text(printable(line.about)), said)
        console.print(table)
    if found.job is None and found.state == OK:
        typer.echo("nothing is in the way of jobs")
