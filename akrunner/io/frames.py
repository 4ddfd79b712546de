"""Turns tables of other libraries (pandas, numpy, cursors of DB-API) into Arrow tables, and Arrow tables into pandas frames."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.errors import SourceError
from akrunner.foreign import ours
from akrunner.io.values import of_numpy, typed
from akrunner.schema import repeated

_FETCHED = 8192
#: how many rows are read to guess the types of columns
INFER_ROWS = 1000


def from_pandas(frame: Any) -> pa.Table:
    """Return a pandas frame as a table. An index with a name becomes the first column (several levels: the first columns). An
    index without a name becomes the column `index`, unless it holds integers: row numbers are left out.

    Raises:
        SourceError: two columns have the same name, or a column's values have no common type.
    """
    if type(frame).__name__ == "Series":
        if frame.name is None:
            raise SourceError("source: the pandas Series has no name, which its column would have; give series.to_frame('x')")
        frame = frame.to_frame()
    if type(frame).__name__ != "DataFrame":
        raise SourceError(f"source: pandas {type(frame).__name__} is not a table; give a DataFrame")
    levels = list(frame.index.names)
    if len(levels) > 1 and None in levels:
        raise SourceError(
            "source: the frame's MultiIndex has a level without a name, so it cannot be a column; name it (frame.index.names "
            "= ...) or leave it out (frame.reset_index(drop=True))"
        )
    if frame.columns.nlevels > 1:
        raise SourceError(
            "source: the frame's columns have several levels; make them one (frame.columns = ['_'.join(c) for c in frame])"
        )
    if levels == [None] and not _is_numbering(frame.index):
        levels = ["index"]
    indexes = [str(name) for name in levels if name is not None]
    names = indexes + [str(name) for name in frame.columns]
    twice = repeated(names)
    if twice is not None:
        both = "the frame's index and a column are both" if twice in indexes else "two columns of the frame are"
        raise SourceError(f"source: {both} called {twice!r}; rename one (frame.rename, frame.rename_axis)")
    values = [frame.index.get_level_values(level) for level, name in enumerate(levels) if name is not None]
    values += [frame.iloc[:, number] for number in range(len(frame.columns))]
    return pa.table([_pandas_column(name, one) for name, one in zip(names, values)], names=names)


def _is_numbering(index: Any) -> bool:
    """Whether an index holds pandas' own row numbers, or a selection of them. (The index of a frame without rows has no
    type.)"""
    return getattr(index.dtype, "kind", "O") in "iu" or (not len(index) and str(index.dtype) == "object")


def _pandas_column(name: str, values: Any) -> pa.ChunkedArray:
    if type(values.dtype).__name__ == "SparseDtype":
        values = np.asarray(values)
    with ours(SourceError, f"source: column {name!r} of the frame cannot become one of Arrow"):
        array = typed(list(values), True) if values.dtype == object else of_numpy(values, True)
    array = pa.chunked_array([array]) if isinstance(array, pa.Array) else array
    kind = array.type
    if pa.types.is_dictionary(kind) and not (pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)):
        if str(kind.value_type).startswith("extension<pandas."):
            raise SourceError(
                f"source: column {name!r} of the frame has categories of {values.dtype.categories.dtype}, a type of pandas' "
                f"own; give the frame with frame[{name!r}].astype(str) in its place, or frame[{name!r}].cat.codes"
            )
        return array.cast(kind.value_type)
    return array


def check_polars(frame: Any) -> None:
    """Check that Arrow has the types of a polars frame's columns.

    Raises:
        SourceError: Arrow lacks one of the types.
    """
    for name, dtype in zip(frame.columns, frame.dtypes):
        if str(dtype) == "Object":
            raise SourceError(
                f"source: column {name!r} of the polars frame has the type Object, which no other program can read; cast it"
            )
        if "Int128" in str(dtype):
            raise SourceError(
                f"source: column {name!r} of the polars frame has the type {dtype}, which Arrow has not; cast it: "
                f"frame.with_columns(pl.col({name!r}).cast(...)), to pl.Int64, pl.Float64 or pl.String"
            )


def to_pandas(table: pa.Table) -> Any:
    """Return a table as the pandas frame that Arrow makes of it, except that no number changes. Arrow turns integers with nulls
    into doubles, so that 2**53 + 1 becomes another number; such a column with numbers beyond 2**53 gets pandas' nullable
    integers instead.

    Raises:
        ModuleNotFoundError: pandas is not installed.
    """
    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns):
        if column.null_count and column.type in (pa.int64(), pa.uint64()) and name in frame.columns:
            ends = pc.min_max(column).as_py()
            if ends["min"] is not None and max(-ends["min"], ends["max"]) > 1 << 53:
                import pandas

                nullable = pandas.Int64Dtype() if pa.types.is_signed_integer(column.type) else pandas.UInt64Dtype()
                frame[name] = column.to_pandas(types_mapper=lambda _, kind=nullable: kind).array
    return frame


def from_dict(columns: Mapping[Any, Any]) -> pa.Table:
    """Return a dict of columns as a table.

    Raises:
        SourceError: the columns are not equally long, or two have the same name.
    """
    names = [str(name) for name in columns]
    if len(set(names)) < len(names):
        raise SourceError("source: two columns of the dict have one name, as text")
    arrays = []
    for name, values in zip(names, columns.values()):
        if isinstance(values, (str, bytes)) or not (hasattr(values, "__len__") or hasattr(values, "__arrow_c_array__")):
            raise SourceError(f"source: column {name!r} of the dict is {type(values).__name__}, not an array of values")
        with ours(SourceError, f"source: column {name!r} of the dict cannot become one of Arrow"):
            arrays.append(column_of(values))
    lengths = {name: len(array) for name, array in zip(names, arrays)}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name}: {rows}" for name, rows in itertools.islice(lengths.items(), 8))
        raise SourceError(f"source: the dict is not a table of equally long columns ({shown} rows)")
    return pa.table(arrays, names=names)


def from_numpy(array: np.ndarray[Any, Any]) -> pa.Table:
    """Return a structured array as a table.

    Raises:
        SourceError: the array's columns have no names.
    """
    if array.dtype.names is None:
        raise SourceError("source: a numpy array has no names for its columns; give a dict: {'x': array}, or columns of it")
    return from_dict({name: array[name].copy() for name in array.dtype.names})


def column_of(values: Any) -> Any:
    """Return the values of one column. A numpy array of two dimensions becomes lists; one of three or more, tensors of one
    shape."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if not isinstance(values, np.ndarray) or values.ndim < 2:
        if isinstance(values, (list, tuple)):
            return typed(values)
        if str(getattr(values, "dtype", "")) == "object" and not isinstance(values, np.ma.MaskedArray):
            # pandas uses NaN for a null
            return typed(list(values), not isinstance(values, np.ndarray))
        return of_numpy(values) if hasattr(values, "dtype") else pa.array(values)
    flat = of_numpy(values.reshape(-1))
    width = int(np.prod(values.shape[1:]))
    listed = pa.FixedSizeListArray.from_arrays(flat, width)
    if values.ndim == 2:
        return listed
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(flat.type, values.shape[1:]), listed)


