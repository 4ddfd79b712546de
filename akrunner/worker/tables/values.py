"""The rows that a script gives a `TableWriter`, in any shape and of any types -> columns of the table's types.

If a value does not fit, the error names its row and column.
"""

from __future__ import annotations

import datetime
import decimal
import json
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from akrunner.worker.tables.errors import TableWriteError
from akrunner.worker.tables.lists import misfit

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: a double holds every whole number up to this one exactly
_EXACT = 1 << 53
#: the end of the error for values that may be a single row that begins with a list
ALONE = "; a single row whose first value is a list or tuple is given in a list: write([row], ...)"


def _is_row(value: Any) -> bool:
    """Whether a value is a row, and not a value within a row."""
    if isinstance(value, (list, tuple, np.void)):
        return True
    return isinstance(value, np.ndarray) and value.ndim > 0


#: how many values are checked for tensors
_LOOKED_AT = 100


def _check_made(values: Any, table: str) -> None:
    """Check for tensors. Raises: TypeError: one of the values is a tensor of a graph, which has no value yet."""
    row = list(values[:_LOOKED_AT]) if isinstance(values, (list, tuple)) else []
    if row and isinstance(row[0], (list, tuple)):
        row = list(row[0])
    for one in [values] + row:
        if type(one).__name__ in ("Tensor", "SymbolicTensor") and type(one).__module__.startswith("tensorflow"):
            raise TypeError(
                "table %s: write() takes values, and was given %r, a tensor of a graph that has none yet: values = "
                "session.run(tensor), and write those" % (table, getattr(one, "name", "a tensor"))
            )


def columns_of(values: Any, width: int, table: str = "") -> Optional[List[Any]]:
    """Return the values of each column, as lists or arrays; None if there are no rows.

    Args:
        values: as in `TableWriter.write`.
        width: the number of columns.
        table: the table's name, for errors.
    """
    _check_made(values, table)
    if hasattr(values, "iloc") and values.ndim == 2 and not all(isinstance(kind, np.dtype) for kind in values.dtypes):
        return _of_frame(values, width, table)
    if hasattr(values, "to_records"):
        values = values.to_records(index=False)
    if hasattr(values, "numpy"):
        values = values.numpy()
    if isinstance(values, np.void):
        values = values.item()
    if isinstance(values, np.ndarray):
        return _of_array(values, width, table)
    if values is None or isinstance(values, (str, bytes, int, float, np.generic)):
        values = (values,)
    rows = values if isinstance(values, (list, tuple)) else list(values)
    if not len(rows):
        return None
    if any(hasattr(kind, "numpy") for kind in set(map(type, rows))):
        rows = [row.numpy() if hasattr(row, "numpy") else row for row in rows]
    if isinstance(rows[0], np.ma.mvoid):
        # the rows are records of a masked array
        rows = [row.tolist() for row in rows]
    if not _is_row(rows[0]):
        # the values are a single row; they may be arrays without dimensions
        rows = [tuple(value.tolist() if isinstance(value, np.ndarray) and value.ndim == 0 else value for value in rows)]
    if not set(map(type, rows)) <= {tuple, list, np.void, np.record} or set(map(len, rows)) != {width}:
        for row in rows:
            if not _is_row(row) or len(row) != width:
                alone = len(rows) == width and not all(map(_is_row, rows))
                raise _odd(row, width, table, ALONE if alone else "")
    return list(zip(*rows))


def _of_frame(frame: Any, width: int, table: str) -> Optional[List[Any]]:
    """Return the columns of a DataFrame with types of pandas' own. Its `to_records` would turn missing values into NaN."""
    if frame.shape[1] != width:
        raise _odd(tuple(frame.columns), width, table)
    columns = [frame.iloc[:, at] for at in range(width)]
    made = [
        one.to_numpy() if isinstance(one.dtype, np.dtype) else one.astype(object).where(one.notna(), None).tolist()
        for one in columns
    ]
    return made if len(frame) else None


def _of_array(values: NDArray[Any], width: int, table: str) -> Optional[List[Any]]:
    names = values.dtype.names
    if names:
        values = values.reshape(-1)
        if len(names) != width:
            raise _odd(values[:1].tolist()[0], width, table) if len(values) else _odd((), width, table)
        return [values[name] for name in names] if len(values) else None
    if values.ndim == 0:
        return columns_of((values.tolist(),), width, table)
    if values.ndim == 1:
        # an object array may hold rows
        return columns_of(list(values) if values.dtype.kind == "O" else tuple(values), width, table) if len(values) else None
    if values.ndim > 2 or values.shape[1] != width:
        raise _odd(values[0] if len(values) else values, width, table)
    return [values[:, i] for i in range(width)] if len(values) else None


