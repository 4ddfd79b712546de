"""Every way a command ends: its exit code, and its one JSON object."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import akrunner
from akrunner.cli import guarded
from akrunner.cli.guarded import asks_for_json, emit, ended, telling
from akrunner.errors import TaskFailure

ENDS = [
    (akrunner.ConfigError("x"), 2, "ConfigError"),
    (akrunner.SourceError("x"), 2, "SourceError"),
    (akrunner.JobError("x"), 1, "JobError"),
    (akrunner.ReadError("x"), 3, "ReadError"),
    (akrunner.DataError("x", row=4, column="a"), 3, "DataError"),
    (akrunner.WriteError("x"), 4, "WriteError"),
    (akrunner.JobTimeoutError("x"), 124, "JobTimeoutError"),
    (akrunner.JobCancelledError("x"), 143, "JobCancelledError"),
    (KeyboardInterrupt(), 130, "Interrupted"),
    (MemoryError(), 1, "MemoryError"),
    (AttributeError("x"), 70, "InternalError"),
    (FileNotFoundError(2, "x", "some.file"), 70, "InternalError"),
]


@pytest.mark.parametrize(("error", "code", "name"), ENDS, ids=lambda value: str(value) if isinstance(value, str) else "")
def test_an_end(error: BaseException, code: int, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> Any:
        raise error

    assert ended(run, True) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["error"], told["exit_code"]) == (False, name, code) and told["message"]
    assert ended(run, False) == code
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("akrunner: ")
    assert ("Traceback" in err) == (name == "InternalError")


def test_what_is_told_of_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    failure = TaskFailure("chief:0", "raised", "Traceback: http://me:pw@host/", log_path="/logs/chief")
    error = akrunner.ScriptFailedError("s3://me:pw@b/x", failure=failure, work_dir="/kept")

    def run() -> Any:
        raise error

    assert ended(run, True) == 1
    out = capsys.readouterr().out
    told = json.loads(out)
    assert (told["log"], told["work_dir"], told["failure"]["task"]) == ("/logs/chief", "/kept", "chief:0") and "pw" not in out


def test_no_number_that_json_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"a": math.nan, "b": [math.inf, 1.5], "c": {"d": None, 1: True}})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": {"d": None, "1": True}}


def test_whether_json_is_asked_for() -> None:
    assert asks_for_json(["run", "--json", "--odd"]) and not asks_for_json(["run", "--", "--json"])


@pytest.mark.parametrize("error", [BrokenPipeError(32, "x"), OSError(28, "No space left on device"), SystemExit(1)])
def test_what_was_done_is_said_when_stdout_takes_nothing(
    error: BaseException, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "silence_stdout", lambda: None)

    def run() -> Any:
        with telling("its output is stored: o.parquet"):
            if isinstance(error, SystemExit):
                # as Rich does
                raise error from BrokenPipeError(32, "x")
            raise error

    for as_json in (True, False):
        assert ended(run, as_json) == 4
        out, err = capsys.readouterr()
        assert (
            out == "" and err.startswith("akrunner: WriteError: stdout") and err.endswith("; its output is stored: o.parquet\n")
        )
