"""{column: values} -> the payload of a COLUMNS frame (`akrunner.wire.columns`)."""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from akrunner.wire import columns as layout

if TYPE_CHECKING:
    from numpy.typing import NDArray


def packed(columns: Mapping[str, Any], names: Optional[Sequence[str]]) -> Tuple[int, List[Tuple[Dict[str, Any], List[Any]]]]:
    """(rows, [(header, buffers), ...]) of a batch.

    Args:
        columns: {column: array, tensor or list}; names: the columns of the output schema, None: those given.
    Raises: ValueError, TypeError: see `OutputWriter.write_batch`.
    """
    if names is None:
        names = list(columns)
        wrong = [name for name in names if not isinstance(name, str)]
        if wrong:
            raise TypeError("write_batch was given a column %r; the name of a column is a text" % (wrong[0],))
    missing = [name for name in names if name not in columns]
    unknown = [name for name in columns if name not in names]
    if unknown:
        close = difflib.get_close_matches(unknown[0], names, n=1)
        hint = "; did you mean %r?" % close[0] if close else ""
        raise ValueError(
            "write_batch was given a column %r, which is not in the output schema (%s)%s" % (unknown[0], ", ".join(names), hint)
        )
    if missing:
        raise ValueError("write_batch lacks column %r of the output schema (%s)" % (missing[0], ", ".join(names)))
    packed = []
    rows = None
    for name in names:
        count, header, buffers = _column(name, columns[name])
        if rows is not None and count != rows:
            raise ValueError("write_batch: column %r has %d rows, column %r has %d" % (name, count, names[0], rows))
        rows = count
        packed.append((dict(header, name=name), buffers))
    return rows or 0, packed


def pieces(
    rows: int, packed: List[Tuple[Dict[str, Any], List[Any]]], most_rows: int, most_bytes: int
) -> Iterator[Tuple[int, List[Any]]]:
    """(rows, payload) of each frame a batch goes in: one, or where that would be too long several of fewer rows."""
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
    """(header, buffers) of some rows of a packed column."""
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
    """Offsets from 0 of things `start` to `stop`, and what they cut; nothing is copied but the offsets."""
    offsets = offsets[start : stop + 1]
    whole = values if isinstance(values, np.ndarray) else memoryview(values)
    return offsets - offsets[0], whole[int(offsets[0]) : int(offsets[-1])]


def _column(name: str, values: Any) -> Tuple[int, Dict[str, Any], List[Any]]:
    """(rows, header, buffers) of one column."""
    if hasattr(values, "numpy"):
        values = values.numpy()
    valid = None
    # whoever has one has imported its module; numpy 2 does not by itself, and it takes a while
    if "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray):
        valid = _unmasked(name, np.ma.getmaskarray(values))
        values = values.filled() if values.dtype.kind != "O" else _refilled(values)
    if not isinstance(values, np.ndarray):
        values = _as_array(name, values)
    if values.ndim == 0:
        raise ValueError("write_batch: column %r is a single value; give an array of one value a row" % name)
    if values.dtype.kind == "O":
        present = np.fromiter((value is not None for value in values.reshape(-1)), bool, values.size)
        if not present.all():
            # a row of several values is a null if all of it is
            present = _unmasked(name, ~present.reshape(values.shape))
            valid = present if valid is None else valid & present
        return _objects(name, values, valid)
    if values.dtype.kind in "SU":
        return _objects(name, values.astype(object), valid)
    if values.dtype.kind == "M" or values.dtype.kind == "m":
        raise TypeError("write_batch: column %r is %s; give it as int64 in the unit of the schema" % (name, values.dtype))
    return _numbers(name, values, list(values.shape), valid)


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
    """The objects of a masked array, with one that is there in place of those that are not: numpy would put a text there."""
    mask = np.ma.getmaskarray(values)
    out: NDArray[Any] = np.ma.getdata(values).copy()
    stand_in = np.empty(1, object)
    stand_in[0] = next((value for value in out[~mask] if value is not None), None)
    out[mask] = stand_in
    return out


def _unmasked(name: str, mask: NDArray[Any]) -> NDArray[Any]:
    """[rows] whether a row of a masked array is there."""
    flat = mask.reshape(len(mask), int(np.prod(mask.shape[1:], dtype=np.int64)))
    if (flat.any(axis=1) != flat.all(axis=1)).any():
        raise _null_inside(name)
    valid: NDArray[Any] = ~flat.any(axis=1)
    return valid


def _null_inside(name: str) -> ValueError:
    return ValueError(
        "write_batch: column %r has a row with a null among its values, which no list can hold; fill or drop it" % name
    )


def _check_numbers(name: str, dtype: np.dtype[Any]) -> None:
    # numpy's long double is none that Arrow has
    if dtype.kind not in "biuf" or _name(dtype.newbyteorder("<")) not in layout.WIDTHS:
        raise TypeError("write_batch: column %r has dtype %s, which no column can hold" % (name, dtype))


#: dtype -> its name, which numpy takes 10 us to put together
_NAMES: Dict[Any, str] = {}


def _name(dtype: np.dtype[Any]) -> str:
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = dtype.name
    return name


