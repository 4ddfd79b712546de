"""Follows a running job: makes what a display shows of how far the job was until then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from akrunner.engines.base import Progress, TaskProgress
from akrunner.engines.supervision.states import RESTARTING, TaskState
from akrunner.progress.rates import Window
from akrunner.progress.tasks import differing, in_words
from akrunner.progress.views import (
    ENDING,
    PREDICTING,
    READING,
    ROWS,
    RUNNING,
    SCRIPT,
    STARTING,
    WAITING,
    TaskView,
    View,
    in_order,
)

#: seconds over which the time that is left is estimated: longer than a rate, as it should not jump
_ESTIMATE_SECONDS = 20.0
#: no share is shown as the whole before all is done
_NOT_ALL = 0.999
#: states in which a task's script runs
_AT_WORK = (TaskState.RUNNING.value, TaskState.SERVING.value)
#: and before it does
_BEFORE = (TaskState.STARTING.value, TaskState.IMPORTING.value, TaskState.READY.value)


class Follower:
    """Follows a job: makes a `View` of each `Progress` that an observer is told.

    Args:
        answers: whether the job makes one row of each row, as a prediction does: then its rows are done when they are answered.
    """

    def __init__(self, answers: bool = False) -> None:
        self._answers = answers
        self._begin(0)

    def _begin(self, attempt: int) -> None:
        self._attempt = attempt
        self._rows, self._bytes = Window(), Window()
        self._share = Window(_ESTIMATE_SECONDS)
        self._counts = ""
        self._scripts: dict[str, Window] = {}
        self._steps: dict[str, Window] = {}
        self._written: dict[str, Window] = {}
        self._since: dict[str, tuple[str, float]] = {}

    def take(self, progress: Progress, now: float) -> View:
        """Return what is to be shown.

        Args:
            progress: how far the job is.
            now: the time in seconds, of a clock that is never set back.
        """
        if progress.attempt != self._attempt:
            # its numbers begin anew
            self._begin(progress.attempt)
        tasks = self._tasks(progress, now)
        doing = self._doing(progress)
        view = View(
            seconds=progress.seconds,
            doing=doing,
            rows_in=progress.rows_in,
            rows_out=progress.rows_out,
            rows_total=progress.rows_total,
            attempt=progress.attempt,
            tasks=tasks,
        )
        view = self._with_script(self._with_rows(view, progress, now), progress, now)
        return _with_metrics(view, progress.reports)

    def _doing(self, progress: Progress) -> str:
        states = list(progress.states.values())
        if RESTARTING in states:
            return WAITING
        at_work = any(state in _AT_WORK for state in states)
        begun = progress.rows_in > 0 and not progress.fed
        if not at_work and any(state in _BEFORE for state in states):
            return READING if begun else STARTING
        if not at_work:
            return ENDING if states else STARTING
        if self._answers:
            return PREDICTING
        return READING if begun and not progress.rows_out else RUNNING

    def _with_rows(self, view: View, progress: Progress, now: float) -> View:
        """Return the view with what is known of its rows: how many, how fast, how long still."""
        out = self._answers or (progress.fed and view.doing != READING)
        counts = "out" if out else "in"
        rows = progress.rows_out if out else progress.rows_in
        if counts != self._counts or not rows:
            # rows of another kind are counted from now on, or the first ones are still to come: that wait says nothing of their speed
            self._rows, self._bytes, self._share, self._counts = Window(), Window(), Window(_ESTIMATE_SECONDS), counts
        self._rows.add(now, rows)
        self._bytes.add(now, progress.bytes_out if out else progress.bytes_in)
        share = self._share_of(progress) if view.doing != STARTING else None
        left = None
        if share is not None:
            self._share.add(now, share)
            rate = self._share.rate
            left = (1 - share) / rate if rate else None
        return replace(
            view,
            rows=rows,
            share=share,
            share_of=ROWS if share is not None else "",
            seconds_left=left,
            rows_per_second=self._rows.rate if rows else None,
            bytes_per_second=self._bytes.rate if rows else None,
        )

    def _with_script(self, view: View, progress: Progress, now: float) -> View:
        """Return the view of a job whose scripts run with how far the one is that has most left to do, as far as they know it."""
        if view.doing != RUNNING or view.share is not None:
            return view
        told = {
            name: so_far.reached
            for name, so_far in progress.tasks.items()
            if so_far.reached is not None and progress.states.get(name) in _AT_WORK
        }
        if not told:
            return view
        for name, reached in told.items():
            if reached.share is not None:
                # the number changes whenever the task tells it, which may be seldom
                self._scripts.setdefault(name, Window(_ESTIMATE_SECONDS, changes=True)).add(now, reached.share)
        behind = min(told, key=lambda name: (told[name].epoch if told[name].epochs is None else 0, told[name].share or 0.0))
        last, share = told[behind], told[behind].share
        rate = self._scripts[behind].rate if share is not None else None
        return replace(
            view,
            share=min(share, _NOT_ALL) if share is not None else None,
            share_of=SCRIPT if share is not None else "",
            epoch=last.epoch or None,
            epochs=last.epochs,
            seconds_left=(1 - share) / rate if share is not None and share < 1 and rate else None,
        )

    def _share_of(self, progress: Progress) -> float | None:
        """Return which share of the rows is done; None: not known, or there is more to do than these rows."""
        if progress.fed and not self._answers:
            return None
        done, total = progress.rows_out if self._answers else progress.rows_in, progress.rows_total
        if total:
            return min(done / total, 1.0)
        if progress.share_read is None:
            return None
        # what was read may not have been answered yet
        answered = done / progress.rows_in if progress.rows_in else 0.0
        read = 1.0 if progress.fed else min(progress.share_read, _NOT_ALL)
        return read * min(answered, 1.0)

    def _tasks(self, progress: Progress, now: float) -> Sequence[TaskView]:
        made = [
            self._task(name, state, progress.tasks.get(name, TaskProgress()), now) for name, state in progress.states.items()
        ]
        different = differing(made) if len(made) > 1 else {}
        return tuple(replace(one, differs=different.get(one.name, "")) for one in made)

    def _task(self, name: str, state: str, so_far: TaskProgress, now: float) -> TaskView:
        if self._since.get(name, ("", 0.0))[0] != state:
            self._since[name] = (state, now)
        at_work = state in _AT_WORK
        steps = self._steps.setdefault(name, Window(changes=True))
        if so_far.step is not None:
            steps.add(now, so_far.step)
        written = self._written.setdefault(name, Window())
        written.add(now, so_far.rows_out)
        return TaskView(
            name,
            state,
            in_words(state),
            now - self._since[name][1],
            so_far.rows_in,
            so_far.rows_out,
            so_far.step,
            steps.rate if at_work else None,
            written.rate if at_work and so_far.rows_out else None,
        )


def _with_metrics(view: View, reports: Mapping[str, Mapping[str, float]]) -> View:
    """Return the view with the metrics of the task that leads. Args: reports: as of `Progress`."""
    lead = next((one for one in view.tasks if reports.get(one.name)), None)
    lead = lead or next((one for one in view.tasks if one.step is not None), None)
    if lead is None:
        return view
    metrics = reports.get(lead.name, {})
    return replace(
        view,
        metrics=in_order(metrics),
        metrics_of=lead.name if metrics else "",
        step=lead.step,
        steps_per_second=lead.steps_per_second,
    )
