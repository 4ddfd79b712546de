"""A shell script is taken apart into its commands; what is not read is refused with its line."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell.nodes import (
    Assign,
    Branches,
    Case,
    Chain,
    Count,
    For,
    Function,
    Group,
    Loop,
    Pipeline,
    Simple,
    Sum,
    Word,
)  # fmt: skip
from akrunner.pai_mode.shell.syntax import Parser


def shown(node: Any) -> Any:
    """A node in brief: what it is, and what it holds."""
    if isinstance(node, list):
        return [shown(one) for one in node]
    if isinstance(node, Chain):
        made = [shown(node.first), *(one for sign, pipeline in node.rest for one in (sign, shown(pipeline)))]
        return [*made, "&"] if node.background else made if len(made) > 1 else made[0]
    if isinstance(node, Pipeline):
        made = [shown(one) for one in node.parts]
        return ("!" if node.negated else "|", *made) if node.negated or len(made) > 1 else made[0]
    if isinstance(node, Simple):
        redirections = [f"{one.descriptor}{one.sign}{shown(one.target)}" for one in node.redirections]
        return " ".join([*(shown(one) for one in [*node.assigns, *node.words]), *redirections])
    if isinstance(node, Assign):
        value = f"({' '.join(shown(node.value))})" if isinstance(node.value, list) else shown(node.value)
        return f"{node.name}{'' if node.index is None else f'[{node.index}]'}{node.sign}{value}"
    if isinstance(node, Word):
        return "".join(part.text for part in node.parts)
    return node


def whole(text: str) -> Any:
    return shown(Parser(text).whole())


def only(text: str) -> Any:
    (chain,) = Parser(text).whole()
    assert isinstance(chain, Chain)
    (found,) = chain.first.parts
    return found


@pytest.mark.parametrize(
    "text, found",
    [
        ("", []),
        ("\n # nothing\n\n", []),
        ("a b; c\nd", ["a b", "c", "d"]),
        ("a && b || c", [["a", "&&", "b", "||", "c"]]),
        ("a &&\n # why\n b", [["a", "&&", "b"]]),
        ("a | b |\n c", [("|", "a", "b", "c")]),
        ("! a | b", [("!", "a", "b")]),
        ("! ! a", ["a"]),
        ("time a", ["a"]),
        ("a & b", [["a", "&"], "b"]),
        ("x=1 y+=2 a z=3", ["x=1 y+=2 a z=3"]),
        ("x=(1 '2 3'\n4) y[1]=b", ["x=(1 2 3 4) y[1]=b"]),
        ("export x=1 y", ["export x=1 y"]),
        ("a > f 2>&1 < g", ["a >f 2>&1 <g"]),
        (">f a b >>g", ["a b >f >>g"]),
        ("a &> f <<< b {fd}> h", ["a &>f <<<b {fd}>h"]),
        ("a |& b", [("|", "a 2>&1", "b")]),
        ("a#b # c", ["a#b"]),
        ("[[ a < b && ( c =~ ^(d|e) ) ]]", ["[[ a < b && ( c =~ ^(d|e) ) ]]"]),
        ("[[ a =~ (b|c)$ && ( d =~ e ) ]]", ["[[ a =~ (b|c)$ && ( d =~ e ) ]]"]),
        ("[[ a =~ ((b c)|'('d) ]]", ["[[ a =~ ((b c)|(d) ]]"]),
        ("[[ (a =~ b) && c ]]", ["[[ ( a =~ b ) && c ]]"]),
        ("echo if then fi", ["echo if then fi"]),
        ("! \n time; a", [("!", ""), "", "a"]),
        ("x=$( ); y=`` a; \\\n", ["x= ", "y= a"]),
        ("a && > f", [["a", "&&", ">f"]]),
    ],
)
def test_commands_and_what_stands_between_them(text: str, found: Any) -> None:
    assert whole(text) == found


def test_only_words_in_front_of_the_command_are_assignments_unless_it_declares() -> None:
    simple = only("x=1 a y=2")
    assert [one.name for one in simple.assigns] == ["x"] and isinstance(simple.words[1], Word)
    declares = only("local y=2 z")
    assert not declares.assigns and isinstance(declares.words[1], Assign) and isinstance(declares.words[2], Word)


def test_a_pattern_that_begins_with_a_bracket_is_one_word() -> None:
    assert [shown(word) for word in only("[[ a =~ (b|c) ]]").words] == ["[[", "a", "=~", "(b|c)", "]]"]
    assert [shown(word) for word in only("[[ a =~ (b c)d || e ]]").words if not word.sign][3] == "(b c)d"


def test_operators_of_double_brackets_are_no_words() -> None:
    assert [shown(word) for word in only("[[ a && ( b < c ) ]]").words if word.sign] == ["&&", "(", "<", ")"]


def test_an_if_has_its_ways_in_order() -> None:
    found = only("if a\nthen b; elif c; d; then e; else f; fi")
    assert isinstance(found, Branches) and found.line == 1
    assert shown([list(way) for way in found.ways]) == [[["a"], ["b"]], [["c", "d"], ["e"]]] and shown(found.other) == ["f"]
    assert only("if a; then b; fi").other == []


def test_a_case_has_several_patterns_for_a_way() -> None:
    found = only('case $x in\n a|"b c") d;; (*)\n e\nesac')
    assert isinstance(found, Case) and shown(found.value) == "x"
    assert shown([list(way) for way in found.ways]) == [[["a", "b c"], ["d"]], [["*"], ["e"]]]
    assert only("case x in esac").ways == []


@pytest.mark.parametrize(
    "text, values",
    [("for x in a 'b c'; do d; done", ["a", "b c"]), ("for x in; do d; done", []), ("for x; do d; done", None), ("for x\ndo d; done", None)],
)  # fmt: skip
def test_a_for_over_words_or_over_the_arguments(text: str, values: list[str] | None) -> None:
    found = only(text)
    assert isinstance(found, For) and found.name == "x" and shown(found.body) == ["d"]
    assert (None if found.values is None else shown(found.values)) == values


def test_loops_with_a_condition_or_a_count() -> None:
    found = only("until a; do b; done")
    assert isinstance(found, Loop) and found.until and shown([found.condition, found.body]) == [["a"], ["b"]]
    assert not only("while a; do b; done").until
    counted = only("for (( i=0; i<(3); i++ )); do b; done")
    assert isinstance(counted, Count) and [counted.first, counted.test, counted.step] == [" i=0", " i<(3)", " i++ "]


def test_groups_functions_and_sums() -> None:
    apart, group = only("( a; b )"), only("{ a; b; }")
    assert isinstance(apart, Group) and apart.apart and isinstance(group, Group) and not group.apart
    behind = only("while a; do b; done < f")
    assert isinstance(behind, Group) and isinstance(behind.body[0], Loop) and behind.redirections[0].sign == "<"
    added = only("((x = 1 + (2)))")
    assert isinstance(added, Sum) and added.text == "x = 1 + (2)"
    for text in ("f() { a; }", "function f { a; }", "function f()\n{ a; }"):
        (chain,) = Parser(text).whole()
        (found,) = chain.first.parts  # type: ignore[union-attr]
        assert isinstance(found, Function) and (found.name, found.text) == ("f", "{ a; }")


def test_lines_are_those_a_command_begins_in() -> None:
    nodes = Parser("a\n\nb \\\n c\nif d\nthen\n e\nfi\nx <<E\n1\n2\nE\nf", 10).whole()
    assert [node.line for node in nodes] == [10, 12, 14, 18, 22]
    branches = nodes[2].first.parts[0]  # type: ignore[union-attr]
    assert isinstance(branches, Branches) and branches.ways[0][1][0].line == 16


@pytest.mark.parametrize(
    "text, told",
    [
        ("a\n&&", "does not understand `&` here"),
        ("a\n b &&\n", "line 3: a command is missing here"),
        ("a || && b", "a command is missing here"),
        ("a |", "a command is missing here"),
        ("a | | b", "a command is missing here"),
        ("( a || )", "a command is missing here"),
        ("! && a", "a command is missing here"),
        ("if true; then\n# nothing\nfi", "line 3: a command is missing before fi"),
        ("if a; then elif b; then c; fi", "a command is missing before elif"),
        ("if a; then else b; fi", "a command is missing before else"),
        ("if a; then b; else fi", "a command is missing before fi"),
        ("if then a; fi", "a command is missing before then"),
        ("while do a; done", "a command is missing before do"),
        ("for x in a; do done", "a command is missing before done"),
        ("f() { }", "a command is missing before }"),
        ("( )", r"a command is missing before \)"),
        ("a\n)", r"line 2: akrunner does not understand `\)` here"),
        ("a\nfi", "line 2: akrunner does not understand `fi` here"),
        ("; a", "does not understand `;` here"),
        ("( a", r"a \) is missing"),
        ("{ a", "a } is missing"),
        ("if a; then b", "a fi is missing"),
        ("if a; b; fi", "a then is missing"),
        ("while a; b; done", "a do is missing"),
        ("while a; do b", "a done is missing"),
        ("for x in a; b", "a do is missing"),
        ("for 1x in a; do b; done", "`for` over words only"),
        ("for ((i=0; i<3)); do b; done", "with two semicolons"),
        ("case x a) b;; esac", "an in is missing"),
        ("case x in a b) c;; esac", "the pattern of this case"),
        ("case x in a) b", "an esac is missing"),
        ("case x in a) b;& *) c;; esac", "`;&` and `;;&`"),
        ("[[ a", "a ]] is missing"),
        ("x=(a", r"a \) is missing"),
        ("select x in a; do b; done", "does not understand `select`"),
        ("coproc a", "does not understand `coproc`"),
        ("a <(b)", r"does not read <\(...\) and >\(...\)"),
        ("f() a", "the body of f has to stand between { and }"),
        ("a (b)", r"does not understand the \( here|has to stand"),
        ("a <<$x\n1\n", "the end of this here-document"),
        ("(a <<E)\n1\nE", "the here-document E has no end"),
    ],
)
def test_what_is_not_read_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as raised:
        Parser(text).whole()
    assert str(raised.value).startswith("line ")
