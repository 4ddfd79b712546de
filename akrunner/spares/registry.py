"""The pools of this process."""

from __future__ import annotations

import os
from typing import List

from akrunner.spares.pool import Pool

_pools: List[Pool] = []


def pools() -> List[Pool]:
    """Those whose spares jobs may take, newest first."""
    return list(_pools)


def add(pool: Pool) -> None:
    """Let jobs take its spares."""
    _pools.insert(0, pool)


def remove(pool: Pool) -> None:
    """Let no more jobs do so."""
    if pool in _pools:
        _pools.remove(pool)


# a child made by fork: they are its parent's
os.register_at_fork(after_in_child=_pools.clear)
