"""Datasets of other libraries, in batches of Arrow: Hugging Face's `datasets` and Lance; as objects, and as directories that
they have written."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.errors import ConfigError, SourceError
from akrunner.foreign import ours
from akrunner.io.table import BATCH_ROWS, TableSource, opened_once

#: how many rows Hugging Face's library gives at once: a row may be an image
_ROWS = 1024
#: Hugging Face's features that keep a file's bytes, and its path, as a struct
_FILES = ("Image", "Audio")


def opened(source: Any, columns: Sequence[str] | None) -> TableSource | None:
    """Return a dataset of one of these libraries as a table; None if the source is something else.

    Args:
        source: an object, or the path of a directory.
        columns: the only columns that are wanted; None: all.
    Raises:
        SourceError: it is several datasets, or cannot be read.
        ConfigError: a directory's library is not installed.
    """
    if isinstance(source, (str, os.PathLike)):
        return _at(os.path.expanduser(os.fspath(source)), columns)
    lance, hub = sys.modules.get("lance"), sys.modules.get("datasets")
    if lance is not None and isinstance(source, getattr(lance, "LanceDataset", ())):
        return of_lance(source, columns, "the LanceDataset")
    if hub is None:
        return None
    if isinstance(source, (hub.DatasetDict, hub.IterableDatasetDict)):
        raise SourceError(_several(", ".join(f"source[{name!r}]" for name in source), type(source).__name__))
    if isinstance(source, (hub.Dataset, hub.IterableDataset)):
        return _of_hub(source, columns, f"the {type(source).__name__}")
    return None


def _at(path: str, columns: Sequence[str] | None) -> TableSource | None:
    if not isinstance(path, str) or not os.path.isdir(path):
        return None
    what = f"source: cannot read {path}"
    if os.path.isdir(os.path.join(path, "_versions")) and os.path.isdir(os.path.join(path, "_transactions")):
        with ours(SourceError, what):
            return of_lance(_library("lance", "lance", path, "a Lance dataset").dataset(path), columns, path)
    if os.path.isfile(os.path.join(path, "dataset_dict.json")):
        folders = sorted(one.path for one in os.scandir(path) if one.is_dir())
        raise SourceError(_several(", ".join(folders), path))
    if all(os.path.isfile(os.path.join(path, name)) for name in ("state.json", "dataset_info.json")):
        with ours(SourceError, what):
            library = _library("datasets", "datasets", path, "a dataset that Hugging Face's library has saved")
            return _of_hub(library.load_from_disk(path), columns, path)
    return None


def _several(names: str, given: str) -> str:
    return f"source: {given} is several datasets; give one of them: {names}"


def _library(name: str, extra: str, path: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise ConfigError(
            f"source: {path} is {what}, whose library is missing ({e}): pip install 'akrunner[{extra}]'"
        ) from None


def _known(names: Sequence[str], columns: Sequence[str] | None) -> list[str] | None:
    """Return the columns to read; None for all, also if one is unknown, which another place reports."""
    return list(columns) if columns is not None and set(columns) <= set(names) else None


def of_lance(dataset: Any, columns: Sequence[str] | None, name: str) -> TableSource:
    """Return the version of a Lance dataset that the object stands for."""
    known = _known(dataset.schema.names, columns)
    schema = dataset.schema if known is None else pa.schema([dataset.schema.field(one) for one in known])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in dataset.scanner(columns=known, batch_size=BATCH_ROWS).to_batches():
            yield pa.RecordBatch.from_arrays([batch.column(one) for one in schema.names], schema=schema)

    return TableSource(schema, batches, name, replayable=True)


def _of_hub(dataset: Any, columns: Sequence[str] | None, name: str) -> TableSource:
    """Return a dataset of Hugging Face's library: its rows in its order, also after `select`, `shuffle` or `filter`."""
    known = _known(dataset.column_names or [], columns)
    if known is not None:
        dataset = dataset.select_columns(known)
    files = {name: feature for name, feature in (dataset.features or {}).items() if type(feature).__name__ in _FILES}

    def batches() -> Iterator[pa.RecordBatch]:
        for table in dataset.with_format("arrow").iter(batch_size=_ROWS):
            arrays = [
                _bytes_of(table.column(one), files[one]) if one in files else table.column(one) for one in table.column_names
            ]
            yield from pa.table(arrays, names=table.column_names).combine_chunks().to_batches()

    if dataset.features is not None:
        fields = dataset.features.arrow_schema
        schema = pa.schema([(one.name, pa.binary() if one.name in files else one.type) for one in fields])
        return TableSource(schema, lambda: _in_types(batches(), schema), name, replayable=True)
    # a stream whose columns only its first rows tell
    stream = batches()
    first = next(stream, None)
    if first is None:
        raise SourceError(f"source: {name} has no rows and no features, so its columns are not known")
    return TableSource(first.schema, opened_once(_begun(first, stream), batches), name, replayable=True)


def _begun(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


def _in_types(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch if batch.schema.equals(schema) else batch.cast(schema)


def _bytes_of(column: pa.ChunkedArray, feature: Any) -> pa.ChunkedArray:
    """Return the bytes of files, which a dataset may keep as paths."""
    table = importlib.import_module("datasets.table")
    return pa.chunked_array(
        [pc.struct_field(table.embed_array_storage(chunk, feature), "bytes") for chunk in column.chunks], pa.binary()
    )
