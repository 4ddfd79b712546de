"""Object arrays that say of which type their numbers were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from akrunner.worker import chunks, objects

NAN = float("nan")


@pytest.mark.parametrize(
    ("numbers", "of", "then"),
    [
        (np.array([0.5, NAN, float("inf")]), "float32", "float32"),
        (np.array([0.1]), "float32", "float64"),
        (np.array([1e300]), "float32", "float64"),
        (np.array([1, -2]), "int8", "int8"),
        (np.array([1, 300]), "int8", "int64"),
        (np.array([-1]), "uint64", "int64"),
        (np.array([2**64 - 1], np.uint64), "int64", "uint64"),
        (np.array([1, 2]), "float32", "float32"),
        (np.array([2**24 + 1]), "float32", "int64"),
        (np.array([2**63 - 1]), "float64", "int64"),
        (np.array([True]), "bool", "bool"),
        # another kind of value is another kind of column
        (np.array([True]), "int64", "bool"),
        (np.array([1]), "bool", "int64"),
        (np.array([1.0]), "int64", "float64"),
    ],
)
def test_a_type_is_taken_that_holds_every_number(numbers: Any, of: str, then: str) -> None:
    made = objects.as_they_were(numbers, of)
    assert made.dtype.name == then and str(made.tolist()).replace(".0", "") == str(numbers.tolist()).replace(".0", "")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("int32", "int32"), ("Int32", "int32"), ("float", "float32"), ("double", "float64"), ("halffloat", "float16"), ("boolean", "bool"),
        ("Float32", "float32"), ("double[pyarrow]", "float64"), ("string", None), ("date32[day]", None), ("list<item: float>", None),
        ("List(Float32)", None), ("object", None), ("bytes", None), ("float128", None),
    ],
)  # fmt: skip
def test_names_of_libraries(words: str, name: str | None) -> None:
    assert objects.named(words) == name


def test_a_column_with_none_says_what_its_numbers_were() -> None:
    column = chunks.with_nulls(
        {"x": chunks.Nulled("x", np.float32([1, 2]), np.array([True, False])), "s": chunks.Nulled("s", np.array([b"", b"a"], object), np.array([False, True]))},
        "none",
    )  # fmt: skip
    assert column["x"].tolist() == [1.0, None] and column["s"].tolist() == [None, b"a"]
    assert column["x"].dtype == object and type(column["x"][0]) is float
    for kept in (column["x"], column["x"][1:], column["x"][[0, 0]], column["x"].copy(), column["x"][column["x"] != None]):  # noqa: E711
        assert objects.type_of(kept) == "float32"
    assert objects.type_of(column["s"]) is None and objects.type_of(np.float32([1])) is None and objects.type_of([1]) is None