def _odd(row: Any, width: int, table: str, more: str = "") -> ValueError:
    shown = (
        "%d values (%.60r)" % (len(row), row)
        if hasattr(row, "__len__") and not isinstance(row, (str, bytes))
        else "%.60r" % (row,)
    )
    return ValueError("table %s: a row of %d columns was expected (indices), and %s came%s" % (table, width, shown, more))


def as_column(
    table: str, column: Dict[str, Any], values: Any, first_row: int = 0, cast: bool = False
) -> Tuple[Any, Optional[NDArray[Any]]]:
    """Convert values to a column's type.

    Args:
        table: the table's name, for errors.
        column: the column's name and types.
        values: the values, as `columns_of` returns them.
        first_row: the number of the first value's row, for errors.
        cast: whether values of other types are converted if they can be.
    Returns:
        (values, valid): text as a list of bytes, numbers as an array; an array of bool that is False for nulls, or None if
        there are no nulls.
    Raises:
        TableWriteError: a value is of another type.
    """
    valid = None
    if isinstance(values, np.ma.MaskedArray):
        # a masked value is null
        values = values.tolist() if np.ma.getmaskarray(values).any() else values.data
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        # tolist() would turn times that are finer than Python's datetimes into numbers
        values = list(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "OSU":
        values = values.tolist()
    if not isinstance(values, np.ndarray):
        values = _unmasked(values)
        if None in values if _plain(values) else any(value is None for value in values):
            valid = np.fromiter((value is not None for value in values), bool, len(values))
    if column["dtype"] == "bytes":
        out: Any = _texts(table, column, values, first_row, cast)
    else:
        out = _numbers(table, column, values, valid, first_row, cast)
    return out, valid


def _unmasked(values: Any) -> List[Any]:
    """Return a list in which masked values, NaT and NA are None.

    A masked value has a number, but not one the script has given.
    """
    if any(issubclass(kind, np.ma.MaskedArray) for kind in set(map(type, values))):
        return [one.tolist() if isinstance(one, np.ma.MaskedArray) and one.ndim == 0 else one for one in values]
    if any(_is_no_time(kind) for kind in set(map(type, values))):
        values = [None if _is_no_time(type(one)) and one != one else one for one in values]
    if any(_is_na(kind) for kind in set(map(type, values))):
        values = [None if _is_na(type(one)) else one for one in values]
    return list(values)


def _is_no_time(kind: type) -> bool:
    """Whether a value of this type may be NaT, which stands for null."""
    return issubclass(kind, np.datetime64) or kind.__name__ == "NaTType"


def _is_na(kind: type) -> bool:
    """Whether this is the type of pandas' NA, which stands for null."""
    return kind.__name__ == "NAType" and kind.__module__.startswith("pandas")


def _plain(values: Any) -> bool:
    """Whether values can be compared with None by `in`, without calling a comparison of their own."""
    return type(values[0]) in (int, float, str, bytes, bool) if values else True


def _texts(table: str, column: Dict[str, Any], values: Any, first_row: int, cast: bool) -> List[bytes]:
    values = values.tolist() if isinstance(values, np.ndarray) else values
    kinds = set(map(type, values))
    if kinds <= {bytes}:
        return list(values)
    if kinds <= {str}:
        try:
            return list(map(str.encode, values))
        except UnicodeEncodeError:
            pass  # the loop below finds the row
    out = []
    for i, value in enumerate(values):
        if isinstance(value, str):
            value = _encoded(table, column, first_row + i, value)
        elif value is not None and not isinstance(value, bytes):
            if not cast and _crosses(column):
                raise _wrong(table, column, first_row + i, value)
            value = _text(table, column, first_row + i, value).encode("utf-8")
        out.append(b"" if value is None else bytes(value))
    return out


def _encoded(table: str, column: Dict[str, Any], row: int, value: str) -> bytes:
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as e:
        raise _wrong(table, column, row, value, ": UTF-8 cannot say it (%s)" % e.reason)


def _crosses(column: Dict[str, Any]) -> bool:
    """Whether a column really holds text. Other types, such as dates, are only sent as text."""
    return column["type"].lower().partition("(")[0] in ("string", "binary", "varchar", "char", "json")


def _text(table: str, column: Dict[str, Any], row: int, value: Any) -> str:
    kind = column["type"].lower().partition("(")[0]
    number = isinstance(value, (bool, int, float, np.bool_, np.number))
    if kind in ("datetime", "date", "timestamp", "timestamp_ntz") and number:
        raise _wrong(table, column, row, value, ": give it as text (2024-01-02 03:04:05) or as a datetime of Python's")
    if kind in ("datetime", "date", "timestamp", "timestamp_ntz") and isinstance(value, np.datetime64):
        if np.datetime_data(value.dtype)[0] in ("Y", "M"):
            raise _wrong(
                table, column, row, value, ", which names no day: values.astype('datetime64[D]') is the first", str(value.dtype)
            )
        if kind == "date" and value != value.astype("datetime64[D]"):
            why = ", with a time of day, which a date has not: values.astype('datetime64[D]') leaves it out"
            raise _wrong(table, column, row, str(value), why, str(value.dtype))
    if kind == "date" and isinstance(value, datetime.datetime) and value.time() != datetime.time():
        raise _wrong(table, column, row, value, ", with a time of day, which a date has not: value.date() leaves it out")
    odd = isinstance(value, (bool, np.bool_)) or (isinstance(value, (float, np.floating)) and not np.isfinite(value))
    if kind == "decimal" and (odd or (isinstance(value, decimal.Decimal) and not value.is_finite())):
        raise _wrong(table, column, row, value, ", which it cannot hold")
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime) and value.tzinfo is not None and kind not in ("array", "map", "struct"):
        raise _wrong(
            table, column, row, value, ", with a time zone, which the table has not: value.astimezone().replace(tzinfo=None)"
        )
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple, dict)):
        try:
            made = json.dumps(_keyed(value), default=_inner)
        except (TypeError, ValueError) as e:
            raise _wrong(table, column, row, value, ": %s" % e)
        why = misfit(made, column["type"])
        if why:
            raise _wrong(table, column, row, value, ": %s" % why)
        return made
    return str(value)


