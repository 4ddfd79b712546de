"""Keras' metrics of probabilities, for models that give logits."""

from __future__ import annotations

from typing import Any, Dict

import tensorflow as tf


class FromLogitsMixin(object):
    """Takes the sigmoid of what the model gives first, with `from_logits=True`."""

    def __init__(self, from_logits: bool = False, *args: Any, **kwargs: Any) -> None:
        super(FromLogitsMixin, self).__init__(*args, **kwargs)
        # after the metric's own: one of them has an attribute _from_logits
        self.from_logits = from_logits

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        if self.from_logits:
            y_pred = tf.nn.sigmoid(y_pred)
        # nothing is given back: TensorFlow 1 makes a function of this, and takes no operation from one
        super(FromLogitsMixin, self).update_state(y_true, y_pred, sample_weight)  # type: ignore[misc]

    def get_config(self) -> Dict[str, Any]:
        return dict(super(FromLogitsMixin, self).get_config(), from_logits=self.from_logits)  # type: ignore[misc]


class AUC(FromLogitsMixin, tf.keras.metrics.AUC):
    """The area under the curve."""


class BinaryAccuracy(FromLogitsMixin, tf.keras.metrics.BinaryAccuracy):
    """How many are right."""


class TruePositives(FromLogitsMixin, tf.keras.metrics.TruePositives):
    """How many are said to be true, and are."""


class FalsePositives(FromLogitsMixin, tf.keras.metrics.FalsePositives):
    """How many are said to be true, and are not."""


class TrueNegatives(FromLogitsMixin, tf.keras.metrics.TrueNegatives):
    """How many are said to be false, and are."""


class FalseNegatives(FromLogitsMixin, tf.keras.metrics.FalseNegatives):
    """How many are said to be false, and are not."""


class Precision(FromLogitsMixin, tf.keras.metrics.Precision):
    """How many of those said to be true are."""


class Recall(FromLogitsMixin, tf.keras.metrics.Recall):
    """How many of those that are true are said to be."""


class SparseCategoricalAccuracy(FromLogitsMixin, tf.keras.metrics.SparseCategoricalAccuracy):
    """How many are right, of several classes: the largest logit is that of the largest probability."""
