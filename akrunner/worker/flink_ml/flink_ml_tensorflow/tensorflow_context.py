"""The context of a task, with its TensorFlow functions."""

from __future__ import annotations

from typing import Any

from akrunner.worker import dl_on_flink, running
from akrunner.worker.context import TFContext as _TFContext


class TFContext(_TFContext):
    """The context of the task that this process runs.

    Arguments are accepted, because scripts make one context from another, and ignored. But if the first one is the context
    that a `map_func(context)` gets, the result is a `dl_on_flink.TFContext` of that context.
    """

    def __new__(cls, *given: Any) -> Any:
        if given and isinstance(given[0], dl_on_flink.Context):
            return dl_on_flink.TFContext(given[0])
        return super(TFContext, cls).__new__(cls)

    def __init__(self, *ignored: Any) -> None:
        super(TFContext, self).__init__(running.context(), running.writer(), running.stream())
