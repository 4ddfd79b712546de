"""What tests of a shell script come to: `[ ]`, `[[ ]]`, patterns of `case`, and that what nobody knows is not guessed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from akrunner.pai_mode.shell import flow
from akrunner.pai_mode.shell.flow import DONE_MARK, MARK, Field, State

UNKNOWN = f"{MARK}x{MARK}"


def look(test: str, path: str) -> bool | None:
    """Of files: `there` is one, of `unsure` nobody knows."""
    return None if path == "unsure" else path == "there"


def quoted(*texts: str) -> list[Field]:
    return [Field([(text, True)]) for text in texts]


def loose(*texts: str) -> list[Field]:
    return [Field([(text, False)]) for text in texts]


@pytest.mark.parametrize(
    "state, other, known, likely",
    [
        (State.YES, State.NO, True, True),
        (State.NO, State.YES, False, False),
        (State.UNKNOWN, State.UNKNOWN, None, None),
        (State.DONE, State.UNDONE, None, True),
        (State.UNDONE, State.DONE, None, False),
        (State.HOPED, State.FEARED, None, True),
        (State.FEARED, State.HOPED, None, False),
    ],
)
def test_what_was_not_run_is_likely_and_not_known(state: State, other: State, known: bool | None, likely: bool | None) -> None:
    assert (state.opposite, state.known, state.likely) == (other, known, likely)


def test_one_that_decides_does_so_beside_what_nobody_knows() -> None:
    assert [flow.both(one, other) for one, other in ((True, True), (True, None), (None, None), (None, False), (False, None))] == [
        True, None, None, False, False
    ]  # fmt: skip
    assert [flow.either(one, other) for one, other in ((False, False), (False, None), (None, None), (None, True), (True, None))] == [
        False, None, None, True, True
    ]  # fmt: skip
    assert [flow.of(one) for one in (True, False, None)] == [State.YES, State.NO, State.UNKNOWN]


@pytest.mark.parametrize(
    "pieces, fits, fits_not",
    [
        ([("a*", False)], ["a", "abc", "a\nb"], ["ba", ""]),
        ([("a*", True)], ["a*"], ["abc"]),
        ([("a", False), ("*", True), ("*", False)], ["a*b"], ["abb"]),
        ([("?b", False)], ["ab", "\nb"], ["b", "aab"]),
        ([("[0-9]x", False)], ["3x"], ["ax"]),
        ([("[!0-9]x", False)], ["ax"], ["3x"]),
        ([("[^a-c.]", False)], ["d"], ["b", "."]),
        ([("a.b+", False)], ["a.b+"], ["axb"]),
        ([], [""], ["a"]),
    ],
)
def test_a_pattern_fits_as_in_bash(pieces: list[tuple[str, bool]], fits: list[str], fits_not: list[str]) -> None:
    pattern = Field(pieces).pattern
    assert pattern is not None
    assert [one for one in [*fits, *fits_not] if pattern.match(one)] == fits


@pytest.mark.parametrize("text", [UNKNOWN, r"\*", "[a", "@(a|b)", "+(a)", "[[:digit:]]"])
def test_a_pattern_that_is_not_followed_is_none(text: str) -> None:
    assert Field([(text, False)]).pattern is None


def test_only_what_is_unknown_and_unquoted_is_loose() -> None:
    assert Field([("a", False), (UNKNOWN, False)]).loose
    assert not Field([(UNKNOWN, True), ("a", False)]).loose
    assert not Field([(DONE_MARK, False)]).loose


@pytest.mark.parametrize(
    "text, holds",
    [
        ([], False),
        ([""], False),
        (["x"], True),
        (["-n"], True),
        (["!", ""], True),
        (["!", "x"], False),
        (["-z", ""], True),
        (["-z", "x"], False),
        (["-n", ""], False),
        (["-f", "there"], True),
        (["-f", "nope"], False),
        (["!", "-f", "there"], False),
        (["-f", "unsure"], None),
        (["a", "=", "a"], True),
        (["a", "==", "a*"], False),
        (["a", "!=", "b"], True),
        (["!", "=", "!"], True),
        (["10", "-gt", "9"], True),
        (["10", "-le", "9"], False),
        (["08", "-eq", "8"], True),
        ([" +3 ", "-eq", "3"], True),
        (["-3", "-lt", "-2"], True),
        (["x", "-eq", "3"], None),
        (["", "-eq", "0"], None),
        (["9" * 19, "-gt", "1"], None),
        (["a", "<", "b"], True),
        (["2026-01-10", ">", "2026-01-02"], True),
        (["B", "<", "a"], None),
        (["a_b", "<", "ab"], None),
        (["x", "-nt", "y"], None),
        (["!", "a", "=", "b"], True),
        (["a", "-a", ""], False),
        (["", "-o", "b"], True),
        (["a", "=", "a", "-a", "b", "=", "c"], False),
        (["a", "=", "b", "-o", "b", "=", "b"], True),
        (["-f", "unsure", "-a", "a", "=", "b"], False),
        (["-f", "unsure", "-o", "a", "=", "b"], None),
        (["(", "a", "=", "a", ")"], None),
        (["a", "b"], None),
        (["a", "b", "c", "d"], None),
        ([UNKNOWN, "=", "a"], None),
        (["-n", UNKNOWN], None),
        ([UNKNOWN], None),
    ],
)
def test_a_test_says_by_the_number_of_its_words_what_each_is(text: list[str], holds: bool | None) -> None:
    assert flow.holds(quoted(*text), lambda test, path: look(test, path) if test == "-f" else None) is holds


def test_a_test_of_what_may_be_no_word_or_several_is_not_known() -> None:
    assert flow.holds(loose(UNKNOWN), look) is None
    assert flow.holds(loose("a", "=", "a"), look) is True


def compared(*texts: str) -> bool | None:
    """`[[ ]]` of words; one in double quotes was quoted."""
    words = [Field([(text.strip('"'), text.startswith('"'))]) for text in texts]
    return flow.compares(words, [text in ("&&", "||", "(", ")", "<", ">") for text in texts], look)


@pytest.mark.parametrize(
    "text, holds",
    [
        ("abc == a*", True),
        ("abc = b*", False),
        ('abc == "a*"', False),
        ('"a*" == "a*"', True),
        ("abc != a*", False),
        ("a == b || c == c", True),
        ("a == b && c == c", False),
        ("a == b || c == c && d == e", False),
        ("( a == b || c == c ) && d == d", True),
        ("! a == b", True),
        ("! ( a == b || c == c )", False),
        ("! ! x", True),
        ("a < b", True),
        ("b < a", False),
        ("-f there", True),
        ("-f unsure", None),
        ("-f unsure || a == a", True),
        ("10 -gt 9", True),
        ("010 -eq 8", None),
        ("x", True),
        ('""', False),
        ("a == a a", None),
        ("( a == a", None),
        (f"{UNKNOWN} == a", None),
        (f"a == {UNKNOWN}", None),
        ("", None),
    ],
)
def test_brackets_come_to_what_bash_makes_of_them(text: str, holds: bool | None) -> None:
    assert compared(*text.split(" ")) is holds if text else compared() is holds


@pytest.mark.parametrize(
    "text, pattern, found",
    [
        ("20260101", "^[0-9]{8}$", True),
        ("2026-01", "^[0-9]{8}$", False),
        ("abc", "b", True),
        ("abc\n", "c$", False),
        ("ab", "^(a|x)b$", True),
        ("a1", "[[:digit:]]+", True),
        ("ab", "[[:digit:]]+", False),
        ("axc", "a.c", True),
        ("axc", '"a.c"', False),
        ("a.c", '"a.c"', True),
        ("a", "(a", None),
        ("a", r"\w", None),
        ("a", "(?i)A", None),
        ("aa", "a*?", None),
        ("\u00e9", "^.$", None),
        (UNKNOWN, "a", None),
        ("a", UNKNOWN, None),
    ],
)
def test_a_search_is_known_where_it_means_the_same_to_everybody(text: str, pattern: str, found: bool | None) -> None:
    assert compared(text, "=~", pattern) is found


def test_a_case_fits_one_of_its_patterns() -> None:
    assert flow.fits(Field([("drop", True)]), loose("keep", "dr?p")) is True
    assert flow.fits(Field([("drop", True)]), loose("keep", "d")) is False
    assert flow.fits(Field([("drop", True)]), []) is False
    assert flow.fits(Field([(UNKNOWN, True)]), loose("keep")) is None
    assert flow.fits(Field([("drop", True)]), loose(UNKNOWN, "drop")) is True
    # whatever it is
    assert flow.fits(Field([(UNKNOWN, True)]), loose("keep", "*")) is True
    assert flow.fits(Field([(UNKNOWN, True)]), quoted("*")) is None


def test_a_status_of_what_was_not_run_is_taken_for_0() -> None:
    def ask(words: Sequence[Field]) -> bool | None:
        return flow.holds(words, look)

    assert flow.taken_for_done(ask, quoted(DONE_MARK, "-eq", "0")) is State.HOPED
    assert flow.taken_for_done(ask, quoted(DONE_MARK, "-ne", "0")) is State.FEARED
    assert flow.taken_for_done(ask, quoted(DONE_MARK, "-ne", "0", "-a", "-f", "unsure")) is State.FEARED
    assert flow.taken_for_done(ask, quoted("0", "-eq", "0")) is State.YES
    assert flow.taken_for_done(ask, quoted(UNKNOWN, "-eq", "0")) is State.UNKNOWN


def test_files_are_looked_at(tmp_path: Path) -> None:
    empty, full, link = tmp_path / "empty", tmp_path / "full", tmp_path / "link"
    empty.touch()
    full.write_text("x")
    link.symlink_to(tmp_path / "nope")
    found = {test: [flow.looked(test, str(one)) for one in (tmp_path, empty, full, link)] for test in ("-e", "-f", "-d", "-L")}
    assert found["-e"] == [True, True, True, False] and found["-f"] == [False, True, True, False]
    assert found["-d"] == [True, False, False, False] and found["-L"] == [False, False, False, True]
    assert [flow.looked("-s", str(one)) for one in (empty, full, link)] == [False, True, False]
    assert flow.looked("-k", str(full)) is None
