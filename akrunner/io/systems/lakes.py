"""What the systems of lakehouse tables (Delta, Iceberg) share.

A job's rows wait in a file of this machine until the job has succeeded, so that a job that fails writes nothing into the table's
directory::

    rows -> columns and types of the table -> KeptRows -> one new snapshot, at the commit
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from akrunner.arrays import decoded
from akrunner.column_types import is_octets
from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.io.casts import asked
from akrunner.io.partitions import NULL
from akrunner.io.systems.base import Transaction, Url, check_columns
from akrunner.io.systems.kept_rows import KeptRows
from akrunner.wire.near import nearest

#: the options of an output
OUT = ("partition", "partition_by")


#: the oldest versions that leave out every deleted row that they do not refuse, and notice other writers
_OLDEST = {"deltalake": "1.6", "pyiceberg": "0.12", "lance": "0.35"}
#: a library's name -> what pip calls it
_PACKAGES = {"lance": "pylance"}


def library(name: str, extra: str, what: str) -> Any:
    """Return a library that is installed, and not too old.

    Args:
        name: its name.
        extra: the extra of akrunner that installs the library.
        what: the tables that it reads and writes.
    Raises:
        ConfigError: it is missing, or too old.
    """
    called = _PACKAGES.get(name, name)
    try:
        found = importlib.import_module(name)
    except ImportError as e:
        raise ConfigError(
            f"{what} are read and written by {called}, which is missing ({e}): pip install 'akrunner[{extra}]'"
        ) from None
    version = str(found.__version__)
    if name in _OLDEST and _numbers(version) < _numbers(_OLDEST[name]):
        raise ConfigError(
            f"{what} are read and written by {called} {_OLDEST[name]} or later, and here is {version}, which may read deleted rows or "
            f"overrule other writers: pip install --upgrade 'akrunner[{extra}]'"
        )
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d+", version)[:2])


def endpoint_options(uri: str) -> dict[str, str]:
    """Return what a library in Rust must be told of an S3 server, beside the variables that it reads itself: where the server is,
    and that it speaks plain HTTP.

    Args:
        uri: the URL of a table; {} for one that is not in S3.
    """
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if not uri.startswith(("s3://", "s3a://")) or not endpoint:
        return {}
    return {"AWS_ENDPOINT_URL": endpoint, **({"AWS_ALLOW_HTTP": "true"} if endpoint.startswith("http://") else {})}


def partition_of(place: Url) -> dict[str, str | None]:
    """Return {column: value} of a URL's `partition=`, which is written as Hive names directories: `day=2026-01-02/hour=3`.

    Raises:
        ConfigError: it is written otherwise.
    """
    found: dict[str, str | None] = {}
    for part in place.options["partition"].split("/") if "partition" in place.options else ():
        name, mark, value = part.partition("=")
        if not mark or not name or unquote(name) in found:
            raise ConfigError(f"{place.shown}: write partition=COLUMN=VALUE, or partition=COLUMN=VALUE/COLUMN=VALUE")
        found[unquote(name)] = None if value == NULL else unquote(value)
    return found


def partition_by(place: Url, partition: Mapping[str, Any]) -> list[str]:
    """Return the columns by which a new table is partitioned: those of `partition_by=`, or else of `partition=`.

    Raises:
        ConfigError: `partition_by=` lacks a column of `partition=`.
    """
    if "partition_by" not in place.options:
        return list(partition)
    columns = [one.strip() for one in place.options["partition_by"].split(",") if one.strip()]
    for name in partition:
        if name not in columns:
            raise ConfigError(f"{place.shown}: partition= names {name!r}, which is not in partition_by=")
    return columns


def check_partition(partition: Mapping[str, Any], columns: Sequence[str], shown: str) -> None:
    """Check that a table is partitioned by the columns that `partition=` names.

    Raises:
        SinkError: it is not.
    """
    for name in partition:
        if name not in columns:
            raise SinkError(
                f"output: {shown}: partition= names {name!r}, and the table is partitioned by "
                f"{', '.join(columns) or 'no column'}{nearest(name, list(columns))}"
            )


def check_place(path: str, shown: str, what: str) -> None:
    """Check that a new table can be made in a directory of this machine.

    Args:
        path: the directory, which need not exist.
        what: the words for such a table.
    Raises:
        SinkError: a file is there, or nothing may be written.
    """
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        raise SinkError(f"output: {shown}: {path} is a file, and {what} is a directory; name another place")
    if not os.access(path, os.W_OK | os.X_OK):
        raise SinkError(f"output: {shown}: nothing may be written in {path}")


def new_columns(rows: pa.Schema, partition: Mapping[str, str | None], by: Sequence[str], shown: str, narrow: bool) -> pa.Schema:
    """Return the columns of a new table for a job's rows.

    Args:
        partition: the values of `partition=`; a column that the rows lack becomes text.
        by: the columns by which it is partitioned.
        narrow: whether the system has integers of 8 and 16 bits.
    Raises:
        SinkError: a column has a type that neither Delta nor Iceberg has, or a column of `by` is missing.
    """
    fields = [field.remove_metadata().with_type(_stored(field, field.type, shown, narrow)) for field in rows]
    fields += [pa.field(name, pa.string()) for name in partition if name not in rows.names]
    names = [field.name for field in fields]
    # without columns the schema is not known yet
    for name in by if rows.names else ():
        if name not in names:
            raise SinkError(
                f"output: {shown}: partition_by= names {name!r}, and the rows have {', '.join(names)}{nearest(name, names)}"
            )
    return pa.schema(fields)


def _stored(field: pa.Field, kind: pa.DataType, shown: str, narrow: bool) -> pa.DataType:
    """Return the type in which a new table has a column.

    Raises:
        SinkError: there is none.
    """
    if pa.types.is_dictionary(kind):
        return _stored(field, kind.value_type, shown, narrow)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", _stored(field, kind.value_type, shown, narrow)))
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_stored(field, one.type, shown, narrow)) for one in kind])
    if kind in (pa.uint8(), pa.int8(), pa.int16(), pa.uint16()) and not (narrow and kind in (pa.int8(), pa.int16())):
        return pa.int16() if narrow and kind == pa.uint8() else pa.int32()
    if kind in (pa.uint32(), pa.uint64()):
        return pa.int64()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz is not None else None)
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return pa.string()
    if is_octets(kind):
        return pa.binary()
    if pa.types.is_time(kind) and not narrow:
        return pa.time64("us")
    plain = pa.types.is_boolean(kind) or pa.types.is_signed_integer(kind) or pa.types.is_floating(kind)
    if plain or pa.types.is_decimal128(kind) or pa.types.is_map(kind):
        return kind
    raise SinkError(
        f"output: {shown}: column {field.name!r} is of type {kind}, for which such a table has none; write it as text or as a "
        "number"
    )


def check_rows(table: pa.Schema, rows: pa.Schema, partition: Mapping[str, str | None], shown: str) -> None:
    """Check, before a job starts, that a table takes its rows.

    Args:
        table: the table's columns; a column that may not be null is not nullable.
    Raises:
        SinkError: the rows have a column that the table lacks, or lack one that may not be null, or have one that cannot be
            cast to the table's type; or a value of `partition=` does not fit its column.
    """
    check_columns(table, rows, shown)
    for field in table:
        if field.name in partition:
            _constant(field, partition[field.name], 0, shown)
        elif field.name not in rows.names:
            # without columns the schema is not known yet
            if not field.nullable and rows.names:
                raise SinkError(f"output: {shown}: column {field.name!r} may not be null, and the rows do not have it")
            continue
        if field.name in rows.names:
            given = rows.field(field.name).type
            try:
                decoded(pa.array([], given)).cast(field.type)
            except pa.ArrowException:
                raise SinkError(
                    f"output: {shown}: column {field.name!r} is {field.type} there, and {given} in the rows, which cannot "
                    "become that"
                ) from None


def _constant(field: pa.Field, value: str | None, rows: int, shown: str) -> pa.Array:
    try:
        return pa.repeat(pa.scalar(value, pa.string()).cast(field.type), rows)
    except pa.ArrowException:
        raise SinkError(f"output: {shown}: partition= gives {field.name!r} {value!r}, which is no {field.type}") from None


def shaped(
    batch: pa.RecordBatch, table: pa.Schema, partition: Mapping[str, str | None], first: int, shown: str
) -> pa.RecordBatch:
    """Return rows with a table's columns, in its order and types; columns that the rows lack are null.

    Args:
        partition: values of `partition=`, which columns of these names have in all rows.
        first: the number of the batch's first row, for errors.
    Raises:
        WriteError: a value does not fit its column.
    """
    columns = []
    for field in table:
        if field.name in batch.schema.names:
            try:
                column = asked(decoded(batch.column(field.name)), field, first, f"output: {shown}")
            except SourceError as e:
                raise WriteError(str(e)) from None
        else:
            column = pa.nulls(batch.num_rows, field.type)
        if field.name in partition:
            wanted = _constant(field, partition[field.name], batch.num_rows, shown)
            if field.name in batch.schema.names and not column.equals(wanted):
                raise WriteError(
                    f"output: {shown}: the rows have other values in {field.name!r} than partition= gives; leave the column "
                    "out, or write to the whole table"
                )
            column = wanted
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=table)


@dataclass(frozen=True)
class Target:
    """The table into which a job's rows go.

    Attributes:
        place: the URL that names it.
        table: the library's own table, as it was when the output was opened; None: there was none.
        columns: its columns.
        by: the columns by which it is partitioned.
        partition: values of `partition=`.
        overwrite: whether the rows replace those of the table, or of the partition.
    """

    place: Url
    table: Any | None
    columns: pa.Schema
    by: list[str]
    partition: Mapping[str, str | None]
    overwrite: bool


class Waiting(Transaction):
    """Keeps a job's rows in a `KeptRows` until they are committed."""

    def __init__(self, target: Target) -> None:
        self._target, self._shown = target, target.place.shown
        self._kept = KeptRows(target.columns)

    def append(self, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            self._kept.append(shaped(batch, self._target.columns, self._target.partition, self._kept.rows, self._shown))

    def close(self) -> None:
        self._kept.drop()


def conflict(shown: str, error: Exception) -> WriteError:
    """Return the error for rows that were not committed because another writer has changed the table."""
    words = (str(error).splitlines() or [""])[0]
    return WriteError(
        f"output: {shown}: another writer has changed the table while the job ran, so that nothing of the job was written; run it "
        f"again ({type(error).__name__}: {words})"
    )
