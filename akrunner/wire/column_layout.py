"""A batch of columns as one payload: a JSON header, then each column's buffers as they lie in memory.

::

    | header length (4) | header JSON | pad to 8 | buffer | pad to 8 | buffer | ...

The header is `{"rows": n, "columns": [{"name", "form", "dtype", "shape", "buffers": [[offset, length], ...]}]}`; offsets count
from the first buffer. Forms and their buffers:

- `numbers`: values of `dtype` (numpy's name), shape `[rows, ...]`
- `ragged`: int64 offsets [rows + 1], values of `dtype`; shape `[rows, null]`
- `text`, `blob`: int64 offsets [n + 1], bytes; shape `[rows, ...]`, or `[rows, null]` with a third buffer, `counts` (int64
  offsets [rows + 1])

A column with nulls has a last buffer, `valid` (one byte a row, 0 for null), and `"nulls": true` in its header.
`"untyped": true` means that the column has no value at all, so its dtype says nothing. `unpack` checks all of this except the values of the
offsets: reading those takes numpy, see `check_offsets`.
"""

import json
import struct
from typing import Any, Collection, Dict, List, Optional, Tuple

from akrunner.wire.frames import MOST_ROWS, WireError

_LENGTH = struct.Struct("<I")
#: bytes of one number, by the name of its numpy dtype
WIDTHS = {
    "bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "float32": 4, "float64": 8,
}  # fmt: skip
_OFFSET = 8

Unpacked = Tuple[int, List[Tuple[Dict[str, Any], List[memoryview]]]]


def pack(rows: int, columns: List[Tuple[Dict[str, Any], List[Any]]]) -> List[Any]:
    """Return the buffers that, written one after another, are one payload.

    Args:
        rows: rows in the batch.
        columns: list of (header dict without "buffers", list of bytes-like buffers).
    """
    offset = 0
    described: List[Dict[str, Any]] = []
    data: List[Any] = []
    for header, buffers in columns:
        spans = []
        for buffer in buffers:
            view = memoryview(buffer)
            size = view.nbytes
            spans.append([offset, size])
            if size:
                data.append(view.cast("B"))
            pad = -size % 8
            if pad:
                data.append(bytes(pad))
            offset += size + pad
        described.append(dict(header, buffers=spans))
    text = json.dumps({"rows": rows, "columns": described}).encode("utf-8")
    text += b" " * (-(len(text) + _LENGTH.size) % 8)
    return [_LENGTH.pack(len(text)) + text] + data


def unpack(payload: Any, names: Optional[Collection[str]] = None, rows: Optional[int] = None) -> Unpacked:
    """Return a payload's (rows, [(header, [memoryview, ...]), ...]); the views share its memory.

    Args:
        names: the columns it must have, in any order; None for any.
        rows: the number of rows it must have; None for any.
    Raises:
        WireError: it does not have the layout described above.
    """
    view = memoryview(payload)
    if len(view) < _LENGTH.size:
        raise WireError("a payload of columns of %d bytes" % len(view))
    (size,) = _LENGTH.unpack(view[: _LENGTH.size])
    base = _LENGTH.size + size
    if base > len(view) or base % 8:
        raise WireError("a header of %d bytes in a payload of %d" % (size, len(view)))
    try:
        header = json.loads(bytes(view[_LENGTH.size : base]).decode("utf-8"))
    except (ValueError, RecursionError) as e:
        raise WireError("the header of a payload of columns is not JSON: %s" % e)
    columns = header.get("columns") if isinstance(header, dict) else None
    if not isinstance(columns, list) or not _is_size(header.get("rows")) or header["rows"] > MOST_ROWS:
        raise WireError("the header of a payload of columns does not say its rows and columns")
    if rows is not None and rows != header["rows"]:
        raise WireError("a frame of %d rows holds columns of %d" % (rows, header["rows"]))
    data = view[base:]
    out = [(column, _buffers(column, header["rows"], data)) for column in columns]
    found = set()
    for column in columns:
        if column["name"] in found:
            raise WireError("it has column %.100r twice" % column["name"])
        found.add(column["name"])
    if names is not None and found != set(names):
        raise WireError("it has other columns than it should: %s" % ", ".join(map(repr, sorted(found ^ set(names))[:5])))
    return header["rows"], out


