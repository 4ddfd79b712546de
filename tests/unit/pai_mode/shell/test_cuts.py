"""`${x...}`: a part of a value, one without an end, with another text in it, or with other letters."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import cuts
from akrunner.pai_mode.shell.flow import MARK, Field
from akrunner.pai_mode.shell.nodes import Word


def whole(word: Word) -> Field:
    """Of words without expansions; a name is one nobody knows."""
    return Field([(part.text if part.kind == "text" else f"{MARK}{part.text}{MARK}", part.quoted) for part in word.parts])


def reckon(text: str) -> int | None:
    """Of numbers alone; nothing is 0, and of other sums nobody knows."""
    try:
        return int(text or "0")
    except ValueError:
        return None


def cut(value: str, operation: str, quoted: bool = False) -> str | None:
    return cuts.cut(value, operation, quoted, whole, reckon)


@pytest.mark.parametrize(
    "operation, made",
    [
        (":2", "cdef"),
        (":2:3", "cde"),
        (":0:0", ""),
        ("::2", "ab"),
        (":6", ""),
        (":7", ""),
        (": -2", "ef"),
        (": -2:1", "e"),
        (": -7", ""),
        (":1:-1", "bcde"),
        (":2:99", "cdef"),
        (":5:-1", ""),
        (":i", None),
        (":1:i", None),
        (":1 ? 2 : 3", None),
    ],
)
def test_a_part_of_a_value(operation: str, made: str | None) -> None:
    assert cut("abcdef", operation) == made


def test_a_part_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"bash takes no \$\{...:4:-3\} of a text of 6"):
        cut("abcdef", ":4:-3")


@pytest.mark.parametrize(
    "operation, made",
    [
        ("%.*", "a/b.tar"),
        ("%%.*", "a/b"),
        ("#*/", "b.tar.gz"),
        ("#*.", "tar.gz"),
        ("##*.", "gz"),
        ("%.gz", "a/b.tar"),
        ("%nope", "a/b.tar.gz"),
        ("#nope", "a/b.tar.gz"),
        ("%'.*'", "a/b.tar.gz"),
        ("%*", "a/b.tar.gz"),
        ("%%*", ""),
        ("##", "a/b.tar.gz"),
        ("%$x", None),
        ("%@(a)", None),
    ],
)
def test_a_value_without_its_end_or_its_beginning(operation: str, made: str | None) -> None:
    assert cut("a/b.tar.gz", operation) == made


@pytest.mark.parametrize(
    "operation, made",
    [
        ("/b/X", "aXcbc"),
        ("//b/X", "aXcXc"),
        ("/b", "acbc"),
        ("//b", "acc"),
        ("//b/", "acc"),
        ("/b*/X", "aX"),
        ("//?/x", "xxxxx"),
        ("/#a/X", "Xbcbc"),
        ("/#b/X", "abcbc"),
        ("/%c/X", "abcbX"),
        ("/%b/X", "abcbc"),
        ("/#/X", "Xabcbc"),
        ("/%/X", "abcbcX"),
        ("/nope/X", "abcbc"),
        ("/b/1.0", "a1.0cbc"),
        ("/'b'/X", "aXcbc"),
        ("/b/&", None),
        (r"/b/\n", None),
        ("/b/~", None),
        ("/$x/X", None),
        ("/b/$x", None),
        ("//#b/X", None),
    ],
)
def test_another_text_in_place_of_one(operation: str, made: str | None) -> None:
    assert cut("abcbc", operation) == made


def test_quotes_within_quotes_are_not_followed() -> None:
    assert cut("abc", '/b/"X"') == "aXc"
    assert cut("abc", '/b/"X"', quoted=True) is None


def test_a_pattern_of_anything_in_nothing_is_not_guessed() -> None:
    assert cut("", "/*/X") is None and cut("", "/a/X") == "" and cut("abc", "/*/X") == "X"


@pytest.mark.parametrize(
    "value, operation, made",
    [
        ("aBc", "^", "ABc"),
        ("aBc", "^^", "ABC"),
        ("ABc", ",", "aBc"),
        ("ABc", ",,", "abc"),
        ("", "^", ""),
        ("\u00e9", "^^", None),
        ("abc", "^^[a-b]", None),
        ("abc", "@Q", None),
    ],
)
def test_other_letters(value: str, operation: str, made: str | None) -> None:
    assert cut(value, operation) == made


def test_of_other_letters_it_is_the_locales_where_a_part_begins() -> None:
    assert cut("\u4e2d\u6587", ":1") is None
    assert cut("\u4e2d.\u6587", "%.*") == "\u4e2d"


@pytest.mark.parametrize(
    "text, parts",
    [
        ("1:2", ("1", ":", "2")),
        ("1", ("1", "", "")),
        ("", ("", "", "")),
        ("(a?1:2):3", ("(a?1:2)", ":", "3")),
        ("a[1:2]", ("a[1:2]", "", "")),
        ("${x:-1}:2", ("${x:-1}", ":", "2")),
        ("1:2:3", ("1", ":", "2:3")),
    ],
)
def test_the_colon_between_both_numbers_stands_in_no_bracket(text: str, parts: tuple[str, str, str]) -> None:
    assert cuts.halves(text) == parts
