"""The tables that a job's script asks for by itself: turns the names a user gives into a checked `TablesSpec`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from akrunner.checks import shown
from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.foreign import ours
from akrunner.spec import TablesSpec
from akrunner.tables.chosen import store_for
from akrunner.tables.names import TableName, project_of
from akrunner.tables.store import TableStore, check_writable


def tables_spec(
    tables: Sequence[str],
    outputs: Sequence[str],
    project: str | None = None,
    *,
    store: TableStore | None = None,
    parameters: tuple[str, str] = ("tables", "output_tables"),
) -> TablesSpec:
    """Check that a script can read and write the tables it names, and return them.

    Args:
        tables: names of the tables the script reads.
        outputs: names of the tables the script writes.
        project: the project of names that hold none.
        store: where the tables are; None for the store of the project.
        parameters: the names of the first two parameters, for messages.
    Raises:
        ConfigError: a text is no name of a table.
        SourceError: a table to read does not exist, or cannot be read.
        SinkError: a table to write does not exist, or cannot be written.
    """
    inputs, outs = names_of(parameters[0], tables), names_of(parameters[1], outputs)
    project = project_of(project)
    named = [TableName.parse(one, project) for one in (*inputs, *outs)]
    kept = store or store_for(named[0].project if named else project or "")
    for at, (text, name) in enumerate(zip((*inputs, *outs), named)):
        reads = at < len(inputs)
        kind = SourceError if reads else SinkError
        with ours(kind, f"{parameters[0 if reads else 1]}: {text}"):
            if reads:
                kept.count(name)
            else:
                check_writable(kept, name)
    return TablesSpec(tuple(inputs), tuple(outs), kept, project)


def names_of(parameter: str, given: Any) -> Sequence[str]:
    """Return names of tables, given as a list or as one text with commas.

    Raises:
        ConfigError: `given` is neither.
    """
    if isinstance(given, str):
        given = given.split(",")
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
        raise ConfigError(f"{parameter} must be names of tables, not {shown(given)}")
    return [one.strip() for one in given if one.strip()]
