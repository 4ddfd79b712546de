"""What a task knows of itself."""

from __future__ import annotations

from typing import Any, Optional

from akrunner.worker import running


class Context(object):
    """Attributes: properties: user params, every value a string; identity; index; mode."""

    def __init__(self, *ignored: Any) -> None:
        context = running.context()
        self.index = context["tf_config"]["task"]["index"]
        self.identity = context["task"]
        self.mode = context["mode"]
        self.properties = {key: str(value) for key, value in context["user_params"].items()}

    def from_java(self) -> str:
        """Path of the rows, as a TFRecord file (batch and train)."""
        path: str = running.context()["dataset_file"]
        return path

    def to_java(self) -> str:
        """Name of the way out, for `JavaFile`."""
        return "output"

    def get_property(self, key: str) -> Optional[str]:
        """One user param as a string, None when there is none."""
        return self.properties.get(key)