def is_cursor(source: Any) -> bool:
    """Whether an object is a cursor of Python's database interface (PEP 249): sqlite3, psycopg, ..."""
    return hasattr(source, "description") and callable(getattr(source, "fetchmany", None))


def from_cursor(cursor: Any) -> tuple[list[str], Iterator[Sequence[Any]], list[Sequence[Any]]]:
    """Return (names, all rows, the first rows) of a cursor that has executed a query.

    Raises:
        SourceError: no query was executed, or two columns have the same name.
    """
    if not cursor.description:
        raise SourceError("source: the cursor has no rows to give: execute a SELECT with it first")
    names = [str(column[0]) for column in cursor.description]
    if len(set(names)) < len(names):
        raise SourceError(
            f"source: two columns of the query have one name ({', '.join(names)}); name them apart (SELECT ... AS ...)"
        )
    rows: Iterator[Any] = itertools.chain.from_iterable(iter(lambda: cursor.fetchmany(_FETCHED), []))
    head = list(itertools.islice(rows, INFER_ROWS))
    if head and isinstance(head[0], Mapping):
        # rows as a row_factory makes them
        head, rows = [[row[name] for name in names] for row in head], map(lambda row: [row[name] for name in names], rows)
    return names, itertools.chain(head, rows), head


def schema_of_rows(names: list[str], head: list[Sequence[Any]]) -> pa.Schema:
    """Return a schema whose types fit the first rows, which are tuples.

    Raises:
        SourceError: the values of a column have no common type.
    """
    columns = list(zip(*head)) or [()] * len(names)
    fields = []
    for name, values in zip(names, columns):
        with ours(SourceError, f"source: column {name!r} has no type that fits its first {len(head)} rows"):
            fields.append((name, typed(values).type))
    return pa.schema(fields)


def columns_in_words(schema: pa.Schema) -> str:
    """Return the columns and their types for an error: "id int64, p double"; only the first of very many."""
    shown = ", ".join(f"{field.name} {field.type}" for field in schema)
    return shown if len(shown) < 400 else shown[:400] + "..."
