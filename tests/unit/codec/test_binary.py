"""Arrays of byte strings made, cut, joined and spread as offsets and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.codec import binary


def blobs(*values: bytes) -> pa.LargeBinaryArray:
    return pa.array(values, pa.large_binary())


@pytest.mark.parametrize(
    ("column", "want"),
    [
        (pa.array(["é", "", "a\0"]), ["é".encode(), b"", b"a\0"]),
        (pa.array(["é"], pa.large_string()), ["é".encode()]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), [b"b", b"a", b"b"]),
        (pa.array([b"\xff", None]), [b"\xff", None]),
        (pa.array([b"abc", b"\0\0\0"], pa.binary(3)), [b"abc", b"\0\0\0"]),
        (pa.array([], pa.string()), []),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_texts_and_bytes_of_any_type_become_large_binary(column: pa.Array, want: list[Any]) -> None:
    found = binary.blobs_of(column)
    assert found.type == pa.large_binary() and found.to_pylist() == want


def test_a_slice_has_only_its_own_offsets_and_bytes() -> None:
    part = blobs(b"ab", b"c", b"", b"def").slice(1, 2)
    assert binary.offsets_of(part).tolist() == [2, 3, 3]
    assert binary.data_of(part).tobytes() == b"c"


def test_an_array_without_values_has_no_bytes() -> None:
    for empty in (blobs(), pa.nulls(0, pa.large_binary()), blobs(b"a")[:0]):
        assert binary.offsets_of(empty).tolist()[-1:] in ([], [0]) and not len(np.diff(binary.offsets_of(empty)))
        assert binary.data_of(empty).tobytes() == b""


def test_bytes_that_do_not_lie_side_by_side_are_put_so() -> None:
    every_second = np.frombuffer(b"a-b-c-", np.uint8)[::2]
    assert binary.binary(np.array([0, 1, 1, 3]), every_second).to_pylist() == [b"a", b"", b"bc"]


@pytest.mark.parametrize(("shape", "want"), [((2, 3), [b"\0\1\2", b"\3\4\5"]), ((2, 0), [b"", b""]), ((0, 3), [])])
def test_each_row_of_a_matrix_is_a_value(shape: tuple[int, int], want: list[bytes]) -> None:
    matrix = np.arange(shape[0] * shape[1], dtype=np.uint8).reshape(shape)
    assert binary.matrix_rows(matrix).to_pylist() == want


def test_parts_are_joined_row_by_row_in_order() -> None:
    one = blobs(b"a", b"")
    assert binary.join([one]) is one
    assert binary.join([one, blobs(b"b", b"\0"), blobs(b"", b"c")]).to_pylist() == [b"ab", b"\0c"]


def test_elements_of_lists_become_one_value_a_row() -> None:
    elements = blobs(b"not ours", b"a", b"bc", b"d").slice(1)
    assert binary.regroup(elements, np.array([0, 2, 2, 3])).to_pylist() == [b"abc", b"", b"d"]


def test_values_are_spread_over_the_rows_that_have_them() -> None:
    dense = blobs(b"x", b"a", b"bc").slice(1)
    assert binary.spread(dense, np.array([1, 3]), 5).to_pylist() == [b"", b"a", b"", b"bc", b""]
    assert binary.spread(blobs(), np.empty(0, np.int64), 2).to_pylist() == [b"", b""]
