"""Which store a project's tables are in."""

from __future__ import annotations

import os

from akrunner.errors import SourceError
from akrunner.tables.credentials import odps_credentials
from akrunner.tables.local import LocalTables
from akrunner.tables.store import TableStore
from akrunner.wire.near import nearest

#: the directory tables are in
ROOT_VARIABLE = "AKRUNNER_TABLES"


def tables_root(given: str | None = None) -> str:
    """The directory of the local tables: as given, or as the environment says, or in the user's data directory."""
    named = given or os.environ.get(ROOT_VARIABLE)
    if named:
        return os.path.abspath(os.path.expanduser(named))
    base = os.environ.get("XDG_DATA_HOME") or ""
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "akrunner", "tables")


def store_for(project: str, root: str | None = None) -> TableStore:
    """MaxCompute, where there are credentials for it; else, or if a directory is named, the tables of this machine.

    Args: project: whose tables; root: of the local ones, for a caller that wants them.
    Raises: ConfigError: there are credentials, and something of them is missing, or PyODPS is.
    """
    credentials = None if root or os.environ.get(ROOT_VARIABLE) else odps_credentials()
    if credentials is None:
        return LocalTables(tables_root(root))
    from akrunner.tables.maxcompute import MaxComputeTables

    return MaxComputeTables(project, credentials)


def check_project(given: str, store: TableStore) -> None:
    """Raises: SourceError: there are projects, and none of this name."""
    there = store.projects()
    if there and given.lower() not in (name.lower() for name in there):
        raise SourceError(
            f"tables ls: there is no project {given} in {store.place}{nearest(given, there) or '; there are ' + ', '.join(there)}"
        )


def told_of(project: str, store: TableStore) -> str:
    """A sentence for whoever runs a job: which tables these are."""
    where = f"MaxCompute at {store.place}" if store.kind == "maxcompute" else f"in {store.place}"
    return f"tables of project {project}: {where}"
