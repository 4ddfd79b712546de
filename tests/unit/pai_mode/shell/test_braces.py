"""`{a,b}` and `{1..3}` become the words that bash makes of them, in front of every other expansion."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import braces
from akrunner.pai_mode.shell.nodes import Part, Word
from akrunner.pai_mode.shell.syntax import Parser


def expanded(text: str) -> list[str]:
    return ["".join(part.text for part in word.parts) for word in braces.words(Parser(text).word())]


@pytest.mark.parametrize(
    "text, words",
    [
        ("a", ["a"]),
        ("x{a,b}y", ["xay", "xby"]),
        ("{a,b}{1,2}", ["a1", "a2", "b1", "b2"]),
        ("{a,{b,c}d}", ["a", "bd", "cd"]),
        ("{a,}", ["a", ""]),
        ("x{,y}", ["x", "xy"]),
        ("{a,b}}", ["a}", "b}"]),
        ("{{a,b}", ["{a", "{b"]),
        ("{a,'b,c'}", ["a", "b,c"]),
        ("{a}", ["{a}"]),
        ("{}", ["{}"]),
        ("{a,b", ["{a,b"]),
        (r"\{a,b}", ["{a,b}"]),
        ("'{a,b}'", ["{a,b}"]),
        ("{1..3,x}", ["1..3", "x"]),
    ],
)
def test_a_comma_in_braces_makes_a_word_each(text: str, words: list[str]) -> None:
    assert expanded(text) == words


@pytest.mark.parametrize(
    "text, words",
    [
        ("{1..3}", ["1", "2", "3"]),
        ("{3..1}", ["3", "2", "1"]),
        ("{-1..1}", ["-1", "0", "1"]),
        ("{01..10..3}", ["01", "04", "07", "10"]),
        ("{8..010}", ["008", "009", "010"]),
        ("{-01..1}", ["-01", "000", "001"]),
        ("{10..0..5}", ["10", "5", "0"]),
        ("{0..10..-5}", ["0", "5", "10"]),
        ("{1..2..0}", ["1", "2"]),
        ("{a..e..2}", ["a", "c", "e"]),
        ("{C..A}", ["C", "B", "A"]),
        ("t{1..2}x", ["t1x", "t2x"]),
        ("{1..a}", ["{1..a}"]),
        ("{1..}", ["{1..}"]),
        ("{1.5..2}", ["{1.5..2}"]),
    ],
)
def test_two_points_in_braces_make_a_sequence(text: str, words: list[str]) -> None:
    assert expanded(text) == words


def test_what_is_expanded_later_stays_as_it_is() -> None:
    first, second = braces.words(Parser('x{a,$b}"c d"', 7).word())
    assert first == Word([Part("text", "xa", False), Part("text", "c d", True)], 7)
    assert second.parts == [Part("text", "x", False), Part("name", "b", False), Part("text", "c d", True)]
    assert expanded("{$a..3}") == ["{a..3}"]


def test_a_name_behind_which_braces_stand_needs_its_own() -> None:
    with pytest.raises(ConfigError, match=r"line 3: in braces \$x takes what stands behind them into its name: write \$\{x\}"):
        braces.words(Parser("$x{a,b}", 3).word())
    assert expanded("${x}{a,b}") == ["xa", "xb"] and expanded("$x{-,.}") == ["x-", "x."]


@pytest.mark.parametrize(
    "text, told",
    [
        ("{1..5001}", r"line 2: \{1..5001\} makes more than 5,000 words"),
        (f"{{1..{2**63}}}", "makes more than 5,000 words"),
        ("{1..100}{1..51}", "line 2: the braces make more than 5,000 words"),
        ("{A..c}", "line 2: akrunner does not read {A..c}, from one case to the other"),
        ("{'a,b'..c}", r"line 2: akrunner does not read a `..` beside a quoted comma in braces"),
    ],
)
def test_what_is_not_expanded_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        braces.words(Parser(text, 2).word())


def test_as_many_words_as_may_be() -> None:
    assert len(expanded("{1..5000}")) == 5000
