"""What is asked of a script's parts once they are read: whether a word is plain, whether a list surely ends, and what goes where."""

from __future__ import annotations

import pytest

from akrunner.pai_mode.shell.nodes import Part, Simple, Word, joined, stops, tangled
from akrunner.pai_mode.shell.syntax import Parser


def test_neighbours_of_text_are_joined_unless_one_is_quoted_or_expanded() -> None:
    text, quoted, name = Part("text", "a", False), Part("text", "b", True), Part("name", "x", False)
    assert joined([text, text, quoted, quoted, name, name, text]) == [
        Part("text", "aa", False), Part("text", "bb", True), name, name, text
    ]  # fmt: skip
    assert joined([]) == []
    assert text.text == "a"


@pytest.mark.parametrize(
    "parts, literal",
    [
        ([], ""),
        ([Part("text", "ex", False), Part("text", "it", False)], "exit"),
        ([Part("text", "exit", True)], None),
        ([Part("text", "a", False), Part("name", "x", False)], None),
        ([Part("sum", "1", False)], None),
    ],
)
def test_only_a_word_without_quotes_and_expansions_is_literal(parts: list[Part], literal: str | None) -> None:
    assert Word(parts, 1).literal == literal


@pytest.mark.parametrize(
    "text, is_tangled",
    [
        ("x", False),
        ("x < a", False),
        ("x > f", False),
        ("x 2>&1", False),
        ("x > f 2>&1", False),
        ("x >> f 2>&1 < a", False),
        ("x > f 2> g", False),
        ("x >&2 2>&1", False),
        ("x 2>&1 > f", True),
        ("x > f >&2", True),
        ("x > f > g", True),
        ("x 2> /dev/stdout > f", True),
        ("x > f 2>&1 2>&1", True),
    ],
)
def test_an_order_of_redirections_that_matters_is_tangled(text: str, is_tangled: bool) -> None:
    (chain,) = Parser(text).whole()
    (simple,) = chain.first.parts  # type: ignore[union-attr]
    assert isinstance(simple, Simple)
    assert tangled(simple.redirections) is is_tangled


@pytest.mark.parametrize(
    "text, ends",
    [
        ("", False),
        ("exit", True),
        ("echo a; return 1", True),
        ("exit; echo a", False),
        ("{ echo a; exit 1; }", True),
        ("{ exit; } > log", True),
        ("( exit )", False),
        ("exit &", False),
        ("echo x | exit 1", False),
        ("exit 1 | cat", False),
        ("{ echo x | exit; }", False),
        ("! exit", True),
        ("true && exit", False),
        ("exit || true", False),
        ("if a; then exit; fi", False),
        ("f() { exit; }", False),
        ('"exit"', False),
        ("$x", False),
        ("x=1", False),
    ],
)
def test_a_list_surely_ends_only_where_its_last_command_leaves(text: str, ends: bool) -> None:
    assert stops(Parser(text).whole()) is ends
