"""How progress is shown: which way is taken, how often a line comes, and what an event says."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from rich.console import Console

from akrunner.cli import displays, stderr
from akrunner.cli.show import Screen
from akrunner.engines.base import Outcome, Progress, Stats
from akrunner.errors import ConfigError, JobError, TaskFailure
from akrunner.progress.views import READING, RUNNING, STARTING, TaskView, View
from akrunner.running.result import Result
from akrunner.stream_job import StreamJob
from tests.unit.progress.test_events import validate

VIEW = View(42.0, READING, share=0.5, rows=5, rows_total=10, rows_in=5, tasks=(TaskView("chief:0", "importing", "importing"),))
REPORTS = [{"task": "chief:0", "step": 7, "time_ns": 1, "loss": 0.5}]
STATS = Stats(1.0, 0.5, 0.1, 0.2, 1, 2, 3, 4, 0.0, 0.0, 0.0, "unknown", (1,), reports=REPORTS)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def console(terminal: bool, **variables: str) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, _environ=variables)


@pytest.mark.parametrize(
    ("given", "terminal", "quiet", "way"),
    [
        ("auto", True, False, "bar"),
        ("auto", False, False, "plain"),
        ("auto", True, True, "none"),
        ("auto", False, True, "none"),
        # what is asked for by name is shown, also beside --quiet and --json
        ("bar", True, True, "bar"),
        ("bar", False, False, "plain"),
        ("plain", True, True, "plain"),
        ("none", True, False, "none"),
        ("json", True, True, "json"),
    ],
)
def test_which_way_is_taken(given: str, terminal: bool, quiet: bool, way: str) -> None:
    assert displays.chosen(given, console(terminal), quiet) == way


@pytest.mark.parametrize(
    ("given", "quiet", "way"),
    [("auto", False, "plain"), ("auto", True, "none"), ("bar", False, "bar"), ("json", False, "json"), ("none", False, "none")],
)
def test_no_bar_is_drawn_between_rows_unless_it_is_asked_for(given: str, quiet: bool, way: str) -> None:
    assert displays.chosen(given, console(True), quiet, between=True) == way


def test_a_terminal_that_cannot_move_its_cursor_gets_lines() -> None:
    assert displays.chosen("auto", console(True, TERM="dumb"), False) == "plain"


def test_another_way_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="progress='tqdm': it is auto, bar, plain, none or json"):
        displays.chosen("tqdm", console(True), False)


def test_a_line_comes_after_ten_seconds_and_then_more_and_more_seldom(capfd: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    told = []
    with displays.Plain(stderr.Stderr(), clock) as display:
        for tick in range(36_000):
            clock.now = 100 + tick / 10
            display.show(VIEW)
            # stderr is a file here, and is read when there is something in it
            if os.lseek(2, 0, os.SEEK_CUR) and (said := capfd.readouterr().err):
                assert said == "akrunner: 42 s: reading 50 %, 5 of 10 rows; chief:0 importing\n"
                told.append(tick / 10)
    assert told[:3] == [10, 20, 30] and told[-1] - told[-2] == pytest.approx(60)
    assert len(told) < 80


def events(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    for one in found:
        validate(one)
    return found


def test_events_come_about_every_second_and_when_something_else_begins(capfd: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    display = displays.Events(stderr.Stderr(), clock)
    for tick, doing in enumerate([STARTING] * 5 + [READING] * 20 + [RUNNING]):
        clock.now = 100 + tick / 10
        display.show(View(tick / 10, doing))
    assert [(one["doing"], one["seconds"]) for one in events(capfd)] == [
        (STARTING, 0),
        (READING, 0.5),
        (READING, 1.5),
        (RUNNING, 2.5),
    ]


def screen(**more: Any) -> Screen:
    return Screen(**{"as_json": False, "quiet": False, "log": False, **more})


def test_a_job_in_events(capfd: pytest.CaptureFixture[str]) -> None:
    with screen(progress="json", logs=True) as job:
        job.progress(Progress(1.0, 1, 1, 0, 0, {"chief:0": "running"}, {}, ["odd\x1b"]))
        job.log("chief:0", "hello \x1b[2J")
        job.note("by the way")
    job.result(Result(None, "/out", (), STATS, "/kept", run="r7"))
    progress, warning, log, note, end = sorted(
        events(capfd), key=lambda one: ["progress", "warning", "log", "note", "end"].index(one["event"])
    )
    assert progress["tasks"][0]["name"] == "chief:0" and warning["message"] == "odd\\x1b"
    assert (log["task"], log["line"], note["message"]) == ("chief:0", "hello \\x1b[2J", "akrunner: by the way")
    assert {key: end[key] for key in ("ok", "exit_code", "run", "work_dir", "output", "metrics", "step")} == {
        "ok": True, "exit_code": 0, "run": "r7", "work_dir": "/kept", "output": "/out", "metrics": {"loss": 0.5}, "step": 7,
    }  # fmt: skip


def test_a_stream_and_a_job_that_asks_for_tables_have_their_end(capfd: pytest.CaptureFixture[str]) -> None:
    with StreamJob(lambda sink, cancel: Outcome((), STATS, "/kept"), None) as job:
        assert list(job) == []
    screen(progress="json").streamed(job, "/o.jsonl")
    screen(progress="json").asked(Result(None, None, (), STATS, "/kept"), ["checkpoints: /c"])
    assert [(one["event"], one["ok"], one["output"]) for one in events(capfd)] == [
        ("end", True, "/o.jsonl"),
        ("end", True, None),
    ]


@pytest.mark.parametrize(
    ("error", "code", "name"),
    [
        (JobError("it\nfailed", failure=TaskFailure("chief:0", "raised")), 1, "JobError"),
        (ConfigError("wrong"), 2, "ConfigError"),
        (KeyboardInterrupt(), 130, "Interrupted"),
        (RuntimeError("ours"), 70, "InternalError"),
    ],
)
def test_a_failure_is_the_last_event_and_is_raised_on(
    error: BaseException, code: int, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(type(error)), screen(progress="json"):
        raise error
    (end,) = events(capfd)
    assert (end["event"], end["ok"], end["exit_code"], end["error"]) == ("end", False, code, name)


def test_an_exit_that_a_command_has_chosen_is_no_failure(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), screen(progress="json"):
        raise typer.Exit(3)
    assert events(capfd) == []


def test_secrets_are_in_no_event(capfd: pytest.CaptureFixture[str]) -> None:
    screen(progress="json").note("postgresql://me:geheim@host/db")
    assert "geheim" not in capfd.readouterr().err


def test_logs_are_shown_without_debug_and_say_nothing_of_a_directory(capfd: pytest.CaptureFixture[str]) -> None:
    with screen(logs=True, quiet=True) as job:
        job.log("chief:0", "hello")
    job.result(Result(None, None, (), STATS, "/given"))
    assert capfd.readouterr().err == "[chief:0] hello\n"


def test_the_closing_line_has_the_last_metrics(capfd: pytest.CaptureFixture[str]) -> None:
    screen().result(Result(None, None, (), STATS, None))
    assert "\nchief:0: loss 0.5  step 7\n" in capfd.readouterr().err


@contextlib.contextmanager
def terminal() -> Iterator[int]:
    reads, writes = pty.openpty()
    with pytest.MonkeyPatch.context() as patch, open(writes, "w") as file:
        patch.setattr(stderr, "sys", SimpleNamespace(stderr=file))
        yield reads
    os.close(reads)


def test_a_bar_is_drawn_and_leaves_nothing() -> None:
    with terminal() as reads:
        out = stderr.Stderr()
        shown = stderr.console(out, _environ={"TERM": "xterm", "COLUMNS": "100", "LINES": "20"})
        with displays.on(shown, "auto", False) as display:
            display.name = lambda task: f"<{task}>"
            display.show(VIEW)
            # what is printed meanwhile stands above it
            shown.print("above")
        written = ""
        while "\x1b[?25h" not in written:
            written += os.read(reads, 1 << 16).decode()
    for told in ("starting", "above", "reading", "5 of 10 rows", "<chief:0>"):
        assert told in written
    assert written.rpartition("<chief:0>")[2].count("\x1b[1A\x1b[2K") == 2, "both lines are erased at the end"
