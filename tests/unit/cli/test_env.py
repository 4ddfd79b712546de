"""`akrunner env`: which interpreters are listed, under which names, and what is said of one that is not there."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from akrunner.cli import env
from akrunner.cli.main import main
from akrunner.errors import PythonEnvError
from akrunner.launch import environments, interpreters
from akrunner.launch.interpreters import Interpreter


class _Machine:
    """The interpreters of a machine. Attributes: own: the one of this process; known: name -> path; found: paths on PATH."""

    def __init__(self, folder: Path, patched: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._there: dict[str, Interpreter] = {}
        self.known: dict[str, str] = {}
        self.found: list[str] = []
        self.own = self.place("own", "2.16.1")
        patched.setattr(interpreters, "asked_for", lambda path: self.probe(path) if path else self._there[self.own])
        patched.setattr(interpreters, "named", self._named)
        patched.setattr(interpreters, "probe", self.probe)
        patched.setattr(environments, "configured", lambda: iter(()))
        patched.setattr(environments, "found", lambda: iter(self.found))

    def place(self, name: str, tensorflow: str, leads: str = "") -> str:
        """Make an interpreter. Args: leads: another one, to which it is a link. Returns: its path."""
        path = self._folder / name / "bin" / "python"
        path.parent.mkdir(parents=True)
        path.symlink_to(leads) if leads else path.touch()
        self._there[str(path)] = Interpreter(str(path), (3, 11, 7), tensorflow, "", "1.26", "4.25")
        return str(path)

    def probe(self, path: str) -> Interpreter:
        if path not in self._there:
            raise PythonEnvError(f"python_env: {path} does not run")
        return self._there[path]

    def _named(self, recipe: environments.Recipe) -> Interpreter:
        return self.probe(self.known.get(recipe.name, "nowhere"))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Machine:
    monkeypatch.chdir(tmp_path)
    return _Machine(tmp_path, monkeypatch)


def listed(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, list[str]]]:
    assert main(["env", "list", "--json"]) == 0
    return [(row["path"], row["names"]) for row in json.loads(capsys.readouterr().out)["interpreters"]]


def test_an_interpreter_of_two_names_is_listed_once(machine: _Machine, capsys: pytest.CaptureFixture[str]) -> None:
    old = machine.place("old", "1.15.5")
    machine.known.update({"tf1.15": old, "tf2.3": old, "tf2": machine.own})
    assert listed(capsys) == [(old, ["tf1.15", "tf2.3"]), (machine.own, ["tf2"])]


def test_what_does_not_run_is_left_out_and_the_same_place_is_not_listed_twice(
    machine: _Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.found = [machine.own, os.path.relpath(machine.own), "shims/python"]
    assert listed(capsys) == [(machine.own, [])]


def test_an_environment_whose_interpreter_is_a_link_to_another_is_one_of_its_own(
    machine: _Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    venv = machine.place("venv", "2.15.0", machine.own)
    machine.found = [venv]
    assert listed(capsys) == [(machine.own, []), (venv, [])]


def test_machines_and_people_are_told_the_same(
    machine: _Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = machine.place("bare", "")
    machine.found = [bare]
    assert main(["env", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["path"] for row in told["interpreters"]] == [machine.own, bare] and told["missing"] == list(
        environments.RECIPES
    )
    assert main(["env", "list"]) == 0
    out, err = capsys.readouterr()
    assert "3.11.7" in out and "2.16.1" in out and "bare/bin/python" in "".join(out.split())
    assert err == "not there: " + ", ".join(f"{name} (akrunner env create {name})" for name in environments.RECIPES) + "\n"


def test_an_interpreter_that_is_too_old_for_tasks_is_left_out(
    machine: _Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = machine.place("old", "")
    machine.found, there = [old], machine._there
    there[old] = dataclasses.replace(there[old], python=(3, 6, 15))
    assert listed(capsys) == [(machine.own, [])]
    there[old] = dataclasses.replace(there[old], python=(3, 7, 0))
    assert listed(capsys) == [(machine.own, []), (old, [])]


def test_a_long_path_is_not_cut(machine: _Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{'long' * 30}{number}" for number in range(2)]
    machine.found = [machine.place(name, "") for name in names]
    assert main(["env", "list"]) == 0
    whole = "".join(capsys.readouterr().out.split())
    assert all(name in whole for name in names)


def test_an_interpreter_is_told_what_it_is(machine: _Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "probe", machine.own, "--json"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["python"], told["tensorflow"], told["path"], err) == ("3.11.7", "2.16.1", machine.own, "")
    assert main(["env", "probe", machine.place("bare", "")]) == 0
    assert capsys.readouterr().err == "it has no TensorFlow: tasks cannot run under it\n"
    assert main(["env", "probe", "nowhere"]) == 2
    assert "PythonEnvError: python_env: nowhere does not run" in capsys.readouterr().err


def test_what_was_made_is_told_with_its_place(
    machine: _Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = os.path.dirname(os.path.dirname(machine.own))
    monkeypatch.setattr(environments, "create", lambda name: folder)
    assert main(["env", "create", "tf2"]) == 0
    assert capsys.readouterr().out == f"tf2: TensorFlow 2.16.1 on Python 3.11.7 in {folder}\n"
    assert main(["env", "create", "tf2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["path"], told["tensorflow"], told["python"]) == ("tf2", folder, "2.16.1", "3.11.7")


@pytest.mark.parametrize(("name", "code", "kind"), [("tf2", 1, "JobError"), ("tf9", 2, "PythonEnvError")])
def test_an_environment_that_was_begun_is_a_failure_and_a_name_that_is_none_a_mistake(
    name: str, code: int, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def create(name: str) -> Any:
        raise PythonEnvError(f"{name}: no")

    monkeypatch.setattr(environments, "create", create)
    assert main(["env", "create", name, "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["error"], told["message"]) == (kind, f"{name}: no")


@pytest.mark.parametrize(("there", "said"), [(True, "tf2: removed\n"), (False, "tf2: there is none that akrunner made\n")])
def test_what_is_removed_is_said(
    there: bool, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environments, "remove", lambda name: there)
    assert main(["env", "remove", "tf2"]) == 0
    assert capsys.readouterr().out == said
    assert main(["env", "remove", "tf2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] is there


def test_a_path_is_shown_whole_where_nobody_sees_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    cells = {
        "python": "3.11.7",
        "tensorflow": "2.16.1",
        "tf_keras": "",
        "numpy": "",
        "protobuf": "",
        "path": "/" + "long/" * 20,
    }
    env._show([{"names": ["tf2", "own"], **cells}])
    assert capsys.readouterr().out.splitlines()[1].split() == ["tf2,", "own", "3.11.7", "2.16.1", cells["path"]]
