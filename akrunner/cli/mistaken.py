"""Better errors for wrong command lines.

They name the option that is meant, the commands that have an option, or the file that is in the wrong place.
"""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from akrunner.checks import shown
from akrunner.cli.given import ALL
from akrunner.errors import ConfigError
from akrunner.jobfile import ENDING, HEADS, OF_THE_LINE
from akrunner.options import COMMANDS, OPTIONS, named, of_command, of_verb
from akrunner.options.declared import SCRIPTS as SCRIPTED
from akrunner.options.naming import IN_SCRIPTS, MEANT

#: `--mode` of earlier versions -> the command it has become
_MODES: Mapping[str, str] = {"batch": "run", "run": "run", "train": "train", "stream": "stream"}
#: how alike (of 1) a known flag must be to be suggested; how alike to be suggested alone, even if another command has the flag
#: that was typed
_NEAR, _SURE = 0.7, 0.8
_MOST, _LISTED = 3, 5
#: types of options that are numbers
_NUMBERS: Mapping[str, str] = {"int": "a whole number", "float": "a number"}
#: the beginning of Typer's error about a word that belongs to no option
_EXTRA = "Got unexpected extra argument"
#: the flags that Click reads in `-help`, which a user may know from other programs
_LETTERS = ("-h", "-e", "-l", "-p")


def explain(error: Any, words: Sequence[str], everything: Callable[[], Any]) -> None:
    """Make an error of Typer say what to type instead.

    Args: words: the command line; everything: returns Typer's command with all subcommands.
    """
    path = error.ctx.command_path.split()[1:] if error.ctx is not None else []
    if hasattr(error, "option_name") and hasattr(error, "possibilities"):
        flag = error.option_name
        if "-help" in words and flag in _LETTERS:
            # Click reads each letter of -help as a flag
            flag, said = "-help", f"Did you mean --help? {' '.join(['akrunner', *path])} --help"
        else:
            said = _no_form(flag, " ".join(path), error.ctx.command) or _said(flag, path, words, everything)
        error.possibilities = None
        error.message = f"No such option: {flag}. {said}" if said else f"No such option: {flag}. See {_help(path)}."
    elif hasattr(error, "param_type") and path[:1] and path[0] in HEADS:
        error.message = _file(path[0], words, _taking(error.ctx.command))
    elif path[:1] and path[0] in HEADS and str(error.message).startswith(_EXTRA):
        error.message = _file(path[0], words, _taking(error.ctx.command)) or error.message
    elif getattr(error, "param", None) is not None and error.message:
        value = _typed(error.param.opts, words)
        error.message = f"{shown(value)}: {error.message}" if value and value not in error.message else error.message
    elif not path and str(error.message).startswith("No such command 'plan'"):
        error.message = "No such command 'plan'. What a job would do is shown by akrunner run SCRIPT -i TABLE --dry-run."
    elif str(error.message).startswith("No such command 'help'"):
        # name the help of the command behind `help`, if there is one
        behind = words[words.index("help") + 1 :][:1] if not path else []
        meant = behind if behind and behind[0] in everything().commands else path
        error.message = f"No such command 'help'. See {' '.join(['akrunner', *meant])} --help."
    elif not path and words[:1] and words[0].lower().endswith((ENDING, ".py")) and os.path.isfile(words[0]):
        error.message = f"No such command '{words[0]}'. It is a file: akrunner run {' '.join(words)}"


def no_number(error: Any, words: Sequence[str]) -> ConfigError | None:
    """Return a better error for an option that takes a number and was given another value; None if the error is another one."""
    ctx, param = getattr(error, "ctx", None), getattr(error, "param", None)
    if ctx is None or param is None:
        return None
    name = " ".join(ctx.command_path.split()[1:])
    option = next((one for one in of_command(name) if one.name == param.name), None) if name in COMMANDS else None
    if option is None:
        return None
    kind = _NUMBERS.get(option.type_in(next(iter(COMMANDS[name].verbs), "")).removesuffix(" | None"), "")
    source = ctx.get_parameter_source(option.name)
    if source is not None and source.name == "ENVIRONMENT":
        value, where = param.value_from_envvar(ctx), f"{option.variable} in the environment"
    else:
        value, where = _typed(param.opts, words), param.opts[0]
    # a flag without = has no value at all, and the error says so
    is_empty = any(word == f"{flag}=" for flag in param.opts for word in words)
    return ConfigError(f"{option.name}={shown(value)}: give {kind} ({where})") if kind and (value or is_empty) else None


