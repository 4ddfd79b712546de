"""The TensorFlow side of a task's context."""

from __future__ import annotations

from typing import Any

from akrunner.worker import dl_on_flink, running
from akrunner.worker.context import TFContext as _TFContext


class TFContext(_TFContext):
    """The context of the task this process runs. Args: any, for whoever builds one from another.

    Made of what a `map_func(context)` is given, it is that one's (`dl_on_flink.TFContext`).
    """

    def __new__(cls, *given: Any) -> Any:
        if given and isinstance(given[0], dl_on_flink.Context):
            return dl_on_flink.TFContext(given[0])
        return super(TFContext, cls).__new__(cls)

    def __init__(self, *ignored: Any) -> None:
        super(TFContext, self).__init__(running.context(), running.writer(), running.stream())
