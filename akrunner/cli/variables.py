"""Environment variables that look as if akrunner read them, and that it does not."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import os
import re
from collections.abc import Callable, Mapping

import typer

from akrunner.checks import check_host
from akrunner.errors import ConfigError
from akrunner.jobfile import HEADS
from akrunner.options import COMMANDS, OPTIONS, of_command

_OURS = "AKRUNNER_"
#: those that give no option its default: of the machine, or set in tasks for programs, where a script may start akrunner, too
_OTHERS = (
    "ENV_PATH FLINK_CREDENTIALS FLINK_MASTER MAX_DOWNLOAD MAX_MEMBERS MAX_UNPACKED PROJECT TABLES WARM "
    "BASH_ENV OWN_DIRECTORY OWN_DIRECTORY_FROM_ROOT PAI_LINE PAI_SCRIPT CHECKPOINT_DIR DATASET_FILE DATASET_LENGTH HOST JOB OUTPUT_FILE SAVED_MODEL_DIR TABLES_SOCKET TASK"
).split()


#: kinds of options that a variable may give, besides text
_NUMBERS: dict[str, Callable[[str], object]] = {"int": int, "float": float}


@functools.cache
def _checks() -> dict[str, Callable[[str, object], object]]:
    """Option -> what refuses a value of it, in a job."""
    # schemas, and Arrow with them: most commands need no more than the names
    from akrunner.spec import ResourceSpec, SupervisionSpec

    def of(spec: Callable[..., object]) -> Callable[[str, object], object]:
        return lambda name, value: spec(**{name: value})

    numbers = {one.name: of(spec) for spec in (ResourceSpec, SupervisionSpec) for one in dataclasses.fields(spec)}
    return {**numbers, "bind_host": check_host, "advertised_host": check_host}


def wrong(environment: Mapping[str, str]) -> list[str]:
    """In words, which variables that give options their defaults hold what no job takes. None is shown."""
    told = []
    for one in OPTIONS:
        value = environment.get(one.variable, "") if one.variable else ""
        kind = one.type.removesuffix(" | None")
        if not value:
            continue
        words = re.findall(r'"([^"]*)"', kind) if kind.startswith("Literal[") else []
        if words and value not in words:
            told.append(f"{one.variable} is none of what --{one.name.replace('_', '-')} takes: {', '.join(words)}")
        if kind in _NUMBERS:
            try:
                number = _NUMBERS[kind](value)
            except ValueError:
                told.append(f"{one.variable} holds no {'whole number' if kind == 'int' else 'number'}")
                continue
            found = _refused(one.name, number)
        else:
            found = "" if words else _refused(one.name, value)
        told += [f"{one.variable} is out of its range: {found}"] if found else []
    return told


def _refused(name: str, value: object) -> str:
    """What a job says of an option's value, without it; "": it takes it."""
    check = _checks().get(name)
    try:
        if check is not None:
            check(name, value)
    except ConfigError as e:
        return str(e).partition(": ")[2] or str(e)
    return ""


def tell(command: str) -> None:
    """Say on stderr what is wrong with variables of this process. Args: as of `unread`."""
    with contextlib.suppress(OSError):  # nobody may listen
        for told in unread(os.environ, command):
            typer.echo(f"akrunner: {told}", err=True)


def unread(environment: Mapping[str, str], command: str) -> list[str]:
    """In words, what is wrong with each variable that has the name of an option of the command that is read from none, or nearly the name of one, or of
    one that is read. Args: command: one that is not in the table has options of its own, which no variable is taken for."""
    known = [*_OTHERS, *(one.variable[len(_OURS) :] for one in OPTIONS if one.variable)]
    flags = {}
    for one in of_command(command) if command in COMMANDS else ():
        words = [word for words in one.words_in(command) for word in words.split("/")]
        # by its name in Python, and by those of the command line
        flags.update({one.name.upper(): words[0]} if words else {})
        flags.update({word[2:].replace("-", "_").upper(): word for word in words if word.startswith("--")})
    told = []
    for variable in sorted(environment):
        # names of variables are in capitals
        name = variable[len(_OURS) :].upper()
        if not variable.upper().startswith(_OURS) or variable in [_OURS + one for one in known]:
            continue
        if name in flags and name not in known:
            where = "on the command line or in a job file" if command in HEADS else "on the command line"
            told.append(f"{variable} is not read: akrunner has no variable for this option; give {flags[name]} {where}")
            continue
        # AKRUNNER_PYTHON: half of a name
        longer = {one for one in (*known, *flags) if one.startswith(f"{name}_")}
        near = difflib.get_close_matches(name, [*known, *flags], 1, 0.8) or (list(longer) if len(longer) == 1 else [])
        if near:
            told.append(f"{variable} is not read; did you mean {_OURS + near[0] if near[0] in known else flags[near[0]]}?")
    return told
