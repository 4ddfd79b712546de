"""What a job says by Python's `logging`."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from akrunner.engines.base import Progress
from akrunner.telling.logs import JOBS, Logs


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def told(self) -> list[tuple[str, str, str, Any, Any]]:
        return [(one.name, one.levelname, one.getMessage(), vars(one)["job"], vars(one)["task"]) for one in self.records]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Any:
    handler = Kept()
    monkeypatch.setattr(JOBS, "handlers", [handler])
    monkeypatch.setattr(JOBS, "propagate", False)
    JOBS.setLevel(logging.DEBUG)
    yield handler
    JOBS.setLevel(logging.NOTSET)


def test_a_job_from_its_beginning_to_its_end(kept: Kept) -> None:
    logs = Logs("run", "train.py")
    logs.begun("r7")
    for state in ("starting", "main", "main"):
        logs.progress(Progress(1.0, 0, 0, 0, 0, {"chief:0": state}, {}, ("100% slow",)))
    logs.log("chief:0", "loss %s")
    logs.ended(
        {
            "ok": True,
            "exit_code": 0,
            "stats": {"warnings": ["100% slow", "again"], "rows_in": 2000, "rows_out": 1, "seconds": 1.5},
        }
    )
    assert kept.told == [
        ("akrunner", "INFO", "run train.py begins", "r7", None),
        ("akrunner", "WARNING", "100% slow", "r7", None),
        ("akrunner.task", "DEBUG", "starting", "r7", "chief:0"),
        ("akrunner.task", "DEBUG", "main", "r7", "chief:0"),
        ("akrunner.task", "INFO", "loss %s", "r7", "chief:0"),
        ("akrunner", "WARNING", "again", "r7", None),
        ("akrunner", "INFO", "run train.py has succeeded in 1.5 s: 2,000 rows in, 1 rows out", "r7", None),
    ]


def test_a_failure_has_the_traceback_and_its_task(kept: Kept) -> None:
    logs = Logs("run", "train.py")
    first = {"task": "worker:1", "traceback": "Traceback ...\n"}
    body = {"ok": False, "error": "ScriptFailedError", "message": "it raised", "exit_code": 1, "error_code": "AK520"}
    logs.ended({**body, "failure": first, "warnings": ["started again"]})
    logs.ended(
        {**body, "error": "Interrupted", "message": "", "exit_code": 130, "failure": None, "warnings": ["started again"]}
    )
    warned, failed, stopped = kept.records
    assert (warned.levelname, warned.getMessage()) == ("WARNING", "started again")
    assert (failed.levelname, vars(failed)["task"], vars(failed)["exit_code"]) == ("ERROR", "worker:1", 1)
    assert failed.getMessage() == "run train.py: ScriptFailedError: it raised [AK520]\nTraceback ..."
    assert stopped.levelname == "WARNING" and vars(stopped)["job"] == "train.py"


def test_without_a_handler_nothing_is_said(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Logs.wanted()
    monkeypatch.setattr(JOBS, "handlers", [])
    assert not Logs.wanted()
