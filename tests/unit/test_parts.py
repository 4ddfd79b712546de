"""What `tests/parts.py` promises."""

from __future__ import annotations

import os

import pytest

from tests.parts import UNMARKED


def test_a_test_without_markers_starts_neither_tensorflow_nor_java() -> None:
    assert {os.environ[name] for name, _ in UNMARKED.values()} == {words for _, words in UNMARKED.values()}


@pytest.mark.parametrize("marker", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("tensorflow", "flink")])
def test_a_marker_lets_it(marker: str) -> None:
    for markers, (name, words) in UNMARKED.items():
        assert (os.environ.get(name) == words) == (marker not in markers)
