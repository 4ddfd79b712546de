"""What is shown of texts that may have come from anywhere."""

from __future__ import annotations

from akrunner.checkup.lines import OK, Line
from akrunner.checkup.plain import plain, shown


def test_nothing_a_terminal_obeys() -> None:
    line = plain(Line("task\x1b[2J\nok", OK, "bell\a\rgone\x9b1m\u202e\ttab\nnext", "do\x00"))
    assert line.found.endswith("\ttab\nnext") and "\n" not in line.about
    assert all(letter.isprintable() or letter in "\t\n" for letter in line.about + line.found + line.do)


def test_not_without_end() -> None:
    text = shown("x" * 100_000 + "\n" * 100_000)
    assert len(text) < 5000 and len(shown("a\n" * 100_000).splitlines()) < 100


def test_values_of_variables() -> None:
    key = '{"a": "one//two"}'
    assert shown(f"made {key} and /x/{key.replace('//', '/')}", {"KEY": key}).count("what KEY holds") == 2
    assert shown("a host-of-ours", {"HOSTNAME": "host-of-ours", "NOTE": "{x}"}) == "a host-of-ours"
