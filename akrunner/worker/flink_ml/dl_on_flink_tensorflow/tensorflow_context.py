"""The context of a task, with its TensorFlow functions."""

from akrunner.worker.dl_on_flink import TFContext

__all__ = ["TFContext"]
