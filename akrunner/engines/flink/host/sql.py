"""Flink's SQL over bounded tables. `akrunner.alink` computes its tables with it on Flink, as it does with DuckDB elsewhere.

Imports PyFlink, so only for programs that have it.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyflink.common import Configuration
from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes, EnvironmentSettings, StreamTableEnvironment, Table
from pyflink.table.types import _to_java_data_type, create_arrow_schema
from pyflink.util.java_utils import load_java_class

from akrunner.engines.flink.host.client import brings_python
from akrunner.engines.flink.program import bridge
from akrunner.engines.flink.program.submit import environment_of, words
from akrunner.engines.flink.rest import HEADERS, Address
from akrunner.errors import ConfigError

_ROWS = 4096
#: SQL functions that give other values when they are computed again
_RANDOM = re.compile(
    r"\b(RAND|RAND_INTEGER|UUID|NOW|CURRENT_\w+|LOCALTIME\w*)\b|\b(UNIX_TIMESTAMP|PROCTIME)\s*\(\s*\)", re.IGNORECASE
)


class Relation:
    """A table of Flink's, with those methods of DuckDB's relations that are needed here.

    Attributes:
        table: the PyFlink Table.
        steady: whether it has the same rows when it is computed again.
        rows: all its rows, if this process has them; otherwise None.
    """

    def __init__(self, sql: Sql, table: Table, steady: bool = True, rows: pa.Table | None = None) -> None:
        self._sql = sql
        self.table = table
        self.steady = steady
        self.rows = rows

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return list(self.table.get_schema().get_field_names())

    @property
    def schema(self) -> pa.Schema:
        """Its columns as an Arrow schema. Computes no rows."""
        return self.rows.schema if self.rows is not None else bridge.arrow_schema(self.table)

    def limit(self, count: int) -> Relation:
        """Return a relation of the first `count` rows."""
        if self.rows is not None:
            return self._sql.from_arrow(self.rows.slice(0, count))
        return Relation(self._sql, self.table.limit(count), self.steady)

    def union(self, other: Relation) -> Relation:
        """Return a relation of its rows, then the other's."""
        return self._sql.query("SELECT * FROM {a} UNION ALL SELECT * FROM {b}", a=self, b=other)

    def to_arrow_table(self) -> pa.Table:
        """Return all rows.

        Raises:
            ConfigError: Flink cannot compute them.
        """
        return self.rows if self.rows is not None else collected(self.table)

    def kept(self) -> Relation:
        """Return a relation that has the same rows whenever it is used."""
        return self if self.steady or self.rows is not None else self._sql.from_arrow(self.to_arrow_table())


class Sql:
    """Makes relations in a Flink environment.

    Args:
        cluster: the cluster's address; None for a cluster inside this process.
        options: as for `akrunner.engines.flink.FlinkEngine`.
        parallelism: the parallelism of queries.
    """

    def __init__(self, cluster: Address | None, options: Mapping[str, str], parallelism: int) -> None:
        self._cluster = cluster
        self._options = dict(options)
        self._parallelism = parallelism
        self._environment: StreamTableEnvironment | None = None

    @property
    def environment(self) -> StreamTableEnvironment:
        """The environment of the first table that a program has brought; otherwise one of its own."""
        if self._environment is None:
            # set before Java starts: it gives each of its Python workers a process, with Python's lock of its own
            os.environ.setdefault("_python_worker_execution_mode", "process")
            configuration = Configuration()
            for key, value in self._options.items():
                configuration.set_string(key, value)
            with _credentials(self._cluster):
                remote = self._cluster.flink_options if self._cluster is not None else None
                environment = environment_of(configuration, remote, brings_python(self._cluster))
            environment.set_parallelism(self._parallelism)
            self._environment = StreamTableEnvironment.create(environment, EnvironmentSettings.in_batch_mode())
        return self._environment

    def of(self, table: Any) -> Relation:
        """Return a PyFlink Table or DataStream as a relation.

        Raises:
            ConfigError: it is of another environment than the tables before it.
        """
        made = bridge.table_of(table)
        if self._environment is None:
            self._environment = made._t_env
        elif made._t_env._j_tenv != self._environment._j_tenv:
            raise ConfigError(
                "fromTable: this table is of another Flink environment than those before it; make it with theirs, or call "
                "resetEnv() and useRemoteEnv(...) first"
            )
        return Relation(self, made)

    def from_arrow(self, rows: pa.Table) -> Relation:
        """Return a relation of rows that this process has.

        Raises:
            ConfigError: a column has a type that Flink does not have.
        """
        types = DataTypes.ROW([DataTypes.FIELD(field.name, bridge.flink_type(field.name, field.type)) for field in rows.schema])
        schema = create_arrow_schema(types.names, [field.data_type for field in types.fields])
        data_type = _to_java_data_type(types).notNull().bridgedTo(load_java_class("org.apache.flink.table.data.RowData"))
        with tempfile.NamedTemporaryFile(prefix="akrunner-") as file:
            with pa.ipc.new_stream(file.name, schema) as writer:
                for batch in rows.cast(schema).to_batches(max_chunksize=_ROWS):
                    writer.write_batch(batch)
            utilities = get_gateway().jvm.org.apache.flink.table.runtime.arrow.ArrowUtils
            source = utilities.createArrowTableSourceDesc(data_type, file.name)
        return Relation(self, Table(getattr(self.environment._j_tenv, "from")(source), self.environment), rows=rows)

    def query(self, text: str, **relations: Relation) -> Relation:
        """Return the relation that a query gives.

        Args:
            text: the query, with `{name}` in place of each relation, which is known as `name` in the query.
        Raises:
            ConfigError: Flink refuses the query; the message has Flink's words.
        """
        for name, relation in relations.items():
            text = text.replace("{" + name + "}", f"{relation.table} AS {name}")
        steady = all(relation.steady for relation in relations.values()) and not _RANDOM.search(text)
        try:
            return Relation(self, self.environment.sql_query(text), steady)
        except Exception as e:
            raise ConfigError(f"{words(e)}\nin: {text}") from None


@contextlib.contextmanager
def _credentials(cluster: Address | None) -> Iterator[None]:
    """Give the cluster's credentials to Java, which reads them from the environment when it starts, but not to what this
    process starts later."""
    before = os.environ.get(HEADERS)
    if cluster is not None and cluster.headers:
        os.environ[HEADERS] = cluster.header_lines
    try:
        get_gateway()
        yield
    finally:
        if before is None:
            os.environ.pop(HEADERS, None)
        else:
            os.environ[HEADERS] = before


def collected(table: Table) -> pa.Table:
    """Return all rows of a table, which Flink computes on its cluster.

    Raises:
        ConfigError: Flink cannot compute them.
    """
    utilities = get_gateway().jvm.org.apache.flink.table.runtime.arrow.ArrowUtils
    batches: list[pa.RecordBatch] = []
    # the rows come here in pieces of this size at most
    table._t_env.get_config().set("collect-sink.batch-size.max", "128 mb")
    try:
        table._t_env._before_execute()
        arriving = utilities.collectAsPandasDataFrame(table._j_table, _ROWS)
        while arriving.hasNext():
            with pa.ipc.open_stream(arriving.next()) as reader:
                batches += list(reader)
    except Exception as e:
        raise ConfigError(f"Flink cannot compute the table: {words(e)}") from e
    schema = bridge.arrow_schema(table)
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()
