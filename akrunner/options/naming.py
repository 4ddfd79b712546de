"""Which options a verb takes, and the error for a name that is not among them."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Collection, Iterable, Sequence

from akrunner.options.declared import SCRIPTS, Option, Verb
from akrunner.options.functions import COMMANDS, VERBS
from akrunner.options.table import OPTIONS

#: options that only mean something for a job that runs
_OF_RUNS = ("observer", "remove_checkpoint_before_training")
#: verbs whose jobs can be planned before they run
_PLANNED = (*SCRIPTS, "plan", "predict", "plan_predict", "predict_stream")

#: arguments that a script gives to a method of `task_config`, and that are no options of a job -> the methods
_IN_BOTH = "task_config.dataset() and batches()"
IN_SCRIPTS = {
    **dict.fromkeys(
        ("shuffle", "repeat", "label", "seed", "weights", "map", "image", "cache", "interleave", "prefetch", "deterministic"),
        "task_config.dataset()",
    ),
    **dict.fromkeys(("batch_size", "drop_remainder", "uneven"), _IN_BOTH),
    "nulls": "task_config.batches()",
}
#: (verb or command, name that it does not take) -> the option that is meant
MEANT = {("train", "output"): "model_out", ("init", "kind"): "template", ("init", "overwrite"): "force"}


def named(name: str) -> Option:
    """Return the option of that name."""
    return next(one for one in OPTIONS if one.name == name)


@functools.cache
def of_verb(verb: str) -> tuple[Option, ...]:
    """Return the options that a verb takes, in order: first the ones that can be given without a name.

    `plan` and `plan_predict` take the options of the verbs that they plan, except those that only mean something in a running
    job.
    """
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
    """Return the options that a command has, in the order of its function's options."""
    verbs = COMMANDS[command].verbs
    has = [one for one in OPTIONS if one.help_in(command) and (command in one.commands or set(verbs) & set(one.verbs))]
    return _first(has, next(one for one in VERBS if one.name == verbs[0])) if verbs else tuple(has)


def _first(options: Sequence[Option], verb: Verb) -> tuple[Option, ...]:
    """Return the options with the verb's positional ones first."""
    ahead = [one for name in verb.positional for one in options if one.name == name]
    return (*ahead, *(one for one in options if one not in ahead))


def carried(verb: str) -> tuple[str, ...]:
    """Return the names of a verb's options that are fields of its `Arguments` or `PredictArguments`."""
    return tuple(one.name for one in of_verb(verb) if not one.apart)


def paths_of(verb: str) -> tuple[str, ...]:
    """Return the names of a verb's options that their types say name one file or directory."""
    return tuple(one.name for one in of_verb(verb) if one.type_in(verb).removesuffix(" | None") == "PathLike")


def misfit(names: Iterable[str], verb: str, known: Collection[str]) -> str | None:
    """Say what is wrong with the first name that a verb does not take.

    Args: names: the names that were given; known: the names that the verb takes.
    Returns: the error in words, None if all names are taken.
    """
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
        # the name may be the command's word for the option: --input is source=
        flag = "--" + name.replace("_", "-")
        same = [one.name for one in OPTIONS if one.name in known and flag in one.words]
        near = same or difflib.get_close_matches(name, known, 1)
        return f"there is no option {name!r} for {verb}" + (f"; did you mean {near[0]!r}?" if near else "")
    return None
