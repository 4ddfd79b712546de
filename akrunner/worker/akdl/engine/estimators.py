"""Finds TensorFlow's Estimators, which newer versions do not have."""

from __future__ import annotations

from typing import Any


def estimator_module() -> Any:
    """Return `tf.compat.v1.estimator`, as Alink's scripts have TensorFlow 1's style on TensorFlow 2, too.

    Raises:
        RuntimeError: this TensorFlow has no Estimators any more; the error says what to do.
    """
    import tensorflow as tf

    try:
        return tf.compat.v1.estimator
    except AttributeError:
        raise RuntimeError(
            "this script uses Estimators, which TensorFlow %s does not have (they left with 2.16): run the job on the "
            "TensorFlow it was written for, python_env='tf2.3' or 'tf1.15' (--python-env)" % tf.__version__
        )
