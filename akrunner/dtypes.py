"""Conversion of other libraries' column types to Arrow's.

A schema may be a dict, pandas' `frame.dtypes`, polars' `frame.schema`, or a structured dtype of numpy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from akrunner.arrays import arrow_type
from akrunner.column_types import TABLE, UNITS
from akrunner.errors import SchemaError
from akrunner.schema import Field, Schema, plain, shortened, typed

#: Python's types -> Arrow's; numbers have 64 bits, as in numpy
_PYTHON: dict[Any, pa.DataType] = {row.python: row.arrow for row in TABLE if row.python is not None}
#: letters of numpy's kinds that are not numbers -> Arrow's types; a frame's column of objects is taken for text
_KINDS: dict[str, pa.DataType] = {letter: row.arrow for row in TABLE for letter in row.numpy_kinds}


#: numpy's type names that begin with a byte order, as no other type name does
_NUMPY = re.compile(r"[<>=|][a-zA-Z]\d*(\[[a-z]+\])?")


def _numpy(name: str) -> Any:
    """Return the numpy dtype with this name, or the name itself if there is none."""
    try:
        return np.dtype(name)
    except TypeError:
        return name


def items_of(given: Any) -> list[tuple[Any, Any]] | None:
    """Return (name, type) of each column of a dict, pandas' `frame.dtypes`, polars' `frame.schema` or numpy's structured dtype.

    Returns: None if it is none of these.
    """
    # by its class: an unknown object may do anything when an attribute is read
    kind = type(given)
    if issubclass(kind, np.dtype) and given.names is not None:
        return [(name, given.fields[name][0]) for name in given.names]
    if issubclass(kind, Mapping) or (kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "Series"):
        return list(given.items())
    return None


def schema_of_items(items: list[tuple[Any, Any]], parameter: str) -> Schema:
    """Make a schema from columns and their types.

    Args:
        items: (name, type) of each column. A type is a word of a schema's text ("bigint", "float64", "array<double>", "string
            not null"), a type of pyarrow, numpy, pandas or polars, or Python's bool, int, float (64 bits), str, bytes,
            datetime, date.
        parameter: the argument that the schema was given by, for errors.
    Raises: SchemaError: a name is not text, a type is not known or cannot cross, or there is no column.
    """
    if not items:
        raise SchemaError(f"{parameter} is empty; write for instance 'id bigint, p double'")
    fields = []
    for name, given in items:
        if not isinstance(name, str):
            raise SchemaError(f"{parameter}: a column's name must be text, not {type(name).__name__}")
        if isinstance(given, str) and _NUMPY.fullmatch(given):
            given = _numpy(given)
        if isinstance(given, str):
            fields.append(typed(name, given, parameter))
            continue
        found = _arrow(given)
        if found is None:
            raise SchemaError(
                f"{parameter}: {_told(given)} is no type for column {shortened(name)}; give for instance 'bigint', "
                "pyarrow.int64() or numpy.int64"
            )
        fields.append(Field(name, plain(pa.schema([(name, found)])).field(0).type))
    return Schema(tuple(fields))


def _told(given: Any) -> str:
    return given.__name__ if isinstance(given, type) else f"a {type(given).__name__}"


def _arrow(given: Any) -> pa.DataType | None:
    """Return Arrow's type for a type of another library, None if it is no known type."""
    if isinstance(given, pa.DataType):
        return given
    if isinstance(given, type) and given in _PYTHON:
        return _PYTHON[given]
    library = type(given).__module__.partition(".")[0] if not isinstance(given, type) else given.__module__.partition(".")[0]
    if library == "polars":
        return _of_polars(given)
    if library == "pandas" and not isinstance(given, type):
        return _of_pandas(given)
    if isinstance(given, np.dtype) or (isinstance(given, type) and issubclass(given, np.generic)):
        return _of_numpy(np.dtype(given))
    return None


def _of_polars(given: Any) -> pa.DataType | None:
    import polars

    if given == polars.Object:
        # a column of Objects holds any Python values, which Arrow would take for bytes
        return None
    try:
        return polars.Series([], dtype=given).to_arrow().type
    except (polars.exceptions.PolarsError, pa.ArrowException, TypeError, ValueError, NotImplementedError):
        return None


def _of_pandas(given: Any) -> pa.DataType | None:
    """Return Arrow's type for an extension dtype of pandas, from the attributes of the dtype; None if they do not tell it."""
    if hasattr(given, "pyarrow_dtype"):
        return given.pyarrow_dtype
    if hasattr(given, "categories"):
        return _arrow(given.categories.dtype) if given.categories is not None else pa.string()
    if hasattr(given, "tz"):
        return pa.timestamp(given.unit, str(given.tz))
    if given.name in ("string", "str"):
        return pa.string()
    inner = getattr(given, "numpy_dtype", None)
    return _of_numpy(inner) if isinstance(inner, np.dtype) else None


def _of_numpy(given: np.dtype[Any]) -> pa.DataType | None:
    if given.shape:
        inner = _of_numpy(given.base)
        return pa.list_(inner, int(np.prod(given.shape))) if inner is not None else None
    if given.kind in _KINDS:
        return _KINDS[given.kind]
    if given.kind == "M":
        unit = np.datetime_data(given)[0]
        return pa.date32() if unit == "D" else pa.timestamp(unit) if unit in UNITS else None
    return arrow_type(given.name)
