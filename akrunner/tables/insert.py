"""Runs INSERT and CREATE TABLE AS, which write the rows of a query to a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.errors import ConfigError
from akrunner.io.commits import committed
from akrunner.tables import types
from akrunner.tables.ddl import Create
from akrunner.tables.making import new_table
from akrunner.tables.names import TableName, check_value
from akrunner.tables.sql import Queries, column_names, duckdb_type, literal, quoted
from akrunner.tables.sqltext import Words, tokens
from akrunner.tables.store import Reading, TableInfo, TableOutput, TablePart, TableStore, key_text

#: words that may follow the FROM clause of a query
_BEHIND_FROM = frozenset(("where", "lateral", "group", "having", "order", "distribute", "sort", "cluster", "limit", "window"))
#: type -> an example of a text that is a value of it
_LIKE = {
    "DATETIME": "; one is like '2020-01-31 12:00:00'",
    "TIMESTAMP": "; one is like '2020-01-31 12:00:00.123456789'",
    "DATE": "; one is like '2020-01-31'",
    "BOOLEAN": "; one is 'true' or 'false'",
}
_VALUES = re.compile(r"\s*values\b", re.IGNORECASE)


def create_as(made: Create, name: TableName, store: Callable[[str], TableStore], project: str | None) -> int:
    """Run CREATE TABLE ... AS SELECT.

    Returns:
        How many rows the table has.
    Raises:
        ConfigError: it cannot be done; the table does not exist then.
    """
    with Queries(store, project) as queries:
        reader = queries.rows(made.select or "")
        names = column_names(queries, reader.schema.names)
        named = [field.with_name(name.lower()) for name, field in zip(names, reader.schema)]
        info = TableInfo(types.as_columns(pa.schema(named)), (), made.comment, made.lifecycle)
        output = new_table(store(name.project), name, info)
        return _written(output, (batch.rename_columns(info.columns.names) for batch in queries.draw(reader)))


def _written(output: TableOutput, batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    with committed(output):
        part = output.part("0")
        for batch in batches:
            part.write(batch)
            rows += batch.num_rows
    return rows


@dataclass(frozen=True)
class Insert:
    """An INSERT INTO | OVERWRITE. The query's columns are matched by position; partition columns without a value come last.

    Attributes:
        name: of the table.
        keys: the (key, value) pairs of PARTITION (...); a value is None if the rows give it.
        columns: the names in parentheses; None for none.
        query: SELECT or VALUES.
        overwrite: whether the rows replace those that are there.
    """

    name: TableName
    keys: Sequence[tuple[str, str | None]]
    columns: list[str] | None
    query: str
    overwrite: bool


def inserted(parts: Sequence[Insert], store: Callable[[str], TableStore], project: str | None) -> list[int]:
    """Run the INSERTs of one statement. Each reads the tables as they were before the statement; readers see the rows of all
    at once.

    Returns:
        How many rows each INSERT wrote.
    Raises:
        ConfigError: an INSERT cannot be done; no rows were written.
        WriteError: writing failed; no rows were written.
    """
    readings: dict[tuple[str, str], Reading] = {}
    outputs = _Outputs(store)
    try:
        rows = [_staged(one, outputs, Queries(store, project, readings)) for one in parts]
        store(parts[0].name.project).commit(outputs.opened)
        return rows
    finally:
        outputs.abort()
        for reading in readings.values():
            reading.close()


class _Outputs:
    """The outputs that the INSERTs of one statement write.

    Attributes:
        store: project -> where its tables are.
        opened: the outputs so far.
    """

    def __init__(self, store: Callable[[str], TableStore]) -> None:
        self.store = store
        self.opened: list[TableOutput] = []

    def part(self, name: TableName, overwrite: bool) -> TablePart:
        """Open a table or partition to be written, and return its part.

        Raises:
            ConfigError: another INSERT of the statement writes the same table or partition.
        """
        if any(one.name.same(name) for one in self.opened):
            raise ConfigError(
                f"insert: {name} is written by several INSERTs of one statement; give each a statement of its own, or one "
                "INSERT the rows of all (UNION ALL)"
            )
        output = self.store(name.project).output(name, overwrite)
        self.opened.append(output)
        return output.part("0")

    def abort(self) -> None:
        for output in self.opened:
            output.abort()


def _staged(one: Insert, outputs: _Outputs, queries: Queries) -> int:
    """Write the rows of an INSERT, for the caller to commit.

    Returns:
        How many rows were written.
    Raises:
        ConfigError: the INSERT cannot be done.
    """
    name, query = one.name, one.query
    info = outputs.store(name.project).describe(name)
    if not query.strip():
        raise ConfigError(f"insert: {name.sql}: SELECT or VALUES was expected behind it")
    unknown = next((key for key, _ in one.keys if key not in info.partitions), None)
    if unknown is not None:
        by = f"by {', '.join(info.partitions)}" if info.partitions else "by nothing"
        raise ConfigError(f"insert: {name.sql} is partitioned {by}, not by {unknown}")
    kinds = {key.name: key for key in info.keys}
    fixed = {key: key_text(kinds[key], value) for key, value in one.keys if value is not None}
    dynamic = [key for key in info.partitions if key not in fixed]
    if dynamic and not one.keys and one.columns is None and one.overwrite:
        raise ConfigError(
            f"insert: {name.sql} is partitioned: INSERT OVERWRITE TABLE {name.sql} PARTITION ({', '.join(info.partitions)}) "
            "SELECT ..."
        )
    fields = _targets(name, info, one.columns, dynamic)
    if _VALUES.match(query):
        query = f"SELECT * FROM ({query}) AS v"
    rows = 0
    with queries:
        reader = queries.rows(query, lambda names, kinds: _selected(name, fields, names, kinds))
        if dynamic:
            write = _Spread(outputs, name, info, fixed, dynamic, one.overwrite).write
        else:
            write = outputs.part(name.at(tuple((key, fixed[key]) for key in info.partitions)), one.overwrite).write
        for batch in queries.draw(reader):
            write(batch)
            rows += batch.num_rows
    return rows


def several(words: Words) -> list[str]:
    """Split FROM x INSERT ... SELECT a WHERE b INSERT ... SELECT c into separate statements: INSERT ... SELECT a FROM x WHERE
    b, ...

    Raises:
        ConfigError: no INSERT follows FROM.
    """
    depth = 0
    begins: list[int] = []
    behind: list[int] = []
    for token in tokens(words.text):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth:
            continue
        if token.low == "insert":
            begins.append(token.at)
            behind.append(len(words.text))
        elif begins and token.low in _BEHIND_FROM and behind[-1] == len(words.text):
            behind[-1] = token.at
    if not begins:
        raise words.wrong("INSERT was expected behind what FROM names")
    source, text = words.text[: begins[0]].strip(), words.text
    ends = [*begins[1:], len(text)]
    return [
        f"{text[begin : min(at, end)].rstrip()} {source} {text[min(at, end) : end]}".strip()
        for begin, at, end in zip(begins, behind, ends)
    ]


def _targets(name: TableName, info: TableInfo, columns: list[str] | None, dynamic: list[str]) -> list[pa.Field]:
    """Return the table's columns that the query's columns are written to, in the query's order."""
    partitions = [one for one in info.keys if one.name in dynamic]
    if columns is None:
        return [*info.columns, *partitions]
    known = {field.name.lower(): field for field in [*info.columns, *partitions]}
    for one in columns:
        if one.lower() not in known:
            raise ConfigError(f"insert: {name.sql} has no column {one!r} (it has {', '.join(known)})")
    chosen = [known[one.lower()] for one in columns]
    return chosen + [field for field in partitions if field not in chosen]