def _as_array(name: str, values: Iterable[Any]) -> NDArray[Any]:
    values = list(values)
    if any(value is None or isinstance(value, (str, bytes)) or hasattr(value, "__len__") for value in values):
        lengths = {len(value) if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) else -1 for value in values}
        if len(lengths) == 1 and -1 not in lengths:
            return _array(name, values)
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    return _array(name, values)


def _array(name: str, values: Any) -> NDArray[Any]:
    """What is no array yet, as one; nothing of it changes on the way."""
    if isinstance(values, np.ndarray):
        return values
    try:
        array = np.asarray(values)
        if array.dtype.kind in "SU":
            # numpy's own strings lose the NUL bytes at their ends, and make a string of a number beside one
            array = np.array(values, dtype=object)
    except ValueError as e:
        raise ValueError("write_batch: column %r cannot become an array: %s" % (name, e))
    if array.dtype.kind == "f" and not all(map(_is_float, values)):
        _check_whole(name, np.array(values, dtype=object).reshape(-1))
    return array


def _is_float(value: Any) -> bool:
    return type(value) is float or getattr(getattr(value, "dtype", None), "kind", None) == "f"


def _check_whole(name: str, values: Iterable[Any]) -> None:
    """Raises: ValueError: a whole number among fractions that would lose digits as one of them."""
    for value in values:
        if isinstance(value, int) and value != float(value):
            raise ValueError(
                "write_batch: column %r mixes fractions with %d, which a double cannot hold exactly" % (name, value)
            )


def _objects(name: str, values: NDArray[Any], valid: Optional[NDArray[Any]]) -> Tuple[int, Dict[str, Any], List[Any]]:
    """Strings, byte strings, or one array a row."""
    rows = len(values)
    flat = values.reshape(-1).tolist()
    sample = next((value for value in flat if value is not None), None)
    if isinstance(sample, (str, bytes)):
        header, buffers = _strings(name, flat, list(values.shape))
    elif sample is None:
        # nulls of any type, or nothing at all
        return _numbers(name, np.zeros(values.shape), list(values.shape), np.zeros(rows, bool) if flat else valid)
    elif hasattr(sample, "__len__"):
        header, buffers = _lists(name, flat)
    else:
        # of truths, a number beside them would make numbers of all
        nothing = False if isinstance(sample, (bool, np.bool_)) else 0
        array = _array(name, [nothing if v is None else v for v in flat])
        if array.dtype.kind not in "biuf":
            raise TypeError("write_batch: column %r holds %s, which no column can hold" % (name, type(sample).__name__))
        return _numbers(name, array, list(values.shape), valid)
    return (rows,) + with_nulls(header, buffers, valid)


def _strings(name: str, values: List[Any], shape: List[Any]) -> Tuple[Dict[str, Any], List[Any]]:
    """(header, [offsets, bytes]) of strings or byte strings; None is an empty one."""
    text = isinstance(next((value for value in values if value is not None), None), str)
    try:
        blobs = [b"" if v is None else v.encode("utf-8") if text else v for v in values]
        offsets, joined = cut(blobs)
    except (AttributeError, TypeError):
        raise TypeError("write_batch: column %r mixes strings and other values" % name)
    except UnicodeEncodeError as e:
        raise ValueError("write_batch: column %r has text that is no Unicode (%s): %.100r" % (name, e.reason, e.object))
    return {"form": "text" if text else "blob", "dtype": "bytes", "shape": shape}, [offsets, joined]


def _lists(name: str, values: List[Any]) -> Tuple[Dict[str, Any], List[Any]]:
    """(header, buffers) of one array, or list, a row; None is an empty one."""
    arrays = [np.zeros(0) if v is None else _array(name, v.numpy() if hasattr(v, "numpy") else v).reshape(-1) for v in values]
    offsets = np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64)
    some = [a for a in arrays if len(a)]
    if any(a.dtype.kind in "OSU" for a in some):
        flat = [v for a in some for v in a.tolist()]
        if any(v is None for v in flat):
            raise _null_inside(name)
        if isinstance(flat[0], (str, bytes)):
            header, buffers = _strings(name, flat, [len(values), None])
            return header, buffers + [offsets]
        joined = _array(name, flat)
    else:
        joined = np.concatenate(some or [np.zeros(0)])
        if joined.dtype.kind == "f" and any(a.dtype.kind != "f" for a in some):
            _check_whole(name, (v for a in some if a.dtype.kind != "f" for v in a.tolist()))
    _check_numbers(name, joined.dtype)
    joined = np.ascontiguousarray(joined, joined.dtype.newbyteorder("<"))
    return {"form": "ragged", "dtype": _name(joined.dtype), "shape": [len(values), None]}, [offsets, joined]


def cut(blobs: Sequence[bytes]) -> Tuple[NDArray[Any], bytes]:
    """(offsets, bytes) of byte strings, end to end."""
    offsets = np.zeros(len(blobs) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, blobs), np.int64, len(blobs)), out=offsets[1:])
    return offsets, b"".join(blobs)


def with_nulls(header: Dict[str, Any], buffers: List[Any], valid: Optional[NDArray[Any]]) -> Tuple[Dict[str, Any], List[Any]]:
    """(header, buffers), with the `valid` buffer where some row is null."""
    if valid is None or valid.all():
        return header, buffers
    return dict(header, nulls=True), buffers + [valid.astype(np.uint8)]
