"""`export`, `local`, `declare` and `readonly` give a variable what bash gives it, and to whom."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell.declares import declared
from akrunner.pai_mode.shell.flow import MARK
from akrunner.pai_mode.shell.reader import Reader


def ran(text: str) -> Reader:
    made = Reader(text, "/folder", {})
    made.read()
    return made


def value(text: str, name: str) -> str | None:
    return ran(text).value(name)


@pytest.mark.parametrize(
    "text, given",
    [
        ("export y=1", "1"),
        ("export y", None),
        ("y=3; export y", "3"),
        ("y=3; declare y", "3"),
        ("declare y='a b'", "a b"),
        ("readonly y=2", "2"),
        ("y=0; export y=1 z=$y; y=$z", "0"),
        ("y=a; export y+=b", "ab"),
        ("x='a b'; export y=$x", "a b"),
        ("typeset y=$((1 + 2))", "3"),
        ("declare y='{a,b}'", "{a,b}"),
    ],
)
def test_a_variable_gets_its_value(text: str, given: str | None) -> None:
    assert value(text, "y") == given


def test_an_array_is_declared_as_it_is_assigned() -> None:
    assert ran("declare a=(1 '2 3')").state.arrays["a"] == ["1", "2 3"]
    assert ran("declare -a a; a=(1); a[1]=2").state.arrays["a"] == ["1", "2"]


def test_a_local_is_the_functions_own() -> None:
    text = "y=1; f() { local y=2 z=3; seen=$y$z; }; f"
    made = ran(text)
    assert (made.value("seen"), made.value("y"), made.value("z")) == ("23", "1", None)


def test_a_local_of_no_value_is_empty_until_it_is_set() -> None:
    made = ran("y=1; f() { local y; seen=${y-none}; y=2; }; f")
    assert (made.value("seen"), made.value("y")) == ("none", "1")


def test_declare_in_a_function_is_local_and_export_is_not() -> None:
    made = ran("f() { declare y=2; export z=3; }; y=1; f")
    assert (made.value("y"), made.value("z")) == ("1", "3")


@pytest.mark.parametrize(
    "text", ["readonly y=1; y=2", "y=1; readonly y; y=2", "declare -r y=1; y=2", "readonly y=1; export y=2"]
)
def test_what_is_readonly_is_not_set_again(text: str) -> None:
    with pytest.raises(ConfigError, match="the script sets y, which it has made readonly"):
        ran(text)


def test_a_readonly_local_ends_with_its_function() -> None:
    assert value("f() { local -r y=1; }; f; y=2", "y") == "2"


@pytest.mark.parametrize(
    "text, told",
    [
        ("\nlocal y=1", "line 2: bash takes no `local` outside of a function"),
        ("\ndeclare -i y=1", "line 2: akrunner does not read `declare -i`"),
        ("declare -A y", "does not read `declare -A`"),
        ("f() { local -u y; }; f", "does not read `local -u`"),
        ("\nexport y={a,b}", "line 2: bash makes several values of the braces behind export: quote them"),
    ],
)
def test_what_is_not_followed_is_told(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        ran(text)


def test_what_they_print_is_not_known() -> None:
    found = value("x=1; y=$(declare -p)", "y")
    assert found is not None and MARK in found


def test_local_is_for_functions() -> None:
    with pytest.raises(ConfigError, match="bash takes no `local` outside of a function"):
        declared(Reader("", "/folder", {}), "local", [])
