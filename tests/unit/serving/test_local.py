"""Rows of a predictor, before they travel."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from akrunner.errors import DataError
from akrunner.io.frames import from_pandas
from akrunner.schema import Schema
from akrunner.serving import local

ROWS = Schema.from_arrow(pa.schema([("x", pa.float32()), ("v", pa.list_(pa.float32(), 2)), ("c", pa.string())]))


def test_frames_become_what_the_model_takes() -> None:
    frame = pd.DataFrame({"more": [0, 0], "c": pd.Categorical(["a", "b"]), "x": [1.5, 2.0], "v": [np.ones(2), np.zeros(2)]})
    assert local._typed(ROWS, from_pandas(frame)).to_pylist() == [
        {"x": 1.5, "v": [1.0, 1.0], "c": "a"},
        {"x": 2.0, "v": [0.0, 0.0], "c": "b"},
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"x": [2**24 + 1], "v": [[1.0, 2.0]], "c": ["a"]},
            "column 'x' .* int64, does not fit float: 16777217 would become 16777216",
        ),
        ({"x": [1.0], "v": [[1.0]], "c": ["a"]}, "column 'v' of the rows"),
        ({"x": [1.0], "V": [[1.0]], "c": ["a"]}, "the rows have no column 'v'; did you mean 'V'"),
    ],
)
def test_frames_that_are_none_of_its_rows(given: object, said: str) -> None:
    with pytest.raises(DataError, match=said):
        local._typed(ROWS, pa.table(given))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"v": "ab"}, r"row 0, column 'v': .*: it is the text 'ab', and no list of numbers"),
        ({"v": b"ab"}, r"column 'v': .*: it is the text b'ab', and no list of numbers"),
        ({"v": [1.0]}, r"column 'v': .*: Length of item not correct"),
        ({"v": "ab" * 999}, r"column 'v': .*\(2000 characters\)"),
        ({"x": [0.5] * 999}, r"column 'x': its value does not fit float: Could not convert \[0.5, 0.5, .*\.\.\.$"),
    ],
)
def test_values_that_do_not_fit_are_told_in_a_line(row: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=said) as refused:
        local._batch(ROWS, [{"x": 1.0, "v": [1.0, 2.0], "c": "a", **row}])
    assert len(str(refused.value)) < 700


def test_a_vector_that_is_no_row_is_not_told_whole() -> None:
    with pytest.raises(
        DataError, match=r"row 0 must be a dict, or 3 values: x, v, c; it is \[0.5, 0.5, .*characters\)$"
    ) as refused:
        local._batch(ROWS, [[0.5] * 999])
    assert len(str(refused.value)) < 200


def test_a_text_may_be_a_list_of_one_text() -> None:
    rows = Schema.from_arrow(pa.schema([("s", pa.list_(pa.string()))]))
    assert local._batch(rows, [{"s": "ab"}]).to_pylist() == [{"s": ["ab"]}]


def test_a_predictor_shows_what_it_takes_and_gives() -> None:
    predictor = local.LocalPredictor.__new__(local.LocalPredictor)
    predictor.input_schema, predictor.output_schema = ROWS, pa.schema([("y", pa.float32())])
    predictor._requests = local._Requests(pa.record_batch({}))
    assert repr(predictor) == "<LocalPredictor: x float, v fixed_size_list<item: float>[2], c string -> y float>"
    predictor._requests.close()
    assert repr(predictor).endswith(" (closed)>")
    assert local._in_words(Schema.parse(", ".join(f"c{i} int" for i in range(10)))).endswith("c7 int32, 2 more")
