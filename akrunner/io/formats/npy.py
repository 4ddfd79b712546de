"""numpy's .npy files: an array in each.

::

    .npy   a plain array       one column: `value`, or the only column of input_schema=; two dimensions are lists of one length
           a structured array  a column for each field
    .npz   a zip of .npy files a column for each array (`akrunner.io.formats.npz`)

Arrays are read a few MB at a time, from a file or a stream. They are not mapped into memory: if another program cut a mapped
file, this process would be killed. An array of Python objects is refused, as it could only be unpickled, which runs code.
"""

from __future__ import annotations

import ast
import math
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from akrunner.arrays import decoded, integers_of, numbers_of, truths_of
from akrunner.column_types import NUMBERS, Family, family_of
from akrunner.errors import SourceError, WriteError
from akrunner.io.formats.base import Format, Opened, Reading, closed_on_failure, closing
from akrunner.io.frames import column_of
from akrunner.io.table import BATCH_ROWS
from akrunner.io.writers import Gate, Gathered, Writer
from akrunner.schema import is_list

_MAGIC = b"\x93NUMPY"
#: numpy's own limit of a header, whose text is parsed as Python
_HEADER_BYTES = 10_000
#: about how many bytes of an array are read at once
_READ_BYTES = 8 << 20
#: the name of the only column of a plain array
_PLAIN = "value"
#: the kinds of numpy's types that become columns
_KINDS = "biufUSMm"
#: units that Arrow lacks -> the unit that they become
_UNITS = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}
#: texts are padded to the longest one; above both of these the padding is refused: bytes, and times the bytes of the texts
_PADDED_BYTES, _PADDED_TIMES = 1 << 30, 100
#: the integer that stands for NaT
_NAT = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Layout:
    """What the header of an array says.

    Attributes:
        dtype: numpy's type of one value.
        shape: [rows, ...].
        fortran: whether the first index changes fastest.
        start: where the values begin: the length of the header.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    start: int

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape[1:])

    @property
    def end(self) -> int:
        """Return where the values end: the length of the file."""
        return self.start + self.rows * self.row_bytes


class Npy(Format):
    name = "npy"
    endings = (".npy",)
    title = "an .npy file"
    doubtful = True

    def begins(self, head: bytes) -> bool:
        return head.startswith(_MAGIC)

    def open(self, table: Reading, path: str, like: pa.Schema | None) -> Opened:
        stream = table.seekable(path)
        with closed_on_failure(stream.close):
            layout = layout_of(stream, path)
            table.extent.has_rows(layout.rows)
            size = stream.seek(0, 2)
            stream.seek(layout.start)
            if layout.dtype.names is None:
                known = table.asked if table.asked is not None else like
                name = known.names[0] if known is not None and len(known) == 1 else _PLAIN
                schema = pa.schema([(name, type_of(layout.dtype, layout.shape[1:], path))])
                check_size(layout, size, path)
                read = plain_chunks(stream, layout, path)
                return schema, closing((pa.RecordBatch.from_arrays([column], schema=schema) for column in read), stream.close)
            wanted = list(layout.dtype.names) if table.only is None else [n for n in layout.dtype.names if n in table.only]
            schema = pa.schema([(name, self._field_type(layout, name, name in wanted, path)) for name in layout.dtype.names])
            check_size(layout, size, path)
            return schema, closing(_records(stream, layout, path, wanted), stream.close)

    @staticmethod
    def _field_type(layout: Layout, name: str, wanted: bool, path: str) -> pa.DataType:
        one = layout.dtype[name]
        base, inner = one.subdtype or (one, ())
        return type_of(base, inner, f"{path}, field {name!r}") if wanted else pa.null()

    def row_count(self, path: str) -> int | None:
        try:
            with open(path, "rb") as stream:
                return layout_of(stream, path).rows
        except SourceError:
            # the error is raised where the file is opened
            return None

    def holds(self, data_type: pa.DataType) -> bool:
        return holds(data_type)

    def writer(self, stream: IO[bytes], schema: pa.Schema) -> Writer:
        return _NpyWriter(stream, schema)


# -- reading


def layout_of(stream: Any, what: str) -> Layout:
    """Read the header of an array.

    Args:
        stream: the file, at its beginning; afterwards, at the first value.
        what: the words for the array in errors.
    Raises:
        SourceError: it is no array, or one that cannot be a table's column.
    """
    head = stream.read(len(_MAGIC) + 2)
    if head[:6] != _MAGIC or len(head) < 8 or head[6] not in (1, 2, 3):
        raise SourceError(f"source: cannot read {what}: it is no array of numpy's, or is cut short")
    size = 2 if head[6] == 1 else 4
    length = int.from_bytes(stream.read(size), "little")
    if length > _HEADER_BYTES:
        raise SourceError(
            f"source: cannot read {what}: its header has {length:,} bytes, and at most {_HEADER_BYTES:,} are read"
        )
    text = stream.read(length)
    try:
        told = ast.literal_eval(text.decode("utf-8" if head[6] == 3 else "latin-1").strip())
        dtype, shape, fortran = np.lib.format.descr_to_dtype(told["descr"]), tuple(told["shape"]), bool(told["fortran_order"])
        if not all(type(one) is int and one >= 0 for one in shape):
            raise ValueError
    except (ValueError, TypeError, SyntaxError, KeyError, AttributeError, RecursionError, MemoryError):
        raise SourceError(f"source: cannot read {what}: the header of its array is damaged") from None
    layout = Layout(dtype, shape, fortran and len(shape) > 1, len(head) + size + length)
    _check_shape(layout, what)
    return layout


def _check_shape(layout: Layout, what: str) -> None:
    if not layout.shape:
        raise SourceError(f"source: {what} is a single value, and not an array with a value for each row")
    if layout.dtype.names is not None and len(layout.shape) > 1:
        raise SourceError(f"source: {what} is a structured array of {len(layout.shape)} dimensions; give one of one dimension")
    if 0 in layout.shape[1:]:
        raise SourceError(f"source: {what} has the shape {layout.shape}: its rows have no values")
    if layout.fortran and len(layout.shape) > 2:
        raise SourceError(
            f"source: {what} lies in Fortran's order, in which arrays of three and more dimensions cannot be read row by row; "
            "store it with np.ascontiguousarray(array)"
        )


def check_size(layout: Layout, size: int, what: str) -> None:
    """Check that a file is as long as its header says.

    Raises:
        SourceError: it is shorter or longer.
    """
    if size < layout.end:
        raise SourceError(f"source: {what} is cut short: it has {size:,} bytes, and its array needs {layout.end:,}")
    if size > layout.end:
        raise SourceError(f"source: {what} holds more behind its array: several arrays in one file? store them with np.savez")


def refuse_objects(dtype: np.dtype[Any], what: str) -> None:
    """Refuse an array of Python objects.

    Raises:
        SourceError: it is one.
    """
    if dtype.hasobject:
        raise SourceError(
            f"source: {what} holds Python objects (dtype {dtype}), which would have to be unpickled, and that can run any code; "
            "store it with a type of its own, such as array.astype(str) or array.astype('float64')"
        )


def type_of(dtype: np.dtype[Any], inner: tuple[int, ...], what: str) -> pa.DataType:
    """Return the type of the column that an array becomes.

    Args:
        inner: the shape of one row's value.
        what: the words for the array in errors.
    Raises:
        SourceError: no column can have such values.
    """
    refuse_objects(dtype, what)
    if dtype.names is not None or dtype.kind not in _KINDS or (dtype.itemsize > 8 and dtype.kind == "f"):
        raise SourceError(
            f"source: {what} has the type {dtype}, which no column can have; store numbers, booleans, texts, bytes or times"
        )
    if dtype.kind in "Mm" and np.datetime_data(dtype)[0] not in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"):
        raise SourceError(f"source: {what} has the type {dtype}, which no column can have; store it in us or ns (array.astype)")
    return _column(np.empty((0, *inner), dtype)).type


def _column(values: NDArray[Any]) -> pa.Array:
    """Return values of a known kind as a column."""
    dtype = values.dtype
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    if dtype.kind in "Mm":
        unit = np.datetime_data(dtype)[0]
        # 25 seconds, and days between two times, are no units of Arrow's
        unit = _UNITS.get(unit, unit)
        if dtype.kind == "m" and unit == "D":
            unit = "s"
        if (unit, 1) != np.datetime_data(dtype):
            dtype = np.dtype(f"{dtype.kind}8[{unit}]")
    made: pa.Array = column_of(values.astype(dtype, copy=False))
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def _steps(layout: Layout) -> Iterator[tuple[int, int]]:
    """Yield (first row, number of rows) of what is read at once."""
    most = min(BATCH_ROWS, max(1, _READ_BYTES // max(1, layout.row_bytes)))
    for first in range(0, layout.rows, most):
        yield first, min(most, layout.rows - first)


def _exactly(stream: Any, size: int, what: str) -> bytes:
    data: bytes = stream.read(size) if size else b""
    if len(data) < size:
        raise SourceError(f"source: {what} is cut short")
    return data


def plain_chunks(stream: Any, layout: Layout, what: str) -> Iterator[pa.Array]:
    """Yield a plain array, which begins where the stream is, as columns of a few MB."""
    size = layout.dtype.itemsize
    for first, rows in _steps(layout):
        if not layout.fortran:
            data = _exactly(stream, rows * layout.row_bytes, what)
            yield _column(np.ndarray((rows, *layout.shape[1:]), layout.dtype, data))
            continue
        table: NDArray[Any] = np.empty((rows, layout.shape[1]), layout.dtype)
        for number in range(layout.shape[1]):
            stream.seek(layout.start + (number * layout.rows + first) * size)
            table[:, number] = np.ndarray(rows, layout.dtype, _exactly(stream, rows * size, what))
        yield _column(table)


def _records(stream: Any, layout: Layout, what: str, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    for _, rows in _steps(layout):
        values: NDArray[Any] = np.ndarray(rows, layout.dtype, _exactly(stream, rows * layout.row_bytes, what))
        yield pa.RecordBatch.from_arrays([_column(np.ascontiguousarray(values[name])) for name in wanted], wanted)


# -- writing


def holds(data_type: pa.DataType) -> bool:
    """Whether an array can hold a column of that type."""
    if is_list(data_type):
        return family_of(data_type.value_type) in NUMBERS
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    if family_of(data_type) is Family.MOMENT:
        # numpy's times have no zones
        return data_type.tz is None
    return family_of(data_type) in NUMBERS | {Family.TEXT, Family.DATE, Family.SPAN}


class KeptRows:
    """Keeps rows in a file without a name until all have come: an array's header says how many there are, and a text's width.

    Args:
        schema: the schema of the rows.
        form: the name of the format, for errors.
    """

    def __init__(self, schema: pa.Schema, form: str) -> None:
        self.rows = 0
        self._form = form
        # a list's length, or a text's, which all rows have in common
        self._widths: dict[str, int] = {}
        self._text_bytes: dict[str, int] = {}
        self.schema = pa.schema([pa.field(field.name, _as_kept(field.type)) for field in schema])
        self._file = tempfile.TemporaryFile(prefix="akrunner-npy-")
        self._writer = Gathered(pa.ipc.new_file(pa.PythonFile(self._file, "w"), self.schema))

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [decoded(column) for column in batch.columns]
        columns = [column.storage if isinstance(column, pa.ExtensionArray) else column for column in columns]
        for name, column in zip(batch.schema.names, columns):
            self._check(name, column)
        self._writer.write(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        self.rows += batch.num_rows

    def _check(self, name: str, column: pa.Array) -> None:
        """Note what a column's values have in common.

        Raises:
            WriteError: an array cannot hold a value.
        """
        family = family_of(column.type)
        if is_list(column.type):
            self._no_nulls(name, column)
            if not pa.types.is_fixed_size_list(column.type):
                lengths = pc.list_value_length(column)
                for odd in (pc.min(lengths).as_py(), pc.max(lengths).as_py()) if len(column) else ():
                    if odd != self._widths.setdefault(name, odd):
                        raise WriteError(
                            f"output: column {name!r} has lists of {self._widths[name]} and of {odd} values, and an array of "
                            f"{self._form} holds lists of one length: pad them, or write parquet"
                        )
            inner = column.flatten()
            if inner.null_count and family_of(inner.type) is not Family.REAL:
                self._no_nulls(name, inner, inside=True)
        elif family is Family.TEXT:
            self._no_nulls(name, column)
            if pc.any(pc.match_substring(column, "\0")).as_py():
                raise WriteError(f"output: column {name!r} has a text with a NUL, which an array of {self._form} would cut off")
            self._widths[name] = max(self._widths.get(name, 1), pc.max(pc.utf8_length(column)).as_py() or 0)
            self._text_bytes[name] = self._text_bytes.get(name, 0) + (pc.sum(pc.binary_length(column)).as_py() or 0)
            padded = 4 * self._widths[name] * (self.rows + len(column))
            if padded > max(_PADDED_BYTES, _PADDED_TIMES * self._text_bytes[name]):
                raise WriteError(
                    f"output: column {name!r} has a text of {self._widths[name]:,} characters, and {self._form} would pad all "
                    "texts of the column to that length; write parquet or arrow"
                )
        elif family in (Family.TRUTH, Family.WHOLE):
            self._no_nulls(name, column)

    def _no_nulls(self, name: str, column: pa.Array, inside: bool = False) -> None:
        if column.null_count:
            row = self.rows + int(np.flatnonzero(truths_of(column.is_null()))[0])
            where = f"row {row}: " if not inside else ""
            raise WriteError(
                f"output: {where}column {name!r} has a null, and arrays of {self._form} hold nulls only in floats (NaN) and times "
                "(NaT); write another value for it, or write parquet or arrow"
            )

    def finish(self) -> None:
        """Take no more rows."""
        self._writer.close()
        self._file.flush()

    def dtype(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return (the type of a column's array, the shape of one row's value)."""
        kind = self.schema.field(name).type
        if is_list(kind):
            width = kind.list_size if pa.types.is_fixed_size_list(kind) else self._widths.get(name, 1)
            return _dtype(kind.value_type), (width,)
        return (np.dtype(f"<U{self._widths.get(name, 1)}"), ()) if family_of(kind) is Family.TEXT else (_dtype(kind), ())

    def arrays(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield a column as arrays that follow one another."""
        for batch in self._batches([name]):
            yield self._array(name, batch.column(name))

    def records(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield all columns as arrays that follow one another."""
        for batch in self._batches(self.schema.names):
            yield {name: self._array(name, batch.column(name)) for name in self.schema.names}

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        options = pa.ipc.IpcReadOptions(included_fields=[self.schema.get_field_index(name) for name in names])
        reader = pa.ipc.open_file(pa.PythonFile(self._file, "r"), options=options)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)

    def _array(self, name: str, column: pa.Array) -> NDArray[Any]:
        dtype, inner = self.dtype(name)
        values = column.flatten() if is_list(column.type) else column
        if family_of(values.type) is Family.TEXT:
            return np.array(values.to_pylist(), dtype)
        return _numbers(values).reshape(len(column), *inner)

    def drop(self) -> None:
        """Give up the rows."""
        self._file.close()


