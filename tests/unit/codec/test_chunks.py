"""The payload of one frame: rows to a worker, rows back, and frames that are not as the protocol says."""

from __future__ import annotations

import io
import struct
from typing import Any

import pyarrow as pa
import pytest

from akrunner.codec import chunks
from akrunner.codec.tfrecord import read_examples
from akrunner.errors import DataError, ProtocolError
from akrunner.schema import Schema
from akrunner.wire import frames

BATCH = pa.record_batch({"i": [1, None, 300], "s": ["a", "", None]})
SCHEMA = Schema.parse("i bigint, s string")


def joined(parts: list[Any]) -> bytearray:
    return bytearray(b"".join(bytes(part) for part in parts))


def examples(batch: pa.RecordBatch) -> frames.Frame:
    return frames.Frame(frames.EXAMPLES, batch.num_rows, joined(chunks.encode_frame(batch, "examples", True)))


def columns(batch: pa.RecordBatch) -> frames.Frame:
    return frames.Frame(frames.COLUMNS, batch.num_rows, joined(chunks.encode_frame(batch, "columns", True)))


def test_a_stream_of_examples_has_lengths_before_the_rows() -> None:
    assert chunks.decode_frame(SCHEMA, examples(BATCH)).to_pylist() == BATCH.to_pylist()
    assert chunks.decode_frame(SCHEMA, examples(BATCH[:0])).num_rows == 0


def test_a_spool_of_examples_is_a_tfrecord_file() -> None:
    (written,) = chunks.encode_frame(BATCH, "examples", False)
    (read,) = read_examples(io.BytesIO(bytes(written)), SCHEMA)
    assert read.to_pylist() == BATCH.to_pylist()


def test_a_chunk_of_columns_in_a_spool_begins_with_its_length() -> None:
    streamed = joined(chunks.encode_frame(BATCH, "columns", True))
    spooled = joined(chunks.encode_frame(BATCH, "columns", False))
    assert spooled == struct.pack("<Q", len(streamed)) + streamed


@pytest.mark.parametrize("data_format", ["examples", "columns"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_value_that_cannot_be_sent_is_named_by_its_row_of_the_table(data_format: str, stream: bool) -> None:
    with pytest.raises(DataError, match="row 14, column 'l'") as caught:
        chunks.encode_frame(pa.record_batch({"l": [[1], [2], [None]]}), data_format, stream, 10, 2)
    assert (caught.value.row, caught.value.column) == (14, "l")


def test_a_row_that_does_not_fit_is_counted_from_the_first_row() -> None:
    with pytest.raises(DataError, match="row 102: column 'i'") as caught:
        chunks.decode_frame(Schema.parse("i tinyint, s string"), examples(BATCH), 100)
    assert caught.value.row == 102


@pytest.mark.parametrize(
    ("count", "payload", "words"),
    [
        (1, b"", "a examples frame: 1 rows in 0 bytes"),
        (2, bytes(7), "2 rows in 7 bytes"),
        (1, struct.pack("<I", 3) + b"ab", "1 rows of 3 bytes, 2 came"),
        (1, struct.pack("<I", 1) + b"ab", "1 rows of 1 bytes, 2 came"),
        (2, struct.pack("<II", 2**32 - 1, 2**32 - 1) + b"ab", "2 rows of 8589934590 bytes, 2 came"),
        (frames.MOST_EXAMPLES + 1, bytes(4 * frames.MOST_EXAMPLES + 4), f"{frames.MOST_EXAMPLES + 1} rows in"),
    ],
)
def test_lengths_that_do_not_match_what_came_are_refused(count: int, payload: bytes, words: str) -> None:
    frame = frames.Frame(frames.EXAMPLES, count, bytearray(payload))
    with pytest.raises(ProtocolError, match=words):
        chunks.decode_frame(SCHEMA, frame)
    with pytest.raises(ProtocolError, match=words):
        chunks.frame_types(frame)


def test_columns_that_are_cut_short_are_refused() -> None:
    frame = columns(BATCH.select(["i"]))
    del frame.payload[-8:]
    with pytest.raises(ProtocolError, match="columns frame"):
        chunks.decode_frame(Schema.parse("i bigint"), frame)
    with pytest.raises(ProtocolError, match="columns frame"):
        chunks.frame_types(frame)


def test_both_kinds_of_frame_tell_their_types() -> None:
    batch = pa.record_batch({"f": [0.5], "i": [1], "l": [[1, 2]], "s": ["a"]})
    wide: dict[str, Any] = {"i": pa.int64(), "l": pa.list_(pa.int64()), "s": pa.string()}
    assert chunks.frame_types(examples(batch)) == {"f": pa.float32(), **wide}
    assert chunks.frame_types(columns(batch)) == {"f": pa.float64(), **wide}


def test_what_the_values_do_not_tell_is_what_was_given_before() -> None:
    nothing = pa.record_batch({"l": pa.array([[]], pa.list_(pa.int64()))})
    given = pa.list_(pa.int64())
    assert chunks.frame_types(examples(nothing)) == {"l": None}
    assert chunks.frame_types(examples(nothing), {"l": given}) == {"l": given}
