"""Commands whose options come from the table (`akrunner.options`).

The options are described to Typer, and the values that the user gave are turned into arguments of the Python functions. A flag
wins over the environment (`AKRUNNER_<NAME>`), which wins over the default.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import typer

import akrunner
from akrunner.checks import check_choice, check_replaces_nothing
from akrunner.cli import engines, jobfiles, keyed, records, values, variables
from akrunner.jobfile import FILES, HEADS, check_kept, key_of
from akrunner.options import COMMANDS, VERBS, Option, idle, is_given, meaningless, named, of_command, of_verb
from akrunner.prepare.written import check_written

ALL = "--help-all"
#: annotations in the table -> the type to which a word of the command line is converted
_TYPES: Mapping[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "bool | None": bool | None,
    "int | None": int | None,
    "float | None": float | None,
}
#: a key in a command's values: the options that the user gave for this job, and not by the environment
_SAID = "(said)"
#: options about how the files of an output are written
_OF_FILES = (
    "partition_by",
    "sort_by",
    "max_rows_per_file",
    "max_bytes_per_file",
    "output_compression",
    "append",
    "manifest",
)
#: options of functions that a command may use itself, or makes an object of, so that the function gets another value
_COMMANDS_OWN = ("engine", "output", "output_format", "output_csv", "overwrite")
#: options of commands that say nothing of the job
_OF_SCREEN = ("as_json", "quiet", "progress", "logs", "help_all", "dry_run_rows", "log_format")
#: options that a command heeds itself, although functions have them, too
_SHOWN = ("progress",)
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


def _read_formats() -> Sequence[str]:
    from akrunner.io import formats

    return formats.names(read=True)


#: options that are no `Literal`, since packages or machines add values -> the values that are known
_KNOWN: Mapping[str, Callable[[], Sequence[str]]] = {
    "engine": _engines,
    "python_env": _environments,
    "input_format": _read_formats,
    "output_format": _formats,
}


def command(name: str, body: Callable[[typer.Context, Mapping[str, Any]], None]) -> Callable[..., None]:
    """Return a command as Typer takes it. Args: body: the function to run; it takes the context, and the values by name."""

    def called(ctx: typer.Context, **words: Any) -> None:
        said = [one for one in words if _is_said(ctx, one)]
        # before anything is said
        if words.get("log_format"):
            check_choice("--log-format", words["log_format"], (records.TEXT, records.JSON))
            records.on(words["log_format"])
            words["quiet"] = True
        # the doctor reports variables in lines of its own
        if name != "doctor":
            variables.tell(name)
        joined: Mapping[str, keyed.Joined] = {}
        try:
            if words.get("overwrite") and _on_line(ctx, "output") and not _on_line(ctx, "overwrite") and _is_stdout(words):
                # `overwrite` of a job file is only for the output of that file
                words["overwrite"] = False
            _check_meant(ctx, words, said, name)
            _check_kept(ctx, words, name)
            joined = keys_of(ctx, words)
            try:
                with _kept(name, ctx, words, said, joined):
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


def _kept(
    name: str, ctx: typer.Context, words: Mapping[str, Any], said: Sequence[str], joined: Mapping[str, keyed.Joined]
) -> AbstractContextManager[None]:
    """Have the runs that begin in a block kept with what the command line says beside the function's arguments."""
    if name not in HEADS:
        return contextlib.nullcontext()
    from akrunner.history.keeping import Call, calling

    taken = {one.name for verb in COMMANDS[name].verbs for one in of_verb(verb)}
    chosen = [one for one in of_command(name) if one.name in said and is_given(words[one.name])]
    options = {
        one.name: words[one.name] for one in chosen if one.name in _COMMANDS_OWN or one.name not in {*taken, *_OF_SCREEN}
    }
    without: list[str] = []
    secret: list[str] = []
    for option, one in joined.items():
        for key in one.hidden:
            (without if one.giver(key).option in FILES.values() else secret).append(f"{option}.{key}")
    return calling(Call(list(ctx.meta.get(values.GIVEN, ())), options, without, secret))


