"""What an engine is to a job's attempts: where the tasks' processes are started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from akrunner.engines.feeder import StreamFeeder
from akrunner.launch.process import LoggedProcess
from akrunner.launch.session import TaskSession
from akrunner.spec import TaskSpec
from akrunner.wire.context import Context, TFConfig


class Launcher(Protocol):
    """Where the tasks' processes are started: this machine, or others. A context manager: what it holds, it holds while the attempt lasts."""

    def addresses(self) -> Mapping[TaskSpec, str]:
        """ "host:port" TensorFlow may use, of every task. May wait until all places are known."""
        ...

    def context(self, task: TaskSpec, tf_config: TFConfig, attempt: int) -> Context:
        """What the task is told (`JobSpec.context`)."""
        ...

    def start(self, task: TaskSpec) -> LoggedProcess:
        """Start its process, its files beside it. Raises: OSError: it cannot be started."""
        ...

    def starts(self) -> Mapping[str, str]:
        """How each task was started, in words, by its name; empty: nobody knows."""
        return {}

    def feeder(self, sessions: Mapping[TaskSpec, TaskSession]) -> StreamFeeder | None:
        """Who brings the rows, None: the host does. Asked once `addresses` has returned."""
        return None

    def ready(self) -> None:
        """Every task is about to enter `main`."""

    def check(self) -> None:
        """Called now and then. Raises: JobError: what the places are part of has failed."""

    def explain(self) -> None:
        """Called once a task has failed. Raises: AkrunnerError: why the places went, where it is known and says more than the tasks' ends;
        the job is not started again then."""

    def ended(self) -> None:
        """Every process has been told to go: nothing of the job may stay."""

    def take_model(self) -> None:
        """Of a train job that succeeded: the chief's model goes where the job wants it."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> None: ...
