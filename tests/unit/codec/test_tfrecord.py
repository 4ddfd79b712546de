"""TFRecord files cut into records, checked and read, also in small pieces and damaged."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.codec import tfrecord
from akrunner.codec.encode import HEAD, TAIL, encode_records
from akrunner.codec.tfrecord import check, cut, framed, read_examples, write_examples
from akrunner.errors import DataError, SourceError
from akrunner.schema import Schema

SCHEMA = Schema.parse("i bigint, s string")
BATCH = pa.record_batch({"i": [1, 2, None, 4], "s": ["a", "a", "longer", None]})
WHOLE = encode_records(BATCH).tobytes()


def read(data: bytes, schema: Schema = SCHEMA) -> list[Any]:
    return [row for batch in read_examples(io.BytesIO(data), schema, "f.tfrecord") for row in batch.to_pylist()]


def spoiled(at: int) -> bytes:
    return WHOLE[:at] + bytes([WHOLE[at] ^ 1]) + WHOLE[at + 1 :]


def begins() -> list[int]:
    starts, _, _ = cut(WHOLE)
    return (starts - HEAD).tolist()


def masked_crc(data: bytes) -> bytes:
    """The checksum of a record, bit by bit, as the format's description has it."""
    crc = 0xFFFFFFFF
    for octet in data:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@pytest.mark.parametrize("record", [b"", b"hello", bytes(range(256)) * 2])
def test_a_record_has_its_length_and_two_checksums_around_it(record: bytes) -> None:
    length = struct.pack("<Q", len(record))
    assert framed(record) == length + masked_crc(length) + record + masked_crc(record)
    assert len(framed(record)) == HEAD + len(record) + TAIL


@pytest.mark.parametrize(
    "records",
    [[], [b""], [b"one"], [b"aa", b"bb", b"cc"], [b"aa", b"bb", b"longer", b"dd"], [b"", b"", b"x"], [b"\0" * 300] * 3],
)
@pytest.mark.parametrize("rest", [b"", framed(b"the next one")[:-1], b"\3"])
def test_whole_records_are_cut_and_the_rest_is_left(records: list[bytes], rest: bytes) -> None:
    data = b"".join(map(framed, records)) + rest
    starts, ends, used = cut(data)
    assert [data[start:end] for start, end in zip(starts.tolist(), ends.tolist())] == records
    assert used == len(data) - len(rest)


@pytest.mark.parametrize("size", [1, 7, 40, 4 << 20])
def test_a_stream_in_pieces_of_any_size_has_the_same_rows(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "_CHUNK", size)
    assert read(WHOLE) == BATCH.to_pylist()
    assert read(b"") == []


def test_what_is_written_twice_is_there_twice() -> None:
    stream = io.BytesIO()
    write_examples(stream, BATCH)
    write_examples(stream, BATCH[:0])
    write_examples(stream, BATCH[:1])
    assert read(stream.getvalue()) == [*BATCH.to_pylist(), {"i": 1, "s": "a"}]


def test_features_that_the_schema_does_not_name_are_left_out() -> None:
    assert read(WHOLE, Schema.parse("i bigint")) == BATCH.select(["i"]).to_pylist()


@pytest.mark.parametrize("size", [10, 4 << 20])
@pytest.mark.parametrize("record", [0, 2, 3])
@pytest.mark.parametrize(("offset", "what"), [(0, "length"), (9, "length"), (HEAD, "data"), (-1, "data")])
def test_a_damaged_byte_is_told_with_its_record(
    record: int, offset: int, what: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tfrecord, "_CHUNK", size)
    places = [*begins(), len(WHOLE)]
    at = places[record] + offset if offset >= 0 else places[record + 1] + offset
    with pytest.raises(
        SourceError, match=f"f.tfrecord is damaged: record {record} at byte {places[record]} has a wrong checksum of its {what}"
    ):
        read(spoiled(at))


def test_of_two_damaged_records_the_first_is_told() -> None:
    places = begins()
    data = bytearray(spoiled(places[1] + HEAD))
    data[places[2] + 9] ^= 1
    flat = np.frombuffer(bytes(data), np.uint8)
    starts, ends, _ = cut(bytes(data))
    with pytest.raises(SourceError, match=rf"f is damaged: record 101 at byte {1000 + places[1]} .* of its data"):
        check(flat, starts, ends, "f", 100, 1000)


@pytest.mark.parametrize("kept", [1, HEAD - 1, HEAD, HEAD + 5, -1])
def test_a_file_that_is_cut_short_is_told_with_its_record(kept: int) -> None:
    last = begins()[-1]
    data = WHOLE[: last + kept] if kept > 0 else WHOLE[:kept]
    words = rf"f.tfrecord is cut short: record 3 begins at byte {last}, and {len(data) - last} bytes follow"
    with pytest.raises(SourceError, match=words):
        read(data)


def test_a_length_that_no_example_has_is_refused_before_it_is_read() -> None:
    head = struct.pack("<Q", 1 << 31)
    with pytest.raises(
        SourceError, match=r"f.tfrecord: record 4 at byte \d+ has 2147483648 bytes; an Example has at most 2147483647"
    ):
        read(WHOLE + head + masked_crc(head))


def test_a_row_that_does_not_fit_is_named_with_its_file() -> None:
    with pytest.raises(DataError, match="^f.tfrecord: row 2: column 's'") as caught:
        read(WHOLE[: begins()[2]] + framed(b"\x0a\x0d\x0a\x0b\x0a\x01s\x12\x06\x0a\x04\x0a\x02\xff\xfe"))
    assert (caught.value.row, caught.value.column) == (2, "s")
    with pytest.raises(DataError, match="^f.tfrecord: row 4: .*is not a tf.train.Example"):
        read(WHOLE + framed(b"\x0a\x05ab"))


def test_a_stream_that_cannot_be_read_is_told_with_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            if not data:
                raise OSError(5, "Input/output error")
            return data

    monkeypatch.setattr(tfrecord, "_CHUNK", len(WHOLE))
    with pytest.raises(SourceError, match=rf"cannot read f.tfrecord after record 4, at byte {len(WHOLE)} \(unpacked\)"):
        list(read_examples(Broken(WHOLE), SCHEMA, "f.tfrecord"))
