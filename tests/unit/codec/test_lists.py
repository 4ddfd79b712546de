"""Lists of any of Arrow's types, made from values that lie end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.codec.lists import listed, misfit
from akrunner.schema import Field

TENSOR = pa.fixed_shape_tensor(pa.int64(), (2, 1))


def offsets(*ends: int) -> np.ndarray[Any, Any]:
    return np.array([0, *ends], np.int64)


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64())], ids=str)
@pytest.mark.parametrize(
    ("ends", "there", "want"),
    [
        ((2, 2, 3), None, [[1, 2], [], [3]]),
        ((2, 2, 3), [True, False, True], [[1, 2], None, [3]]),
        ((3,), [True], [[1, 2, 3]]),
    ],
)
def test_lists_of_any_length(kind: pa.DataType, ends: tuple[int, ...], there: Any, want: list[Any]) -> None:
    mask = None if there is None else np.array(there)
    made = listed(Field("x", kind), pa.array([1, 2, 3]), offsets(*ends), mask)
    assert made.type == kind and made.to_pylist() == want
    made.validate(full=True)


def test_no_rows_are_no_lists() -> None:
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2), TENSOR):
        made = listed(Field("x", kind), pa.array([], pa.int64()), offsets(), None)
        assert made.type == kind and len(made) == 0


@pytest.mark.parametrize(
    ("ends", "there", "want"),
    [
        ((2, 4, 6), None, [["a", "b"], ["c", "d"], ["e", "f"]]),
        ((2, 2, 4), [True, False, True], [["a", "b"], None, ["c", "d"]]),
        ((0, 2, 2), [False, True, False], [None, ["a", "b"], None]),
        ((0, 0), [False, False], [None, None]),
    ],
)
def test_lists_of_one_length_keep_their_rows_around_a_null(ends: tuple[int, ...], there: Any, want: list[Any]) -> None:
    kind = pa.list_(pa.string(), 2)
    values = pa.array(["a", "b", "c", "d", "e", "f"][: ends[-1]], pa.string())
    made = listed(Field("x", kind), values, offsets(*ends), None if there is None else np.array(there))
    made.validate(full=True)
    assert made.type == kind and made.to_pylist() == want


def test_tensors_are_of_their_type() -> None:
    made = listed(Field("x", TENSOR), pa.array([1, 2, 3, 4]), offsets(2, 2, 4), np.array([True, False, True]))
    assert made.type == TENSOR and made.storage.to_pylist() == [[1, 2], None, [3, 4]]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64(), 2), TENSOR], ids=["list", "tensor"])
@pytest.mark.parametrize(
    ("ends", "there", "row", "count"),
    [((2, 3), None, 1, 1), ((0, 2), None, 0, 0), ((2, 5), None, 1, 3), ((0, 3), [False, True], 1, 3)],
)
def test_a_list_of_another_length_is_told_with_its_row(
    kind: pa.DataType, ends: tuple[int, ...], there: Any, row: int, count: int
) -> None:
    found = misfit(Field("x", kind), offsets(*ends), None if there is None else np.array(there))
    assert found is not None and found[0] == row
    assert f"has {count} values" in found[1] and "has 2 a row" in found[1]


def test_lists_that_fit() -> None:
    assert misfit(Field("x", pa.list_(pa.int64(), 2)), offsets(2, 2, 4), np.array([True, False, True])) is None
    assert misfit(Field("x", TENSOR), offsets(2, 4), None) is None
    assert misfit(Field("x", pa.list_(pa.int64())), offsets(), None) is None


def test_more_values_than_offsets_of_32_bits_can_count() -> None:
    assert misfit(Field("x", pa.list_(pa.int8())), offsets(2**31 - 1), None) is None
    found = misfit(Field("x", pa.list_(pa.int8())), offsets(5, 2**31), None)
    assert found is not None and "has 2147483648 values in one batch; write fewer rows" in found[1]
    assert misfit(Field("x", pa.large_list(pa.int8())), offsets(5, 2**31), None) is None
