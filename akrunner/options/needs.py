"""What an option means nothing without, or beside: what the table declares (`Option.needs`), and what depends on values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from akrunner.options.declared import SCRIPTS, Option
from akrunner.options.naming import named, of_verb

#: options that say more than one task there is -> what they are if they do not
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
    """Whether a value asks for something: None, False and what is empty do not. No method of it is called but Python's own."""
    return value is not None and value is not False and not (type(value) in (tuple, list, dict) and not value)


def meaningless(verb: str, said: Mapping[str, Any], has: Mapping[str, Any], options: Sequence[Option] = ()) -> str | None:
    """What is wrong with the first option that means nothing beside the others, in words; None: all mean something.

    Args: said: what a person gave, by name; has: that, and what defaults are; options: those there are, none: those of the verb.
    """
    for one in options or of_verb(verb):
        why = idle(one, verb, has) if is_given(said.get(one.name)) else ""
        if why:
            return f"{called(one.name)} means nothing {why}"
    return None


def idle(option: Option, verb: str, has: Mapping[str, Any]) -> str:
    """Why a value of an option would mean nothing in a verb, or command, and what to do; "": it means something. Args: has: what holds, by name."""
    in_program = "." in verb
    if verb == "plan":
        # what is looked at is another verb's
        verb = has["verb"] if type(has.get("verb")) is str else "run"
    verb = verb.removeprefix("plan_").rpartition(".")[2]
    needed = option.needs.get(verb, ())
    # rows of which there are none are rows
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
    """Whether there is one task, of this machine, that is told of no cluster."""
    return all(
        name not in has or any(type(has[name]) is type(one) and has[name] == one for one in usual)
        for name, usual in _ALONE.items()
    )


def called(name: str) -> str:
    """An option as both sides have it: "output= (--output)"."""
    words = named(name).words
    return f"{name}=" + (f" ({words[0].partition('/')[0]})" if words else "")
