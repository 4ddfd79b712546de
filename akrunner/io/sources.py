"""Turns everything that a user may give as a table into a schema and a stream of RecordBatches."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.foreign import ours, redacted
from akrunner.io import connections, datasets, formats, frames, packed, parse, partitions, paths, readers, systems
from akrunner.io.bad_rows import BadRows
from akrunner.io.casts import asked
from akrunner.io.csv_options import CsvOptions
from akrunner.io.decimals import converted
from akrunner.io.extents import Extent, length
from akrunner.io.formats.base import Reading
from akrunner.io.rows import from_rows
from akrunner.io.sql import duckdb_reader, heard, interrupting, selected
from akrunner.io.systems.base import check_reads
from akrunner.io.table import BATCH_ROWS, TableSource, opened_once
from akrunner.io.taken import filled, taken
from akrunner.schema import Schema, plain
from akrunner.wire.near import nearest

#: opens a TFRecord stream as batches: (stream, schema, name) -> batches
ExampleReader = Callable[[IO[bytes], Schema, str], Iterator[pa.RecordBatch]]


def open_source(
    source: Any,
    *,
    read_examples: ExampleReader,
    input_schema: Schema | None = None,
    input_format: str | None = None,
    input_csv: CsvOptions | None = None,
    select: str | None = None,
    select_left: Callable[[], float | None] | None = None,
    columns: Sequence[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    flush_seconds: float | None = None,
    bad: BadRows | None = None,
    decimals: str = "refuse",
) -> TableSource:
    """Open a table.

    Args:
        source: a path, a list of paths, a glob, a directory, a URL, a split that `pack` has written; or a pyarrow Table,
            RecordBatch, RecordBatchReader or Dataset, a pandas or polars frame, a DuckDB relation, a table of deltalake or
            pyiceberg, a dataset of Hugging Face's library or of Lance, any object with `__arrow_c_stream__`, a cursor or a
            result of SQLAlchemy, a connection, engine or session whose database runs `select`, a dict of arrays, an iterable
            of rows (dicts, named tuples, dataclasses, or tuples with
            `input_schema`) or of RecordBatches.
        read_examples: turns a TFRecord stream into batches.
        input_schema: the columns to take and their types; required for TFRecord and for rows that are tuples.
        input_format: the format of files whose names do not tell it.
        input_csv: how CSV files are written; None: their names and beginnings tell it.
        flush_seconds: how long a row of an iterable may wait for more rows; None: until a batch is full.
        select: an SQL query over the source, which it calls `input`; or only the text that would stand between SELECT and FROM.
        select_left: as `left` of `akrunner.io.sql.selected`.
        columns: the only columns to take, in this order; with `select`, these are columns of the query's result. Without
            `select`, the other columns are not read if the format can leave them out. None: take all columns.
        defaults: for a column that is taken, the value that replaces its nulls.
        bad: takes bad rows; None: they are errors. A table that is opened already has its own.
        decimals: what columns of decimals become, one of `akrunner.io.decimals.WAYS`.
    Raises:
        SourceError: the source does not exist, cannot be read, is not a table, or lacks a column.
    """
    url = systems.one_system(source, input_format)
    if url is not None:
        if input_csv is not None:
            raise SourceError("input_csv= (--input-csv) is for files; the source is a table")
        # if the URL names no table, the database system itself runs the query
        with systems.of_parameter(SourceError, "source"):
            asked = select if not systems.names_table(url) else None
        if asked is not None:
            check_reads(asked, redacted(url))
        # columns of a query's result are taken later
        wanted = columns if input_schema is None else only_columns(input_schema, columns).names
        with systems.of_parameter(SourceError, "source"):
            source = systems.system_of(url).open(
                systems.with_decimals(url, decimals), asked, wanted if select is None else None
            )
        select = select if asked is None else None
    elif connections.is_connection(source):
        _check_no_format(source, input_format)
        source, select = connections.queried(source, select, input_schema), None
    with ours(SourceError, "source: cannot read it as a table"):
        table = _open(
            source,
            read_examples,
            input_schema,
            input_format,
            flush_seconds,
            columns if select is None else None,
            input_csv,
            bad,
        )
    if table.extent is None and not table.elsewhere and (rows := length(source)) is not None:
        table = dataclasses.replace(table, extent=Extent(rows))
    if bad is not None and table.bad is None:
        raise readers.no_bad_rows(table.name)
    # what follows makes other tables, without what was found about this one
    found = table.notes
    if not table.schema.names and not isinstance(source, TableSource):
        raise SourceError(f"source: {table.name} has no columns")
    if table.arriving is not None and select is not None:
        # DuckDB reads ahead, so that nobody could say which rows are answered
        raise SourceError(
            f"select= (--select) is for a table that ends; of {table.name}, name the columns in input_schema= (--input-schema), "
            "and let the script leave rows out"
        )
    if table.elsewhere and (decimals != "refuse" or any(one is not None for one in (input_schema, select, columns, defaults))):
        raise SourceError(
            f"select=, input_schema=, columns=, defaults=, decimals=: the rows of {table.name} do not come through this process; "
            "select and CAST where it comes from"
        )
    if select is None and not table.elsewhere:
        # a query tells columns of the same name apart
        wanted = [field.name for field in input_schema] if input_schema is not None else columns
        parse.check_once(table.name, table.schema.names, wanted)
    if input_schema is not None:
        table = _cast(table, input_schema if select is not None else only_columns(input_schema, columns))
    if select is not None:
        table = selected(table, select, select_left)
    if columns is not None:
        table = taken(table, columns)
    table = dataclasses.replace(_plain(table), notes=found)
    table = converted(table, decimals)
    return dataclasses.replace(filled(table, defaults), notes=table.notes) if defaults else table


def _open(
    source: Any,
    read_examples: ExampleReader,
    schema: Schema | None,
    form: str | None,
    flush_seconds: float | None = None,
    columns: Sequence[str] | None = None,
    csv: CsvOptions | None = None,
    bad: BadRows | None = None,
) -> TableSource:
    """Open a source without casting or selecting.

    Args:
        columns: the columns that are taken later; the others need not be read.
    """
    if isinstance(source, TableSource):
        return source
    found = datasets.opened(source, columns) if form is None else None
    if found is not None:
        return found
    if isinstance(source, (str, os.PathLike)) or _is_path_list(source):
        # also if the format is given: files that the pack's list does not name are not part of it
        pack = packed.find(source)
        if pack is not None and (form is None or formats.named(form).name == pack.files.format):
            return _from_files(pack.files, read_examples, pack.schema_as(schema), columns, csv, bad)
        files = paths.expand(source, form, formats.csv.FORMAT.name if csv is not None else None)
        return _from_files(files, read_examples, schema, columns, csv, bad)
    if csv is not None:
        raise SourceError("input_csv= is for files; the source is " + type(source).__name__)
    _check_no_format(source, form)
    if isinstance(source, pa.Table):
        return TableSource(source.schema, lambda: iter(source.to_batches(max_chunksize=BATCH_ROWS)), replayable=True)
    if isinstance(source, pa.RecordBatch):
        return TableSource(source.schema, lambda: iter([source]), replayable=True)
    if _module(source) == "pyarrow" and hasattr(source, "scanner"):
        known = list(columns) if columns is not None and set(columns) <= set(source.schema.names) else None
        fields = source.schema if known is None else pa.schema([source.schema.field(name) for name in known])
        return TableSource(fields, lambda: readers.scan(source, known), replayable=True)
    if isinstance(source, pa.RecordBatchReader):
        return TableSource(source.schema, lambda: iter(source))
    if _module(source) in ("deltalake", "pyiceberg") and type(source).__name__ in ("DeltaTable", "Table", "StaticTable"):
        system = "delta" if _module(source) == "deltalake" else "iceberg"
        lake: TableSource = importlib.import_module(f"akrunner.io.systems.{system}").of_table(source, columns, "the table")
        return lake
    if _module(source) == "pandas" and not hasattr(source, "get_chunk"):
        return _open(frames.from_pandas(source), read_examples, schema, None)
    if _module(source) == "polars" and hasattr(source, "collect"):
        source = source.collect()
    if _module(source) == "polars" and hasattr(source, "dtypes"):
        frames.check_polars(source)
    if type(source).__name__ == "DuckDBPyRelation":
        interrupt = interrupting(source)
        reader = heard(lambda: duckdb_reader(source), interrupt)
        again = opened_once(iter(reader), lambda: iter(duckdb_reader(source)))
        table = TableSource(reader.schema, again, replayable=True)
        return table if interrupt is None else dataclasses.replace(table, stop=interrupt)
    if hasattr(source, "fetch_record_batch"):
        # a connection of DuckDB or a cursor of ADBC: its result can be read once
        reader = (
            heard(lambda: duckdb_reader(source), source.interrupt)
            if _module(source) in ("duckdb", "_duckdb")
            else source.fetch_record_batch()
        )
        return TableSource(reader.schema, lambda: iter(reader))
    if connections.is_result(source):
        return connections.fetched(source, schema)
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        again = opened_once(iter(reader), lambda: iter(pa.RecordBatchReader.from_stream(source)))
        # a polars frame can be exported any number of times; any other object may itself be a stream
        return TableSource(reader.schema, again, replayable=_module(source) == "polars")
    if isinstance(source, np.ndarray):
        return _open(frames.from_numpy(source), read_examples, schema, None)
    if isinstance(source, Mapping):
        return _open(frames.from_dict(source), read_examples, schema, None)
    if isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray, memoryview)):
        return from_rows(source, schema, flush_seconds)
    if source is None:
        raise SourceError(
            "source: no table is given: akrunner.run(script, source) takes a path, a pyarrow Table, a pandas or polars frame, "
            "a DuckDB relation, a dict of arrays or an iterable of rows; a script that reads all its data itself gets one "
            "row: {'row': [0]}"
        )
    call = " (call it, and give what it returns?)" if inspect.isroutine(source) or inspect.isclass(source) else ""
    raise SourceError(
        f"source: {type(source).__name__} is not a table{call}; give a path, a pyarrow Table, a pandas or polars frame, a "
        "DuckDB relation, a dict of arrays or an iterable of rows"
    )


def _check_no_format(source: Any, form: str | None) -> None:
    if form is not None:
        raise SourceError("input_format= is for files; the source is " + type(source).__name__)


def _from_files(
    files: paths.Files,
    read_examples: ExampleReader,
    schema: Schema | None,
    columns: Sequence[str] | None,
    csv: CsvOptions | None = None,
    bad: BadRows | None = None,
) -> TableSource:
    if csv is not None:
        if not formats.named(files.format).delimited:
            raise SourceError(
                f"input_csv= (--input-csv) is for CSV; {redacted(files.paths[0])} is {files.format}; leave it out"
            )
        if schema is not None:
            # before columns are left out: without a line of names their places are all that tells them apart
            inside = partitions.columns(files.paths, files.base)
            csv = csv.named(tuple(field.name for field in schema if field.name not in inside))
        files = dataclasses.replace(files, csv=csv)
    schema = only_columns(schema, columns) if schema is not None else None
    first = redacted(files.paths[0])
    shown = first if len(files.paths) == 1 else f"{first} and {len(files.paths) - 1} more"
    if formats.named(files.format).examples:
        if schema is None:
            raise SourceError("source: TFRecord files do not say their columns; give input_schema= (--input-schema)")
        extent = Extent.of_files(files.paths, files.is_local)
        return TableSource(
            schema.arrow,
            lambda: _read_examples(files, read_examples, schema, extent),
            shown,
            True,
            read_from=files,
            extent=extent,
        )
    return readers.open_files(files, schema, shown, columns, bad)


def only_columns(schema: Schema, columns: Sequence[str] | None) -> Schema:
    """Return only those columns of a schema; the schema itself if it lacks one of them, which `taken` reports later."""
    fields = {field.name: field for field in schema}
    if columns is None or not set(columns) <= set(fields):
        return schema
    return Schema(tuple(fields[name] for name in columns))


def _read_examples(files: paths.Files, read: ExampleReader, schema: Schema, extent: Extent) -> Iterator[pa.RecordBatch]:
    for path in files.paths:
        extent.begin(path)
        with Reading(files, schema.arrow, extent=extent).stream(path) as stream:
            yield from read(stream, schema, path)


def _plain(table: TableSource) -> TableSource:
    """Return the table in the types that `akrunner.schema.plain` gives it."""
    schema = plain(table.schema)
    if schema is table.schema or table.elsewhere:
        return table

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in table.batches():
            columns = [asked(batch.column(field.name), field, rows, "source") for field in schema]
            rows += batch.num_rows
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def each(like: pa.Schema | None, like_of: str) -> list[tuple[str, TableSource]]:
        assert table.each is not None
        return [(path, _plain(one)) for path, one in table.each(like, like_of)]

    return dataclasses.replace(
        table, schema=schema, open=batches, files=None, held=None, each=each if table.each is not None else None
    )


def _cast(table: TableSource, wanted: Schema) -> TableSource:
    """Return the table with only the columns of `wanted`, in its order and types."""
    names = table.schema.names
    for field in wanted:
        if field.name not in names:
            raise SourceError(
                f"input_schema: {table.name} has no column {field.name!r} (it has "
                f"{', '.join(names)}){nearest(field.name, names)}"
            )
    target = wanted.arrow

    def cast() -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in table.batches():
            columns = [asked(batch.column(field.name), field, rows) for field in target]
            rows += batch.num_rows
            yield pa.RecordBatch.from_arrays(columns, schema=target)

    return dataclasses.replace(table, schema=target, open=cast, files=None, held=None)


def _is_path_list(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(one, (str, os.PathLike)) for one in source)


def _module(value: Any) -> str:
    return type(value).__module__.split(".")[0]
