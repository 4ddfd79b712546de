"""`akrunner rerun`: which command a line stands for, and what it may change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.cli import rerunning
from akrunner.cli.main import load, main
from tests.unit.runs.conftest import make

__all__ = ["make"]

Make = Callable[..., str]
ARGUMENTS = {
    "script": "t.py",
    "source": ["a.csv", "b.csv"],
    "num_workers": 2,
    "user_params": {"lr": 0.1, "token": "***"},
    "columns": ["x", "y"],
    "script_args": ["--epochs", "3"],
    "engine": "local",
}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """What `akrunner.run` is called with; it ends with an error."""
    made: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def run(*given: Any, **options: Any) -> None:
        made.append((given, options))
        raise akrunner.JobError("no")

    monkeypatch.setattr(akrunner, "run", run)
    return made


def test_the_command_is_that_of_the_run_and_options_behind_it_are_others(make: Make, called: list[Any], tmp_path: Path) -> None:
    make(arguments=ARGUMENTS, left_out={"user_params.token": "secret"})
    assert main(["rerun", "last", "--num-workers", "4", "--param", "token=x", "-q"]) == 1
    ((script, source), options) = called[0]
    assert (script, source) == (str(tmp_path / "t.py"), [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")])
    assert (
        options["num_workers"] == 4 and options["user_params"] == {"lr": 0.1, "token": "x"} and options["columns"] == ["x", "y"]
    )
    assert options["script_args"] == ["--epochs", "3"]
    assert main(["rerun", "r1", "-p", "token=x", "-q", "--", "--epochs", "5"]) == 1
    assert called[1][1]["script_args"] == ["--epochs", "5"] and called[1][1]["num_workers"] == 2


@pytest.mark.parametrize(
    ("left_out", "more", "lacks"),
    [
        ({"user_params.token": "secret"}, [], "give --param for the key token (it is a secret, and was not kept)"),
        ({"user_params.token": "secret"}, ["--param", "lr=3"], "give --param for the key token"),
        ({"user_params.token": "secret"}, ["--param=token=x"], ""),
        ({"user_params.db.password": "secret"}, ["-p", "db={}"], ""),
        ({"source": "it was a dict of a Python program"}, [], "give --input (it was a dict of a Python program)"),
        ({"source": "it was a dict of a Python program"}, ["-i", "c.csv"], ""),
        ({"script_args": "secret"}, [], "give the script's arguments behind -- (it is a secret"),
        ({"script_args": "secret"}, ["--", "--epochs", "1"], ""),
    ],
)
def test_what_was_not_kept_has_to_be_given(
    left_out: Any, more: list[str], lacks: str, make: Make, called: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    make(arguments=ARGUMENTS, left_out=left_out)
    code = main(["rerun", "r1", "-q", *more])
    err = capsys.readouterr().err
    if lacks:
        assert code == 2 and f"r1 cannot be repeated as it was: {lacks}" in err and not called
    else:
        assert code == 1 and called


def test_a_line_without_a_run_is_told_what_it_lacks(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (["rerun"], ["rerun", "--num-workers", "4"]):
        assert main(line) == 2 and "give its name first (akrunner rerun last)" in capsys.readouterr().err
    assert main(["rerun", "last"]) == 2 and "no run is kept yet" in capsys.readouterr().err
    make(verb="other")
    assert main(["rerun", "last"]) == 2 and "a run of other cannot be repeated" in capsys.readouterr().err
    assert main(["rerun", "--help"]) == 0 and "akrunner rerun last" in capsys.readouterr().out


def test_options_of_the_command_are_defaults_too(make: Make) -> None:
    make(
        verb="predict_stream",
        arguments={"model": "/m.zip", "source": "-", "output_live": True, "output": "o.jsonl", "env_file": ["/e"]},
    )
    assert rerunning.command_of(["rerun", "last"]) == "predict"
    line = rerunning.line(load(["predict"]).commands["predict"], ["rerun", "last", "-q"], [])
    assert line.words == ["predict", "/m.zip", "-q"]
    defaults = line.more["default_map"]["predict"]
    assert defaults["output_live"] is True and defaults["source"] == ["-"] and defaults["env_file"] == ["/e"]


def test_an_error_about_a_value_of_the_run_names_the_run(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make(arguments={"script": "t.py", "source": "a.csv", "num_workers": 0})
    assert main(["rerun", "last", "-q"]) == 2
    assert "ConfigError: r1: num_workers=0" in capsys.readouterr().err
