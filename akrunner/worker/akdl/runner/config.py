"""The task configs, under Alink's names."""

from akrunner.worker.config import BatchTaskConfig, StreamTaskConfig, TrainTaskConfig
from akrunner.worker.config import TaskConfig as BaseConfig

__all__ = ["BaseConfig", "BatchTaskConfig", "StreamTaskConfig", "TrainTaskConfig"]
