"""Columns whose values are written in the names of directories, as Hive does: `t/year=2026/month=11/x.parquet`.

::

    directories -> columns    `columns`, `added`: the values of a file's directories become columns of its rows
    columns -> directories    `divided`: the rows of a batch, for each directory those that belong in it
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from akrunner.arrays import array_of, numbers_of
from akrunner.errors import SourceError, WriteError

#: the value of a directory that stands for a null
NULL = "__HIVE_DEFAULT_PARTITION__"
#: what Hive and Spark write as %XX in the name of a directory
_ESCAPED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
#: the most bytes in the name of a directory
_NAME_BYTES = 255


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


def divided(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield (directory, its rows without the columns of `names`) for each combination of values of a batch, in the order in
    which they first come. Rows keep their order.

    Args:
        names: the columns whose values become names of directories, outermost first; of types that Arrow can write as text.
    Raises:
        WriteError: no directory can have the name of a value.
    """
    if not batch.num_rows:
        return
    codes = np.zeros(batch.num_rows, np.int64)
    labels = []
    for name in names:
        encoded = batch.column(name).cast(pa.string()).dictionary_encode()
        places = numbers_of(encoded.indices.cast(pa.int64()).fill_null(-1)).astype(np.int64) + 1
        # the codes are made small again each time, as otherwise many columns would make them larger than 64 bits
        codes = np.unique(codes * (len(encoded.dictionary) + 1) + places, return_inverse=True)[1]
        labels.append((places, [None, *encoded.dictionary.to_pylist()]))
    rest = batch.drop_columns(list(names))
    _, firsts, counts = np.unique(codes, return_index=True, return_counts=True)
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum(counts) - counts
    for group in np.argsort(firsts):
        values = [known[places[firsts[group]]] for places, known in labels]
        # each has rows of its own, as a slice would keep the whole batch in memory until its file takes the rows
        own = rest if len(firsts) == 1 else rest.take(array_of(order[starts[group] : starts[group] + counts[group]]))
        yield directory(names, values), own


def directory(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Return the path of the directory for values of columns, "day=2026-11-26/hour=7".

    Args:
        values: the values as text; None: a null.
    Raises:
        WriteError: no directory can have such a name.
    """
    return "/".join(_directory(name, value) for name, value in zip(names, values))


def _directory(name: str, value: str | None) -> str:
    if value == "" or value == NULL:
        raise WriteError(
            f"partition_by= (--partition-by): column {name!r} has the text {value!r}, and the name of its directory would be read "
            "as a null; write a null, or another text"
        )
    found = f"{_escaped(name)}={NULL if value is None else _escaped(value)}"
    if len(found.encode()) > _NAME_BYTES:
        raise WriteError(
            f"partition_by= (--partition-by): column {name!r} has a value that is too long for the name of a directory "
            f"({len(found.encode())} bytes; {_NAME_BYTES} are allowed): {found[:60]!r}..."
        )
    return found


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)
