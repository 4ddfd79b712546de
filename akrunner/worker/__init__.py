"""L1: what runs beside the user's script. Python 3.7 with the standard library, numpy and TensorFlow, nothing else.

It travels to the worker's interpreter as a zip (the bundle); nothing is installed there. A script may import the names
below: the classes for annotations, `current` for its task config where no `main` is given it.
"""

from akrunner.worker.config import BatchTaskConfig, StreamTaskConfig, TaskConfig, TrainTaskConfig
from akrunner.worker.output import OutputWriter
from akrunner.worker.running import current

__all__ = ["BatchTaskConfig", "OutputWriter", "StreamTaskConfig", "TaskConfig", "TrainTaskConfig", "current"]
