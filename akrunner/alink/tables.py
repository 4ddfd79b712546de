"""The tables beneath the operators: DuckDB's relations, or Flink's (`akrunner.engines.flink.host.sql`), computed when they are drawn."""

from __future__ import annotations

import math
import re
import uuid
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.alink.environment import current
from akrunner.checks import check_names, check_text
from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.io.frames import to_pandas
from akrunner.io.sql import check_query, duckdb_reader, heard
from akrunner.schema import is_list

Fields = str | Sequence[str]


def queried(query: str, **tables: Any) -> Any:
    """A relation of a query over relations. Args: query: with `{name}` where each stands. Raises: ConfigError: DuckDB, or Flink, refuses it,
    in its own words."""
    import duckdb

    flink, connection = current().flink, current().connection
    if flink is not None and any(is_flinks(table) for table in tables.values()):
        return flink.query(query, **tables)
    for name in tables:
        query = query.replace("{" + name + "}", name)
    check_query(query, "the query", ConfigError)
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
    written = FLINKS if is_flinks(relation) else DUCKDBS
    return queried(
        "SELECT "
        + ", ".join(f"{written.name(old)} AS {written.name(new)}" for old, new in zip(relation.columns, names))
        + " FROM {input}",
        input=relation,
    )


def is_flinks(relation: Any) -> bool:
    """Whether it is Flink's; else it is DuckDB's."""
    return not hasattr(relation, "create")


def from_arrow(rows: pa.Table | pa.RecordBatchReader) -> Any:
    """A relation beneath batch operators."""
    flink = current().flink
    if flink is None:
        with ours(ConfigError, "the table cannot be taken"):
            return current().connection.from_arrow(rows)
    return flink.from_arrow(rows if isinstance(rows, pa.Table) else rows.read_all())


def source_of(relation: Any) -> Any:
    """It as a source of a job: a table of Flink's is there already, but for rows this process has."""
    if not is_flinks(relation):
        return relation
    return relation.rows if relation.rows is not None else relation.table


def in_memory(relation: Any) -> Any:
    """It as a relation of DuckDB's."""
    return current().connection.from_arrow(arrow_table(relation)) if is_flinks(relation) else relation


def arrow_table(relation: Any) -> pa.Table:
    """All rows of a relation."""
    if is_flinks(relation):
        return relation.to_arrow_table()
    whole = relation.to_arrow_table if hasattr(relation, "to_arrow_table") else relation.arrow
    return heard(whole, current().connection.interrupt)


def rows_of(relation: Any) -> Any:
    """Its rows as RecordBatches, computed as they are drawn."""
    return (
        arrow_table(relation).to_batches()
        if is_flinks(relation)
        else heard(lambda: duckdb_reader(relation), current().connection.interrupt)
    )


def arrow_schema(relation: Any) -> pa.Schema:
    """Its columns; no row is computed."""
    return relation.schema if is_flinks(relation) else arrow_table(relation.limit(0)).schema


def in_one(table: pa.Table) -> pa.RecordBatch:
    """All rows in one batch."""
    columns = [pa.concat_arrays(column.chunks) if column.num_chunks else column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def shaped(rows: pa.RecordBatch, shapes: Mapping[str, tuple[int, ...]]) -> pa.RecordBatch:
    """Rows whose columns of lists have these shapes, where every row has as many values. Args: shapes: column -> shape of a value."""
    for name, shape in shapes.items():
        column = rows.column(name)
        size = math.prod(shape)
        if not is_list(column.type) or isinstance(column.type, pa.FixedShapeTensorType):
            continue
        if pc.any(pc.not_equal(pc.list_value_length(column), size)).as_py():
            continue
        kind = pa.fixed_shape_tensor(column.type.value_type, shape)
        stored = column.cast(kind.storage_type)
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, pa.field(name, kind), pa.ExtensionArray.from_storage(kind, stored))
    return rows


def shown(relation: Any) -> str:
    """As text: pandas' where it is there, else Arrow's."""
    table = arrow_table(relation)
    try:
        return str(to_pandas(table))
    except ImportError:
        return str(table)


@dataclass(frozen=True)
class Dialect:
    """How a query is written. Attributes: mark: what a name stands between."""

    mark: str

    def text(self, sql: str) -> str:
        """SQL as Alink's users write it, for Flink: `name` in backticks is "name" to DuckDB."""
        check_text("an SQL expression", sql)
        if self is FLINKS:
            return sql
        return re.sub(r"('(?:[^']|'')*')|`([^`]*)`", lambda m: m.group(1) or f'"{m.group(2)}"', sql)

    def name(self, name: str) -> str:
        """A column."""
        return self.mark + name.replace(self.mark, 2 * self.mark) + self.mark

    def fields(self, fields: Fields) -> str:
        """What is selected."""
        return self.text(fields) if isinstance(fields, str) else ", ".join(map(self.name, check_names("fields", fields) or ()))


DUCKDBS, FLINKS = Dialect('"'), Dialect("`")


def dialect() -> Dialect:
    """Of batch operators; stream operators have DuckDB's."""
    return DUCKDBS if current().flink is None else FLINKS


def names_of(names: Fields) -> list[str]:
    if isinstance(names, str):
        return [name.strip().strip('`"') for name in names.split(",")]
    return check_names("names", names) or []


def kept(operator: Any, relation: Any) -> Any:
    """A relation's rows, computed once: in a table of DuckDB's, for as long as the operator lives. Flink computes a table again that
    comes out the same."""
    if is_flinks(relation):
        return relation.kept()
    connection = current().connection
    name = "kept_" + uuid.uuid4().hex
    heard(lambda: relation.create(name), connection.interrupt)
    weakref.finalize(operator, _drop, connection, name)
    return connection.table(name)


def _drop(connection: Any, name: str) -> None:
    import duckdb

    try:
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    except duckdb.Error:
        pass  # the environment was reset: its tables are gone with it
