"""Which way a shell script goes: branches, chains, functions, subshells and `set -e`, as far as it is known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell.flow import DONE_MARK, State
from akrunner.pai_mode.shell.nodes import Node
from akrunner.pai_mode.shell.reader import Reader
from akrunner.pai_mode.shell.run import Running
from akrunner.pai_mode.shell.syntax import Parser
from akrunner.pai_mode.shell.values import marked


def ran(text: str, **variables: str) -> Reader:
    made = Reader(text, "/folder", variables)
    made.read()
    return made


def said(text: str) -> str | None:
    """What a script has put together in `y`."""
    return ran(f"y=\n{text}").value("y")


@pytest.mark.parametrize(
    "text, made",
    [
        ("if true; then y=1; else y=2; fi", "1"),
        ("if false; then y=1; elif true; then y=2; else y=3; fi", "2"),
        ("if false; then y=1; fi", ""),
        ("if ! false; then y=1; fi", "1"),
        ("if true; false; then y=1; else y=2; fi", "2"),
        ("case ab in a) y=1;; a*|x) y=2;; *) y=3;; esac", "2"),
        ("case ab in a) y=1;; esac", ""),
        ("true && y=1 || y=2", "1"),
        ("false && y=1 || y=2", "2"),
        ("false || true && y=3", "3"),
        ("true || y=1; y=${y}2", "2"),
        ("((1 > 2)) || y=1", "1"),
        ("y=1; (y=2)", "1"),
        ("{ y=2; }", "2"),
        ("y=1; y=2 | true", "1"),
        ("y=1; y=2 & y=${y}3", "13"),
        ("y=1; z=$(y=2); y=$y", "1"),
        ("echo a | read y; y=$y.", "."),
    ],
)
def test_the_way_that_bash_takes(text: str, made: str) -> None:
    assert said(text) == made


@pytest.mark.parametrize(
    "text, made",
    [
        ("if grep a f; then y=1; else y=2; fi", marked("y")),
        ("y=1; if grep a f; then y=1; fi", "1"),
        ("case $u in a) y=1;; esac", marked("y")),
        ("case $u in a) y=1;; *) y=1;; esac", marked("y")),
        ("grep a f && y=1", marked("y")),
        ("grep a f; y=1", "1"),
        ("grep a f || exit; y=1", marked("y")),
        ("(grep a f || exit); y=1", "1"),
        ("f() { grep a f && return; y=1; }; f; z=2", marked("y")),
        ("for x in a; do for z in b; do grep a f && break 2; done; y=1; done", marked("y")),
        ("for x in a; do for z in b; do grep a f && break; done; y=1; done", "1"),
    ],
)
def test_of_two_ways_nobody_knows_which(text: str, made: str) -> None:
    assert said(f"u=$(wc -l f)\n{text}") == made


@pytest.mark.parametrize(
    "state, wanted, body, instead, hoped, runs",
    [
        (State.YES, True, "x", "", False, True),
        (State.NO, True, "x", "", False, False),
        (State.NO, False, "x", "", False, True),
        (State.UNKNOWN, True, "x", "exit", True, None),
        (State.DONE, True, "x", "", False, None),
        (State.DONE, True, "x", "", True, True),
        (State.DONE, True, "x", "exit 1", False, True),
        (State.HOPED, True, "x", "exit 1", False, True),
        (State.UNDONE, True, "exit 1", "", False, False),
        (State.UNDONE, True, "x", "", False, None),
        (State.FEARED, False, "x", "exit", False, True),
    ],
)
def test_what_was_not_run_counts_where_the_script_would_end_if_it_failed(
    state: State, wanted: bool, body: str, instead: str, hoped: bool, runs: bool | None
) -> None:
    nodes: list[Sequence[Node]] = [Parser(text).whole() for text in (body, instead)]
    assert Running.decided(state, wanted, nodes[0], nodes[1], hoped) is runs


@pytest.mark.parametrize(
    "text, made",
    [
        ("set -e; y=1; false; y=2", "1"),
        ("set -e; false || true; y=1", "1"),
        ("set -e; if false; then :; fi; y=1", "1"),
        ("set -e; ! true; y=1", "1"),
        ("set -e; false && true; y=1", "1"),
        ("set -e; true && false; y=1", ""),
        ("set -e; (exit 3); y=1", ""),
        ("set -e; f() { false; y=1; }; f || y=2", "1"),
        ("set -e; f() { false; y=1; }; f; y=2", ""),
        ("set -e; set +e; false; y=1", "1"),
        ("set -e; false | true; y=1", "1"),
        ("set -eo pipefail; tar x | true; y=1", "1"),
        ("set -e; tar x y; y=1", "1"),
        ("set -e; grep a f || true; y=1", "1"),
        ("set -e; y=1; grep a f; y=2", marked("y")),
    ],
)
def test_a_failure_ends_the_script_where_it_says_so(text: str, made: str) -> None:
    assert said(text) == made


@pytest.mark.parametrize(
    "text, status",
    [
        ("true", "0"),
        ("false", "1"),
        ("! false", "0"),
        ("(exit 7)", "7"),
        ("f() { return 5; }; f", "5"),
        ("f() { false; }; f", "1"),
        ("false; x=1", "0"),
        ("false | true", "0"),
        ("true | false", "1"),
        ("false &", "0"),
        ("tar x", DONE_MARK),
        ("./own", DONE_MARK),
        ("grep a f", marked("?")),
        ("grep a f || true", "0"),
        ("grep a f && true", marked("?")),
        ("set -o pipefail; false | true", marked("?")),
        ("((0))", "1"),
    ],
)
def test_a_status_is_that_of_the_last_command(text: str, status: str) -> None:
    assert ran(text).state.status == status


def test_a_function_has_arguments_of_its_own() -> None:
    made = ran('f() { y="$1.$#"; return 3; z=no; }; f "a b" c; w=$?$1', **{"1": "p"})
    assert (made.value("y"), made.value("z"), made.value("w")) == ("a b.2", None, "3p")
    assert made.calls == 0 and len(made.scopes) == 1


def test_a_local_that_is_declared_twice_gives_back_what_was_before_both() -> None:
    assert said("y=1; f() { local y=2; local y=3; }; f") == "1"


def test_functions_call_each_other_and_are_defined_anew() -> None:
    assert said("f() { g; }; g() { y=1; }; f; g() { y=${y}2; }; f") == "12"
    assert said("f() { if [ $1 -gt 0 ]; then y=$y$1; f $(($1 - 1)); fi; }; f 3") == "321"
    assert said("(f() { y=1; }); f; y=2") == "2"


@pytest.mark.parametrize(
    "text, told",
    [
        ("\nf() { f; }; f", "line 2: f calls itself too often"),
        ("if grep a b; then f() { true; }; fi\nf", "line 2: akrunner cannot tell which of its functions f is"),
        ("f() { true; }\nx=1 f", "line 2: akrunner does not read an assignment in front of a function"),
        ("f() { a=(1); g; }; g() { local a; }; f", "does not read a local a over an array"),
    ],
)
def test_a_function_that_is_not_followed_is_told(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        ran(text)


def test_a_subshell_keeps_what_it_changes_to_itself() -> None:
    made = ran("x=1; set -- a; (x=2; set -- b c; set -e; f() { true; }; exit 4); y=$?")
    assert (made.value("x"), made.state.arguments, made.value("y")) == ("1", ["a"], "4")
    assert not made.functions and not made.state.ends_at_failure


def test_what_a_pipe_prints_is_what_the_next_reads() -> None:
    assert said("y=$(echo b,a | tr , '\\n' | sort | head -1)") == "a"
    assert said("y=$(printf 'a\\nb\\n' | while read x; do echo -n $x.; done)") == "a.b."


def test_what_was_given_takes_the_place_of_what_only_running_would_tell() -> None:
    made = ran("n=$(wc -l f); m=2; if grep a f; then k=1; fi", n="5", m="6", k="7")
    assert (made.value("n"), made.value("m"), made.value("k")) == ("5", "2", "7")


def test_an_array_that_is_assigned_a_text_gets_it_in_front() -> None:
    assert ran("a=(1 2); a=x").state.arrays["a"] == ["x", "2"]
    assert ran("a=(1 2); unset a").state.arrays == {}
    assert ran("a=(1 2); grep a f && a=(3)").state.arrays["a"] is None


def test_the_line_that_decides_is_named_until_its_end() -> None:
    made = Reader("", "/folder", {})
    assert made.why == 0
    with made.perhaps(3):
        assert made.why == 3
        with made.perhaps(5):
            assert made.why == 5
        assert made.why == 3
    made.scopes[0].doubt = 9
    assert made.why == 9
