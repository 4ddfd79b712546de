"""Small helpers for TensorFlow."""

from __future__ import annotations

from typing import Optional


def set_intra_op_parallelism(intra_op_parallelism_threads: int = 1) -> None:
    """Set how many threads one operation may use. Call it before any operation has run.

    Without eager execution, as in TensorFlow 1, it applies to Keras's default session.
    """
    import tensorflow as tf

    threading = getattr(getattr(tf, "config", None), "threading", None)
    if threading is not None and tf.executing_eagerly():
        threading.set_intra_op_parallelism_threads(int(intra_op_parallelism_threads))
        return
    v1 = tf.compat.v1
    v1.keras.backend.set_session(
        v1.Session(config=v1.ConfigProto(intra_op_parallelism_threads=int(intra_op_parallelism_threads)))
    )


def preview_tfrecords_file(path: str, count: Optional[int] = None) -> None:
    """Print the Examples of a TFRecord file: the first `count`, or all if it is None."""
    import tensorflow as tf

    for i, record in enumerate(tf.compat.v1.io.tf_record_iterator(path)):
        if count is not None and i >= count:
            break
        print(tf.train.Example.FromString(record))
