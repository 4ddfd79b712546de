"""The words of a shell script: quotes, backslashes and here-documents are taken apart, and nothing is expanded."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell.nodes import Simple
from akrunner.pai_mode.shell.syntax import Parser
from akrunner.pai_mode.shell.words import Characters


def parts(text: str) -> list[tuple[str, str, bool]]:
    """Of the first word: kind, text, quoted."""
    read: Characters = Parser(text)
    return [(part.kind, part.text, part.quoted) for part in read.word().parts]


@pytest.mark.parametrize(
    "text, found",
    [
        ("", []),
        ("abc def", [("text", "abc", False)]),
        ("a;b", [("text", "a", False)]),
        ("a'b c'd", [("text", "a", False), ("text", "b c", True), ("text", "d", False)]),
        ("''", [("text", "", True)]),
        ('""', [("text", "", True)]),
        (r"a\ b\;", [("text", "a", False), ("text", " ", True), ("text", "b", False), ("text", ";", True)]),
        ("a\\\nb", [("text", "ab", False)]),
        ("\\", [("text", "\\", True)]),
        (r"""'a\'b""", [("text", "a\\", True), ("text", "b", False)]),
        (r'"a\"\$x\n"', [("text", 'a"$x\\n', True)]),
        ('"a\\\nb"', [("text", "ab", True)]),
        (r"$'a\n\t\'\\'", [("text", "a\n\t'\\", True)]),
        ('$"a"', [("text", "a", True)]),
        ("\u4e2d'\u6587 '", [("text", "\u4e2d", False), ("text", "\u6587 ", True)]),
    ],
)
def test_quotes_and_backslashes_are_taken_away(text: str, found: list[tuple[str, str, bool]]) -> None:
    assert parts(text) == found


@pytest.mark.parametrize(
    "text, found",
    [
        ("$x", [("name", "x", False)]),
        ("$xy.z", [("name", "xy", False), ("text", ".z", False)]),
        ("$12", [("name", "1", False), ("text", "2", False)]),
        ("$@$#", [("name", "@", False), ("name", "#", False)]),
        ("$", [("text", "$", False)]),
        ("a$.", [("text", "a$.", False)]),
        ('"a $x"', [("text", "a ", True), ("name", "x", True)]),
        ("'$x'", [("text", "$x", True)]),
        ("${x:-a b}c", [("name", "x:-a b", False), ("text", "c", False)]),
        ("${x:-${y}'}'}", [("name", "x:-${y}'}'", False)]),
        (r"${x%\}}", [("name", r"x%\}", False)]),
        ("$((1 + (2)))x", [("sum", "1 + (2)", False), ("text", "x", False)]),
        ('"$(a "b" c)"', [("call", 'a "b" c', True)]),
        ("$(a (b))", None),
        (r"`a \`b\``", [("call", "a `b`", False)]),
    ],
)
def test_what_is_expanded_later_is_kept_as_it_stands(text: str, found: list[tuple[str, str, bool]] | None) -> None:
    if found is None:
        with pytest.raises(ConfigError):
            parts(text)
        return
    assert parts(text) == found


def test_a_call_holds_its_commands_with_the_line_they_stand_in() -> None:
    (part,) = Parser("$(\n a\n)", 5).word().parts
    assert [node.line for node in part.body] == [6]
    (part,) = Parser("`a`", 3).word().parts
    assert [node.line for node in part.body] == [3]


def test_a_name_in_braces_is_closed() -> None:
    assert [part.closed for part in Parser("$x${y}").word().parts] == [False, True]


@pytest.mark.parametrize(
    "text, told",
    [
        ("\n'a\nb", "line 2: a ' is not closed"),
        ('\n"a\nb', 'line 2: a " is not closed'),
        ("\n$'a", "line 2: a ' is not closed"),
        ("\n`a", "line 2: a ` is not closed"),
        ("\n${a\nb", "line 2: a ${ is not closed"),
        ("\n$((1", r"line 2: a \)\) is missing"),
        ("\n$(a", r"line 2: a \) is missing"),
        (r"$'\x41'", r"akrunner does not read \$'\\x41'"),
    ],
)
def test_what_is_not_closed_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told.replace("${", r"\$\{")):
        Parser(text).whole()


def test_quotes_within_quotes_are_dropped_unless_they_part_a_name_from_what_follows() -> None:
    assert [part.text for part in Parser('a"b"$x').double(quotes=True)] == ["ab", "x"]
    with pytest.raises(ConfigError, match=r"bash joins a name and what stands behind it: write \$\{...\}, with braces"):
        Parser('$x"y"').double(quotes=True)


def here(text: str) -> Any:
    (simple,) = Parser(text).whole()[0].first.parts  # type: ignore[union-attr]
    assert isinstance(simple, Simple)
    return [[(part.kind, part.text) for part in one.target.parts] for one in simple.redirections]


@pytest.mark.parametrize(
    "text, found",
    [
        ("x <<E\na $y\nE\n", [[("text", "a "), ("name", "y"), ("text", "\n")]]),
        ("x <<'E'\na $y\nE", [[("text", "a $y\n")]]),
        ("x <<\\E\na $y\nE\n", [[("text", "a $y\n")]]),
        ("x <<-E\n\t\ta\n\tE\n", [[("text", "a\n")]]),
        ("x <<E\nE\n", [[]]),
        ("x <<E\n'a' \"b\" \\$c\n E\nE\n", [[("text", "'a' \"b\" $c\n E\n")]]),
        ("x <<A <<B\n1\nA\n2\nB\n", [[("text", "1\n")], [("text", "2\n")]]),
    ],
)
def test_a_here_document_is_what_stands_before_its_end(text: str, found: list[list[tuple[str, str]]]) -> None:
    assert here(text) == found


def test_a_here_document_without_an_end_is_told() -> None:
    with pytest.raises(ConfigError, match="line 2: the here-document E has no end"):
        Parser("x <<E\na\n E\n").whole()


def test_comments_and_joined_lines_stand_between_words() -> None:
    parser = Parser("  \\\n\t# all of it\n\n x")
    parser.blanks()
    assert parser.next_is("\n") and parser.line == 2
    parser.newlines()
    assert parser.next_is("y", "x") and not parser.next_is("y") and parser.line == 4
