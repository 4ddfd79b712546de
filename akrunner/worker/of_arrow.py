"""Converts tables and columns of pyarrow and polars, which a script may compute with, to lists and numpy arrays.

Neither library is imported here: a script that has such a value has imported it.
"""

from typing import Any, List, Mapping, cast

from akrunner.worker import objects


def columns_of(given: Any) -> Mapping[str, Any]:
    """Return the argument of `write_batch`, a data frame or a mapping, as the {column: values} that `columns.packed` takes."""
    kind = _library(given)
    if kind == "polars" and hasattr(given, "get_columns"):
        return {one.name: _values(one) for one in given.get_columns()}
    if kind == "pyarrow" and hasattr(given, "column_names"):
        return {name: _values(given.column(at)) for at, name in enumerate(given.column_names)}
    if kind == "pyarrow" and hasattr(given, "schema"):
        # record batches of older versions of pyarrow
        return {name: _values(given.column(at)) for at, name in enumerate(given.schema.names)}
    if isinstance(given, dict) and any(_library(one) for one in given.values()):
        return {name: _values(one) for name, one in given.items()}
    return cast(Mapping[str, Any], given)


def _library(given: Any) -> str:
    name = type(given).__module__.partition(".")[0]
    return name if name in ("pyarrow", "polars") else ""


def _values(column: Any) -> Any:
    kind = _library(column)
    if kind == "polars" and hasattr(column, "null_count"):
        plain = not column.null_count() and str(column.dtype).startswith(("Int", "UInt", "Float", "Bool"))
        return column.to_numpy() if plain else _objects(column.to_list(), column.dtype)
    if kind == "pyarrow" and hasattr(column, "null_count"):
        plain = not column.null_count and str(column.type).startswith(("int", "uint", "float", "double", "half"))
        return column.__array__() if plain else _objects(column.to_pylist(), column.type)
    return column


def _objects(values: List[Any], type_: Any) -> Any:
    """Return Python values as they are, but numbers with nulls as an object array that remembers their type."""
    of = objects.named(str(type_))
    return values if of is None else objects.made(values, of)
