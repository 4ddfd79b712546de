"""The display of a job in a notebook: one of those who are told of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from akrunner.codes import with_code
from akrunner.engines.base import Progress
from akrunner.notebook import drawing
from akrunner.notebook.live import Drawn, Live
from akrunner.notebook.printed import Printed
from akrunner.progress import words
from akrunner.progress.following import Follower
from akrunner.progress.views import View

#: from this exit code on, a signal or the caller has ended the job
_STOPPED = 128


class JobCell:
    """Shows a job in the output of the cell that has called it.

    Args:
        title: what runs: "run train.py".
        answers: whether the job makes one row of each row, as a prediction does.
    """

    what: ClassVar[str] = "displays"

    def __init__(self, title: str, answers: bool) -> None:
        self._title = title
        self._follower = Follower(answers)
        self._began = time.monotonic()
        self._view: View | None = None
        self._warnings: Sequence[str] = ()
        self._printed = Printed()
        self._run: str | None = None
        self._live = Live(self._draw)

    def start(self) -> None:
        """Show the job from now on, if it is not short."""
        self._live.start()

    def begun(self, run: str | None) -> None:
        """Take the name under which the run is kept."""
        self._run = run

    def progress(self, progress: Progress) -> None:
        """Take how far the job is."""
        self._warnings = progress.warnings
        self._view = self._follower.take(progress, time.monotonic())

    def log(self, task: str, line: str) -> None:
        """Take a line that a task has printed."""
        self._printed.add(task, line)

    def ended(self, body: Mapping[str, Any]) -> None:
        """Show how the job has ended. Args: body: as `telling.listeners.Listener.ended` has it."""
        if body["ok"]:
            # what the tasks reported is not told again
            seen = self._view
            last = (
                [{"task": seen.metrics_of, "step": seen.step, **seen.metrics}] if seen is not None and seen.metrics_of else []
            )
            self._live.end(drawing.succeeded(self._title, {**body["stats"], "reports": last}, self._run, self._lines()))
        elif self._view is None and not self._live.is_shown:
            # it was refused: the error, which follows, says all
            self._live.end(None)
        else:
            self._live.end(self._failed(body))

    def _draw(self) -> Drawn:
        if self._view is None:
            return drawing.preparing(self._title, time.monotonic() - self._began)
        return drawing.running(self._title, self._view, self._warnings, self._printed.newest())

    def _failed(self, body: Mapping[str, Any]) -> Drawn:
        took = words.seconds(time.monotonic() - self._began)
        first = (body["failure"] or {}).get("task")
        if body["exit_code"] >= _STOPPED:
            return drawing.ended(self._title, f"stopped after {took}", "stopped", self._run, self._lines())
        why = with_code(body["message"].partition("\n")[0], body["error_code"] or "")
        return drawing.ended(self._title, f"failed after {took}: {why}", "failed", self._run, self._lines(first))

    def _lines(self, first: str | None = None) -> str:
        return self._printed.folded(first, ": akrunner.runs has them" if self._run is not None else "")
