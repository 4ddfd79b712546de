"""When an option means nothing: without the options it needs (`Option.needs`), or beside certain values of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from akrunner.options.declared import SCRIPTS, Option
from akrunner.options.naming import named, of_verb

#: options that can make a job have more than one task -> their values with which it has only one
_ALONE: Mapping[str, Sequence[Any]] = {
    "num_workers": (None, 1),
    "num_ps": (None, 0),
    "parallelism": (None, 1),
    "evaluator": (False,),
    "coordinator": (False,),
    "chief": (None,),
    "engine": ("local",),
}


def is_given(value: Any) -> bool:
    """Whether a value asks for something: None, False, and empty tuples, lists and dicts do not.

    Of other objects no method is called, as it may do anything.
    """
    return value is not None and value is not False and not (type(value) in (tuple, list, dict) and not value)


def meaningless(verb: str, said: Mapping[str, Any], has: Mapping[str, Any], options: Sequence[Option] = ()) -> str | None:
    """Say what is wrong with the first option that was given and has no effect with the other options as they are.

    Args:
        verb: the verb, or command.
        said: the options that the user gave, by name.
        has: the options that the user gave, and the defaults of the others.
        options: the options to look at, empty for the verb's.
    Returns: the error in words, None if all options mean something.
    """
    for one in options or of_verb(verb):
        why = idle(one, verb, has) if is_given(said.get(one.name)) else ""
        if why:
            return f"{called(one.name)} means nothing {why}"
    return None


def idle(option: Option, verb: str, has: Mapping[str, Any]) -> str:
    """Return why a value of an option would mean nothing in a verb, or command, and what to do; "" if it means something.

    Args: has: the values of all options, by name.
    """
    in_program = "." in verb
    if verb == "plan":
        # the job that is planned is another verb's
        verb = has["verb"] if type(has.get("verb")) is str else "run"
    verb = verb.removeprefix("plan_").rpartition(".")[2]
    needed = option.needs.get(verb, ())
    # an empty source is given, too: a table without rows is a table
    if needed and not any(has.get(name) is not None if name == "source" else is_given(has.get(name)) for name in needed):
        return f"without {' or '.join(map(called, needed))}; leave it out, or give both"
    if option.name == "parallelism" and all(type(has.get(one)) is int for one in ("num_workers", "num_ps")):
        return "beside both num_workers= and num_ps= (--num-workers, --num-ps), which say all there is; leave it, or one of them, out"
    if option.name == "stall_action" and type(has.get("stall_timeout")) in (int, float) and has["stall_timeout"] == 0:
        return "with stall_timeout=0 (--stall-timeout 0), as nothing is ever found to stall; leave it out, or give seconds"
    if option.name in ("bind_host", "advertised_host") and verb in SCRIPTS and not in_program and _alone(has):
        return "for one worker alone on this machine, whom no other task has to reach; leave it out, or give several workers (num_workers=, --num-workers)"
    return ""


def _alone(has: Mapping[str, Any]) -> bool:
    """Whether the job has a single task, on this machine, that is told of no cluster."""
    return all(
        name not in has or any(type(has[name]) is type(one) and has[name] == one for one in usual)
        for name, usual in _ALONE.items()
    )


def called(name: str) -> str:
    """Return an option's name in Python and on the command line: "output= (--output)"."""
    words = named(name).words
    return f"{name}=" + (f" ({words[0].partition('/')[0]})" if words else "")
