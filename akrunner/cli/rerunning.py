"""`akrunner rerun`: the command of a run that was kept, once more. What the run was given are defaults, as of a job file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

import akrunner
from akrunner import jobfile
from akrunner.cli import jobfiles
from akrunner.cli.guarded import of_jobs
from akrunner.options import named, of_command

HELP = """
Run a job again with the arguments of a run that was kept. Options behind the run's name are others this time, as behind a job file;
`akrunner run --help-all` (or train, stream, predict) shows them. Relative paths are those of the directory of that run.

[bold]Examples[/bold]

  akrunner rerun last

  akrunner rerun r42 --num-workers 4 --param lr=0.01 --output again.parquet
"""
EPILOG = of_jobs("the script's traceback", "the job's own limit")


def rerun(run: str = typer.Argument(..., help="The run: r42; last for the newest one, last-1 for the one before it.")) -> None:
    """Stands for the command in the list of commands: `line` turns its words into those of another command."""
    raise akrunner.ConfigError(f"rerun {run}: give the run's name first, and options behind it")


def command_of(words: Sequence[str]) -> str:
    """Return the command that a line of `rerun` stands for. Raises: ConfigError: there is no such run, or it cannot be repeated."""
    from akrunner.runs import get

    verb = get(_named(words)).verb
    if verb not in jobfile.HEADS:
        raise akrunner.ConfigError(f"rerun: a run of {verb} cannot be repeated: give its command again")
    return verb.partition("_")[0]


def line(command: Any, words: Sequence[str], script_args: Sequence[str]) -> jobfiles.Line:
    """Return the command line that a line of `rerun` stands for.

    Args: command: Typer's command of it; words: `rerun`, the run, options; script_args: the words behind `--`.
    Raises: ConfigError: something of the run was not kept, and is not given.
    """
    from akrunner.runs import get
    from akrunner.runs.repeating import lacking_words, values_of

    run = get(_named(words))
    name, head, more = command_of(words), jobfile.HEADS[run.verb], words[2:]
    lacking = [where for where in run.left_out if not _gives(name, more, where, script_args)]
    if lacking:
        raise akrunner.ConfigError(f"{run.id} cannot be repeated as it was: {lacking_words(run, lacking, python=False)}")
    values = values_of(run)
    first = str(values.pop(head))
    own = values.pop("script_args", [])
    parameters = {one.name: one for one in command.params}
    file = jobfile.of_values(run.id, run.verb, values)
    defaults: dict[str, Any] = {
        key: jobfiles.as_given(parameters[key], value) for key, value in values.items() if key in parameters
    }
    if own and not script_args:
        defaults["script_args"] = own
    return jobfiles.Line([name, first, *more], list(script_args) or list(own), jobfiles.defaults_of(name, defaults, file))


def _named(words: Sequence[str]) -> str:
    if len(words) < 2 or words[1].startswith("-"):
        raise akrunner.ConfigError("rerun: which run? give its name first (akrunner rerun last); `akrunner runs` lists them")
    return words[1]


def _gives(command: str, words: Sequence[str], where: str, script_args: Sequence[str]) -> bool:
    """Whether a command line gives what was left out of a record. Args: where: as in `Record.left_out`."""
    name, _, key = where.partition(".")
    if name == "script_args":
        return bool(script_args)
    flags = next((one.words_in(command) for one in of_command(command) if one.name == name), named(name).words)
    begin = f"{key.partition('.')[0]}=" if key else ""
    for number, word in enumerate(words):
        behind = words[number + 1] if number + 1 < len(words) else ""
        if any((word == one and behind.startswith(begin)) or word.startswith(f"{one}={begin}") for one in flags):
            return True
    return False
