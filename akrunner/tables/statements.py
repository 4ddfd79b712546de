"""What a file for MaxCompute's client (`odpscmd -f`) holds: statements of SQL, `set`, `tunnel`, and PAI's commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

import pyarrow as pa

from akrunner.errors import ConfigError
from akrunner.tables.store import TableStore


@dataclass(frozen=True)
class Statement:
    """One statement.

    Attributes:
        kind: "pai" (`PAI -name ...`, whole, as it is written), "set", "tunnel", "sql".
        text: without comments before it and the `;` behind it.
        line: of the file, from 1.
    """

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class StatementResult:
    """What a statement did.

    Attributes:
        statement; message: what it did, in a sentence; "" where rows say it.
        rows: of SELECT, DESC, SHOW; None: it gives none.
        settings: of `set`: what it set.
    """

    statement: Statement
    message: str = ""
    rows: Optional[pa.Table] = None
    settings: Optional[Dict[str, str]] = None


def split(text: str) -> List[Statement]:
    """The statements of a file. Raises: ConfigError: a quote or a comment is not closed; it names the line."""
    raise NotImplementedError


def run(
    text: str,
    store: Callable[[str], TableStore],
    project: Optional[str] = None,
    pai: Optional[Callable[[Statement], Any]] = None,
) -> List[StatementResult]:
    """Run statements, one after the other.

    Args:
        store: project -> where its tables are (`chosen.store_for`).
        project: of names without one.
        pai: is given each of PAI's commands; None: they are an error.
    Raises: ConfigError: a statement is none it knows, or cannot be done; it names the line. Those before it are done.
    """
    raise ConfigError("not yet")
