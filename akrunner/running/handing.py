"""The rows of a job are handed over to a command, which writes them to stdout: the last part of the job.

::

    with handed_over(to):         a command, around the verb
        akrunner.run(...)         hand_over(result) calls to(result) before the job is known to have succeeded

A job whose rows cannot be written has failed, also in the run that is kept of it and in what `notify=` and `metrics_file=` are told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from akrunner.running.result import Result

_TO: ContextVar[Callable[[Result], None] | None] = ContextVar("akrunner_to", default=None)


@contextlib.contextmanager
def handed_over(to: Callable[[Result], None] | None) -> Iterator[None]:
    """Have the jobs of a block hand their rows over. Args: to: takes the result of a job without `output=`; None: nobody."""
    token = _TO.set(to)
    try:
        yield
    finally:
        _TO.reset(token)


def hand_over(result: Result) -> None:
    """Hand the rows of a job over. Raises: what the one who takes them raises."""
    to = _TO.get()
    if to is not None:
        to(result)
