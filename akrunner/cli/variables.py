"""Checks of akrunner's environment variables: wrong values, and names that look as if akrunner read them though it does not."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import logging
import os
import re
from collections.abc import Callable, Mapping

from akrunner.checks import check_host
from akrunner.cli import records
from akrunner.cli.stderr import say
from akrunner.errors import ConfigError
from akrunner.jobfile import HEADS
from akrunner.options import COMMANDS, OPTIONS, of_command

_OURS = "AKRUNNER_"
#: names (behind AKRUNNER_) of variables that set no option's default: settings of the machine, and variables that akrunner sets
#: in tasks for programs, as a script may start akrunner, too
_OTHERS = (
    "ENV_PATH FLINK_CREDENTIALS FLINK_MASTER MAX_DOWNLOAD MAX_MEMBERS MAX_UNPACKED PROJECT RUNS_DAYS RUNS_SIZE TABLES WARM "
    "BASH_ENV OWN_DIRECTORY OWN_DIRECTORY_FROM_ROOT PAI_LINE PAI_SCRIPT CHECKPOINT_DIR DATASET_FILE DATASET_LENGTH HOST JOB "
    "OUTPUT_FILE SAVED_MODEL_DIR TABLES_SOCKET TASK"
).split()


#: types of options that a variable can set, besides text -> what converts the text
_NUMBERS: dict[str, Callable[[str], object]] = {"int": int, "float": float}


@functools.cache
def _checks() -> dict[str, Callable[[str, object], object]]:
    """Return option -> the check of its value that a job makes."""
    # imported here: it imports Arrow, and most commands need only the names of the variables
    from akrunner.spec import ResourceSpec, SupervisionSpec

    def of(spec: Callable[..., object]) -> Callable[[str, object], object]:
        return lambda name, value: spec(**{name: value})

    numbers = {one.name: of(spec) for spec in (ResourceSpec, SupervisionSpec) for one in dataclasses.fields(spec)}
    return {**numbers, "bind_host": check_host, "advertised_host": check_host}


def wrong(environment: Mapping[str, str]) -> list[str]:
    """Return, in words, which variables hold a value that no job takes for its option. The values are not shown."""
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
    """Return why a job refuses an option's value, without the value; "" if it takes it."""
    check = _checks().get(name)
    try:
        if check is not None:
            check(name, value)
    except ConfigError as e:
        return str(e).partition(": ")[2] or str(e)
    return ""


def tell(command: str) -> None:
    """Say on stderr what is wrong with the names of this process's variables. Args: command: as for `unread`."""
    for told in unread(os.environ, command):
        if records.active():
            records.say(f"akrunner: {told}", logging.WARNING)
        else:
            say(f"akrunner: {told}")


def unread(environment: Mapping[str, str], command: str) -> list[str]:
    """Return, in words, which variables look like akrunner's and are not read.

    These have the name of an option that no variable sets, or almost the name of an option or of a variable that is read.
    Args: command: the command whose options are meant; a command that is not in the table has options of its own, which are not
        considered.
    """
    known = [*_OTHERS, *(one.variable[len(_OURS) :] for one in OPTIONS if one.variable)]
    flags = {}
    for one in of_command(command) if command in COMMANDS else ():
        words = [word for words in one.words_in(command) for word in words.split("/")]
        # by the option's name in Python, and by its names on the command line
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
        # the variable may have a part of a name: AKRUNNER_PYTHON
        longer = {one for one in (*known, *flags) if one.startswith(f"{name}_")}
        near = difflib.get_close_matches(name, [*known, *flags], 1, 0.8) or (list(longer) if len(longer) == 1 else [])
        if near:
            told.append(f"{variable} is not read; did you mean {_OURS + near[0] if near[0] in known else flags[near[0]]}?")
    return told
