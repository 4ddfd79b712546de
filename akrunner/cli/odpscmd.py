"""`akrunner odpscmd`: a stand-in for MaxCompute's client."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

import akrunner
from akrunner.checks import STDIN, check_stdin
from akrunner.cli import show, statements
from akrunner.cli.guarded import exit_codes
from akrunner.folders.words import harmless

if TYPE_CHECKING:
    import pyarrow as pa

    from akrunner.pai_mode.client import Call
    from akrunner.pai_mode.job import Done
    from akrunner.pai_mode.texts import Statements

HELP = """
Stand in for MaxCompute's client, odpscmd, in scripts that call it: take the same arguments, run the statements over local tables or MaxCompute's, and
print rows as odpscmd does. (In a script that `akrunner pai -f run.sh` runs, odpscmd is this command already.)

[bold]Examples[/bold]

  akrunner odpscmd --project=shop -e "select count(*) from iris;"

  akrunner odpscmd -f job.sql

  echo "show tables;" | akrunner odpscmd

-e STATEMENTS, -f FILE or stdin; --project=NAME; -k N: begin with the Nth statement; -M: rows as CSV.
--config, --endpoint,
--tunnel-endpoint, -u, -p, -r, --instance-priority and --schema are ignored.
"""
EPILOG = exit_codes(
    "0 all statements succeeded; 1 the job of one failed, and stderr has the script's traceback; 2 a statement, a table or an argument "
    "is wrong; 3 a table could not be read to its end, or has a value that cannot be converted; 4 what was written could not be "
    "stored",
    "the Flink job was cancelled",
    "a job has taken longer than it may (maxTrainingTimeInHour), and was ended",
)


def odpscmd(ctx: typer.Context) -> None:
    # the words are passed on unparsed, as they are no options of Typer
    from akrunner.pai_mode import client
    from akrunner.pai_mode.arguments import PaiArguments

    words: list[str] = ctx.obj or []
    called = statements.inside("odpscmd", {})
    done: list[Done] = []
    with statements.telling(called, done):
        call = client.parsed(words)
        if call.shown:
            typer.echo(f"akrunner {akrunner.__version__}, in the place of MaxCompute's client")
            return
        options = called.options if called is not None else PaiArguments().by_name()
        if call.project:
            options["project"] = call.project
        quiet = bool(options.get("quiet"))
        screen = show.Screen(as_json=False, quiet=quiet, log=bool(options["debug"]))
        job = statements.Statements(options, screen, False, quiet, done)

        def show_rows(statement: str, rows: pa.Table) -> None:
            text = client.as_printed(statement, rows, call.machine)
            # a program reads the values as they are, from which Typer would cut colours; a person's terminal must not be steered
            typer.echo(harmless(text) if sys.stdout.isatty() else text, color=True)

        job.run(_given(job, call, options), show_rows)


def _given(job: statements.Statements, call: Call, options: dict[str, Any]) -> Statements:
    """Return the statements of a call: from its words and files, or from stdin. Raises: ConfigError: there are none to read."""
    parts = call.parts
    if not parts:
        check_stdin("odpscmd", STDIN)
        if sys.stdin.isatty():
            raise akrunner.ConfigError('odpscmd: nobody can type into it here: give statements, -e "..." or -f FILE')
        parts = (("text", sys.stdin.buffer.read().decode("utf-8", "surrogateescape")),)
    return job.runner.parts(parts, options.get("folder", ""), call.first)
