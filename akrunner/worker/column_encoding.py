"""Packs the {column: values} that a script writes into the payload of COLUMNS frames (`akrunner.wire.column_layout`)."""

from __future__ import annotations

import datetime
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from akrunner.wire import column_layout as layout
from akrunner.wire.near import nearest
from akrunner.worker import objects

if TYPE_CHECKING:
    from numpy.typing import NDArray


def packed(
    columns: Mapping[str, Any], names: Optional[Sequence[str]], types: Optional[Mapping[str, str]] = None
) -> Tuple[int, List[Tuple[Dict[str, Any], List[Any]]]]:
    """Return a batch's (rows, [(header, buffers), ...]).

    Args:
        columns: {column: array, tensor or list}.
        names: the columns of the output schema; None for those of the batch.
        types: {column: name of its Arrow type} in the output schema; None if there is no output schema.
    Raises:
        ValueError, TypeError: see `OutputWriter.write_batch`.
    """
    if names is None:
        names = list(columns)
        wrong = [name for name in names if not isinstance(name, str)]
        if wrong:
            raise TypeError("write_batch was given a column %r; the name of a column is a text" % (wrong[0],))
    missing = [name for name in names if name not in columns]
    unknown = [name for name in columns if name not in names]
    if unknown:
        raise ValueError(
            "write_batch was given a column %r, which is not in the output schema (%s)%s"
            % (unknown[0], ", ".join(names), nearest(unknown[0], names))
        )
    if missing:
        raise ValueError("write_batch lacks column %r of the output schema (%s)" % (missing[0], ", ".join(names)))
    packed = []
    rows = None
    for name in names:
        count, header, buffers = _column(name, columns[name], types.get(name) if types is not None else None)
        if rows is not None and count != rows:
            raise ValueError("write_batch: column %r has %d rows, column %r has %d" % (name, count, names[0], rows))
        rows = count
        packed.append((dict(header, name=name), buffers))
    return rows or 0, packed


