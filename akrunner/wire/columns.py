"""A batch of columns as one payload: a JSON header, then each column's buffers as they lie in memory.

::

    | header length (4) | header JSON | pad to 8 | buffer | pad to 8 | buffer | ...

The header is `{"rows": n, "columns": [{"name", "form", "dtype", "shape", "buffers": [[offset, length], ...]}]}`; offsets count
from the first buffer. Forms and their buffers:

- `numbers`: values of `dtype` (numpy's name), shape `[rows, ...]`
- `ragged`: int64 offsets [rows + 1], values of `dtype`
- `text`, `blob`: int64 offsets [n + 1], bytes; with a `counts` buffer (int64 offsets [rows + 1]) when many per row

Each may end in a `valid` buffer: one byte a row, 0 for null; `"nulls": true` then.
"""

import json
import struct
from typing import Any, Dict, List, Tuple

_LENGTH = struct.Struct("<I")


def pack(rows: int, columns: List[Tuple[Dict[str, Any], List[Any]]]) -> List[Any]:
    """Buffers to write one after another as one payload.

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


def unpack(payload: Any) -> Tuple[int, List[Tuple[Dict[str, Any], List[memoryview]]]]:
    """(rows, [(header, [memoryview, ...]), ...]) of a payload; the views share its memory."""
    view = memoryview(payload)
    (size,) = _LENGTH.unpack(view[: _LENGTH.size])
    base = _LENGTH.size + size
    header = json.loads(bytes(view[_LENGTH.size : base]).decode("utf-8"))
    columns = []
    for column in header["columns"]:
        columns.append((column, [view[base + at : base + at + length] for at, length in column["buffers"]]))
    return header["rows"], columns
