"""What of a statement is wrong whatever tables there are; nothing is run, and no table is looked at."""

from __future__ import annotations

from typing import Any, Optional

from akrunner.errors import ConfigError, SourceError
from akrunner.tables.statements import Session, Statement


class _Reached(Exception):
    """A statement has come as far as a table."""


class _Nowhere:
    """Stands in a store's place, and whoever asks it has read the statement so far."""

    def __getattr__(self, name: str) -> Any:
        if name == "execute":
            # it is none that takes whole statements
            raise AttributeError(name)
        raise _Reached(name)


def _store(project: str) -> Any:
    return _Nowhere()


def refused(statement: Statement, project: Optional[str]) -> Optional[ConfigError]:
    """Why a statement is refused before it asks for any table: it is none that is known, or its tables have no project.

    Args: project: of names without one.
    """
    try:
        Session(_store, project).run(statement)
    except _Reached:
        return None
    except SourceError:
        # files may be made by the statements before it
        return None
    except ConfigError as e:
        return e
    return None
