"""The Launcher protocol: how a job's attempts have an engine start the processes of the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from akrunner.engines.feeder import StreamFeeder
from akrunner.launch.process import LoggedProcess
from akrunner.launch.session import TaskSession
from akrunner.spec import TaskSpec
from akrunner.wire.context import Context, TFConfig


class Launcher(Protocol):
    """Starts the tasks' processes, on this machine or on others.

    A context manager: what it acquires, it holds until the attempt is over.
    """

    def addresses(self) -> Mapping[TaskSpec, str]:
        """Return for every task the "host:port" that TensorFlow may use. May wait until it is known where every task runs."""
        ...

    def context(self, task: TaskSpec, tf_config: TFConfig, attempt: int) -> Context:
        """Return the context that the task is given (`JobSpec.context`)."""
        ...

    def start(self, task: TaskSpec) -> LoggedProcess:
        """Start the task's process, with the job's files beside it.

        Raises:
            OSError: the process cannot be started.
        """
        ...

    def starts(self) -> Mapping[str, str]:
        """Return, by the tasks' names, how each task was started, in words. Empty if that is not known."""
        return {}

    def feeder(self, sessions: Mapping[TaskSpec, TaskSession]) -> StreamFeeder | None:
        """Return the thread that feeds the rows to the tasks, or None if the host feeds them. Called after `addresses`
        has returned."""
        return None

    def ready(self) -> None:
        """Called when every task is about to enter `main`."""

    def check(self) -> None:
        """Called now and then while the attempt runs.

        Raises:
            JobError: what the tasks run in (on Flink: the Flink job) has failed.
        """

    def explain(self) -> None:
        """Called once a task has failed. The job is not started again if this raises.

        Raises:
            AkrunnerError: the reason why the machines or subtasks of the tasks went away, if it is known and says more
                than how the tasks ended.
        """

    def ended(self) -> None:
        """Clean up, once every process has been told to end: nothing of the job may stay."""

    def take_model(self) -> None:
        """Put the chief's model where the job wants it. Called for a train job that has succeeded."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> None: ...
