"""The words of messages: counts, and paths in one line."""

from __future__ import annotations

import pytest

from akrunner.folders.words import counted, printable, quoted


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (999, "999 files"), (2_000_000, "2,000,000 files")]
)
def test_a_number_has_its_noun(number: int, words: str) -> None:
    assert counted(number, "file") == words


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
