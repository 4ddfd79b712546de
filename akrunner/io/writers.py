"""The writers with which formats write batches to an open stream. They use pyarrow, and DuckDB for JSON: the Python on a
TaskManager has no more."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import decoded, integers_of, nested, truths_of
from akrunner.column_types import UNITS
from akrunner.errors import WriteError
from akrunner.schema import is_list

#: writes a batch to a TFRecord stream
ExampleWriter = Callable[[IO[bytes], pa.RecordBatch], None]
#: the first second of the year 1 and the last one of the year 9999, in seconds since 1970
_FIRST, _LAST = -62135596800, 253402300799
#: the database in memory with which rows become JSON; it is there as long as a connection to it is open
_LINES_DATABASE = ":memory:akrunner-json-lines"

#: names of Arrow's extensions that DuckDB writes as what they mean
_MEANT = ("arrow.bool8", "arrow.json", "arrow.uuid")


class Writer(Protocol):
    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class _Checking:
    """Passes batches on to a writer after a check."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def check(self, batch: pa.RecordBatch) -> None:
        """Check that the rows can be written.

        Raises:
            WriteError: they cannot.
        """
        raise NotImplementedError

    def write(self, batch: pa.RecordBatch) -> None:
        self.check(batch)
        self._writer.write(batch)

    def flush(self) -> None:
        """Write the rows that are held; as `Gathered.flush`."""
        flush(self._writer)

    def close(self) -> None:
        self._writer.close()


class Dated(_Checking):
    """Refuses timestamps and dates outside the years 1 to 9999: Arrow would write `<value out of range>` for them, DuckDB years
    of six digits."""

    def __init__(self, writer: Writer, form: str) -> None:
        super().__init__(writer)
        self._form = form

    def check(self, batch: pa.RecordBatch) -> None:
        for field, column in zip(batch.schema, batch.columns):
            values = pc.list_flatten(column) if is_list(field.type) else column
            limits = _limits_of(values.type)
            if limits is None:
                continue
            ends = pc.min_max(integers_of(values)).as_py()
            if ends["min"] is not None and not limits[0] <= ends["min"] <= ends["max"] <= limits[1]:
                beyond = ends["min"] if ends["min"] < limits[0] else ends["max"]
                raise WriteError(
                    f"output: column {field.name!r} has {beyond}, which is no {values.type} of the years 1 to 9999, and "
                    f"{self._form} cannot hold it: is its unit right in output_schema= (--output-schema)? timestamp(0) counts "
                    "seconds, (3) milliseconds, (6), or timestamp alone, microseconds, (9) nanoseconds, date days"
                )


class Finite(_Checking):
    """Refuses what DuckDB would write otherwise: NaN and infinite numbers, which JSON does not have and at which other programs fail,
    and spans with nanoseconds, which it cuts."""

    def check(self, batch: pa.RecordBatch) -> None:
        for field, values in (
            (field, one) for field, column in zip(batch.schema, batch.columns) for one in _leaves(column, pa.types.is_floating)
        ):
            there = values.drop_null()
            # older Arrow does not know it of floats of 16 bits
            finite = truths_of(pc.is_finite(there.cast(pa.float32()) if pa.types.is_float16(there.type) else there))
            if not finite.all():
                raise WriteError(
                    f"output: column {field.name!r} has {there[int(finite.argmin())].as_py()}, and JSON has no such number: write a null for it (None, "
                    "or numpy.ma.masked_invalid(x), which makes nulls of all), or write to Parquet, Arrow or CSV"
                )
        for field, column in zip(batch.schema, batch.columns):
            for spans in _leaves(column, lambda kind: kind == pa.duration("ns")):
                try:
                    spans.cast(pa.duration("us"))
                except pa.ArrowInvalid:
                    raise WriteError(
                        f"output: column {field.name!r} has spans with nanoseconds, and JSON has them to microseconds: round them, or write "
                        "to Parquet or Arrow"
                    ) from None


class Plain:
    """Passes batches on to a writer of JSON without types of extensions, of which neither the checks nor DuckDB know what is in
    them: tensors as lists of lists, others as what they are stored as. DuckDB writes what `_MEANT` lists itself."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def write(self, batch: pa.RecordBatch) -> None:
        if any(plain_type(field.type) != field.type for field in batch.schema):
            batch = pa.RecordBatch.from_arrays([_plain(one) for one in batch.columns], names=batch.schema.names)
        self._writer.write(batch)

    def flush(self) -> None:
        """Write the rows that are held; as `Gathered.flush`."""
        flush(self._writer)

    def close(self) -> None:
        self._writer.close()


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type whose values stand for those of a column in JSON: that in which an extension's type is stored."""
    return kind if not isinstance(kind, pa.BaseExtensionType) or kind.extension_name in _MEANT else kind.storage_type


def _plain(column: pa.Array) -> pa.Array:
    if plain_type(column.type) == column.type:
        return column
    return nested(column) if isinstance(column.type, pa.FixedShapeTensorType) else column.storage