def _as_kept(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    family = family_of(kind)
    if family is Family.MOMENT or family is Family.SPAN:
        return np.dtype(f"<{'M' if family is Family.MOMENT else 'm'}8[{kind.unit}]")
    if family is Family.DATE:
        return np.dtype("<M8[D]")
    return np.dtype(np.bool_) if family is Family.TRUTH else numbers_of(pa.array([], kind)).dtype


def _numbers(values: pa.Array) -> NDArray[Any]:
    """Return numbers, booleans or times as numpy has them, with NaN and NaT for nulls."""
    family = family_of(values.type)
    if family is Family.TRUTH:
        return truths_of(values)
    if family is Family.WHOLE:
        return numbers_of(values)
    missing = truths_of(values.is_null())
    if family is Family.REAL:
        numbers = numbers_of(values)
        return np.where(missing, numbers.dtype.type(np.nan), numbers) if values.null_count else numbers
    if pa.types.is_date64(values.type):
        values = values.cast(pa.date32())
    integers = np.where(missing, _NAT, numbers_of(integers_of(values)))
    return integers.view(_dtype(values.type))


def header_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of an array whose values follow."""
    text = repr({"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    plain = text.isascii() and len(text) < 60_000
    data, size = text.encode("utf-8"), 2 if plain else 4
    # numpy aligns the values to 64 bytes
    data += b" " * (-(len(_MAGIC) + 2 + size + len(data) + 1) % 64) + b"\n"
    return _MAGIC + bytes((1 if plain else 3, 0)) + struct.pack("<H" if plain else "<I", len(data)) + data


class _NpyWriter:
    """Writes one array: of one column a plain one, of several a structured one."""

    def __init__(self, stream: IO[bytes], schema: pa.Schema) -> None:
        self._stream = stream
        self._shapes = {field.name: field.type.shape for field in schema if isinstance(field.type, pa.FixedShapeTensorType)}
        self._kept = KeptRows(schema, "npy")

    def write(self, batch: pa.RecordBatch) -> None:
        self._kept.write(batch)

    def close(self) -> None:
        try:
            if not given_up(self._stream):
                self._write()
        finally:
            self._kept.drop()

    def _write(self) -> None:
        kept = self._kept
        kept.finish()
        columns = {name: kept.dtype(name) for name in kept.schema.names}
        columns = {name: (dtype, tuple(self._shapes.get(name, inner))) for name, (dtype, inner) in columns.items()}
        if len(columns) == 1:
            ((name, (dtype, inner)),) = columns.items()
            self._stream.write(header_of(dtype, (kept.rows, *inner)))
            for values in kept.arrays(name):
                self._stream.write(octets_of(values))
            return
        dtype = np.dtype([(name, *one) for name, one in columns.items()])
        self._stream.write(header_of(dtype, (kept.rows,)))
        for arrays in kept.records():
            rows = np.empty(len(next(iter(arrays.values()))), dtype)
            for name, values in arrays.items():
                rows[name] = values.reshape(rows[name].shape)
            self._stream.write(octets_of(rows))


def given_up(stream: Any) -> bool:
    """Whether what is written to the stream goes nowhere, so that it need not be made."""
    return isinstance(stream, Gate) and stream.is_shut


def octets_of(values: NDArray[Any]) -> bytes:
    return values.tobytes()


FORMAT = Npy()