def pieces(
    rows: int, packed: List[Tuple[Dict[str, Any], List[Any]]], most_rows: int, most_bytes: int
) -> Iterator[Tuple[int, List[Any]]]:
    """Yield (rows, payload) of each frame of a batch: one frame, or several of fewer rows if one would be too long."""
    if not rows:
        return
    size = sum(memoryview(buffer).nbytes for _, buffers in packed for buffer in buffers)
    parts = min(rows, max(-(-rows // most_rows), -(-size // most_bytes)))
    if parts <= 1:
        yield rows, layout.pack(rows, packed)
        return
    for part in range(parts):
        start, stop = rows * part // parts, rows * (part + 1) // parts
        cut = [_rows_of(header, buffers, start, stop) for header, buffers in packed]
        yield from pieces(stop - start, cut, most_rows, most_bytes)


def _rows_of(header: Dict[str, Any], buffers: List[Any], start: int, stop: int) -> Tuple[Dict[str, Any], List[Any]]:
    """Return the (header, buffers) of rows `start` to `stop` of a packed column."""
    shape = header["shape"]
    valid = []
    if header.get("nulls"):
        buffers, valid = buffers[:-1], [buffers[-1][start:stop]]
    if header["form"] == "numbers":
        cut = [np.asarray(buffers[0]).reshape(shape)[start:stop]]
    elif header["form"] == "ragged":
        cut = list(_between(buffers[0], buffers[1], start, stop))
    elif len(buffers) == 3:
        counts = buffers[2][start : stop + 1]
        cut = list(_between(buffers[0], buffers[1], counts[0], counts[-1])) + [counts - counts[0]]
    else:
        each = int(np.prod(shape[1:], dtype=np.int64))
        cut = list(_between(buffers[0], buffers[1], start * each, stop * each))
    return dict(header, shape=[stop - start] + shape[1:]), cut + valid


def _between(offsets: NDArray[Any], values: Any, start: int, stop: int) -> Tuple[NDArray[Any], Any]:
    """Return the offsets of values `start` to `stop`, counted from 0, and the part of `values` that they cut, not copied."""
    offsets = offsets[start : stop + 1]
    whole = values if isinstance(values, np.ndarray) else memoryview(values)
    return offsets - offsets[0], whole[int(offsets[0]) : int(offsets[-1])]


def _column(name: str, values: Any, type_: Optional[str]) -> Tuple[int, Dict[str, Any], List[Any]]:
    """Return one column's (rows, header, buffers). Args: type_: its Arrow type in the output schema; None if there is none."""
    if hasattr(values, "numpy"):
        values = values.numpy()
    was = objects.type_of(values)
    nulls = _nulls_of_pandas(values)
    if nulls is not None and nulls.any():
        values = [None if null else value for value, null in zip(values, nulls)]
    if not isinstance(values, np.ndarray):
        values = _as_array(name, values)
        if was is not None:
            values = objects.as_they_were(values, was)
    if values.ndim == 0:
        raise ValueError("write_batch: column %r is a single value; give an array of one value a row" % name)
    valid = None
    # a script that has a masked array has imported numpy.ma; numpy 2 does not import it by itself, and that takes a while
    if "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray):
        valid = _unmasked(name, np.ma.getmaskarray(values))
        values = _refilled(values)
    if values.dtype.kind == "O":
        values = _plain_ones(values)
        present = np.fromiter((value is not None for value in values.reshape(-1)), bool, values.size)
        if not present.all():
            # a row of several values is a null if all its values are null
            present = _unmasked(name, ~present.reshape(values.shape))
            valid = present if valid is None else valid & present
        if not _is_time(next((value for value in values.reshape(-1) if value is not None), None)):
            return _objects(name, values, valid, type_, was)
        values = _moments(name, values.reshape(-1).tolist(), type_, _rows(values)).reshape(values.shape)
    if values.dtype.kind in "SU":
        return _objects(name, values.astype(object), valid, type_)
    if values.dtype.kind in "Mm":
        values, there = _counts(name, values, type_, _rows(values), valid)
        if not there.all():
            present = _unmasked(name, ~there)
            valid = present if valid is None else valid & present
    return _numbers(name, values, list(values.shape), valid)


#: types whose values need no conversion
_PLAIN = frozenset([int, float, bool, str, bytes, type(None), list, tuple, dict])


def _plain(value: Any) -> Any:
    """Return one value of a list as Python or numpy has it: a scalar array or tensor becomes its value, pandas' NA None."""
    if type(value) in _PLAIN or isinstance(value, np.generic):
        return value
    if type(value).__name__ == "NAType" and type(value).__module__.partition(".")[0] == "pandas":
        return None
    if hasattr(value, "numpy"):
        value = value.numpy()
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _plain_ones(values: NDArray[Any]) -> NDArray[Any]:
    """Return an object array with `_plain` of each value."""
    if all(type(value) in _PLAIN for value in values.reshape(-1)):
        return values
    made = np.empty(values.shape, object)
    flat = made.reshape(-1)
    for at, value in enumerate(values.reshape(-1)):
        flat[at] = _plain(value)
    return made


def _nulls_of_pandas(values: Any) -> Optional[NDArray[Any]]:
    """Return [rows] bool, whether a row of a pandas series, index or array is null.

    None if the values are not of pandas, or are of a numpy dtype, in which NaN is a number and not a null.
    """
    if type(values).__module__.partition(".")[0] != "pandas" or not hasattr(values, "isna") or getattr(values, "ndim", 0) != 1:
        return None
    if isinstance(values.dtype, np.dtype) and values.dtype.kind != "O":
        return None
    return np.asarray(values.isna(), bool)


def _rows(values: NDArray[Any]) -> NDArray[Any]:
    """Return the row number of each value, in the order of the flattened values."""
    return np.arange(values.size) // max(1, int(np.prod(values.shape[1:], dtype=np.int64)))


#: Arrow type of a date or timestamp -> numpy's unit
_UNITS = {"date32[day]": "D", "timestamp[s]": "s", "timestamp[ms]": "ms", "timestamp[us]": "us", "timestamp[ns]": "ns"}


def _is_time(value: Any) -> bool:
    """Whether a value is a date, time or duration of Python or numpy."""
    return isinstance(value, (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64))


def _moments(name: str, values: List[Any], type_: Optional[str], rows: NDArray[Any]) -> NDArray[Any]:
    """Return a numpy array of dates and datetimes; None becomes NaT.

    Args:
        values: dates and datetimes of Python, numpy or pandas, or None.
        rows: the row of each value, for errors.
    Raises:
        TypeError, ValueError: one of the values cannot be kept as it is.
    """
    finest, made = "us", []
    for row, value in zip(rows.tolist(), values):
        if value is not None and not _is_time(value):
            raise _odd(name, values, rows)
        known = value is None or isinstance(value, (datetime.date, np.datetime64))
        if known and getattr(value, "tzinfo", None) is not None:
            # numpy would drop the zone
            raise _no_times(name, type(value).__name__ + _ZONE, type_, row)
        if not known:
            raise _no_times(name, type(value).__name__, type_, row)
        if hasattr(value, "to_datetime64"):
            value = value.to_datetime64()
        if isinstance(value, np.datetime64):
            finest = "ns"
        made.append(np.datetime64("NaT", "us") if value is None else value)
    exact = np.array(made, "datetime64[%s]" % finest)
    # nanoseconds reach back to the year 1677 only; numpy turns an earlier time into a wrong year without an error
    odd = (exact.astype("datetime64[us]") != np.array(made, "datetime64[us]")) & ~np.isnat(exact)
    if odd.any():
        at = int(np.argmax(odd))
        raise ValueError(
            "write_batch: column %r, row %d: %s does not fit nanoseconds, which others are in" % (name, rows[at], made[at])
        )
    return exact


def _counts(
    name: str, values: NDArray[Any], type_: Optional[str], rows: NDArray[Any], valid: Optional[NDArray[Any]] = None
) -> Tuple[NDArray[Any], NDArray[Any]]:
    """Return numpy datetimes as (int64 in the unit of the schema, bool whether it is a time and not NaT).

    Args:
        rows: the row of each value.
        valid: [rows] bool, rows that are not null; None if all are.
    Raises:
        TypeError, ValueError: the schema has no such times, or one of them does not fit its unit.
    """
    unit = _UNITS.get(type_ or "")
    if unit is None or values.dtype.kind == "m":
        raise _no_times(name, str(values.dtype), type_)
    there = ~np.isnat(values)
    made = values.astype("datetime64[%s]" % unit)
    # converted back, because numpy turns a time that nanoseconds cannot hold into a wrong year
    lost = (there & (made.astype(values.dtype) != values)).reshape(-1)
    if valid is not None:
        lost &= valid[rows]
    if lost.any():
        at = int(np.argmax(lost))
        raise ValueError(
            "write_batch: column %r, row %d: %s does not fit %s; declare a timestamp that holds it in output_schema= "
            "(--output-schema), timestamp(9) for nanoseconds, or cut it: values.astype('datetime64[%s]')"
            % (name, rows[at], values.reshape(-1)[at], type_, unit)
        )
    return made.astype(np.int64), there


_ZONE = " with a time zone"


def _no_times(name: str, what: str, type_: Optional[str], row: Optional[int] = None) -> TypeError:
    """Return the error about times that cannot be written as they are."""
    where = "" if row is None else " in row %d" % row
    zoned = what.endswith(_ZONE)
    span = what.startswith("timedelta")
    if span or what == "time":
        how = "numbers: " + (
            "values.astype('timedelta64[us]').astype('int64')" if what.startswith("timedelta64") else
            "value.total_seconds() of each" if span else "seconds, or microseconds, since midnight"
        )  # fmt: skip
        if type_ is not None and type_.startswith(("time", "duration")) and not type_.startswith("timestamp"):
            how = "int64 in its unit" + (" since midnight" if type_.startswith("time") else "")
    elif type_ is None:
        how = "output_schema= (--output-schema) with it, as '%s timestamp' or '%s date'" % (name, name)
    elif type_.startswith(("timestamp", "date")):
        how = "datetimes without a zone, or int64 in its unit since 1970 (UTC)"
    elif type_.startswith(("time", "duration")):
        how = "int64 in its unit" + (" since midnight" if type_.startswith("time") else "")
    else:
        how = "values of that type, or declare another in output_schema= (--output-schema), as '%s timestamp'" % name
    if zoned:
        how += "; in UTC and without a zone they are value.astimezone(datetime.timezone.utc).replace(tzinfo=None)"
    if type_ is None:
        said = "and nobody has said what times it holds" if not span and what != "time" else "which no output holds as they are"
        return TypeError("write_batch: column %r holds %s%s, %s: give %s" % (name, what, where, said, how))
    return TypeError(
        "write_batch: column %r holds %s%s, and is %s in the output schema; give %s" % (name, what, where, type_, how)
    )


def _numbers(
    name: str, values: NDArray[Any], shape: List[Any], valid: Optional[NDArray[Any]]
) -> Tuple[int, Dict[str, Any], List[Any]]:
    _check_numbers(name, values.dtype)
    values = np.ascontiguousarray(values)
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("<"))
    header = {"form": "numbers", "dtype": _name(values.dtype), "shape": shape}
    return (shape[0],) + with_nulls(header, [values], valid)


def _refilled(values: Any) -> NDArray[Any]:
    """Return the data of a masked array, with a value of its own type in place of each masked one.

    numpy would put its fill value there, and for that would turn uint64 into doubles and put texts among objects.
    """
    mask = np.ma.getmaskarray(values)
    out: NDArray[Any] = np.array(np.ma.getdata(values))
    stand_in = np.zeros(1, out.dtype)
    if out.dtype.kind == "O":
        stand_in[0] = next((value for value in out[~mask] if value is not None), None)
    out[mask] = stand_in
    return out


def _unmasked(name: str, mask: NDArray[Any]) -> NDArray[Any]:
    """Return [rows] bool, whether a row has a value. Args: mask: [rows, ...]. Raises: ValueError: a row is masked in part."""
    flat = mask.reshape(len(mask), int(np.prod(mask.shape[1:], dtype=np.int64)))
    if not flat.shape[1]:
        # rows without values have nothing to mask
        return np.ones(len(mask), bool)
    if (flat.any(axis=1) != flat.all(axis=1)).any():
        raise _null_inside(name)
    valid: NDArray[Any] = ~flat.any(axis=1)
    return valid


def _null_inside(name: str) -> ValueError:
    return ValueError(
        "write_batch: column %r has a row with a null among its values, which no list can hold; fill or drop it" % name
    )


def _check_numbers(name: str, dtype: np.dtype[Any]) -> None:
    # Arrow has no type for numpy's long double
    if dtype.kind not in "biuf" or _name(dtype.newbyteorder("<")) not in layout.WIDTHS:
        raise TypeError("write_batch: column %r has dtype %s, which no column can hold" % (name, dtype))


#: dtype -> its name, kept because numpy takes 10 us to make it
_NAMES: Dict[Any, str] = {}


def _name(dtype: np.dtype[Any]) -> str:
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = dtype.name
    return name


def _as_array(name: str, values: Any) -> NDArray[Any]:
    if isinstance(values, (str, bytes, bytearray, memoryview)):
        # each of its letters would be a row
        what = "text" if isinstance(values, str) else "byte string"
        raise TypeError("write_batch: column %r is one %s (%.40r); give a list with one for each row" % (name, what, values))
    if isinstance(values, (Mapping, set, frozenset)) or not hasattr(values, "__iter__"):
        kind = type(values).__name__
        why = "a single value" if not hasattr(values, "__iter__") else "no list"
        raise TypeError(
            "write_batch: column %r is %s (%s); give a list or an array with one value for each row" % (name, why, kind)
        )
    values = [_plain(value) for value in values]
    if any(value is None or isinstance(value, (str, bytes)) or hasattr(value, "__len__") for value in values):
        lengths = {len(value) if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) else -1 for value in values}
        if len(lengths) == 1 and -1 not in lengths:
            return _array(name, values)
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    return _array(name, values)


def _array(name: str, values: Any) -> NDArray[Any]:
    """Return values as an array that holds each of them unchanged."""
    if isinstance(values, np.ndarray):
        return values
    if not all(type(value) in _PLAIN for value in values):
        values = [_plain(value) for value in values]
    try:
        array = np.asarray(values)
        if array.dtype.kind in "SU":
            # numpy's own strings lose the NUL bytes at their ends, and make a string of a number beside one
            array = np.array(values, dtype=object)
    except ValueError as e:
        if len(set(map(_sort, values))) > 1:
            raise _odd(name, list(values), np.arange(len(values)))
        raise ValueError("write_batch: column %r cannot become an array: %s" % (name, e))
    if array.dtype.kind == "f" and not all(map(_is_float, values)):
        whole = np.array(values, dtype=object)
        return _exact(name, array, whole.reshape(-1).tolist()).reshape(array.shape)
    return array


def _is_float(value: Any) -> bool:
    return type(value) is float or getattr(getattr(value, "dtype", None), "kind", None) == "f"


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer, np.bool_))


