"""Commands whose options come from the table (`akrunner.options`): what Typer is told of them, and what a person gave, as the Python
functions take it. A flag wins over the environment (`AKRUNNER_<NAME>`), which wins over the default."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

import akrunner
from akrunner.checks import check_replaces_nothing
from akrunner.cli import engines, jobfiles, keyed, values, variables
from akrunner.jobfile import FILES, check_kept, key_of
from akrunner.options import COMMANDS, VERBS, Option, idle, is_given, meaningless, named, of_command, of_verb

ALL = "--help-all"
#: annotations of the table -> what a word of the command line is read as
_TYPES: Mapping[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "bool | None": bool | None,
    "int | None": int | None,
    "float | None": float | None,
}
#: in what a command was given: the options that somebody gave for this job, not the environment
_SAID = "(said)"
_NAMES, _TEXTS = "SequenceNotStr[str] | None", "Mapping[str, str] | None"


def _environments() -> Sequence[str]:
    from akrunner.launch import environments

    return tuple(environments.RECIPES)


def _engines() -> Sequence[str]:
    from akrunner.engines import registry

    return registry.names()


def _formats() -> Sequence[str]:
    from akrunner.io import formats

    return formats.names()


#: options that are no `Literal`, since packages or machines have more -> words that are known
_KNOWN: Mapping[str, Callable[[], Sequence[str]]] = {
    "engine": _engines,
    "python_env": _environments,
    "input_format": _formats,
    "output_format": _formats,
}


def command(name: str, body: Callable[[typer.Context, Mapping[str, Any]], None]) -> Callable[..., None]:
    """A command as Typer takes it. Args: body: takes the context, and what was given, by name."""

    def called(ctx: typer.Context, **words: Any) -> None:
        # the doctor has lines for them
        if name != "doctor":
            variables.tell(name)
        said = [one for one in words if _is_said(ctx, one)]
        joined: Mapping[str, keyed.Joined] = {}
        try:
            if words.get("overwrite") and _on_line(ctx, "output") and not _on_line(ctx, "overwrite") and _is_stdout(words):
                # a job file's is for the output that stands there
                words["overwrite"] = False
            _check_meant(ctx, words, said, name)
            _check_kept(ctx, words, name)
            joined = keys_of(ctx, words)
            try:
                body(ctx, {**words, _SAID: said, keyed.KEYED: joined})
            except akrunner.AkrunnerError as e:
                _blame(e, ctx, name, joined)
                raise
        except akrunner.ConfigError as e:
            raise jobfiles.located(e, ctx, joined)

    head = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [head, *(_parameter(one, name) for one in of_command(name))]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def keys_of(ctx: typer.Context, words: Mapping[str, Any]) -> dict[str, keyed.Joined]:
    """Options of many keys, from the command line and the job file. Raises: ConfigError."""
    names = {*keyed.NAMES, *FILES.values()}
    line = {name: value if _on_line(ctx, name) else [] for name, value in words.items() if name in names}
    return keyed.joined(line, jobfiles.file_of(ctx))


def _check_meant(ctx: typer.Context, words: Mapping[str, Any], said: Sequence[str], name: str) -> None:
    """Raises: ConfigError: an option of the command line, or of a job file, means nothing beside the others."""
    if "overwrite" in said and words["overwrite"] and _is_stdout(words):
        raise akrunner.ConfigError(f"--overwrite replaces a file, and --output {words['output']} is stdout; leave it out")
    wrong = meaningless(name, {one: words[one] for one in said}, words, of_command(name))
    if wrong is not None:
        raise akrunner.ConfigError(_by_variables(ctx, wrong, name))


def _check_kept(ctx: typer.Context, words: Mapping[str, Any], name: str) -> None:
    """Raises: ConfigError: the output is a file that the command itself reads; of those that the job reads, the job says so."""
    file, output = jobfiles.file_of(ctx), words.get("output")
    if file is not None:
        check_kept(file.path, words)
    if not isinstance(output, str) or not words.get("overwrite"):
        return
    for option in of_command(name):
        given = words.get(option.name) or ()
        if option.name in FILES.values():
            places = [given] if isinstance(given, str) else list(given)
        else:
            # --param key=@file
            values_ = [one.partition("=")[2] for one in given if isinstance(one, str)] if option.name in keyed.NAMES else []
            places = [one[1:] for one in values_ if one.startswith("@")]
        for place in filter(None, places):
            check_replaces_nothing("output", output, [(f"a file that {option.words_in(name)[0]} names", place)])


def _is_stdout(words: Mapping[str, Any]) -> bool:
    """Whether a command's rows go to stdout. Raises: ConfigError: as `lines.is_stdout`."""
    from akrunner.cli import lines

    return lines.is_stdout(words.get("output"))


def _by_variables(ctx: typer.Context, words: str, name: str) -> str:
    """What is wrong, where it says "--stall-timeout 0" of a value that nobody has typed: the variable, or file, that gives it."""
    for one in of_command(name):
        variable, source = one.variable_in(name) or "", ctx.get_parameter_source(one.name)
        givers = {"ENVIRONMENT": f"{variable}={os.environ.get(variable)} in the environment", "DEFAULT_MAP": "of the job file"}
        if one.words_in(name) and source is not None and source.name in givers:
            words = re.sub(rf"{one.words_in(name)[0]} [^\s)]+(?=\))", givers[source.name], words)
    return words


def _is_said(ctx: typer.Context, name: str) -> bool:
    """Whether somebody gave an option for this job, on the command line or in its file."""
    # the environment wins over a file, whose options are given all the same
    return _on_line(ctx, name) or name in (ctx.default_map or {})


