"""Variables that `read` and `getopts` fill: with what is there, or with values nobody knows."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import reads
from akrunner.pai_mode.shell.flow import Field, State
from akrunner.pai_mode.shell.reader import Reader
from akrunner.pai_mode.shell.values import marked


def reader(text: str | None = None) -> Reader:
    made = Reader("", "/folder", {})
    made.stdin.text = text
    return made


def does(made: Reader, command: str) -> State:
    words = [Field([(one, False)]) for one in command.split(" ")]
    return (reads.getopts if words[0].text == "getopts" else reads.read)(made, words, 7)


@pytest.mark.parametrize(
    "command, text, values",
    [
        ("read a", " x  y \n", {"a": "x  y"}),
        ("read a b", "x  y \tz \n", {"a": "x", "b": "y \tz"}),
        ("read a b c", "x y\n", {"a": "x", "b": "y", "c": ""}),
        ("read a", "\n", {"a": ""}),
        ("read -r a b", "x\\ y z\n", {"a": "x\\", "b": "y z"}),
        ("read a b", "x\\ y z\n", {"a": marked("a"), "b": marked("b")}),
    ],
)
def test_a_line_is_dealt_to_the_names(command: str, text: str, values: dict[str, str]) -> None:
    made = reader(text)
    assert does(made, command) is State.YES
    assert {name: made.value(name) for name in values} == values


@pytest.mark.parametrize(
    "between, text, values",
    [
        (":", "x:y z:w\n", ["x", "y z:w"]),
        (":", "x\n", ["x", ""]),
        ("", " x y \n", [" x y ", ""]),
        (":", "x:y:\n", [marked("a"), marked("b")]),
        (": ", "x:y\n", [marked("a"), marked("b")]),
    ],
)
def test_what_stands_between_is_what_the_command_says(between: str, text: str, values: list[str]) -> None:
    made = reader(text)
    made.prefixed["IFS"] = between
    does(made, "read a b")
    assert [made.value("a"), made.value("b")] == values


def test_each_read_takes_a_line_and_the_end_fails() -> None:
    made = reader("1\n2")
    assert does(made, "read a") is State.YES and made.value("a") == "1"
    # bash gives the rest, and fails all the same
    assert does(made, "read a") is State.NO and made.value("a") == "2"
    assert does(made, "read a") is State.NO and made.value("a") == ""


@pytest.mark.parametrize("command", ["read a", "read -p x a", "read -n1 a", "mapfile a", "readarray a"])
def test_what_is_read_from_elsewhere_or_in_another_way_is_not_known(command: str) -> None:
    made = reader(None if command == "read a" else "x\ny\n")
    assert does(made, command) is State.UNKNOWN
    assert made.value("a") == marked("a") and made.stdin.text is None


def test_what_may_not_be_run_leaves_nobody_knowing() -> None:
    made = reader("x\n")
    with made.perhaps(3):
        assert does(made, "read a") is State.UNKNOWN
    assert made.value("a") == marked("a")


def options(*arguments: str) -> Reader:
    made = reader()
    made.state.arguments = list(arguments)
    return made


def test_options_come_one_by_one_until_a_word_that_is_none() -> None:
    made = options("-a", "v w", "-b", "-cx", "rest")
    found = []
    while does(made, "getopts a:bc: name") is State.YES:
        found.append((made.value("name"), made.value("OPTARG"), made.value("OPTIND")))
    assert [one[0] for one in found] == ["a", "b", "c"]
    assert (found[0][1], found[2][1]) == ("v w", "x") and [one[2] for one in found] == ["3", "4", "5"]
    assert (made.value("name"), made.value("OPTIND")) == ("?", "5")


@pytest.mark.parametrize("arguments, place", [([], "1"), (["x", "-a"], "1"), (["-"], "1"), (["--", "-a"], "2")])
def test_options_end_at_a_word_or_at_two_dashes(arguments: list[str], place: str) -> None:
    made = options(*arguments)
    assert does(made, "getopts a name") is State.NO
    assert made.value("OPTIND") == place


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["-x"], "line 7: akrunner does not read the option -x: of `getopts a:b` it takes letters one by one"),
        (["-ba"], "does not read the option -ba"),
        (["-:"], "does not read the option -:"),
        (["-a"], "line 7: the option -a has no value"),
    ],
)
def test_an_option_that_is_not_followed_is_told(arguments: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        does(options(*arguments), "getopts a:b name")


@pytest.mark.parametrize("unknown", ["arguments", "place", "whether it is run", "shape"])
def test_options_that_are_not_known_leave_nobody_knowing(unknown: str) -> None:
    made = options("-a")
    made.state.arguments = None if unknown == "arguments" else made.state.arguments
    made.state.known["OPTIND"] = marked("OPTIND") if unknown == "place" else "1"
    with made.perhaps(3 if unknown == "whether it is run" else 0):
        assert does(made, f"getopts {marked('x') if unknown == 'shape' else 'a'} name") is State.UNKNOWN
        assert [made.value(name) for name in ("name", "OPTARG", "OPTIND")] == [
            marked(name) for name in ("name", "OPTARG", "OPTIND")
        ]
