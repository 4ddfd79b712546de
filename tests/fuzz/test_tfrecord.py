"""TFRecord files with one bit flipped, cut short, or lying about their lengths: an error that names file, record and byte."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import struct
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.codec import tfrecord
from akrunner.errors import AkrunnerError, DataError, SourceError
from akrunner.schema import Schema
from tests.fuzz import LONGER, mutated, randomness, rounds, tried

BATCH = pa.record_batch({"a": list(range(30)), "c": ["é" * (i % 7) for i in range(30)]})
SCHEMA = Schema.from_arrow(BATCH.schema)


def read(data: bytes, stream: Any = io.BytesIO) -> list[pa.RecordBatch]:
    return list(codec.read_examples(stream(data), SCHEMA, "x.tfrecord"))


def written(batch: pa.RecordBatch = BATCH) -> bytes:
    out = io.BytesIO()
    codec.write_examples(out, batch)
    return out.getvalue()


@pytest.mark.parametrize("fixed", [False, True])
def test_every_bit_counts(fixed: bool) -> None:
    """Each flip is an error that names the very record it is in."""
    batch = BATCH.select(["a"]).slice(0, 10) if fixed else BATCH.slice(0, 10)
    data = written(batch)
    starts, ends, used = tfrecord.cut(data)
    assert used == len(data)
    schema = Schema.from_arrow(batch.schema)
    rng = randomness()
    bits = range(8 * len(data)) if LONGER > 1 else rng.sample(range(8 * len(data)), min(1500, 8 * len(data)))
    for bit in bits:
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        record = int(np.searchsorted(ends + 4, bit // 8, side="right"))
        where = (
            rf"x.tfrecord is damaged: record {record} at byte {starts[record] - 12} has a wrong checksum of its (length|data)$"
        )
        with pytest.raises(SourceError, match=where):
            list(codec.read_examples(io.BytesIO(flipped), schema, "x.tfrecord"))


def test_cut_anywhere() -> None:
    data = written()
    _, ends, _ = tfrecord.cut(data)
    whole = {0, *(int(end) + 4 for end in ends)}
    for size in range(0, len(data), 7):
        if size in whole:
            continue
        with pytest.raises(SourceError, match=r"x.tfrecord is cut short: record \d+ begins at byte \d+, and \d+ bytes follow"):
            read(data[:size])


def test_a_length_that_lies_is_not_waited_for() -> None:
    """With a right checksum, too: no more is read than the length says, and none of more than an Example can have."""
    for length in (1 << 31, 1 << 62):
        head = struct.pack("<Q", length)
        lie = head + tfrecord._masked(head)
        with pytest.raises(SourceError, match=rf"record 30 at byte \d+ has {length} bytes"):
            read(written() + lie + bytes(1 << 20))
    torn = bytearray(written())
    torn[3] ^= 0x40

    class Endless(io.BytesIO):
        def read(self, size: Any = -1) -> bytes:
            return super().read(size) or bytes(size)

    with pytest.raises(SourceError, match="record 0 at byte 0 has a wrong checksum of its length"):
        read(bytes(torn), Endless)


def test_a_long_record_is_held_once() -> None:
    """Memory: what was read in pieces and the whole of it; not once for each piece."""
    batch = pa.record_batch({"a": [1], "c": ["x" * (30 << 20)]})
    data = io.BytesIO(written(batch))
    tracemalloc.start()
    (got,) = codec.read_examples(data, SCHEMA, "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert got.equals(batch) and peak < 4 * (30 << 20)


def test_anything() -> None:
    rng = randomness()
    data = written()
    for _ in rounds(300):
        with contextlib.suppress(SourceError):
            assert sum(batch.num_rows for batch in read(tried("tfrecord", mutated(data, rng)))) <= 60


def test_unpacked_on_the_way() -> None:
    rng = randomness()
    packed = gzip.compress(written(), mtime=0)
    assert pa.Table.from_batches(read(packed, unpacked)).num_rows == 30
    for _ in rounds(300):
        data = tried("gz", mutated(packed, rng))
        if data == packed:
            continue
        try:
            rows = sum(batch.num_rows for batch in read(data, unpacked))
        except AkrunnerError as e:
            assert re.match(r"(source: )?(cannot read )?x.tfrecord|source: cannot read x.tfrecord", str(e)), e
        else:
            # a byte of the name or the time in gzip's own header
            assert rows in (0, 30)


def unpacked(data: bytes) -> Any:
    return gzip.GzipFile(fileobj=io.BytesIO(data))


def test_examples_that_are_none() -> None:
    """With right checksums: whatever the record holds, rows or a DataError that names it."""
    rng = randomness()
    examples = codec.encode_examples(BATCH).to_pylist()
    for _ in rounds(300):
        data = b"".join(tfrecord.framed(mutated(one, rng) if rng.random() < 0.3 else one) for one in examples)
        with contextlib.suppress(DataError):
            assert sum(batch.num_rows for batch in read(tried("records", data))) == 30
