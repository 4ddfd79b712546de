"""What is given apart: names that are there, and what they may be."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.worker.parts import WEIGHT, Parts
from akrunner.worker.reading import Reading

SCHEMA: list[dict[str, Any]] = [
    {"name": "x", "type": "float", "kind": "float", "shape": []},
    {"name": "y", "type": "bigint", "kind": "int64", "shape": []},
    {"name": "w", "type": "double", "kind": "float", "shape": []},
    {"name": "name", "type": "string", "kind": "bytes", "shape": []},
    {"name": "pair", "type": "FLOAT_TENSOR", "kind": "float", "shape": [2]},
    {"name": "many", "type": "array<float>", "kind": "float", "shape": None},
]


@pytest.mark.parametrize(
    "asked, words",
    [
        ({"label": "z"}, "label='z' is not a column; columns: x, y, w, name, pair, many"),
        ({"label": ["y"]}, r"label=\['y'\] is not a column"),
        ({"label": "y", "weights": "z"}, "weights='z' is not a column; columns: x, y, w, name, pair, many"),
        ({"weights": "w"}, "weights='w' without label="),
        ({"label": "w", "weights": "w"}, "label= and weights= are both 'w'"),
        ({"label": "y", "weights": "name"}, "a weight is a number for each row, and the column is string"),
        ({"label": "y", "weights": "pair"}, "the column is FLOAT_TENSOR"),
        ({"label": "y", "weights": "many"}, "the column is array<float>"),
    ],
)
def test_refused_with_words(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Parts(**asked).check(SCHEMA, Reading())


@pytest.mark.parametrize("asked", [{"label": "y"}, {"label": "y", "weights": "w"}])
def test_files_have_no_columns_to_part(asked: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="label='y' and interleave=: .* part it in map="):
        Parts(**asked).check(SCHEMA, Reading(interleave=lambda row: row))


def test_a_map_is_called_with_the_weights() -> None:
    Parts("y", "w").check(SCHEMA, Reading(map=lambda x, y, w: (x, y, w)))
    with pytest.raises(TypeError, match=r"is called with \(features, label, weight\)"):
        Parts("y", "w").check(SCHEMA, Reading(map=lambda x, y: (x, y)))


def test_what_is_read() -> None:
    assert Parts("y", "w").taken(["x"]) == ["x", "y", "w"]
    assert Parts("y", "w").taken(["w", "x"]) == ["w", "x", "y"]
    assert Parts("y", "w").taken(None) is None and Parts().taken(["x"]) == ["x"]


def test_rows_made_up_have_a_weight_of_their_own_only_if_the_table_has_none() -> None:
    named = [dict(column, name=WEIGHT if column["name"] == "w" else column["name"]) for column in SCHEMA]
    assert Parts("y", padded=True).made and not Parts("y", "w", padded=True).made and not Parts("y").made
    with pytest.raises(ValueError, match="the table has one: give label= and weights='sample_weight'"):
        Parts("y", padded=True).check(named, Reading())
    Parts("y", WEIGHT, padded=True).check(named, Reading())


def test_parted() -> None:
    batch = {"x": 1, "y": 2, WEIGHT: 3}
    assert Parts("y", padded=True).of(batch) == ({"x": 1}, 2, 3)
    assert Parts("y").of({"x": 1, "y": 2}) == ({"x": 1}, 2)
    assert Parts(padded=True).of(batch) == batch
