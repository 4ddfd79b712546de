"""What the parts of a word come to, in words: where bash parts them, and where an empty one stays."""

from __future__ import annotations

import pytest

from akrunner.pai_mode.shell.bits import Bit, fields, listed, of, unknown, whole
from akrunner.pai_mode.shell.flow import MARK

UNKNOWN = f"{MARK}x{MARK}"


def words(*bits: Bit, between: str | None = None) -> list[str]:
    return ["".join(text for text, _ in pieces) for pieces in fields(bits, between)]


def text(value: str, quoted: bool = False) -> Bit:
    """One that the script writes."""
    return Bit(value, quoted, written=True)


@pytest.mark.parametrize(
    "bits, made",
    [
        ([], []),
        ([text("a")], ["a"]),
        ([text("a b")], ["a b"]),
        ([of("a  b\tc\nd", False)], ["a", "b", "c", "d"]),
        ([of("a  b", True)], ["a  b"]),
        ([of(" a ", False)], ["a"]),
        ([text("x"), of(" a ", False), text("y")], ["x", "a", "y"]),
        ([text("x"), of("a b", False), text("y")], ["xa", "by"]),
        ([text("x"), of("", False), text("y")], ["xy"]),
        ([of("", False)], []),
        ([of("   ", False)], []),
        ([of("", True)], [""]),
        ([text("", True)], [""]),
        ([text("", True), of(" a", False)], ["", "a"]),
    ],
)
def test_what_is_not_quoted_is_parted_at_blanks(bits: list[Bit], made: list[str]) -> None:
    assert words(*bits) == made


@pytest.mark.parametrize(
    "bits, made",
    [
        (listed(["a b", "c"], True), ["a b", "c"]),
        (listed(["a b", "c"], False), ["a", "b", "c"]),
        ([text("x"), *listed(["a b", "c"], True), text("y")], ["xa b", "cy"]),
        (listed(["", "a", ""], True), ["", "a", ""]),
        (listed(["", "a"], False), ["a"]),
        (listed([], True), []),
        (listed([], False), []),
        ([text("x"), *listed([], True), text("y")], ["xy"]),
    ],
)
def test_each_of_a_list_is_a_word(bits: list[Bit], made: list[str]) -> None:
    assert words(*bits) == made


def test_beside_a_list_of_nothing_an_empty_word_stays_where_the_script_writes_it() -> None:
    assert words(text("", True), *listed([], True)) == [""]
    # "$none$@" may be one word or none
    (made,) = fields([of("", True), *listed([], True)], None)
    assert MARK in made[0][0]


def test_what_nobody_knows_is_not_parted() -> None:
    assert words(unknown(f"{MARK}a b{MARK}")) == [f"{MARK}a b{MARK}"]
    assert fields([text("x"), of(UNKNOWN, False)], None) == [[("x", False), (UNKNOWN, False)]]


@pytest.mark.parametrize(
    "value, between, made",
    [
        ("a,b", ",", ["a", "b"]),
        ("a b", ",", ["a b"]),
        ("a b", "", ["a b"]),
        ("a b\nc", "\n", ["a b", "c"]),
        ("a  b", " ", ["a", "b"]),
        ("a,,b", ",", [f"{MARK}IFS{MARK}"]),
        (",a", ",", [f"{MARK}IFS{MARK}"]),
        ("a,b", ", ", [f"{MARK}IFS{MARK}"]),
        ("a", UNKNOWN, [f"{MARK}IFS{MARK}"]),
        ("abc", ", ", ["abc"]),
    ],
)
def test_what_stands_between_words_is_what_the_script_sets(value: str, between: str, made: list[str]) -> None:
    assert words(of(value, False), between=between) == made


def test_all_stay_one_word_where_one_is_wanted() -> None:
    assert whole([text("x"), *listed(["a", "b"], False, ","), of("", True)]) == [
        ("x", False), ("a", False), (",", True), ("b", False), ("", True)
    ]  # fmt: skip
    assert whole([]) == []


def test_an_empty_one_in_a_list_that_stays_one_word_is_not_guessed() -> None:
    ((made, quoted),) = whole(listed(["a", "", "b"], False))
    assert MARK in made and quoted
    assert whole([of("", False), of("a", False), *listed(["b", "c"], False)])[0] == ("", False)
    assert "".join(one for one, _ in whole(listed(["a", "", "b"], True))) == "a  b"