def keys_of(ctx: typer.Context, words: Mapping[str, Any]) -> dict[str, keyed.Joined]:
    """Return the options with keys (`--param` and so on), joined from the command line and the job file.

    Raises: ConfigError: a value is wrong.
    """
    names = {*keyed.NAMES, *FILES.values()}
    line = {name: value if _on_line(ctx, name) else [] for name, value in words.items() if name in names}
    return keyed.joined(line, jobfiles.file_of(ctx))


def _check_meant(ctx: typer.Context, words: Mapping[str, Any], said: Sequence[str], name: str) -> None:
    """Check that each option of the command line or the job file means something. Raises: ConfigError: one means nothing."""
    if "overwrite" in said and words["overwrite"] and _is_stdout(words):
        raise akrunner.ConfigError(f"--overwrite replaces a file, and --output {words['output']} is stdout; leave it out")
    laid_out = next((one for one in _OF_FILES if one in said and is_given(words[one])), None)
    if laid_out is not None and _is_stdout(words):
        raise akrunner.ConfigError(
            f"{named(laid_out).words[0]} is for files, and --output {words['output']} is stdout; leave it out, or name a file or "
            "DIR/"
        )
    wrong = meaningless(name, {one: words[one] for one in said}, words, of_command(name))
    if wrong is not None:
        raise akrunner.ConfigError(_by_variables(ctx, wrong, name))


def _check_kept(ctx: typer.Context, words: Mapping[str, Any], name: str) -> None:
    """Check that what the job writes replaces neither another of its files nor one that the command itself reads.

    Raises: ConfigError: it does.
    """
    file, output = jobfiles.file_of(ctx), words.get("output")
    if file is not None:
        check_kept(file.path, words)
    read = list(_read_by_command(words, name))
    if isinstance(output, str) and words.get("overwrite"):
        check_replaces_nothing("output", output, read)
    if name in (*HEADS, "pai"):
        check_written(words, read)


