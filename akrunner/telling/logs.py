"""A job in the words of Python's `logging`: the loggers `akrunner` and `akrunner.task`, whose records have the fields `job` and `task`.

akrunner sets up neither a handler nor a level: a program that wants these records does, as it does for other libraries.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from akrunner.codes import with_code

if TYPE_CHECKING:
    from akrunner.engines.base import Progress

#: of a job: it begins, is started again, warns, ends
JOBS = logging.getLogger("akrunner")
#: of its tasks: what they print (info), and what they are doing (debug)
TASKS = logging.getLogger("akrunner.task")


class Logs:
    """Writes the records of one job.

    Args: verb, script: what runs.
    """

    what: ClassVar[str] = "log records"

    def __init__(self, verb: str, script: str) -> None:
        self._what = f"{verb} {script}"
        #: the field `job` of every record: what runs, and from the beginning of the run its name
        self._job = script
        self._warned: set[str] = set()
        self._states: Mapping[str, str] = {}

    @staticmethod
    def wanted() -> bool:
        """Whether the program has set up a handler: without one, Python prints warnings to stderr by itself."""
        return JOBS.hasHandlers() and JOBS.isEnabledFor(logging.CRITICAL)

    def begun(self, run: str | None) -> None:
        """Take the name under which the run is kept."""
        self._job = run or self._job
        self._say(logging.INFO, f"{self._what} begins")

    def progress(self, progress: Progress) -> None:
        """Tell the warnings, and the states of tasks, that were not told yet."""
        self._warn(progress.warnings)
        for task, state in progress.states.items():
            if self._states.get(task) != state:
                TASKS.debug("%s", state, extra={"job": self._job, "task": task})
        self._states = dict(progress.states)

    def log(self, task: str, line: str) -> None:
        """Tell a line that a task has printed."""
        TASKS.info("%s", line, extra={"job": self._job, "task": task})

    def ended(self, body: Mapping[str, Any]) -> None:
        """Tell how the job has ended. Args: body: as `Listener.ended` has it."""
        if body["ok"]:
            stats = body["stats"]
            self._warn(stats["warnings"])
            if JOBS.isEnabledFor(logging.INFO):
                rows = f"{stats['rows_in']:,} rows in, {stats['rows_out']:,} rows out"
                self._say(logging.INFO, f"{self._what} has succeeded in {stats['seconds']:.1f} s: {rows}", exit_code=0)
            return
        self._warn(body["warnings"])
        first = body["failure"] or {}
        short = body["error_code"]
        words = "\n".join(filter(None, (with_code(body["message"], short or ""), first.get("traceback", "").rstrip())))
        code = body["exit_code"]
        level = logging.ERROR if code < 128 else logging.WARNING
        about = {"error": body["error"], "exit_code": code, "error_code": short}
        self._say(level, f"{self._what}: {body['error']}: {words}", task=first.get("task"), **about)

    def _warn(self, warnings: Iterable[str]) -> None:
        """Tell the warnings that were not told yet. Args: warnings: all that there are."""
        for warning in warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self._say(logging.WARNING, warning)

    def _say(self, level: int, words: str, task: str | None = None, **fields: Any) -> None:
        JOBS.log(level, "%s", words, extra={"job": self._job, "task": task, **fields})
