"""Avro files, read and written by fastavro: records of the file's own schema, in blocks that may be compressed.

::

    ["null", T]           a column that may be null         enum              text
    long, double, ...     the type of Arrow of that width   fixed             bytes of one length
    timestamp-micros      timestamp[us, UTC]                decimal           decimal128
    local-timestamp-...   timestamp without a zone          array, map        list, map
    date, time-millis     date32, time32[ms]                record            struct
    uuid                  text (fixed: 16 bytes)            another union     refused

What akrunner cannot send to a script (structs, maps, most decimals) is refused later, as of any table, with the CAST to write.
"""

from __future__ import annotations

import collections
import importlib
import io
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

import pyarrow as pa

from akrunner.arrays import decoded, integers_of
from akrunner.column_types import TIMES, Family, family_of
from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.io.formats.base import Format, Opened, Reading, closed_on_failure, closing
from akrunner.io.writers import Writer
from akrunner.schema import is_list

_MAGIC = b"Obj\x01"
#: rows that are Python objects at one time, on their way
_ROWS = 8192
_SYNC_BYTES = 16
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
#: (type, logical type) -> Arrow's type; a logical type that is not here is ignored, as Avro wants it
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
#: what pip is to install
_EXTRA = "'akrunner[avro]'"
#: codecs that need a package -> its module, and what pip is to install
_CODECS = {
    "snappy": ("cramjam", _EXTRA),
    "zstandard": ("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd", _EXTRA),
    # no codec of Avro's own
    "lz4": ("lz4", "lz4"),
}
_UNITS = {"s": "millis", "ms": "millis", "us": "micros", "ns": "nanos"}


class Avro(Format):
    name = "avro"
    endings = (".avro",)
    title = "an Avro file"

    def begins(self, head: bytes) -> bool:
        return head.startswith(_MAGIC)

    def open(self, table: Reading, path: str, like: pa.Schema | None) -> Opened:
        stream = table.files.filesystem.open(path, "rb")
        with closed_on_failure(stream.close):
            reader = library("source").reader(stream)
            needs, install = _CODECS.get(reader.codec, ("", ""))
            if needs:
                _imported(needs, f"source: {path} is compressed with {reader.codec}, which needs the package", install)
            schema = columns_of(reader.writer_schema, path, table.only)
            _check_end(stream, reader._header["sync"], path)
            bare = _without_logical(stream, reader)
        within = table.within(schema)
        drawn = schema if within is None else pa.schema([field for field in schema if field.name in within])
        return schema, closing(_batches(bare, drawn), stream.close)

    def holds(self, data_type: pa.DataType) -> bool:
        return _avro_type(data_type, "x") is not None

    def check(self, schema: pa.Schema) -> None:
        library("output", SinkError)
        odd = next((name for name in schema.names if not _NAME.fullmatch(name)), None)
        if odd is not None:
            raise SinkError(
                f"output: an Avro file cannot have a column called {odd!r}: a name has letters from A to Z, digits and _, and does "
                "not begin with a digit; rename it, or write parquet"
            )
        super().check(schema)

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return _AvroWriter(stream, schema)


def library(parameter: str, kind: type[ConfigError] = SourceError) -> Any:
    return _imported("fastavro", f"{parameter}: Avro files are read and written by", _EXTRA, kind)


def _imported(package: str, what: str, install: str, kind: type[ConfigError] = SourceError) -> Any:
    """Return a package.

    Args: what: the beginning of the error; install: what pip is to install.

    Raises:
        ConfigError: of the class `kind`: it is missing.
    """
    try:
        return importlib.import_module(package)
    except ImportError as e:
        raise kind(f"{what} {package}, which is missing ({e}): pip install {install}") from None


def _check_end(stream: Any, sync: bytes, path: str) -> None:
    """Check that a file ends as its header and each block do: a file that ends within the number of a block's rows would be
    read as one without that block.

    Raises:
        SourceError: it is cut short.
    """
    at = stream.tell()
    stream.seek(-_SYNC_BYTES, 2)
    whole = stream.read() == sync
    stream.seek(at)
    if not whole:
        raise SourceError(f"source: {path} is cut short, or damaged at its end: it does not end as its blocks do")


# -- reading


class _Rewritten:
    """A stream that begins with other bytes than its file.

    Args: head: those bytes; rest: the file, at the first byte behind those that are replaced.
    """

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head: IO[bytes] | None = io.BytesIO(head)
        self._rest = rest

    def read(self, size: int) -> bytes:
        if self._head is None:
            return self._rest.read(size)
        data = self._head.read(size)
        if len(data) < size:
            self._head = None
            data += self._rest.read(size - len(data))
        return data


