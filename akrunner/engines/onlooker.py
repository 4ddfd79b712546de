"""Passes on to a job's observer, if there is one, what happens while the job runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from akrunner.engines.base import Observer, Progress, ReportObserver
from akrunner.engines.supervision import deadlock
from akrunner.errors import AkrunnerError, JobError
from akrunner.spec import TaskSpec


class Onlooker:
    """Passes the progress of a job, and the lines that its tasks print, on to an observer.

    Args:
        observer: the observer; None if there is none.
    Attributes:
        no_stacks: whether stacks that tasks print are hidden from the observer. They are while akrunner asks for them on
            its own account, as nothing may be wrong with the job.
    """

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer
        self._takes_reports = observer if isinstance(observer, ReportObserver) else None
        self.no_stacks = False

    def echo(self, task: TaskSpec) -> Callable[[str], None] | None:
        """Return a function to call with each line that a task prints; None if there is no observer."""
        observer = self._observer
        if observer is None:
            return None

        def tell(line: str) -> None:
            if self.no_stacks and deadlock.is_stack(line):
                return
            with _observing("log"):
                observer.log(task.name, line)

        return tell

    def tell(self, progress: Callable[[], Progress]) -> None:
        """Tell the observer the progress.

        Args:
            progress: makes the progress; called only if there is an observer.
        Raises:
            JobError: the observer raised something.
        """
        if self._observer is not None:
            with _observing("progress"):
                self._observer.progress(progress())

    def report(self, report: Mapping[str, Any]) -> None:
        """Tell the observer a report of a task, if it takes any. Raises: JobError: the observer raised something."""
        if self._takes_reports is not None:
            with _observing("report"):
                self._takes_reports.report(report)


@contextlib.contextmanager
def _observing(method: str) -> Iterator[None]:
    """Turn what an observer raises into a JobError that says so."""
    try:
        yield
    except AkrunnerError:
        raise
    except Exception as e:
        raise JobError(f"observer: {method}() raised {type(e).__name__}: {e}") from e