def _on_line(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def flag(name: str) -> Any:
    """An option of the table, for a command whose others are its own, as Typer takes it."""
    option = named(name)
    return typer.Option(option.default, *option.words, help=option.help)


def _parameter(option: Option, command: str) -> inspect.Parameter:
    """An option of the table, as Typer takes it."""
    verb = next((verb for verb in COMMANDS[command].verbs if verb in option.verbs), "")
    many, words, help = option.many_in(command), option.words_in(command), option.help_in(command)
    default = option.defaults.get(command, option.default_in(verb))
    kind = _TYPES.get(option.type_in(verb)) or (str if isinstance(default, str) else str | None)
    needed = command in option.needed or verb in option.required
    if many:
        kind, default = list[str], []
    if words:
        info = typer.Option(
            ... if needed else default,
            *words,
            help=help,
            hidden=option.hidden,
            rich_help_panel=option.group if COMMANDS[command].is_long else None,
            envvar=option.variable_in(command),
            metavar=many or None,
            autocompletion=_completing(option, verb),
        )
    else:
        kind = kind if many or not needed else str
        info = typer.Argument(... if needed else default, help=help, metavar=many or option.name.upper())
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=kind)


def _completing(option: Option, verb: str) -> Callable[[str], list[str]] | None:
    """What a shell completes the value of an option to; None: names of files."""
    choices = option.choices_in(verb)
    if not choices and option.name not in _KNOWN:
        return None

    def completed(incomplete: str) -> list[str]:
        return [one for one in choices or _KNOWN[option.name]() if one.startswith(incomplete)]

    # Typer reads annotations as they are, not as this module writes them
    completed.__annotations__ = {"incomplete": str}
    return completed


def _blame(error: akrunner.AkrunnerError, ctx: typer.Context, name: str, joined: Mapping[str, keyed.Joined]) -> None:
    """Have an error name the variables that gave what it is about, or its flag."""
    spoken = str(error.args[0]) if error.args else ""
    for one in of_command(name):
        flags = one.words_in(name)
        # "num_workers=0: there must be at least 1": as the Python functions say of one value that it is wrong
        is_its = isinstance(error, akrunner.ConfigError) and re.match(rf"{one.name}(=|: |\[\d+\]| must be | is )", spoken)
        if flags and one.name not in joined and is_its and flags[0] not in spoken and typed(ctx, one.name):
            spoken = f"{spoken} ({flags[0]})"
        # "env: 'A B' is no name of a variable": of one key it is that of whoever gave the key
        if one.name in joined and isinstance(error, akrunner.ConfigError) and re.match(rf"{one.name}[\[: ]", spoken):
            key = key_of(spoken[len(one.name) :], joined[one.name].values)
            flag = joined[one.name].flag(key) if key is not None else ""
            spoken = f"{spoken} ({flag})" if flag and flag not in spoken else spoken
        variable = one.variable_in(name)
        source = ctx.get_parameter_source(one.name) if variable else None
        if source is None or source.name != "ENVIRONMENT":
            continue
        # what a script says may have any word in it
        words = (one.name, one.words_in(name)[0]) if isinstance(error, akrunner.ConfigError) else (f"{one.name}=",)
        if any(word in spoken for word in words):
            spoken = f"{spoken} ({variable}={ctx.params[one.name]} in the environment)"
    if error.args:
        error.args = (spoken, *error.args[1:])


def typed(ctx: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line itself, and is no default, nor the environment's."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def shorten(command: Any, name: str) -> None:
    """Have a command's help show what most people need, and no headings."""
    often = {one.name for one in of_command(name) if one.often_in(name) and not one.hidden}
    for parameter in command.params:
        if parameter.param_type_name == "option":
            parameter.hidden = parameter.name not in often and parameter.name != "help"
            parameter.rich_help_panel = None


def options(verb: str, words: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, as a function takes it by name: nothing that stands in its place there. Raises: ConfigError: something of it is wrong."""
    ahead = next(one.positional for one in VERBS if one.name == verb)
    taken = [one for one in of_verb(verb) if one.name in words and one.name not in ahead and not _is_idle(one, verb, words)]
    made: dict[str, Any] = {one.name: words[one.name] for one in taken}
    for one in taken:
        if one.type_in(verb) == _NAMES:
            made[one.name] = _names(made[one.name])
        elif one.type_in(verb) == _TEXTS and one.name not in words[keyed.KEYED]:
            made[one.name] = values.pairs(made[one.name], one.words[0])
    made.update({name: one.values for name, one in words[keyed.KEYED].items() if name in made})
    if "defaults" in made:
        made["defaults"] = made["defaults"] or None
    if "engine" in made:
        made["engine"] = engines.chosen(made["engine"], words)
    return made


def _is_idle(option: Option, verb: str, words: Mapping[str, Any]) -> bool:
    """Whether nobody gave an option for this job, and its default, the environment's, say, would mean nothing: no fault, and not handed on."""
    said = words.get(_SAID)
    return said is not None and option.name not in said and is_given(words[option.name]) and bool(idle(option, verb, words))


def source(words: Mapping[str, Any]) -> Any:
    """The table, as the functions take it; None: the script asks for its own."""
    found: Sequence[str] = words["source"]
    return found if len(found) > 1 else next(iter(found), None)


def _names(given: str | None) -> list[str] | None:
    if given is None:
        return None
    return [name.strip() for name in given.split(",")] if given.strip() else []
