"""What the words of a script come to: variables, their defaults, arrays and sums, and a mark for what nobody knows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell.flow import MARK
from akrunner.pai_mode.shell.nodes import Assign, Node, Simple, Word
from akrunner.pai_mode.shell.syntax import Parser
from akrunner.pai_mode.shell.values import Values, checked, marked


class Plain(Values):
    """Assigns as it is told, and lets `$(...)` print its own text in brackets."""

    def __init__(self, variables: Mapping[str, str] | None = None, **known: str | None) -> None:
        super().__init__(variables or {})
        self.state.known.update(known)

    def called(self, text: str, body: list[Node]) -> str:
        return f"<{text}>"

    def assign(self, name: str, value: str | None) -> None:
        self.state.known[name] = value

    @property
    def line(self) -> int:
        return 4


def word(text: str) -> Word:
    return Parser(text).word()


def words(values: Plain, text: str) -> list[str]:
    """What the words of a command come to; a mark is shown as `$`."""
    (simple,) = Parser(f"x {text}").whole()[0].first.parts  # type: ignore[union-attr]
    assert isinstance(simple, Simple)
    listed = [one for one in simple.words[1:] if isinstance(one, Word)]
    return [field.text.replace(MARK, "$") for field in values.fields(listed)]


@pytest.mark.parametrize(
    "text, made",
    [
        ("a$x'$x'\"$x\"", ["ab", "c$xb c"]),
        ("$x", ["b", "c"]),
        ('"$x"', ["b c"]),
        ("${x}y", ["b", "cy"]),
        ("$none", []),
        ('"$none"', [""]),
        ("$empty a", ["a"]),
        ("${none:-d}", ["d"]),
        ("${empty:-d e}", ["d", "e"]),
        ('"${empty:-d e}"', ["d e"]),
        ('${none:-"d e"}', ["d e"]),
        ("${empty-d}", []),
        ("${x:-d}", ["b", "c"]),
        ("${x:+d}", ["d"]),
        ("${empty:+d}", []),
        ("${empty+d}", ["d"]),
        ("${none+d}", []),
        ("${none:-${x}}", ["b", "c"]),
        ("${#x}", ["3"]),
        ("${y%.*}", ["2026.01"]),
        ("${y//./-}", ["2026-01-02"]),
        ("${y:0:4}", ["2026"]),
        ("${y:n}", ["26.01.02"]),
        ("$((n + 1))x", ["3x"]),
        ("$(a b)", ["<a", "b>"]),
        ('"`a b`"', ["<a b>"]),
        ("{$n,3}", ["2", "3"]),
        ("~/a", ["/home/me/a"]),
        ("a~", ["a~"]),
        ("'*'", ["*"]),
        ("*.sql", ["$*.sql$"]),
        ("~you", ["$~you$"]),
        ("$RANDOM", ["$RANDOM$"]),
        ("${x@Q}", ["$x@Q$"]),
    ],
)
def test_words_come_to_what_bash_makes_of_them(text: str, made: list[str]) -> None:
    values = Plain(x="b c", y="2026.01.02", n="2", empty="", none=None, HOME="/home/me")
    assert words(values, text) == made


def test_a_default_is_assigned_where_it_says_so() -> None:
    values = Plain(none=None, x="1")
    assert words(values, '"${none:=a b}" ${x:=2}') == ["a b", "1"]
    assert (values.value("none"), values.value("x")) == ("a b", "1")
    with pytest.raises(ConfigError, match=r"line 4: bash cannot assign to \$1 by \$\{1:=a\}: write \$\{1:-...\}"):
        words(Plain({}), "${1:=a}")


def test_what_has_to_be_given_is_asked_for() -> None:
    with pytest.raises(ConfigError, match="the script ends where day is not set .*: give it by --var day=VALUE"):
        words(Plain(day=None), "${day:?give a day}")
    assert words(Plain(day="1"), "${day:?give a day}") == ["1"]


def test_a_script_that_needs_values_ends_where_there_is_none() -> None:
    values = Plain(none=None)
    values.state.needs_values = True
    with pytest.raises(ConfigError, match=r"line 4: \$none has no value, and `set -u` ends the script there"):
        words(values, "$none")
    with pytest.raises(ConfigError, match="line 4: none is not set"):
        words(values, "$((none + 1))")
    assert words(values, "a${none:-}") == ["a"]


@pytest.mark.parametrize(
    "text, made",
    [
        ("$1 $2 $3", ["a", "b", "c"]),
        ('"$2"', ["b c"]),
        ("$#", ["2"]),
        ('"$@"', ["a", "b c"]),
        ('x"$@"y', ["xa", "b cy"]),
        ('"$*"', ["a b c"]),
        ("$@", ["a", "b", "c"]),
        ('"${@:2}"', ["b c"]),
        ('"${@:1:1}"', ["a"]),
        ("${1:-d}${3:-e}", ["ae"]),
        ("$0", ["$0$"]),
    ],
)
def test_arguments(text: str, made: list[str]) -> None:
    assert words(Plain({"1": "a", "2": "b c"}), text) == made


def test_a_list_in_a_default_is_not_followed_where_the_script_parts_words_itself() -> None:
    values = Plain({"1": "a b", "2": "c"}, none=None)
    assert words(values, '"${none:-$@}" ${none:-$@}') == ["a b", "c", "a", "b", "c"]
    values.state.known["IFS"] = ","
    assert words(values, "${none:-$@}") == ["$$@$"]


def test_arguments_of_which_one_is_missing_are_known_one_by_one() -> None:
    values = Plain({"2": "b"})
    assert values.state.arguments is None
    assert words(values, "$2 $1a $# $@") == ["b", "$1$a", "$#$", "$@$"]


@pytest.mark.parametrize(
    "text, made",
    [
        ("${a[1]}", ["2", "3"]),
        ('"${a[1]}" $a', ["2 3", "1"]),
        ("${a[-1]}", ["4"]),
        ('"${a[n]}"', ["4"]),
        ("${a[9]}", []),
        ('"${a[@]}"', ["1", "2 3", "4"]),
        ('"${a[*]}"', ["1 2 3 4"]),
        ("${#a[@]}", ["3"]),
        ("${#a[1]}", ["3"]),
        ('"${a[@]:1}"', ["2 3", "4"]),
        ('"${a[@]:0:1}"', ["1"]),
        ('"${a[@]%3}"', ["1", "2 ", "4"]),
        ('"${!a[@]}"', ["0", "1", "2"]),
        ('"${none[@]:-d}"', ["d"]),
        ("${b[1]}", ["$b[1]$"]),
    ],
)
def test_arrays(text: str, made: list[str]) -> None:
    values = Plain(n="2", none=None)
    values.state.arrays = {"a": ["1", "2 3", "4"], "b": None}
    values.state.known.update(a=marked("a"), b=marked("b"))
    assert words(values, text) == made


def test_a_name_that_a_variable_holds_is_followed() -> None:
    values = Plain(x="y", y="1", bad="a b", u=marked("u"))
    assert words(values, "${!x} ${!u}") == ["1", "$!u$"]
    with pytest.raises(ConfigError, match="line 4: bad holds `a b`, which is no name of a variable"):
        words(values, "${!bad}")


def test_what_nobody_knows_goes_on_from_word_to_word() -> None:
    values = Plain(u=marked("u"))
    assert words(values, "a${u}b ${u:-d} ${u%.*} ${#u} $((u + 1))") == ["a$u$b", "$u$", "$u%.*$", "$#u$", "$((u + 1))$"]
    assert words(values, "$((AKRUNNER_NOWHERE + 1))") == ["$((AKRUNNER_NOWHERE + 1))$"]
    assert values.reckoned("v = u + 1") is None and values.value("v") == marked("v")


def test_a_sum_that_bash_refuses_is_told_with_its_line() -> None:
    with pytest.raises(ConfigError, match="line 4: bash does not reckon `1 / 0`: it divides by 0"):
        words(Plain(), "$((1 / 0))")


def test_a_variable_is_the_scripts_then_what_was_given_then_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_X", "outside")
    assert Plain().value("AKRUNNER_X") == "outside"
    given = Plain({"AKRUNNER_X": "given"})
    assert given.value("AKRUNNER_X") == "given"
    given.assign("AKRUNNER_X", "script")
    assert given.value("AKRUNNER_X") == "script"
    # a file has been read into the script
    anything = Plain()
    anything.state.stale = True
    assert anything.value("AKRUNNER_X") == marked("AKRUNNER_X")


@pytest.mark.parametrize(
    "text, held",
    [
        ("a=(3 '4 5')", ["3", "4 5"]),
        ("a+=(3)", ["1", "2", "3"]),
        ("a=()", []),
        ("a=([1]=x)", None),
        ("a=($u)", None),
        ("a[1]=x", ["1", "x"]),
        ("a[2]=x", ["1", "2", "x"]),
        ("a[3]=x", None),
        ("a[u]=x", None),
        ("a[0]+=x", None),
    ],
)
def test_what_an_array_holds_after_an_assignment(text: str, held: list[str] | None) -> None:
    values = Plain(u=marked("u"))
    values.state.arrays["a"] = ["1", "2"]
    (simple,) = Parser(text).whole()[0].first.parts  # type: ignore[union-attr]
    assert isinstance(simple, Simple)
    (one,) = simple.assigns
    assert isinstance(one, Assign)
    found = values.array(one) if isinstance(one.value, list) else values.element(one, values.text(one.value))
    assert found == held and values.state.arrays["a"] == ["1", "2"]


def test_a_word_that_stays_one_is_not_parted_and_knows_its_variable() -> None:
    values = Plain(x="a  b")
    assert values.text(word("$x")) == "a  b" and values.text(word("*")) == "*"
    assert [values.whole(word(one)).variable for one in ("$x", "${x%b}", '"$x"', "a$x", "x")] == ["x", "x", "x", "", ""]


def test_a_list_beside_something_in_a_case_is_not_followed() -> None:
    values = Plain({"1": "a", "2": "b"})
    assert MARK in values.compared(word('x"$@"')).text and values.compared(word("x$1")).text == "xa"


def test_ends_of_lines_of_windows_are_refused() -> None:
    assert checked("a\nb") == "a\nb"
    with pytest.raises(ConfigError, match="ends of lines of Windows.*dos2unix"):
        checked("a\r\nb")
