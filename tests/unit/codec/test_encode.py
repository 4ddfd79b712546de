"""Rows as the bytes of Examples and of TFRecord files: how they are framed, what stands before a large feature, and where lists lie."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.codec import encode
from akrunner.codec.decode import decode_examples
from akrunner.codec.encode import check_values, encode_examples, encode_records, list_layout, record_fronts, record_heads
from akrunner.codec.tfrecord import framed, read_examples
from akrunner.errors import DataError, SchemaError
from akrunner.schema import Schema

DRAW = random.Random(5)
BATCHES = {
    "numbers": pa.record_batch({"i": [1, 2, 3], "f": [0.5, 1.5, -1.0]}),
    "wide numbers": pa.record_batch({"i": [0, 2**63 - 1, -(2**63)]}),
    "texts of one length": pa.record_batch({"s": ["ab", "cd"]}),
    "texts": pa.record_batch({"s": ["", "a", "é" * 100]}),
    "nulls": pa.record_batch({"s": ["a", None, "b"], "i": [None, None, 7]}),
    "only nulls": pa.record_batch({"i": pa.nulls(2, pa.int64())}),
    "lists": pa.record_batch({"l": [[1, 300], [], [5]], "w": [["a", "bc"], [], [""]]}),
    "many numbers a row": pa.record_batch(
        {"v": pa.array([[DRAW.random() for _ in range(100)] for _ in range(3)], pa.list_(pa.float32()))}
    ),
    "large": pa.record_batch({"b": [DRAW.randbytes(3000), DRAW.randbytes(1)]}),
    "a slice": pa.record_batch({"i": [1, None, 3, 4], "w": [["a"], ["b", "c"], None, ["d"]]}).slice(1, 2),
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=list(BATCHES))
def test_records_are_the_examples_in_their_frames(batch: pa.RecordBatch) -> None:
    examples = encode_examples(batch).to_pylist()
    assert encode_records(batch).tobytes() == b"".join(map(framed, examples))
    schema = Schema.from_arrow(batch.schema)
    lengths = np.array([len(one) for one in examples])
    assert decode_examples(schema, b"".join(examples), lengths).to_pylist() == batch.to_pylist()


def test_the_checksum_is_the_same_whichever_way_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = BATCHES["many numbers a row"]
    records = encode_records(batch).tobytes()
    monkeypatch.setattr(encode, "_MAX_LOOKUPS", 10_000)
    assert encode_records(batch).tobytes() == records


def test_no_rows_are_no_bytes() -> None:
    for batch in BATCHES.values():
        assert len(encode_records(batch[:0])) == 0 and encode_examples(batch[:0]).to_pylist() == []


def test_every_row_of_a_column_of_numbers_has_the_same_length() -> None:
    lengths = {len(one) for one in encode_examples(pa.record_batch({"i": [0, 300, 2**40]})).to_pylist()}
    assert len(lengths) == 1


def test_the_head_of_a_record_is_its_length_and_its_checksum() -> None:
    lengths = np.array([0, 1, 255, 70_000])
    heads = record_heads(lengths)
    assert [head.tobytes() for head in heads] == [framed(bytes(length))[:12] for length in lengths.tolist()]
    assert record_heads(np.empty(0, np.int64)).shape == (0, 12)


@pytest.mark.parametrize("images", [[b"jpeg", b"", b"x" * 300], [b"same", b"size", b"here"]], ids=["apart", "alike"])
def test_what_stands_before_a_large_feature_is_all_of_the_record_but_its_bytes(images: list[bytes]) -> None:
    batch = pa.record_batch({"id": [1, 2, None], "label": ["cat", None, "a longer one"]})
    fronts = record_fronts(batch, "image", np.array([len(one) for one in images])).to_pylist()
    records = [front + image for front, image in zip(fronts, images)]
    file = b"".join(framed(record[encode.HEAD :]) for record in records)
    assert [record[: encode.HEAD] for record in records] == [framed(record[encode.HEAD :])[: encode.HEAD] for record in records]
    (read,) = read_examples(io.BytesIO(file), Schema.parse("id bigint, label string, image binary"))
    assert read.to_pylist() == [{**row, "image": image} for row, image in zip(batch.to_pylist(), images)]


LISTS = [[1, 2], [], [3, 4, 5], [6]]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64())], ids=str)
def test_lists_lie_from_zero_on_also_in_a_slice(kind: pa.DataType) -> None:
    offsets, values = list_layout(pa.array(LISTS, kind).slice(1, 2))
    assert offsets.tolist() == [0, 0, 3] and values.to_pylist() == [3, 4, 5]


def test_lists_of_one_length_lie_at_equal_distances() -> None:
    offsets, values = list_layout(pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int64(), 2)).slice(1))
    assert offsets.tolist() == [0, 2, 4] and values.to_pylist() == [3, 4, 5, 6]


def test_values_of_lists_are_no_dictionary() -> None:
    words = pa.array(["b", "a", "b"]).dictionary_encode()
    offsets, values = list_layout(pa.ListArray.from_arrays([0, 1, 3], words))
    assert offsets.tolist() == [0, 1, 3] and values.type == pa.string() and values.to_pylist() == ["b", "a", "b"]


def test_a_null_among_a_dictionarys_values_has_no_feature() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["a", None]))
    rows = encode_examples(pa.record_batch({"s": column})).to_pylist()
    assert len(rows[0]) > 0 and [one.strip(b"\x0a\0\x80") for one in rows[1:]] == [b"", b""]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1.0, None, 1e39]), "row 24, column 'x': 1e.39 does not fit a float32"),
        (pa.array([0, None, 2**63], pa.uint64()), "row 24, column 'x': 9223372036854775808 does not fit a signed"),
        (pa.array([["a"], None, [None]]), "row 24, column 'x': a list has a null in it"),
        (pa.array([[], None, [1.0, 1e39]]), "row 24, column 'x': 1e.39 does not fit a float32"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_value_that_cannot_be_sent_is_named_by_its_row_of_the_table(column: pa.Array, words: str) -> None:
    for write in (encode_examples, encode_records):
        with pytest.raises(DataError, match=words) as caught:
            write(pa.record_batch({"x": column}), 20, 2)
        assert (caught.value.row, caught.value.column) == (24, "x")


def test_a_type_that_no_example_holds_is_refused() -> None:
    batch = pa.record_batch({"d": pa.array([{"a": 1}])})
    for write in (encode_examples, encode_records, check_values):
        with pytest.raises(SchemaError, match="column 'd' is struct"):
            write(batch)


@pytest.mark.parametrize("batch", BATCHES.values(), ids=list(BATCHES))
def test_values_that_are_encoded_pass_the_check(batch: pa.RecordBatch) -> None:
    check_values(batch, 3)


def test_infinite_numbers_are_no_numbers_that_became_so() -> None:
    values: list[Any] = [float("inf"), float("-inf"), 3.4028234e38]
    check_values(pa.record_batch({"x": values}))
    assert len(encode_examples(pa.record_batch({"x": values}))) == 3
