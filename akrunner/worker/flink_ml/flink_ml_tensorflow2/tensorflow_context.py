"""The context of a task, with its TensorFlow functions."""

from flink_ml_tensorflow.tensorflow_context import TFContext

__all__ = ["TFContext"]
