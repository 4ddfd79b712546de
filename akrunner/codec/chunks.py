"""Converts a batch of rows to and from the payload of one frame."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.codec.binary import data_of, offsets_of
from akrunner.codec.columns import column_types, decode_columns, encode_columns
from akrunner.codec.decode import decode_examples
from akrunner.codec.encode import encode_examples, encode_records
from akrunner.codec.inferred import example_types
from akrunner.errors import ProtocolError
from akrunner.schema import Schema
from akrunner.wire import frames


def encode_frame(batch: pa.RecordBatch, data_format: str, stream: bool, first_row: int = 0, step: int = 1) -> list[Any]:
    """Return the payload of a frame: of a DATA frame (its bytes go to the worker's spool file), or of a ROWS frame (for a
    stream).

    Args:
        data_format: "examples" or "columns".
        stream: whether it is a ROWS frame.
        first_row: the number in the table of the first row, for errors.
        step: the difference between the table's numbers of consecutive rows, for errors.
    Raises:
        DataError: a value cannot be sent.
    """
    if data_format == "columns":
        parts = encode_columns(batch, first_row, step)
        return parts if stream else [struct.pack("<Q", sum(map(len, parts))), *parts]
    if not stream:
        return [encode_records(batch, first_row, step).data]
    examples = encode_examples(batch, first_row, step)
    return [np.diff(offsets_of(examples)).astype("<u4").data, data_of(examples).data]


def decode_frame(schema: Schema, frame: frames.Frame, first_row: int = 0, rounding: bool = True) -> pa.RecordBatch:
    """Return the rows of an EXAMPLES or COLUMNS frame.

    Args:
        first_row: the number of its first row, for errors.
        rounding: as in `decode_columns`.
    Raises:
        ProtocolError: the frame is not as the protocol says.
        DataError: a row does not fit the schema.
    """
    try:
        if frame.kind == frames.COLUMNS:
            return decode_columns(schema, frame.payload, first_row, frame.count, rounding)
        lengths = _lengths(frame)
    except frames.WireError as e:
        raise ProtocolError(f"a {frames.NAMES[frame.kind]} frame: {e}") from None
    return decode_examples(schema, np.frombuffer(frame.payload, np.uint8)[4 * frame.count :], lengths, first_row)


def frame_types(frame: frames.Frame, given: Mapping[str, pa.DataType] = MappingProxyType({})) -> dict[str, pa.DataType | None]:
    """Return the columns of an EXAMPLES or COLUMNS frame, each with the type that its values have; None if they do not tell it.

    Args:
        given: as in `column_types`.
    Raises:
        ProtocolError: the frame is not as the protocol says.
        DataError: a row is not an Example, or contradicts another row.
    """
    try:
        if frame.kind == frames.COLUMNS:
            return column_types(frame.payload, frame.count, given)
        lengths = _lengths(frame)
    except frames.WireError as e:
        raise ProtocolError(f"a {frames.NAMES[frame.kind]} frame: {e}") from None
    return example_types(memoryview(frame.payload)[4 * frame.count :], lengths, given)


def _lengths(frame: frames.Frame) -> NDArray[np.int64]:
    """Return [rows] the number of bytes of each Example in an EXAMPLES frame.

    Raises:
        WireError: the lengths do not match the bytes that follow them.
    """
    count, size = frame.count, len(frame.payload)
    if count > frames.MOST_EXAMPLES or 4 * count > size:
        raise frames.WireError(f"{count} rows in {size} bytes")
    lengths = np.frombuffer(frame.payload, np.uint32, count).astype(np.int64)
    if int(lengths.sum()) != size - 4 * count:
        raise frames.WireError(f"{count} rows of {int(lengths.sum())} bytes, {size - 4 * count} came")
    return lengths