def _selected(name: TableName, fields: list[pa.Field], names: list[str], kinds: list[str]) -> list[str]:
    if len(names) != len(fields):
        raise ConfigError(
            f"insert: {name.sql} takes {len(fields)} columns ({', '.join(field.name for field in fields)}), and the query has "
            f"{len(names)} ({', '.join(names)[:200]})"
        )
    return [f"{_cast(f'c{number}', kinds[number], field)} AS {quoted(field.name)}" for number, field in enumerate(fields)]


def _cast(value: str, kind: str, field: pa.Field) -> str:
    """Return SQL that casts a value to a column's type as MaxCompute does: fractions are cut off, where DuckDB rounds, and a
    text that is no number is an error.
    """
    given = value
    if pa.types.is_integer(field.type) and kind == "VARCHAR":
        value = f"coalesce(CAST(odps_whole({value}) AS VARCHAR), {value})"
    if pa.types.is_integer(field.type) and kind.startswith(("DOUBLE", "FLOAT", "DECIMAL")):
        value = f"trunc({value})"
    if kind == "VARCHAR" and not (
        pa.types.is_string(field.type) or pa.types.is_nested(field.type) or pa.types.is_binary(field.type)
    ):
        words = types.words_of(field).upper()
        like = _LIKE.get(words, "")
        before, behind = f"column {field.name}: the text '", f"' is no {words}{like}"
        told = f"{literal(before)} || {given} || {literal(behind)}"
        return f"coalesce(TRY_CAST({value} AS {duckdb_type(field)}), CASE WHEN {given} IS NOT NULL THEN error({told}) END)"
    return f"CAST({value} AS {duckdb_type(field)})"


class _Spread:
    """Writes rows to the partitions that the rows themselves name."""

    def __init__(
        self, outputs: _Outputs, name: TableName, info: TableInfo, fixed: dict[str, str], dynamic: list[str], overwrite: bool
    ) -> None:
        self._outputs, self._name, self._info = outputs, name, info
        self._fixed, self._dynamic, self._overwrite = fixed, dynamic, overwrite
        self._parts: dict[tuple[str, ...], TablePart] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        order = pc.sort_indices(batch, sort_keys=[(key, "ascending") for key in self._dynamic])
        rows, at = batch.take(order), 0
        groups = pa.Table.from_batches([rows]).group_by(self._dynamic, use_threads=False).aggregate([([], "count_all")])
        for found in groups.to_pylist():
            missing = next((key for key in self._dynamic if found[key] is None), None)
            if missing is not None:
                raise ConfigError(f"insert: a row has no value of the partition column {missing}")
            values = tuple(str(found[key]) for key in self._dynamic)
            part = rows.slice(at, found["count_all"])
            at += part.num_rows
            self._part(values).write(part.drop_columns(self._dynamic))

    def _part(self, values: tuple[str, ...]) -> TablePart:
        if values not in self._parts:
            given = {**self._fixed, **dict(zip(self._dynamic, values))}
            partition = tuple((key, check_value(str(self._name), key, given[key])) for key in self._info.partitions)
            self._parts[values] = self._outputs.part(self._name.at(partition), self._overwrite)
        return self._parts[values]
