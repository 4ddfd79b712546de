"""Whatever a person calls a table -> a schema and a stream of RecordBatches."""

from __future__ import annotations

import itertools
import os
from typing import IO, Any, Callable, Iterable, Iterator, List, Mapping, Optional

import numpy as np
import pyarrow as pa

from akrunner.errors import SourceError
from akrunner.io import paths, readers
from akrunner.io.arrivals import by_size_or_age
from akrunner.io.sql import duckdb_reader, selected
from akrunner.io.table import BATCH_ROWS, TableSource, opened_once
from akrunner.schema import Schema, nearest, without_views

_INFER_ROWS = 1000
_CHUNK = 8192

#: opens a TFRecord stream as batches: (stream, schema, name) -> batches
ExampleReader = Callable[[IO[bytes], Schema, str], Iterator[pa.RecordBatch]]


def open_source(
    source: Any,
    *,
    read_examples: ExampleReader,
    input_schema: Optional[Schema] = None,
    input_format: Optional[str] = None,
    select: Optional[str] = None,
    flush_seconds: Optional[float] = None,
) -> TableSource:
    """Open a table.

    Args:
        source: a path, a list of paths, a glob, a directory, a URL; or a pyarrow Table, RecordBatch, RecordBatchReader or
            Dataset, a pandas or polars frame, a DuckDB relation, anything with `__arrow_c_stream__`, a dict of arrays, an
            iterable of rows (dicts, or tuples with `input_schema`) or of RecordBatches.
        read_examples: how a TFRecord stream becomes batches.
        input_schema: columns to take and their types; needed for TFRecord and rows that are tuples.
        input_format: of files whose names do not tell.
        flush_seconds: how long a row of an iterable may wait for more to come; None: until there are enough.
        select: SQL over it, as the table `input`; or only what stands between SELECT and FROM.
    Raises: SourceError: it is not there, not readable, not a table, or lacks a column.
    """
    try:
        table = _open(source, read_examples, input_schema, input_format, flush_seconds)
    except pa.ArrowException as e:
        raise SourceError(f"source: cannot read it as a table: {e}") from e
    if table.elsewhere and (input_schema is not None or select is not None):
        raise SourceError(
            f"select=, input_schema=: the rows of {table.name} do not come through this process; select and CAST where it comes from"
        )
    if input_schema is not None:
        table = _cast(table, input_schema)
    if select is not None:
        table = selected(table, select)
    return _plain(table)


def _open(
    source: Any,
    read_examples: ExampleReader,
    schema: Optional[Schema],
    form: Optional[str],
    flush_seconds: Optional[float] = None,
) -> TableSource:
    if isinstance(source, TableSource):
        return source
    if isinstance(source, (str, os.PathLike)) or _is_path_list(source):
        return _from_files(paths.expand(source, form), read_examples, schema)
    if form is not None:
        raise SourceError("input_format= is for files; the source is " + type(source).__name__)
    if isinstance(source, pa.Table):
        return TableSource(source.schema, lambda: iter(source.to_batches(max_chunksize=BATCH_ROWS)), replayable=True)
    if isinstance(source, pa.RecordBatch):
        return TableSource(source.schema, lambda: iter([source]), replayable=True)
    if _module(source) == "pyarrow" and hasattr(source, "scanner"):
        return TableSource(source.schema, lambda: readers.scan(source), replayable=True)
    if isinstance(source, pa.RecordBatchReader):
        return TableSource(source.schema, lambda: iter(source))
    if _module(source) == "pandas":
        table = pa.Table.from_pandas(source, preserve_index=False)
        return _open(table.replace_schema_metadata(None), read_examples, schema, None)
    if _module(source) == "polars" and hasattr(source, "collect"):
        source = source.collect()
    if hasattr(source, "to_arrow_reader") or hasattr(source, "fetch_record_batch"):
        reader = duckdb_reader(source)
        again = opened_once(iter(reader), lambda: iter(duckdb_reader(source)))
        return TableSource(reader.schema, again, replayable=True)
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        again = opened_once(iter(reader), lambda: iter(pa.RecordBatchReader.from_stream(source)))
        # a frame can be exported again and again, whatever else may be a stream in itself
        return TableSource(reader.schema, again, replayable=_module(source) == "polars")
    if isinstance(source, Mapping):
        return _open(_from_dict(source), read_examples, schema, None)
    if isinstance(source, Iterable):
        return _from_rows(source, schema, flush_seconds)
    raise SourceError(
        f"source: {type(source).__name__} is not a table; give a path, a pyarrow Table, a pandas or polars frame, a DuckDB "
        "relation, a dict of arrays or an iterable of rows"
    )


def _from_files(files: paths.Files, read_examples: ExampleReader, schema: Optional[Schema]) -> TableSource:
    shown = files.paths[0] if len(files.paths) == 1 else f"{files.paths[0]} and {len(files.paths) - 1} more"
    if files.format == "tfrecord":
        if schema is None:
            raise SourceError("source: TFRecord files do not say their columns; give input_schema= (--input-schema)")
        return TableSource(schema.arrow, lambda: _read_tfrecords(files, read_examples, schema), shown, True)
    found, batches = readers.open_files(files, schema)
    return TableSource(found, batches, shown, True, files=files)


