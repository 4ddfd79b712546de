"""{column: values} -> the payload of a COLUMNS frame (`akrunner.wire.columns`)."""

import difflib

import numpy as np

from akrunner.wire import columns as layout


def pack(columns, names):
    """(rows, buffers) of a batch.

    Args:
        columns: {column: array, tensor or list}; names: the columns of the output schema.
    Raises: ValueError, TypeError: see `OutputWriter.write_batch`.
    """
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
    return rows or 0, layout.pack(rows or 0, packed)


def _column(name, values):
    """(rows, header, buffers) of one column."""
    if hasattr(values, "numpy"):
        values = values.numpy()
    valid = None
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        valid = ~mask.reshape(len(values), -1).any(axis=1)
        values = values.filled()
    if not isinstance(values, np.ndarray):
        values = _as_array(values)
    if values.ndim == 0:
        raise ValueError("write_batch: column %r is a single value; give an array of one value a row" % name)
    if values.dtype.kind == "O":
        present = np.array([value is not None for value in values.reshape(len(values), -1)[:, 0]], dtype=bool)
        if values.ndim == 1 and not present.all():
            valid = present if valid is None else valid & present
        return _objects(name, values, valid)
    if values.dtype.kind in "SU":
        return _objects(name, values.astype(object), valid)
    if values.dtype.kind == "M" or values.dtype.kind == "m":
        raise TypeError("write_batch: column %r is %s; give it as int64 in the unit of the schema" % (name, values.dtype))
    if values.dtype.kind not in "biuf":
        raise TypeError("write_batch: column %r has dtype %s, which no column can hold" % (name, values.dtype))
    values = np.ascontiguousarray(values)
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("<"))
    header = {"form": "numbers", "dtype": _name(values.dtype), "shape": list(values.shape)}
    return (len(values),) + _with_nulls(header, [values], valid)


#: dtype -> its name, which numpy takes 10 us to put together
_NAMES = {}


def _name(dtype):
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = dtype.name
    return name


def _as_array(values):
    values = list(values)
    if any(value is None or isinstance(value, (str, bytes)) or hasattr(value, "__len__") for value in values):
        lengths = {len(value) if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) else -1 for value in values}
        if len(lengths) == 1 and -1 not in lengths:
            return np.array(values)
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    return np.array(values)


def _objects(name, values, valid):
    """Strings, byte strings, or one array a row."""
    rows = len(values)
    flat = values.reshape(-1).tolist()
    sample = next((value for value in flat if value is not None), None)
    if isinstance(sample, str) or isinstance(sample, bytes):
        text = isinstance(sample, str)
        try:
            blobs = [b"" if v is None else v.encode("utf-8") if text else v for v in flat]
            offsets, joined = _cut(blobs)
        except (AttributeError, TypeError):
            raise TypeError("write_batch: column %r mixes strings and other values" % name)
        header = {"form": "text" if text else "blob", "dtype": "bytes", "shape": list(values.shape)}
        return (rows,) + _with_nulls(header, [offsets, joined], valid)
    if sample is None:
        header = {"form": "numbers", "dtype": "float64", "shape": [rows]}
        return (rows,) + _with_nulls(header, [np.zeros(rows)], np.zeros(rows, bool))
    if hasattr(sample, "__len__"):
        arrays = [np.zeros(0) if v is None else np.asarray(v).reshape(-1) for v in flat]
        strings = [a for a in arrays if a.dtype.kind in "OSU"]
        offsets = np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64)
        if strings:
            joined = [v for a in arrays for v in a.tolist()]
            _, header, buffers = _objects(name, np.array(joined + [None], dtype=object)[:-1], None)
            return (rows,) + _with_nulls(dict(header, shape=[rows, None]), buffers + [offsets], valid)
        joined = np.concatenate([a for a in arrays if len(a)] or [np.zeros(0)])
        header = {"form": "ragged", "dtype": joined.dtype.name, "shape": [rows, None]}
        return (rows,) + _with_nulls(header, [offsets, joined], valid)
    numbers = [0 if v is None else v for v in flat]
    array = np.array(numbers)
    if array.dtype.kind not in "biuf":
        raise TypeError("write_batch: column %r holds %s, which no column can hold" % (name, type(sample).__name__))
    header = {"form": "numbers", "dtype": array.dtype.name, "shape": list(values.shape)}
    return (rows,) + _with_nulls(header, [array], valid)


def _cut(blobs):
    offsets = np.zeros(len(blobs) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, blobs), np.int64, len(blobs)), out=offsets[1:])
    return offsets, b"".join(blobs)


def _with_nulls(header, buffers, valid):
    """(header, buffers), with the `valid` buffer where some row is null."""
    if valid is None or valid.all():
        return header, buffers
    return dict(header, nulls=True), buffers + [valid.astype(np.uint8)]
