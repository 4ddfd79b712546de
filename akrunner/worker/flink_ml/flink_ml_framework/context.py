"""The context of a task: its name, its index and its user params."""

from __future__ import annotations

from typing import Any, Optional

from akrunner.worker import running


class Context(object):
    """The context of the task that this process runs.

    Attributes:
        properties: the user params, with every value as a string.
        identity: the task's name.
        index: the task's index within its role.
        mode: the job's mode.
    """

    def __init__(self, *ignored: Any) -> None:
        context = running.context()
        self.index = context["tf_config"]["task"]["index"]
        self.identity = context["task"]
        self.mode = context["mode"]
        self.properties = {key: str(value) for key, value in context["user_params"].items()}

    def from_java(self) -> str:
        """Return the path of the TFRecord file with the task's rows (in batch and train jobs)."""
        path: str = running.context()["dataset_file"]
        return path

    def to_java(self) -> str:
        """Return the name of the output, for `JavaFile`."""
        return "output"

    def get_property(self, key: str) -> Optional[str]:
        """Return a user param as a string, None if there is none."""
        return self.properties.get(key)