def _without_logical(stream: IO[bytes], reader: Any) -> Any:
    """Return a reader of the same blocks that gives times and identifiers as they are stored: Arrow makes the same of them
    as of Python's objects, only faster, and also of times that Python's objects cannot hold.

    Args:
        stream: the file, at its first block.
        reader: what has read its header.
    """
    fastavro = library("source")
    head = io.BytesIO()
    fastavro.writer(head, bare(reader.writer_schema), [], codec=reader.codec, sync_marker=reader._header["sync"])
    return fastavro.reader(_Rewritten(head.getvalue(), stream))


def bare(told: Any) -> Any:
    """Return a type of Avro without its logical types, but for decimals, whose bytes Arrow does not read."""
    if isinstance(told, list):
        return list(map(bare, told))
    if not isinstance(told, dict):
        return told
    kept = {key: value for key, value in told.items() if key != "logicalType" or value == "decimal"}
    for key in {"type", "items", "values"} & set(kept):
        kept[key] = bare(kept[key])
    if "fields" in kept:
        kept["fields"] = [{**field, "type": bare(field["type"])} for field in kept["fields"]]
    return kept


def columns_of(told: Any, path: str, only: list[str] | None) -> pa.Schema:
    """Return the columns of a file. One that is not drawn, and that no column can hold, has the type null.

    Args:
        told: the file's schema.
        only: the names of the columns that are drawn; None: all columns.
    Raises:
        SourceError: the file has no columns, or no column can hold one.
    """
    if not isinstance(told, dict) or told.get("type") != "record":
        raise SourceError(f"source: {path} holds no records, and so has no columns")
    known: dict[str, Any] = {}
    found = []
    for field in told["fields"]:
        try:
            found.append(_field(field["name"], field["type"], known, f"column {field['name']!r} of {path}"))
        except SourceError:
            if only is None or field["name"] in only:
                raise
            found.append(pa.field(field["name"], pa.null()))
    return pa.schema(found)


def _field(name: str, told: Any, known: dict[str, Any], what: str) -> pa.Field:
    if not isinstance(told, list):
        return pa.field(name, _arrow_type(told, known, what), told == "null")
    others = [one for one in told if one != "null"]
    if len(others) > 1:
        shown = ", ".join(one if isinstance(one, str) else str(one.get("type")) for one in others)
        raise SourceError(
            f"source: {what} is of several types ({shown}), and a column has one; write it with one of them, or null, "
            "or leave it out (columns=, --columns)"
        )
    return pa.field(name, _arrow_type(others[0], known, what) if others else pa.null(), len(others) < len(told))


def _arrow_type(told: Any, known: dict[str, Any], what: str) -> pa.DataType:
    """Return Arrow's type for one of Avro.

    Args:
        known: the named types that have come before, and their types; None for one that is not complete.
        what: the words for the column in errors.
    Raises:
        SourceError: no column can have this type.
    """
    if isinstance(told, str):
        if told not in _PLAIN and known.get(told) is None:
            raise SourceError(f"source: {what} is a record {told!r} that holds itself, which no column can")
        return _PLAIN[told] if told in _PLAIN else known[told]
    kind, logical = told["type"], told.get("logicalType")
    if isinstance(kind, (dict, list)):
        # {"type": {"type": ...}}
        return _arrow_type(kind, known, what)
    if kind in ("record", "error"):
        known[told["name"]] = None
        found = pa.struct([_field(one["name"], one["type"], known, what) for one in told["fields"]])
    elif kind == "array":
        return pa.list_(_field("item", told["items"], known, what))
    elif kind == "map":
        return pa.map_(pa.string(), _field("value", told["values"], known, what))
    elif logical == "decimal" and kind in ("bytes", "fixed"):
        if told["precision"] > 76:
            raise SourceError(f"source: {what} is a decimal of {told['precision']} digits, and Arrow has at most 76")
        made = pa.decimal128 if told["precision"] <= 38 else pa.decimal256
        found = made(told["precision"], told.get("scale", 0))
    elif kind == "fixed":
        found = pa.binary(told["size"])
    else:
        found = _LOGICAL.get((kind, logical)) or _arrow_type(kind, known, what)
    if "name" in told:
        known[told["name"]] = found
    return found


