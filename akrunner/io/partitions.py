"""Columns whose values are written in the names of directories, as Hive does: `t/year=2026/month=11/x.parquet`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa

from akrunner.errors import SourceError

#: the value of a directory that stands for a null
NULL = "__HIVE_DEFAULT_PARTITION__"


def values_of(path: str, base: str) -> dict[str, str]:
    """Return {column: value} of the directories between the base and the file."""
    inside = posixpath.relpath(posixpath.dirname(path), base).split("/")
    return {unquote(name): unquote(value) for name, mark, value in (part.partition("=") for part in inside) if mark and name}


def columns(paths: list[str], base: str | None) -> dict[str, dict[str, pa.Scalar]]:
    """Return {column: {path: value}}; a column has the type that fits all its values: int32, int64 or string.

    Args:
        base: the directory that was given; None: none was, so there are no such columns.
    Raises:
        SourceError: the directories of some files name a column that those of other files do not.
    """
    if base is None or not any("=" in path[len(base) :] for path in paths):
        return {}
    found = [values_of(path, base) for path in paths]
    for path, values in zip(paths, found):
        if values.keys() != found[0].keys():
            raise SourceError(
                f"source: the directories of {paths[0]} name the columns {', '.join(found[0]) or 'none'}, those of {path} "
                f"{', '.join(values) or 'none'}"
            )
    named = {}
    for name in found[0]:
        given = [None if values[name] == NULL else values[name] for values in found]
        named[name] = dict(zip(paths, pa.array(given, pa.string()).cast(_kind([one for one in given if one is not None]))))
    return named


def _kind(values: list[str]) -> pa.DataType:
    for kind in (pa.int32(), pa.int64()):
        try:
            if pa.array(values, pa.string()).cast(kind).cast(pa.string()).to_pylist() == values and values:
                return kind
        except pa.ArrowInvalid:
            pass
    return pa.string()


def added(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], named: dict[str, dict[str, pa.Scalar]], path: str
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return a file's schema and batches with the directories' columns behind its own. A column that the file has itself stays
    as it is there."""
    constants = {name: values[path] for name, values in named.items() if name not in schema.names}
    if not constants:
        return schema, batches
    for name, value in constants.items():
        schema = schema.append(pa.field(name, value.type))

    def more() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = [pa.repeat(value, batch.num_rows) for value in constants.values()]
            # a batch may have fewer columns than its file
            fields = [*batch.schema, *(schema.field(name) for name in constants)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=pa.schema(fields))

    return schema, more()
