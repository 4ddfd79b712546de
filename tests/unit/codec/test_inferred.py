"""Which columns Examples have, and of which types, when nobody has said so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.codec import inferred
from akrunner.codec.encode import encode_examples
from akrunner.codec.inferred import example_types
from akrunner.codec.protobuf import varint
from akrunner.errors import DataError


def types(*batches: pa.RecordBatch, **given: pa.DataType) -> dict[str, Any]:
    blobs = [blob for batch in batches for blob in encode_examples(batch).to_pylist()]
    return example_types(memoryview(b"".join(blobs)), np.array([len(blob) for blob in blobs], np.int64), given)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([1, -1]), pa.int64()),
        (pa.array([True]), pa.int64()),
        (pa.array([0.5, None]), pa.float32()),
        (pa.array(["é", ""]), pa.string()),
        (pa.array([b"a", b"\xff"]), pa.binary()),
        (pa.array([[1, 300]]), pa.list_(pa.int64())),
        (pa.array([[2**40, -1]]), pa.list_(pa.int64())),
        (pa.array([[0.5, 1.5]]), pa.list_(pa.float32())),
        (pa.array([["a", "b"]]), pa.list_(pa.string())),
        (pa.array([[b"a", b"\xff"]]), pa.list_(pa.binary())),
        # a single row with several values makes all of them lists
        (pa.array([[1], [2, 3], [4]]), pa.list_(pa.int64())),
        (pa.array([[1], [2]]), pa.int64()),
        (pa.array([[300], []]), pa.int64()),
        (pa.array([[], []], pa.list_(pa.int64())), None),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_the_type_that_holds_all_values_of_a_column(column: pa.Array, kind: Any) -> None:
    assert types(pa.record_batch({"x": column})) == {"x": kind}


def test_columns_are_sorted_by_name_and_each_is_found_in_any_row() -> None:
    found = types(pa.record_batch({"b": [1]}), pa.record_batch({"é": ["x"], "a": [0.5]}))
    assert list(found.items()) == [("a", pa.float32()), ("b", pa.int64()), ("é", pa.string())]
    assert types() == {}


def test_a_feature_in_another_list_than_before_is_named_with_its_row() -> None:
    with pytest.raises(DataError, match="row 1: feature 'x' is in a float_list, and before it was in a int64_list") as caught:
        types(pa.record_batch({"x": [1]}), pa.record_batch({"x": [0.5]}))
    assert caught.value.row == 1


def test_a_row_that_is_no_example_is_named() -> None:
    (good,) = encode_examples(pa.record_batch({"x": [1]})).to_pylist()
    for bad in (b"\x0a\x05ab", b"\x80", varint(1) + b"x"):
        with pytest.raises(DataError, match="row 1 is not a tf.train.Example") as caught:
            example_types(memoryview(good + bad), np.array([len(good), len(bad)]))
        assert caught.value.row == 1


def test_what_no_row_tells_is_what_was_given() -> None:
    nothing = pa.record_batch({"x": pa.array([[]], pa.list_(pa.int64()))})
    assert types(nothing, x=pa.float64()) == {"x": pa.float64()}
    # but a value tells more
    assert types(pa.record_batch({"x": [0.5]}), x=pa.int64()) == {"x": pa.float32()}


def test_a_column_of_bytes_stays_one_whose_later_values_are_text() -> None:
    assert types(pa.record_batch({"x": [b"a"]}), x=pa.binary()) == {"x": pa.binary()}
    assert types(pa.record_batch({"x": ["a"]}), x=pa.string()) == {"x": pa.string()}


def test_only_the_first_rows_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inferred, "_LOOKED_AT", 2)
    assert types(pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [0.5], "y": [1]})) == {"x": pa.int64()}
