"""What a public function says of a keyword that it does not have: Python names none that is meant."""

from __future__ import annotations

import functools
from typing import Callable, ParamSpec, TypeVar

from akrunner.options.naming import misfit, of_verb

P = ParamSpec("P")
R = TypeVar("R")


def told(verb: str) -> "Callable[[Callable[P, R]], Callable[P, R]]":
    """Of a verb's function: a misspelt or misplaced keyword is a TypeError that names the right one, or who takes it."""

    def wrapped(function: "Callable[P, R]") -> "Callable[P, R]":
        @functools.wraps(function)
        def called(*args: "P.args", **options: "P.kwargs") -> R:
            wrong = misfit(options, verb, [one.name for one in of_verb(verb)])
            if wrong is not None:
                raise TypeError(f"akrunner.{verb}: {wrong}")
            return function(*args, **options)

        return called

    return wrapped
