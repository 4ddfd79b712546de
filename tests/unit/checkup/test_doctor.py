"""`akrunner.doctor` and its command: arguments, exit codes, JSON. The machine is not looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner import checkup
from akrunner.checkup.beside import Check
from akrunner.checkup.lines import BROKEN, LOOK, OK, Line
from akrunner.cli.main import main


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A machine of one check. Returns: what it was asked, and in the end the line it says."""
    asked: list[Any] = []

    def of_machine(envs: list[str | None], master: str | None, python: str, quick: bool) -> list[Check]:
        line = asked.pop() if asked and isinstance(asked[-1], Line) else Line("disk", OK, "fine")
        asked.append((envs, master, quick))
        return [Check("disk", lambda: [line])]

    monkeypatch.setattr(checkup, "_of_machine", of_machine)
    return asked


@pytest.mark.parametrize(
    "given",
    [
        {"work_dir": 5}, {"work_dir": "a\0b"}, {"work_dir": ""}, {"python_env": 5}, {"python_env": [5]}, {"python_env": {}},
        {"flink_master": 5}, {"flink_master": "nowhere"}, {"flink_python": b"x"}, {"quick": "yes"},
        {"work_dir": "x", "python_env": "y"}, {"work_dir": "x", "flink_master": "h:1"},
    ],
)  # fmt: skip
def test_arguments(machine: list[Any], given: Any) -> None:
    with pytest.raises(akrunner.ConfigError):
        akrunner.doctor(**given)
    assert not machine


def test_what_is_looked_at(machine: list[Any]) -> None:
    assert akrunner.doctor().ok
    akrunner.doctor(python_env=["tf1.15", Path("/env")], flink_master="h:8081", quick=True)
    assert machine == [([None], None, False), (["tf1.15", "/env"], "h:8081", True)]


def test_the_command(machine: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out == "ok         disk: fine\nnothing is in the way of jobs\n"
    machine.append(Line("disk", LOOK, "https://me:hunter2secret@host", "look"))
    assert main(["doctor", "--flink-rest", "h:8081", "--quick"]) == 0
    assert "hunter2secret" not in capsys.readouterr().out and machine[-1] == ([None], "h:8081", True)
    machine.append(Line("disk", BROKEN, "full", "make room"))
    assert main(["doctor", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["exit_code"], told["state"], told["job"]) == (False, 1, "broken", None)
    assert told["lines"] == [{"about": "disk", "state": "broken", "found": "full", "do": "make room"}]


def test_of_a_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, words in ((tmp_path / "none", "there is no"), (tmp_path, "is no work directory of a job")):
        assert main(["doctor", str(wrong), "--json"]) == 2
        told = json.loads(capsys.readouterr().out)
        assert (told["ok"], told["exit_code"]) == (False, 2) and words in str(told)
    assert main(["doctor", str(tmp_path), "--python-env", "tf2"]) == 2
    assert "work_dir" in capsys.readouterr().err


def test_every_check_of_a_machine_has_a_time() -> None:
    checks = checkup._of_machine([None, "tf1.15"], None, "python", True)
    assert len(checks) > 15 and all(0 < check.seconds <= 100 and check.late for check in checks)
