"""Keras metrics of probabilities, for models whose output is logits."""

from __future__ import annotations

from typing import Any, Dict

import tensorflow as tf


class FromLogitsMixin(object):
    """Makes a metric apply the sigmoid to the model's output first, if `from_logits=True`."""

    def __init__(self, from_logits: bool = False, *args: Any, **kwargs: Any) -> None:
        super(FromLogitsMixin, self).__init__(*args, **kwargs)
        # set this after the metric's own constructor; it is not called _from_logits, as a metric has an attribute of that name
        self.from_logits = from_logits

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        if self.from_logits:
            y_pred = tf.nn.sigmoid(y_pred)
        # return nothing: TensorFlow 1 makes a function of this method, which may not return an operation
        super(FromLogitsMixin, self).update_state(y_true, y_pred, sample_weight)  # type: ignore[misc]

    def get_config(self) -> Dict[str, Any]:
        return dict(super(FromLogitsMixin, self).get_config(), from_logits=self.from_logits)  # type: ignore[misc]


class AUC(FromLogitsMixin, tf.keras.metrics.AUC):
    """The area under the curve."""


class BinaryAccuracy(FromLogitsMixin, tf.keras.metrics.BinaryAccuracy):
    """The share of predictions that are right."""


class TruePositives(FromLogitsMixin, tf.keras.metrics.TruePositives):
    """The number of rows that are predicted to be true, and are."""


class FalsePositives(FromLogitsMixin, tf.keras.metrics.FalsePositives):
    """The number of rows that are predicted to be true, and are not."""


class TrueNegatives(FromLogitsMixin, tf.keras.metrics.TrueNegatives):
    """The number of rows that are predicted to be false, and are."""


class FalseNegatives(FromLogitsMixin, tf.keras.metrics.FalseNegatives):
    """The number of rows that are predicted to be false, and are not."""


class Precision(FromLogitsMixin, tf.keras.metrics.Precision):
    """The share of true rows among those that are predicted to be true."""


class Recall(FromLogitsMixin, tf.keras.metrics.Recall):
    """The share of rows predicted to be true among those that are true."""


class SparseCategoricalAccuracy(FromLogitsMixin, tf.keras.metrics.SparseCategoricalAccuracy):
    """The share of predictions of one of several classes that are right.

    The largest logit belongs to the largest probability.
    """