def _exact(name: str, floats: NDArray[Any], given: List[Any]) -> NDArray[Any]:
    """Return the values in a type that holds each of them exactly.

    Args:
        floats: the array of floats that numpy makes of them.
        given: the values themselves, one after another.
    Raises:
        ValueError: a whole number would lose digits as a float.
    """
    whole = [int(value) for value in given if _is_whole(value)]
    other = next((value for value in given if not _is_whole(value)), None)
    if whole and other is None and min(whole) >= 0:
        # numpy makes doubles of integers if some of them are 2**63 or more and others are not
        return np.array(whole, np.uint64)
    for value in whole:
        if value != int(float(value)):
            if other is None:
                raise ValueError(
                    "write_batch: column %r has both %d and %d, and no type of whole numbers holds both; give them as text"
                    % (name, min(whole), value)
                )
            raise ValueError(
                "write_batch: column %r mixes fractions (%r) with %d, which a double cannot hold exactly" % (name, other, value)
            )
    return floats


def _objects(
    name: str, values: NDArray[Any], valid: Optional[NDArray[Any]], type_: Optional[str], was: Optional[str] = None
) -> Tuple[int, Dict[str, Any], List[Any]]:
    """Return (rows, header, buffers) of an object array: of strings, byte strings, numbers with None, or one list for each row.

    Args:
        valid: [rows] bool, rows that are not null; None if all are.
        type_: as for `_column`.
        was: the numpy name of the type that the numbers had before they became objects; None if unknown.
    """
    rows = len(values)
    flat = values.reshape(-1).tolist()
    sample = next((value for value in flat if value is not None), None)
    if isinstance(sample, (str, bytes)):
        header, buffers = _strings(name, flat, list(values.shape), _rows(values))
    elif sample is None:
        # only nulls, whose type is unknown, or no rows at all
        rows, header, buffers = _numbers(
            name, np.zeros(values.shape, was or float), list(values.shape), np.zeros(rows, bool) if flat else valid
        )
        return rows, header if was is not None else dict(header, untyped=True), buffers
    elif hasattr(sample, "__len__"):
        header, buffers = _lists(name, flat, type_)
    else:
        # among booleans a number in place of a null would turn all of them into numbers
        nothing = False if isinstance(sample, (bool, np.bool_)) else 0
        array = _array(name, [nothing if v is None else v for v in flat])
        if array.dtype.kind not in "biuf":
            raise _odd(name, flat, _rows(values))
        array = objects.as_they_were(array, was) if was is not None else array
        return _numbers(name, array, list(values.shape), valid)
    return (rows,) + with_nulls(header, buffers, valid)


