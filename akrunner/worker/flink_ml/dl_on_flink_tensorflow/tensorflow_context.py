"""The TensorFlow side of a task's context."""

from akrunner.worker.dl_on_flink import TFContext

__all__ = ["TFContext"]
