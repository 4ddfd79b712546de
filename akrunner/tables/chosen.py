"""Which store a project's tables are in."""

from __future__ import annotations

import os
from typing import Optional

from akrunner.tables.local import LocalTables
from akrunner.tables.store import TableStore

#: the directory tables are in
ROOT_VARIABLE = "AKRUNNER_TABLES"


def tables_root(given: Optional[str] = None) -> str:
    """The directory of the local tables: as given, or as the environment says, or in the user's data directory."""
    named = given or os.environ.get(ROOT_VARIABLE)
    if named:
        return os.path.abspath(os.path.expanduser(named))
    base = os.environ.get("XDG_DATA_HOME") or ""
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "akrunner", "tables")


def store_for(project: str, root: Optional[str] = None) -> TableStore:
    """Args: project: whose tables; root: of the local ones, for a caller that does not want the usual one."""
    return LocalTables(tables_root(root))