def _keyed(value: Any) -> Any:
    """Return a value whose dicts have only text as keys, as JSON requires."""
    if isinstance(value, dict):
        made = {}
        for key, one in value.items():
            key = key if isinstance(key, str) else _key(key)
            if key in made:
                raise ValueError("it has the key %r twice" % key)
            made[key] = _keyed(one)
        return made
    return [_keyed(one) for one in value] if isinstance(value, (list, tuple)) else value


def _key(key: Any) -> str:
    if isinstance(key, bytes):
        return key.decode("utf-8")
    return str(key).lower() if isinstance(key, (bool, np.bool_)) else str(key)


def _inner(value: Any) -> Any:
    """Convert a value within a list or map to a JSON value."""
    if _is_na(type(value)) or (_is_no_time(type(value)) and value != value):
        return None
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, (decimal.Decimal, datetime.date, np.datetime64)):
        return str(value)
    raise TypeError("it holds %.60r (%s)" % (value, type(value).__name__))


def _numbers(
    table: str, column: Dict[str, Any], values: Any, valid: Optional[NDArray[Any]], first_row: int, cast: bool
) -> NDArray[Any]:
    """Return a new array of the column's type. It is always a copy: the script may change `values` afterwards."""
    target = np.dtype(column["dtype"])
    if isinstance(values, np.ndarray):
        whole: NDArray[Any] = _cast(table, column, values, target, first_row, cast)
        return whole.copy() if whole is values else whole
    if any(issubclass(kind, (str, bytes)) for kind in set(map(type, values))):
        values = _parsed(table, column, values, first_row, cast)
    # in the order in which the types occur, so that the error always names the same value
    kinds = [kind for kind in dict.fromkeys(map(type, values)) if kind is not type(None)]
    if len(kinds) == 1 and valid is None:
        whole = _cast(table, column, _of_one_kind(table, column, values, first_row), target, first_row, cast)
        return whole
    # convert each type by itself: numpy's common type for several types may not hold any of them exactly
    made = np.zeros(len(values), target)
    for kind in kinds:
        rows = np.array([i for i, value in enumerate(values) if type(value) is kind])
        some = _of_one_kind(table, column, [values[i] for i in rows.tolist()], first_row + rows)
        made[rows] = _cast(table, column, some, target, first_row + rows, cast)
    return made


