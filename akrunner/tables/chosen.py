"""Chooses the store that keeps a project's tables."""

from __future__ import annotations

import os

from akrunner.errors import SourceError
from akrunner.leftovers.private import base_dir
from akrunner.tables.credentials import odps_credentials
from akrunner.tables.local import LocalTables
from akrunner.tables.store import TableStore
from akrunner.wire.near import nearest

#: the environment variable with the directory of the local tables
ROOT_VARIABLE = "AKRUNNER_TABLES"


def tables_root(given: str | None = None) -> str:
    """Return the directory of the local tables: `given`, else the environment's, else one in the user's data directory."""
    named = given or os.environ.get(ROOT_VARIABLE)
    if named:
        return os.path.abspath(os.path.expanduser(named))
    return os.path.join(base_dir("XDG_DATA_HOME", ".local", "share"), "akrunner", "tables")


def store_for(project: str, root: str | None = None) -> TableStore:
    """Return MaxCompute if there are credentials for it, else this machine's tables. A directory named here or in the
    environment selects this machine's tables, whatever credentials there are.

    Args:
        project: the project whose tables are wanted.
        root: the directory of the local tables, if the caller wants these; None for what the environment says.
    Raises:
        ConfigError: there are credentials, but a part of them is missing, or PyODPS is not installed.
    """
    credentials = None if root or os.environ.get(ROOT_VARIABLE) else odps_credentials()
    if credentials is None:
        return LocalTables(tables_root(root))
    from akrunner.tables.maxcompute import MaxComputeTables

    return MaxComputeTables(project, credentials)


def check_project(given: str, store: TableStore) -> None:
    """Check that the store has a project of this name; a store that lists no projects passes.

    Raises:
        SourceError: the store lists projects, but not this one.
    """
    there = store.projects()
    if there and given.lower() not in (name.lower() for name in there):
        raise SourceError(
            f"tables ls: there is no project {given} in "
            f"{store.place}{nearest(given, there) or '; there are ' + ', '.join(there)}"
        )


def told_of(project: str, store: TableStore) -> str:
    """Return a sentence that tells the user where the tables of a project are."""
    where = f"MaxCompute at {store.place}" if store.kind == "maxcompute" else f"in {store.place}"
    return f"tables of project {project}: {where}"
