"""How a program that calls akrunner shows the progress of its jobs (`progress=`): on its stderr, or in a notebook's cell."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar

from rich.console import Console
from rich.text import Text

from akrunner.engines.base import Progress
from akrunner.folders.words import printable
from akrunner.markup import in_notebook
from akrunner.options import named
from akrunner.progress import events, words
from akrunner.progress.following import Follower
from akrunner.progress.views import View, leading
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


class _Terminal:
    """The program's terminal, on which one bar is drawn at a time: two would draw over each other.

    Attributes: lock: who draws a bar, or prints, holds it while that begins; console: where a bar is drawn now, None: there is none.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.console: Console | None = None


_terminal = _Terminal()


class Out:
    """The program's stderr, as long as somebody reads it. What is written while a bar is drawn stands above it."""

    def write(self, text: str, /) -> None:
        """Write a text of whole lines. Who is gone does not hear it."""
        with contextlib.suppress(OSError, ValueError), _terminal.lock:
            if _terminal.console is not None:
                _terminal.console.print(Text(text.removesuffix("\n")), soft_wrap=True)
                return
            sys.stderr.write(text)
            sys.stderr.flush()


class OnlyBar(Display):
    """A bar; or, while another job of the program has one, lines with this job's name.

    Args: console: the terminal's; title: what runs.
    """

    def __init__(self, console: Console, title: str) -> None:
        super().__init__()
        self._console = console
        self._bar = Bar(console, redirects=False)
        self._lines = Plain(Out(), title=title)
        self._chosen: Display = self._lines

    def __enter__(self) -> OnlyBar:
        with _terminal.lock:
            if _terminal.console is None:
                self._chosen, _terminal.console = self._bar, self._console
        self._chosen.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._chosen.__exit__(kind, error, trace)
        finally:
            with _terminal.lock:
                if self._chosen is self._bar:
                    self._chosen, _terminal.console = self._lines, None

    def show(self, view: View) -> None:
        self._chosen.show(view)


def display(way: str, title: str) -> Display:
    """Return the display of a way. Args: way: BAR, PLAIN, JSON or NONE; title: what runs: "run train.py"."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    form = on(console, way)
    if form == BAR:
        return OnlyBar(console, title)
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
