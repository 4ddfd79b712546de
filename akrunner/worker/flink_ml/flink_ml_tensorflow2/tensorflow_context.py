"""The TensorFlow side of a task's context."""

from akrunner.worker import current
from akrunner.worker.context import TFContext as _TFContext


class TFContext(_TFContext):
    """The context of the task this process runs. Args: any, for whoever builds one from another."""

    def __init__(self, *ignored):
        super(TFContext, self).__init__(current.context(), current.writer(), current.stream())
