"""One file of a format -> its schema and its batches, read as they are drawn.

Not through `pyarrow.dataset`: importing it imports pandas where that is installed, half a second on every job, and its
scanner reads far ahead. It is used where nothing else does the work: directories whose names hold columns (`year=2024/`).
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterator, List, Optional, Tuple

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from akrunner.errors import SourceError
from akrunner.io.blocks import parquet_file
from akrunner.io.paths import Files
from akrunner.io.table import BATCH_ROWS, opened_once
from akrunner.schema import Schema

_BLOCK = 4 << 20
_PARTITION = re.compile(r"(^|/)[^/=]+=[^/]*/")

#: (schema, batches) of one opened file
Opened = Tuple[pa.Schema, Iterator[pa.RecordBatch]]


def open_files(files: Files, wanted: Optional[Schema]) -> Tuple[pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]:
    """(schema, what opens the batches of all files one after another).

    Args:
        files: of one format, not TFRecord; wanted: types of columns, where the format leaves them to be guessed.
    Raises: pa.ArrowException, OSError: the first file cannot be read.
    """
    if files.base is not None and any(_PARTITION.search(path[len(files.base) :]) for path in files.paths):
        return _partitioned(files)
    schema, first = _open(files, files.paths[0], wanted, None)

    def again() -> Iterator[pa.RecordBatch]:
        return _every(files, schema, _open(files, files.paths[0], wanted, None)[1])

    return schema, opened_once(_every(files, schema, first), again)


def _every(files: Files, schema: pa.Schema, first: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from first
    for path in files.paths[1:]:
        other, batches = _open(files, path, None, schema)
        if other.equals(schema):
            yield from batches
            continue
        missing = [name for name in schema.names if name not in other.names]
        if missing:
            raise SourceError(f"source: {path} has no column {missing[0]!r}, which {files.paths[0]} has")
        for batch in batches:
            columns = [_cast(batch, field, path) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(batch: pa.RecordBatch, field: pa.Field, path: str) -> pa.Array:
    try:
        return batch.column(field.name).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise SourceError(
            f"source: column {field.name!r} of {path} cannot become {field.type}, as in the first file: {e}"
        ) from None


def _open(files: Files, path: str, wanted: Optional[Schema], like: Optional[pa.Schema]) -> Opened:
    return {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet, "arrow": _arrow}[files.format](files, path, wanted, like)


def _types(wanted: Optional[Schema], like: Optional[pa.Schema]) -> Optional[pa.Schema]:
    """Column types that are known beforehand: asked for, or found in the first file."""
    if wanted is not None:
        return pa.schema([(field.name, field.type) for field in wanted if not field.is_list])
    return like


def _csv(files: Files, path: str, wanted: Optional[Schema], like: Optional[pa.Schema]) -> Opened:
    types = _types(wanted, like)
    reader = pa_csv.open_csv(
        _stream(files, path),
        read_options=pa_csv.ReadOptions(block_size=_BLOCK),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(column_types=types),
    )
    only = reader.schema.names[0] if len(reader.schema) == 1 else ""
    if set(only) & set(";\t|"):
        raise SourceError(
            f"source: {path} has one column, {only!r}: what stands between its cells is no comma; convert it, or give the table "
            "that pandas.read_csv(sep=...) or duckdb.read_csv makes of it"
        )
    for field in reader.schema if types is None else ():
        # what cannot be a string is guessed to be bytes
        if pa.types.is_binary(field.type):
            raise SourceError(
                f"source: column {field.name!r} of {path} is not UTF-8; convert the file (iconv -f latin1 -t utf-8), or give "
                f"input_schema= (--input-schema) with '{field.name} bytes'"
            )
    return reader.schema, iter(reader)


def _jsonl(files: Files, path: str, wanted: Optional[Schema], like: Optional[pa.Schema]) -> Opened:
    options = pa_json.ParseOptions(explicit_schema=_types(wanted, like))
    stream = _stream(files, path)
    if not hasattr(pa_json, "open_json"):
        table = pa_json.read_json(stream, parse_options=options)
        return table.schema, iter(table.to_batches(max_chunksize=BATCH_ROWS))
    reader = pa_json.open_json(stream, read_options=pa_json.ReadOptions(block_size=_BLOCK), parse_options=options)
    return reader.schema, iter(reader)


def _parquet(files: Files, path: str, wanted: Optional[Schema], like: Optional[pa.Schema]) -> Opened:
    file = parquet_file(_seekable(files, path))
    return file.schema_arrow.remove_metadata(), _closing(file.iter_batches(BATCH_ROWS), file)


def _arrow(files: Files, path: str, wanted: Optional[Schema], like: Optional[pa.Schema]) -> Opened:
    source = _seekable(files, path)
    try:
        reader = pa.ipc.open_file(source)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        return reader.schema, batches
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema, iter(stream)


def _closing(batches: Iterator[pa.RecordBatch], file: Any) -> Iterator[pa.RecordBatch]:
    with file:
        yield from batches


def _stream(files: Files, path: str) -> Any:
    """To be read from front to back, unpacked on the way."""
    if files.is_local:
        return pa.input_stream(path, compression="detect", buffer_size=1 << 20)
    return pa.PythonFile(files.filesystem.open(path, "rb", compression="infer"), mode="r")


def _seekable(files: Files, path: str) -> Any:
    return pa.OSFile(path) if files.is_local else pa.PythonFile(files.filesystem.open(path, "rb"), mode="r")


def _partitioned(files: Files) -> Tuple[pa.Schema, Callable[[], Iterator[pa.RecordBatch]]]:

    import pyarrow.dataset as pa_dataset
    import pyarrow.fs as pa_fs

    local = files.is_local
    filesystem = pa_fs.LocalFileSystem() if local else pa_fs.PyFileSystem(pa_fs.FSSpecHandler(files.filesystem))
    form = {"jsonl": "json", "arrow": "ipc"}.get(files.format, files.format)
    paths: List[str] = files.paths
    dataset = pa_dataset.dataset(paths, format=form, filesystem=filesystem, partitioning="hive", partition_base_dir=files.base)
    return dataset.schema, lambda: scan(dataset)


def scan(dataset: Any) -> Iterator[pa.RecordBatch]:
    """All rows of a `pyarrow.dataset.Dataset`, with little read ahead: memory must not grow with the table."""
    scanner = dataset.scanner(batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)
    return iter(scanner.to_reader())
