"""What the doctor's command prints of a checkup, and its exit code; `test_variables` has the lines on variables."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

import akrunner
from akrunner.checkup.lines import BROKEN, LOOK, OK, Checkup, Line
from akrunner.cli import doctor
from akrunner.cli.main import main

FINE = Line("memory", OK, "8 GB are free")
LOOKS = Line("disk", LOOK, "2 GB are free", "remove what you do not need")
BAD = Line("python", BROKEN, "cannot reach https://u:s3cret@h/x", "ask http://u:s3cret@h/y")


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of akrunner's is set, so that no line is about one."""
    for name in [name for name in os.environ if name.startswith("AKRUNNER_")]:
        monkeypatch.delenv(name)


def examined(monkeypatch: pytest.MonkeyPatch, *lines: Line, job: dict[str, Any] | None = None) -> list[Any]:
    asked: list[Any] = []
    monkeypatch.setattr(akrunner, "doctor", lambda place, **options: asked.append((place, options)) or Checkup(lines, job))
    return asked


@pytest.mark.parametrize(("lines", "code"), [((), 0), ((FINE,), 0), ((FINE, LOOKS), 0), ((BAD, FINE), 1)])
@pytest.mark.usefixtures("clean")
def test_the_exit_code_is_one_if_something_is_broken(
    lines: tuple[Line, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examined(monkeypatch, *lines)
    assert main(["doctor"]) == code
    capsys.readouterr()
    assert main(["doctor", "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["exit_code"]) == (code == 0, code) and len(told["lines"]) == len(lines)


@pytest.mark.usefixtures("clean")
def test_that_nothing_is_in_the_way_is_said_only_if_it_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    said = "nothing is in the way of jobs\n"
    for found, there in (
        (Checkup((FINE,)), True),
        (Checkup((FINE, LOOKS)), False),
        (Checkup((BAD,)), False),
        (Checkup((FINE,), {"state": "failed"}), False),
    ):
        doctor.show(found)
        assert capsys.readouterr().out.endswith(said) is there


def test_what_is_found_is_shown_without_passwords(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    doctor.show(Checkup((BAD, LOOKS)))
    plain = capsys.readouterr().out
    assert "https://u:***@h/x" in plain and "http://u:***@h/y" in plain and "s3cret" not in plain
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("FORCE_COLOR", "1")
    doctor.show(Checkup((BAD, LOOKS)))
    shown = capsys.readouterr().out
    assert "https://u:***@h/x" in shown and "-> " in shown and "s3cret" not in shown and shown != plain


@pytest.mark.usefixtures("clean")
def test_a_wrong_variable_is_a_line_of_the_machine_and_none_of_a_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AKRUNNER_START_TIMEOUT", "soon")
    examined(monkeypatch, FINE)
    assert main(["doctor", "--json"]) == 1
    (line,) = [one for one in json.loads(capsys.readouterr().out)["lines"] if one["about"] == "variables"]
    assert line["state"] == BROKEN and line["found"].startswith("AKRUNNER_START_TIMEOUT") and "soon" not in line["found"]
    assert main(["doctor", "/a/job", "--json"]) == 0


@pytest.mark.usefixtures("clean")
def test_the_cluster_of_the_environment_is_looked_at_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_FLINK_MASTER", "variable:2")
    asked = examined(monkeypatch, FINE)
    for words in ([], ["--flink-master", "given:1"], ["/a/job"]):
        assert main(["doctor", "--json", *words]) == 0
    assert [(place, options["flink_master"]) for place, options in asked] == [
        (None, "variable:2"), (None, "given:1"), ("/a/job", None),
    ]  # fmt: skip
