"""Tables a job's script asks for itself: names, as a person gives them -> a checked `TablesSpec`."""

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
    """What a script may read and write, all of which is there.

    Args: project: of names without one; store: None: where the project's tables are; parameters: what the two are called in errors.
    Raises: ConfigError: a name is none; SourceError, SinkError: there is no such table.
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
    """Names of tables: a list, or one text with commas. Raises: ConfigError: they are none."""
    if isinstance(given, str):
        given = given.split(",")
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
        raise ConfigError(f"{parameter} must be names of tables, not {shown(given)}")
    return [one.strip() for one in given if one.strip()]