def _typed(opts: Sequence[str], words: Sequence[str]) -> str:
    """Return the value of an option on a command line, "" if it has none. Args: opts: the option's names."""
    value = next((after for before, after in itertools.pairwise(words) if before in opts), "")
    return next((after for flag, _, after in (word.partition("=") for word in words) if flag in opts and after), value)


def _taking(command: Any) -> set[str]:
    """Return the flags of a command that take the next word as their value."""
    return {flag for one in command.params if not getattr(one, "is_flag", False) for flag in one.opts}


def _file(name: str, words: Sequence[str], taking: set[str]) -> str:
    """Return an error for a command line that lacks an argument because a file is in the wrong place; "" if no file is.

    Args: name: the command; words: the command line; taking: the flags that take a value, from `_taking`.
    """
    if any(before == "--dry-run" and word.isdigit() for before, word in itertools.pairwise(words)):
        at = words.index("--dry-run")
        return f"--dry-run takes its number behind a =: --dry-run={words[at + 1]}."
    free = [word for before, word in itertools.pairwise(words) if word[:1] != "-" and before not in taking]
    if not free:
        return ""
    if free[0].lower().endswith((".json", ".yaml", ".yml", ".ini", ".cfg")):
        return f"{free[0]} is no script; a job file is TOML, and its name ends in {ENDING}"
    if "." in free[0] and not os.path.exists(free[0]):
        folder = os.path.dirname(free[0]) or "."
        beside = os.listdir(folder) if os.path.isdir(folder) else []
        near = difflib.get_close_matches(os.path.basename(free[0]), beside, 1, _NEAR)
        meant = f"; did you mean {os.path.join(os.path.dirname(free[0]), near[0])}?" if near else ""
        return f"There is no file {free[0]}{meant}"
    table = next((word for word in free[1:] if os.path.exists(word)), None)
    return f"{table} stands there without its flag: akrunner {name} {free[0]} --input {table}." if table is not None else ""


def _no_form(flag: str, name: str, command: Any) -> str:
    """Return an error for `--no-X` if `--X` is a flag without such a form; "" if it is not. Args: command: Typer's command."""
    plain = flag.replace("_", "-").lower()
    if not plain.startswith("--no-"):
        return ""
    meant = plain.removeprefix("--no-")
    there = (one for one in command.params if getattr(one, "is_flag", False) and not one.secondary_opts)
    found = next((one for one in there if f"--{meant}" in one.opts or (one.name or "").replace("_", "-") == meant), None)
    if found is None:
        return ""
    shown = next(one for one in found.opts if one.startswith("--"))
    if name not in HEADS or found.name in OF_THE_LINE:
        return f"{shown} has no --no- form: it is off unless it is given."
    return (
        f"{shown} has no --no- form: it is off unless it is given. If the job file says {found.name} = true, take it out there."
    )


def _said(flag: str, path: list[str], words: Sequence[str], everything: Callable[[], Any]) -> str:
    name = " ".join(path)
    if flag == "--mode" and name in ("", *HEADS):
        return _mode(words)
    if flag == "--stream" and name == "predict":
        return "Rows as they arrive are lines of stdin (--input -) or of a file that grows (--follow), or come from kafka://, redis:// or files://."
    if flag == "--script-args" and name in HEADS:
        return "What stands behind -- is the script's: akrunner run SCRIPT -i TABLE -- --epochs 3."
    option = flag.strip("-").replace("-", "_")
    if name in SCRIPTED and option in IN_SCRIPTS:
        return f"{option}= is an argument of {IN_SCRIPTS[option]}, which the script calls."
    if name == "train" and flag in named("output").words:
        return f"The model goes to {named(MEANT[name, 'output']).words[0]}."
    if name not in HEADS and (name, option) in MEANT:
        return f"Did you mean {named(MEANT[name, option]).words[0]}?"
    stands = _standing(flag, name)
    if stands:
        return stands
    flags = dict(_flags(everything()))
    own = [*(one for one in flags.get(name, []) if one.startswith("--")), "--help"]
    meant = _meant(flag, name, own)
    if meant:
        return meant
    misspelt = difflib.get_close_matches(flag, own, 1, _SURE)
    others = [other for other in flags if other and other != name and flag in flags[other] and not misspelt]
    if others and not path:
        return f"It is an option of {_listed(others)}, and stands behind the command's name."
    if others:
        return f"It is an option of {_listed(others)}."
    near = _near(flag, own)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    if name in ("run", "train", "stream"):
        return (
            f"If it is the script's own, it stands behind --: akrunner {name} SCRIPT ... -- {flag}. See akrunner {name} {ALL}."
        )
    return ""


