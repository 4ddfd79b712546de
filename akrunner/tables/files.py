"""Reads files into tables, and writes tables to files: `akrunner tables put` and `get`."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from akrunner import codec, foreign
from akrunner.errors import ConfigError, ReadError, SinkError, SourceError
from akrunner.foreign import ours, underway
from akrunner.io import formats, paths, systems
from akrunner.io.commits import committed
from akrunner.io.csv_options import CsvOptions
from akrunner.io.csv_text import CsvText
from akrunner.io.formats.base import Reading
from akrunner.io.table import TableSource
from akrunner.schema import Field, Schema
from akrunner.tables import ddl, types
from akrunner.tables.local_output import fits
from akrunner.tables.making import new_table
from akrunner.tables.names import TableName
from akrunner.tables.opening import open_input
from akrunner.tables.sql import Queries
from akrunner.tables.store import TableInfo, TableStore
from akrunner.tables.tunnel import as_file, bare_csv, fill, rows_of
from akrunner.wire.near import nearest

_HEADER_BYTES = 1 << 16
_SHOWN = 60
#: a number or a date, which is no name of a column
_VALUE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z|\d{4}-\d\d-\d\d\b")
#: advice for PAI's CSV files, which have no line of names
_BARE = 'a CSV without a line of names: --no-header, or `akrunner tables sql "TUNNEL UPLOAD FILE {table}"`'


@dataclass(frozen=True)
class Put:
    """What `put` has done.

    Attributes:
        rows: how many rows were added.
        created: the CREATE TABLE of the table that was made; "" if the table was there.
        notes: what was found about the file that nobody had said.
    """

    rows: int
    created: str = ""
    notes: tuple[str, ...] = ()


def put(
    file: Any,
    name: TableName,
    store: TableStore,
    *,
    overwrite: bool = False,
    input_schema: Schema | None = None,
    input_format: str | None = None,
    input_csv: CsvOptions | None = None,
    select: str | None = None,
    header: bool = True,
) -> Put:
    """Add a file's rows to a table, matched by the names of the columns. A table that does not exist is made for the rows.

    Args:
        file: as the `source` of a job; it may also be the URL of a table in a database.
        overwrite: whether the rows replace those that are there.
        input_csv: how CSV is written; without `header`, only its delimiter. None: the beginning of each file tells it.
        header: False if a CSV has no line of names: its columns are then, in their order, the table's, or those of
            `input_schema`.
    Raises:
        ConfigError: the rows cannot be read, or do not fit the table.
        ReadError: reading failed; nothing was written.
        WriteError: writing failed; nothing was written.
    """
    if not header:
        return _put_bare(file, name, store, overwrite, input_schema, input_format, input_csv, select)
    known = store.describe(name.whole) if store.exists(name.whole) else None
    if select is None and not formats.is_folder(input_format) and not systems.is_system(file):
        _check_header(file, input_format, input_csv, name, known)
    given: dict[str, Any] = dict(
        read_examples=codec.read_examples, input_format=input_format, input_csv=input_csv, select=select
    )
    with ours(SourceError, "source: it cannot be read"):
        table = open_input(file, input_schema=input_schema, **given)
    if known is not None and input_schema is None and select is None and not table_fits(table.schema, known):
        # what looks like a number in a text may be a string in the table: 007
        wanted = _as_table(table.schema, known)
        with ours(SourceError, "source: it cannot be read"):
            table = open_input(file, input_schema=wanted, **given)
    info = known or TableInfo(types.as_columns(table.schema), tuple(key for key, _ in name.partition))
    text = table.read_from is not None and _headed(table.read_from)
    check_columns(name, info, table.schema, f"; for {_BARE.format(table=name.sql)}" if text and select is None else "")
    output = store.output(name, overwrite) if known is not None else new_table(store, name, info)
    rows = 0
    with committed(output):
        part = output.part("0")
        for batch in _read(table, info):
            part.write(batch)
            rows += batch.num_rows
    return Put(rows, "" if known is not None else ddl.create_sql(name.sql, info), table.notes)


def _headed(files: paths.Files) -> bool:
    """Whether the first lines of the files name the columns."""
    form = formats.lines_named(files.format)
    return form is not None and form.headed


def _beginning(files: paths.Files, path: str, csv: CsvOptions | None) -> tuple[CsvText, bytes]:
    """Return (a CSV, which knows what stands between its cells; its first bytes, with commas there)."""
    with Reading(files, None).stream(path) as stream:
        text = CsvText(stream.read, csv, foreign.redacted(path))
        text.settle()
        return text, text.read(_HEADER_BYTES)


def _check_header(
    file: Any, input_format: str | None, input_csv: CsvOptions | None, name: TableName, known: TableInfo | None
) -> None:
    """Check that the first line of a CSV names the columns.

    Raises:
        SourceError: it is most likely a row, which would be lost.
    """
    many = file if isinstance(file, (list, tuple)) else [file]
    if not all(isinstance(one, (str, os.PathLike)) for one in many):
        return
    with ours(SourceError, "source: it cannot be read"):
        found = paths.expand(file, input_format, formats.csv.FORMAT.name if input_csv is not None else None)
        if not _headed(found) or (input_csv is not None and input_csv.header is not True):
            return
        text = _beginning(found, found.paths[0], input_csv)[1].decode("utf-8-sig", "replace")
    names = [one.strip() for one in next(csv.reader(io.StringIO(text, newline=None)), [])]
    there = known.columns.names if known is not None else []
    odd = next((one for one in names if _VALUE.match(one) or not one or names.count(one) > 1), None)
    if odd is None or odd.lower() in there:
        return
    twice = " twice" if odd and not _VALUE.match(odd) else ""
    raise SourceError(
        f"source: the first line of {foreign.redacted(found.paths[0])}, which is to name the columns, has {odd!r}{twice} in "
        f"it: it is a row, it seems, and would be lost: {', '.join(names)[:_SHOWN]!r}. For {_BARE.format(table=name.sql)}; if "
        "these are names, --select gives others"
    )


def _put_bare(
    file: Any,
    name: TableName,
    store: TableStore,
    overwrite: bool,
    input_schema: Schema | None,
    input_format: str | None,
    input_csv: CsvOptions | None,
    select: str | None,
) -> Put:
    """Add the rows of CSV files without a line of names, as `put` does."""
    if select is not None:
        raise SourceError("--no-header: --select needs names; put the file into a table first, and query that")
    if input_csv is not None and replace(input_csv, delimiter="") != CsvOptions():
        raise SourceError(
            "--no-header: of --input-csv it takes only delimiter; leave --no-header out, and give header=a,b,c there"
        )
    with ours(SourceError, "source: it cannot be read"):
        found = paths.expand(file, input_format or "csv")
    if not _headed(found) or not found.is_local:
        raise SourceError("--no-header is for CSV files of this machine")
    known = store.describe(name.whole) if store.exists(name.whole) else None
    if known is None and input_schema is None:
        raise SourceError(
            f"--no-header: nothing says what the columns are called: there is no table {name.whole}; make it (CREATE TABLE), "
            "or give "
            '--input-schema "NAME TYPE, ..."'
        )
    columns = types.as_columns(input_schema.arrow) if input_schema is not None else pa.schema([])
    info = known or TableInfo(columns, tuple(key for key, _ in name.partition))
    columns = columns if input_schema is not None else info.columns
    check_columns(name, info, columns)
    with ours(SourceError, "source: it cannot be read"):
        # in a table of one column, a mark is a part of the value
        bare = replace(input_csv or CsvOptions(), header=False)
        texts = {path: _beginning(found, path, bare)[0] for path in found.paths if len(columns) > 1}
    given = input_csv.delimiter if input_csv is not None else ""
    marks = {path: text.options.delimiter for path, text in texts.items()}
    with Queries(lambda project: store, None) as queries:
        output = store.output(name, overwrite) if known is not None else new_table(store, name, info)
        rows = fill(output, queries, found.paths, lambda path: bare_csv(path, columns, marks.get(path, given or ",")), _about)
    notes = tuple(note for text in texts.values() for note in text.notes)
    return Put(rows, "" if known is not None else ddl.create_sql(name.sql, info), notes)


@contextlib.contextmanager
def _about(path: str) -> Iterator[None]:
    """Turn an error of DuckDB's about rows into one that names the file.

    Raises:
        SourceError: DuckDB cannot read the rows.
    """
    try:
        yield
    except (SinkError, SourceError):
        raise
    except ConfigError as e:
        raise SourceError(f"source: {path}: {str(e).removeprefix('sql: ')}") from None


def table_fits(schema: pa.Schema, info: TableInfo) -> bool:
    """Whether all columns may be written to the table in the types they have."""
    known = {field.name.lower(): field.type for field in info.columns}
    return all(fits(field.type, known[field.name.lower()]) for field in schema if field.name.lower() in known)


def _as_table(schema: pa.Schema, info: TableInfo) -> Schema:
    """Return the columns of a text file in the table's types, or as text where a job's rows cannot have such a type."""
    known = {field.name.lower(): field.type for field in info.columns}
    fields: list[Field] = []
    for field in schema:
        wanted = known.get(field.name.lower(), field.type)
        plain = pa.types.is_decimal(wanted) or pa.types.is_nested(wanted)
        fields.append(Field(field.name, pa.string() if plain and not pa.types.is_nested(field.type) else wanted))
    return Schema(tuple(fields))


def check_columns(name: TableName, info: TableInfo, schema: pa.Schema, more: str = "") -> None:
    """Check that the table has all these columns.

    Args:
        more: the end of the message for a missing column, with further advice.
    Raises:
        SinkError: the table has no such column, or is partitioned by it.
    """
    known = info.columns.names
    for one in schema.names:
        if one.lower() not in known and one.lower() not in info.partitions:
            raise SinkError(
                f"output: {name.whole} has no column {one!r} (it has {', '.join(known)}){nearest(one.lower(), known)}; "
                f"--select says which to put{more}"
            )
        if one.lower() in info.partitions and one.lower() not in dict(name.partition):
            raise SinkError(
                f"output: {name.whole} is partitioned by {one}: put each partition by itself ({name.whole}/{one}=..., "
                "--select), or INSERT ... PARTITION (...) SELECT spreads rows"
            )


def _read(table: TableSource, info: TableInfo) -> Iterator[pa.RecordBatch]:
    """Yield the rows without the partition columns, and with text cast where the table has decimals."""
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
    name: TableName,
    file: str,
    store: TableStore,
    *,
    overwrite: bool = False,
    columns: Sequence[str] | None = None,
    output_format: str | None = None,
) -> int:
    """Write a table's rows to a file.

    Args:
        columns: None for the columns that a job reads (`read_columns`).
        output_format: None if the file's name says it.
    Returns:
        How many rows were written.
    Raises:
        SourceError: the table cannot be read.
        SinkError: the file cannot be written.
        WriteError: writing failed; nothing was written.
    """
    with store.reading(name) as reading:
        wanted = columns if columns is not None else read_columns(name, reading.info)
        return as_file(rows_of(reading, wanted, name=name), os.fspath(file), overwrite, output_format)


def read_columns(name: TableName, info: TableInfo) -> list[str]:
    """Return the columns that a job reads of a table: its own, then its partition columns except those that the name holds."""
    said = {key for key, _ in name.partition}
    return [*info.columns.names, *(one for one in info.partitions if one not in said)]