def _batches(reader: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    kind = pa.struct(list(schema))
    while records := list(itertools.islice(reader, _ROWS)):
        yield pa.RecordBatch.from_struct_array(pa.array(records, kind)).cast(schema)


# -- writing


def _avro_type(kind: pa.DataType, name: str) -> Any:
    """Return Avro's type for one of Arrow, None if it has none.

    Args:
        name: a name for a type that must have one.
    """
    family = family_of(kind)
    if is_list(kind):
        items = _avro_type(kind.value_type, name)
        return {"type": "array", "items": ["null", items]} if items is not None else None
    if pa.types.is_dictionary(kind):
        return _avro_type(kind.value_type, name)
    if pa.types.is_struct(kind):
        inner = [(one.name, _avro_type(one.type, f"{name}_{one.name}")) for one in kind]
        if any(told is None or not _NAME.fullmatch(one) or _has_times(kind) for one, told in inner):
            return None
        return {"type": "record", "name": name, "fields": [{"name": one, "type": ["null", told]} for one, told in inner]}
    if family is Family.WHOLE:
        return "int" if kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()) else "long"
    if family is Family.REAL:
        return "double" if kind == pa.float64() else "float"
    if family is Family.OCTETS:
        fixed = pa.types.is_fixed_size_binary(kind)
        return {"type": "fixed", "name": name, "size": kind.byte_width} if fixed else "bytes"
    if pa.types.is_decimal(kind) and kind.scale >= 0:
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if family is Family.DATE:
        return {"type": "int", "logicalType": "date"}
    if family is Family.MOMENT:
        return {"type": "long", "logicalType": f"{'local-' if kind.tz is None else ''}timestamp-{_UNITS[kind.unit]}"}
    if family is Family.TIME_OF_DAY and kind.unit != "ns":
        short = kind.unit in ("s", "ms")
        return {"type": "int" if short else "long", "logicalType": f"time-{_UNITS[kind.unit]}"}
    return {Family.TRUTH: "boolean", Family.TEXT: "string"}.get(family) if family is not None else None


def _has_times(kind: pa.DataType) -> bool:
    """Whether a struct has times somewhere, whose integers are not reached."""
    if pa.types.is_struct(kind):
        return any(_has_times(one.type) for one in kind)
    return _has_times(kind.value_type) if is_list(kind) else family_of(kind) in TIMES


def plain(column: pa.Array) -> pa.Array:
    """Return a column whose times are the integers that Avro stores, and whose integers fit.

    Raises:
        pa.ArrowInvalid: a value does not fit.
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = column.storage
    column = decoded(column)
    if is_list(column.type):
        listed = column.cast(pa.large_list(column.type.value_type))
        missing = listed.is_null()
        return pa.LargeListArray.from_arrays(_offsets(listed, missing), plain(listed.flatten()))
    unit = getattr(column.type, "unit", None)
    if unit == "s":
        zone = getattr(column.type, "tz", None)
        column = column.cast(pa.time32("ms") if pa.types.is_time(column.type) else pa.timestamp("ms", zone))
    if pa.types.is_date64(column.type):
        column = column.cast(pa.date32())
    if family_of(column.type) in TIMES:
        return integers_of(column)
    return column.cast(pa.int64()) if column.type == pa.uint64() else column


def _offsets(listed: pa.Array, missing: pa.Array) -> pa.Array:
    """Return the offsets of lists in their flattened values, with a null for each list that is null."""
    import pyarrow.compute as pc

    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(listed), 0).cast(pa.int64()))
    starts = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    return pc.if_else(pa.concat_arrays([missing, pa.array([False])]), None, starts)


def record_of(schema: pa.Schema) -> dict[str, Any]:
    """Return Avro's schema for rows whose columns Avro holds (`Avro.check`)."""
    fields: list[dict[str, Any]] = []
    for field in schema:
        told = _avro_type(field.type, field.name)
        # with a default, who reads by a schema that has one column more can read these rows, too
        optional = {"type": ["null", told], "default": None}
        fields.append({"name": field.name, **(optional if field.nullable else {"type": told})})
    return {"type": "record", "name": "row", "fields": fields}


def records_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield each row as fastavro writes it. The rows pass through loops of C.

    Raises:
        pa.ArrowInvalid: a value does not fit.
    """
    columns = [plain(column).to_pylist() for column in batch.columns]
    return map(dict, map(zip, itertools.repeat(batch.schema.names), zip(*columns)))


class _AvroWriter:
    def __init__(self, stream: IO[bytes], schema: pa.Schema) -> None:
        # deflate is the codec that each reader has besides none
        self._writer = importlib.import_module("fastavro.write").Writer(stream, record_of(schema), codec="deflate")
        self._write: Callable[[Any], None] = self._writer.write

    def write(self, batch: pa.RecordBatch) -> None:
        for first in range(0, batch.num_rows, _ROWS):
            collections.deque(map(self._write, records_of(batch.slice(first, _ROWS))), maxlen=0)

    def close(self) -> None:
        self._writer.flush()


FORMAT = Avro()
