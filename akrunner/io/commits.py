"""Outputs count when they are committed, and leave no trace when they are aborted: the block that does one or the other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar


class Uncommitted(Protocol):
    """An output that is not there yet."""

    def commit(self) -> None:
        """Put what was written where it belongs."""
        ...

    def abort(self) -> None:
        """Leave what was there before, and nothing new. After `commit`: let go of what is still held; what was committed stays."""
        ...


Output = TypeVar("Output", bound=Uncommitted)


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
    finally:
        output.abort()
