"""Commands whose options come from the table (`akrunner.options`): what Typer is told of them, and what a person gave, as the Python
functions take it. A flag wins over the environment (`AKRUNNER_<NAME>`), which wins over the default."""

from __future__ import annotations

import contextlib
import inspect
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, get_type_hints

import typer

import akrunner
from akrunner.api import environments
from akrunner.cli import engines, values, variables
from akrunner.engines import registry
from akrunner.io import formats
from akrunner.options import OPTIONS, Option, of_verb

#: commands -> the functions whose options they take
COMMANDS: Mapping[str, Tuple[str, ...]] = {
    "run": ("run",),
    "train": ("train",),
    "stream": ("stream",),
    "predict": ("predict", "predict_stream"),
}
ALL = "--help-all"
CLUSTER, PYTHON, SCRIPT, OUTPUT = "Cluster", "Interpreter", "Script", "Output"
#: options that are not in the table, and stand in short help
_OFTEN = ("output", "output_live", "overwrite", "as_json", "quiet", "dry_run", "help_all", "help")
#: annotations of the table -> what a word of the command line is read as
_TYPES: Mapping[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "Optional[bool]": Optional[bool],
    "Optional[int]": Optional[int],
    "Optional[float]": Optional[float],
}
#: options that may be given several times -> what stands behind each
_MANY: Mapping[str, str] = {
    "source": "TABLE",
    "defaults": "COLUMN=VALUE",
    "user_params": "KEY=VALUE",
    "user_files": "FILE",
    "env": "KEY=VALUE",
}
#: options that are no `Literal`, since packages or machines have more -> words that are known
_KNOWN: Mapping[str, Callable[[], Sequence[str]]] = {
    "engine": registry.names,
    "python_env": lambda: tuple(environments.RECIPES),
    "input_format": formats.names,
    "output_format": formats.names,
}
_NAMES = "Optional[Sequence[str]]"


def taken(command: str) -> List[Option]:
    """The options of the table that a command takes, in their order."""
    return [one for one in OPTIONS if one.help and set(one.verbs) & set(COMMANDS[command])]


def help_of(name: str) -> str:
    """An option's line, for a command that has it beside its own."""
    return next(one.help for one in OPTIONS if one.name == name)


FLINK_HOST = "Address of this machine that TaskManagers reach. Default: found out."
FLINK_PORT = "TaskManagers connect to this port, and for rows to the next. Default: two free ones."
FLINK_NO_TLS = "No certificates, everything between the machines in clear text: for a network you trust."


def _common(
    env_file: List[str] = typer.Option(
        [],
        metavar="FILE",
        help="File of KEY=VALUE lines for the tasks' environment: nobody can read it in the process list. --env wins over it.",
        rich_help_panel=PYTHON,
    ),
    flink_master: Optional[str] = typer.Option(
        None,
        help="Flink's REST address, HOST:PORT or a URL; local: a cluster that comes and goes with the job. Default: "
        "$AKRUNNER_FLINK_MASTER, else local.",
        rich_help_panel=CLUSTER,
    ),
    flink_python: Optional[str] = typer.Option(
        None, help="Interpreter with PyFlink. Default: this one.", rich_help_panel=CLUSTER
    ),
    flink_worker_python: Optional[str] = typer.Option(
        None, help="Interpreter with PyFlink on the TaskManagers. Default: as --flink-python.", rich_help_panel=CLUSTER
    ),
    flink_option: List[str] = typer.Option(
        [],
        metavar="KEY=VALUE",
        help="An option of Flink's own configuration. Repeatable.",
        rich_help_panel=CLUSTER,
    ),
    flink_files_here: bool = typer.Option(
        False,
        "--flink-files-here",
        help="Read and write files in this process, also those the TaskManagers could: rows are dealt one by one then.",
        rich_help_panel=CLUSTER,
    ),
    flink_host: Optional[str] = typer.Option(None, help=FLINK_HOST, rich_help_panel=CLUSTER),
    flink_port: Optional[int] = typer.Option(None, help=FLINK_PORT, rich_help_panel=CLUSTER),
    flink_no_tls: bool = typer.Option(False, "--flink-no-tls", help=FLINK_NO_TLS, rich_help_panel=CLUSTER),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout, for machines."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no closing line."),
    help_all: bool = typer.Option(False, ALL, help="Show every option, in groups, and exit."),
) -> None:
    """What every command has beside the table's options."""


