"""The pools of this process: those the user has asked for, and in a notebook the one that is made by itself."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence

from akrunner.launch.cgroups import memory_bytes
from akrunner.markup import in_notebook as in_notebook
from akrunner.spares.pool import Pool
from akrunner.spares.wanted import Wanted

_MOST_IN_NOTEBOOKS = 2
_IDLE_IN_NOTEBOOKS = 900.0
_PRELOAD = ("tensorflow",)
_pools: list[Pool] = []
_own: list[Pool] = []
#: of other processes that are kept as long as pools are: how many wait, and what ends them
_beside: list[tuple[Callable[[], int], Callable[[], None]]] = []


def pools(python: str = "") -> list[Pool]:
    """Return the pools whose spares jobs may take: first those whose jobs have used this interpreter, then the newest."""
    return sorted(_pools, key=lambda pool: not pool.knows(python))


def add(pool: Pool) -> None:
    """Let jobs take the spares of this pool. A pool that was made by itself is closed."""
    while _own:
        own = _own.pop()
        remove(own)
        own.close()
    _pools.insert(0, pool)


def after_job(wants: Sequence[Wanted]) -> None:
    """In a notebook, where the next job comes soon, keep spares like the workers of this job, unless the user keeps others."""
    if _pools or not wants or not in_notebook():
        return
    most = memory_bytes() // 4
    with contextlib.suppress(OSError, RuntimeError):  # the user has not asked for it
        pool = Pool(wants, min(len(wants), _MOST_IN_NOTEBOOKS), _PRELOAD, _IDLE_IN_NOTEBOOKS, most, hurry=False)
        _own.append(pool)
        _pools.insert(0, pool)


def remove(pool: Pool) -> None:
    """Let no more jobs take the spares of this pool."""
    if pool in _pools:
        _pools.remove(pool)


def beside(waiting: Callable[[], int], close: Callable[[], None]) -> None:
    """Have other processes end with the last pool that is closed. Args: waiting: how many of them wait for a job; close: ends them."""
    _beside.append((waiting, close))


def waiting_beside() -> int:
    """Return how many processes wait for a job that are no spares."""
    return sum(waiting() for waiting, _ in _beside)


def close_beside() -> None:
    """End the processes that are kept as long as pools are, if there is no pool any more."""
    if not _pools:
        for _, close in _beside:
            close()


def _forked() -> None:
    # this is a child made by fork: the pools belong to its parent
    _pools.clear()
    _own.clear()


os.register_at_fork(after_in_child=_forked)
