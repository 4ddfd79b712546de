"""Which options a verb takes, and what is wrong with a name that is none of them."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Collection, Iterable, Sequence

from akrunner.options.declared import SCRIPTS, Option, Verb
from akrunner.options.functions import COMMANDS, VERBS
from akrunner.options.table import OPTIONS

#: what only a job that runs has a use for
_OF_RUNS = ("observer", "remove_checkpoint_before_training")
#: their jobs can be looked at before they run
_PLANNED = (*SCRIPTS, "plan", "predict", "plan_predict", "predict_stream")

#: what scripts give to `task_config`, not callers to jobs -> by which of its methods
_IN_BOTH = "task_config.dataset() and batches()"
IN_SCRIPTS = {
    **dict.fromkeys(
        ("shuffle", "repeat", "label", "seed", "weights", "map", "image", "cache", "interleave", "prefetch", "deterministic"),
        "task_config.dataset()",
    ),
    **dict.fromkeys(("batch_size", "drop_remainder", "uneven"), _IN_BOTH),
    "nulls": "task_config.batches()",
}
#: (verb, name) -> what is meant
MEANT = {("train", "output"): "model_out"}


def named(name: str) -> Option:
    """The option of that name."""
    return next(one for one in OPTIONS if one.name == name)


@functools.cache
def of_verb(verb: str) -> tuple[Option, ...]:
    """The options a verb takes, in their order: first those that need no name. What looks at a job takes those that say what it does."""
    of = next(one for one in VERBS if one.name == verb)
    if verb == "plan":
        taken = [one for one in OPTIONS if {verb, *SCRIPTS} & set(one.verbs) and one.name not in _OF_RUNS]
    elif verb == "plan_predict":
        taken = [one for one in OPTIONS if "predict" in one.verbs and one.name not in _OF_RUNS]
    elif of.takes:
        lent = [one.name for one in OPTIONS if of.takes in one.verbs and not one.rows and one.name not in of.leaves]
        taken = [one for one in OPTIONS if verb in one.verbs or one.name in lent]
    else:
        taken = [one for one in OPTIONS if verb in one.verbs]
    return _first(taken, of)


def of_command(command: str) -> tuple[Option, ...]:
    """The options a command has, in the order of its function's."""
    verbs = COMMANDS[command].verbs
    has = [one for one in OPTIONS if one.help_in(command) and (command in one.commands or set(verbs) & set(one.verbs))]
    return _first(has, next(one for one in VERBS if one.name == verbs[0])) if verbs else tuple(has)


def _first(options: Sequence[Option], verb: Verb) -> tuple[Option, ...]:
    """Those that need no name in a verb before the others."""
    ahead = [one for name in verb.positional for one in options if one.name == name]
    return (*ahead, *(one for one in options if one not in ahead))


def carried(verb: str) -> tuple[str, ...]:
    """The names of those in its `Arguments` or `PredictArguments`."""
    return tuple(one.name for one in of_verb(verb) if not one.apart)


def misfit(names: Iterable[str], verb: str, known: Collection[str]) -> str | None:
    """Args: known: names that are taken. Returns: what is wrong with the first name that is not, in words; None: all are."""
    for name in names:
        if name in known:
            continue
        option = next((one for one in OPTIONS if one.name == name), None)
        if option is not None and option.rows and "." in verb:
            return f"{name}= means nothing for {verb}: rows come from a Table or DataStream, and go to one"
        if name == "dry_run" and verb in _PLANNED:
            return f"there is no option 'dry_run' for {verb}: akrunner.plan(...), or --dry-run of the command, says what the job would do"
        meant = MEANT.get((verb, name))
        alike = [f"{one}=" for one in dict.fromkeys(known) if name in one.split("_")] if meant is None else [f"{meant}="]
        instead = f"; {verb} has {', '.join(alike)}" if option is not None and alike else ""
        if name in IN_SCRIPTS and (verb in SCRIPTS or verb == "plan"):
            also = f"an option of {', '.join(option.verbs)}, and " if option is not None else ""
            return f"{name}= means nothing for {verb}: it is {also}an argument of {IN_SCRIPTS[name]}, which the script calls{instead}"
        others = option.verbs if option is not None else ()
        command = next((one for one in COMMANDS.values() if verb in one.verbs), None)
        if option is not None and command is not None and command.name in option.commands:
            flag = option.words_in(command.name)[0]
            return f"{name}= means nothing for {verb}: it is an option of the command only, akrunner {command.name} {flag}"
        if option is not None and not others and option.commands:
            having = " and ".join(f"akrunner {one}" for one in option.commands)
            return f"{name}= means nothing for {verb}: it is an option of {having}"
        if others and verb not in others:
            return f"{name}= means nothing for {verb}: it is an option of {', '.join(others)}{instead}"
        # as the command has it: --input is source=
        flag = "--" + name.replace("_", "-")
        same = [one.name for one in OPTIONS if one.name in known and flag in one.words]
        near = same or difflib.get_close_matches(name, known, 1)
        return f"there is no option {name!r} for {verb}" + (f"; did you mean {near[0]!r}?" if near else "")
    return None
