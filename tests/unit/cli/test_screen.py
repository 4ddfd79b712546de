"""What is printed cannot steer a terminal."""

from __future__ import annotations

import pytest

import akrunner
from akrunner.cli.guarded import ended
from akrunner.cli.screen import harmless


def test_control_characters_are_shown_as_they_are_written() -> None:
    assert harmless("größe 🙂 a\tb\nc") == "größe 🙂 a\tb\nc"
    assert harmless("\x1b[31mred\x07\x00\r\x9b") == "\\x1b[31mred\\x07\\x00\\r\\x9b"


def test_an_error_that_quotes_data_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> int:
        raise akrunner.ReadError("invalid value '\x1b]0;title\x07'\nline 2")

    ended(run, False)
    assert capsys.readouterr().err == "akrunner: ReadError: invalid value '\\x1b]0;title\\x07'\nline 2\n"
