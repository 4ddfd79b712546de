"""In what two runs differ."""

from __future__ import annotations

from akrunner.history import record
from akrunner.runs.comparing import Difference, diff
from tests.unit.runs.conftest import Make


def test_what_differs_is_told_by_part(make: Make) -> None:
    common = {"began": 100.0, "ended": 103.0, "cwd": "/w"}
    make(
        **common,
        arguments={"num_workers": 2, "user_params": {"lr": 0.1, "epochs": 3}},
        versions={"tensorflow": "2.19.0", "akrunner": "0.1.0"},
        metrics={"chief:0": {"loss": 0.5, "step": 10}},
        stats={"rows_in": 150, "rows_out": 150, "bound": "input", "main_seconds": 1.23456},
    )
    make(
        **{**common, "ended": 104.5},
        state=record.FAILED,
        arguments={"user_params": {"lr": 0.2, "epochs": 3}, "source": "iris.csv"},
        versions={"tensorflow": "2.20.0", "akrunner": "0.1.0"},
        metrics={"chief:0": {"loss": 0.25, "step": 10}},
        error="JobError",
        message="no",
    )
    assert diff("r1", "r2") == [
        Difference("run", "state", "succeeded", "failed"),
        Difference("run", "error", None, "JobError"),
        Difference("run", "message", None, "no"),
        Difference("arguments", "num_workers", 2, None),
        Difference("arguments", "user_params.lr", 0.1, 0.2),
        Difference("arguments", "source", None, "iris.csv"),
        Difference("versions", "tensorflow", "2.19.0", "2.20.0"),
        Difference("metrics", "chief:0 loss", 0.5, 0.25),
        Difference("numbers", "rows in", 150, None),
        Difference("numbers", "rows out", 150, None),
        Difference("numbers", "seconds", 3.0, 4.5),
        Difference("numbers", "main_seconds", 1.235, None),
        Difference("numbers", "bound", "input", None),
    ]


def test_a_path_does_not_differ_from_the_whole_one_of_a_run_that_was_repeated(make: Make) -> None:
    make(cwd="/w", script="nan.py", arguments={"source": "iris.csv", "output": "o.csv", "beyond": "x"})
    make(cwd="/w", script="/w/nan.py", arguments={"source": "/w/iris.csv", "output": "/w/p.csv", "beyond": "/w/x"})
    assert [(one.name, one.first, one.second) for one in diff("r1", "r2") if one.part != "numbers"] == [
        ("output", "o.csv", "/w/p.csv"),
        ("beyond", "x", "/w/x"),
    ]


def test_what_was_not_kept_is_no_path(make: Make) -> None:
    for place in ("/a", "/b"):
        make(cwd=place, script="learn", arguments={"source": "<dict>"}, left_out={"source": "a dict", "script": "a function"})
    assert [one.name for one in diff("r1", "r2") if one.part != "numbers"] == ["cwd"]


def test_a_run_does_not_differ_from_itself(make: Make) -> None:
    make(arguments={"num_workers": 2})
    assert diff("last", "r1") == []
