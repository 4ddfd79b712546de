"""The code that runs in a worker process beside the user's script.

Runs on Python 3.7 with the standard library, numpy and TensorFlow, and nothing else. It travels to the worker's interpreter as
a zip (the bundle); nothing is installed there. A script may import the names below: the classes for annotations, and `current`
to get its task config if it has no `main` that receives it.
"""

from akrunner.worker.config import BatchTaskConfig, StreamTaskConfig, TaskConfig, TrainTaskConfig
from akrunner.worker.output import OutputWriter
from akrunner.worker.running import current

__all__ = ["BatchTaskConfig", "OutputWriter", "StreamTaskConfig", "TaskConfig", "TrainTaskConfig", "current"]
