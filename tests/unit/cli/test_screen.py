"""What is printed cannot steer a terminal."""

from __future__ import annotations

import pytest

import akrunner
from akrunner.cli.guarded import ended
from akrunner.folders.words import harmless, printable


def test_control_characters_are_shown_as_they_are_written() -> None:
    assert harmless("größe 🙂 a\tb\nc") == "größe 🙂 a\tb\nc"
    assert harmless("\x1b[2Jred\x07\x00\x9b\u202e") == "\\x1b[2Jred\\x07\\x00\\x9b\\u202e"


def test_a_name_is_one_line() -> None:
    assert printable("a\n\tb\x1b[2J\ud800") == "a\\n\\tb\\x1b[2J\\ud800"


def test_a_bar_of_progress_in_the_end_of_a_log_stays_readable() -> None:
    """As Keras writes it into a file."""
    assert harmless("\x1b[1m1/3\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━\x1b[0m") == "1/3 ━━━"
    assert harmless("a\n1/3 ━━━ 2s" + "\b" * 10 + "\r2/3 ━━━" + "\b" * 8 + "\r\nb\r\n\r") == "a\n2/3 ━━━\nb\n"


def test_spaces_and_joins_of_other_scripts_stay() -> None:
    for text in ("全角\u3000空白", "5\xa0km", "👨\u200d👩"):
        assert harmless(text) == text


def test_an_error_that_quotes_data_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> int:
        raise akrunner.ReadError("invalid value '\x1b]0;title\x07'\nline 2")

    ended(run, False)
    assert capsys.readouterr().err == "akrunner: ReadError: invalid value '\\x1b]0;title\\x07' [AK550]\nline 2\n"
