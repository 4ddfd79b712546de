"""Gives connections to the DuckDB in which a process runs akrunner's own small queries, which are over no rows."""

from __future__ import annotations

import functools
import os
from typing import Any


def connected() -> Any:
    """Return a connection to a database that has no file. Close it after use.

    All these connections of a process share one instance of DuckDB: to make one takes as long as to write thousands of rows. What a
    connection registers, sets for its session or makes as a temporary table is its own; it must make nothing else, and run no text of
    a user's. It is not for a table's rows: the instance keeps the memory of the largest batch for as long as the process lives.
    """
    return _instance(os.getpid()).cursor()


@functools.cache
def _instance(process: int) -> Any:
    """Args: process: the id of this process: one that was forked takes none of its parent's."""
    import duckdb

    # one thread: an instance keeps its threads as long as it is there
    return duckdb.connect(config={"threads": 1, "enable_external_access": "false"})
