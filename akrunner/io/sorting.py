"""Sorts the rows of an output, however many they are: they lie on the disk until all are there, and DuckDB sorts them.

::

    write -> file in TMPDIR -> DuckDB, at most 1 GB of memory; what does not fit it puts beside the file -> batches

DuckDB gets the columns under numbers for names, as it takes "a" and "A" for the same name, and times as the integers that they
are in Arrow, as it would cut some of them to microseconds.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from akrunner import leftovers
from akrunner.arrays import array_of, counted, integers_of
from akrunner.errors import SinkError
from akrunner.io.own_queries import connected
from akrunner.io.sql import duckdb_reader, heard

#: memory and threads of DuckDB's
_MEMORY, _THREADS = "1GB", 4
#: the column that has the number of a row, so that equal rows keep their order
_NUMBER = "n"


class Sorter:
    """Takes rows, and gives them back sorted.

    Args:
        schema: the schema of the rows.
        order: (column, whether its largest values come first), the most important column first. Nulls come last.
    Attributes:
        folder: the directory in which the rows are; None before the first ones.
    Raises:
        SinkError: a column has a type whose values would change on their way through DuckDB.
    """

    def __init__(self, schema: pa.Schema, order: Sequence[tuple[str, bool]]) -> None:
        self._schema = schema
        self._order = order
        self._carried = pa.schema(
            [*(pa.field(f"c{at}", _carried(field.type)) for at, field in enumerate(schema)), pa.field(_NUMBER, pa.int64())]
        )
        _check_kept(schema, self._carried)
        self.folder: str | None = None
        self._file: Any = None
        self._writer: Any = None
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows.

        Raises:
            OSError: they cannot be written to the disk.
        """
        if self._writer is None:
            self.folder = leftovers.temp_folder("akrunner-sort-")
            self._file = pa.OSFile(self._path, "wb")
            options = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)
            self._writer = pa.ipc.new_stream(self._file, self._carried, options=options)
        columns = [
            integers_of(column) if field.type != kind.type else column
            for column, field, kind in zip(batch.columns, self._schema, self._carried)
        ]
        numbers = array_of(np.arange(self._rows, self._rows + batch.num_rows))
        self._writer.write_batch(pa.RecordBatch.from_arrays([*columns, numbers], schema=self._carried))
        self._rows += batch.num_rows

    @property
    def _path(self) -> str:
        return os.path.join(self.folder or "", "rows.arrow")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in their order, then forget them.

        Raises:
            OSError, duckdb.Error: they cannot be read, or do not fit on the disk.
        """
        import duckdb

        if self.folder is None:
            return
        self._close()
        connection = duckdb.connect(
            config={"temp_directory": self.folder, "memory_limit": _MEMORY, "threads": min(_THREADS, os.cpu_count() or 1)}
        )
        try:
            with pa.OSFile(self._path) as file:
                connection.register("rows", pa.ipc.open_stream(file))
                names = ", ".join(self._carried.names[:-1])
                reader = heard(lambda: duckdb_reader(connection.sql(self._query(names))), connection.interrupt)
                while (batch := heard(lambda: next(reader, None), connection.interrupt)) is not None:
                    yield self._restored(batch)
        finally:
            connection.close()
        self.drop()

    def _query(self, names: str) -> str:
        places = {name: at for at, name in enumerate(self._schema.names)}
        keys = [f"c{places[name]} {'DESC' if descends else 'ASC'} NULLS LAST" for name, descends in self._order]
        return f"SELECT {names} FROM rows ORDER BY {', '.join([*keys, _NUMBER])}"

    def _restored(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = []
        for column, field, kind in zip(batch.columns, self._schema, self._carried):
            column = column if column.type == kind.type else column.cast(kind.type)
            columns.append(column if kind.type == field.type else counted(column, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._file.close()
        self._writer = self._file = None

    def drop(self) -> None:
        """Forget the rows."""
        folder, self.folder = self.folder, None
        # what is thrown away need not fit on the disk
        with contextlib.suppress(OSError, pa.ArrowException):
            self._close()
        self._writer = self._file = None
        if folder is not None:
            leftovers.drop(folder)
        self._rows = 0


def _carried(kind: pa.DataType) -> pa.DataType:
    """Return the type in which DuckDB gets the values of a column: int64 for times, else the type itself."""
    return pa.int64() if pa.types.is_temporal(kind) else kind


def _check_kept(schema: pa.Schema, carried: pa.Schema) -> None:
    """Check, with a table without rows, that each column comes back from DuckDB with a type that holds the same values.

    Raises:
        SinkError: one does not.
    """
    import duckdb

    with connected() as connection:
        for field, given in zip(schema, carried):
            try:
                connection.register("one", pa.table([pa.array([], given.type)], schema=pa.schema([given])))
                back = duckdb_reader(connection.sql("SELECT * FROM one")).schema.field(0).type
            except (duckdb.Error, pa.ArrowException):
                back = None
            if back is None or not _alike(given.type, back):
                raise SinkError(
                    f"sort_by= (--sort-by): a table with a column of type {field.type} ({field.name!r}) cannot be sorted, as "
                    "DuckDB would change its values; leave sort_by= out, or write another type (output_schema=, --output-schema)"
                )


def _alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types hold the same values."""
    types = pa.types
    for same in (types.is_list, types.is_large_list):
        if same(one):
            return bool(types.is_list(other) or types.is_large_list(other)) and _alike(one.value_type, other.value_type)
    if types.is_fixed_size_list(one):
        return (
            bool(types.is_fixed_size_list(other))
            and one.list_size == other.list_size
            and _alike(one.value_type, other.value_type)
        )
    if types.is_string(one) or types.is_large_string(one):
        return bool(types.is_string(other) or types.is_large_string(other))
    if types.is_binary(one) or types.is_large_binary(one):
        return bool(types.is_binary(other) or types.is_large_binary(other))
    return bool(one == other)
