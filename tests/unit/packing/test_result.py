"""The words in which a run of `pack` tells its result: sizes, and paths in one line."""

from __future__ import annotations

import pytest

from akrunner.packing.result import Packed, printable, quoted, size_in_words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (4_240, "4.2 kB"),
        (1_000_000, "1.0 MB"),
        (1_234_500_000, "1,234.5 MB"),
    ],
)
def test_a_size_is_told_in_the_unit_that_suits_it(size: int, words: str) -> None:
    assert size_in_words(size) == words


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a b.jpg", "a b.jpg"),
        ("caf\u00e9/\u56fe.jpg", "caf\u00e9/\u56fe.jpg"),
        ("a\nb", r"a\nb"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\u202eb", r"a\u202eb"),
        ("", ""),
    ],
)
def test_a_text_is_one_line_without_control_characters(text: str, line: str) -> None:
    assert printable(text) == line


@pytest.mark.parametrize(
    ("path", "shown"), [("a b", "a b"), ("a ", "'a '"), (" a", "' a'"), ("\ta", r"'\ta'"), ("", ""), ("a\nb", r"a\nb")]
)
def test_a_path_has_quotes_only_where_blanks_at_its_ends_would_not_be_seen(path: str, shown: str) -> None:
    assert quoted(path) == shown


def test_lists_of_a_result_are_its_own() -> None:
    one, two = (Packed("out", "rows", {}, 0, 0, 0, 0, []) for _ in range(2))
    one.warnings.append("w")
    one.skipped.append(("a", "broken"))
    assert (two.warnings, two.skipped, two.unfetched, two.label) == ([], [], [], "")
