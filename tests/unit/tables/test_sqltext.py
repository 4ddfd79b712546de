"""Text of MaxCompute's SQL is cut into words, and texts and names go into quotes and out of them."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.tables.sqltext import Words, line_of, quoted_name, quoted_text, text_of, tokens


@pytest.mark.parametrize(
    "text, words",
    [
        ("", []),
        (" -- a\n/* b\n-- c */ ", []),
        ("a.b=1.5", ["a", ".", "b", "=", "1", ".", "5"]),
        ("select 'a;b', \"c--d\", `e``f`", ["select", "'a;b'", ",", '"c--d"', ",", "`e``f`"]),
        ("'it\\'s' x", ["'it\\'s'", "x"]),
        ("a -- 'b\nc", ["a", "c"]),
        ("a\n# 'b\nc", ["a", "c"]),
        ("größe_1 中", ["größe_1", "中"]),
    ],
)
def test_comments_and_blanks_are_no_words(text: str, words: list[str]) -> None:
    assert [one.text for one in tokens(text)] == words


def test_a_command_has_dashes_in_it_that_are_no_comments() -> None:
    text = "pai -Dx=a--b -- kept\n  -- gone 'x\n#gone\n-Dy='c;d'"
    assert [one.text for one in tokens(text, command=True)] == ["pai", "-Dx=a--b", "--", "kept", "-Dy=", "'c;d'"]


@pytest.mark.parametrize(
    "text, what",
    [("a\n'b", "quote (')"), ('a\n"b', 'quote (")'), ("a\n`b", "quote (`)"), ("a\n/* b", "comment"), ("a\n'b\\'", "quote (')")],
)
def test_what_is_never_closed_is_named_with_its_line(text: str, what: str) -> None:
    with pytest.raises(ConfigError) as told:
        list(tokens(text))
    assert str(told.value) == f"line 2: a {what} is opened here and never closed"


def test_a_token_knows_where_it_stands_and_what_it_means() -> None:
    name, text, word, mark = tokens("`Se``l` 'A\\tb' WORD;")
    assert [(one.kind, one.at, one.end) for one in (name, text, word, mark)] == [
        ("name", 0, 7),
        ("text", 8, 14),
        ("word", 15, 19),
        ("mark", 19, 20),
    ]
    assert [one.low for one in (name, text, word, mark)] == ["", "", "word", ";"]
    assert [one.value for one in (name, text, word)] == ["Se`l", "A\tb", "WORD"]


@pytest.mark.parametrize(
    "quoted, value",
    [
        ("''", ""),
        (r"'\n\t\r\0'", "\n\t\r\0"),
        (r"'\u00e9\x41\101'", "éAA"),
        (r"'\q\\\'\%'", "q\\'%"),
        (r"'\u12'", "u12"),
    ],
)
def test_escapes_in_a_text(quoted: str, value: str) -> None:
    assert text_of(quoted) == value


@pytest.mark.parametrize("value", ["", "a", "it's", 'say "x"', "a\\nb", "a\nb\tc\r", "\\", "中é\x00", "\\'"])
def test_a_text_comes_back_from_its_quotes(value: str) -> None:
    quoted = quoted_text(value)
    assert "\n" not in quoted and text_of(quoted) == value
    assert [one.text for one in tokens(quoted)] == [quoted]


@pytest.mark.parametrize(
    "name, quoted",
    [("a_1", "a_1"), ("Select", "`Select`"), ("a b", "`a b`"), ("1a", "`1a`"), ("a`b", "`a``b`"), ("é", "`é`"), ("", "``")],
)
def test_a_name_is_quoted_where_sql_would_not_take_it(name: str, quoted: str) -> None:
    assert quoted_name(name) == quoted
    if name:
        assert next(tokens(quoted)).value == name


def test_lines_are_counted_from_one() -> None:
    assert [line_of("a\nb\n\nc", at) for at in (0, 1, 2, 5)] == [1, 1, 2, 4]


def test_words_are_taken_one_after_the_other() -> None:
    words = Words("Drop TABLE if exists `p`.T comment 'it''s' 7 rest of it", "drop")
    assert not words.maybe("drop", "view") and words.peek().low == "drop" and words.peek(1).low == "table"
    words.need("drop", "table")
    assert words.maybe("if", "exists") and not words.maybe("if")
    assert words.table() == "p.T"
    words.need("comment")
    assert words.string("a comment") == "it's" and words.number("days") == 7
    assert words.rest() == "rest of it" and not words.done()
    with pytest.raises(ConfigError, match="drop: at 'rest': nothing more was expected: Drop TABLE"):
        words.end()
    for _ in range(3):
        words.take()
    assert words.done() and words.take().kind == "end" and words.rest() == ""
    words.end()


def test_two_texts_that_do_not_touch_are_two() -> None:
    words = Words("'a' 'b'", "x")
    assert (words.string("one"), words.string("another")) == ("a", "b")


@pytest.mark.parametrize(
    "text, ask, why",
    [
        ("1 + 1", lambda words: words.need("create", "table"), "x: at '1': CREATE TABLE was expected: 1 + 1"),
        ("'a' b", lambda words: words.name("column"), "x: at \"'a'\": the name of a column was expected: 'a' b"),
        ("`` b", lambda words: words.name("column"), "x: at '``': the name of a column was expected"),
        ("a b", lambda words: words.string("a comment"), "x: at 'a': a comment in quotes was expected: a b"),
        ("a b", lambda words: words.number("a number of days"), "x: at 'a': a number of days was expected: a b"),
        ("² b", lambda words: words.number("a number of days"), "x: at '²': a number of days was expected: ² b"),
        ("", lambda words: words.name("table"), "x: at its end: the name of a table was expected: "),
    ],
)
def test_another_word_than_the_one_that_is_needed_is_shown_and_not_taken(text: str, ask: object, why: str) -> None:
    words = Words(text, "x")
    before = words.peek()
    with pytest.raises(ConfigError) as told:
        ask(words)  # type: ignore[operator]
    assert why in str(told.value) and words.peek() == before


def test_a_long_statement_is_cut_in_an_error() -> None:
    said = str(Words("a" * 500 + "\n  b", "x").wrong("no"))
    assert said == f"x: at {'a' * 40!r}: no: {'a' * 200}"
