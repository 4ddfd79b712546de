"""The TensorFlow side of a task's context."""

from flink_ml_tensorflow.tensorflow_context import TFContext

__all__ = ["TFContext"]