def command(name: str, body: Callable[..., None]) -> Callable[..., None]:
    """A command as Typer takes it.

    Args: body: takes the context, what was given by name, and the command's own options, which are parameters as of Typer's.
    """
    own = _parameters(body)[2:]
    given = [_parameter(one, name) for one in taken(name)]
    common = _parameters(_common)

    def called(ctx: typer.Context, **words: Any) -> None:
        mine = {one.name: words.pop(one.name) for one in own}
        with contextlib.suppress(OSError):  # nobody may listen
            for told in variables.unread(os.environ):
                typer.echo(f"akrunner: {told}", err=True)
        try:
            body(ctx, words, **mine)
        except akrunner.AkrunnerError as e:
            _blame(e, ctx, name)
            raise

    head = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [head, *given, *own, *common]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def _parameters(function: Callable[..., None]) -> List[inspect.Parameter]:
    hints = get_type_hints(function)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [one.replace(annotation=hints[one.name], kind=keyword) for one in inspect.signature(function).parameters.values()]


def _parameter(option: Option, name: str) -> inspect.Parameter:
    """An option of the table, as Typer takes it."""
    verbs = [verb for verb in COMMANDS[name] if verb in option.verbs]
    kind = List[str] if option.name in _MANY else _TYPES.get(option.type)
    default = option.default_in(verbs[0])
    if kind is None:
        kind = str if isinstance(default, str) else Optional[str]
    if verbs[0] in option.required or (option.name == "source"):
        default = ...
    elif option.name in _MANY:
        default = []
    help, flags = option.helps.get(name, option.help), option.words
    info = (
        typer.Option(
            default,
            *flags,
            help=help,
            rich_help_panel=option.group,
            envvar=option.variable or None,
            metavar=_MANY.get(option.name),
            autocompletion=_completing(option),
        )
        if flags
        else typer.Argument(..., help=help, metavar=option.name.upper())
    )
    kind = kind if flags else str
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=kind)


def _completing(option: Option) -> Optional[Callable[[str], List[str]]]:
    """What a shell completes the value of an option to; None: names of files."""
    if not option.choices and option.name not in _KNOWN:
        return None

    def completed(incomplete: str) -> List[str]:
        return [one for one in option.choices or _KNOWN[option.name]() if one.startswith(incomplete)]

    # Typer reads annotations as they are, not as this module writes them
    completed.__annotations__ = {"incomplete": str}
    return completed


def _blame(error: akrunner.AkrunnerError, ctx: typer.Context, name: str) -> None:
    """Have an error name the variables that gave what it is about."""
    spoken = str(error.args[0]) if error.args else ""
    for one in taken(name):
        source = ctx.get_parameter_source(one.name) if one.variable else None
        if source is None or source.name != "ENVIRONMENT":
            continue
        # what a script says may have any word in it
        words = (one.name, one.words[0]) if isinstance(error, akrunner.ConfigError) else (f"{one.name}=",)
        if any(word in spoken for word in words):
            spoken = f"{spoken} ({one.variable}={ctx.params[one.name]} in the environment)"
    if error.args:
        error.args = (spoken, *error.args[1:])


def shorten(command: Any) -> None:
    """Have a command's help show what most people need, and no headings."""
    often = {one.name for one in OPTIONS if one.often}
    for parameter in command.params:
        if parameter.param_type_name == "option":
            parameter.hidden = parameter.name not in often and parameter.name not in _OFTEN
            parameter.rich_help_panel = None


def options(verb: str, words: Mapping[str, Any], params_file: Optional[str] = None) -> Dict[str, Any]:
    """What was given, as a function takes it: no script, model, source. Raises: ConfigError: something of it is wrong."""
    made = {one.name: words[one.name] for one in of_verb(verb) if one.help and not one.positional}
    for one in of_verb(verb):
        if one.name in made and one.type == _NAMES:
            made[one.name] = _names(made[one.name])
    if "user_params" in made:
        made["user_params"] = values.params(made["user_params"], params_file)
    if "defaults" in made:
        made["defaults"] = values.valued(made["defaults"], "--default") or None
    made["env"] = values.environment(made["env"], words["env_file"])
    made["engine"] = engines.chosen(made["engine"], words)
    return made


def source(words: Mapping[str, Any]) -> Any:
    """The table, as the functions take it."""
    found: Sequence[str] = words["source"]
    return found if len(found) > 1 else found[0]


def _names(given: Optional[str]) -> Optional[List[str]]:
    if given is None:
        return None
    return [name.strip() for name in given.split(",")] if given.strip() else []
