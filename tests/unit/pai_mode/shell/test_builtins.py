"""What bash does itself, and what is taken for granted of programs that are not run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import builtins
from akrunner.pai_mode.shell.flow import DONE_MARK, MARK, Field, State
from akrunner.pai_mode.shell.nodes import Word
from akrunner.pai_mode.shell.reader import Reader
from akrunner.pai_mode.shell.scopes import Leave
from akrunner.pai_mode.shell.syntax import Parser
from akrunner.pai_mode.shell.values import marked


def reader(text: str = "", folder: str = "/folder", **variables: str) -> Reader:
    made = Reader(text, folder, variables)
    made.state.folder = folder
    return made


def ran(text: str, folder: str = "/folder") -> Reader:
    made = reader(text, folder)
    made.read()
    return made


def does(made: Reader, *words: str) -> State:
    return builtins.BUILTINS[words[0]](made, [Field([(word, False)]) for word in words], 3)


def answers(*texts: str) -> tuple[State, str]:
    """What a program comes to and prints."""
    made = reader()
    made.printed = []
    return builtins.answered(made, texts[0], texts), "".join(made.printed)


@pytest.mark.parametrize(
    "texts, state, printed",
    [
        (["echo", "a"], State.YES, "a\n"),
        (["basename", "a/b"], State.YES, "b\n"),
        (["date", "-R"], State.DONE, marked("$(date -R)")),
        (["tar", "-czf", "x", "y"], State.DONE, ""),
        (["tar", "-cvzf", "x", "y"], State.DONE, marked("$(tar -cvzf x y)")),
        (["mkdir", "-p", "x"], State.DONE, ""),
        (["pip", "install", "x"], State.DONE, marked("$(pip install x)")),
        (["grep", "a", "b"], State.UNKNOWN, marked("$(grep a b)")),
        (["find", ".", "-name", "x"], State.HOPED, marked("$(find . -name x)")),
        (["expr", "1", "-", "1"], State.NO, "0\n"),
        (["expr", "1", "+", "1"], State.YES, "2\n"),
        (["which", "x"], State.HOPED, marked("$(which x)")),
        (["./own", "x"], State.HOPED, marked("$(./own x)")),
    ],
)
def test_what_is_not_run_is_taken_for_done_or_hoped_for_and_what_is_asked_is_not_known(
    texts: Sequence[str], state: State, printed: str
) -> None:
    assert answers(*texts) == (state, printed)


def test_a_question_that_decides_something_is_not_hoped_for() -> None:
    made = reader()
    made.tested = 1
    assert builtins.answered(made, "ls", ["ls", "x"]) is State.UNKNOWN


@pytest.mark.parametrize("texts", [["kill", "1"], ["pkill", "-f", "x"], ["frob", marked("$")]])
def test_what_may_end_the_script_is_refused(texts: Sequence[str]) -> None:
    with pytest.raises(ConfigError, match=f"cannot tell what `{texts[0]}` ends"):
        answers(*texts)


def test_names_of_bash_and_of_programs() -> None:
    assert builtins.is_known("tar") and builtins.is_known("cd") and not builtins.is_known("odpscmd")
    assert builtins.is_bash("cd") and builtins.is_bash("echo")
    assert not builtins.is_bash("env") and not builtins.is_bash("tar")


@pytest.mark.parametrize(
    "words, state, code",
    [
        (["exit"], State.YES, None),
        (["exit", "0"], State.YES, None),
        (["exit", "3"], State.NO, "3"),
        (["exit", "256"], State.YES, None),
        (["exit", "257"], State.NO, "1"),
        (["exit", DONE_MARK], State.HOPED, None),
        (["exit", marked("x")], State.UNKNOWN, None),
    ],
)
def test_exit_ends_with_a_code(words: list[str], state: State, code: str | None) -> None:
    with pytest.raises(Leave) as left:
        does(reader(), *words)
    assert (left.value.kind, left.value.state, left.value.code) == ("exit", state, code)


def test_exit_has_the_code_of_the_command_before() -> None:
    made = reader()
    made.state.status = "4"
    with pytest.raises(Leave) as left:
        does(made, "exit")
    assert left.value.code == "4"


def test_return_and_break_need_something_to_leave() -> None:
    with pytest.raises(ConfigError, match="line 3: bash takes no `return` outside of a function"):
        does(reader(), "return")
    assert does(reader(), "break") is State.YES
    for count in ("0", "x", marked("n")):
        with pytest.raises(ConfigError, match="line 3: akrunner cannot tell how many loops break leaves"):
            does(reader(), "break", count)
    with pytest.raises(ConfigError, match="does not read a break in a subshell or function of a loop"):
        ran("for x in a; do ( break ); done")


@pytest.mark.parametrize(
    "words, arguments",
    [
        (["--", "a", "b"], ["a", "b"]),
        (["a", "b"], ["a", "b"]),
        (["--"], []),
        (["-e", "x"], ["x"]),
        (["-e"], ["old"]),
        (["-", "-a"], ["-a"]),
        ([f"{MARK}x{MARK}"], None),
    ],
)
def test_set_gives_the_script_arguments(words: list[str], arguments: list[str] | None) -> None:
    made = reader()
    made.state.arguments = ["old"]
    assert does(made, "set", *words) is State.YES
    assert made.state.arguments == arguments


def test_set_turns_options_on_and_off() -> None:
    made = reader()
    does(made, "set", "-euo", "pipefail")
    assert (made.state.ends_at_failure, made.state.needs_values, made.state.pipes) == (True, True, True)
    does(made, "set", "+e")
    does(made, "set", "+o", "nounset")
    does(made, "set", "+o", "pipefail")
    assert (made.state.ends_at_failure, made.state.needs_values, made.state.pipes) == (False, False, False)
    does(made, "set", "-o", "errexit", "-x")
    assert made.state.ends_at_failure is True
    with made.perhaps(1):
        does(made, "set", "+e")
    assert made.state.ends_at_failure is None


@pytest.mark.parametrize("words", [["-n"], ["-f"], ["-o", "noglob"], ["-o", "posix"], ["+B"], ["-C"], ["-o", "noclobber"]])
def test_set_refuses_what_would_change_what_is_read(words: list[str]) -> None:
    with pytest.raises(ConfigError, match=f"line 3: akrunner does not read `set \\{words[0][:1]}"):
        does(reader(), "set", *words)


def test_shift_takes_arguments_away() -> None:
    made = reader()
    made.state.arguments = ["a", "b", "c"]
    assert does(made, "shift") is State.YES and made.state.arguments == ["b", "c"]
    assert does(made, "shift", "3") is State.NO and made.state.arguments == ["b", "c"]
    assert does(made, "shift", "2") is State.YES and made.state.arguments == []
    made.state.arguments = None
    with pytest.raises(ConfigError, match="line 3: what shift leaves is not known .*--var 1=VALUE"):
        does(made, "shift")


def test_unset_takes_a_variable_or_a_function_away() -> None:
    made = ran("x=1; f() { true; }; g=2; g() { true; }")
    does(made, "unset", "x")
    does(made, "unset", "-f", "f")
    does(made, "unset", "g")
    assert made.state.known["x"] is None and "f" not in made.functions
    assert made.state.known["g"] is None and "g" in made.functions
    with pytest.raises(ConfigError, match=r"cannot tell what `unset a\[1\]` leaves"):
        does(made, "unset", "a[1]")
    with pytest.raises(ConfigError, match="y belongs .local. to the function that calls this one"):
        ran("f() { local y=1; g; }; g() { unset y; }; f")


def test_let_says_whether_its_last_sum_is_not_0() -> None:
    made = reader()
    assert does(made, "let", "x=2", "y=x-2") is State.NO and made.value("x") == "2"
    assert does(made, "let", "x+=1") is State.YES and made.value("x") == "3"
    made.state.known["u"] = marked("u")
    assert does(made, "let", "u + 1") is State.UNKNOWN


def test_printf_writes_into_a_variable() -> None:
    made = reader()
    assert does(made, "printf", "-v", "x", "%03d", "7") is State.YES and made.value("x") == "007"
    does(made, "printf", "-v", "x", "%x", "7")
    assert made.value("x") == marked("x")
    with pytest.raises(ConfigError, match=r"cannot tell what `printf -v a\[0\]` sets"):
        does(made, "printf", "-v", "a[0]", "x")


def test_after_a_file_was_read_into_the_script_nothing_is_known() -> None:
    made = ran("x=1; a=(1); source env.sh")
    assert made.value("x") == marked("x") and made.value("other") == marked("other")
    assert made.state.arrays == {} and made.state.folder is None


def test_cd_goes_where_there_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    made = reader(folder=str(tmp_path))
    assert does(made, "cd", "nope") is State.NO and made.state.folder == str(tmp_path)
    assert does(made, "cd", "-P", "sub") is State.YES and made.state.folder == str(tmp_path / "sub")
    assert does(made, "cd", "..") is State.YES and made.state.folder == str(tmp_path)
    # a program may have made it
    made.passed = True
    assert does(made, "cd", "nope") is State.DONE and made.state.folder is None
    for words in (["cd"], ["cd", "-"], ["pushd", "sub"], ["cd", marked("x")]):
        made = reader(folder=str(tmp_path))
        assert does(made, *words) is State.DONE and made.state.folder is None


def test_eval_runs_what_is_known() -> None:
    made = reader()
    does(made, "eval", "x=1;", "y=$x")
    assert made.value("y") == "1"
    with pytest.raises(ConfigError, match="line 3: akrunner cannot tell what eval runs here"):
        does(made, "eval", marked("x"))


def test_exec_ends_the_script_with_its_command() -> None:
    made = reader()
    assert does(made, "exec") is State.YES
    with pytest.raises(Leave) as left:
        does(made, "exec", "false")
    assert (left.value.kind, left.value.state) == ("exit", State.NO)
    # a program of that name, and no function
    assert ran("f() { x=1; }; exec f; x=2").value("x") is None
    with pytest.raises(ConfigError, match="does not read `exec -a`"):
        does(made, "exec", "-a", "x", "y")


@pytest.mark.parametrize(
    "words, state",
    [
        (["time", "-p", "false"], State.NO),
        (["command", "true"], State.YES),
        (["builtin", "false"], State.NO),
        (["env", "-u", "A", "B=1", "C=2", "false"], State.NO),
        (["timeout", "-k", "5", "9", "false"], State.NO),
        (["nice", "-n", "5", "false"], State.NO),
        (["sudo", "-u", "me", "test", "a", "=", "b"], State.NO),
        (["nohup", "tar", "x"], State.DONE),
        (["command", "-v", "x"], State.DONE),
        (["env"], State.YES),
    ],
)
def test_the_command_behind_another_is_run(words: list[str], state: State) -> None:
    assert does(reader(), *words) is state


def test_values_of_env_are_the_commands_own() -> None:
    made = reader()
    made.printed = []
    does(made, "env", "TZ=UTC", "date", "+%F")
    assert made.value("TZ") != "UTC" and MARK in "".join(made.printed)


def test_what_cannot_stand_behind_another_is_refused() -> None:
    with pytest.raises(ConfigError, match="line 3: bash's `builtin` runs no program: leave the word away in front of tar"):
        does(reader(), "builtin", "tar")
    with pytest.raises(ConfigError, match="line 3: akrunner cannot tell what `sudo cd` does"):
        does(reader(), "sudo", "cd", "/")


def test_a_trap_that_calls_or_ends_is_refused() -> None:
    assert does(reader(), "trap", "rm -f x", "EXIT") is State.YES
    for text in ("odpscmd -e 1", "exit 1", marked("x")):
        with pytest.raises(ConfigError, match="line 3: akrunner cannot tell when this trap runs"):
            does(reader(), "trap", text, "EXIT")


def test_shopt_is_refused() -> None:
    with pytest.raises(ConfigError, match="line 3: akrunner does not read `shopt -s nullglob`"):
        does(reader(), "shopt", "-s", "nullglob")


def test_a_test_in_brackets_needs_its_end() -> None:
    assert does(reader(), "[", "a", "=", "a", "]") is State.YES
    assert does(reader(), "test", "a", "=", "b") is State.NO
    assert does(reader(), "[", "a", "=", "a") is State.UNKNOWN
    assert does(reader(), "[", DONE_MARK, "-eq", "0", "]") is State.HOPED


def test_double_brackets_part_nothing() -> None:
    made = reader()
    made.state.known["x"] = "a b"

    def holds(text: str) -> State:
        simple = Parser(text).whole()[0].first.parts[0]  # type: ignore[union-attr]
        return builtins.brackets(made, [one for one in simple.words[1:-1] if isinstance(one, Word)])

    assert holds("[[ $x == a* && -n $x ]]") is State.YES
    assert holds("[[ $x == b* ]]") is State.NO
    with pytest.raises(ConfigError, match="a sum that sets a variable beside && or ||"):
        holds("[[ $((i++)) -eq 0 && a ]]")
