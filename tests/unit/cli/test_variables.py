"""Variables that nobody reads."""

from __future__ import annotations

import pytest

from akrunner.cli import detached
from akrunner.cli.doctor import variables_of
from akrunner.cli.main import main
from akrunner.cli.variables import unread, wrong
from akrunner.options import COMMANDS, OPTIONS


@pytest.mark.parametrize(
    "name, told",
    [
        ("AKRUNNER_STAL_TIMEOUT", "AKRUNNER_STAL_TIMEOUT is not read; did you mean AKRUNNER_STALL_TIMEOUT?"),
        ("AKRUNNER_TABLE", "AKRUNNER_TABLE is not read; did you mean AKRUNNER_TABLES?"),
        (
            "AKRUNNER_NUM_WORKERS",
            "AKRUNNER_NUM_WORKERS is not read: akrunner has no variable for this option; give --num-workers on the command line or in a job file",
        ),
        ("AKRUNNER_NUM_WORKER", "AKRUNNER_NUM_WORKER is not read; did you mean --num-workers?"),
        (
            "AKRUNNER_JSON",
            "AKRUNNER_JSON is not read: akrunner has no variable for this option; give --json on the command line or in a job file",
        ),
        (
            "AKRUNNER_AS_JSON",
            "AKRUNNER_AS_JSON is not read: akrunner has no variable for this option; give --json on the command line or in a job file",
        ),
        (
            "AKRUNNER_PARAM",
            "AKRUNNER_PARAM is not read: akrunner has no variable for this option; give --param on the command line or in a job file",
        ),
        (
            "AKRUNNER_INPUT",
            "AKRUNNER_INPUT is not read: akrunner has no variable for this option; give --input on the command line or in a job file",
        ),
        (
            "AKRUNNER_NO_CHIEF",
            "AKRUNNER_NO_CHIEF is not read: akrunner has no variable for this option; give --no-chief on the command line or in a job file",
        ),
        ("AKRUNNER_PARAMS", "AKRUNNER_PARAMS is not read; did you mean --param?"),
        ("AKRUNNER_PYTHON", "AKRUNNER_PYTHON is not read; did you mean AKRUNNER_PYTHON_ENV?"),
        ("akrunner_engine", "akrunner_engine is not read; did you mean AKRUNNER_ENGINE?"),
        (
            "AKRUNNER_OUTPUT",
            "AKRUNNER_OUTPUT is not read: akrunner has no variable for this option; give --output on the command line or in a job file",
        ),
    ],
)
def test_a_variable_that_is_not_read_is_told(name: str, told: str) -> None:
    assert unread({name: "5", "HOME": "/"}, "run") == [told]


def test_those_that_are_read_and_those_of_others_are_not() -> None:
    read = [one.variable for one in OPTIONS if one.variable]
    assert (
        unread(
            dict.fromkeys([*read, "AKRUNNER_TABLES", "AKRUNNER_CHECKPOINT_DIR", "AKRUNNER_OF_MY_TEAM", "NUM_WORKERS"], "1"),
            "run",
        )
        == []
    )


def test_only_what_the_command_has_is_told() -> None:
    assert unread({"AKRUNNER_SEED": "1"}, "run") == []
    assert unread({"AKRUNNER_SEED": "1"}, "pack") == [
        "AKRUNNER_SEED is not read: akrunner has no variable for this option; give --seed on the command line"
    ]


@pytest.mark.parametrize("command", [*COMMANDS, "status"])
def test_nearly_the_name_of_a_variable_that_is_read_is_told_by_every_command(command: str) -> None:
    assert unread({"AKRUNNER_FLINKMASTER": "h:1"}, command) == [
        "AKRUNNER_FLINKMASTER is not read; did you mean AKRUNNER_FLINK_MASTER?"
    ]


def test_a_command_of_detached_jobs_tells_of_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AKRUNNER_FLINKMASTER", "h:1")
    assert detached.master("other:1") == "other:1"
    assert "did you mean AKRUNNER_FLINK_MASTER?" in capsys.readouterr().err


def test_a_command_that_runs_jobs_tells_of_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AKRUNNER_STAL_TIMEOUT", "5")
    assert main(["run", "no-such.py", "--input", "no-such.csv", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith(
        "akrunner: AKRUNNER_STAL_TIMEOUT is not read; did you mean AKRUNNER_STALL_TIMEOUT?\n"
    )


def test_what_a_variable_holds_that_no_job_takes_is_told_and_not_shown() -> None:
    held = {
        "AKRUNNER_STALL_TIMEOUT": "abc", "AKRUNNER_CPUS_PER_WORKER": "2.5", "AKRUNNER_STALL_ACTION": "s3cret", "AKRUNNER_START_TIMEOUT": "3.5",
        "AKRUNNER_KERAS": "", "AKRUNNER_ENGINE": "mine",
    }  # fmt: skip
    assert sorted(wrong(held)) == [
        "AKRUNNER_CPUS_PER_WORKER holds no whole number",
        "AKRUNNER_STALL_ACTION is none of what --stall-action takes: fail, warn",
        "AKRUNNER_STALL_TIMEOUT holds no number",
    ]


def test_a_number_that_no_job_takes_is_told_as_the_job_says_it() -> None:
    held = {
        "AKRUNNER_STALL_TIMEOUT": "-5", "AKRUNNER_START_TIMEOUT": "nan", "AKRUNNER_EVALUATOR_TIMEOUT": "0", "AKRUNNER_CPUS_PER_WORKER": "0",
        "AKRUNNER_GPUS_PER_WORKER": "0", "AKRUNNER_INTRA_OP_PARALLELISM": "2", "AKRUNNER_BIND_HOST": "a/b",
    }  # fmt: skip
    assert sorted(wrong(held)) == [
        "AKRUNNER_BIND_HOST is out of its range: give a host name or an IP address, without a port",
        "AKRUNNER_CPUS_PER_WORKER is out of its range: there must be at least 1",
        "AKRUNNER_STALL_TIMEOUT is out of its range: give seconds, 0 or more",
        "AKRUNNER_START_TIMEOUT is out of its range: give seconds, more than 0",
    ]


def test_the_doctor_has_lines_for_them() -> None:
    lines = variables_of({"AKRUNNER_STALL_TIMEOUT": "abc", "AKRUNNER_NUM_WORKERS": "3"})
    assert [(line.state, line.found.partition(" ")[0]) for line in lines] == [
        ("broken", "AKRUNNER_STALL_TIMEOUT"),
        ("look here", "AKRUNNER_NUM_WORKERS"),
    ]
    assert variables_of({"HOME": "/"}) == []