def _standing(flag: str, name: str) -> str:
    """Return an error for a flag that is the Python name of a positional argument; "" if it is not."""
    if name in HEADS and flag in ("--script", "--model"):
        needed = HEADS[name].upper()
        return f"{needed} stands there without a name: akrunner {name} {needed} --input TABLE."
    if name not in COMMANDS:
        return ""
    own = [one for one in of_command(name) if name in one.stands]
    python = [option for verb in COMMANDS[name].verbs for option in of_verb(verb) if option not in of_command(name)]
    meant = next((one for one in (*own, *python) if flag in (_flag(one.name), *one.words)), None)
    if meant is None or not own or not (meant in own or meant.required):
        return ""
    shown = own[0].many or own[0].name.upper()
    return f"{shown} {'stand' if ' ' in shown else 'stands'} there without a name: akrunner {name} {shown}."


def _mode(words: Sequence[str]) -> str:
    """Return an error for `--mode`: each mode has a command of its own."""
    given = [after for before, after in zip(words, [*words[1:], ""]) if before == "--mode"]
    given += [word.partition("=")[2] for word in words if word.startswith("--mode=")]
    command = _MODES.get(given[0]) if given else None
    if command is None:
        return "Each mode is a command: akrunner run (batch), akrunner train, akrunner stream."
    return f"Each mode is a command: akrunner {command} SCRIPT --input TABLE."


def _meant(flag: str, name: str, own: Sequence[str]) -> str:
    """Return a hint for a flag written as in Python (`--num_workers`, `--user-params`) or in capitals; "" if it is neither."""
    dashed = flag.replace("_", "-").lower()
    if dashed in own:
        return f"Did you mean {dashed}?"
    has = of_command(name) if name in COMMANDS else ()
    called = [one.words_in(name)[0] for one in has if one.words_in(name) and _flag(one.name) == dashed]
    if called:
        return f"Did you mean {called[0]}?"
    only = next((one for one in OPTIONS if _flag(one.name) == dashed and not one.help and not any(one.helps.values())), None)
    if only is not None:
        verbs = ", ".join(f"akrunner.{verb}()" for verb in only.verbs)
        return f"{only.name}= is an argument of {verbs}, in Python only."
    return ""


def _near(flag: str, own: Sequence[str]) -> list[str]:
    """Return flags that are similar to a flag, or have a word in common with it; if some are surely meant, only these."""
    sure = difflib.get_close_matches(flag, own, _MOST, _SURE)
    if sure:
        return sure
    near = difflib.get_close_matches(flag, own, _MOST, _NEAR)
    parts = {part for part in flag.lower().strip("-").replace("_", "-").split("-") if len(part) > 3}
    near += [one for one in own if parts & set(one.strip("-").split("-"))]
    return list(dict.fromkeys(near))[:_MOST]


def _flags(command: Any, name: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield (name, its flags) for a command of Typer and for each of its subcommands."""
    yield name, [word for one in command.params for word in (*one.opts, *one.secondary_opts) if word[:1] == "-"]
    inner: dict[str, Any] = getattr(command, "commands", {})
    for one, below in inner.items():
        yield from _flags(below, f"{name} {one}".strip())


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _listed(names: Sequence[str]) -> str:
    shown = [f"akrunner {name}" for name in names[:_LISTED]]
    return ", ".join(shown) + (" and others" if len(names) > len(shown) else "")


def _help(path: Sequence[str]) -> str:
    return " ".join(["akrunner", *path, ALL if path[:1] and path[0] in COMMANDS and COMMANDS[path[0]].is_long else "--help"])
