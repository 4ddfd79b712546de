"""The words of messages: paths in one line."""

from __future__ import annotations

import pytest

from akrunner.folders.words import printable, quoted


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