def _odd(name: str, values: List[Any], rows: NDArray[Any]) -> Exception:
    """Return the error about values that one column cannot hold. Args: values: one after another; rows: the row of each."""
    some = [(row, value) for row, value in zip(rows.tolist(), values) if value is not None]
    first = some[0][1]
    for row, value in some:
        if _sort(value) != _sort(first):
            return TypeError(
                "write_batch: column %r mixes %s and %s (row %d: %.40r); a column holds values of one type"
                % (name, type(first).__name__, type(value).__name__, row, value)
            )
        if _is_whole(value) and not -(1 << 63) <= value < 1 << 64:
            return ValueError("write_batch: column %r, row %d: %d does not fit 64 bits; give it as text" % (name, row, value))
    return TypeError(
        "write_batch: column %r holds %s, which no column can hold (row %d: %.40r); give numbers, truths, texts, byte "
        "strings, or lists of these" % (name, type(first).__name__, some[0][0], first)
    )


def _sort(value: Any) -> Any:
    """Return a key that is equal for values that may be in one column."""
    if isinstance(value, (int, float, np.bool_, np.integer, np.floating)):
        return "number"
    return next((kind for kind in (str, bytes) if isinstance(value, kind)), type(value))


def _strings(name: str, values: List[Any], shape: List[Any], rows: NDArray[Any]) -> Tuple[Dict[str, Any], List[Any]]:
    """Return (header, [offsets, bytes]) of strings or byte strings; None becomes an empty one. Args: rows: the row of each."""
    text = isinstance(next((value for value in values if value is not None), None), str)
    try:
        blobs = [b"" if v is None else v.encode("utf-8") if text else v for v in values]
        offsets, joined = cut(blobs)
    except (AttributeError, TypeError):
        raise _odd(name, values, rows)
    except UnicodeEncodeError as e:
        raise ValueError("write_batch: column %r has text that is no Unicode (%s): %.100r" % (name, e.reason, e.object))
    return {"form": "text" if text else "blob", "dtype": "bytes", "shape": shape}, [offsets, joined]


