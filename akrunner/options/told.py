"""Errors of public functions about keywords that they do not have, and about options that mean nothing beside the others.

Python's own error for an unknown keyword does not name the option that is meant.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from akrunner.errors import CallError, ConfigError, noting
from akrunner.options.functions import VERBS
from akrunner.options.naming import misfit, of_verb
from akrunner.options.needs import meaningless

P = ParamSpec("P")
R = TypeVar("R")


def told(verb: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a verb's function that checks the keywords it is called with.

    A misspelt or misplaced keyword raises a TypeError that names the right one, or the functions that take it. An option that
    means nothing without another raises a ConfigError that names the other. What the function raises says in its traceback how to look up its code.
    """
    of = next(one for one in VERBS if one.name == verb)
    ahead = ("self", *of.positional) if of.of_class else of.positional

    def wrapped(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **options: P.kwargs) -> R:
            wrong = misfit(options, verb, [one.name for one in of_verb(verb)])
            if wrong is not None:
                raise CallError(f"akrunner.{verb}: {wrong}")
            said = {**dict(zip(ahead, args)), **options}
            idle = meaningless(verb, said, said)
            if idle is not None:
                raise ConfigError(idle)
            return function(*args, **options)

        return noting(called)

    return wrapped
