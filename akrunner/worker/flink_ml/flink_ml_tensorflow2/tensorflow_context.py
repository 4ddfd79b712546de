"""The TensorFlow side of a task's context."""

from akrunner.worker import running
from akrunner.worker.context import TFContext as _TFContext


class TFContext(_TFContext):
    """The context of the task this process runs. Args: any, for whoever builds one from another."""

    def __init__(self, *ignored):
        super(TFContext, self).__init__(running.context(), running.writer(), running.stream())
