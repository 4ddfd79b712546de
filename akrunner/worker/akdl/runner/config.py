"""The task configs, under Alink's names."""

from akrunner.worker.config import BatchTaskConfig, StreamTaskConfig, TrainTaskConfig

__all__ = ["BatchTaskConfig", "StreamTaskConfig", "TrainTaskConfig"]
