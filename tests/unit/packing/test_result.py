"""The words in which a run of `pack` tells its result: sizes, and paths in one line."""

from __future__ import annotations

import pytest

from akrunner.packing.result import Packed, size_in_words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (4_240, "4.2 kB"),
        (999_949, "999.9 kB"),
        (999_960, "1.0 MB"),
        (1_000_000, "1.0 MB"),
        (1_234_500_000, "1,234.5 MB"),
    ],
)
def test_a_size_is_told_in_the_unit_that_suits_it(size: int, words: str) -> None:
    assert size_in_words(size) == words


def test_lists_of_a_result_are_its_own() -> None:
    one, two = (Packed("out", "rows", {}, 0, 0, 0, 0, []) for _ in range(2))
    one.warnings.append("w")
    one.skipped.append(("a", "broken"))
    assert (two.warnings, two.skipped, two.unfetched, two.label) == ([], [], [], "")
