"""How a program that calls akrunner shows the progress of its jobs (`progress=`): on its stderr, or in a notebook's cell."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from rich.console import Console

from akrunner.engines.base import Progress
from akrunner.folders.words import printable
from akrunner.markup import in_notebook
from akrunner.options import named
from akrunner.progress import events, words
from akrunner.progress.following import Follower
from akrunner.progress.views import leading
from akrunner.screens.ways import AUTO, BAR, JSON, NONE, PLAIN, Bar, Display, Events, Plain, check, on

#: the way of a notebook: a display in the output of a cell
CELL = "cell"


def chosen(given: str) -> str:
    """Return the way of showing that is meant: CELL, BAR, PLAIN, JSON or NONE.

    Args: given: the value of `progress=`.
    Raises: ConfigError: there is no such way, or AKRUNNER_PROGRESS has no such value.
    """
    variable = named("progress").variable
    if check(given) == AUTO:
        given = check(os.environ.get(variable) or AUTO, variable)
    if given in (AUTO, BAR) and in_notebook():
        return CELL
    return NONE if given == AUTO else given


class Out:
    """The program's stderr, as long as somebody reads it."""

    def write(self, text: str, /) -> None:
        """Write a text. Who is gone does not hear it."""
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()


def display(way: str) -> Display:
    """Return the display of a way. Args: way: BAR, PLAIN, JSON or NONE."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    form = on(console, way)
    if form == BAR:
        return Bar(console, redirects=False)
    if form == PLAIN:
        return Plain(Out())
    return Events(Out()) if form == JSON else Display()


class JobScreen:
    """Shows a job on the program's stderr, as one of those who are told of it.

    Args:
        title: what runs: "run train.py".
        answers: whether the job makes one row of each row, as a prediction does.
        shown: what shows it.
    """

    what: ClassVar[str] = "displays"

    def __init__(self, title: str, answers: bool, shown: Display) -> None:
        self._title = title
        self._follower = Follower(answers)
        self._display = shown
        self._out = Out()
        self._run: str | None = None
        self._warned = 0
        #: task -> of each metric what it has reported last, as far as that was told while the job ran
        self._reported: Mapping[str, Mapping[str, float]] = {}

    def start(self) -> None:
        """Show the job from now on."""
        self._display.__enter__()

    def begun(self, run: str | None) -> None:
        """Take the name under which the run is kept."""
        self._run = run

    def progress(self, progress: Progress) -> None:
        """Show how far the job is."""
        self._warn(progress.warnings)
        self._reported = progress.reports
        self._display.show(self._follower.take(progress, progress.seconds))

    def log(self, task: str, line: str) -> None:
        """A task has printed a line: the kept run has it."""

    def ended(self, body: Mapping[str, Any]) -> None:
        """Show how the job has ended. Args: body: as `telling.listeners.Listener.ended` has it."""
        self._display.__exit__(None, None, None)
        if not body["ok"]:
            # without events, the exception, which follows, says it
            self._display.tells(events.END, body)
            return
        stats = body["stats"]
        self._warn(stats["warnings"])
        task, step, metrics = leading(body["metrics"])
        rows = {key: stats[key] for key in ("seconds", "rows_in", "rows_out")}
        places = {key: body[key] for key in ("output", "work_dir", "run")}
        of = {"metrics": metrics, "metrics_of": task or None, "step": step}
        if self._display.tells(events.END, {"ok": True, "exit_code": 0, **places, **rows, **of}):
            return
        parts = [
            f"done in {words.seconds(stats['seconds'])}: {stats['rows_in']:,} rows in, {stats['rows_out']:,} out",
            ", ".join([*words.named(self._numbers(task, metrics)), *([f"step {step:,}"] if step is not None else [])]),
            f"output: {body['output']}" if body["output"] is not None else "",
            f"run: {self._run}" if self._run is not None else "",
        ]
        self._say(f"{self._title}: {'; '.join(filter(None, parts))}")

    def _numbers(self, task: str, metrics: Mapping[str, float | None]) -> dict[str, float]:
        """Return a task's last metrics as it has reported them: None stands for a number that JSON does not have."""
        seen = {name: value for name, value in self._reported.get(task, {}).items() if not math.isfinite(value)}
        return {name: seen.get(name, math.nan) if value is None else value for name, value in metrics.items()}

    def _warn(self, warnings: Any) -> None:
        """Tell the warnings that were not told yet. Args: warnings: all so far."""
        for warning in warnings[self._warned :]:
            if not self._display.tells(events.WARNING, {"message": warning}):
                self._say(f"warning: {warning}")
        self._warned = max(self._warned, len(warnings))

    def _say(self, text: str) -> None:
        self._out.write(f"akrunner: {printable(text)}\n")