def _read_by_command(words: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """Yield (what it is in words, path) of each file of arguments; the job checks the files that it reads itself."""
    for option in of_command(name):
        given = words.get(option.name) or ()
        if option.name in FILES.values() or (name == "pai" and option.name == "file"):
            places = [given] if isinstance(given, str) else list(given)
        else:
            # the value may be in a file: --param key=@file
            values_ = [one.partition("=")[2] for one in given if isinstance(one, str)] if option.name in keyed.NAMES else []
            places = [one[1:] for one in values_ if one.startswith("@")]
        for place in filter(None, places):
            yield f"a file that {option.words_in(name)[0]} names", place


def _is_stdout(words: Mapping[str, Any]) -> bool:
    """Whether a command's rows go to stdout. Raises: ConfigError: as `lines.is_stdout` does."""
    from akrunner.cli import lines

    return lines.is_stdout(words.get("output"))


def _by_variables(ctx: typer.Context, words: str, name: str) -> str:
    """Return an error's text with the origin of a value in place of a flag that the user has not typed.

    "--stall-timeout 0" becomes the environment variable with its value, or "of the job file".
    """
    for one in of_command(name):
        variable, source = one.variable_in(name) or "", ctx.get_parameter_source(one.name)
        givers = {"ENVIRONMENT": f"{variable}={os.environ.get(variable)} in the environment", "DEFAULT_MAP": "of the job file"}
        if one.words_in(name) and source is not None and source.name in givers:
            words = re.sub(rf"{one.words_in(name)[0]} [^\s)]+(?=\))", givers[source.name], words)
    return words


def _is_said(ctx: typer.Context, name: str) -> bool:
    """Whether the user gave an option for this job, on the command line or in its file."""
    # an option of the file counts as given even if the environment's value wins over it
    return _on_line(ctx, name) or name in (ctx.default_map or {})


def _on_line(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def flag(name: str) -> Any:
    """Return an option of the table as Typer takes it, for a command whose other options are not in the table."""
    option = named(name)
    return typer.Option(option.default, *option.words, help=option.help)


def _parameter(option: Option, command: str) -> inspect.Parameter:
    """Return an option of the table as a parameter for Typer."""
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
    """Return a function that gives a shell the completions of an option's value; None: the shell completes names of files."""
    choices = option.choices_in(verb)
    if not choices and option.name not in _KNOWN:
        return None

    def completed(incomplete: str) -> list[str]:
        return [one for one in choices or _KNOWN[option.name]() if one.startswith(incomplete)]

    # Typer needs the types themselves, and annotations in this module are texts
    completed.__annotations__ = {"incomplete": str}
    return completed


def _blame(error: akrunner.AkrunnerError, ctx: typer.Context, name: str, joined: Mapping[str, keyed.Joined]) -> None:
    """Add to an error's text the flag, or the environment variable, that gave the value it is about."""
    spoken = str(error.args[0]) if error.args else ""
    for one in of_command(name):
        flags = one.words_in(name)
        # the Python functions write an error about one value so: "num_workers=0: there must be at least 1"
        is_its = isinstance(error, akrunner.ConfigError) and re.match(rf"{one.name}(=|: |\[\d+\]| must be | is )", spoken)
        if flags and one.name not in joined and is_its and flags[0] not in spoken and typed(ctx, one.name):
            spoken = f"{spoken} ({flags[0]})"
        # an error about one key of an option names the flag that gave this key: "env: 'A B' is no name of a variable"
        if one.name in joined and isinstance(error, akrunner.ConfigError) and re.match(rf"{one.name}[\[: ]", spoken):
            key = key_of(spoken[len(one.name) :], joined[one.name].values)
            flag = joined[one.name].flag(key) if key is not None else ""
            spoken = f"{spoken} ({flag})" if flag and flag not in spoken else spoken
        variable = one.variable_in(name)
        source = ctx.get_parameter_source(one.name) if variable else None
        if source is None or source.name != "ENVIRONMENT":
            continue
        # other errors may have a script's own words in them, so only "name=" is looked for
        words = (one.name, one.words_in(name)[0]) if isinstance(error, akrunner.ConfigError) else (f"{one.name}=",)
        if any(word in spoken for word in words):
            # of a private option, the value may be a secret
            value = "" if one.private else f"={ctx.params[one.name]}"
            spoken = f"{spoken} ({variable}{value} in the environment)"
    if error.args:
        error.args = (spoken, *error.args[1:])


def typed(ctx: typer.Context, name: str) -> bool:
    """Whether an option is on the command line itself, and not from a default or the environment."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def shorten(command: Any, name: str) -> None:
    """Make a command's help show only the options that most people need, without headings."""
    often = {one.name for one in of_command(name) if one.often_in(name) and not one.hidden}
    for parameter in command.params:
        if parameter.param_type_name == "option":
            parameter.hidden = parameter.name not in often and parameter.name != "help"
            parameter.rich_help_panel = None


def options(verb: str, words: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that were given as keyword arguments of a verb's function, without its positional arguments.

    Raises: ConfigError: a value is wrong.
    """
    ahead = next(one.positional for one in VERBS if one.name == verb)
    out = {*ahead, *_SHOWN}
    taken = [one for one in of_verb(verb) if one.name in words and one.name not in out and not _is_idle(one, verb, words)]
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
    """Whether the user did not give an option for this job, and its default (from the environment, say) would mean nothing.

    This is no error; the default is not passed on.
    """
    said = words.get(_SAID)
    if said is None or option.name in said or not is_given(words[option.name]):
        return False
    # without --input, Typer gives an empty list, and a list without rows would be a source
    return bool(idle(option, verb, {**words, "source": words.get("source") or None}))


def source(words: Mapping[str, Any]) -> Any:
    """Return the table as the Python functions take it: one path or a list; None: the script opens its own tables."""
    found: Sequence[str] = words["source"]
    return found if len(found) > 1 else next(iter(found), None)


def _names(given: str | None) -> list[str] | None:
    if given is None:
        return None
    return [name.strip() for name in given.split(",")] if given.strip() else []
