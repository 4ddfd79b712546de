"""Frames and columns of Arrow's libraries (pyarrow, polars), which a script may compute with, as lists and arrays of numpy's.

Neither library is imported: whoever gives something of one has done that.
"""

from typing import Any, List, Mapping, cast

from akrunner.worker import objects


def columns_of(given: Any) -> Mapping[str, Any]:
    """{column: values} of what is given to `write_batch`: of a frame, or a mapping as it is, with columns that `packed` takes."""
    kind = _library(given)
    if kind == "polars" and hasattr(given, "get_columns"):
        return {one.name: _values(one) for one in given.get_columns()}
    if kind == "pyarrow" and hasattr(given, "column_names"):
        return {name: _values(given.column(at)) for at, name in enumerate(given.column_names)}
    if kind == "pyarrow" and hasattr(given, "schema"):
        # batches of older ones of pyarrow
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
    """Python's values; numbers, which have nulls among them, as an array that says of which type they are."""
    of = objects.named(str(type_))
    return values if of is None else objects.made(values, of)
