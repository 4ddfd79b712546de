"""Which options a verb takes, and what is wrong with a name that is none of them."""

from __future__ import annotations

import difflib
from typing import Collection, Iterable, Optional, Tuple

from akrunner.options.declared import SCRIPTS, Option
from akrunner.options.functions import VERBS
from akrunner.options.table import OPTIONS

#: what only a job that runs has a use for
_OF_RUNS = ("observer", "remove_checkpoint_before_training")


def of_verb(verb: str) -> Tuple[Option, ...]:
    """The options a verb takes, in their order. What looks at a job takes those that say what it does."""
    if verb == "plan":
        return tuple(one for one in OPTIONS if {verb, *SCRIPTS} & set(one.verbs) and one.name not in _OF_RUNS)
    if verb == "plan_predict":
        return tuple(one for one in OPTIONS if "predict" in one.verbs and one.name not in _OF_RUNS)
    of = next((one for one in VERBS if one.name == verb and one.takes), None)
    if of is None:
        return tuple(one for one in OPTIONS if verb in one.verbs)
    lent = [one.name for one in OPTIONS if of.takes in one.verbs and not one.rows and one.name not in of.leaves]
    return tuple(one for one in OPTIONS if verb in one.verbs or one.name in lent)


def carried(verb: str) -> Tuple[str, ...]:
    """The names of those in its `Arguments` or `PredictArguments`."""
    return tuple(one.name for one in of_verb(verb) if not one.apart)


def misfit(names: Iterable[str], verb: str, known: Collection[str]) -> Optional[str]:
    """Args: known: names that are taken. Returns: what is wrong with the first name that is not, in words; None: all are."""
    for name in names:
        if name in known:
            continue
        option = next((one for one in OPTIONS if one.name == name), None)
        if option is not None and option.rows and "." in verb:
            return f"{name}= means nothing for {verb}: rows come from a Table or DataStream, and go to one"
        others = option.verbs if option is not None else ()
        if others and verb not in others:
            return f"{name}= means nothing for {verb}: it is an option of {', '.join(others)}"
        if name == "dry_run":
            return f"there is no option 'dry_run' for {verb}: akrunner.plan(...), or --dry-run of the command, says what the job would do"
        # as the command has it: --input is source=
        flag = "--" + name.replace("_", "-")
        same = [one.name for one in OPTIONS if one.name in known and flag in one.words]
        near = same or difflib.get_close_matches(name, known, 1)
        return f"there is no option {name!r} for {verb}" + (f"; did you mean {near[0]!r}?" if near else "")
    return None
