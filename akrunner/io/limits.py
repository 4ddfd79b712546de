"""How long a job may wait for another program, such as a database that takes its rows.

::

    with limited(timeout=600, stall_timeout=60):      around a job and the commit of its output
        waited(call, interrupt, what)                 raises JobTimeoutError once the 600 seconds are over
        waited(call, interrupt, what, quiet())        raises JobStalledError if the call takes 60 seconds
        until_writable(fd, what)                      raises either, if the reader of a pipe does not read

The limits are those of the thread that runs the job, which looks at nothing else while it waits.
"""

from __future__ import annotations

import contextlib
import contextvars
import select
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from akrunner.checks import MOST_SECONDS
from akrunner.errors import JobStalledError, JobTimeoutError
from akrunner.foreign import redacted

_Given = TypeVar("_Given")
#: how many seconds pass before a thread that waits by itself looks again
_TICK = 0.1


class Limits(NamedTuple):
    """The limits of a job.

    Attributes:
        timeout: how many seconds it may take; None: as many as it likes.
        until: the monotonic time at which they are over; None: never.
        stall_timeout: how many seconds a wait in which something has to move may take; None: as many as it likes.
        began: the monotonic time from which on `timeout` counts; None: there is none.
    """

    timeout: float | None = None
    until: float | None = None
    stall_timeout: float | None = None
    began: float | None = None


_LIMITS: ContextVar[Limits] = ContextVar("akrunner_limits", default=Limits())  # noqa: B039 -- a tuple is not changed
#: whether the job has rows for its output
_HAS_ROWS: ContextVar[bool] = ContextVar("akrunner_has_rows", default=False)


@contextlib.contextmanager
def limited(timeout: float | None, stall_timeout: float | None) -> Iterator[None]:
    """Limit the waits in a block.

    Args:
        timeout: how many seconds the block may take, at most as many as the block around it has; None: as many as that.
        stall_timeout: how many seconds a wait in which something has to move may take; None: as many as it likes.
    """
    with under(narrowed(timeout, stall_timeout)):
        yield


def in_time(timeout: object) -> AbstractContextManager[None]:
    """Limit the time of a block that fetches or opens what a job needs, and maybe runs it.

    Args: timeout: the job's. It may be no number, or too large a one: then it is refused later.
    """
    # what a number's own methods raise is told later, too
    with contextlib.suppress(Exception):
        if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and 0 < timeout <= MOST_SECONDS:
            return limited(float(timeout), None)
    return limited(None, None)


def narrowed(timeout: float | None, stall_timeout: float | None) -> Limits:
    """Return what `limited` limits a block by, that begins now, for another thread to have."""
    around, now = _LIMITS.get(), time.monotonic()
    if timeout and (around.until is None or now + timeout < around.until):
        return Limits(timeout, now + timeout, stall_timeout or None, now)
    # the time of one job, whole: the block's own may be another job's
    return around._replace(stall_timeout=stall_timeout or None)


def current() -> Limits:
    """Return the limits of the block that runs."""
    return _LIMITS.get()


@contextlib.contextmanager
def under(limits: Limits) -> Iterator[None]:
    """Limit the waits in a block. Args: limits: those of a job that began earlier."""
    token = _LIMITS.set(limits)
    try:
        yield
    finally:
        _LIMITS.reset(token)


@contextlib.contextmanager
def with_rows() -> Iterator[None]:
    """Open an output in the block for the first rows of a job that runs: what would be an error before the start is waited for."""
    token = _HAS_ROWS.set(True)
    try:
        yield
    finally:
        _HAS_ROWS.reset(token)


def has_rows() -> bool:
    """Whether an output is opened for rows that are there already (`with_rows`)."""
    return _HAS_ROWS.get()


def check_time(what: str) -> float | None:
    """Return how many seconds the job has left; None: as many as it likes. Args: what: whom it waits for, in errors.

    Raises:
        JobTimeoutError: none.
    """
    limits = _LIMITS.get()
    if limits.until is None:
        return None
    left = limits.until - time.monotonic()
    if left <= 0:
        raise JobTimeoutError(
            f"the job took longer than timeout={limits.timeout or 0:g} s and was stopped while it waited for {what}"
        ) from None
    return left


def quiet() -> float | None:
    """Return how many seconds a wait in which something has to move may take; None: as many as it likes."""
    return _LIMITS.get().stall_timeout


def deadline() -> float | None:
    """Return the monotonic time at which the job's time is over; None: never."""
    return _LIMITS.get().until


def waited(call: Callable[[], _Given], interrupt: Callable[[], Any] | None, what: str, seconds: float | None = None) -> _Given:
    """Do work that waits for another program, as `akrunner.io.sql.heard` does, within the job's limits.

    Args:
        interrupt: ends the work early; None: it cannot be ended, and is left alone.
        what: whom the work waits for, in errors.
        seconds: how long it may take; None: as long as the job has.
    Raises:
        BaseException: whatever `call` raises.
        JobTimeoutError: the job's time is over.
        JobStalledError: it took more than `seconds`.
    """
    # who waits for nobody, as agents on Flink, does without it, and without the tables that it imports
    from akrunner.io.sql import heard

    limits = _LIMITS.get()
    left = max(0.0, limits.until - time.monotonic()) if limits.until is not None else None
    try:
        return heard(call, interrupt, min((one for one in (left, seconds) if one is not None), default=None))
    except TimeoutError:
        check_time(what)
        if seconds is None:
            # of the work itself
            raise
        raise _stalled(seconds, f"{what}, which does not answer") from None


def _stalled(seconds: float, what: str) -> JobStalledError:
    return JobStalledError(
        f"nothing has moved for {seconds:g} s: the job waits for {what}\n"
        "(stall_timeout= (--stall-timeout) waits longer (0: for ever), stall_action='warn' (--stall-action warn) goes on)"
    )


def opened(place: Any, call: Callable[[], _Given]) -> _Given:
    """Open, or look at, a place within the job's time.

    Args:
        place: a URL, whose server may never answer; anything else is not waited for.
    Raises:
        BaseException: whatever `call` raises.
        JobTimeoutError: the job's time is over.
    """
    if deadline() is None or not isinstance(place, str) or "://" not in place:
        return call()
    # what it waits for by itself ends in time, too, instead of going on in a thread that is let alone
    context = contextvars.copy_context()
    return waited(lambda: context.run(call), None, redacted(place))


def waits_on(what: str, begun: float) -> None:
    """Check that a wait may go on in which this thread looks again and again.

    Args:
        what: whom it waits for, in errors.
        begun: the monotonic time at which it began.
    Raises:
        JobTimeoutError: the job's time is over.
        JobStalledError: the wait has taken as long as one may in which something has to move.
    """
    check_time(what)
    seconds = quiet()
    if seconds is not None and time.monotonic() >= begun + seconds:
        raise _stalled(seconds, what) from None


def until_writable(fd: int, what: str) -> None:
    """Wait until a descriptor takes bytes, or has an error to tell, within the job's limits.

    Args:
        what: whom it waits for, in errors.
    Raises:
        JobTimeoutError: the job's time is over.
        JobStalledError: the descriptor has taken nothing for as long as it may.
    """
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    begun = time.monotonic()
    # wait only for short times: where polars was imported, Ctrl-C does not wake a thread that waits
    while not poll.poll(_TICK * 1000):
        waits_on(what, begun)
