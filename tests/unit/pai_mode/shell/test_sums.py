"""Sums of a shell script are reckoned as bash does it, with its precedence, its octal numbers and its assignments."""

from __future__ import annotations

import pytest

from akrunner.pai_mode.shell.sums import Sums, Unsure, Wrong, names, number


class Held:
    """Variables that a sum reads and sets. Those that are not there are empty; None: nobody knows."""

    def __init__(self, **values: str | None) -> None:
        self.values = values
        self.given: list[tuple[str, str]] = []

    def assign(self, name: str, value: str) -> None:
        self.values[name] = value
        self.given.append((name, value))

    def reckon(self, text: str) -> int:
        return Sums(lambda name: self.values.get(name, ""), self.assign).reckon(text)


@pytest.mark.parametrize(
    "text, value",
    [("0", 0), ("42", 42), ("010", 8), ("0x1f", 31), ("0XFF", 255), ("10#08", 8), ("2#101", 5), ("36#z", 35), (str(2**63 - 1), 2**63 - 1)],
)  # fmt: skip
def test_a_number_as_it_is_written(text: str, value: int) -> None:
    assert number(text) == value


def test_a_number_that_bash_does_not_take_is_told_how_to_be_written() -> None:
    with pytest.raises(Wrong, match="08 begins with 0 and is no octal number: write 10#08"):
        number("08")
    with pytest.raises(Wrong, match="2#3"):
        number("2#3")


@pytest.mark.parametrize("text", [str(2**63), "1#0", "64#z"])
def test_a_number_of_more_bits_or_of_another_base_is_not_guessed(text: str) -> None:
    with pytest.raises(Unsure):
        number(text)


@pytest.mark.parametrize(
    "text, value",
    [
        ("", 0),
        ("  ", 0),
        ("2+3*4", 14),
        ("(2 + 3) * 4", 20),
        ("10 - 3 - 2", 5),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", 4),
        ("- - 3", 3),
        ("!5 + ~0", -1),
        ("1 << 4 >> 1", 8),
        ("5 & 3 | 8 ^ 1", 9),
        ("3 > 2 > 1", 0),
        ("1 <= 1 == 1 != 0", 1),
        ("2 && 3", 1),
        ("0 || 0", 0),
        ("0 ? 2 : 1 ? 4 : 5", 4),
        ("1, 2, 3", 3),
    ],
)
def test_signs_bind_as_in_bash(text: str, value: int) -> None:
    assert Held().reckon(text) == value


@pytest.mark.parametrize(
    "text, value, left",
    [
        ("x", 5, "5"),
        ("x++", 5, "6"),
        ("x--", 5, "4"),
        ("++x", 6, "6"),
        ("--x", 4, "4"),
        ("x = 7", 7, "7"),
        ("x += 2", 7, "7"),
        ("x %= 3", 2, "2"),
        ("x <<= 1", 10, "10"),
        ("x = x * 2 + 1", 11, "11"),
        ("x += x++", 10, "10"),
        ("none + x", 5, "5"),
    ],
)
def test_a_variable_gets_what_bash_gives_it(text: str, value: int, left: str) -> None:
    held = Held(x="5")
    assert held.reckon(text) == value
    assert held.values["x"] == left


def test_several_variables_are_set_from_right_to_left() -> None:
    held = Held()
    assert held.reckon("a = b = 3") == 3
    assert held.given == [("b", "3"), ("a", "3")]


@pytest.mark.parametrize(
    "text, value", [("0 && x++", 0), ("1 || (x = 9)", 1), ("1 ? 2 : x++", 2), ("0 ? x++ : 3", 3), ("0 && 1 / 0", 0), ("0 && unknown", 0)]
)  # fmt: skip
def test_what_is_passed_over_sets_nothing_and_needs_no_value(text: str, value: int) -> None:
    held = Held(x="5", unknown=None)
    assert held.reckon(text) == value
    assert not held.given


@pytest.mark.parametrize("text", ["unknown + 1", "unknown * 0", "x = unknown", "unknown++", "unknown ? 1 : 2"])
def test_of_a_value_nobody_knows_no_sum_is_known(text: str) -> None:
    held = Held(unknown=None)
    with pytest.raises(Unsure):
        held.reckon(text)
    assert not held.given


@pytest.mark.parametrize("text", ["9223372036854775807 + 1", "2 ** 63", "3 ** 65", "1 << 64", "1 << -1", "1 . 2", "'1'", "a[0"])
def test_what_is_not_followed_is_not_guessed(text: str) -> None:
    with pytest.raises(Unsure):
        Held(a="1").reckon(text)


@pytest.mark.parametrize(
    "text, told",
    [
        ("1 / 0", "divides by 0"),
        ("1 % (2 - 2)", "divides by 0"),
        ("1 +", "a number is missing at the end"),
        ("1 + * 2", r"missing in front of `\*`"),
        ("(1", r"a \) is missing"),
        ("1 ? 2", "a `:` is missing"),
        (" 1 2 ", "`1 2` is no sum"),
        ("3 = 4", "is no sum"),
        ("2 ** -1", "exponent is less than 0"),
        ("08 + 1", "no octal number"),
        ("x", "x holds a sum that sets a variable"),
    ],
)
def test_what_bash_refuses_is_told(text: str, told: str) -> None:
    with pytest.raises(Wrong, match=told):
        Held(x="y = 1").reckon(text)


@pytest.mark.parametrize("held, value", [("", 0), (" ", 0), (" 12 ", 12), ("-3", -3), ("+4", 4), ("010", 8), ("10#09", 9)])
def test_a_variables_text_is_a_number_as_a_written_one(held: str, value: int) -> None:
    assert Held(x=held).reckon("x") == value


def test_a_variable_that_holds_a_sum_is_not_followed() -> None:
    with pytest.raises(Unsure):
        Held(x="1 + 1").reckon("x")


def test_names_are_those_that_may_be_set() -> None:
    assert names("i++ + j, --k, x = 1, y += a, z == 3, b <= c, d <<= 2, e != f") == ["i", "k", "x", "y", "d"]
    assert names("1 + a * b") == []
