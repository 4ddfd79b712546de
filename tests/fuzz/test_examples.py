"""Serialized Examples, changed a little, made up, or legal and odd: rows or a DataError; what they cost is in proportion to their bytes."""

from __future__ import annotations

import contextlib
import random
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.codec.protobuf import varint
from akrunner.errors import DataError
from akrunner.schema import Schema
from tests.fuzz import mutated, randomness, rounds, tried

SCHEMA = Schema.parse("a bigint, b float, c string, v array<bigint>, w array<string>, x array<float>, e boolean, d varbinary")
BATCH = pa.record_batch(
    {
        "a": [1, None, -3, 2**40] * 4,
        "b": [0.5, None, 1.5, 2.5] * 4,
        "c": ["x", "é", None, ""] * 4,
        "v": [[1, -2], [], None, [300]] * 4,
        "w": [["p", "qq"], [], ["r"], None] * 4,
        "x": [[0.5], [1.5, 2.5], None, []] * 4,
    }
)


def decoded(examples: list[bytes], schema: Schema = SCHEMA) -> pa.RecordBatch:
    batch = codec.decode_examples(schema, b"".join(examples), np.array([len(one) for one in examples], np.int64))
    batch.validate(full=True)
    return batch


def tagged(tag: int, body: bytes, width: int = 0) -> bytes:
    """A length-delimited field; width: bytes of its length's varint, more than it needs."""
    size = bytearray(varint(len(body)))
    while len(size) < width:
        size[-1] |= 0x80
        size.append(0)
    return bytes([tag]) + bytes(size) + body


def example(name: bytes, kind: int, values: bytes, width: int = 0) -> bytes:
    feature = tagged(0x12, tagged(kind, values, width), width)
    return tagged(0x0A, tagged(0x0A, tagged(0x0A, name) + feature, width), width)


def test_changed_examples() -> None:
    rng = randomness()
    valid = codec.encode_examples(BATCH).to_pylist()
    for _ in rounds(250):
        some = [mutated(one, rng) if rng.random() < 0.2 else one for one in valid]
        tried("examples-parsed", b"".join(some))
        for schema in (SCHEMA, Schema.parse("a string, v array<float>, w bigint")):
            with contextlib.suppress(DataError):
                assert decoded(some, schema).num_rows == len(some)


def test_odd_examples() -> None:
    """Legal or not, of the pieces Examples are made of."""
    rng = randomness()
    for _ in rounds(400):
        some = [odd(rng) for _ in range(rng.choice([1, 3, 20]))]
        tried("examples-odd", b"".join(some))
        with contextlib.suppress(DataError):
            assert decoded(some).num_rows == len(some)


def odd(rng: random.Random) -> bytes:
    pieces = [
        b"\x0a\x01x",
        b"\x0a\x00",
        b"\x08\x01",
        b"\x08" + b"\xff" * 11,
        b"\x10\x00",
        b"\x0d0000",
        b"\x0b\x0c",
        b"\x0a\x7f",
        b"\x8a\x00\x01y",
    ]
    values = b"".join(rng.choices(pieces, k=rng.randrange(4)))
    if rng.random() < 0.5:
        values = tagged(
            0x0A, rng.choice([b"\x01", b"\xff" * 9 + b"\x01", b"\xff" * 11, b"0000", b"", b"\x80"]), rng.randrange(10)
        )
    name = rng.choice([b"a", b"b", b"c", b"v", b"w", b"x", b"e", b"", b"\xff"])
    return example(name, rng.choice([0x0A, 0x12, 0x1A, 0x22, 0x0B]), values, rng.choice([0, 0, 0, 3, 6, 9, 10]))


@pytest.mark.parametrize("width", [2, 5, 6, 9])
def test_lengths_longer_than_they_need_be(width: int) -> None:
    rows = 20
    texts = [example(b"w", 0x0A, tagged(0x0A, b"p" * (i % 5), width) + tagged(0x0A, b"qq", width)) for i in range(rows)]
    assert decoded(texts).column("w").to_pylist() == [["p" * (i % 5), "qq"] for i in range(rows)]
    one = [example(b"c", 0x0A, tagged(0x0A, b"z" * i, width), width) for i in range(rows)]
    assert decoded(one).column("c").to_pylist() == ["z" * i for i in range(rows)]
    numbers = [example(b"v", 0x1A, tagged(0x0A, bytes([i, 1]), width), width) for i in range(rows)]
    assert decoded(numbers).column("v").to_pylist() == [[i, 1] for i in range(rows)]


def test_what_nobody_asked_for_costs_nothing() -> None:
    """Every row has features of its own names: no column of memory for each."""
    entries = [[tagged(0x0A, tagged(0x0A, b"f%d-%d" % (row, i)) + tagged(0x12, b"")) for i in range(50)] for row in range(400)]
    examples = [tagged(0x0A, b"".join(row)) for row in entries]
    tracemalloc.start()
    with pytest.raises(DataError, match="row 0 has a feature 'f0-0', which is not in the output schema"):
        decoded(examples)
    assert tracemalloc.get_traced_memory()[1] < 60 << 20
    tracemalloc.stop()


def test_many_numbers_that_are_not_packed() -> None:
    """One tag and one byte each, as old writers have them: memory in proportion, not an object for each."""
    (batch, count) = (example(b"v", 0x1A, b"\x08\x05" * 200_000), 200_000)
    tracemalloc.start()
    assert len(decoded([batch]).column("v")[0]) == count
    assert tracemalloc.get_traced_memory()[1] < 40 << 20
    tracemalloc.stop()
