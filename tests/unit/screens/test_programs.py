"""What `progress=` of a function shows, and where."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from akrunner.engines.base import Progress
from akrunner.errors import ConfigError
from akrunner.screens import programs, ways
from akrunner.screens.programs import JobScreen, chosen
from tests.unit.notebook.kernel import Shown, kernel
from tests.unit.progress.test_events import validate

__all__ = ["kernel"]

STATS = {"seconds": 4.0, "rows_in": 3, "rows_out": 2, "warnings": ["odd", "late"]}
DONE = {
    "ok": True,
    "output": "o.csv",
    "work_dir": None,
    "run": "r7",
    "stats": STATS,
    "metrics": {"chief:0": {"step": 9, "loss": 0.5}},
}


@pytest.mark.parametrize(
    ("given", "variable", "way"),
    [
        ("auto", "", "none"),
        ("auto", "plain", "plain"),
        ("auto", "auto", "none"),
        ("none", "plain", "none"),
        ("bar", "", "bar"),
        ("json", "none", "json"),
    ],
)
def test_a_program_shows_what_is_asked_for(given: str, variable: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_PROGRESS", variable)
    assert chosen(given) == way


def test_a_notebook_shows_it_in_the_cell_unless_something_else_is_asked_for(
    kernel: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [chosen(given) for given in ("auto", "bar", "plain", "none")] == ["cell", "cell", "plain", "none"]
    monkeypatch.setenv("AKRUNNER_PROGRESS", "none")
    assert (chosen("auto"), chosen("bar")) == ("none", "cell")


def test_another_word_is_refused_with_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"^progress='tqdm': it is auto, bar, plain, none or json"):
        chosen("tqdm")
    monkeypatch.setenv("AKRUNNER_PROGRESS", "never")
    with pytest.raises(ConfigError, match=r"^AKRUNNER_PROGRESS='never': it is"):
        chosen("auto")


def shown(way: str, body: dict[str, Any]) -> None:
    screen = JobScreen("run s.py", False, programs.display(way, "run s.py"))
    screen.start()
    screen.begun("r7")
    screen.progress(Progress(1.0, 1, 1, 0, 0, {"chief:0": "running"}, {}, ["odd"]))
    screen.log("chief:0", "hello")
    screen.ended(body)


def test_lines_end_with_what_became_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    # what is no terminal has no bar
    shown("bar", DONE)
    assert capsys.readouterr().err.splitlines() == [
        "akrunner: warning: odd",
        "akrunner: warning: late",
        "akrunner: run s.py: done in 4.0 s: 3 rows in, 2 out; loss 0.5, step 9; output: o.csv; run: r7",
    ]


def test_events_are_those_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    shown("json", DONE)
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    for one in told:
        validate(one)
    assert [one["event"] for one in told] == ["warning", "progress", "warning", "end"]
    assert (told[-1]["run"], told[-1]["metrics"], told[-1]["rows_out"]) == ("r7", {"loss": 0.5}, 2)


@pytest.mark.parametrize(("nan", "told"), [(float("nan"), "nan"), (float("-inf"), "-inf")])
def test_the_task_that_leads_is_told_with_all_its_numbers(nan: float, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    # the worker has reported first; JSON has no NaN
    last = {"worker:0": {"step": 1, "loss": 0.9}, "chief:0": {"step": None, "odd": None, "loss": 0.1}}
    for way in ("plain", "json"):
        screen = JobScreen("run s.py", False, programs.display(way, "run s.py"))
        screen.start()
        seen = {"worker:0": {"loss": 0.9}, "chief:0": {"odd": nan, "loss": 0.1}}
        screen.progress(Progress(1.0, 1, 1, 0, 0, {"chief:0": "running"}, seen, []))
        screen.ended({**DONE, "metrics": last})
    lines = capsys.readouterr().err.splitlines()
    end = json.loads(lines[-1])
    assert f"; loss 0.1, odd {told}; " in lines[2]
    assert (end["metrics"], end["metrics_of"], end["step"]) == ({"loss": 0.1, "odd": None}, "chief:0", None)


def test_a_failure_is_the_exceptions_to_tell_but_an_event(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {"ok": False, "error": "JobError", "message": "it failed", "exit_code": 1, "failure": None}
    shown("plain", failed)
    assert capsys.readouterr().err == "akrunner: warning: odd\n"
    shown("json", failed)
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["message"] == "it failed"


def test_nobody_who_reads_it_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    shown("plain", DONE)


class Terminal(io.StringIO):
    """A terminal that keeps what is drawn on it."""

    def isatty(self) -> bool:
        return True


def test_of_several_jobs_in_a_terminal_one_has_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Terminal()
    monkeypatch.setattr(sys, "stderr", drawn)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(ways, "_LINE_SECONDS", 0.0)
    first, second, third = (JobScreen(f"run {name}.py", False, programs.display("bar", f"run {name}.py")) for name in "abc")
    first.start()
    second.start()
    began = drawn.getvalue()
    assert began.count("starting") == 1
    second.progress(Progress(1.0, 1, 1, 0, 0, {"chief:0": "running"}, {"chief:0": {"loss": 0.25}}, []))
    second.ended(DONE)
    above = drawn.getvalue().removeprefix(began)
    # the bar is drawn again beneath each line
    lines = ["akrunner: run b.py: 1.0 s: loss 0.25; ", "warning: odd", "akrunner: run b.py: done in 4.0 s"]
    assert all(line in above for line in lines) and above.count("starting") == above.count("akrunner: ") == 4
    first.ended(DONE)
    third.start()
    assert drawn.getvalue().rpartition("run a.py: done")[2].count("starting") == 1, "a bar that is gone is in nobody's way"
    third.ended(DONE)