def check_offsets(offsets: Any, size: int, name: str) -> None:
    """Check that int64 offsets cut `size` values or bytes: they begin at 0, never decrease and end at `size`.

    Raises: WireError: they do not.
    """
    if offsets[0] != 0 or offsets[-1] != size or (offsets[1:] < offsets[:-1]).any():
        raise WireError("column %r has offsets that do not fit its %d values or bytes" % (name, size))


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 40


def _buffers(column: Any, rows: int, data: memoryview) -> List[memoryview]:
    """Return the buffers of one column, once everything in its header has been checked."""
    if not isinstance(column, dict) or not isinstance(column.get("name"), str):
        raise WireError("a column has no name")
    name, form, shape = column["name"], column.get("form"), column.get("shape")
    ragged = isinstance(shape, list) and len(shape) == 2 and shape[1] is None
    if not isinstance(shape, list) or not shape or not all(map(_is_size, shape[:1] if ragged else shape)) or shape[0] != rows:
        raise WireError("column %r has the shape %.100r in a batch of %d rows" % (name, shape, rows))
    count = 1
    for size in shape[:1] if ragged else shape:
        count *= size
    nulls, untyped = column.get("nulls", False), column.get("untyped", False)
    # by type, as 1 and 1.0 are equal to True
    if type(nulls) is not bool:
        raise WireError("column %r does not say whether it has nulls" % name)
    if type(untyped) is not bool:
        raise WireError("column %r does not say whether it has a type" % name)
    sizes = _sizes(column, form, ragged, count, rows)
    views = _views(name, column.get("buffers"), data)
    if nulls:
        sizes.append(rows)
    fits = len(views) == len(sizes) and all(want is None or len(view) == want for view, want in zip(views, sizes))
    if not fits or (form == "ragged" and len(views[1]) % WIDTHS[column["dtype"]]):
        raise WireError(
            "column %r (%s, %.20r, %.100r) has buffers of %s bytes"
            % (name, form, column.get("dtype"), shape, [len(v) for v in views][:5])
        )
    if ragged and form != "ragged" and (not len(views[0]) or len(views[0]) % _OFFSET):
        raise WireError("column %r has %d bytes of offsets" % (name, len(views[0])))
    return views


def _sizes(column: Dict[str, Any], form: Any, ragged: bool, count: int, rows: int) -> List[Optional[int]]:
    """Return the bytes that each buffer except `valid` must have; None where any number will do."""
    offsets = _OFFSET * (rows + 1)
    if form in ("text", "blob") and column.get("dtype") == "bytes":
        return [None, None, offsets] if ragged else [_OFFSET * (count + 1), None]
    width = WIDTHS.get(column["dtype"]) if isinstance(column.get("dtype"), str) else None
    if form == "numbers" and width and not ragged:
        return [count * width]
    if form == "ragged" and width and ragged:
        return [offsets, None]
    raise WireError("column %r is of no known form: %.40r, %.40r" % (column["name"], form, column.get("dtype")))


def _views(name: str, spans: Any, data: memoryview) -> List[memoryview]:
    """Return a column's buffers as views of the payload, checked to be inside it, aligned and one after another."""
    views = []
    end = 0
    for span in spans if isinstance(spans, list) else [None]:
        if not isinstance(span, list) or len(span) != 2 or not _is_size(span[0]) or not _is_size(span[1]):
            raise WireError("column %r does not say where its buffers are" % name)
        at, size = span
        if at < end or at % 8 or at + size > len(data):
            raise WireError("column %r has a buffer of %d bytes at %d in a payload of %d" % (name, size, at, len(data)))
        end = at + size
        views.append(data[at:end])
    return views
