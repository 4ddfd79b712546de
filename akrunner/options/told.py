"""What a public function says of a keyword that it does not have, where Python names none that is meant, and of an option that means nothing beside
the others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from akrunner.errors import ConfigError
from akrunner.options.functions import VERBS
from akrunner.options.naming import misfit, of_verb
from akrunner.options.needs import meaningless

P = ParamSpec("P")
R = TypeVar("R")


def told(verb: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Of a verb's function: a misspelt or misplaced keyword is a TypeError that names the right one, or who takes it; one that means nothing without
    another, which was not given, a ConfigError that names that."""
    of = next(one for one in VERBS if one.name == verb)
    ahead = ("self", *of.positional) if of.of_class else of.positional

    def wrapped(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **options: P.kwargs) -> R:
            wrong = misfit(options, verb, [one.name for one in of_verb(verb)])
            if wrong is not None:
                raise TypeError(f"akrunner.{verb}: {wrong}")
            said = {**dict(zip(ahead, args)), **options}
            idle = meaningless(verb, said, said)
            if idle is not None:
                raise ConfigError(idle)
            return function(*args, **options)

        return called

    return wrapped
