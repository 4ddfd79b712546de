"""The engine's part of a run that is kept (`akrunner.history`): what its tasks print and report, and how far it is.

::

    log threads      bytes of each task     -> logs/TASK/...
    supervisor       reports                -> metrics.jsonl
                     a task's new state     -> states.jsonl
                     now and then Progress  -> progress.jsonl
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import psutil

from akrunner.engines.base import Progress
from akrunner.foreign import in_words
from akrunner.history.logs import LogCopy
from akrunner.history.samples import Change, Host, Sample
from akrunner.history.series import METRICS, PROGRESS, STATES, Series
from akrunner.spec import TaskSpec

#: seconds from one line of the progress to the next, at most; and which share of an attempt's time that is at its beginning
_SAMPLE_SECONDS, _SHARE = 1.0, 0.05
#: seconds from one sign of life to the next
_TOUCH_SECONDS = 60.0


class KeptRun:
    """Writes what is kept of a job while it runs. Errors end what they concern, and are warnings.

    Args:
        folder: the run's directory (`JobSpec.kept`); None: the run is not kept.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._series = {name: Series(folder, name) for name in (METRICS, STATES, PROGRESS)} if folder is not None else {}
        self._logs: dict[str, LogCopy] = {}
        self._sampled = 0.0
        self._touched = time.monotonic()
        self._attempt = 0
        self._states: dict[str, str] = {}
        self._told: set[str] = set()

    def begin_attempt(self, attempt: int) -> None:
        """Keep what comes as that of an attempt. Args: attempt: the number of attempts before it."""
        self._attempt = attempt
        self._states = {}

    def log(self, task: TaskSpec, attempt: int) -> Callable[[bytes], None] | None:
        """Return a function that takes what a task prints in an attempt; None if that is not kept."""
        if self._folder is None:
            return None
        self._logs[task.name] = LogCopy(self._folder, task.name, attempt)
        return self._logs[task.name].write

    def report(self, report: Mapping[str, Any]) -> None:
        """Keep what a task has reported."""
        if self._series:
            self._series[METRICS].add(report, str(report.get("task")))

    def states(self, states: Mapping[str, str]) -> None:
        """Keep which tasks do something else than before. Args: states: task -> what it does now."""
        if not self._series or states == self._states:
            return
        now = time.time_ns()
        for task, state in states.items():
            if state != self._states.get(task):
                self._series[STATES].add(Change(time_ns=now, attempt=self._attempt, task=task, state=state))
        self._states = dict(states)

    def sample(self, progress: Callable[[], Progress], used: Callable[[], Mapping[str, Any]], last: bool = False) -> None:
        """Keep how far the job is: about once a second, and more often at its beginning, so that a short job has a course, too.

        Args:
            progress, used: return that, and what its processes use; called only if it is kept.
            last: whether it is kept in any case.
        """
        now = time.monotonic()
        if not self._series or (not last and now < self._sampled):
            return
        told = progress()
        self._sampled = now + min(_SAMPLE_SECONDS, told.seconds * _SHARE)
        moment: Sample = {
            "time_ns": time.time_ns(),
            "attempt": self._attempt,
            "seconds": told.seconds,
            "rows_in": told.rows_in,
            "bytes_in": told.bytes_in,
            "rows_out": told.rows_out,
            "bytes_out": told.bytes_out,
            "states": told.states,
            "task_rows_out": {name: one.rows_out for name, one in told.tasks.items()},
            "host": _host(),
            **used(),  # type: ignore[typeddict-item]
        }
        self._series[PROGRESS].add(moment, always=last)
        self._live(now)

    def _live(self, now: float) -> None:
        """Have the directory tell by its time that the job runs, also if of a long run most moments are left out: other machines know it
        by nothing else. Args: now: as `time.monotonic` says."""
        if self._folder is not None and now >= self._touched + _TOUCH_SECONDS:
            self._touched = now
            with contextlib.suppress(OSError):
                os.utime(self._folder)

    def end_attempt(self) -> list[str]:
        """Close the logs of an attempt. Returns: warnings that were not returned before."""
        for log in self._logs.values():
            log.close()
        parts = {
            **{f"the log of {task}": log.error for task, log in self._logs.items()},
            **{_WHAT[name]: series.error for name, series in self._series.items()},
        }
        self._logs.clear()
        fresh = {what: error for what, error in parts.items() if error is not None and what not in self._told}
        self._told.update(fresh)
        return [
            f"{what} is not kept whole with this run: {in_words(error, self._folder)} (keep_run=False, --no-keep-run, keeps none)"
            for what, error in fresh.items()
        ]

    def close(self) -> None:
        """Close the files. Nothing may be kept after that."""
        for series in self._series.values():
            series.close()


#: a series -> what it has, in words
_WHAT = {METRICS: "what the tasks report", STATES: "what the tasks do", PROGRESS: "the progress"}


def _host() -> Host | None:
    """Return what this process uses; None if the system does not say."""
    try:
        own = psutil.Process()
        times = own.cpu_times()
        return Host(memory=own.memory_info().rss, cpu_seconds=times.user + times.system)
    except (psutil.Error, OSError):
        return None
