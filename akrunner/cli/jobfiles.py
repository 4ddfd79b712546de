"""Job files on the command line (`akrunner run job.toml`): the file's values become the defaults of the command's options.

A flag wins over the environment, which wins over the file, which wins over akrunner's defaults.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer

import akrunner
from akrunner import jobfile
from akrunner.cli.keyed import Joined

_STREAM = ("-",)
#: the key in a command's defaults for the job file that they come from
_FILE = "(file)"


@dataclass(frozen=True)
class Line:
    """A command line.

    Attributes:
        words: its words, with the script, or model, in place of the job file.
        script_args: the script's own arguments.
        more: further keyword arguments for making Click's context.
    """

    words: list[str]
    script_args: list[str]
    more: dict[str, Any] = field(default_factory=dict)


def read(command: Any, words: Sequence[str], script_args: Sequence[str]) -> Line:
    """Read the job file of a command line, if it has one.

    Args: command: Typer's command; words: the command line, the command's name first; script_args: the words behind `--`.
    Raises: ConfigError: the file is wrong.
    """
    place = _place(words, {flag for one in command.params if getattr(one, "is_flag", False) for flag in one.opts})
    if place is None:
        return Line(list(words), list(script_args))
    name = words[0]
    parameters = {one.name: one for one in command.params}
    known = [one for one in parameters if one not in jobfile.OF_THE_LINE]
    verb = "predict_stream" if name == "predict" and _streams(words) else name
    file = jobfile.read(words[place], verb, known)
    options = dict(file.options)
    head = jobfile.HEADS[verb]
    line = [*words[:place], options.pop(head), *words[place + 1 :]]
    own = options.pop("script_args", [])
    python_only = [one for one in options if one not in parameters]
    if python_only:
        raise akrunner.ConfigError(
            f"{file.where(python_only[0])}: {python_only[0]} is for akrunner.{verb}(); the command does not have it"
        )
    defaults = {key: as_given(parameters[key], value) for key, value in options.items()}
    if own and not script_args:
        defaults["script_args"] = own
    return Line(line, list(script_args) or list(own), defaults_of(name, defaults, file))


def defaults_of(command: str, defaults: Mapping[str, Any], file: jobfile.JobFile) -> dict[str, Any]:
    """Return keyword arguments for Click's context, by which a file's values are a command's defaults.

    Args: command: its name; defaults: the values in the form that the command line would have; file: where they come from.
    """
    return {"default_map": {command: {**defaults, _FILE: file}}}


def file_of(ctx: typer.Context) -> jobfile.JobFile | None:
    """Return the job file of a command line, None if it has none."""
    file: jobfile.JobFile | None = (ctx.default_map or {}).get(_FILE)
    return file


def missing(error: Any) -> akrunner.ConfigError | None:
    """Return a better error for Typer's error about a missing option.

    Returns: None if the error is another one, or if there is no job file.
    """
    ctx, param = getattr(error, "ctx", None), getattr(error, "param", None)
    file = file_of(ctx) if ctx is not None else None
    if file is None or param is None or not hasattr(error, "param_type"):
        return None
    return lacking(file, param.name, next(one for one in param.opts if one.startswith("--")))


def lacking(file: jobfile.JobFile, name: str, flag: str) -> akrunner.ConfigError:
    """Return the error for a required option that is neither in the job file nor on the command line."""
    return akrunner.ConfigError(f'{file.path}: the file names no {name}: {name} = "..." (or {flag})')


def located(error: akrunner.ConfigError, ctx: typer.Context, joined: Mapping[str, Joined]) -> akrunner.ConfigError:
    """Add the job file's line to an error, if it is about a value of the file. Args: joined: the options with keys."""
    file = file_of(ctx)
    if file is None:
        return error
    # positional arguments are left out: the job file is in their place, and names the script, or model
    heads = {one.name for one in ctx.command.params if one.param_type_name == "argument"}
    sources = {one: ctx.get_parameter_source(one) for one in ctx.params if one not in heads}
    elsewhere = [
        name for name, source in sources.items() if source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
    ]
    givers = {
        name: {key: giver.option if (giver := one.giver(key)).of_file else "" for key in one.values}
        for name, one in joined.items()
    }
    return jobfile.located(error, file, elsewhere, givers)


def origins(ctx: typer.Context, joined: Mapping[str, Joined]) -> list[str]:
    """Return where each value that is no default came from: "num_workers: --num-workers". Args: joined: as for `located`."""
    found = []
    for one in ctx.command.params:
        if one.name in joined:
            told = joined[one.name].origins()
            found += [f"{one.name}: {told}"] if told else []
            continue
        source = ctx.get_parameter_source(one.name or "")
        if source is None or one.name in jobfile.OF_THE_LINE or source.name in ("DEFAULT", "PROMPT"):
            continue
        # the job file is in the place of the script
        if one.param_type_name == "argument" and ctx.default_map:
            found.append(f"{one.name}: the job file")
            continue
        # the second form of a flag was given: --no-chief
        own = one.secondary_opts if one.secondary_opts and ctx.params.get(one.name) is False else one.opts
        words = {"COMMANDLINE": own[-1], "ENVIRONMENT": f"${one.envvar}", "DEFAULT_MAP": "the job file"}[source.name]
        if source.name == "COMMANDLINE" and one.name in jobfile.FILES.values() and one.name in (ctx.default_map or {}):
            # files of keys from both places are read
            words += " and the job file"
        found.append(f"{one.name}: {words}")
    if ctx.obj:
        found.append(f"script_args: {'the job file' if 'script_args' in (ctx.default_map or {}) else '--'}")
    return found


def _place(words: Sequence[str], flags: set[str]) -> int | None:
    """Return the index of the job file: the first word that ends in .toml and is no option's value; None if there is none.

    Args: flags: the options that take no value.
    """
    for place in range(1, len(words)):
        before = words[place - 1]
        if jobfile.is_job_file(words[place]) and words[place][0] != "-" and (before[:1] != "-" or before in flags):
            return place
    return None


def _streams(words: Sequence[str]) -> bool:
    return "--follow" in words or any(a in ("-i", "--input") and b in _STREAM for a, b in itertools.pairwise(words))


def as_given(parameter: Any, value: Any) -> Any:
    """Return a value of the job file in the form that the command line would have."""
    if isinstance(value, dict) and parameter.multiple:
        return [
            f"{key}={_escaped(one) if parameter.name == 'env' else json.dumps(one, default=str)}" for key, one in value.items()
        ]
    if isinstance(value, dict) and parameter.name == "split":
        return ",".join(f"{key}={one}" for key, one in value.items())
    if isinstance(value, dict):
        return ", ".join(f'"{key}" {one}' for key, one in value.items())
    if isinstance(value, list) and not parameter.multiple:
        return ",".join(map(str, value))
    return [value] if parameter.multiple and not isinstance(value, list) else value


def _escaped(value: Any) -> str:
    """Return a variable's value for the command line, where a text that begins with @ would be taken for a file's name."""
    text = value if isinstance(value, str) else json.dumps(value)
    return "@" + text if text.startswith("@") else text
