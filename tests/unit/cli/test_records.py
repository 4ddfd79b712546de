"""`--log-format`: stderr has records, one line each, and nothing else."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

import akrunner
from akrunner.cli import guarded, records, show
from akrunner.cli.main import main
from akrunner.telling.logs import JOBS, TASKS


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    records.off()
    assert (
        not [one for one in JOBS.handlers if type(one) is logging.StreamHandler]
        and JOBS.propagate
        and JOBS.level == logging.NOTSET
    )


def test_json_has_a_line_for_each_record(capfd: pytest.CaptureFixture[str]) -> None:
    records.on(records.JSON)
    TASKS.info("%s", "loss 0.5\x1b[2J\nof postgresql://me:secret@h/db", extra={"job": "r7", "task": "chief:0"})
    TASKS.debug("main", extra={"job": "r7", "task": "chief:0"})
    records.say("output: o.csv")
    JOBS.error("it failed", extra={"job": "r7", "task": None, "error": "JobError", "exit_code": 1})
    first, second, last = map(json.loads, capfd.readouterr().err.splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info", "logger": "akrunner.task", "job": "r7", "task": "chief:0",
        "message": "loss 0.5\x1b[2J\nof postgresql://me:***@h/db",
    }  # fmt: skip
    assert (second["message"], second["job"]) == ("output: o.csv", None)
    assert (last["level"], last["error"], last["exit_code"]) == ("error", "JobError", 1)


def test_text_says_who_says_what(capfd: pytest.CaptureFixture[str]) -> None:
    records.on(records.TEXT)
    TASKS.info("%s", "loss 0.5\x1b[2J of postgresql://me:secret@h/db", extra={"job": "r7", "task": "chief:0"})
    records.say("output: o.csv")
    JOBS.error("run s.py: JobError: it failed", extra={"job": "s.py", "task": None})
    first, second, third = capfd.readouterr().err.splitlines()
    assert third.partition(" ")[2] == "error: run s.py: JobError: it failed", "what runs is said once"
    assert first.partition(" ")[2].startswith("info r7 chief:0: loss 0.5") and "\x1b" not in first
    assert first.endswith("me:***@h/db")
    assert second.partition(" ")[2] == "info: output: o.csv"


def test_a_screen_says_nothing_beside_the_records(capfd: pytest.CaptureFixture[str]) -> None:
    records.on(records.JSON)
    with show.Screen(as_json=False, quiet=True, log=True) as screen:
        screen.log("chief:0", "told by the job's own record")
        screen.note("3 rows are in o.csv")
    [line] = capfd.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "akrunner: 3 rows are in o.csv"


@pytest.mark.parametrize("logged", [False, True])
def test_how_a_command_has_failed_is_one_record(logged: bool, capfd: pytest.CaptureFixture[str]) -> None:
    def run() -> Any:
        records.on(records.JSON)
        error = akrunner.SourceError("there is no such file")
        vars(error).update({"logged": True} if logged else {})
        raise error

    assert guarded.ended(run, True) == 2
    out, err = capfd.readouterr()
    assert json.loads(out)["error"] == "SourceError"
    told = [json.loads(line) for line in err.splitlines()]
    expected = [] if logged else [("SourceError: there is no such file [AK300]", "SourceError", 2, "AK300")]
    assert [(one["message"], one["error"], one["exit_code"], one["error_code"]) for one in told] == expected


def test_a_variable_that_is_not_read_is_a_record(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_NUM_WORKER", "2")
    assert main(["run", "no-such-script.py", "-i", "t.csv", "--log-format", "json"]) == 2
    first, second = (json.loads(line) for line in capfd.readouterr().err.splitlines())
    assert first["level"] == "warning" and "AKRUNNER_NUM_WORKER is not read" in first["message"]
    assert second["level"] == "error"


def test_the_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "no-such-script.py", "-i", "t.csv", "--log-format", "json"]) == 2
    [line] = capfd.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["level"], told["job"], told["error"]) == ("error", "no-such-script.py", "SourceError")
    assert main(["run", "s.py", "-i", "t.csv", "--log-format", "xml"]) == 2
    assert "--log-format='xml': give one of text, json" in capfd.readouterr().err
