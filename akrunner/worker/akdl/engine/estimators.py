"""Whether this TensorFlow has Estimators at all."""

from __future__ import annotations

from typing import Any


def estimator_module() -> Any:
    """`tf.compat.v1.estimator`: Alink's scripts are of TensorFlow 1's style on 2 as well. Raises: RuntimeError: this TensorFlow has none any more; it says what to do."""
    import tensorflow as tf

    try:
        return tf.compat.v1.estimator
    except AttributeError:
        raise RuntimeError(
            "this script uses Estimators, which TensorFlow %s does not have (they left with 2.16): run the job on the TensorFlow "
            "it was written for, python_env='tf2.3' or 'tf1.15' (--python-env)" % tf.__version__
        )
