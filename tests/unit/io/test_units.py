"""Texts as UTF-16 units and back, a column at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.io.units import cut, texts_of, units_of, within

TEXTS = ["", "a", "\0", "é", "€", "\U0001f600x", "", "\ud7ff\ue000", "\uffff"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_units_are_those_of_java(kind: pa.DataType) -> None:
    units, lengths = units_of(pa.array(TEXTS, kind))
    assert lengths.tolist() == [len(text.encode("utf-16-le")) // 2 for text in TEXTS]
    assert units.tobytes() == "".join(TEXTS).encode("utf-16-le")


def test_units_become_the_same_texts_again() -> None:
    found = texts_of(*units_of(pa.array(TEXTS)))
    assert found.type == pa.string() and found.to_pylist() == TEXTS
    found.validate(full=True)


def test_a_slice_has_only_its_own_units() -> None:
    units, lengths = units_of(pa.array(["é€", "ab", "\U0001f600", "c"]).slice(1, 2))
    assert lengths.tolist() == [2, 2] and units.tobytes().decode("utf-16-le") == "ab\U0001f600"


def test_a_column_without_texts() -> None:
    units, lengths = units_of(pa.array([], pa.string()))
    assert not len(units) and not len(lengths)
    assert texts_of(units, lengths).to_pylist() == []
    assert texts_of(units, np.array([0, 0])).to_pylist() == ["", ""]


@pytest.mark.parametrize("units", [[0xD83D], [0xDE00], [0xD83D, 0x61], [0x61, 0xD83D]])
def test_half_a_character_is_refused(units: list[int]) -> None:
    with pytest.raises(UnicodeDecodeError):
        texts_of(np.array(units, np.uint16), np.array([len(units)]))


@pytest.mark.parametrize(
    ("bodies", "sizes", "counts", "want"),
    [
        (["a bc  "], [1, 2, 0], [3], ["a", "bc", ""]),
        (["a ", "", "é \U0001f600 "], [1, 1, 2], [1, 0, 2], ["a", "é", "\U0001f600"]),
        (["a  b "], [1, -1, 1], [3], ["a", None, "b"]),
        ([" ", " "], [-1, 0], [1, 1], [None, ""]),
        (["x y "], [3], [1], ["x y"]),
        (["", ""], [], [0, 0], []),
        ([], [], [], []),
    ],
)
def test_texts_are_cut_out_of_bodies(bodies: list[str], sizes: list[int], counts: list[int], want: list[Any]) -> None:
    found = cut(pa.array(bodies, pa.string()), np.array(sizes, np.int64), np.array(counts, np.int64))
    assert found.to_pylist() == want


@pytest.mark.parametrize(
    ("begin", "lengths", "want"),
    [([5, 0, 9], [2, 0, 3], [5, 6, 9, 10, 11]), ([7, 3], [1, 2], [7, 3, 4]), ([4], [0], []), ([], [], [])],
)
def test_the_elements_of_stretches(begin: list[int], lengths: list[int], want: list[int]) -> None:
    assert within(np.array(begin, np.int64), np.array(lengths, np.int64)).tolist() == want
