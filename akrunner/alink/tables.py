"""The tables beneath the operators: DuckDB relations, computed when they are drawn."""

from __future__ import annotations

import re
import uuid
import weakref
from typing import Any, List, Sequence, Union

import pyarrow as pa

from akrunner.alink.environment import current
from akrunner.errors import ConfigError
from akrunner.io.sql import duckdb_reader

Fields = Union[str, Sequence[str]]


def queried(query: str, **tables: Any) -> Any:
    """A relation of a query over relations. Raises: ConfigError: DuckDB refuses it, in its own words."""
    import duckdb

    connection = current().connection
    # DuckDB finds tables under the names of local variables
    input, a, b = tables.get("input"), tables.get("a"), tables.get("b")
    try:
        relation = connection.sql(query)
    except duckdb.Error as e:
        raise ConfigError(f"{e}\nin: {query}") from None
    finally:
        del input, a, b
    return relation


def renamed(relation: Any, names: Sequence[str]) -> Any:
    """The same columns under other names."""
    if len(names) != len(relation.columns):
        raise ConfigError(f"alias: {len(relation.columns)} columns ({', '.join(relation.columns)}) and {len(names)} names")
    return queried(
        "SELECT " + ", ".join(f"{quoted(old)} AS {quoted(new)}" for old, new in zip(relation.columns, names)) + " FROM input",
        input=relation,
    )


def arrow_table(relation: Any) -> pa.Table:
    """All rows of a relation."""
    return relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.arrow()


def rows_of(relation: Any) -> Any:
    """Its rows as RecordBatches, computed as they are drawn."""
    return duckdb_reader(relation)


def arrow_schema(relation: Any) -> pa.Schema:
    """Its columns; no row is computed."""
    return arrow_table(relation.limit(0)).schema


def shown(relation: Any) -> str:
    """As text: pandas' where it is there, else Arrow's."""
    table = arrow_table(relation)
    try:
        return str(table.to_pandas())
    except ImportError:
        return str(table)


def sql(text: str) -> str:
    """Flink's SQL as DuckDB's: `name` in backticks is "name"."""
    return re.sub(r"('(?:[^']|'')*')|`([^`]*)`", lambda m: m.group(1) or f'"{m.group(2)}"', text)


def fields_of(fields: Fields) -> str:
    if isinstance(fields, str):
        return sql(fields)
    return ", ".join(quoted(name) for name in fields)


def names_of(names: Fields) -> List[str]:
    if isinstance(names, str):
        return [name.strip().strip('`"') for name in names.split(",")]
    return list(names)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def kept(operator: Any, relation: Any) -> Any:
    """A relation's rows in a table of DuckDB's, for as long as the operator lives."""
    connection = current().connection
    name = "kept_" + uuid.uuid4().hex
    relation.create(name)
    weakref.finalize(operator, _drop, connection, name)
    return connection.table(name)


def _drop(connection: Any, name: str) -> None:
    import duckdb

    try:
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    except duckdb.Error:
        pass  # the environment was reset: its tables are gone with it
