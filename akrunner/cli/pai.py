"""`akrunner pai`: it runs scripts of PAI-TensorFlow by their commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

import akrunner
from akrunner.cli import given, show, statements
from akrunner.cli.guarded import emit, of_jobs
from akrunner.folders.words import harmless
from akrunner.foreign import redacted
from akrunner.options import of_command
from akrunner.outcomes import EXIT_USAGE, end_of, failure

if TYPE_CHECKING:
    from akrunner.pai_mode.job import Done, Runner
    from akrunner.pai_mode.texts import Statements

HELP = """
Run a script of PAI-TensorFlow by its command, over local tables (`akrunner tables`) or MaxCompute's. The script and its command stay as they are.

Give the command in quotes or word by word. Or give a file with -f: statements, as odpscmd takes them (job.sql), or a shell script (run.sh). Bash runs the
script, and akrunner stands in for the odpscmd that it calls.

[bold]Examples[/bold]

  akrunner pai "PAI -name tensorflow1150 -Dscript=file:///work/iris.py -Dtables=odps://p/tables/iris -Doutputs=odps://p/tables/out;"

  akrunner pai -name tensorflow1150 -Dscript=train.tar.gz -DentryFile=main.py -Dtables=odps://p/tables/iris --dry-run

  akrunner pai -f job.sql --var bizdate=20260101 --oss-root bucket=./data

  akrunner pai -f run.sh 20260101 --num-workers 1

The names of this command's own options begin with two dashes, except -f, -e and -q; those of PAI's options begin with one.
"""
EPILOG = (
    of_jobs("the script's traceback", "--timeout, or maxTrainingTimeInHour of PAI's command,")
    + " With -f run.sh, it is the exit code of the shell script."
)
#: this command's own options with one dash -> whether they take a value
_OWN = {
    "-h": False,
    **{word: one.type != "bool" for one in of_command("pai") for word in one.words_in("pai") if not word.startswith("--")},
}
#: PAI's options that take the next word as their value, if it is no option of PAI itself
_WITH_VALUE = ("-name", "-project", "-lineage", "-jobname", "-priority", "-settings")

#: characters of a statement that a plan shows
_LONG = 100


def divided(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide a command line into (this command's own words, PAI's words), as Click would read -name as -n -a -m -e."""
    own: list[str] = []
    theirs: list[str] = []
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            own += [word, *reversed(rest)]
            rest = []
        elif word.startswith("-D") or word in _WITH_VALUE:
            theirs.append(word)
            bare = word in ("-D", *_WITH_VALUE) or "=" not in word or word.endswith("=")
            if bare and rest and (rest[-1].startswith("=") or not rest[-1].startswith("-")):
                theirs.append(rest.pop())
        elif word.startswith("-") and not word.startswith("--") and word not in _OWN and len(word) > 1:
            theirs.append(word)
        elif word == ";" or (word.lower() == "pai" and not own and not theirs):
            continue
        else:
            own.append(word)
            if _OWN.get(word) and rest:
                own.append(rest.pop())
    return own, theirs


def pai(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    file, execute, dry_run, as_json = (words[name] for name in ("file", "execute", "dry_run", "as_json"))
    options = {name: value for name, value in given.options("pai", words).items() if name != "file"}
    from akrunner.pai_mode import scripts

    called = statements.inside(
        "pai", {name: value for name, value in options.items() if given.typed(ctx, name) or isinstance(value, dict)}
    )
    done: list[Done] = []
    with statements.telling(called, done):
        options = called.options if called is not None else options
        quiet = words["quiet"] or bool(options.get("quiet"))
        screen = show.Screen(as_json, quiet, bool(options["debug"]), words["logs"], words["progress"])
        job = statements.Statements(options, screen, as_json, quiet, done)
        text, theirs = words["command"], ctx.obj or []
        if file is not None and theirs and scripts.is_shell(file, ""):
            raise akrunner.ConfigError(
                f"{theirs[0]!r} begins with a dash: put the arguments of {file} behind --, akrunner's own before it: akrunner "
                f"pai -f {file} -- {theirs[0]} ..."
            )
        if file is not None and not theirs:
            # the words behind a shell script's name are the script's own arguments
            script = job.runner.script(execute, file, text)
            if script is not None and not dry_run:
                statements.ended(job.run_script(script))
                return
            found = job.runner.read(execute, file, text)
        else:
            found = job.runner.read(_command(text, theirs, execute), file)
        if dry_run:
            _plan(job.runner, found, as_json)
        else:
            job.run(found)


def _command(text: list[str], words: list[str], execute: str | None) -> str | list[str] | None:
    """Return PAI's command from the command line: a text, words, or None. Raises: ConfigError: there are two commands."""
    if execute is not None:
        text = [execute, *text]
    if words:
        if text:
            raise akrunner.ConfigError(f"{text[0]!r}: no option, and no value of one; quote values with blanks: -Dname='a b'")
        return words
    if len(text) > 1:
        raise akrunner.ConfigError(
            "quote PAI's command as a whole, or give its words: akrunner pai -name tensorflow1150 -Dscript=..."
        )
    return text[0] if text else None


def _plan(runner: Runner, found: Statements, as_json: bool) -> None:
    """Print what would be done, statement by statement."""
    from akrunner.pai_mode import plan

    steps = runner.steps(found)
    plans = [step.plan for step in steps if step.plan is not None]
    refused = [step.problem for step in steps if step.problem is not None]
    problem = next(iter([*refused, *(problem for one in plans for problem in one.problems)]), None)
    code = EXIT_USAGE if problem is not None else 0
    if as_json:
        failed = (
            failure(problem, end_of(problem)._replace(code=EXIT_USAGE)) if problem is not None else {"ok": True, "exit_code": 0}
        )
        problems = [str(one) for one in refused]
        unchecked = [*(step.unchecked for step in steps if step.unchecked), *([found.untold] if found.untold else [])]
        told = {"plans": [plan.as_json(one) for one in plans], "notes": list(found.notes)}
        emit({**failed, **told, "problems": problems, "unchecked": unchecked})
        _ended(code)
        return
    for note in found.notes:
        typer.echo(harmless(f"warning: {note}"))
    apart = bool(found.notes)
    for number, step in enumerate(steps):
        # a plan has several lines, and is set apart by empty lines
        if apart or (number and step.plan is not None):
            typer.echo("")
        apart = step.plan is not None
        if step.statement is not None and len(steps) > 1:
            typer.echo(harmless(f"line {step.statement.line}: {_short(redacted(step.statement.text))}"))
        elif step.statement is not None and step.plan is None:
            typer.echo(harmless(_short(redacted(step.statement.text))))
        if step.plan is not None:
            typer.echo(harmless(plan.as_text(step.plan)))
        if step.problem is not None:
            typer.echo(harmless(f"problem: {step.problem}"))
        if step.unchecked:
            typer.echo(harmless(f"not checked: {step.unchecked}"))
    if found.untold:
        typer.echo(harmless(f"{chr(10) if apart else ''}not checked: {found.untold}"))
    _ended(code)


def _short(statement: str) -> str:
    text = " ".join(statement.split())
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."


def _ended(code: int) -> None:
    if code:
        raise typer.Exit(code)


__all__ = ["EPILOG", "HELP", "divided", "pai"]
