"""The tables beneath the operators: relations of DuckDB's or of Flink's, computed only when their rows are read.

Flink's relations are in `akrunner.engines.flink.host.sql`.
"""

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
    """Return the relation of a query over other relations.

    Args:
        query: SQL with `{name}` where a relation stands.
        **tables: name -> relation; the names are `input`, `a` and `b`.
    Raises:
        ConfigError: DuckDB or Flink refuses the query; the error has its words.
    """
    import duckdb

    flink, connection = current().flink, current().connection
    if flink is not None and any(is_flinks(table) for table in tables.values()):
        return flink.query(query, **tables)
    for name in tables:
        query = query.replace("{" + name + "}", name)
    check_query(query, "the query", ConfigError)
    # DuckDB looks up tables by the names of local variables, so these are needed though no Python code reads them
    input, a, b = tables.get("input"), tables.get("a"), tables.get("b")
    try:
        relation = connection.sql(query)
    except duckdb.Error as e:
        raise ConfigError(f"{e}\nin: {query}") from None
    finally:
        del input, a, b
    return relation


def renamed(relation: Any, names: Sequence[str]) -> Any:
    """Return a relation with its columns renamed, in order. Raises: ConfigError: there are more or fewer names than columns."""
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
    """Whether a relation is Flink's; if not, it is DuckDB's."""
    return not hasattr(relation, "create")


def from_arrow(rows: pa.Table | pa.RecordBatchReader) -> Any:
    """Return Arrow rows as a relation for batch operators: of Flink's if the environment has Flink's SQL, else of DuckDB's."""
    flink = current().flink
    if flink is None:
        with ours(ConfigError, "the table cannot be taken"):
            return current().connection.from_arrow(rows)
    return flink.from_arrow(rows if isinstance(rows, pa.Table) else rows.read_all())


def source_of(relation: Any) -> Any:
    """Return a relation as the source of a job.

    A Flink relation gives its PyFlink table, or its rows if this process holds them; a DuckDB relation is returned as it is.
    """
    if not is_flinks(relation):
        return relation
    return relation.rows if relation.rows is not None else relation.table


def in_memory(relation: Any) -> Any:
    """Return a relation as a DuckDB relation; the rows of a Flink relation are fetched into this process."""
    return current().connection.from_arrow(arrow_table(relation)) if is_flinks(relation) else relation


def arrow_table(relation: Any) -> pa.Table:
    """Compute all rows of a relation, and return them as an Arrow table."""
    if is_flinks(relation):
        return relation.to_arrow_table()
    whole = relation.to_arrow_table if hasattr(relation, "to_arrow_table") else relation.arrow
    return heard(whole, current().connection.interrupt)


def rows_of(relation: Any) -> Any:
    """Return a relation's rows as RecordBatches; DuckDB computes them as they are read, Flink all at once."""
    return (
        arrow_table(relation).to_batches()
        if is_flinks(relation)
        else heard(lambda: duckdb_reader(relation), current().connection.interrupt)
    )


def arrow_schema(relation: Any) -> pa.Schema:
    """Return a relation's schema; no row is computed."""
    return relation.schema if is_flinks(relation) else arrow_table(relation.limit(0)).schema


def in_one(table: pa.Table) -> pa.RecordBatch:
    """Return all rows of a table in one batch."""
    columns = [pa.concat_arrays(column.chunks) if column.num_chunks else column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def shaped(rows: pa.RecordBatch, shapes: Mapping[str, tuple[int, ...]]) -> pa.RecordBatch:
    """Give columns of lists a fixed shape, if every row has as many values as the shape.

    Args: shapes: column -> shape of a value.
    Returns: the rows; a column whose rows do not all fit, or that has no lists, is unchanged.
    """
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
    """Return a relation's rows as text: as pandas prints them if pandas is installed, else as Arrow does."""
    table = arrow_table(relation)
    try:
        return str(to_pandas(table))
    except ImportError:
        return str(table)


@dataclass(frozen=True)
class Dialect:
    """How DuckDB's or Flink's SQL quotes names. Attributes: mark: the quotation mark around a name."""

    mark: str

    def text(self, sql: str) -> str:
        """Translate SQL from Flink's dialect, which Alink's users write, into this one: DuckDB has "name" for `name`."""
        check_text("an SQL expression", sql)
        if self is FLINKS:
            return sql
        return re.sub(r"('(?:[^']|'')*')|`([^`]*)`", lambda m: m.group(1) or f'"{m.group(2)}"', sql)

    def name(self, name: str) -> str:
        """Return a column's name in quotation marks."""
        return self.mark + name.replace(self.mark, 2 * self.mark) + self.mark

    def fields(self, fields: Fields) -> str:
        """Return the select list: the translated SQL for a text, quoted names for a list of columns."""
        return self.text(fields) if isinstance(fields, str) else ", ".join(map(self.name, check_names("fields", fields) or ()))


DUCKDBS, FLINKS = Dialect('"'), Dialect("`")


def dialect() -> Dialect:
    """Return the dialect of batch operators: Flink's or DuckDB's; stream operators always use DuckDB's."""
    return DUCKDBS if current().flink is None else FLINKS


def names_of(names: Fields) -> list[str]:
    if isinstance(names, str):
        return [name.strip().strip('`"') for name in names.split(",")]
    return check_names("names", names) or []


def kept(operator: Any, relation: Any) -> Any:
    """Return a relation whose rows are computed once and are the same whenever they are read.

    DuckDB keeps the rows in a table for as long as `operator` lives. Flink does not keep a table that gives the same rows each
    time it is computed: it computes the table again.
    """
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
