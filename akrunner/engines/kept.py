"""The engine's part of a run that is kept (`akrunner.history`): what its tasks print and report, and how far it is.

::

    log threads      bytes of each task     -> logs/TASK/...
    supervisor       reports                -> metrics.jsonl
                     now and then Progress  -> progress.jsonl
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from akrunner.engines.base import Progress
from akrunner.foreign import in_words
from akrunner.history.logs import LogCopy
from akrunner.history.series import METRICS, PROGRESS, Series
from akrunner.spec import TaskSpec

#: seconds from one line of the progress to the next
_SAMPLE_SECONDS = 1.0


class KeptRun:
    """Writes what is kept of a job while it runs. Errors end what they concern, and are warnings.

    Args:
        folder: the run's directory (`JobSpec.kept`); None: the run is not kept.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._metrics = Series(folder, METRICS) if folder is not None else None
        self._progress = Series(folder, PROGRESS) if folder is not None else None
        self._logs: dict[str, LogCopy] = {}
        self._sampled = 0.0
        self._told: set[str] = set()

    def log(self, task: TaskSpec, attempt: int) -> Callable[[bytes], None] | None:
        """Return a function that takes what a task prints in an attempt; None if that is not kept."""
        if self._folder is None:
            return None
        self._logs[task.name] = LogCopy(self._folder, task.name, attempt)
        return self._logs[task.name].write

    def report(self, report: Mapping[str, Any]) -> None:
        """Keep what a task has reported."""
        if self._metrics is not None:
            self._metrics.add(report)

    def sample(self, progress: Callable[[], Progress], used: Callable[[], Mapping[str, Any]], last: bool = False) -> None:
        """Keep how far the job is, about once a second.

        Args:
            progress, used: return that, and what its processes use; called only if it is kept.
            last: whether it is kept in any case.
        """
        now = time.monotonic()
        if self._progress is None or (not last and now - self._sampled < _SAMPLE_SECONDS):
            return
        self._sampled = now
        told = progress()
        self._progress.add(
            {
                "time_ns": time.time_ns(),
                **{name: getattr(told, name) for name in ("seconds", "rows_in", "bytes_in", "rows_out", "bytes_out", "states")},
                **used(),
            }
        )

    def end_attempt(self) -> list[str]:
        """Close the logs of an attempt. Returns: warnings that were not returned before."""
        for log in self._logs.values():
            log.close()
        parts = {
            **{f"the log of {task}": log.error for task, log in self._logs.items()},
            "what the tasks report": self._metrics.error if self._metrics is not None else None,
            "the progress": self._progress.error if self._progress is not None else None,
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
        for series in (self._metrics, self._progress):
            if series is not None:
                series.close()
