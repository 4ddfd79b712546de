"""Tells whoever looks on while a job runs, if anybody does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from akrunner.engines import doctor
from akrunner.engines.base import Observer, Progress
from akrunner.errors import AkrunnerError, JobError
from akrunner.spec import TaskSpec


class Onlooker:
    """Hands an observer the progress and what tasks print. Args: observer: None: nobody looks on.

    Attributes:
        no_stacks: stacks that tasks print are not shown: they were asked for by us, of a job that may well be in order.
    """

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer
        self.no_stacks = False

    def echo(self, task: TaskSpec) -> Callable[[str], None] | None:
        """What is called with each line a task prints; None: nobody looks on."""
        observer = self._observer
        if observer is None:
            return None

        def tell(line: str) -> None:
            if self.no_stacks and doctor.is_stack(line):
                return
            with _observing("log"):
                observer.log(task.name, line)

        return tell

    def tell(self, progress: Callable[[], Progress]) -> None:
        """Args: progress: makes it, if somebody looks on. Raises: JobError: the observer raised something."""
        if self._observer is not None:
            with _observing("progress"):
                self._observer.progress(progress())


@contextlib.contextmanager
def _observing(method: str) -> Iterator[None]:
    """What an observer raises -> a JobError that says so."""
    try:
        yield
    except AkrunnerError:
        raise
    except Exception as e:
        raise JobError(f"observer: {method}() raised {type(e).__name__}: {e}") from e