def _lists(name: str, values: List[Any], type_: Optional[str]) -> Tuple[Dict[str, Any], List[Any]]:
    """Return the (header, buffers) of a column with one array or list for each row; None becomes an empty one.

    Args:
        type_: the Arrow type of the lists' values in the output schema; None if there is none.
    """
    arrays = [np.zeros(0) if v is None else _array(name, v.numpy() if hasattr(v, "numpy") else v).reshape(-1) for v in values]
    lengths = [len(a) for a in arrays]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    some = [a for a in arrays if len(a)]
    kinds = {a.dtype.kind for a in some}
    if kinds & set("OSUMm"):
        # tolist() would turn numpy's times of nanoseconds into numbers
        flat = [v for a in some for v in (a if a.dtype.kind in "Mm" else a.tolist())]
        rows = np.repeat(np.arange(len(values)), lengths)
        if any(v is None for v in flat):
            raise _null_inside(name)
        if isinstance(flat[0], (str, bytes)):
            header, buffers = _strings(name, flat, [len(values), None], rows)
            return header, buffers + [offsets]
        if _is_time(flat[0]):
            moments = np.concatenate(some) if len(kinds) == 1 and kinds <= set("Mm") else _moments(name, flat, type_, rows)
            joined, there = _counts(name, moments, type_, rows)
            if not there.all():
                raise _null_inside(name)
        else:
            joined = _array(name, flat)
            if joined.dtype.kind not in "biuf":
                raise _odd(name, flat, rows)
    else:
        joined = np.concatenate(some or [np.zeros(0)])
        if joined.dtype.kind == "f" and any(a.dtype.kind != "f" for a in some):
            joined = _exact(name, joined, [v for a in some for v in a.tolist()])
    _check_numbers(name, joined.dtype)
    joined = np.ascontiguousarray(joined, joined.dtype.newbyteorder("<"))
    header = {"form": "ragged", "dtype": _name(joined.dtype), "shape": [len(values), None]}
    return header if some else dict(header, untyped=True), [offsets, joined]


def cut(blobs: Sequence[bytes]) -> Tuple[NDArray[Any], bytes]:
    """Return (offsets, bytes) of byte strings that are joined end to end."""
    offsets = np.zeros(len(blobs) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, blobs), np.int64, len(blobs)), out=offsets[1:])
    return offsets, b"".join(blobs)


def with_nulls(header: Dict[str, Any], buffers: List[Any], valid: Optional[NDArray[Any]]) -> Tuple[Dict[str, Any], List[Any]]:
    """Return (header, buffers), with a `valid` buffer if a row is null."""
    if valid is None or valid.all():
        return header, buffers
    return dict(header, nulls=True), buffers + [valid.astype(np.uint8)]