def _read_tfrecords(files: paths.Files, read: ExampleReader, schema: Schema) -> Iterator[pa.RecordBatch]:
    for path in files.paths:
        with files.filesystem.open(path, "rb", compression="infer") as stream:
            yield from read(stream, schema, path)


def _from_dict(columns: Mapping[str, Any]) -> pa.Table:
    try:
        return pa.table({str(name): _array(values) for name, values in columns.items()})
    except (pa.ArrowException, TypeError, ValueError) as e:
        raise SourceError(f"source: the dict is not a table of equally long columns: {e}") from None


def _array(values: Any) -> Any:
    """numpy arrays of more than one dimension become lists (two) or tensors (three and more) of one shape."""
    if not isinstance(values, np.ndarray) or values.ndim < 2:
        return values
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    width = int(np.prod(values.shape[1:]))
    listed = pa.FixedSizeListArray.from_arrays(flat, width)
    if values.ndim == 2:
        return listed
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(flat.type, values.shape[1:]), listed)


def _from_rows(rows: Iterable[Any], schema: Optional[Schema], flush_seconds: Optional[float]) -> TableSource:
    iterator = iter(rows)
    if schema is not None and flush_seconds is not None:
        # an endless source may take its time to the first row: that must not hold up the start
        return TableSource(schema.arrow, lambda: _arriving(iterator, schema.arrow, flush_seconds), "the iterable")
    head = list(itertools.islice(iterator, 1))
    every = itertools.chain(head, iterator)
    if head and isinstance(head[0], (pa.RecordBatch, pa.Table)):
        return TableSource(head[0].schema, lambda: (b for part in every for b in _as_batches(part)), "the iterable")
    if schema is not None:
        arrow = schema.arrow
    elif not head:
        raise SourceError("source: the iterable is empty, so its columns are not known; give input_schema=")
    elif not isinstance(head[0], Mapping):
        raise SourceError(f"source: rows of {type(head[0]).__name__} do not name their columns; give input_schema=, or dicts")
    else:
        if flush_seconds is None:
            head += itertools.islice(iterator, _INFER_ROWS - 1)
            every = itertools.chain(head, iterator)
        arrow = pa.RecordBatch.from_pylist(head).schema
    if flush_seconds is not None:
        return TableSource(arrow, lambda: _arriving(every, arrow, flush_seconds), "the iterable")
    return TableSource(arrow, lambda: map(_RowBatcher(arrow), _in_chunks(every)), "the iterable")


def _arriving(rows: Iterator[Any], schema: pa.Schema, flush_seconds: float) -> Iterator[pa.RecordBatch]:
    """Rows, or RecordBatches, of a source that is not to be waited for."""
    for first in rows:
        every = itertools.chain([first], rows)
        if isinstance(first, (pa.RecordBatch, pa.Table)):
            yield from (batch for part in every for batch in _as_batches(part))
        else:
            yield from by_size_or_age(every, _RowBatcher(schema), _CHUNK, flush_seconds)


def _in_chunks(rows: Iterator[Any]) -> Iterator[List[Any]]:
    return iter(lambda: list(itertools.islice(rows, _CHUNK)), [])


class _RowBatcher:
    """Rows of an iterable -> a batch; keeps count, for errors."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._at = 0

    def __call__(self, rows: List[Any]) -> pa.RecordBatch:
        schema = self._schema
        try:
            if isinstance(rows[0], Mapping):
                batch = pa.RecordBatch.from_pylist(rows, schema=schema)
            else:
                columns = zip(zip(*rows, strict=True), schema, strict=True)
                arrays = [pa.array(column, type=field.type) for column, field in columns]
                batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        except (pa.ArrowException, TypeError, ValueError) as e:
            last = self._at + len(rows) - 1
            raise SourceError(f"source: rows {self._at} to {last} do not fit the columns ({_named(schema)}): {e}") from None
        self._at += len(rows)
        return batch


def _plain(table: TableSource) -> TableSource:
    """The table, its views of strings and bytes as strings and bytes."""
    schema = without_views(table.schema)
    if schema is table.schema:
        return table

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table.batches():
            yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

    return TableSource(schema, batches, table.name, table.replayable)


def _cast(table: TableSource, wanted: Schema) -> TableSource:
    """The columns of `wanted`, in its order and types."""
    names = table.schema.names
    for field in wanted:
        if field.name not in names:
            raise SourceError(
                f"input_schema: {table.name} has no column {field.name!r} (it has {', '.join(names)}){nearest(field.name, names)}"
            )
    target = wanted.arrow

    def cast() -> Iterator[pa.RecordBatch]:
        for batch in table.batches():
            columns = []
            for field in target:
                try:
                    columns.append(batch.column(field.name).cast(field.type))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
                    raise SourceError(f"input_schema: column {field.name!r} cannot become {field.type}: {e}") from None
            yield pa.RecordBatch.from_arrays(columns, schema=target)

    return TableSource(target, cast, table.name, table.replayable)


def _as_batches(part: "pa.RecordBatch | pa.Table") -> List[pa.RecordBatch]:
    return part.to_batches() if isinstance(part, pa.Table) else [part]


def _is_path_list(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(one, (str, os.PathLike)) for one in source)


def _module(value: Any) -> str:
    return type(value).__module__.split(".")[0]


def _named(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