def _of_one_kind(table: str, column: Dict[str, Any], values: Any, rows: Any) -> Any:
    """Return values of a single type as an array.

    Args:
        rows: the numbers of the values' rows, or the number of the first row.
    Raises:
        TableWriteError: a value is not a number, or is too large.
    """
    try:
        made = np.array(values)
    except (ValueError, OverflowError):
        made = np.array(values, dtype=object)
    if isinstance(values[0], int) and made.dtype.kind not in "bi":
        for i, value in enumerate(values):
            if not -(1 << 63) <= value < 1 << 63:
                raise _wrong(table, column, _row(rows, i), value, ", which it cannot hold")
    if made.ndim != 1 or made.dtype.kind not in "biuf":
        odd = (i for i, value in enumerate(values) if np.ndim(value) or np.array(value).dtype.kind not in "biuf")
        at = next(odd, 0)
        raise _wrong(table, column, _row(rows, at), values[at])
    return made


def _row(rows: Any, at: int) -> int:
    """Return the number of the row of value `at`. Args: rows: the numbers of the rows, or the number of the first."""
    return int(rows[at] if isinstance(rows, np.ndarray) else rows + at)


def _cast(table: str, column: Dict[str, Any], values: Any, target: Any, rows: Any, cast: bool) -> Any:
    """Return an array of values cast to the column's type.

    Args:
        rows: the numbers of the values' rows, or the number of the first row.
    Raises:
        TableWriteError: the type cannot hold a value.
    """

    def refuse(where: Any, why: str = "") -> None:
        at = int(np.argmax(where))
        raise _wrong(table, column, _row(rows, at), values[at], why)

    kind, want = values.dtype.kind, target.kind
    if kind == want and values.dtype == target:
        return values
    if kind not in "biuf":
        refuse([True])
    if not len(values):
        return values.astype(target)
    if kind == "b" and want != "b" and not cast:
        refuse([True])
    if want == "f":
        return _as_floats(values, target, refuse)
    if kind == "f":
        finite = np.isfinite(values)
        whole = finite & (values == np.trunc(np.where(finite, values, 0)))
        if not cast or not whole.all():
            refuse(~whole if cast else [True])
    if want == "b":
        fits = np.isin(values, (0, 1)) if cast or kind == "b" else np.zeros(len(values), bool)
        if not fits.all():
            refuse(~fits)
    elif kind != "b":
        limits = np.iinfo(target)
        beyond = (values < limits.min) | (values > limits.max)
        if kind == "f":
            # a float may not hold the largest whole number exactly, but it holds the next one: compare with that
            wide = values.astype(np.float64)
            beyond = (wide < float(limits.min)) | (wide >= float(limits.max) + 1)
        if beyond.any():
            refuse(beyond, ", which it cannot hold")
    return values.astype(target)


def _as_floats(values: Any, target: Any, refuse: Callable[..., Any]) -> Any:
    """Return an array of values cast to a float type. Args: refuse: called with [rows] bool, and why, if values do not fit."""
    kind = values.dtype.kind
    if kind in "iu":
        beyond = (values > _EXACT) | (values < -_EXACT)
        if beyond.any():
            refuse(beyond, ", which a double cannot hold exactly")
    with np.errstate(over="ignore"):
        made = values.astype(target)
    lost = np.isinf(made) & np.isfinite(values) if kind == "f" else made != values
    if lost.any():
        refuse(lost, ", which it cannot hold")
    return made


def _parsed(table: str, column: Dict[str, Any], values: Any, first_row: int, cast: bool) -> Any:
    """Replace texts among the values by the numbers they stand for. Raises: TableWriteError: not `cast`, or not a number."""
    make = float if np.dtype(column["dtype"]).kind == "f" else int
    out = []
    for i, value in enumerate(values):
        if isinstance(value, (str, bytes)):
            try:
                if not cast:
                    raise ValueError
                value = make(value)
            except ValueError:
                raise _wrong(table, column, first_row + i, value) from None
        out.append(value)
    return out


def _wrong(table: str, column: Dict[str, Any], row: int, value: Any, why: str = "", kind: str = "") -> TableWriteError:
    """Return the error for a value that does not fit. Args: kind: the name of the value's type, "" for its own name."""
    kind = kind or type(value.item() if isinstance(value, np.generic) else value).__name__
    if isinstance(value, np.datetime64):
        value, kind = str(value), str(value.dtype)
    elif isinstance(value, np.generic):
        value = value.item()
    return TableWriteError(
        "table %s: column %r is %s, and row %d has %.60r (%s) for it%s"
        % (table, column["name"], column["type"], row, value, kind, why)
    )
