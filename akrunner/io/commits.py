"""Outputs count when they are committed, and leave no trace when they are aborted: the block that does one or the other, and
the step that decides.

::

    send, write, ...      Ctrl-C ends it; nothing was written
    last_step(...)        Ctrl-C waits for it, and then says whether the output is there
    release(...)          what fails now is a warning: the output is there
"""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from akrunner.errors import WriteError
from akrunner.foreign import in_words
from akrunner.io.limits import deadline
from akrunner.patience import Patience

#: how many seconds Ctrl-C, or the end of the job's time, waits for a step that another program takes, and how often to look
_STEP_SECONDS, _TICK = 30.0, 0.05


class Uncommitted(Protocol):
    """An output that is not there yet."""

    def commit(self) -> None:
        """Put what was written where it belongs."""
        ...

    def abort(self) -> None:
        """Leave what was there before, and nothing new. After `commit`: let go of what is still held; what was committed stays."""
        ...


class _Closes(Protocol):
    def close(self) -> Any: ...


Output = TypeVar("Output", bound=Uncommitted)
Closable = TypeVar("Closable", bound=_Closes)


@contextlib.contextmanager
def committed(output: Output, storing: AbstractContextManager[None] | None = None) -> Iterator[Output]:
    """Commit an output at the end of the block; abort it if the block, or the commit, raises.

    Args:
        output: what the block writes.
        storing: entered for the commit alone, to say in its errors what could not be stored.
    """
    with uncommitted(output):
        yield output
        with storing or contextlib.nullcontext():
            output.commit()


@contextlib.contextmanager
def uncommitted(output: Output) -> Iterator[Output]:
    """Abort an output at the end of the block, which leaves it as it is if the block has committed it."""
    try:
        yield output
    except BaseException:
        output.abort()
        raise
    release(output.abort, "output")


def last_step(shown: str, step: Callable[[], object], elsewhere: bool = False) -> None:
    """Take the step with which an output comes to be. A signal that comes meanwhile (Ctrl-C) is raised when the step has ended,
    with a note that says what became of the output; the third signal, or one that has waited for long, ends the wait.

    Args:
        shown: the output's name.
        step: takes the step, and raises if the output is not there.
        elsewhere: whether another program takes it, which may never answer: then `step` runs in a thread of its own.
    Raises:
        Exception: whatever `step` raises, also if a signal came.
        WriteError: the step has not ended, and the job's time is over.
    """
    told = (
        f"output: it is not known whether {shown} was written, as its commit had not ended; look at it before you run the job "
        "again"
    )
    written = False
    try:
        with Patience() as patience:
            _taken(step, patience, WriteError(f"{told} (timeout= has passed)")) if elsewhere else step()
            told, written = f"output: {shown} was written: its commit ended before the signal took effect", True
    except Exception:
        raise
    except BaseException as e:
        _tell(e, told, written)
        raise


def _tell(error: BaseException, told: str, written: bool) -> None:
    """Let a signal's exception say what became of an output."""
    error.add_note(told)
    vars(error)["of_commits"] = [*told_of(error), told]
    vars(error)["output_written"] = written


def may_be_written(error: BaseException) -> bool:
    """Whether an exception ended the job although its output is there, or may come to be there."""
    return still_runs(error) or bool(getattr(error, "output_written", False))


def told_of(error: BaseException) -> list[str]:
    """Return what a signal's exception says of the outputs that were just being committed; empty: of none."""
    return list(getattr(error, "of_commits", ()))


def still_runs(error: BaseException) -> bool:
    """Whether an exception has ended the wait for a last step that has not ended: its connection must be let alone then."""
    return bool(getattr(error, "step_runs", False))


@contextlib.contextmanager
def closing(thing: Closable) -> Iterator[Closable]:
    """Close something at the end of the block, as `contextlib.closing` does, unless a last step still runs with it."""
    try:
        yield thing
    except BaseException as e:
        if not still_runs(e):
            thing.close()
        raise
    thing.close()


def _taken(step: Callable[[], object], patience: Patience, late: WriteError) -> None:
    """Take a step in a thread of its own, and wait for its end; after a signal, or the end of the job's time, not for long.

    Args:
        late: raised if the job's time is over and the step has not ended.
    """
    failed: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            step()
        except BaseException as e:
            failed.append(e)
        finally:
            done.set()

    threading.Thread(target=run, name="akrunner-commit", daemon=True).start()
    until: float | None = None
    over = deadline()
    try:
        # the third signal is raised in here
        while not done.wait(_TICK):
            if over is not None and time.monotonic() >= over + _STEP_SECONDS:
                raise late
            if patience.waits and until is None:
                until = time.monotonic() + _STEP_SECONDS
            if until is not None and time.monotonic() >= until:
                with patience.heard():
                    until = None
    except BaseException as e:
        vars(e)["step_runs"] = not done.is_set()
        raise
    if failed:
        raise failed[0]


def release(close: Callable[[], object], shown: str) -> None:
    """Let go of what an output holds that is committed, which is no less there if this fails.

    Args:
        close: closes it; an Exception of it becomes a RuntimeWarning.
        shown: what is let go of, in the warning.
    Raises:
        BaseException: a signal that comes meanwhile, with a note that the output is there.
    """
    try:
        close()
    except Exception as e:
        warnings.warn(
            f"{shown}: everything was written, and then its end failed ({in_words(e)}); nothing is lost",
            RuntimeWarning,
            stacklevel=2,
        )
    except BaseException as e:
        if not may_be_written(e):
            _tell(e, f"{shown}: everything was written before the signal took effect", True)
        raise


@contextlib.contextmanager
def behind_tables() -> Iterator[None]:
    """Commit, within this context, an output whose job has already committed its output tables.

    Raises:
        WriteError: the output cannot be committed; the message adds that the tables were committed before.
    """
    try:
        yield
    except WriteError as e:
        raise WriteError(
            f"{e} (the tables of output_tables= were committed before: run the job again, which replaces them)"
        ) from e