def _leaves(values: pa.Array, wanted: Callable[[pa.DataType], bool]) -> Iterator[pa.Array]:
    """Yield the values of the wanted types in a column, also those within lists, maps, structs and dictionaries."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        yield from _leaves(decoded(values), wanted)
    elif pa.types.is_map(kind):
        # `items` has those of the whole array, also if this is a part of it
        ends = values.offsets
        yield from _leaves(values.items.slice(ends[0].as_py(), ends[-1].as_py() - ends[0].as_py()), wanted)
    elif is_list(kind):
        yield from _leaves(pc.list_flatten(values), wanted)
    elif pa.types.is_struct(kind):
        for one in values.flatten():
            yield from _leaves(one, wanted)
    elif wanted(kind):
        yield values


def flush(writer: Writer) -> None:
    """Let a writer that holds rows write them now."""
    held = getattr(writer, "flush", None)
    if held is not None:
        held()


def _limits_of(data_type: pa.DataType) -> tuple[int, int] | None:
    """Return the least and the greatest integer that stand for a time in the years 1 to 9999; None if the type has neither
    timestamps nor dates."""
    if pa.types.is_date32(data_type):
        return _FIRST // 86400, _LAST // 86400
    if not pa.types.is_timestamp(data_type) and not pa.types.is_date64(data_type):
        return None
    factor = 10 ** UNITS[getattr(data_type, "unit", "ms")]
    return _FIRST * factor, _LAST * factor + factor - 1


class Gate(io.RawIOBase):
    """Passes bytes on to a stream until it is shut. A writer that was given up may then go on writing, and its bytes are
    lost."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream: IO[bytes] | None = stream
        self._position = 0

    def shut(self) -> None:
        self._stream = None

    @property
    def is_shut(self) -> bool:
        """Whether the bytes are lost: what a writer keeps back until its end need not be made then."""
        return self._stream is None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
        if self._stream is not None:
            self._stream.write(data)
        self._position += size
        return size

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Do nothing: the code that made the stream flushes it."""


class Gathered:
    """Wraps one of Arrow's own writers and joins small batches: a file with a row group, or an IPC message, for each batch
    would be slow to read. It also joins those of a writer to which a call for a few rows costs much.

    Args:
        rows, size: how many rows, or bytes of them, are written at once.
    """

    def __init__(self, writer: Any, rows: int = 65536, size: int | None = None) -> None:
        self._writer = writer
        self._most, self._size = rows, size
        self._bytes = 0
        self._held: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._rows += batch.num_rows
        if self._size is not None:
            self._bytes += batch.nbytes
        if self._rows >= self._most or (self._size is not None and self._bytes >= self._size):
            self.flush()

    def flush(self) -> None:
        """Write the rows that are held."""
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held).combine_chunks())
            self._held, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        self.flush()
        self._writer.close()


class JsonLines:
    """Writes one object per line, made by DuckDB.

    Args:
        array: whether the objects are those of one array, with a comma behind each but the last.
    """

    def __init__(self, stream: IO[bytes], array: bool = False) -> None:
        import duckdb

        self._stream = stream
        self._array, self._begun = array, False
        # writers of one process share a database: each of its own would take 5 MB and threads, and a directory may have hundreds
        self._connection = duckdb.connect(_LINES_DATABASE)
        # else times with a zone would be written in that of this machine
        self._connection.execute("SET SESSION TimeZone = 'UTC'")

    def write(self, batch: pa.RecordBatch) -> None:
        self.write_table(pa.Table.from_batches([batch]))

    def write_table(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        # DuckDB would take a column called like the table for a row, names that differ only in case for one, and "" for none: it sees
        # numbers, and gets the names as texts
        numbered = [f"c{number}" for number in range(table.num_columns)]
        self._connection.register("akrunner_rows", table.rename_columns(numbered))
        between = "',' || chr(10)" if self._array else "chr(10)"
        pairs = ", ".join(f"{_text(name)}, {number}" for name, number in zip(table.column_names, numbered))
        query = f"SELECT string_agg(json_object({pairs})::VARCHAR, {between}) FROM akrunner_rows"
        ((joined,),) = self._connection.sql(query).fetchall()
        if self._array:
            self._stream.write((b",\n" if self._begun else b"[\n") + joined.encode())
        else:
            self._stream.write(joined.encode() + b"\n")
        self._begun = True

    def close(self) -> None:
        """Write the end of an array."""
        self._connection.close()
        if self._array:
            self._stream.write(b"\n]\n" if self._begun else b"[]\n")


def _text(words: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + words.replace("'", "''") + "'"


class Examples:
    def __init__(self, stream: IO[bytes], write_examples: ExampleWriter) -> None:
        self._stream = stream
        self._write = write_examples

    def write(self, batch: pa.RecordBatch) -> None:
        self._write(self._stream, batch)

    def close(self) -> None:
        pass
