"""Files into tables, and tables into files: `akrunner tables put` and `get`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence

import pyarrow as pa

from akrunner import codec
from akrunner.errors import ReadError, SinkError, SourceError
from akrunner.foreign import ours, underway
from akrunner.io.sources import open_source
from akrunner.io.table import TableSource
from akrunner.schema import Field, Schema, nearest
from akrunner.tables import ddl, types
from akrunner.tables.local_output import fits
from akrunner.tables.making import new_table
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo, TableStore
from akrunner.tables.tunnel import as_file, rows_of


@dataclass(frozen=True)
class Put:
    """Attributes: rows: how many were added; created: the SQL of a table that was not there; "" if it was."""

    rows: int
    created: str = ""


def put(
    file: Any,
    name: TableName,
    store: TableStore,
    *,
    overwrite: bool = False,
    input_schema: Optional[Schema] = None,
    input_format: Optional[str] = None,
    select: Optional[str] = None,
) -> Put:
    """Add a file's rows to a table, by the names of its columns; a table that is not there is made for them.

    Args: file: as the `source` of a job; overwrite: in place of the rows that are there.
    Raises: ConfigError: the rows cannot be read, or do not fit; ReadError, WriteError: nothing was written.
    """
    given: Dict[str, Any] = dict(read_examples=codec.read_examples, input_format=input_format, select=select)
    with ours(SourceError, "source: it cannot be read"):
        table = open_source(file, input_schema=input_schema, **given)
    known = store.describe(name.whole) if store.exists(name.whole) else None
    if known is not None and input_schema is None and select is None and not table_fits(table.schema, known):
        # a text's numbers may be the table's strings: 007
        wanted = _as_table(table.schema, known)
        with ours(SourceError, "source: it cannot be read"):
            table = open_source(file, input_schema=wanted, **given)
    info = known or TableInfo(types.as_columns(table.schema), tuple(key for key, _ in name.partition))
    check_columns(name, info, table.schema)
    output = store.output(name, overwrite) if known is not None else new_table(store, name, info)
    rows = 0
    try:
        part = output.part("0")
        for batch in _read(table, info):
            part.write(batch)
            rows += batch.num_rows
        output.commit()
    finally:
        output.abort()
    return Put(rows, "" if known is not None else ddl.create_sql(name.sql, info))


def table_fits(schema: pa.Schema, info: TableInfo) -> bool:
    """Whether all columns may be written as they are."""
    known = {field.name.lower(): field.type for field in info.columns}
    return all(fits(field.type, known[field.name.lower()]) for field in schema if field.name.lower() in known)


def _as_table(schema: pa.Schema, info: TableInfo) -> Schema:
    """The columns of a text, in the table's types where rows of a job may have them, else as text."""
    known = {field.name.lower(): field.type for field in info.columns}
    fields: List[Field] = []
    for field in schema:
        wanted = known.get(field.name.lower(), field.type)
        plain = pa.types.is_decimal(wanted) or pa.types.is_nested(wanted)
        fields.append(Field(field.name, pa.string() if plain and not pa.types.is_nested(field.type) else wanted))
    return Schema(tuple(fields))


def check_columns(name: TableName, info: TableInfo, schema: pa.Schema) -> None:
    """Raises: SinkError: the table has no such column."""
    known = info.columns.names
    for one in schema.names:
        if one.lower() not in known and one.lower() not in info.partitions:
            raise SinkError(
                f"output: {name.whole} has no column {one!r} (it has {', '.join(known)}){nearest(one.lower(), known)}; --select says which to put"
            )
        if one.lower() in info.partitions and one.lower() not in dict(name.partition):
            raise SinkError(
                f"output: {name.whole} is partitioned by {one}: put each partition by itself ({name.whole}/{one}=..., --select), or "
                "INSERT ... PARTITION (...) SELECT spreads rows"
            )


def _read(table: TableSource, info: TableInfo) -> Iterator[pa.RecordBatch]:
    """The rows, without the columns the table is partitioned by; text that stands for something else as that."""
    known = {field.name.lower(): field.type for field in info.columns}
    batches = table.batches()
    while True:
        with underway(ReadError, f"source: cannot read {table.name}"):
            batch = next(batches, None)
            if batch is None:
                return
            kept = [one for one in batch.schema.names if one.lower() in known]
            columns = [_meant(batch.column(one), known[one.lower()]) for one in kept]
        yield pa.RecordBatch.from_arrays(columns, names=kept)


def _meant(column: pa.Array, target: pa.DataType) -> pa.Array:
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return column.cast(target) if text and pa.types.is_decimal(target) else column


def get(
    name: TableName, file: str, store: TableStore, *, overwrite: bool = False, columns: Optional[Sequence[str]] = None
) -> int:
    """Write a table's rows to a file. Returns: how many. Raises: SourceError, SinkError; WriteError: nothing was written."""
    with store.reading(name) as reading:
        return as_file(rows_of(reading, columns, name=name), os.fspath(file), overwrite)
